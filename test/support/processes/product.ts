// The product as it is deployed: the image where Docker can build it, else the same files, run by an unprivileged
// user from a read-only folder. Both contain the files that the Dockerfile copies and the packages that are no development dependencies.
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { Ended } from './intake.ts';

const run = promisify(execFile);

/** Runs `intake` as it would be deployed. */
export interface Product extends AsyncDisposable {
  /** A folder that the product may write to. */
  readonly scratch: string;
  /** Runs Node inside, to its end. Inherits nothing from this process's environment. */
  node(args: readonly string[], env?: Record<string, string>): Promise<Ended>;
  /** Starts Node inside; `stop` sends SIGTERM, as a supervisor does. */
  start(
    args: readonly string[],
    env: Record<string, string>,
  ): { readonly ended: Promise<Ended>; stop(): Promise<void> };
}

export async function openProduct(): Promise<Product> {
  try {
    return await openImage();
  } catch (error) {
    process.stderr.write(`Docker cannot build the image (${(error as Error).message.split('\n').at(-1)}).\n`);
    return openTree();
  }
}

async function openImage(): Promise<Product> {
  const image = `intake-test:${randomBytes(4).toString('hex')}`;
  await run('docker', ['build', '--network=host', '--tag', image, '.'], { maxBuffer: 1e8 });
  const limits = [
    '--read-only',
    '--tmpfs=/tmp',
    '--cap-drop=ALL',
    '--security-opt=no-new-privileges',
    '--network=host',
  ];
  const toRun = (args: readonly string[], env: Record<string, string>, more: readonly string[] = []) => {
    const given = Object.entries(env).map(([name, value]) => `--env=${name}=${value}`);
    return ['run', '--rm', ...limits, ...more, ...given, image, 'node', ...args];
  };
  return {
    scratch: '/tmp',
    node: (args, env = {}) => collect(start('docker', toRun(args, env))),
    start(args, env) {
      const name = `intake-test-${randomBytes(4).toString('hex')}`;
      return {
        ended: collect(start('docker', toRun(args, env, ['--name', name]))),
        stop: async () => void (await run('docker', ['stop', '--time', '30', name])),
      };
    },
    async [Symbol.asyncDispose]() {
      await run('docker', ['image', 'rm', '--force', image]);
    },
  };
}

function openTree(): Product {
  const root = mkdtempSync(join(tmpdir(), 'intake-product-'));
  const node = join(root, 'bin/node');
  const app = join(root, 'app');
  mkdirSync(dirname(node));
  cpSync(process.execPath, node, { dereference: true });
  for (const path of ['package.json', 'migrations', 'src', 'examples/check-proof.ts'])
    cpSync(path, join(app, path), { recursive: true });
  rmSync(join(app, 'src/dev'), { recursive: true });
  for (const path of loadProductPackages()) {
    // A nested package has its own entry in the lock file.
    const filter = (from: string) => !from.slice(path.length).includes('/node_modules');
    cpSync(path, join(app, path), { recursive: true, filter });
  }
  // The compile cache is writable, so that only the first start strips and compiles all modules.
  const cache = join(root, 'cache');
  const scratch = join(root, 'scratch');
  for (const folder of [cache, scratch]) mkdirSync(folder);
  setModes(root, 0o555, 0o444);
  chmodSync(node, 0o555);
  for (const folder of [cache, scratch]) chmodSync(folder, 0o777);
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: 65_534, gid: 65_534 } : {};
  const startHere = (args: readonly string[], env: Record<string, string>) =>
    start(node, args, {
      cwd: app,
      env: { PATH: join(root, 'bin'), NODE_ENV: 'production', NODE_COMPILE_CACHE: cache, ...env },
      ...user,
    });
  return {
    scratch,
    node: (args, env = {}) => collect(startHere(args, env)),
    start(args, env) {
      const child = startHere(args, env);
      return { ended: collect(child), stop: async () => void child.kill('SIGTERM') };
    },
    async [Symbol.asyncDispose]() {
      setModes(root, 0o755, 0o644);
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** The folders of the packages that `npm ci --omit=dev` would install here. */
function loadProductPackages(): string[] {
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Record<string, { dev?: boolean }>;
  };
  return Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== '' && !dev && existsSync(path))
    .map(([path]) => path);
}

function setModes(path: string, folders: number, files: number): void {
  chmodSync(path, folders | 0o700);
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const child = join(path, entry.name);
    if (entry.isDirectory()) setModes(child, folders, files);
    else if (entry.isFile()) chmodSync(child, files);
  }
  chmodSync(path, folders);
}

function start(command: string, args: readonly string[], options: object = {}) {
  return spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function collect(child: ReturnType<typeof start>): Promise<Ended> {
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { code: code as number | null, stdout, stderr };
}

// The CLI as a process: signals, closed pipes, forgotten handles, and how little it loads.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';

function start(...args: string[]) {
  const child = spawn(process.execPath, ['test/support/processes/cli-process.ts', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return { child, stderr: text(child.stderr), ended: once(child, 'exit') as Promise<[number | null, string | null]> };
}

const heard = (child: ReturnType<typeof start>['child']) => once(child.stderr, 'data');

describe('a process', () => {
  it('that is interrupted ends with 5 when it is a one-shot, and with 0 when it is a worker that ended well', async () => {
    for (const [name, signal, expected] of [
      ['one-shot', 'SIGINT', 5],
      ['one-shot', 'SIGTERM', 5],
      ['worker', 'SIGTERM', 0],
    ] as const) {
      const { child, ended, stderr } = start(name);
      await heard(child);
      child.kill(signal);
      expect(await ended, `${name} ${signal}`).toEqual([expected, null]);
      if (expected === 5) expect(await stderr).toContain(`Interrupted by ${signal}`);
    }
  });

  it('that does not stop at the first signal ends at once at the second', async () => {
    const { child, ended } = start('deaf');
    await heard(child);
    child.kill('SIGINT');
    expect(await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 300, 'still there'))])).toBe(
      'still there',
    );
    child.kill('SIGINT');
    expect(await ended).toEqual([5, null]);
  });

  it('whose reader has gone stops without an outcry', async () => {
    const { child, ended, stderr } = start('flood');
    await once(child.stdout, 'data');
    child.stdout.destroy();
    expect(await ended).toEqual([5, null]);
    expect(await stderr).toMatch(/^Interrupted by a closed pipe\n/);
    expect(await stderr).not.toMatch(/EPIPE| {4}at /);
  });

  it('that takes long tells how far it has come, outside the test runner too', async () => {
    const { ended, stderr } = start('count');
    expect(await ended).toEqual([0, null]);
    expect(await stderr).toBe('applications 2 of 2\n');
  });

  it('with a forgotten handle ends all the same, with its code', async () => {
    expect(await start('leak').ended).toEqual([3, null]);
  });

  it('that throws where nobody catches ends with 1 in the one form', async () => {
    const { ended, stderr } = start('crash');
    expect(await ended).toEqual([1, null]);
    expect(await stderr).toMatch(/^Unexpected: no reply from \[address\]\n {2}Kept: .*\n {2}Next: /);
    expect(await stderr).not.toContain('jane');
  });
});

it('a .env in the working folder is read, and the environment wins over it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'env-'));
  writeFileSync(join(folder, '.env'), 'LOG_LEVEL=debug\n');
  const run = (env: NodeJS.ProcessEnv) =>
    spawnSync(process.execPath, [resolve('src/cli/main.ts'), 'nonsense'], { cwd: folder, env, encoding: 'utf8' });
  try {
    expect(run({})).toMatchObject({ status: 2, stderr: expect.stringMatching(/\n {4}at /) });
    expect(run({ LOG_LEVEL: 'info' }).stderr).not.toMatch(/\n {4}at /);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('help loads no driver, no configuration and no log: only what parses', async () => {
  const { packages, files } = await listLoaded(['--help']);
  expect(packages).toEqual(new Set(['commander']));
  expect(files.filter((url) => /src\/(?!cli\/|domain\/)/.test(url))).toEqual([]);
});

it('an extract to a folder loads the driver and the encoder, but no client of HTTP or S3', async () => {
  const env = { DATABASE_URL: 'postgres://127.0.0.1:1/none', PRIVACY_KEY: 'a privacy key of a test' };
  const { packages } = await listLoaded(['extract', '--to', 'file:/nowhere'], env);
  expect(packages).toContain('pg');
  expect(packages).toContain('hyparquet-writer');
  expect(packages).not.toContain('undici');
  expect(packages).not.toContain('@aws-sdk/client-s3');
});

/** Runs the CLI and lists the modules that it loads. */
async function listLoaded(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const preload = `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { process.stderr.write(url + '\\n'); return next(url, context); } });`)}`;
  const child = spawn(process.execPath, ['--import', preload, 'src/cli/main.ts', ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const files = (await text(child.stderr)).split('\n');
  const packages = new Set(files.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []));
  return { packages, files };
}

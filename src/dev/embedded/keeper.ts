// The keeper: a program of its own that owns one embedded Postgres from its start to its end. It promises that there is one keeper per
// folder, that every user who was told the URL is counted, and that the server stops when the last of them is gone, however it went.
// Its only concern is who is here; where and how the server runs is known to place.ts and server.ts.

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

// What the server's account may read is opened to it by name; everything else here is the user's alone.
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

  // Users come in while the server is still being made, and wait. Half-open: the last one waits for the end of this process.
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
    // Connected before the port was closed, and not admitted yet.
    if (stopping) return void socket.destroy();
    users.add(socket);
    // The sign that a keeper is here; blank to a reader of JSON.
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

  /** From here on no user is admitted: a new one waits for the lock and starts again. */
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

  // A server that died under its users is started again, at the same port. One that cannot start has told them why.
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

/** One keeper per folder. SQLite's is the only lock in Node's own library that the kernel drops with the process. */
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

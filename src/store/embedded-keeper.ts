// The keeper: a program of its own that owns one embedded Postgres from its start to its end. It promises that there is one keeper per
// folder, that every user who was told the URL is counted, and that the server stops when the last of them is gone, however it went.
// Its only duty is who is here; where and how the server runs is known to embedded-place.ts and embedded-server.ts.

import { randomBytes } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type KeeperAnswer, type KeeperOrder, keeperBusy, loadNotice, saveNotice } from './embedded-notice.ts';
import { openPlace } from './embedded-place.ts';
import { openServer, type Server, toMessage } from './embedded-server.ts';

const firstUserMs = 10_000;

const order = JSON.parse(process.argv[2] ?? '') as KeeperOrder;
const lock = takeLock();
const token = randomBytes(24).toString('hex');
const users = new Set<Socket>();
let stopping = false;

// Users may wait here while the server is still being made. A half-open socket lets the last user wait for the end of this process.
const door = createServer({ allowHalfOpen: true }, (socket) => {
  socket.setEncoding('utf8').on('error', () => undefined);
  let said = '';
  socket.on('data', async (text) => {
    said += text;
    if (users.has(socket)) return;
    if (said !== `${token}\n`) {
      if (said.length > token.length) socket.destroy();
      return;
    }
    users.add(socket);
    const answer = await opening.then(
      ({ url }): KeeperAnswer => ({ url }),
      (error: unknown): KeeperAnswer => ({ trouble: toMessage(error, order.folder) }),
    );
    socket.write(`${JSON.stringify(answer)}\n`);
    if ('trouble' in answer) void stop();
  });
  socket.once('end', () => {
    users.delete(socket);
    if (users.size === 0) void stop();
    else socket.end();
  });
});

const previous = loadNotice(order.folder);
await new Promise<void>((resolve, reject) => {
  door.once('error', reject).listen(0, '127.0.0.1', resolve);
});
const notice = {
  folder: order.folder,
  keeperPort: (door.address() as { port: number }).port,
  token,
  port: previous?.port ?? null,
};
saveNotice(notice);

const opening: Promise<Server> = openPlace(order).then((place) => openServer(place, { ...order, port: notice.port }));
opening.then(
  (server) => {
    saveNotice({ ...notice, port: server.port });
    // A server that died under its users ends its keeper; they come back and find it a new one.
    void server.ended.then(() => {
      if (!stopping) process.exit(1);
    });
  },
  () => undefined,
);
setTimeout(() => {
  if (users.size === 0) void stop();
}, firstUserMs).unref();

/** From here on nobody is let in: whoever comes waits for the lock and begins anew. */
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  door.close();
  await opening.then((server) => server.stop()).catch(() => undefined);
  lock.close();
  process.exit(0);
}

/** One keeper per folder. SQLite's file lock is the only one in Node's own library that the kernel drops with its process. */
function takeLock(): DatabaseSync {
  const file = new DatabaseSync(join(order.folder, 'keeper.lock'), { timeout: 0 });
  try {
    file.exec('BEGIN EXCLUSIVE');
    return file;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === 5) process.exit(keeperBusy);
    throw error;
  }
}

// The listener that wakes the download loop: whatever happens to its connection, it comes back, and it never takes the process along.
import { createServer, type Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { describe } from 'vitest';
import { openQueueListener } from '../../src/store/postgres/listen.ts';
import { findFreePort } from '../support/free-port.ts';
import { test } from '../support/test-database.ts';
import { until } from '../support/until.ts';

describe('a listener', () => {
  test('hears of queued downloads again after its connection was ended', async ({ database }) => {
    const heard: string[] = [];
    await using _listener = await openQueueListener({ url: database.url, onQueued: (id) => heard.push(id) });
    const isHeard = (id: string) =>
      until(async () => {
        await database.query(`SELECT pg_notify('intake_downloads', $1)`, [id]);
        return heard.includes(id);
      });
    await isHeard('1');
    await database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'intake listen' AND datname = current_database()`,
    );
    await isHeard('2');
  });

  test('that finds no database at first keeps trying and ends when it is asked to', { tags: ['slow'] }, async () => {
    const port = await findFreePort();
    const url = `postgres://intake:no@127.0.0.1:${port}/intake`;
    let tries = 0;
    await using _listener = await openQueueListener({ url, onQueued: () => {} });
    const server = createServer((socket) => {
      tries++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    await until(async () => tries > 0);
    await new Promise((resolve) => server.close(resolve));
    // A rejection that nobody hears would end the test's process.
    await nextTick();
  });

  test('that is asked to end while it connects ends when its connection does', { tags: ['slow'] }, async () => {
    const port = await findFreePort();
    const listener = await openQueueListener({
      url: `postgres://intake:no@127.0.0.1:${port}/intake`,
      onQueued: () => {},
    });
    const sockets: Socket[] = [];
    const server = createServer((socket) => sockets.push(socket.on('error', () => {})));
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    await until(() => sockets.length > 0);
    const ended = listener[Symbol.asyncDispose]();
    for (const socket of sockets) socket.destroy();
    await ended;
    await new Promise((resolve) => server.close(resolve));
  });
});

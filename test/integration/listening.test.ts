// The listener that wakes drains: whatever happens to its connection, it comes back, and it never takes the process along.
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { openQueueListener } from '../../src/store/listening.ts';
import { eventually } from '../support/embedded-root.ts';
import { findFreePort } from '../support/prefill-stage.ts';
import { test } from '../support/test-database.ts';

describe('a listener', () => {
  test('hears of queued downloads again after its connection was ended', async ({ database }) => {
    const heard: string[] = [];
    await using _listener = await openQueueListener({ url: database.url, onQueued: (id) => heard.push(id) });
    const isHeard = (id: string) =>
      eventually(async () => {
        await database.query(`SELECT pg_notify('intake_downloads', $1)`, [id]);
        return heard.includes(id);
      });
    expect(await isHeard('1')).toBe(true);
    await database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'intake listen' AND datname = current_database()`,
    );
    expect(await isHeard('2')).toBe(true);
  });

  test('that finds no database at first keeps trying and ends when it is asked to', async () => {
    const port = await findFreePort();
    const url = `postgres://intake:no@127.0.0.1:${port}/intake`;
    let tries = 0;
    await using _listener = await openQueueListener({ url, onQueued: () => {} });
    const server = createServer((socket) => {
      tries++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    expect(await eventually(async () => tries > 0)).toBe(true);
    await new Promise((resolve) => server.close(resolve));
    // A rejection that nobody hears would end the test's process.
    await sleep(10);
  });
});

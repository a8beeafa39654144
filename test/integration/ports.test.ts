// The admin port as a stranger or a hostile page meets it: the same headers on every answer, errors included, nothing that changes
// anything, and an end to heads that are too long or never come. (The public port's answers are held against the same in prefill-routes.)
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect } from 'vitest';
import { portLimits } from '../../src/web/server.ts';
import { openTestAdmin } from '../support/admin.ts';
import { test } from '../support/test-database.ts';

const paths = [
  '/',
  '/metrics',
  '/api/status',
  '/livez',
  '/readyz',
  '/status.css',
  '/icon.svg',
  '/nowhere',
  '/%ff',
  '//x',
  '/..%2f',
];

describe('every answer of the admin port', () => {
  test('carries its headers, on every route and on every error', async ({ database }) => {
    await using open = await openTestAdmin(database);
    await using locked = await openTestAdmin(database, { login: { user: 'operator', password: () => 'a-password' } });
    const answers = [
      ...paths.map((path) => ask(open.url, path)),
      ...paths.map((path) => ask(locked.url, path)),
      ask(open.url, '/', { host: 'evil.example.com' }),
      ask(open.url, '/', {}, 'POST'),
    ];
    const seen = new Set<number>();
    for (const { status, headers } of await Promise.all(answers)) {
      seen.add(status);
      expect(headers, String(status)).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'content-security-policy': expect.stringContaining("default-src 'none'"),
      });
      expect(headers['access-control-allow-origin']).toBeUndefined();
    }
    expect([...seen].sort()).toEqual([200, 401, 404, 421]);
  });

  test('changes nothing, whatever the method: there is nothing for a forged request to do', async ({ database }) => {
    await using admin = await openTestAdmin(database);
    const look = `SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::text AS writes FROM pg_stat_user_tables`;
    await database.query(`SELECT pg_stat_force_next_flush()`);
    const [before] = await database.query(look);
    const methods = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
    const answers = await Promise.all(
      methods.flatMap((method) =>
        paths.slice(0, 5).map((path) => ask(admin.url, path, { origin: 'http://evil.example.com' }, method)),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]));
    for (const path of paths) await ask(admin.url, path);
    await database.query(`SELECT pg_stat_force_next_flush()`);
    expect(await database.query(look)).toEqual([before]);
  });
});

describe('a request to the admin port', () => {
  test('with a head that is too long is refused', async ({ database }) => {
    await using admin = await openTestAdmin(database);
    expect((await ask(admin.url, '/', { long: 'x'.repeat(20_000) })).status).toBe(431);
    expect((await ask(admin.url, `/${'x'.repeat(20_000)}`)).status).toBe(431);
  });

  test('with a body of any size is answered without reading it', async ({ database }) => {
    await using admin = await openTestAdmin(database);
    const socket = connect(Number(new URL(admin.url).port), '127.0.0.1').on('error', () => {});
    socket.write(
      'POST /api/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000000\r\nConnection: close\r\n\r\nx',
    );
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 404 /);
  });

  test('with a head that never comes to its end has ten seconds', () => {
    expect(portLimits).toMatchObject({ headersTimeout: 10_000, requestTimeout: 30_000 });
  });
});

function ask(url: string, path: string, headers: Record<string, string> = {}, method = 'GET') {
  return new Promise<{ status: number; headers: Record<string, unknown> }>((resolve, reject) => {
    const { hostname, port } = new URL(url);
    request({ hostname, port, path, method, headers, agent: false }, (answer) => {
      answer.resume().once('close', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers }));
    })
      .once('error', reject)
      .end();
  });
}

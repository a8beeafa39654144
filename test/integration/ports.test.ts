// Both ports as a stranger or a hostile page meets them: the same headers on every answer, errors included, nothing of a request or of an
// error in any of them, nothing on the admin port that changes anything, and an end to what is too long, too large or never comes.
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type IncomingMessage, request, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, vi } from 'vitest';
import { createMetrics } from '../../src/web/admin/metrics.ts';
import { openServer } from '../../src/web/server.ts';
import { openTestAdmin } from '../support/admin.ts';
import { type TestDatabase, test } from '../support/database/test-database.ts';
import { openPrefillStage, prefillKey } from '../support/prefill/prefill-stage.ts';

const adminPaths = ['/', '/metrics', '/api/status', '/livez', '/readyz', '/status.css', '/icon.svg'];
const publicPaths = ['/prefill/start', '/prefill/callback', '/prefill/stopped', '/prefill/redeem', '/prefill/resume/x'];
/** Paths of nowhere: what stands in them must come back to nobody. */
const marker = 'marker-7d1f';
const nowhere = [
  `/${marker}`,
  '/favicon.ico',
  '/%ff',
  `//${marker}`,
  '/..%2f',
  '/prefill',
  `/prefill/${marker}?q=${marker}`,
];
const broken = { ...createMetrics(), render: () => Promise.reject(new Error(marker)) };

/** Both ports, the admin one once more with a login. */
async function openPorts(database: TestDatabase, onError: (route: string, error: unknown) => void = () => {}) {
  const stack = new AsyncDisposableStack();
  const login = { user: 'operator', password: () => 'a-password' };
  return {
    open: stack.use(await openTestAdmin(database, { metrics: broken, onError })).url,
    locked: stack.use(await openTestAdmin(database, { login })).url,
    public: stack.use(await openPrefillStage(database)).urls[0] ?? '',
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

test('every answer carries its headers and repeats nothing, on all routes of both ports', async ({ database }) => {
  const said = vi.spyOn(console, 'error');
  const failed: string[] = [];
  await using ports = await openPorts(database, (route) => failed.push(route));
  const answers = await Promise.all([
    ...[...adminPaths, ...nowhere].flatMap((path) => [ask(ports.open, path), ask(ports.locked, path)]),
    ...[...publicPaths, ...nowhere].map((path) => ask(ports.public, path)),
    ask(ports.open, '/', { headers: { host: `${marker}.example.com` } }),
    ...Object.values(ports)
      .filter((url) => typeof url === 'string')
      .flatMap((url) => ['POST', 'HEAD', 'OPTIONS'].map((method) => ask(url, `/${marker}`, { method }))),
    ask(ports.public, '/prefill/redeem', { method: 'POST' }),
    ask(ports.public, '/prefill/redeem', { method: 'POST', headers: { authorization: marker } }),
    ask(ports.public, '/prefill/redeem', { method: 'POST', headers: { authorization: `Bearer ${prefillKey}` } }),
    ask(ports.public, '/prefill/stopped', { method: 'HEAD' }),
  ]);
  const seen = new Set<number>();
  for (const { status, headers, body } of answers) {
    seen.add(status);
    expect(headers, String(status)).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
    });
    expect(headers['access-control-allow-origin']).toBeUndefined();
    expect(headers['x-powered-by']).toBeUndefined();
    expect(`${body}${JSON.stringify(headers)}`).not.toContain(marker);
  }
  expect([...seen].sort()).toEqual([200, 303, 400, 401, 404, 405, 410, 421, 500]);
  // An error that nobody expected is told to the log, which knows what may be said of it, and to no console.
  expect([failed, said.mock.calls]).toEqual([['/metrics'], []]);
  said.mockRestore();
});

test('the admin port changes nothing, whatever the method', async ({ database }) => {
  await using admin = await openTestAdmin(database);
  const look = `SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::text AS writes FROM pg_stat_user_tables`;
  await database.query(`SELECT pg_stat_force_next_flush()`);
  const [before] = await database.query(look);
  const headers = { origin: 'http://evil.example.com' };
  const answers = await Promise.all(
    ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].flatMap((method) =>
      adminPaths.map((path) => ask(admin.url, path, { headers, method })),
    ),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]));
  for (const path of adminPaths) await ask(admin.url, path);
  await database.query(`SELECT pg_stat_force_next_flush()`);
  expect(await database.query(look)).toEqual([before]);
});

test('a page elsewhere begins a prefill for itself alone, redeems and reads nothing', async ({ database }) => {
  await using stage = await openPrefillStage(database);
  const url = stage.urls[0] ?? '';
  const headers = { origin: 'https://evil.example.com' };
  for (const method of ['POST', 'PUT', 'DELETE']) {
    for (const path of ['/prefill/start', '/prefill/callback', '/prefill/stopped', '/prefill/resume/x']) {
      expect((await ask(url, path, { method, headers })).status, `${method} ${path}`).toBe(404);
    }
  }
  // A form can be sent from anywhere with every cookie, but with no key in its head.
  expect((await ask(url, '/prefill/redeem', { method: 'POST', headers })).status).toBe(401);
  expect(await database.query(`SELECT 1 FROM intake.oauth_states UNION ALL SELECT 1 FROM intake.prefills`)).toEqual([]);
});

test('a host may stand in brackets, as in an address', async () => {
  const setting = 'PORT';
  const opening = openServer({ host: '[::1]', port: 0, fetch: () => new Response('yes'), setting, closingMs: 0 });
  await using server = await opening.catch((error: Error) => {
    // A machine without IPv6 says so; one that looks for a name would say ENOTFOUND.
    expect(error.message).toContain('EADDRNOTAVAIL');
    return null;
  });
  if (server === null) return;
  expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
  expect(await (await fetch(server.url)).text()).toBe('yes');
});

describe('a port that strangers hold connections to', () => {
  const open = (fetch: () => Response, silenceMs?: number) =>
    openServer({ host: '127.0.0.1', port: 0, fetch, setting: 'PORT', closingMs: 0, ...(silenceMs && { silenceMs }) });

  test.for([
    ['that have begun a request', 'GET / HTTP/1.1\r\nHost: a'],
    ['that have had an answer', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ] as const)('%s answers others at once', async ([, bytes]) => {
    await using server = await open(() => new Response('yes'));
    const strangers = Array.from({ length: 2_100 }, () => connect(Number(new URL(server.url).port), '127.0.0.1'));
    const isGreeted = (socket: Socket) =>
      new Promise((resolve) => {
        socket.on('error', () => {}).once('close', resolve);
        if (bytes.endsWith('\n')) socket.once('data', resolve);
        else socket.once('connect', resolve);
        socket.resume().write(bytes);
      });
    await Promise.all(strangers.map(isGreeted));
    await expect.poll(() => strangers.filter(({ closed }) => closed).length).toBeGreaterThan(0);
    for (let nth = 0; nth < 20; nth++) expect((await ask(server.url, '/')).body).toBe('yes');
    for (const socket of strangers) socket.destroy();
  });

  test.for([
    ['for a page', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['for no host', 'GET / HTTP/1.1\r\n\r\n'],
    ['with an expectation', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: all\r\n\r\n'],
  ] as const)('and send requests %s without waiting for an answer has two of them read', async ([, asked]) => {
    await using server = await open(() => new Response('yes'));
    const ports = new Set<number | undefined>();
    let read = 0;
    const note = (message: unknown) => {
      read++;
      ports.add((message as { socket: Socket }).socket.localPort);
    };
    diagnostics.subscribe('http.server.request.start', note);
    await send(server.url, asked.repeat(10_000)).catch(() => {});
    diagnostics.unsubscribe('http.server.request.start', note);
    expect([read, [...ports]]).toEqual([2, [Number(new URL(server.url).port)]]);
  });

  test.for([
    ['a short body after the answer to a GET keeps them', 'GET', 1_000, true],
    ['a short body after the answer to a POST keeps them', 'POST', 1_000, true],
    ['a long body after the answer to a GET closes them', 'GET', 200_000, false],
    ['a long body after the answer to a POST closes them', 'POST', 200_000, false],
  ] as const)('and send %s', async ([, method, chunks, isKept]) => {
    await using server = await open(() => new Response('yes'));
    const taken: IncomingMessage[] = [];
    const note = (message: unknown) => void taken.push((message as { request: IncomingMessage }).request);
    diagnostics.subscribe('http.server.request.start', note);
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => {});
    socket.write(`${method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`);
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /);
    diagnostics.unsubscribe('http.server.request.start', note);
    socket.write(`${'1\r\na\r\n'.repeat(chunks)}0\r\n\r\n`);
    if (isKept) {
      await expect.poll(() => taken[0]?.complete).toBe(true);
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /);
    } else {
      await expect.poll(() => socket.closed).toBe(true);
      expect(taken[0]?.complete).toBe(false);
    }
    socket.destroy();
  });

  test('and whose answer they do not read closes them after a time', async () => {
    await using server = await open(() => new Response(new Uint8Array(50_000_000)), 1_000);
    const served: Socket[] = [];
    const note = (message: unknown) => void served.push((message as { socket: Socket }).socket);
    diagnostics.subscribe('http.server.request.start', note);
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(socket, 'readable');
    diagnostics.unsubscribe('http.server.request.start', note);
    await expect.poll(() => served.map(({ closed }) => closed)).toEqual([true]);
    socket.destroy();
  });
});

describe('a request to either port', () => {
  test('with a head that is too long is refused', async ({ database }) => {
    await using ports = await openPorts(database);
    for (const url of [ports.open, ports.public]) {
      expect((await ask(url, '/', { headers: { long: 'x'.repeat(20_000) } })).status).toBe(431);
      expect((await ask(url, `/${'x'.repeat(20_000)}`)).status).toBe(431);
    }
  });

  test('with a body of any size is answered without reading it, or as soon as it is too much', async ({ database }) => {
    await using ports = await openPorts(database);
    const huge = 'Host: localhost\r\nContent-Length: 10000000000\r\nConnection: close\r\n\r\nx';
    const endless = `Host: localhost\r\nAuthorization: Bearer ${prefillKey}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`;
    expect(await send(ports.open, `POST /api/status HTTP/1.1\r\n${huge}`)).toMatch(/^HTTP\/1\.1 404 /);
    expect(await send(ports.public, `POST /prefill/redeem HTTP/1.1\r\n${huge}`)).toMatch(/^HTTP\/1\.1 401 /);
    expect(await send(ports.public, `POST /prefill/start HTTP/1.1\r\n${huge}`)).toMatch(/^HTTP\/1\.1 404 /);
    const chunk = `1000\r\n${'x'.repeat(4_096)}\r\n`;
    expect(await send(ports.public, `POST /prefill/redeem HTTP/1.1\r\n${endless}${chunk}${chunk}`)).toMatch(
      /^HTTP\/1\.1 413 /,
    );
  });

  test('with a head that never comes to its end has ten seconds, and a whole one thirty', async ({ database }) => {
    await using ports = await openPorts(database);
    const servers: Server[] = [];
    const note = (message: unknown) => void servers.push((message as { server: Server }).server);
    diagnostics.subscribe('http.server.request.start', note);
    for (const url of [ports.open, ports.public]) await ask(url, '/');
    diagnostics.unsubscribe('http.server.request.start', note);
    expect(servers.map(({ headersTimeout, requestTimeout }) => [headersTimeout, requestTimeout])).toEqual([
      [10_000, 30_000],
      [10_000, 30_000],
    ]);
  });

  test('that is no HTTP, or names no usable host, is refused without a word', async ({ database }) => {
    await using ports = await openPorts(database);
    for (const url of [ports.open, ports.public]) {
      for (const head of [
        `GET / HTTP/1.0\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: ${marker} b\r\nConnection: close\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: ${'a'.repeat(256)}\r\n\r\n`,
        `GET /prefill/callback HTTP/1.1\r\nHost: 999.999.999.999\r\n\r\n`,
        `GET http://${marker}/ HTTP/1.1\r\nHost: localhost\r\n\r\n`,
        `OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      ]) {
        expect(await send(url, head)).toMatch(/^HTTP\/1\.1 400 /);
      }
      expect(await send(url, `${marker}\r\n\r\n`)).toBe('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    }
  });
});

test('a host that takes long to read costs a port no time: it is never read', async () => {
  const fetch = () => new Response('yes');
  await using server = await openServer({ host: '127.0.0.1', port: 0, fetch, setting: 'PORT', closingMs: 0 });
  // An `a` with 7,000 accents above and 7,000 below, which a reader has to sort.
  const host = `xn--a-xbb${'a'.repeat(6_999)}6518l${'a'.repeat(6_999)}.%C3%A9`;
  const { URL } = globalThis;
  const read: string[] = [];
  globalThis.URL = class extends URL {
    constructor(text: string | URL, base?: string | URL) {
      read.push(String(text));
      super(text, base);
    }
  } as typeof URL;
  using _restored = { [Symbol.dispose]: () => Object.assign(globalThis, { URL }) };
  const before = process.cpuUsage();
  for (const [target, named] of [
    ['/', host],
    [`http://${host}/`, 'a'],
  ])
    for (let nth = 0; nth < 5; nth++)
      expect(await send(server.url, `GET ${target} HTTP/1.1\r\nHost: ${named}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
  const { user } = process.cpuUsage(before);
  // Only the address that the test itself asks.
  expect(new Set(read)).toEqual(new Set([server.url]));
  expect(user).toBeLessThan(400_000);
});

interface Asking {
  readonly headers?: Record<string, string>;
  readonly method?: string;
}

function ask(url: string, path: string, { headers = {}, method = 'GET' }: Asking = {}) {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
    const { hostname, port } = new URL(url);
    request({ hostname, port, path, method, headers, agent: false }, async (answer) => {
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer) });
    })
      .once('error', reject)
      .end();
  });
}

/** Sends bytes as they are and reads until the other side has closed. */
async function send(url: string, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
  socket.write(bytes);
  return await text(socket);
}

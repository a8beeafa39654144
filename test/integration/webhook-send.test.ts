import { createServer, type Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { toPing } from '../../src/domain/webhook.ts';
import { openWebhookClient, type WebhookClientOptions } from '../../src/webhooks/send.ts';
import { listenLocally } from '../support/servers/local-server.ts';
import { openReceiver, webhookSecret } from '../support/servers/receiver.ts';

const open = (url: string, options: Partial<WebhookClientOptions> = {}) =>
  openWebhookClient({
    ...{ url, secrets: () => [webhookSecret], allowPrivate: true, timeoutMs: 60_000 },
    ...options,
  });
const ping = toPing('ats', new Date());

/** A server that answers with these bytes, or by a function. */
async function openRaw(answer: (socket: Socket) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    socket.once('data', () => answer(socket));
  });
  return { ...(await listenLocally(server)), sockets };
}

const untilClosed = (socket: Socket | undefined) =>
  new Promise<void>((resolve) => (socket?.destroyed === false ? socket.once('close', () => resolve()) : resolve()));

describe('a message', () => {
  test('arrives signed, and the next one over the same connection', async () => {
    await using receiver = await openReceiver();
    await using client = open(`${receiver.url}?token=1`);
    for (let n = 0; n < 3; n++) expect(await client.send(ping)).toEqual({ status: 204, retryAfterMs: undefined });
    expect(receiver.connections()).toBe(1);
    expect(receiver.received[0]).toMatchObject({
      id: ping.id,
      message: { type: 'intake.ping', data: { webhook: 'ats' } },
    });
    expect(receiver.received[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^intake\/\d/),
    });
  });

  test('is not sent to a private address, however it is written', async () => {
    await using receiver = await openReceiver();
    const { port } = new URL(receiver.url);
    const hosts = ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '0', '[::1]', '[::ffff:127.0.0.1]', '[::]'];
    for (const host of hosts) {
      await using client = open(`http://${host}:${port}/`, { allowPrivate: false });
      expect(await client.send(ping), host).toMatchObject({
        status: null,
        reason: expect.stringContaining('WEBHOOK_ALLOW_PRIVATE'),
      });
    }
    expect(receiver.connections()).toBe(0);
  });

  test('is sent to a private address of either family where that is allowed, and past a proxy', async () => {
    await using proxy = await openRaw((socket) => socket.end());
    const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NODE_USE_ENV_PROXY'];
    for (const name of names) vi.stubEnv(name, name.startsWith('NODE') ? '1' : proxy.url);
    try {
      for (const host of ['127.0.0.1', '::1']) {
        await using receiver = await openReceiver(undefined, host);
        await using client = open(receiver.url);
        expect(await client.send(ping), host).toMatchObject({ status: 204 });
      }
    } finally {
      vi.unstubAllEnvs();
    }
    // The address that was checked would not be the one that a proxy connects to.
    expect(proxy.sockets).toEqual([]);
  });

  test('waits for the name servers, and holds no thread that files need', async () => {
    await using client = open('http://hook.invalid/', { allowPrivate: false });
    // What they answer, and when, is not this test's concern.
    void client.send(ping);
    expect(process.getActiveResourcesInfo()).not.toContain('GetAddrInfoReqWrap');
  });

  test('has no answer from a name that does not resolve', async () => {
    const resolve = () => Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' }));
    await using client = open('http://gone.example.com/token', { allowPrivate: false, resolve });
    expect(await client.send(ping)).toMatchObject({
      status: null,
      reason: expect.stringContaining('the name does not resolve'),
    });
  });
});

describe('an endpoint that', () => {
  test('redirects to the metadata address is not followed', async () => {
    const headers = { location: 'http://169.254.169.254/latest/meta-data/' };
    await using receiver = await openReceiver(() => ({ status: 307, headers }));
    await using client = open(receiver.url);
    expect(await client.send(ping)).toMatchObject({ status: 307 });
    expect(receiver.received).toHaveLength(1);
  });

  test('answers with an endless body is taken at its status, and its connection closed', async () => {
    await using raw = await openRaw((socket) => {
      const pump = () => {
        while (!socket.destroyed && socket.write('1000\r\n'.concat('x'.repeat(4_096), '\r\n')));
        socket.once('drain', pump);
      };
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      pump();
    });
    await using client = open(raw.url);
    expect(await client.send(ping)).toMatchObject({ status: 200 });
    await untilClosed(raw.sockets[0]);
    expect(raw.sockets[0]?.bytesWritten).toBeLessThan(50_000_000);
  });

  test('never ends its body is taken at its status when the time is over', async () => {
    await using raw = await openRaw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n');
      const drip = setInterval(() => (socket.destroyed ? clearInterval(drip) : socket.write('x')), 10);
      socket.once('close', () => clearInterval(drip));
    });
    await using client = open(raw.url, { timeoutMs: 300 });
    expect(await client.send(ping)).toMatchObject({ status: 200 });
    await untilClosed(raw.sockets[0]);
  });

  test('sends its headers byte by byte, interim answers without end, or nothing, has not answered', async () => {
    for (const answer of [
      (socket: Socket) => {
        socket.write('HTTP/1.1 200 OK\r\nX-Slow: ');
        const drip = setInterval(() => (socket.destroyed ? clearInterval(drip) : socket.write('x')), 10);
        socket.once('close', () => clearInterval(drip));
      },
      (socket: Socket) => {
        const pump = () => {
          while (!socket.destroyed && socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)));
          socket.once('drain', pump);
        };
        pump();
      },
      () => {},
    ]) {
      await using raw = await openRaw(answer);
      await using client = open(raw.url, { timeoutMs: 300 });
      expect(await client.send(ping)).toEqual({ status: null, reason: `127.0.0.1:${raw.port} did not answer in time` });
      await untilClosed(raw.sockets[0]);
    }
  });

  test.each([
    ['resets', (socket: Socket) => socket.resetAndDestroy()],
    ['hangs up', (socket: Socket) => socket.end()],
    ['sends a megabyte of headers', (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(1_000_000)}`)],
    ['does not speak HTTP', (socket: Socket) => socket.write('SSH-2.0-OpenSSH_9.6\r\n\r\n')],
    ['lies about its length', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n')],
    [
      'upgrades',
      (socket: Socket) => socket.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    ],
  ])('%s has not answered, and the reason quotes nothing of it', async (_what, answer) => {
    await using raw = await openRaw(answer);
    await using client = open(`${raw.url}/token-in-the-path`);
    const answered = await client.send(ping);
    expect(answered).toMatchObject({ status: null, reason: expect.stringContaining('127.0.0.1') });
    expect(JSON.stringify(answered)).not.toMatch(/xxx|SSH|token/);
  });

  test('asks for a wait of years is waited for a day', async () => {
    await using receiver = await openReceiver(() => ({ status: 429, headers: { 'retry-after': '999999999999' } }));
    await using client = open(receiver.url);
    expect(await client.send(ping)).toEqual({ status: 429, retryAfterMs: 86_400_000 });
  });
});

// Transport: the client against small servers that each misbehave in one way.

import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { version } from '../../../src/domain/schema.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import { createCacheTest, type ListAnswer, type Source } from '../../../src/source/client.ts';
import { listenLocally } from '../../support/servers/local-server.ts';
import { type OwnSourceOptions, openOwnSource } from '../../support/servers/own-source.ts';

const page = '{"JobApplications":{"AdvertiserID":7,"AfterID":"0","JobApplicationsList":[{"ID":1},{"ID":2}]}}';
const never = new AbortController().signal;
const secret = 'top-secret-credential';

interface World {
  readonly source: Source;
  readonly url: string;
  readonly requests: IncomingMessage[];
}

/** A server that answers its nth request by the nth listener, the last one from then on. */
async function open(
  listeners: RequestListener | readonly RequestListener[],
  options: Partial<OwnSourceOptions> = {},
): Promise<World> {
  const requests: IncomingMessage[] = [];
  const row = [listeners].flat();
  const server = createServer((request, response) => {
    requests.push(request);
    (row[requests.length - 1] ?? row.at(-1))?.(request, response);
  });
  const { url, ...local } = await listenLocally(server);
  const source = openOwnSource({
    url: `${url}/api`,
    credential: secret,
    listMaxBytes: 1_000_000,
    applicationMaxBytes: 4_000_000,
    retryDelayMs: 10,
    ...options,
  });
  onTestFinished(async () => {
    await source[Symbol.asyncDispose]();
    await local[Symbol.asyncDispose]();
  });
  return { source, url, requests };
}

function send(status: number, body: string | Buffer = '', headers: Record<string, string> = {}): RequestListener {
  return (_request, response) => response.writeHead(status, headers).end(body);
}

const ok = send(200, page, { 'content-type': 'application/json; charset=utf-8' });

function ids(answer: ListAnswer): readonly bigint[] {
  return answer.kind === 'page' ? answer.page.ids : answer.ids;
}

async function troubleOf(promise: Promise<unknown>): Promise<Trouble> {
  const error = await promise.then(
    () => new Error('it went well'),
    (reason: unknown) => reason,
  );
  if (error instanceof Trouble) return error;
  throw error;
}

describe('a question', () => {
  test('carries filters, include, credential, form and agent, and asks for plain bytes', async () => {
    const { source, requests } = await open(ok);
    await source.list({ afterId: 9007199254740993n, beforeDate: Date.parse('2024-01-15T12:00:00Z') }, never);
    const [request] = requests;
    const asked = new URL(request?.url ?? '', 'http://x');
    expect(request?.method).toBe('GET');
    expect(asked.pathname).toBe('/api/v1/advertiser/applications');
    expect(Object.fromEntries(asked.searchParams)).toEqual({
      afterid: '9007199254740993',
      beforedate: '2024-01-15T22:00:00',
      include: 'primaryjobseekinginfo',
    });
    expect(request?.headers).toMatchObject({
      authorization: `SWS ${secret}`,
      accept: 'application/json',
      'user-agent': `intake/${version}`,
    });
    expect(request?.headers['accept-encoding']).toBeUndefined();
  });

  test('reads the credential anew each time and waits for its slot each time, retries included', async () => {
    let slots = 0;
    const { source, requests } = await open([ok, send(500), ok], {
      credential: () => `key-${slots}`,
      takeSlot: async () => {
        slots++;
      },
    });
    await source.list({}, never);
    await source.list({}, never);
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(['SWS key-1', 'SWS key-2', 'SWS key-3']);
  });

  test('JSON asked, XML sent: read all the same', async () => {
    const xml =
      '<JobApplications><JobApplicationsList><JobApplication><ID>4</ID></JobApplication></JobApplicationsList></JobApplications>';
    const { source } = await open(send(200, xml, { 'content-type': 'application/xml' }));
    expect(await source.list({}, never)).toMatchObject({ page: { ids: [4n] } });
  });

  test('one after another, with a refusal between, share a connection', async () => {
    const refusal: RequestListener = (_request, response) => {
      response.writeHead(401).flushHeaders();
      setTimeout(() => response.end('go away'), 20);
    };
    const { source, requests } = await open([ok, refusal, ok], { connections: 1 });
    await source.list({}, never);
    await troubleOf(source.list({}, never));
    await source.list({}, never);
    expect(new Set(requests.map(({ socket }) => socket)).size).toBe(1);
  });

  test('a Sunset header is told', async () => {
    const { source } = await open(send(200, page, { sunset: 'Fri, 01 Jan 2027 00:00:00 GMT' }));
    expect(await source.list({}, never)).toMatchObject({ page: { sunsetAt: Date.UTC(2027, 0, 1) } });
  });

  test('comes from a cache by its Age, or by a Date that lies a minute behind an earlier one', async () => {
    const dated = (date: string, age = '0') => send(200, page, { date: `Fri, 01 Jan 2027 ${date} GMT`, age });
    const { source } = await open([dated('12:00:00'), dated('12:00:00', '1'), dated('11:59:40'), dated('11:58:00')]);
    const answers = [];
    for (let nth = 0; nth < 4; nth++) answers.push(await source.list({}, never));
    expect(answers).toMatchObject([false, true, false, true].map((cached) => ({ page: { cached } })));
  });
});

describe('the clock of the source', () => {
  const start = Date.UTC(2027, 0, 1, 12);
  const minute = 60_000;
  /** Whether an answer counts as cached, by the minute in which it comes and the minute that its Date names. */
  const createAsk = () => {
    let nowMs = 0;
    const isCached = createCacheTest(() => nowMs);
    return (at: number, date: number) => {
      nowMs = at * minute;
      return isCached({ date: new Date(start + date * minute).toUTCString() });
    };
  };

  test('one Date that is five minutes ahead makes no later answer one from a cache', () => {
    const ask = createAsk();
    expect([ask(0, 0), ask(1, 6), ask(2, 2), ask(60, 60), ask(1_440, 1_440)]).not.toContain(true);
  });

  test('that was ahead at first, or was set back, is forgotten after answers that agree', () => {
    const ask = createAsk();
    const cached = [ask(0, 5), ask(1, 1), ask(6, 6), ask(11, 11), ask(12, 12), ask(13, 8)];
    expect(cached).toEqual([false, true, true, false, false, true]);
  });

  test('is not changed by a cache: its Dates do not move on', () => {
    const ask = createAsk();
    ask(0, 0);
    expect([ask(5, 0), ask(10, 0), ask(15, 0), ask(20, 20), ask(25, 20)]).toEqual([true, true, true, false, true]);
  });
});

describe('L8: an empty answer without an envelope is weak', () => {
  test.for([
    ['204', send(204)],
    ['an empty body', send(200)],
    ['404 after an answer', send(404, 'nothing matches')],
  ] as const)('%s', async ([, empty]) => {
    const { source } = await open([ok, empty]);
    expect(await source.list({}, never)).toMatchObject({ page: { weakEmpty: false } });
    expect(await source.list({}, never)).toMatchObject({
      kind: 'page',
      page: { weakEmpty: true, ids: [], applications: [] },
    });
  });

  test('404 on the very first call is a wrong base URL, and says so', async () => {
    const { source, requests } = await open([send(404), ok, send(404)]);
    const trouble = await troubleOf(source.list({}, never));
    expect(trouble).toMatchObject({ kind: 'missing', status: 404 });
    expect(trouble.message).toContain('base URL');
    expect(requests).toHaveLength(1);
  });
});

describe('a failure that seconds may mend', () => {
  const cutAmid: RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(page.slice(0, 40), () => response.socket?.destroy());
  };
  // A clean end for the HTTP client: only the JSON shows that something is missing.
  const cutCleanly: RequestListener = (_request, response) => {
    response.socket?.end(`HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${page.slice(0, 60)}`);
  };

  test.for([
    ['a 5xx burst', [send(500), send(502)]],
    ['a reset before the headers', [(request: IncomingMessage) => request.socket.resetAndDestroy()]],
    ['a reset amid the body', [cutAmid]],
    [
      'a body shorter than its Content-Length',
      [send(200, page.slice(0, 50), { 'content-length': '500', connection: 'close' })],
    ],
    ['a close-delimited body cut off', [cutCleanly]],
    ['a gzip body cut off', [send(200, gzipSync(page).subarray(0, 30), { 'content-encoding': 'gzip' })]],
    ['429 without a time', [send(429)]],
    ['429 for a second', [send(429, '', { 'retry-after': '1' })]],
  ] as const)('%s is asked again', async ([, failures]) => {
    const { source, requests } = await open([...failures, ok]);
    expect(ids(await source.list({}, never))).toEqual([1n, 2n]);
    expect(requests).toHaveLength(failures.length + 1);
  });

  test('that does not mend is told after four tries', async () => {
    const { source, requests } = await open(send(503));
    expect(await troubleOf(source.list({}, never))).toMatchObject({ kind: 'unreachable', status: 503 });
    expect(requests).toHaveLength(4);
  });

  test('a keep-alive connection that the server has just closed costs nothing', async () => {
    const { source } = await open((_request, response) => {
      response.writeHead(200, { 'keep-alive': 'timeout=60' }).end(page);
      response.on('close', () => setTimeout(() => response.socket?.destroy(), 5));
    });
    for (let nth = 0; nth < 5; nth++) {
      expect(ids(await source.list({}, never))).toEqual([1n, 2n]);
      await new Promise((resolve) => setTimeout(resolve, 4 + nth));
    }
  });

  test('429 for a second waits at least that second', async () => {
    const { source } = await open([send(429, '', { 'retry-after': '1' }), ok]);
    const startedAt = performance.now();
    await source.list({}, never);
    expect(performance.now() - startedAt).toBeGreaterThan(1000);
  });
});

describe('time', () => {
  const silent: RequestListener = () => undefined;
  const drip = (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(' '), 30);
    response.on('close', () => clearInterval(timer));
  };

  test('slow headers end after the idle time, and are asked again', async () => {
    const { source } = await open([silent, ok], { idleTimeoutMs: 1_000 });
    expect(ids(await source.list({}, never))).toEqual([1n, 2n]);
  });

  test('a body that falls silent ends after the idle time, and is asked for again', async () => {
    const half: RequestListener = (_request, response) => void response.writeHead(200).write(page.slice(0, 40));
    const { source, requests } = await open([half, ok], { idleTimeoutMs: 1_000 });
    expect(ids(await source.list({}, never))).toEqual([1n, 2n]);
    expect(requests.length).toBeGreaterThan(1);
  });

  test('A12: a byte now and then for ever ends after the total time, and only once', async () => {
    const { source, requests } = await open(drip, { totalTimeoutMs: 300 });
    const trouble = await troubleOf(source.list({}, never));
    expect(trouble.kind).toBe('unreachable');
    expect(trouble.message).toContain('total timeout');
    // No request, if the timeout passes before it is sent.
    expect(requests.length).toBeLessThan(2);
  });

  test.for([
    ['before headers', silent],
    ['amid the body', drip],
    ['between tries', send(500)],
    ['while waiting for a Retry-After', send(429, '', { 'retry-after': '9' })],
  ] as const)('an abort %s ends at once with its own reason', async ([, listener]) => {
    // An hour between two tries: one that waits for it does not end within the limit of a test.
    const { source, requests } = await open(listener, { retryDelayMs: 3_600_000, totalTimeoutMs: 7_200_000 });
    const controller = new AbortController();
    const reason = new Error('shutting down');
    const asked = source.list({}, controller.signal);
    await expect.poll(() => requests).toHaveLength(1);
    controller.abort(reason);
    await expect(asked).rejects.toBe(reason);
    expect(requests).toHaveLength(1);
  });
});

describe('size', () => {
  function endless(head: string, unit: (index: number) => string): RequestListener {
    return (_request, response) => {
      let index = 0;
      response.writeHead(200).write(head);
      const more = () => {
        while (!response.destroyed && response.write(unit(index++).repeat(1)));
      };
      response.on('drain', more);
      more();
    };
  }

  test('L14: a list beyond the limit is abandoned, its first ids told', async () => {
    const { source } = await open(
      endless('{"JobApplications":{"AdvertiserID":7,"JobApplicationsList":[', (index) => `{"ID":${index}},`),
      { listMaxBytes: 100_000 },
    );
    const answer = await source.list({}, never);
    expect(answer).toMatchObject({ kind: 'overflow', bytes: 100_000 });
    // An id of 0 is no id.
    expect(ids(answer).slice(0, 3)).toEqual([1n, 2n, 3n]);
    expect(ids(answer).length).toBeGreaterThan(5000);
  });

  test('L14: a list of UTF-16 beyond the limit shows its ids too', async () => {
    const body = Buffer.from(`[${Array.from({ length: 100 }, (_, id) => `{"ID":${id}}`).join()}]`, 'utf16le');
    const { source } = await open(send(200, body), { listMaxBytes: 500 });
    expect(ids(await source.list({}, never)).slice(0, 3)).toEqual([1n, 2n, 3n]);
  });

  test('A13: gzip that was not asked for is inflated', async () => {
    const { source } = await open(send(200, gzipSync(page), { 'content-encoding': 'gzip' }));
    expect(await source.list({}, never)).toMatchObject({ page: { ids: [1n, 2n], bytes: page.length } });
  });

  test('A13: a gzip bomb is worth no more than the limit', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, ' '), { level: 1 });
    const { source } = await open(send(200, bomb, { 'content-encoding': 'gzip' }));
    expect(await source.list({}, never)).toMatchObject({ kind: 'overflow', ids: [], bytes: 1_000_000 });
  });

  test('an encoding we do not read is trouble, and holds no connection', async () => {
    const { source, requests } = await open((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'zebra' }).write(page);
    });
    expect(await troubleOf(source.list({}, never))).toMatchObject({ kind: 'malformed' });
    await expect.poll(() => requests.every(({ socket }) => socket.destroyed)).toBe(true);
  });
});

describe('the credential', () => {
  test('A10: follows a redirect within its origin, once', async () => {
    const { source, requests } = await open([send(302, '', { location: '/elsewhere' }), ok]);
    expect(ids(await source.list({}, never))).toEqual([1n, 2n]);
    expect(requests.map(({ url }) => url?.split('?')[0])).toEqual(['/api/v1/advertiser/applications', '/elsewhere']);
  });

  test('A10: follows no redirect loop', async () => {
    const { source, requests } = await open(send(302, '', { location: '/elsewhere' }));
    expect(await troubleOf(source.list({}, never))).toMatchObject({ kind: 'unreachable', status: 302 });
    expect(requests).toHaveLength(2);
  });

  test.for(['http://ORIGIN/x', '//ORIGIN/x', '\\\\ORIGIN\\x', '/\t/ORIGIN/x'])(
    'A10: never goes to another origin (%j)',
    async (location) => {
      const other = await open(ok);
      const target = location.replace('ORIGIN', new URL(other.url).host);
      const { source, requests } = await open((_request, response) => {
        response.socket?.end(`HTTP/1.1 307 Go\r\nlocation: ${target}\r\ncontent-length: 0\r\n\r\n`);
      });
      const trouble = await troubleOf(source.list({}, never));
      expect(trouble).toMatchObject({ kind: 'unreachable', status: 307 });
      expect(trouble.message).toContain('another origin');
      expect(requests).toHaveLength(1);
      expect(other.requests).toHaveLength(0);
    },
  );

  test('is in no error, whatever fails', async () => {
    const failures: RequestListener[] = [
      send(401, secret),
      send(404, secret),
      send(302, '', { location: `http://127.0.0.2/${secret}` }),
      send(200, `<html>${secret}</html>`),
      send(200, `{"a":"${secret}`),
      (request) => request.socket.resetAndDestroy(),
      (_request, response) => (response.socket as Socket).end(`HTTP/1.1 BROKEN ${secret}\r\n\r\n${secret}`),
    ];
    for (const failure of failures) {
      const { source } = await open(failure);
      const trouble = await troubleOf(source.list({}, never));
      expect(inspect(trouble, { depth: 10, showHidden: true })).not.toContain(secret);
    }
  });

  test.for(['', ' \n', 'a\nb', 'naïve'])(
    '%j is refused before anything is sent, and not quoted',
    async (credential) => {
      const { source, requests } = await open(ok, { credential });
      const trouble = await troubleOf(source.list({}, never));
      expect(trouble.kind).toBe('refused');
      expect(requests).toHaveLength(0);
    },
  );

  test('with a trailing newline, as files have, is sent without it', async () => {
    const { source, requests } = await open(ok, { credential: `${secret}\n` });
    await source.list({}, never);
    expect(requests[0]?.headers.authorization).toBe(`SWS ${secret}`);
  });
});

describe('a source that is not there', () => {
  test.for([
    ['a name that does not resolve', 'http://no-such-host.invalid'],
    ['a port where no one listens', 'http://127.0.0.1:1'],
  ])('%s is unreachable', async ([, url]) => {
    const { source } = await open(ok, { url: url as string });
    expect(await troubleOf(source.list({}, never))).toMatchObject({ kind: 'unreachable', status: undefined });
  });

  test('TLS that fails is unreachable, with no downgrade', async () => {
    const { source, url, requests } = await open(ok);
    await using secure = openOwnSource({ url: url.replace('http:', 'https:'), credential: secret, retryDelayMs: 10 });
    expect(await troubleOf(secure.list({}, never))).toMatchObject({ kind: 'unreachable' });
    expect(requests).toHaveLength(0);
    expect(ids(await source.list({}, never))).toEqual([1n, 2n]);
  });
});

describe('an attachment', () => {
  async function read(body: AsyncIterable<Uint8Array>): Promise<string> {
    return Buffer.concat(await Array.fromAsync(body)).toString();
  }

  test('is opened by kind and id, its bytes as they come', async () => {
    const { source, requests } = await open(
      send(200, gzipSync('bytes'), { 'content-encoding': 'gzip', 'content-type': 'application/pdf' }),
    );
    const answer = await source.openAttachment('coverLetter', 5n, never);
    expect(requests[0]?.url).toBe('/api/v1/advertiser/applications/coverletter/5');
    expect(requests[0]?.headers.accept).toBe('*/*');
    expect(answer.headers['content-type']).toBe('application/pdf');
    expect(Buffer.concat(await Array.fromAsync(answer.body))).toEqual(gzipSync('bytes'));
  });

  test.for([
    ['a length', { 'content-length': '4' }, true],
    ['a last chunk', {}, true],
    ['the end of its connection', { 'transfer-encoding': 'identity' }, false],
    ['the end of its connection, in a coding of its own', { 'transfer-encoding': 'x-chunked' }, false],
  ] as const)('that ends with %s: its end is known: %s', async ([, headers, isFramed]) => {
    const { source } = await open((_request, response) => {
      response.writeHead(200, headers);
      response.write('half');
      response.end(() => response.socket?.end());
    });
    const answer = await source.openAttachment('resume', 5n, never);
    expect(answer.isFramed).toBe(isFramed);
    expect(await read(answer.body)).toContain('half');
  });

  test('that is a screen is asked for in the form of the list', async () => {
    const { source, requests } = await open(send(200, '{}'), { format: 'xml' });
    await read((await source.openAttachment('screen', 5n, never)).body);
    expect(requests[0]?.headers.accept).toBe('application/xml');
  });

  test('that is not wanted after all is dropped with its connection', async () => {
    const closed = Promise.withResolvers<void>();
    const { source } = await open((_request, response) => {
      response.on('close', closed.resolve);
      response.writeHead(200).write('the first of many bytes');
    });
    {
      await using answer = await source.openAttachment('resume', 5n, never);
      expect(answer.status).toBe(200);
    }
    await closed.promise;
  });

  test('whose reader is aborted ends with the reason of the abort', async () => {
    const { source } = await open((_request, response) => {
      response.writeHead(200).write('the first of many bytes');
    });
    const controller = new AbortController();
    const reason = new Error('shutting down');
    const answer = await source.openAttachment('resume', 5n, controller.signal);
    const bytes = read(answer.body);
    controller.abort(reason);
    await expect(bytes).rejects.toBe(reason);
  });

  test('that is not there is missing, and not asked for again', async () => {
    const { source, requests } = await open(send(404));
    expect(await troubleOf(source.openAttachment('resume', 5n, never))).toMatchObject({ kind: 'missing', status: 404 });
    expect(requests).toHaveLength(1);
  });

  test('A5: that breaks off amid its bytes throws where it is read, and is not asked for again', async () => {
    const { source, requests } = await open((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => response.socket?.destroy());
    });
    const answer = await source.openAttachment('resume', 5n, never);
    expect(await troubleOf(read(answer.body))).toMatchObject({ kind: 'unreachable' });
    expect(requests).toHaveLength(1);
  });
});

// The rules of the candidate side: addresses, tickets, links, names of files, tokens, profiles.

import { createServer } from 'node:http';
import { BlockList } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import { parseTicket, toAllowedUrl, toReturnUrl, toTicket } from '../../src/domain/prefill.ts';
import { parseFileName } from '../../src/source/parse/file-description.ts';
import { parseProfile } from '../../src/source/parse/profile.ts';
import { readResume } from '../../src/source/prefill.ts';
import { openSpool } from '../../src/sync/files/spool.ts';
import { createRateLimit, findClient } from '../../src/web/limits.ts';
import { parseCallback, parseResumeToken, toResumeToken } from '../../src/web/prefill/request.ts';
import { listenLocally } from '../support/servers/local-server.ts';
import { openOwnPrefillSource } from '../support/servers/own-source.ts';
import { openScratch } from '../support/stores/blob-stores.ts';

const key = { advertiserId: 7n, prefillId: '0b0e7a52-9a5d-4c3a-a4ad-2f3f1f6f7a11' };

test('whatever the text, an allowed address lies at an allowed host and below its path', () => {
  const parts = fc.constantFrom(
    'https://careers.example.com',
    '/apply',
    '@',
    '\\',
    '..',
    '/',
    '?',
    '#',
    '.evil.net',
    '%2e',
    'x',
  );
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 8 }), (pieces) => {
      const url = toAllowedUrl(pieces.join(''), ['https://careers.example.com/apply/']);
      if (url === null) return;
      expect(new URL(url).host).toBe('careers.example.com');
      expect(new URL(url).pathname.startsWith('/apply/')).toBe(true);
    }),
  );
});

test('the return address keeps what it has, and earlier answers go', () => {
  const url = 'https://careers.example.com/apply?job=7&prefill=old&prefill_error=denied#form';
  expect(toReturnUrl(url, { error: 'failed' })).toBe(
    'https://careers.example.com/apply?job=7&prefill_error=failed#form',
  );
  expect(toReturnUrl(url, { handle: '7.x' })).toBe('https://careers.example.com/apply?job=7&prefill=7.x#form');
});

test('a ticket names its advertiser; anything else is none', () => {
  const secret = 'a'.repeat(43);
  expect(parseTicket(toTicket(9_223_372_036_854_775_807n, secret))).toBe(9_223_372_036_854_775_807n);
  for (const text of [
    '',
    secret,
    `0.${secret}`,
    `-1.${secret}`,
    `9223372036854775808.${secret}`,
    `1.${secret}x`,
    `1.${secret}\n`,
  ]) {
    expect(parseTicket(text), text).toBeNull();
  }
});

test('a link that was signed for a year, with the right secret, opens nothing', () => {
  const yearMs = 365 * 86_400_000;
  expect(parseResumeToken(toResumeToken(key, 'secret', 1000 + yearMs), 'secret', 1000)).toBeNull();
});

test('a link opens its own resume until its end, and no alteration of it opens anything', () => {
  const token = toResumeToken(key, 'secret', 1000);
  expect(parseResumeToken(token, 'secret', 1000)).toEqual(key);
  expect(parseResumeToken(token, 'secret', 1000 + 600_000)).toBeNull();
  expect(parseResumeToken(token, 'other', 1000)).toBeNull();
  for (let at = 0; at < token.length; at += 1) {
    const altered = `${token.slice(0, at)}${token[at] === '1' ? '2' : '1'}${token.slice(at + 1)}`;
    expect(parseResumeToken(altered, 'secret', 1000)).toBeNull();
  }
});

test.each([
  ['?code=a%2Bb%2Fc%3D%25&state=s', 'a+b/c=%'],
  ['?code=a+b/c=&state=s', 'a+b/c='],
  ['?code=100%&state=s', '100%'],
])('a code is read as it was meant: %s', (search, code) => {
  expect(parseCallback(search)).toEqual({ state: 's', answer: { code } });
});

test.each([
  ['?state=s', 'denied'],
  ['?state=s&code=', 'denied'],
  ['?state=s&error=access_denied', 'denied'],
  ['?state=s&error=access_denied&code=a', 'denied'],
  ['?state=s&error=server_error', 'failed'],
  ['?state=s&code=a&code=b', 'failed'],
])('both code and error, neither, or doubled: %s is %s', (search, answer) => {
  expect(parseCallback(search)).toEqual({ state: 's', answer });
});

test.each([
  ['203.0.113.9', undefined, '203.0.113.9'],
  ['203.0.113.9', '198.51.100.1', '203.0.113.9'],
  ['10.0.0.2', '198.51.100.1, 203.0.113.9', '203.0.113.9'],
  ['::ffff:127.0.0.1', '203.0.113.9', '203.0.113.9'],
  ['2001:db8:1:2:3:4:5:6', undefined, '2001:db8:1:2'],
  ['10.0.0.2', '2001:db8:1:2:3::1', '2001:db8:1:2'],
  ['2001:db8::a:b:c:d', undefined, '2001:db8:0:0'],
  ['2001:db8::1', undefined, '2001:db8:0:0'],
  ['2001:db8:1::1:2:3', undefined, '2001:db8:1:0'],
  ['::1', undefined, '0:0:0:0'],
  ['10.0.0.2', '203.0.113.9:51234', '203.0.113.9'],
  ['10.0.0.2', '[2001:db8:1:2:3::1]:51234', '2001:db8:1:2'],
  ['10.0.0.2', '203.0.113.9, 10.0.0.3', '203.0.113.9'],
  ['10.0.0.2', '203.0.113.9, not an address', '10.0.0.2'],
  [undefined, undefined, ''],
])('a peer %s that was asked from %s counts as %s', (peer, forwardedFor, address) => {
  const proxies = new BlockList();
  proxies.addSubnet('10.0.0.0', 8);
  proxies.addAddress('127.0.0.1');
  expect(findClient(peer, forwardedFor, proxies)).toBe(address);
});

test.each(['10.0.0.2', '127.0.0.1', '192.168.1.1', '::1'])(
  'X-Forwarded-For of %s counts for nothing unless it is named',
  (peer) => {
    expect(findClient(peer, '203.0.113.9', new BlockList())).toBe(findClient(peer, undefined, new BlockList()));
  },
);

test('of a client with a long X-Forwarded-For only its address is remembered', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const trustedProxies = new BlockList();
  trustedProxies.addAddress('127.0.0.1');
  const clients = { trustedProxies, now: Date.now };
  const app = new Hono().use(createRateLimit(clients, 60, 2_000, (context) => context.body(null, 429)));
  const proxy = { incoming: { socket: { remoteAddress: '127.0.0.1' } } };
  const ask = (at: number) => {
    const address = `100.100.${100 + Math.floor(at / 100)}.${100 + (at % 100)}`;
    return app.request('/', { headers: { 'x-forwarded-for': `${'9'.repeat(15_000)}, ${address}` } }, proxy);
  };
  await ask(0);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let at = 1; at < 2_000; at++) await ask(at);
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
  expect((await ask(1)).status).toBe(404);
});

test.each([
  ['attachment; filename=Resume_Ann.pdf', 'Resume_Ann.pdf'],
  ['attachment; filename="My Resume.pdf"', 'My Resume.pdf'],
  ['attachment; filename=My Resume.pdf', 'My Resume.pdf'],
  ["attachment; filename*=UTF-8''Zo%C3%AB.pdf", 'Zoë.pdf'],
  [Buffer.from('attachment; filename="Zoë.pdf"').toString('latin1'), 'Zoë.pdf'],
  ['attachment; filename="../../etc/passwd"', 'passwd'],
  ['attachment; filename="C:\\\\temp\\\\cv.doc"', 'cv.doc'],
  ["attachment; filename*=UTF-8''resume%00.pdf", 'resume.pdf'],
  ["attachment; filename*=UTF-8''cv%E2%80%AEfdp.exe", 'cvfdp.exe'],
  ['attachment; filename=".."', null],
  ['attachment', null],
  [undefined, null],
])('the name in %s is %s', (header, name) => {
  expect(parseFileName(header)).toBe(name);
});

test('a long name keeps its extension', () => {
  const name = parseFileName(`attachment; filename="${'long '.repeat(100)}.pdf"`);
  expect([name?.length, name?.endsWith('.pdf')]).toEqual([255, true]);
});

test.each(['{"toString":1}', '["bearer"]', '1', '"mac"'])('a token of the type %s is none', async (type) => {
  const answer = `{"access_token":"secret","token_type":${type}}`;
  await using server = await listenLocally(createServer((_request, response) => response.end(answer)));
  const { url } = server;
  await using source = openOwnPrefillSource({
    ...{ url, authUrl: url, clientId: 'a', clientSecret: () => 'b', redirectUri: 'c', resumeMaxBytes: 1 },
    ...{ idleTimeoutMs: 60_000, totalTimeoutMs: 60_000, connections: 1 },
  });
  const session = source.openSession('code', new AbortController().signal);
  await expect(session).rejects.toMatchObject({ kind: 'malformed' });
});

describe('a resume', () => {
  const read = async (text: string, name: string, contentType = 'application/octet-stream') => {
    const headers = {
      ...{ 'content-length': String(text.length), 'content-type': contentType },
      'content-disposition': `attachment; filename="${name}"`,
    };
    const body = (async function* () {
      yield Buffer.from(text);
    })();
    await using scratch = await openScratch();
    const spool = openSpool(scratch.path);
    const answer = { status: 200, headers, isFramed: true, body, [Symbol.asyncDispose]: async () => {} };
    return await readResume(answer, spool, 1_000_000);
  };

  test.each([
    ['<!-- proxy --><html>Log in</html>', 'resume.pdf', undefined],
    ['{"error":"expired"}', 'resume.pdf', 'application/json'],
  ])('is not the page %s', async (text, name, contentType) => {
    await expect(read(text, name, contentType)).rejects.toMatchObject({ kind: 'malformed' });
  });

  test('without a usable name is called resume', async () => {
    expect(await read('text', '..')).toMatchObject({ fileName: 'resume', contentType: 'text/plain' });
  });

  test('may be a page by its own name', async () => {
    expect(await read('<html>My life</html>', 'resume.html')).toMatchObject({ fileName: 'resume.html', sizeBytes: 20 });
  });
});

describe('a profile', () => {
  const base = 'https://api.example.com/board';
  const id = '0b0e7a52-9a5d-4c3a-a4ad-2f3f1f6f7a11';

  test.each([
    [{ resume: { link: `https://api.example.com/v2/resumes/${id}` } }, id],
    [{ a: [{ b: `/board/v2/resumes/${id}` }] }, id],
    [{ file: `v2/resumes/${id}` }, id],
    [{ file: `https://api.example.com/v2/resumes/${id}?x=1` }, id],
    [{ file: `http://api.example.com/v2/resumes/${id}` }, null],
    [{ file: `https://api.example.com.evil.net/v2/resumes/${id}` }, null],
    [{ file: `//evil.net/v2/resumes/${id}` }, null],
    [{ file: `https://api.example.com@evil.net/v2/resumes/${id}` }, null],
    [{ resumeId: id }, id],
    [{ candidate: { ResumeID: id } }, id],
    [{ resume: { id, name: 'cv.pdf' } }, id],
    [{ resume: { id: 42 } }, '42'],
    [{ resumeId: 'other', file: `v2/resumes/${id}` }, id],
    [{ resumeId: '../../v1/advertiser/applications' }, null],
    [{ resume: '' }, null],
    [{ file: '/v2/resumes/../../v1/advertiser/applications' }, null],
    [{ file: '/v2/resumes/a%2F..%2Fb' }, null],
    [{ file: id }, null],
  ])('%j has the resume %s', (profile, found) => {
    expect(parseProfile(profile, base).resumeId).toBe(found);
  });

  test('is kept whole, with digits, and with a note of what jsonb cannot hold', () => {
    const profile = JSON.parse('{"applicantInfo":{"firstName":"A\\u0000nn","emailAddress":"ann@example.com"},"n":1}');
    const { raw, rawText, firstName, email, notes } = parseProfile(profile, base);
    expect([firstName, email]).toEqual(['A\ufffdnn', 'ann@example.com']);
    expect(raw).toContain('A\ufffdnn');
    expect(rawText).toContain('\\u0000');
    expect(notes.map(({ field }) => field)).toEqual(['profile', 'firstName']);
  });

  test('is searched for its resume, however long its lists', () => {
    const profile = { skills: new Array(999_000).fill(0), file: `/v2/resumes/${id}` };
    expect(parseProfile(profile, base).resumeId).toBe(id);
  });

  test("a referee's address is not the candidate's", () => {
    const profile = { candidate: { name: 'Ann' }, referees: [{ email: 'boss@example.com' }] };
    expect(parseProfile(profile, base).email).toBeNull();
  });
});

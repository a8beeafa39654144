// The admin port as browsers, probes and scrapers meet it: what it answers, to whom, and what it never says.
import { request } from 'node:http';
import { describe, expect } from 'vitest';
import { type Status, toStatus } from '../../src/domain/status/status.ts';
import { Trouble } from '../../src/domain/trouble.ts';
import { fillMonth, openTestAdmin } from '../support/admin.ts';
import { anAdvertiserStatus } from '../support/database/filled-metrics.ts';
import { test as base, openTestDatabase } from '../support/database/test-database.ts';

const test = base
  .extend('month', { scope: 'file' }, async ({ database }) => {
    await fillMonth(database);
    return database;
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads a fixture's dependencies from the pattern; this one has none.
  .extend('unread', { scope: 'file' }, async ({}, { onCleanup }) => {
    const database = await openTestDatabase();
    onCleanup(() => database[Symbol.asyncDispose]());
    await database.query(`INSERT INTO intake.advertisers (name) VALUES ('fern-and-finch')`);
    return database;
  });

const login = { user: 'operator', password: () => 'a good password' };
const authorization = `Basic ${btoa('operator:a good password')}`;
const emptyStatus: Status = {
  ...{ at: new Date(), headline: '', staleAfterMs: null, proofLimitMs: null, verifyWithinMs: null },
  ...{ problems: [], waits: [], webhooks: [], extract: null, advertisers: [] },
};
const everyPath = ['/', '/api/status', '/metrics', '/status.css', '/icon.svg', '/livez', '/readyz'];

describe('an operator with the password', () => {
  test('finds the page, the status, the metrics and both probes', async ({ month }) => {
    await using admin = await openTestAdmin(month);
    for (const path of everyPath) {
      const answer = await fetch(`${admin.url}${path}`);
      expect(answer.status, path).toBe(200);
      expect(Object.fromEntries(answer.headers), path).toMatchObject({
        'cache-control': 'no-store',
        'content-security-policy':
          "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      });
    }
    expect(await (await fetch(`${admin.url}/api/status`)).json()).toMatchObject({
      healthy: true,
      advertisers: [{ name: 'fern-and-finch', advertiserId: '20000003' }, {}, {}],
    });
    expect(await (await fetch(`${admin.url}/readyz`)).json()).toMatchObject({
      ok: true,
      checks: [
        { check: 'database', ok: true, detail: expect.stringContaining('Postgres') },
        { check: 'schema', ok: true, detail: 'current' },
        { check: 'clock', ok: true },
      ],
    });
    expect((await fetch(`${admin.url}/nothing-here`)).status).toBe(404);
  });

  test('finds no person: no name, address, file name or application id', async ({ month }) => {
    await using admin = await openTestAdmin(month);
    for (const path of everyPath) {
      const text = await (await fetch(`${admin.url}${path}`)).text();
      expect(text, path).not.toMatch(/Samantha|Secretname|@example|\.pdf|REF-/);
    }
  });

  test('finds a page without script, style attribute or address of elsewhere', async ({ month }) => {
    await using admin = await openTestAdmin(month);
    const page = await (await fetch(admin.url)).text();
    expect(page).not.toMatch(/<script|\son\w+=|\sstyle=|<style/i);
    expect([...page.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, to]) => to)).not.toContainEqual(
      expect.stringMatching(/^(?!\/(?!\/))/),
    );
  });

  test('finds the status for programs while an id cannot be read, with every digit of it', async ({ month }) => {
    const unreadable = [{ id: 9_007_199_254_740_993n, reason: 'the answer is cut off', since: new Date(), tries: 3 }];
    await using admin = await openTestAdmin(month, {
      loadStatus: async () => toStatus(new Date(), [anAdvertiserStatus(new Date(), { unreadable })]),
    });
    const answer = await fetch(`${admin.url}/api/status`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(await answer.json()).toMatchObject({ advertisers: [{ unreadable: [{ id: '9007199254740993' }] }] });
  });

  test('is shown names from outside as text', async ({ month }) => {
    await using admin = await openTestAdmin(month, {
      loadStatus: async () => ({
        ...emptyStatus,
        at: new Date(),
        headline: '<b>headline</b>',
        problems: [{ advertiser: '<i>', what: '<script>alert(1)</script>', command: '"><u>', urgent: true }],
        webhooks: [
          {
            ...{ advertiser: '<i>', name: '<u>', position: 4n, behind: 3, behindSince: new Date(Date.now() - 61_000) },
            ...{ failures: 2, failingSince: new Date(), nextAt: new Date(), stop: null },
            ...{ lastAnswer: 'it answered <b>500</b>', answeredAt: new Date() },
          },
        ],
      }),
    });
    const page = await (await fetch(admin.url)).text();
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(page).toMatch(/Webhooks[\s\S]*failing[\s\S]*1m 1s[\s\S]*it answered &lt;b&gt;500/);
    expect(page).not.toMatch(/<script>|<b>|<u>|<i>/);
  });
});

describe('where there is a login', () => {
  test('only probes answer without it, and keep their reasons to themselves', async ({ month }) => {
    await using admin = await openTestAdmin(month, { login });
    const answers = await Promise.all(everyPath.map(async (path) => (await fetch(`${admin.url}${path}`)).status));
    expect(Object.fromEntries(everyPath.map((path, index) => [path, answers[index]]))).toEqual({
      '/': 401,
      '/api/status': 401,
      '/metrics': 401,
      '/status.css': 401,
      '/icon.svg': 401,
      '/livez': 200,
      '/readyz': 200,
    });
    expect(await (await fetch(`${admin.url}/readyz`)).text()).not.toContain('detail');
    const known = await fetch(`${admin.url}/readyz`, { headers: { authorization } });
    expect(await known.text()).toContain('Postgres');
  });

  test('the right one opens, any other does not, and a rotated password holds at once', async ({ month }) => {
    let password = 'a good password';
    await using admin = await openTestAdmin(month, { login: { user: 'operator', password: () => password } });
    const statusWith = async (given: string) =>
      (await fetch(`${admin.url}/api/status`, { headers: { authorization: `Basic ${btoa(given)}` } })).status;
    expect(await statusWith('operator:a good password')).toBe(200);
    expect(await statusWith('operator:a good passwor')).toBe(401);
    expect(await statusWith('someone:a good password')).toBe(401);
    expect(await statusWith(':')).toBe(401);
    password = 'a new password';
    expect(await statusWith('operator:a good password')).toBe(401);
    expect(await statusWith('operator:a new password')).toBe(200);
  });

  test('wrong ones are counted, on the probes too: after ten not even the right one is heard', async ({ month }) => {
    let now = Date.now();
    await using admin = await openTestAdmin(month, { login, now: () => now });
    const statusWith = async (path: string, authorization: string) =>
      (await fetch(`${admin.url}${path}`, { headers: { authorization } })).status;
    const wrong = `Basic ${btoa('operator:wrong')}`;
    for (let count = 0; count < 20; count += 1) expect(await statusWith('/api/status', authorization)).toBe(200);
    for (let count = 0; count < 5; count += 1) {
      expect([await statusWith('/', wrong), await statusWith('/readyz', wrong)]).toEqual([401, 200]);
    }
    for (const path of ['/api/status', '/readyz']) expect(await statusWith(path, authorization)).toBe(429);
    expect((await fetch(`${admin.url}/livez`)).status).toBe(200);
    expect((await fetch(`${admin.url}/readyz`)).status).toBe(200);
    now += 6_000;
    expect(await statusWith('/api/status', authorization)).toBe(200);
  });

  test('it may listen beyond this machine', async ({ month }) => {
    await using admin = await openTestAdmin(month, { host: '0.0.0.0', login });
    expect((await fetch(`http://127.0.0.1:${new URL(admin.url).port}/livez`)).status).toBe(200);
  });
});

test('on this machine only, a name of elsewhere that points here is refused', async ({ month }) => {
  await using admin = await openTestAdmin(month);
  const statusFor = (host: string) =>
    new Promise((resolve, reject) => {
      request(`${admin.url}/api/status`, { headers: { host } }, (response) => {
        response.resume().once('close', () => resolve(response.statusCode));
      })
        .once('error', reject)
        .end();
    });
  expect(await statusFor('evil.example.com')).toBe(421);
  expect(await statusFor('evil.example.com:9090')).toBe(421);
  expect(await statusFor('127.0.0.1.evil.example.com')).toBe(421);
  expect(await statusFor('localhost:9999')).toBe(200);
  expect(await statusFor('[::1]:9090')).toBe(200);
});

describe('when the database does not answer', () => {
  const gone = async () => {
    throw new Trouble('unreachable', 'The database at db.internal cannot be reached.');
  };

  test('readiness is red, liveness is not, and the scrape fails', async ({ month }) => {
    const loadReadiness = async () => [{ check: 'database', ok: false, detail: 'cannot be reached' }];
    await using admin = await openTestAdmin(month, { loadStatus: gone, loadReadiness });
    expect((await fetch(`${admin.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${admin.url}/livez`)).status).toBe(200);
    expect((await fetch(`${admin.url}/api/status`)).status).toBe(503);
    const page = await fetch(admin.url);
    expect(page.status).toBe(503);
    expect(await page.text()).toContain('The database at db.internal cannot be reached.');
    const scrape = await fetch(`${admin.url}/metrics`);
    expect(scrape.status).toBe(503);
    expect(await scrape.text()).toBe('The database does not answer: The database at db.internal cannot be reached.\n');
  });

  test('only those who may see the status learn where it is', async ({ month }) => {
    const login = { user: 'operator', password: () => 'a long password' };
    await using admin = await openTestAdmin(month, { loadStatus: gone, login });
    for (const path of everyPath) {
      expect(await (await fetch(`${admin.url}${path}`)).text()).not.toContain('db.internal');
    }
  });

  test('readiness that fails or hangs is a no', { tags: ['slow'] }, async ({ month }) => {
    await using admin = await openTestAdmin(month, { loadReadiness: gone });
    expect((await fetch(`${admin.url}/readyz`)).status).toBe(503);
    await using hanging = await openTestAdmin(month, { loadReadiness: () => new Promise(() => {}) });
    expect((await fetch(`${hanging.url}/readyz`)).status).toBe(503);
  });

  test('a process in which nothing runs is not alive', async ({ month }) => {
    const loadLiveness = () => [{ check: 'work', ok: false, detail: 'no pass for ten minutes' }];
    await using admin = await openTestAdmin(month, { loadLiveness });
    expect((await fetch(`${admin.url}/livez`)).status).toBe(503);
  });
});

test("a page that cannot be drawn is our mistake, told to the log, not the database's", async ({ month }) => {
  const failed: string[] = [];
  await using admin = await openTestAdmin(month, {
    loadStatus: async () => ({
      ...emptyStatus,
      get headline(): string {
        throw new TypeError('There is no headline.');
      },
    }),
    onError: (route) => failed.push(route),
  });
  expect([(await fetch(admin.url)).status, failed]).toEqual([500, ['/']]);
});

test('a crowd costs the database one question', async ({ month }) => {
  let asked = 0;
  await using admin = await openTestAdmin(month, {
    loadStatus: async () => {
      asked++;
      return emptyStatus;
    },
  });
  await Promise.all(Array.from({ length: 20 }, async () => (await fetch(`${admin.url}/api/status`)).text()));
  expect(asked).toBe(1);
});

test.for([
  ['?advertiser=nobody', 'No account has this name.'],
  ['?advertiser=%00', 'No account has this name.'],
  ['?advertiser=', 'No account has this name.'],
  ['?advertiser=fern-and-finch', 'The source has not told yet which account'],
] as const)('the page of a proof says plainly why there is none: %s', async ([query, why], { unread }) => {
  await using admin = await openTestAdmin(unread);
  const answer = await fetch(`${admin.url}/proof${query}`);
  expect(answer.status).toBe(404);
  expect(await answer.text()).toContain(why);
});

// The public routes as any client of HTTP sees them: what they refuse, and how often. (The headers of every answer are in ports.)
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { test } from '../support/database/test-database.ts';
import { createBrowser } from '../support/prefill/candidate-browser.ts';
import { careers, openPrefillStage, prefillKey } from '../support/prefill/prefill-stage.ts';
import { openScratch } from '../support/stores/blob-stores.ts';

describe('start', () => {
  test('return URL not on the allow-list, and other wrong parameters: refused by name', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    for (const [name, value] of [
      ['return_url', 'https://evil.example.net/'],
      ['return_url', 'https://careers.example.com/apply-evil'],
      ['return_url', null],
      ['form_url', 'https://evil.example.net/'],
      ['form_url', null],
      ['advertiser_id', '7654321'],
      ['advertiser_id', 'not-a-number'],
      ['advertiser_id', null],
      ['country_code', 'AUS'],
      ['position_uri', 'a b'],
    ] as const) {
      const answer = await createBrowser().go(stage.toStartUrl({ [name]: value }));
      const page = await answer.text();
      expect([answer.status, answer.headers.get('location')], `${name} ${value}`).toEqual([400, null]);
      expect(page).toContain(`Not usable: ${name}.`);
      if (value) expect(page).not.toContain(value);
    }
    expect(stage.sandbox.requests()).toEqual([]);
  });

  test('a parameter that comes twice is not guessed at', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const answer = await createBrowser().go(
      `${stage.toStartUrl()}&return_url=https%3A%2F%2Fcareers.example.com%2Fapply`,
    );
    expect(answer.status).toBe(400);
  });

  test('asks the source for exactly the six parameters of its description', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const url = new URL(await createBrowser().step(stage.toStartUrl()));
    expect(`${url.origin}${url.pathname}`).toBe(`${stage.sandbox.url}/api/iam/oauth2/authorize`);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: 'sandbox-client',
      redirect_uri: `${stage.urls[0]}/prefill/callback`,
      state: expect.stringMatching(/^20000001\.[\w-]{43}$/),
      scope: 'r_profile_apply',
      response_type: 'code',
      advertiser_id: '20000001',
    });
  });
});

test('a look by HEAD causes nothing', async ({ database }) => {
  await using stage = await openPrefillStage(database);
  const browser = createBrowser();
  const callback = await browser.toCallback(stage.toStartUrl());
  const cookie = [...browser.jar].map(([name, value]) => `${name}=${value}`).join('; ');
  const answer = await fetch(callback, { method: 'HEAD', headers: { cookie }, redirect: 'manual' });
  expect(answer.status).toBe(405);
  expect(new URL(await browser.step(callback)).searchParams.has('prefill')).toBe(true);
});

describe('the cookie', () => {
  test('on http it is plain, out of reach of scripts, and comes along from the source', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const [cookie] = (await createBrowser().go(stage.toStartUrl())).headers.getSetCookie();
    expect(cookie).toMatch(/^prefill=[^;]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/);
  });

  test('on https it is a __Host- cookie', async ({ database }) => {
    const env = { OAUTH_REDIRECT_URI: 'https://intake.example.com/prefill/callback' };
    await using stage = await openPrefillStage(database, { env });
    const answer = await createBrowser().go(stage.toStartUrl());
    expect(answer.headers.getSetCookie()[0]).toMatch(
      /^__Host-prefill=[^;]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    expect(answer.headers.get('strict-transport-security')).toContain('max-age');
  });
});

describe('limits', () => {
  test('an address that asks too often is told to wait, and may go on after it', async ({ database }) => {
    await using stage = await openPrefillStage(database, { env: { TRUSTED_PROXIES: '127.0.0.1' } });
    const ask = (forwardedFor: string) =>
      fetch(`${stage.urls[0]}/prefill/callback`, { headers: { 'x-forwarded-for': forwardedFor }, redirect: 'manual' });
    const statuses = [];
    for (let count = 0; count < 62; count += 1) statuses.push((await ask('1.1.1.1, 203.0.113.9')).status);
    expect([statuses[0], statuses[59], statuses.at(-1)]).toEqual([303, 303, 429]);
    expect((await ask('1.1.1.1, 203.0.113.10')).status).toBe(303);
    stage.wait(60_000);
    expect((await ask('2.2.2.2, 203.0.113.9')).status).toBe(303);
  });

  test('a refused request costs nothing: one that comes every second passes every other time', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const ask = async () => (await fetch(`${stage.urls[0]}/prefill/callback`, { redirect: 'manual' })).status;
    while ((await ask()) !== 429);
    const statuses = [];
    for (let count = 0; count < 8; count += 1) {
      stage.wait(1_000);
      statuses.push(await ask());
    }
    expect(statuses.filter((status) => status === 303).length).toBeGreaterThanOrEqual(4);
  });

  test('wrong keys are counted: after ten of them not even the right one is heard', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    for (let count = 0; count < 40; count += 1) expect((await stage.redeem('x')).status).toBe(404);
    const wrong = await Promise.all(Array.from({ length: 12 }, () => stage.redeem('x', 'wrong')));
    expect(wrong.map(({ status }) => status).sort()).toEqual([...Array(10).fill(401), 429, 429]);
    expect(wrong.at(-1)?.headers.get('retry-after')).toBe('6');
    expect((await stage.redeem('x')).status).toBe(429);
    stage.wait(6_000);
    expect((await stage.redeem('x')).status).toBe(404);
  });

  test('a resume is handed out for minutes after its profile, whatever its link says', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const back = await createBrowser().toReturn(stage.toStartUrl());
    const { resume } = (await (await stage.redeem(back.searchParams.get('prefill'))).json()) as {
      resume: { url: string };
    };
    expect((await fetch(resume.url)).status).toBe(200);
    await database.query(`UPDATE intake.prefills SET redeemed_at = now() - interval '11 minutes'`);
    expect((await fetch(resume.url)).status).toBe(410);
  });

  test('a database that is away gives a calm page and says nothing of it', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    await database.query('ALTER TABLE intake.oauth_states RENAME TO away');
    const answer = await createBrowser().go(stage.toStartUrl());
    await database.query('ALTER TABLE intake.away RENAME TO oauth_states');
    const page = await answer.text();
    expect([answer.status, page.includes('oauth_states')]).toEqual([503, false]);
    expect(page).toContain('does not work right now');
    expect(stage.logged()).toContain('GET /prefill/start');
  });
});

test('the careers site of another account neither begins nor redeems a prefill of this one', async ({ database }) => {
  await using scratch = await openScratch();
  const file = join(scratch.path, 'advertisers.json');
  const otherKey = 'the-key-of-another-careers-site';
  const otherSite = 'https://other.example.net/form';
  writeFileSync(
    file,
    JSON.stringify([
      { name: 'default', credential: 'x', prefillKey, prefillReturnUrls: [careers] },
      { name: 'other', credential: 'y', prefillKey: otherKey, prefillReturnUrls: [otherSite] },
    ]),
  );
  const unset = { SOURCE_CREDENTIAL: '', ADVERTISER_ID: '', PREFILL_KEY: '', PREFILL_RETURN_URLS: '' };
  await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('other', 99)`);
  await using stage = await openPrefillStage(database, { env: { ...unset, ADVERTISERS_FILE: file } });
  const refused = await createBrowser().go(stage.toStartUrl({ return_url: otherSite, form_url: otherSite }));
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('form_url, return_url')]);
  const handle = (await createBrowser().toReturn(stage.toStartUrl())).searchParams.get('prefill');
  expect((await stage.redeem(handle, otherKey)).status).toBe(404);
  expect((await stage.redeem(handle, 'the-key-of-nobody')).status).toBe(401);
  expect((await stage.redeem(handle)).status).toBe(200);
});

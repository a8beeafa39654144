// A candidate's way through Intake: from the button to the filled form, every stumble on it, and what is left behind.
import { hash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { describe, expect } from 'vitest';
import { type TestDatabase, test } from '../support/database/test-database.ts';
import { createBrowser } from '../support/prefill/candidate-browser.ts';
import {
  careers,
  openPrefillStage,
  type PrefillStage,
  prefillKey,
  sessionSecret,
} from '../support/prefill/prefill-stage.ts';

interface Redeemed {
  readonly profile: Record<string, unknown>;
  readonly resume: { url: string; fileName: string; contentType: string; sizeBytes: number } | null;
}

const handleOf = (back: URL) => back.searchParams.get('prefill');
const errorOf = (back: URL) => back.searchParams.get('prefill_error');

/** One candidate allows; the callback is still to come. */
async function begin(stage: PrefillStage) {
  const browser = createBrowser();
  return { browser, callback: await browser.toCallback(stage.toStartUrl()) };
}

/** One candidate goes all the way; what the careers site gets. */
async function prefill(stage: PrefillStage): Promise<Redeemed> {
  const back = await createBrowser().toReturn(stage.toStartUrl());
  const answer = await stage.redeem(handleOf(back));
  expect([errorOf(back), answer.status]).toEqual([null, 200]);
  return (await answer.json()) as Redeemed;
}

async function lastRow(database: TestDatabase) {
  const [row] = await database.query(`SELECT * FROM intake.prefills ORDER BY created_at DESC LIMIT 1`);
  return row ?? {};
}

const countRequests = ({ sandbox }: PrefillStage, part: string) =>
  sandbox.requests().filter(({ path }) => path.includes(part)).length;

const toBytes = (stage: PrefillStage) =>
  Buffer.concat([...(stage.sandbox.grants().at(-1)?.candidate.resume.open() ?? [])]);

async function listBlobs(stage: PrefillStage): Promise<string[]> {
  const entries = await readdir(stage.blobsPath, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile() && /^[0-9a-f]{64}$/.test(entry.name)).map(({ name }) => name);
}

/** A fault of the step, whichever it is, ends the prefill as failed; the step is asked once. */
async function expectOneAttempt(
  { sandbox, toStartUrl }: PrefillStage,
  on: 'token' | 'prefilled',
  kinds: readonly Kind[],
) {
  for (const kind of kinds) {
    sandbox.clearFaults();
    sandbox.clearRequests();
    sandbox.fault({ kind, on, times: null });
    expect(errorOf(await createBrowser().toReturn(toStartUrl())), kind).toBe('failed');
    expect(
      sandbox.requests().filter(({ path }) => path.endsWith(`/${on}`)),
      kind,
    ).toHaveLength(1);
  }
}
type Kind = 'fail' | 'reset' | 'html' | 'emptyBody' | 'redirect';

describe('from the button to the filled form', () => {
  test('the careers site gets the profile and the resume, and the rows tell the story', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const browser = createBrowser();
    const back = await browser.toReturn(stage.toStartUrl());
    expect(back.href.startsWith(`${careers}?job=7&prefill=`)).toBe(true);
    const answer = await stage.redeem(handleOf(back));
    const { profile, resume } = (await answer.json()) as Redeemed;
    const { person, resume: file } = stage.sandbox.grants()[0]?.candidate ?? {};
    expect(profile).toMatchObject({ applicantInfo: { firstName: person?.firstName, emailAddress: person?.email } });

    const download = await fetch(resume?.url ?? '');
    const bytes = Buffer.from(await download.arrayBuffer());
    expect(bytes.equals(toBytes(stage))).toBe(true);
    expect(download.headers.get('content-disposition')).toBe(`attachment; filename=${file?.fileName}`);
    expect(resume).toMatchObject({ fileName: file?.fileName, contentType: file?.contentType, sizeBytes: bytes.length });

    expect(await lastRow(database)).toMatchObject({
      outcome: 'redeemed',
      reason: null,
      first_name: person?.firstName,
      last_name: person?.lastName,
      email: person?.email,
      phone: person?.phone,
      profile,
      position_title: 'Nurse, night shift',
      country_code: 'AU',
      resume_sha256: hash('sha256', bytes, 'hex'),
      resume_stored_at: expect.any(Date),
    });
    const [funnel] = await database.query(
      `SELECT started::int, authorized::int, prefilled::int, resume_stored::int, redeemed::int, denied::int, failed::int
       FROM intake_analytics.prefill_funnel_daily`,
    );
    expect(Object.values(funnel ?? {})).toEqual([1, 1, 1, 1, 1, 0, 0]);
  });

  test('two processes share the routes: start on one, callback on the other', async ({ database }) => {
    await using stage = await openPrefillStage(database, { processes: 2 });
    const { browser, callback } = await begin(stage);
    const other = callback.replace(stage.urls[0] ?? '', stage.urls[1] ?? '');
    const back = new URL(await browser.step(other));
    expect((await stage.redeem(handleOf(back))).status).toBe(200);
  });

  test('a handle used twice, unknown or old gives 404, and without the key nothing is given', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const handle = handleOf(await createBrowser().toReturn(stage.toStartUrl()));
    expect((await stage.redeem(handle, 'wrong')).status).toBe(401);
    expect((await stage.redeem(handle)).status).toBe(200);
    expect((await stage.redeem(handle)).status).toBe(404);
    expect((await stage.redeem(`${stage.sandbox.advertiserId}.${'a'.repeat(43)}`)).status).toBe(404);
    expect((await stage.redeem('../../etc')).status).toBe(404);
    expect((await stage.redeem(null)).status).toBe(400);
    const old = handleOf(await createBrowser().toReturn(stage.toStartUrl()));
    await database.query(
      `UPDATE intake.prefills SET expires_at = expires_at - interval '25 hours' WHERE outcome = 'prefilled'`,
    );
    expect((await stage.redeem(old)).status).toBe(404);
  });
});

describe('state', () => {
  test('altered, missing, doubled, long or of nobody: a calm page, and no code is used', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const changes: Record<string, (query: URLSearchParams) => void> = {
      altered: (query) => query.set('state', `${query.get('state')?.slice(0, -1)}~`),
      missing: (query) => query.delete('state'),
      doubled: (query) => query.append('state', query.get('state') ?? ''),
      '2 kB': (query) => query.set('state', 'x'.repeat(2000)),
      'of no advertiser': (query) => query.set('state', `99999999999999999999.${'a'.repeat(43)}`),
    };
    for (const [name, change] of Object.entries(changes)) {
      const browser = createBrowser();
      const callback = new URL(await browser.toCallback(stage.toStartUrl()));
      change(callback.searchParams);
      const location = await browser.step(callback.href);
      expect(location, name).toBe(`${stage.urls[0]}/prefill/stopped`);
      const page = await browser.go(location);
      expect([page.status, await page.text()], name).toEqual([410, expect.stringContaining('start again')]);
    }
    expect(countRequests(stage, '/token')).toBe(0);
  });

  test('replayed: the browser goes back to the form, and nothing happens twice', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const { browser, callback } = await begin(stage);
    const handle = handleOf(new URL(await browser.step(callback)));
    expect(errorOf(new URL(await browser.step(callback)))).toBe('expired');
    expect(countRequests(stage, '/token')).toBe(1);
    expect((await stage.redeem(handle)).status).toBe(200);
  });

  test('from another browser: a calm page, and the state still works for its own', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const [browser, thief] = [createBrowser(), createBrowser()];
    const callback = await browser.toCallback(stage.toStartUrl());
    await thief.go(stage.toStartUrl());
    expect(await thief.step(callback)).toBe(`${stage.urls[0]}/prefill/stopped`);
    expect(await createBrowser().step(callback)).toBe(`${stage.urls[0]}/prefill/stopped`);
    expect(handleOf(new URL(await browser.step(callback)))).not.toBeNull();
  });

  test('after ten minutes: expired', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const { browser, callback } = await begin(stage);
    const [{ lifetime } = { lifetime: 0 }] = await database.query<{ lifetime: number }>(
      `SELECT extract(epoch FROM expires_at - created_at)::int AS lifetime FROM intake.oauth_states WHERE used_at IS NULL`,
    );
    expect(lifetime).toBe(600);
    await database.query(`UPDATE intake.oauth_states SET expires_at = now() WHERE used_at IS NULL`);
    expect(errorOf(new URL(await browser.step(callback)))).toBe('expired');
    expect(await lastRow(database)).toMatchObject({ outcome: 'expired', reason: 'came back too late' });
  });

  test('made by a clock that was set back: expired, since nobody knows its age', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const { browser, callback } = await begin(stage);
    await database.query(
      `UPDATE intake.oauth_states SET expires_at = expires_at + interval '1 day' WHERE used_at IS NULL`,
    );
    expect(errorOf(new URL(await browser.step(callback)))).toBe('expired');
  });
});

describe('code', () => {
  test('replayed with another state: expired, and the first prefill keeps what it has', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const browser = createBrowser();
    const first = new URL(await browser.toCallback(stage.toStartUrl()));
    const second = new URL(await browser.toCallback(stage.toStartUrl()));
    const handle = handleOf(new URL(await browser.step(first.href)));
    second.searchParams.set('code', first.searchParams.get('code') ?? '');
    expect(errorOf(new URL(await browser.step(second.href)))).toBe('expired');
    expect((await stage.redeem(handle)).status).toBe(200);
  });

  test('with + / = %: works', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    for (const codeShape of ['special', 'barePlus'] as const) {
      stage.sandbox.choose({ codeShape });
      await prefill(stage);
      expect(stage.sandbox.grants().at(-1)?.code).toMatch(/\+.*\/.*=.*%/);
    }
  });
});

describe('the answer of the candidate', () => {
  test('denial in any form: denied, and no code is used', async ({ database }) => {
    await using stage = await openPrefillStage(database, { choices: { consent: 'deny' } });
    for (const denial of ['error', 'stateOnly', 'errorAndCode'] as const) {
      stage.sandbox.choose({ denial });
      const back = await createBrowser().toReturn(stage.toStartUrl());
      expect([errorOf(back), handleOf(back), back.searchParams.get('job')], denial).toEqual(['denied', null, '7']);
      expect(await lastRow(database), denial).toMatchObject({ outcome: 'denied', authorized_at: null, profile: null });
    }
    expect(countRequests(stage, '/token')).toBe(0);
  });

  test('an error of the source that is no denial: failed', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const browser = createBrowser();
    const callback = new URL(await browser.toCallback(stage.toStartUrl()));
    callback.searchParams.delete('code');
    callback.searchParams.set('error', 'server_error');
    expect(errorOf(new URL(await browser.step(callback.href)))).toBe('failed');
  });
});

describe('token', () => {
  test('expires_in of any kind: used at once, so it works; token_type in any case', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    for (const expiresIn of ['text', 'zero', 'negative', 'absent'] as const) {
      stage.sandbox.choose({ expiresIn });
      await prefill(stage);
    }
    for (const tokenType of ['Bearer', 'BEARER'] as const) {
      stage.sandbox.choose({ tokenType });
      await prefill(stage);
    }
  });

  test('token error in any form: expired where it says so, else failed', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const errors = { json400: 'expired', ok200: 'expired', html500: 'failed', emptyBody: 'failed' };
    for (const tokenError of Object.keys(errors) as (keyof typeof errors)[]) {
      stage.sandbox.choose({ tokenError });
      const { browser, callback } = await begin(stage);
      stage.wait(300_000);
      expect(errorOf(new URL(await browser.step(callback))), tokenError).toBe(errors[tokenError]);
    }
  });

  test.for(['a:b', '100%', 'pässwörd-é', 'a+b/c=d e'])(
    'client secret %s goes as it is',
    async (clientSecret, { database }) => {
      await using stage = await openPrefillStage(database, { client: { clientSecret } });
      await prefill(stage);
    },
  );

  test('client secret wrong: failed, and the log says what to look at', async ({ database }) => {
    await using stage = await openPrefillStage(database, { env: { OAUTH_CLIENT_SECRET: 'another-secret' } });
    expect(errorOf(await createBrowser().toReturn(stage.toStartUrl()))).toBe('failed');
    expect(stage.logged()).toContain('OAUTH_CLIENT_ID');
    expect(stage.logged()).not.toContain('another-secret');
  });

  test('dead between prefill and resume: the profile is kept, without a resume', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    stage.sandbox.fault({ kind: 'refuse', on: 'candidateResume', times: null });
    const { profile, resume } = await prefill(stage);
    expect([Object.keys(profile).length > 0, resume]).toEqual([true, null]);
    expect(await lastRow(database)).toMatchObject({ resume_sha256: null, resume_reason: 'refused' });
  });

  test('the token endpoint fails in any way: failed, asked once', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    await expectOneAttempt(stage, 'token', ['fail', 'reset', 'html', 'emptyBody', 'redirect']);
  });
});

describe('prefill', () => {
  test('200 with [] / null, 204, 404: failed', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    for (const profile of ['list', 'null', 'noContent', 'notFound'] as const) {
      stage.sandbox.choose({ profile });
      expect(errorOf(await createBrowser().toReturn(stage.toStartUrl())), profile).toBe('failed');
      const row = await lastRow(database);
      expect(row, profile).toMatchObject({ outcome: 'failed', reason: 'missing', profile: null });
    }
  });

  test('200 with {}: an empty profile is a profile', async ({ database }) => {
    await using stage = await openPrefillStage(database, { choices: { profile: 'empty' } });
    expect(await prefill(stage)).toEqual({ profile: {}, resume: null });
  });

  test('members named otherwise: name, e-mail and resume are found', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    for (const profile of ['flat', 'renamed'] as const) {
      stage.sandbox.choose({ profile });
      const { resume } = await prefill(stage);
      const { person } = stage.sandbox.grants().at(-1)?.candidate ?? {};
      expect(resume?.sizeBytes).toBe(toBytes(stage).length);
      expect(await lastRow(database), profile).toMatchObject({
        first_name: person?.firstName,
        last_name: person?.lastName,
        email: person?.email,
      });
    }
  });

  test('the prefill POST is not retried blindly', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    await expectOneAttempt(stage, 'prefilled', ['fail', 'reset', 'html', 'redirect']);
  });

  test('optional request fields empty: left out', async ({ database }) => {
    await using stage = await openPrefillStage(database, { choices: { emptyFields: 'refuse400' } });
    const url = stage.toStartUrl({ position_title: '', position_uri: '', country_code: '', postal_code: null });
    const back = await createBrowser().toReturn(url);
    expect(handleOf(back)).not.toBeNull();
  });
});

describe('resume', () => {
  test('link absolute, relative or not UUID-shaped: fetched', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    for (const resumeLink of ['absolute', 'relative', 'notUuid'] as const) {
      stage.sandbox.choose({ resumeLink });
      expect((await prefill(stage)).resume?.sizeBytes, resumeLink).toBe(toBytes(stage).length);
    }
  });

  test('link foreign or absent: no request, the profile is kept', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    for (const [resumeLink, notes, reason] of [
      ['foreign', [{ field: 'resume', reason: 'lies at another host' }], 'lies at another host'],
      ['absent', null, 'the profile names none'],
    ] as const) {
      stage.sandbox.choose({ resumeLink });
      expect((await prefill(stage)).resume, resumeLink).toBeNull();
      expect(await lastRow(database), resumeLink).toMatchObject({ notes, resume_reason: reason });
    }
    expect(countRequests(stage, '/resumes/')).toBe(0);
  });

  test('never stored short: what is cut, is another page or fails once is asked again', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    for (const fault of [
      { kind: 'cut', framing: 'contentLength' },
      { kind: 'cut', framing: 'chunked' },
      { kind: 'cut', framing: 'closeDelimited' },
      { kind: 'html' },
      { kind: 'emptyBody' },
      { kind: 'reset', at: 'body' },
      { kind: 'fail', status: 503 },
    ] as const) {
      stage.sandbox.clearRequests();
      stage.sandbox.fault({ ...fault, on: 'candidateResume' });
      const { resume } = await prefill(stage);
      const bytes = Buffer.from(await (await fetch(resume?.url ?? '')).arrayBuffer());
      expect(bytes.equals(toBytes(stage)), fault.kind).toBe(true);
      expect(countRequests(stage, '/resumes/'), fault.kind).toBe(2);
    }
  });

  test('a redirect is not followed with the token', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    stage.sandbox.fault({ kind: 'redirect', on: 'candidateResume', times: 1 });
    expect((await prefill(stage)).resume).toBeNull();
    expect(countRequests(stage, '/resumes/')).toBe(1);
  });
});

describe('what is left behind', () => {
  test('no secret, code, token, state, handle or name in any log or address', async ({ database }) => {
    await using stage = await openPrefillStage(database);
    const browser = createBrowser();
    const callback = new URL(await browser.toCallback(stage.toStartUrl()));
    const back = new URL(await browser.step(callback.href));
    await browser.step(callback.href);
    const redeemed = (await (await stage.redeem(handleOf(back))).json()) as Redeemed;
    await fetch(redeemed.resume?.url ?? '');
    stage.sandbox.fault({ kind: 'fail', on: 'prefilled' });
    await createBrowser().toReturn(stage.toStartUrl());
    expect(stage.logged()).toContain('prefill ended with an error');

    const [grant] = stage.sandbox.grants();
    const { person } = grant?.candidate ?? {};
    const secrets = [stage.sandbox.client.clientSecret, prefillKey, sessionSecret, grant?.code, grant?.token];
    const personal = [person?.lastName, person?.email, person?.phone, grant?.candidate.resume.fileName];
    const inLogs = [
      ...secrets,
      ...personal,
      callback.searchParams.get('state'),
      handleOf(back),
      [...browser.jar.values()][0],
    ];
    for (const text of inLogs) expect(stage.logged()).not.toContain(text);
    // Addresses that we emit: where browsers were sent by Intake, the way to authorize and the way back.
    const emitted = browser.sentTo.filter((url) => !url.startsWith(`${stage.urls[0]}/prefill/callback`));
    for (const text of [...secrets, ...personal]) {
      for (const url of emitted) expect(decodeURIComponent(url)).not.toContain(text);
    }
    const dump = JSON.stringify(
      await database.query(
        `SELECT s::text, p::text FROM intake.oauth_states s JOIN intake.prefills p USING (advertiser_id, prefill_id)`,
      ),
    );
    for (const text of [...secrets, callback.searchParams.get('state'), handleOf(back)])
      expect(dump).not.toContain(text);
  });

  test('what nobody redeems goes with its bytes; the funnel still counts it', async ({ database }) => {
    await database.query('TRUNCATE intake.prefills CASCADE');
    await using stage = await openPrefillStage(database);
    await createBrowser().toReturn(stage.toStartUrl());
    const { prefill_id: prefillId } = await lastRow(database);
    await stage.lapse();
    expect(await listBlobs(stage)).toEqual([(await lastRow(database)).resume_sha256]);
    await database.query(
      `UPDATE intake.prefills SET expires_at = expires_at - interval '25 hours' WHERE prefill_id = $1`,
      [prefillId],
    );
    await stage.lapse();
    expect(await listBlobs(stage)).toEqual([]);
    const row = await lastRow(database);
    const { person } = stage.sandbox.grants()[0]?.candidate ?? {};
    expect(row).toMatchObject({ outcome: 'lapsed', profile: null, resume_sha256: null, handle_hash: null });
    for (const text of [person?.email, person?.lastName]) expect(JSON.stringify(row)).not.toContain(text);
  });
});

// The candidate side as the API's description specifies it, tested with a client that shares no code with Intake's.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import {
  askProfile,
  askResume,
  authorize,
  exchange,
  obtainToken,
  redirectUri,
  toAuthorizeUrl,
  toPrefillBody,
} from '../support/prefill/candidate-client.ts';

let sandbox: Sandbox;
const now = Date.UTC(2026, 3, 30);

beforeEach(async () => {
  sandbox = await openSandbox({
    applications: 0,
    now: () => now,
    choices: { consent: 'allow' },
    client: { redirectUris: [redirectUri] },
    advertisers: [{ advertiserId: 8n, credential: 'eight', choices: { consent: 'allow' } }],
  });
});
afterEach(() => sandbox[Symbol.asyncDispose]());

describe('authorize', () => {
  test('sends the browser back with a code and the unchanged state', async () => {
    const state = 'ä +%26&=/?#"';
    const back = await authorize(sandbox, { state });
    expect(`${back.origin}${back.pathname}`).toBe(redirectUri);
    expect(back.searchParams.get('state')).toBe(state);
    expect(back.searchParams.get('code')).toMatch(/./);
    expect([...back.searchParams.keys()].sort()).toEqual(['code', 'state']);
  });

  test.each([
    ['scope', 'openid', 'invalid_scope'],
    ['scope', null, 'invalid_scope'],
    ['response_type', 'token', 'unsupported_response_type'],
    ['response_type', null, 'unsupported_response_type'],
    ['advertiser_id', '999', 'invalid_request'],
    ['advertiser_id', null, 'invalid_request'],
    ['state', null, 'invalid_request'],
  ])('a wrong %s (%s) is refused', async (name, value, error) => {
    const back = await authorize(sandbox, { [name]: value });
    expect(back.searchParams.get('error')).toBe(error);
    expect(back.searchParams.has('code')).toBe(false);
  });

  test.each([
    ['client_id', 'other'],
    ['redirect_uri', `${redirectUri}/`],
    ['redirect_uri', `${redirectUri}?more=1`],
    ['redirect_uri', 'https://evil.example.net/'],
  ])('with %s %s nobody is sent anywhere', async (name, value) => {
    const answer = await fetch(toAuthorizeUrl(sandbox, { [name]: value }), { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
  });

  test('a person is asked on a page, and both answers lead back', async () => {
    sandbox.choose({ consent: 'ask' });
    const page = await fetch(toAuthorizeUrl(sandbox));
    const text = await page.text();
    const [, number = ''] = /name="number" value="([^"]+)"/.exec(text) ?? [];
    const decide = async (decision: string) => {
      const body = new URLSearchParams({ number, decision });
      const answer = await fetch(`${sandbox.url}/api/iam/oauth2/consent`, { method: 'POST', body, redirect: 'manual' });
      return new URL(answer.headers.get('location') ?? '').searchParams;
    };
    expect((await decide('allow')).get('code')).toMatch(/./);
    const denied = await decide('deny');
    expect([denied.get('error'), denied.get('state'), denied.has('code')]).toEqual(['access_denied', 'a state', false]);
    const grant = sandbox.grants()[0];
    expect(text).toContain(grant?.candidate.person.lastName.replaceAll("'", '&#39;'));
  });
});

describe('token', () => {
  const code = async () => (await authorize(sandbox)).searchParams.get('code') ?? '';

  test('a code works once, and a second try ends the token of the first', async () => {
    const once = await code();
    const { access_token } = (await (await exchange(sandbox, { code: once })).json()) as { access_token: string };
    expect((await askProfile(sandbox, access_token)).status).toBe(200);
    expect(await (await exchange(sandbox, { code: once })).json()).toMatchObject({ error: 'invalid_grant' });
    expect((await askProfile(sandbox, access_token)).status).toBe(401);
  });

  test.each([
    ['redirect_uri', `${redirectUri}/`, 'invalid_grant'],
    ['grant_type', 'password', 'unsupported_grant_type'],
  ])('another %s is refused', async (name, value, error) => {
    const answer = await exchange(sandbox, { code: await code(), [name]: value });
    expect(await answer.json()).toMatchObject({ error });
  });

  test.each([
    ['another secret', { authorization: `Basic ${btoa('sandbox-client:wrong')}` }, 401],
    [
      'percent-encoded credentials',
      { authorization: `Basic ${btoa('sandbox%2Dclient:sandbox%2Dclient%2Dsecret')}` },
      401,
    ],
    ['no credentials', { authorization: 'Bearer x' }, 401],
    ['a JSON body', { 'content-type': 'application/json' }, 400],
  ])('%s is refused', async (_, headers, status) => {
    expect((await exchange(sandbox, { code: await code() }, headers)).status).toBe(status);
  });
});

describe('prefilled', () => {
  test.each([
    ['an applicationFormUrl that is no URL', { applicationFormUrl: 'apply' }, 400],
    ['an advertiserId that is a number', { advertiserId: 20000001 }, 400],
    ['an advertiserId with letters', { advertiserId: 'x1' }, 400],
    ['the advertiserId of another account', { advertiserId: '8' }, 403],
    ['an empty positionTitle', { positionTitle: '' }, 400],
    ['a positionUri that is no URI', { positionUri: 'job 1' }, 400],
    ['a countryCode of three letters', { countryCode: 'AUS' }, 400],
    ['an empty postalCode', { postalCode: '' }, 400],
    ['a field that nobody knows', { more: 'x' }, 400],
  ])('%s is refused', async (_, changed, status) => {
    const answer = await askProfile(sandbox, await obtainToken(sandbox), { ...toPrefillBody(sandbox), ...changed });
    expect(answer.status).toBe(status);
  });

  test('the headers are the described ones', async () => {
    const token = await obtainToken(sandbox);
    const body = toPrefillBody(sandbox);
    expect((await askProfile(sandbox, token, body, { accept: 'application/xml' })).status).toBe(406);
    expect((await askProfile(sandbox, token, body, { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await askProfile(sandbox, 'wrong', body)).status).toBe(401);
    expect((await askProfile(sandbox, token, '{')).status).toBe(400);
  });
});

test('only their own candidate sees resumes, and only as octet-stream', async () => {
  const token = await obtainToken(sandbox);
  const other = await obtainToken(sandbox);
  const { resumeId = '' } = sandbox.grants()[0]?.candidate ?? {};
  expect((await askResume(sandbox, other, resumeId)).status).toBe(404);
  expect((await askResume(sandbox, token, resumeId, 'application/pdf')).status).toBe(406);
  expect((await askResume(sandbox, 'wrong', resumeId)).status).toBe(401);
});

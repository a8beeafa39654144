// A third-party client against the sandbox: shows a misunderstanding of OAuth that Intake's client and the sandbox share.
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { redirectUri } from '../support/candidate-client.ts';

// The spec sends id and secret unencoded in Basic. The library would percent-encode them, as RFC 6749 requires.
const basicAsWritten =
  (secret: string): client.ClientAuth =>
  (_server, { client_id: id }, _body, headers) => {
    headers.set('authorization', `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`);
  };

function configure(sandbox: Sandbox, secret = sandbox.client.clientSecret): client.Configuration {
  const endpoint = `${sandbox.url}/api/iam/oauth2`;
  const server = {
    issuer: sandbox.url,
    authorization_endpoint: `${endpoint}/authorize`,
    token_endpoint: `${endpoint}/token`,
  };
  const configuration = new client.Configuration(server, sandbox.client.clientId, undefined, basicAsWritten(secret));
  client.allowInsecureRequests(configuration);
  return configuration;
}

async function walk(configuration: client.Configuration, sandbox: Sandbox, state: string): Promise<URL> {
  const url = client.buildAuthorizationUrl(configuration, {
    redirect_uri: redirectUri,
    scope: 'r_profile_apply',
    advertiser_id: String(sandbox.advertiserId),
    state,
  });
  const answer = await fetch(url, { redirect: 'manual' });
  return new URL(answer.headers.get('location') ?? '');
}

test('an independent client gets a token and reads the profile with it', async () => {
  await using sandbox = await openSandbox({ applications: 0, choices: { consent: 'allow' } });
  const configuration = configure(sandbox);
  const state = client.randomState();
  const back = await walk(configuration, sandbox, state);
  const tokens = await client.authorizationCodeGrant(configuration, back, { expectedState: state });
  expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 3600 });
  const body = { applicationFormUrl: 'https://careers.example.com/', advertiserId: String(sandbox.advertiserId) };
  const headers = new Headers({ accept: 'application/json', 'content-type': 'application/json' });
  const prefilled = new URL(`${sandbox.url}/v2/applications/prefilled`);
  const text = JSON.stringify(body);
  const answer = await client.fetchProtectedResource(
    configuration,
    tokens.access_token,
    prefilled,
    'POST',
    text,
    headers,
  );
  expect(await answer.json()).toHaveProperty('applicantInfo.firstName');
});

test('an independent client understands denial, a spent code and a wrong secret', async () => {
  await using sandbox = await openSandbox({ applications: 0, choices: { consent: 'allow' } });
  const configuration = configure(sandbox);
  const back = await walk(configuration, sandbox, 's');
  await client.authorizationCodeGrant(configuration, back, { expectedState: 's' });
  await expect(client.authorizationCodeGrant(configuration, back, { expectedState: 's' })).rejects.toMatchObject({
    error: 'invalid_grant',
  });
  const fresh = await walk(configuration, sandbox, 's');
  const stranger = configure(sandbox, 'wrong');
  await expect(client.authorizationCodeGrant(stranger, fresh, { expectedState: 's' })).rejects.toMatchObject({
    error: 'invalid_client',
  });
  sandbox.choose({ consent: 'deny' });
  const denied = await walk(configuration, sandbox, 's');
  await expect(client.authorizationCodeGrant(configuration, denied, { expectedState: 's' })).rejects.toMatchObject({
    error: 'access_denied',
  });
});

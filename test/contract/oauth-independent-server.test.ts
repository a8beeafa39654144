// Intake's client against a third-party authorization server: shows a misunderstanding of OAuth that the client and the sandbox share.
import { expect, test } from 'vitest';
import {
  type IndependentServer,
  independentClient,
  independentRedirectUri,
  openIndependentServer,
} from '../support/prefill/independent-server.ts';
import { type OwnPrefillOptions, openOwnPrefillSource } from '../support/servers/own-source.ts';

const request = {
  advertiserId: 7n,
  formUrl: 'https://careers.example.com/apply',
  returnUrl: 'https://careers.example.com/apply',
  positionTitle: 'Nurse',
  positionUri: null,
  countryCode: 'AU',
  postalCode: '',
};

const signal = AbortSignal.timeout(600_000);

function createClient({ url }: IndependentServer, changed: Partial<OwnPrefillOptions> = {}) {
  return openOwnPrefillSource({
    url,
    authUrl: url,
    clientId: independentClient.clientId,
    clientSecret: () => independentClient.clientSecret,
    redirectUri: independentRedirectUri,
    idleTimeoutMs: 60_000,
    totalTimeoutMs: 60_000,
    connections: 2,
    resumeMaxBytes: 1000,
    ...changed,
  });
}

test('our client gets a session at an independent server and reads the profile', async () => {
  await using server = await openIndependentServer();
  await using client = createClient(server);
  const back = await server.walk(client.toAuthorizeUrl('a state', 7n));
  expect(back.href.startsWith(`${independentRedirectUri}?`)).toBe(true);
  expect(back.searchParams.get('state')).toBe('a state');
  const session = await client.openSession(back.searchParams.get('code') ?? '', signal);
  const profile = await session.loadProfile(request, signal);
  expect(JSON.parse(profile.raw)).toEqual({ owner: 'ann', scope: 'r_profile_apply' });
  expect(server.asked).toEqual([
    { applicationFormUrl: request.formUrl, advertiserId: '7', positionTitle: 'Nurse', countryCode: 'AU' },
  ]);
});

test('our client understands a spent code, another redirect_uri and a wrong secret', async () => {
  await using server = await openIndependentServer();
  await using client = createClient(server);
  const code = async () => (await server.walk(client.toAuthorizeUrl('s', 7n))).searchParams.get('code') ?? '';
  const spent = await code();
  await client.openSession(spent, signal);
  await expect(client.openSession(spent, signal)).rejects.toMatchObject({ name: 'CodeSpent' });
  await using elsewhere = createClient(server, { redirectUri: `${independentRedirectUri}/` });
  await expect(elsewhere.openSession(await code(), signal)).rejects.toMatchObject({ name: 'CodeSpent' });
  await using stranger = createClient(server, { clientSecret: () => 'wrong' });
  await expect(stranger.openSession(await code(), signal)).rejects.toMatchObject({ kind: 'refused', status: 401 });
});

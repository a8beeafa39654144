// A manual client for the candidate side of the sandbox: fetch, without redirects or retries. Written from the API's description alone.

import type { Sandbox } from '../../../src/dev/sandbox/http/server.ts';

export const redirectUri = 'https://intake.example.com/prefill/callback';

/** The URL to which a browser is sent to authorize; `changed` replaces parameters, or omits them with null. */
export function toAuthorizeUrl(sandbox: Sandbox, changed: Record<string, string | null> = {}): string {
  const parameters = {
    client_id: sandbox.client.clientId,
    redirect_uri: redirectUri,
    state: 'a state',
    scope: 'r_profile_apply',
    response_type: 'code',
    advertiser_id: String(sandbox.advertiserId),
    ...changed,
  };
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== null);
  return `${sandbox.url}/api/iam/oauth2/authorize?${new URLSearchParams(given)}`;
}

/** The URL to which the browser is sent back; the sandbox must be set to show no consent page. */
export async function authorize(sandbox: Sandbox, changed: Record<string, string | null> = {}): Promise<URL> {
  const answer = await fetch(toAuthorizeUrl(sandbox, changed), { redirect: 'manual' });
  return new URL(answer.headers.get('location') ?? `about:${answer.status}`);
}

/** Exchanges a code; `changed` replaces headers. */
export function exchange(
  sandbox: Sandbox,
  form: Record<string, string>,
  changed: Record<string, string> = {},
): Promise<Response> {
  const { clientId, clientSecret } = sandbox.client;
  return fetch(`${sandbox.url}/api/iam/oauth2/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
      ...changed,
    },
    body: new URLSearchParams({ redirect_uri: redirectUri, grant_type: 'authorization_code', ...form }).toString(),
  });
}

/** Obtains a candidate's token without a consent page. */
export async function obtainToken(sandbox: Sandbox): Promise<string> {
  const back = await authorize(sandbox);
  const answer = await exchange(sandbox, { code: back.searchParams.get('code') ?? '' });
  return ((await answer.json()) as { access_token: string }).access_token;
}

/** The body of a prefill request as the API's description shows it. */
export function toPrefillBody(sandbox: Sandbox): Record<string, string> {
  return {
    applicationFormUrl: 'https://careers.example.com/apply',
    advertiserId: String(sandbox.advertiserId),
    positionTitle: 'Nurse',
    positionUri: 'https://careers.example.com/jobs/1',
    countryCode: 'AU',
    postalCode: '3000',
  };
}

/** Requests the profile. */
export function askProfile(
  sandbox: Sandbox,
  token: string,
  body: unknown = toPrefillBody(sandbox),
  changed: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${sandbox.url}/v2/applications/prefilled`, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...changed,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** Requests the bytes of a resume. */
export function askResume(sandbox: Sandbox, token: string, id: string, accept = 'application/octet-stream') {
  return fetch(`${sandbox.url}/v2/resumes/${id}`, { headers: { accept, authorization: `Bearer ${token}` } });
}

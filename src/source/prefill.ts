// The candidate side of the source API (version 2): where to authorize, a code for a session, the profile, the resume.
// The token never leaves this file: it lives as long as the session object and is stored nowhere.

import { CodeSpent, type PrefillRequest, type Profile, type Resume } from '../domain/prefill.ts';
import { Trouble } from '../domain/trouble.ts';
import { readBody } from './body.ts';
import { createHttp, type Http, type HttpAnswer, type HttpOptions } from './http.ts';
import { decodeText } from './parse/charset.ts';
import { parseJson } from './parse/json.ts';
import { findAccountIds, parseProfile } from './parse/profile.ts';
import { isObject } from './parse/values.ts';
import { readResume } from './resume.ts';
import { toStatusTrouble } from './status.ts';

/** Asks candidates' permission at one source and uses it. Closing it ends its connections. */
export interface PrefillSource extends AsyncDisposable {
  /** Where the browser goes to be asked. */
  toAuthorizeUrl(state: string, advertiserId: bigint): string;
  /** Exchanges a code, once. Throws CodeSpent, another Trouble, or the signal's reason. */
  openSession(code: string, signal: AbortSignal): Promise<CandidateSession>;
}

/** What one candidate has allowed. */
export interface CandidateSession {
  /** Asks for the profile, once. */
  loadProfile(request: PrefillRequest, signal: AbortSignal): Promise<Profile>;
  /** The bytes of a resume, whole or not at all. */
  loadResume(resumeId: string, signal: AbortSignal): Promise<Resume>;
}

export interface PrefillSourceOptions extends Omit<HttpOptions, 'credential'> {
  /** {auth_url}. */
  readonly authUrl: string;
  readonly clientId: string;
  /** Read anew for each exchange, so that it can be rotated. */
  readonly clientSecret: () => string;
  readonly redirectUri: string;
  readonly resumeMaxBytes: number;
}

const tokenMaxBytes = 65_536;
const profileMaxBytes = 2_000_000;

/** Creates the client; nothing is sent before the first code. */
export function createPrefillSource(options: PrefillSourceOptions): PrefillSource {
  const auth = createHttp({ ...options, url: options.authUrl });
  const api = createHttp(options);
  return {
    toAuthorizeUrl: (state, advertiserId) => toAuthorizeUrl(options, state, advertiserId),
    async openSession(code, signal) {
      const { clientId, clientSecret, redirectUri } = options;
      const { token, accountIds } = await auth.post(
        {
          path: 'api/iam/oauth2/token',
          accept: 'application/json',
          // Spec: base64(client_id:client_secret), the two as they are; RFC 6749 would percent-encode them first.
          authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret()}`).toString('base64')}`,
          contentType: 'application/x-www-form-urlencoded',
          body: new URLSearchParams({
            code,
            redirect_uri: redirectUri,
            grant_type: 'authorization_code',
          }).toString(),
          signal,
        },
        readToken,
      );
      return createSession(api, `Bearer ${token}`, accountIds, options);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([auth[Symbol.asyncDispose](), api[Symbol.asyncDispose]()]);
    },
  };
}

/** Spec: six query parameters. */
function toAuthorizeUrl(options: PrefillSourceOptions, state: string, advertiserId: bigint): string {
  const url = new URL(`${options.authUrl.replace(/\/$/, '')}/api/iam/oauth2/authorize`);
  url.search = new URLSearchParams({
    client_id: options.clientId,
    redirect_uri: options.redirectUri,
    state,
    scope: 'r_profile_apply',
    response_type: 'code',
    advertiser_id: String(advertiserId),
  }).toString();
  return url.href;
}

function createSession(
  api: Http,
  authorization: string,
  accountIds: readonly string[],
  options: PrefillSourceOptions,
): CandidateSession {
  return {
    loadProfile: (request, signal) =>
      api.post(
        {
          path: 'v2/applications/prefilled',
          accept: 'application/json',
          authorization,
          contentType: 'application/json',
          body: JSON.stringify(toBody(request)),
          signal,
        },
        (answer) => readProfile(answer, options.url, accountIds),
      ),
    loadResume: (resumeId, signal) =>
      api.get({ path: `v2/resumes/${resumeId}`, accept: 'application/octet-stream', authorization, signal }, (answer) =>
        readResume(answer, options.resumeMaxBytes),
      ),
  };
}

// Spec: Prefill request body. Spec silent: which fields are required; what is empty is left out.
function toBody(request: PrefillRequest): Record<string, string> {
  const fields = {
    applicationFormUrl: request.formUrl,
    advertiserId: String(request.advertiserId),
    positionTitle: request.positionTitle,
    positionUri: request.positionUri,
    countryCode: request.countryCode,
    postalCode: request.postalCode,
  };
  return Object.fromEntries(Object.entries(fields).filter((field): field is [string, string] => !!field[1]?.trim()));
}

// Spec: Token response. expires_in is not looked at: the token is used within seconds and then forgotten. Spec silent: whether it names the
// candidate's account beside the token; by that id a request to erase finds the profile.
async function readToken(answer: HttpAnswer): Promise<{ readonly token: string; readonly accountIds: string[] }> {
  const told = await readJson(answer, tokenMaxBytes).catch((error: unknown) => {
    throw toStatusTrouble(answer, Date.now()) ?? error;
  });
  // Spec silent: errors. RFC 6749 names them in `error`, usually with status 400, here and there with 200.
  if (isObject(told) && typeof told.error === 'string') throw toGrantTrouble(told.error, answer.status);
  const trouble = toStatusTrouble(answer, Date.now());
  if (trouble !== null) throw trouble;
  const { access_token: token, token_type: type = 'bearer' } = isObject(told) ? told : {};
  if (typeof token !== 'string' || !/^[!-~]{1,8000}$/.test(token) || String(type).toLowerCase() !== 'bearer') {
    throw new Trouble('malformed', 'The token endpoint gave no bearer token.');
  }
  return { token, accountIds: isObject(told) ? findAccountIds(told) : [] };
}

function toGrantTrouble(error: string, status: number): Trouble {
  if (error === 'invalid_grant') return new CodeSpent();
  if (error === 'invalid_client' || error === 'unauthorized_client') {
    return new Trouble('refused', 'The token endpoint refuses the client: look at OAUTH_CLIENT_ID and its secret.', {
      status,
    });
  }
  return new Trouble('malformed', 'The token endpoint refuses the request.', { status });
}

async function readProfile(answer: HttpAnswer, baseUrl: string, accountIds: readonly string[]): Promise<Profile> {
  const trouble = toStatusTrouble(answer, Date.now());
  if (trouble !== null) throw trouble;
  if (answer.status === 204) throw new Trouble('missing', 'The source has no profile (204).', { status: 204 });
  return parseProfile(await readJson(answer, profileMaxBytes), baseUrl, accountIds);
}

async function readJson(answer: HttpAnswer, maxBytes: number): Promise<unknown> {
  const { bytes, whole } = await readBody(answer.body, answer.headers['content-encoding'], maxBytes);
  if (!whole) throw new Trouble('malformed', 'The answer is larger than any such answer should be.');
  return parseJson(decodeText(bytes, answer.headers['content-type']).text).value;
}

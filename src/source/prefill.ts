// The candidate side of the source API (version 2): builds the authorize URL, exchanges a code for a session, loads profile and resume.
// The access token never leaves this file: it exists as long as the session object and is not stored.

import type { Spool } from '../domain/blob.ts';
import { CodeSpent, type PrefillRequest, type Profile, type Resume } from '../domain/prefill.ts';
import { Trouble } from '../domain/trouble.ts';
import { createHttp, type HttpAnswer, type HttpOptions, inflate, readBody, toStatusTrouble } from './http.ts';
import { decodeText } from './parse/charset.ts';
import { describeFile, startsAsHtml } from './parse/file-description.ts';
import { parseJson } from './parse/json.ts';
import { findAccountIds, parseProfile } from './parse/profile.ts';
import { isObject, refuse, toScalarText } from './parse/values.ts';

export interface PrefillSourceOptions extends Omit<HttpOptions, 'credential'> {
  /** Base URL of the OAuth server; {auth_url} in the spec. */
  readonly authUrl: string;
  readonly clientId: string;
  /** Called for each exchange, so that the secret can be rotated. */
  readonly clientSecret: () => string;
  readonly redirectUri: string;
  readonly resumeMaxBytes: number;
}

const tokenMaxBytes = 65_536;
const profileMaxBytes = 2_000_000;

export type PrefillSource = ReturnType<typeof createPrefillSource>;
export type CandidateSession = Awaited<ReturnType<PrefillSource['openSession']>>;

/** Creates the client; it sends nothing before the first code. */
export function createPrefillSource(options: PrefillSourceOptions) {
  const auth = createHttp({ ...options, url: options.authUrl });
  const api = createHttp(options);
  const { clientId, clientSecret, redirectUri } = options;
  const accept = 'application/json';
  return {
    /** The URL of the consent page, for the candidate's browser. Spec: six query parameters. */
    toAuthorizeUrl(state: string, advertiserId: bigint): string {
      const url = new URL(`${options.authUrl.replace(/\/$/, '')}/api/iam/oauth2/authorize`);
      const asked = { state, scope: 'r_profile_apply', response_type: 'code', advertiser_id: String(advertiserId) };
      url.search = new URLSearchParams({ client_id: clientId, redirect_uri: redirectUri, ...asked }).toString();
      return url.href;
    },
    /** Exchanges a code, once. Throws CodeSpent, another Trouble, or the signal's reason. */
    async openSession(code: string, signal: AbortSignal) {
      const granted = new URLSearchParams({ code, redirect_uri: redirectUri, grant_type: 'authorization_code' });
      const posted = { contentType: 'application/x-www-form-urlencoded', body: granted.toString() };
      // Spec: base64(client_id:client_secret), both unencoded; RFC 6749 would percent-encode them first.
      const basic = `Basic ${Buffer.from(`${clientId}:${clientSecret()}`).toString('base64')}`;
      const exchange = { path: 'api/iam/oauth2/token', accept, authorization: basic, ...posted, signal };
      const { token, accountIds } = await auth.post(exchange, readToken);
      const authorization = `Bearer ${token}`;
      return {
        /** Requests the profile, without retries. */
        loadProfile(request: PrefillRequest, signal: AbortSignal): Promise<Profile> {
          const sent = { contentType: accept, body: JSON.stringify(toBody(request)) };
          const asked = { path: 'v2/applications/prefilled', accept, authorization, ...sent, signal };
          return api.post(asked, async (answer) => {
            const trouble = toStatusTrouble(answer, Date.now());
            if (trouble !== null) throw trouble;
            if (answer.status === 204)
              throw new Trouble('missing', 'The source has no profile (204).', { status: 204 });
            return parseProfile(await readJson(answer, profileMaxBytes), options.url, accountIds);
          });
        },
        /** Loads a complete resume into the spool, or throws. */
        loadResume(resumeId: string, spool: Pick<Spool, 'open'>, signal: AbortSignal): Promise<Resume> {
          const asked = { path: `v2/resumes/${resumeId}`, accept: 'application/octet-stream', authorization, signal };
          return api.get(asked, (answer) => readResume(answer, spool, options.resumeMaxBytes));
        },
      };
    },
  };
}

// Spec: Prefill request body. Spec silent: which fields are required; empty fields are left out.
function toBody({ formUrl: applicationFormUrl, advertiserId: id, ...request }: PrefillRequest) {
  const { positionTitle, positionUri, countryCode, postalCode } = request;
  const fields = { applicationFormUrl, advertiserId: String(id), positionTitle, positionUri, countryCode, postalCode };
  return Object.fromEntries(Object.entries(fields).filter(([, text]) => text?.trim()));
}

// Spec: Token response. expires_in is ignored: the token is used within seconds and then dropped. Spec silent: whether the response
// contains the candidate's account id; an erasure request finds the profile by that id.
async function readToken(answer: HttpAnswer): Promise<{ readonly token: string; readonly accountIds: string[] }> {
  const trouble = toStatusTrouble(answer, Date.now());
  const parsed = await readJson(answer, tokenMaxBytes).catch((error: unknown) => {
    throw trouble ?? error;
  });
  const members = isObject(parsed) ? parsed : {};
  // Spec silent: errors. RFC 6749 names them in `error`, usually with status 400; some servers send 200.
  if (typeof members.error === 'string') throw toGrantTrouble(members.error, answer.status);
  if (trouble !== null) throw trouble;
  const { access_token: token, token_type: type = 'bearer' } = members;
  if (typeof token !== 'string' || !/^[!-~]{1,8000}$/.test(token) || toScalarText(type)?.toLowerCase() !== 'bearer') {
    throw new Trouble('malformed', 'The token endpoint sent no bearer token.');
  }
  return { token, accountIds: findAccountIds(members) };
}

function toGrantTrouble(error: string, status: number): Trouble {
  if (error === 'invalid_grant') return new CodeSpent('missing', 'The source does not accept the code any more.');
  const isClient = error === 'invalid_client' || error === 'unauthorized_client';
  const what = isClient ? 'the client: check OAUTH_CLIENT_ID and its secret' : 'the request';
  return new Trouble(isClient ? 'refused' : 'malformed', `The token endpoint rejects ${what}.`, { status });
}

async function readJson(answer: HttpAnswer, maxBytes: number): Promise<unknown> {
  const { bytes, whole } = await readBody(answer, maxBytes);
  if (!whole) refuse(`is larger than ${maxBytes} bytes`);
  return parseJson(decodeText(bytes, answer.headers['content-type']));
}

/** Reads a resume into the spool, up to a limit. A truncated, empty or wrong body is never accepted. Spec: Resume (version 2). */
export async function readResume(
  { status, headers, isFramed, body }: HttpAnswer,
  spool: Pick<Spool, 'open'>,
  maxBytes: number,
): Promise<Resume> {
  if (status === 204) throw new Trouble('missing', 'The source has no resume (204).', { status });
  // Spec: Content-Length.
  if (!isFramed) throw new Trouble('malformed', 'The resume has no length (Content-Length).');
  await using stack = new AsyncDisposableStack();
  const spooled = stack.use(spool.open());
  for await (const chunk of inflate({ body, headers })) {
    if (spooled.sizeBytes + chunk.length > maxBytes) {
      throw new Trouble('mismatch', `The resume is larger than ${maxBytes} bytes.`);
    }
    await spooled.write(chunk);
  }
  const { body: kept, facts, head } = await spooled.finish();
  if (facts.sizeBytes === 0) throw new Trouble('malformed', 'The resume is empty.');
  const { contentType, detectedType, fileName } = await describeFile(headers, head);
  const isPage = /^(?:text\/html|application\/(?:json|problem\+json|xml))/i.test(contentType ?? '');
  if (isPage || (startsAsHtml(head) && !/\.html?$/i.test(fileName ?? ''))) {
    throw new Trouble('malformed', 'The source sent a page instead of the resume.');
  }
  const owned = stack.move();
  return {
    ...facts,
    body: kept,
    fileName: fileName ?? 'resume',
    // Spec: the header is always application/octet-stream, so the type is detected from the first bytes.
    contentType: detectedType ?? 'application/octet-stream',
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

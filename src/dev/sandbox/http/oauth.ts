// The authorization and token endpoints. The candidate's browser gets a consent page and is redirected back with a code, which the client
// exchanges for a token. Spec: Endpoints, Authorization and prefill. Does not know profiles.

import { randomUUID } from 'node:crypto';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import type { Account } from '../account/account.ts';
import type { Candidate } from '../account/candidates.ts';
import type { CandidateRoute } from '../behaviour/faults.ts';
import { renderConsent, renderRefusal } from './consent-page.ts';
import type { Grant, Grants } from './grants.ts';
import { toMishap } from './mishap.ts';
import type { RequestLog } from './request-log.ts';
import { sendAnswer, type WireAnswer } from './transport.ts';

/** The only OAuth client of a sandbox. */
export interface OAuthClient {
  readonly clientId: string;
  readonly clientSecret: string;
  /** The registered redirect URIs, compared exactly; null accepts any. */
  readonly redirectUris: readonly string[] | null;
}

export interface OAuthOptions {
  readonly client: OAuthClient;
  readonly grants: Grants;
  readonly first: Account;
  find(advertiserId: string): Account | null;
  /** The candidate who is signed in when a browser requests authorization. */
  nextCandidate(): Candidate;
  readonly log: RequestLog;
}

interface Consent {
  readonly account: Account;
  readonly candidate: Candidate;
  readonly redirectUri: string;
  readonly state: string;
}

/** The routes under /api/iam/oauth2. */
export function createOAuth(options: OAuthOptions): Hono<{ Bindings: HttpBindings }> {
  const { client, grants, log } = options;
  const app = new Hono<{ Bindings: HttpBindings }>();
  const asked = new Map<string, Consent>();

  const send = async (
    context: Context<{ Bindings: HttpBindings }>,
    route: CandidateRoute,
    account: Account | null,
    toAnswer: () => WireAnswer | Promise<WireAnswer>,
  ) => {
    const chosen = account ?? options.first;
    const entry = log.begin(context.req.raw, account?.advertiserId ?? null);
    const faults = chosen.armed.take({ route, applicationId: null });
    entry.faults = faults.map((fault) => fault.kind);
    const answer = toMishap(chosen, context.req.url, faults) ?? (await toAnswer());
    entry.status = answer.status;
    await sendAnswer(context.env.outgoing, answer, 'contentLength', faults);
    return RESPONSE_ALREADY_SENT;
  };

  // Spec: six query parameters, all of them sent.
  app.get('/authorize', (context) => {
    const query = new URL(context.req.url).searchParams;
    const account = options.find(query.get('advertiser_id') ?? '');
    return send(context, 'authorize', account, () => {
      const redirectUri = query.get('redirect_uri') ?? '';
      const isRegistered = client.redirectUris?.includes(redirectUri) ?? URL.canParse(redirectUri);
      // Never redirects to an address that the client did not register.
      if (query.get('client_id') !== client.clientId || !isRegistered) return toPage(400, renderRefusal());
      const state = query.get('state');
      const error = toAuthorizeError(query, account);
      if (error !== null || account === null || state === null) {
        if (options.first.choices.authorizeRefused === 'page') return toPage(400, renderRefusal());
        return toRedirect(redirectUri, [['error', error ?? 'invalid_request'], ...toState(state)]);
      }
      // After a reload or the back button, the same person is signed in.
      const before = [...asked.values()].find((one) => one.state === state);
      const candidate = before?.candidate ?? options.nextCandidate();
      const consent = { account, candidate, redirectUri, state };
      if (account.choices.consent !== 'ask') return toDecided(consent, account.choices.consent, grants);
      const number = randomUUID();
      asked.set(number, consent);
      return toPage(200, renderConsent(consent.candidate.person, account.employer, number));
    });
  });

  // The form of the sandbox's consent page; not part of the API.
  app.post('/consent', async (context) => {
    const form = new URLSearchParams(await context.req.text());
    const consent = asked.get(form.get('number') ?? '');
    const answer = consent
      ? toDecided(consent, form.get('decision') === 'allow' ? 'allow' : 'deny', grants)
      : await toPage(400, renderRefusal());
    await sendAnswer(context.env.outgoing, answer, 'contentLength', []);
    return RESPONSE_ALREADY_SENT;
  });

  app.post('/token', async (context) => {
    const form = new URLSearchParams(await context.req.text());
    const code = form.get('code') ?? '';
    const account = grants.issued().find((grant) => grant.code === code)?.account ?? null;
    return send(context, 'token', account, () => {
      const refuse = (error: string, status = 400) => toTokenError(account ?? options.first, error, status);
      if (!isClient(client, context.req.header('authorization'))) return refuse('invalid_client', 401);
      const type = context.req.header('content-type')?.split(';')[0]?.trim().toLowerCase();
      if (type !== 'application/x-www-form-urlencoded') return refuse('invalid_request');
      if (form.get('grant_type') !== 'authorization_code') return refuse('unsupported_grant_type');
      const grant = grants.exchange(code, form.get('redirect_uri') ?? '');
      return grant ? toToken(grant) : refuse('invalid_grant');
    });
  });
  return app;
}

function toAuthorizeError(query: URLSearchParams, account: Account | null): string | null {
  if (query.get('response_type') !== 'code') return 'unsupported_response_type';
  if (query.get('scope') !== 'r_profile_apply') return 'invalid_scope';
  return account === null || !query.get('state') ? 'invalid_request' : null;
}

function toDecided(consent: Consent, decision: 'allow' | 'deny', grants: Grants): WireAnswer {
  const { account, candidate, redirectUri, state } = consent;
  const { denial, codeShape } = account.choices;
  if (decision === 'deny' && denial !== 'errorAndCode') {
    return toRedirect(redirectUri, [...(denial === 'error' ? [accessDenied] : []), ...toState(state)]);
  }
  const { code } = grants.issueCode(account, candidate, redirectUri);
  const error = decision === 'deny' ? [accessDenied] : [];
  return toRedirect(redirectUri, [['code', code], ...error, ...toState(state)], codeShape === 'barePlus');
}

const accessDenied: [string, string] = ['error', 'access_denied'];

function toState(state: string | null): [string, string][] {
  return state === null ? [] : [['state', state]];
}

/** Spec: a redirect to redirect_uri with `code` and the unchanged `state`. */
function toRedirect(redirectUri: string, parameters: readonly [string, string][], bare = false): WireAnswer {
  const toValue = (text: string) =>
    bare ? encodeURIComponent(text).replace(/%(?:2B|2F|3D)/g, decodeURIComponent) : encodeURIComponent(text);
  const query = parameters.map(([name, value]) => `${name}=${toValue(value)}`).join('&');
  const location = `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${query}`;
  return { status: 302, headers: { Location: location, 'Cache-Control': 'no-store' }, body: null };
}

/** Spec: `Authorization: Basic <base64(client_id:client_secret)>`, both unencoded. */
function isClient({ clientId, clientSecret }: OAuthClient, header: string | undefined): boolean {
  const presented = header?.startsWith('Basic ') ? Buffer.from(header.slice(6), 'base64').toString('utf8') : '';
  return presented === `${clientId}:${clientSecret}`;
}

/** Spec: Token response. */
function toToken({ token, account }: Grant): WireAnswer {
  const { expiresIn, tokenLifetimeSeconds: seconds, tokenType } = account.choices;
  const lifetimes = { seconds, text: String(seconds), zero: 0, negative: -1, absent: undefined };
  return toJson(200, { access_token: token, token_type: tokenType, expires_in: lifetimes[expiresIn] });
}

function toTokenError({ choices }: Account, error: string, status: number): WireAnswer | Promise<WireAnswer> {
  switch (choices.tokenError) {
    case 'html500':
      return toPage(500, renderRefusal());
    case 'ok200':
      return toJson(200, { error });
    case 'emptyBody':
      return { status: 200, headers: {}, body: [] };
    default:
      return toJson(status, { error, error_description: 'The request is not accepted.' });
  }
}

function toJson(status: number, value: object): WireAnswer {
  const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' };
  return { status, headers, body: [Buffer.from(JSON.stringify(value))] };
}

async function toPage(status: number, page: ReturnType<typeof renderRefusal>): Promise<WireAnswer> {
  const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' };
  return { status, headers, body: [Buffer.from(String(await page))] };
}

// The sandbox: a job board that serves the API with invented people and behaves as a test demands. All its state is in memory.
// It shares no code with Intake's client of the API.

import type { AddressInfo } from 'node:net';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { Account, type AdvertiserOptions, type BoardAdvertiser } from '../account/account.ts';
import { inventCandidate } from '../account/candidates.ts';
import { createStock } from '../people/people.ts';
import { loadTemplates } from '../people/templates.ts';
import { createControl } from './control.ts';
import { createGrants, type Grant } from './grants.ts';
import { createOAuth, type OAuthClient } from './oauth.ts';
import { toOpenApi } from './openapi.ts';
import { renderAssumptions } from './page.ts';
import { createRequestLog, type RequestEntry } from './request-log.ts';
import { createV1 } from './v1.ts';
import { createV2 } from './v2.ts';

export interface SandboxOptions extends AdvertiserOptions {
  /** The same seed gives the same bytes, on the same day (UTC) or with the same `now`. */
  readonly seed?: number;
  readonly host?: string;
  /** 0: any free port. */
  readonly port?: number;
  /** The clock. With it, the initial applications end at its current time; without it, at the last midnight (UTC). */
  readonly now?: () => number;
  /** Further accounts. */
  readonly advertisers?: readonly AdvertiserOptions[];
  /** The OAuth client. */
  readonly client?: Partial<OAuthClient>;
}

/** A running sandbox. It is its first advertiser, and more; `advertiser(id)` returns the others. */
export interface Sandbox extends BoardAdvertiser, AsyncDisposable {
  /** {base_url} and {auth_url}, without a trailing slash. */
  readonly url: string;
  readonly client: OAuthClient;
  /** The consents with their codes and tokens, for tests that search for leaked ones. */
  grants(): readonly Grant[];
  readonly advertisers: readonly BoardAdvertiser[];
  advertiser(advertiserId: bigint): BoardAdvertiser;
  addAdvertiser(options?: AdvertiserOptions): BoardAdvertiser;
  /** Requests to the API, oldest first. */
  requests(): RequestEntry[];
  clearRequests(): void;
}

const dayMs = 86_400_000;

/** Starts a sandbox; disposing stops it. */
export async function openSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { seed = 1, host = '127.0.0.1', port = 0, now = Date.now } = options;
  const templates = loadTemplates();
  const stock = createStock(seed);
  const accounts: Account[] = [];
  const byCredential = new Map<string, Account>();
  const log = createRequestLog(now);
  let reached = '';
  // The history ends at midnight: recent enough for the views of recent days, and the same for every sandbox started that day.
  const historyEndsAt = options.now ? now() : Math.floor(now() / dayMs) * dayMs;

  const addAdvertiser = (wanted: AdvertiserOptions = {}): Account => {
    const advertiserId = wanted.advertiserId ?? 20_000_001n + BigInt(accounts.length);
    const credential = wanted.credential ?? `sandbox-credential-${advertiserId}`;
    if (accounts.some((one) => one.advertiserId === advertiserId) || byCredential.has(credential)) {
      throw new RangeError(`Advertiser ${advertiserId} or its credential already exists.`);
    }
    const { applications = 0, weeks = 52, choices = {}, firstId = 100_001n } = wanted;
    const account = new Account({
      seed,
      advertiserId,
      credential,
      applications,
      choices,
      templates,
      stock,
      now,
      weeks,
      historyEndsAt,
      host: () => reached,
      firstId,
    });
    accounts.push(account);
    byCredential.set(credential, account);
    return account;
  };
  const findAdvertiser = (advertiserId: bigint): Account => {
    const found = accounts.find((one) => one.advertiserId === advertiserId);
    if (!found) throw new RangeError(`There is no advertiser ${advertiserId}.`);
    return found;
  };
  const first = addAdvertiser({ ...options, applications: options.applications ?? 500 });
  for (const more of options.advertisers ?? []) addAdvertiser(more);

  const grants = createGrants(now);
  const client: OAuthClient = {
    clientId: 'sandbox-client',
    clientSecret: 'sandbox-client-secret',
    redirectUris: null,
    ...options.client,
  };
  let candidates = 0;
  const nextCandidate = () => {
    candidates += 1;
    return inventCandidate(stock, templates, seed, candidates);
  };
  const findById = (id: string) => accounts.find((one) => String(one.advertiserId) === id) ?? null;

  const app = new Hono<{ Bindings: HttpBindings }>();
  const control = createControl({ accounts, find: findAdvertiser, addAdvertiser, log });
  app.route('/v1', createV1({ accounts: byCredential, first, log }));
  app.route('/v2', createV2({ grants, first, log }));
  app.route('/api/iam/oauth2', createOAuth({ client, grants, first, find: findById, nextCandidate, log }));
  app.route(
    '/sandbox',
    control.get('/openapi.json', (context) => context.json(toOpenApi(new URL(context.req.url).origin))),
  );
  app.get('/', (context) => context.html(renderAssumptions(accounts)));

  const server = createAdaptorServer({ fetch: app.fetch });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  reached = `${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;

  return Object.assign(first, {
    url: `http://${reached}`,
    client,
    grants: grants.issued,
    advertisers: accounts,
    advertiser: findAdvertiser,
    addAdvertiser,
    requests: log.entries,
    clearRequests: log.clear,
    async [Symbol.asyncDispose]() {
      for (const account of accounts) account.startArrivals(0);
      if ('closeAllConnections' in server) server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  });
}

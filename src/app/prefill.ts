// Composes the candidate side, which is a process of its own: a client per configured account, the prefill steps, the routes, the public
// port, and what they are limited to. Opens and closes resources; decides nothing about prefills. It writes the rows of prefills only:
// workers create the schema, learn the accounts, and delete what was not redeemed.
import { once } from 'node:events';
import type { Config } from '../config.ts';
import { SchemaTrouble, SettingTrouble, Trouble } from '../domain/trouble.ts';
import type { Log } from '../log.ts';
import { openConnections } from '../source/http.ts';
import { createPrefillSource } from '../source/prefill.ts';
import type { Store } from '../store/store.ts';
import { createSlots } from '../sync/limits.ts';
import type { PrefillAccount, PrefillDeps } from '../sync/prefill.ts';
import { startPresence } from '../sync/presence.ts';
import { requireKey } from '../sync/privacy/erase.ts';
import { type RetryOptions, retry } from '../sync/retry.ts';
import { createWatchdog, type Ending } from '../sync/worker/watchdog.ts';
import { createPrefillRoutes } from '../web/prefill/routes.ts';
import { type HttpServer, openServer } from '../web/server.ts';
import { openAnyStore, toOwner } from './database.ts';
import { openBlobsOf, openSpoolOf } from './storage.ts';

/** Larger than any expected resume. */
const resumeMaxBytes = 20_000_000;
/** Most callbacks that fetch and store at once; the others wait. Each holds a profile of up to 2 MB, and up to 1 MB of a resume. */
const callbacksInHand = 16;
/** A request to the source that takes longer has failed, because a browser is waiting. */
const longestRequestMs = 30_000;
/** How long requests in progress may take when the process ends: a resume is fetched and stored. A supervisor waits 25 s or more. */
const closingMs = 15_000;
const schemaWaitMs = 120_000;

export type PrefillConfig = Config<'database' | 'blobs' | 'prefill' | 'privacy'>;

/**
 * Serves the candidate routes until the signal aborts. Waits for its database, and up to two minutes for the schema. `ending` ends the
 * process when its event loop stands still.
 */
export async function runPrefill(config: PrefillConfig, log: Log, ending: Ending, signal: AbortSignal): Promise<void> {
  requireSites(config);
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openAnyStore(config, 'prefill'));
  const watchdog = createWatchdog();
  stack.use(watchdog.start(ending));
  const onWait: RetryOptions['onWait'] = (err, waitMs, attempt) =>
    log.warn({ attempt, waitMs: Math.round(waitMs), err }, 'waiting for the database or the store of files');
  const waiting = { retryForMs: Number.POSITIVE_INFINITY, signal, onWait };
  const until = performance.now() + schemaWaitMs;
  const presence = await retry(waiting, async () => {
    await requireSchema(store, performance.now() < until);
    await requireKey({ privacy: { loadKeyState: store.prefills.loadPrefillKeyState } });
    return await startPresence(store, toOwner('prefill'));
  });
  const { outdated } = stack.use(presence);
  const server = stack.use(await retry(waiting, () => openPrefillServer(config, store, log, signal)));
  log.info({ prefill: server.url }, 'the public port answers');
  const ended = AbortSignal.any([signal, outdated]);
  if (!ended.aborted) await once(ended, 'abort');
  outdated.throwIfAborted();
}

/** While `mayCome`, a schema that this version cannot use is a temporary trouble: a worker may be migrating it. */
async function requireSchema(store: Store, mayCome: boolean): Promise<void> {
  await store.schema.requireSchema().catch((error: unknown) => {
    if (!(error instanceof SchemaTrouble) || !mayCome) throw error;
    throw new Trouble('local', error.message, { at: 'database', cause: error });
  });
}

function requireSites({ prefill }: Config<'prefill'>) {
  if (prefill !== null && prefill.sites.length > 0) return prefill;
  if (prefill !== null)
    throw new SettingTrouble('No account in ADVERTISERS_FILE has prefillKey and prefillReturnUrls.');
  throw new SettingTrouble('Prefill is off: set AUTH_URL and the settings beside it, as docs/prefill.md says.');
}

/** Opens the public port with its own blob store client. Closing it closes both; the store stays open. */
export async function openPrefillServer(
  config: Config<'blobs' | 'prefill'>,
  store: Store,
  log: Log,
  signal: AbortSignal,
  now = Date.now,
): Promise<HttpServer> {
  const { blobs: limits, trustedProxies } = config;
  const prefill = requireSites(config);
  await using stack = new AsyncDisposableStack();
  const blobs = stack.use(await openBlobsOf(config, store, signal, 'add'));
  const idleTimeoutMs = Math.min(limits.SOURCE_TIMEOUT, longestRequestMs);
  const connections = stack.adopt(openConnections(callbacksInHand, idleTimeoutMs), (agent) => agent.destroy());
  const accounts = new Map<string, PrefillAccount>();
  for (const { name, url, advertiserId, key, returnUrls } of prefill.sites) {
    try {
      await store.advertisers.lookUp(name, advertiserId);
    } catch (error) {
      // A wrongly configured account must not stop the prefills of the others.
      if (error instanceof Trouble && error.kind === 'mismatch') continue;
      throw error;
    }
    const source = createPrefillSource({
      ...{ url, authUrl: prefill.AUTH_URL, clientId: prefill.OAUTH_CLIENT_ID, redirectUri: prefill.OAUTH_REDIRECT_URI },
      ...{ connections, totalTimeoutMs: longestRequestMs, resumeMaxBytes },
      clientSecret: () => prefill.OAUTH_CLIENT_SECRET.current(),
    });
    accounts.set(name, { source, returnUrls, bearerToken: () => key.current() });
  }
  const deps: PrefillDeps = {
    ...{ store, blobs, accounts, ttlMs: prefill.PREFILL_TTL },
    ...{ spool: openSpoolOf(), slots: createSlots(callbacksInHand) },
    onEnd({ advertiserId, prefillId, outcome, reason, trouble }) {
      const facts = { advertiserId, prefillId, outcome, reason };
      if (trouble === null) log.info(facts, 'prefill ended');
      else log.warn({ ...facts, err: trouble }, 'prefill ended with an error');
    },
  };
  const { fetch } = createPrefillRoutes({
    ...{ deps, now, trustedProxies },
    redirectUri: prefill.OAUTH_REDIRECT_URI,
    sessionSecret: () => prefill.SESSION_SECRET.current(),
    onError: (route, err) => log.error({ route, err }, 'prefill request failed'),
  });
  const { HOST: host, PORT: port } = prefill;
  const server = stack.use(await openServer({ host, port, fetch, setting: 'PORT', closingMs }));
  const owned = stack.move();
  return { url: server.url, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

// The candidate side put together: a client per configured account, the passes, the routes, and the public port.
// Opens and closes; decides nothing about what a prefill is.
import type { Config } from '../config.ts';
import type { BlobStore } from '../domain/blob.ts';
import type { Log } from '../log.ts';
import { createPrefillSource, type PrefillSource } from '../source/prefill.ts';
import type { Store } from '../store/store.ts';
import { lapsePrefills, type PrefillDeps, type PrefillEnd } from '../sync/prefill.ts';
import { createPrefillRoutes } from '../web/prefill.ts';
import { openServer, type Server } from '../web/server.ts';
import { openStoreOf } from './database.ts';
import { findConfigured, openBlobsOf, version } from './opening.ts';

/** The public port. Closing it ends what it opened; the store and the blobs stay with their owner. */
export interface PrefillServer extends Server {
  /** One maintenance pass: lets go what was never redeemed in time. */
  lapse(signal: AbortSignal): Promise<{ readonly lapsed: number }>;
}

interface PrefillParts {
  readonly source: Config<'source'>['source'];
  readonly prefill: NonNullable<Config<'prefill'>['prefill']>;
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly log: Log;
  readonly now: () => number;
}

/** No resume is as large; it is held in memory while a browser waits. */
const resumeMaxBytes = 20_000_000;
/** A browser waits: what takes longer has failed. */
const longestRequestMs = 30_000;
/** For candidates who are on their way through when the worker ends. */
const closingMs = 5_000;

/** The public port with blobs of its own, and a store of its own where none is given; null when prefill is off. */
export async function openPrefillServer(
  config: Config<'database' | 'source' | 'blobs' | 'prefill' | 'privacy'>,
  request: {
    readonly log: Log;
    readonly signal: AbortSignal;
    readonly now?: () => number;
    readonly store?: Store;
  },
): Promise<PrefillServer | null> {
  const { log, signal, now = Date.now } = request;
  const { source, prefill } = config;
  if (prefill === null) return null;
  const stack = new AsyncDisposableStack();
  try {
    const store = request.store ?? stack.use(await openStoreOf(config, 'prefill', signal)).store;
    const blobs = stack.use(await openBlobsOf(config, store, signal));
    const server = stack.use(await openPrefill({ source, prefill, store, blobs, log, now }));
    return { url: server.url, lapse: server.lapse, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function openPrefill(parts: PrefillParts): Promise<PrefillServer> {
  const { source, prefill, store, blobs, log, now } = parts;
  const stack = new AsyncDisposableStack();
  try {
    const sources = new Map<string, PrefillSource>();
    for (const account of source.advertisers) {
      // An account that is configured wrongly costs no other its candidates.
      if ((await findConfigured(store, account)) === null) continue;
      const client = createPrefillSource({
        url: account.url,
        authUrl: prefill.authUrl,
        clientId: prefill.clientId,
        clientSecret: () => prefill.clientSecret.current(),
        redirectUri: prefill.redirectUri,
        idleTimeoutMs: Math.min(source.idleTimeoutMs, longestRequestMs),
        totalTimeoutMs: longestRequestMs,
        connections: source.concurrency,
        userAgent: `intake/${version}`,
        resumeMaxBytes,
      });
      sources.set(account.name, stack.use(client));
    }
    const deps: PrefillDeps = { store, blobs, sources, ttlMs: prefill.ttlMs, onEnd: (end) => logEnd(log, end) };
    const routes = createPrefillRoutes({
      deps,
      redirectUri: prefill.redirectUri,
      returnUrls: prefill.returnUrls,
      key: () => prefill.key.current(),
      sessionSecret: () => prefill.sessionSecret.current(),
      now,
      onError: (route, err) => log.error({ route, err }, 'a prefill request failed'),
    });
    const server = stack.use(
      await openServer({ host: prefill.host, port: prefill.port, fetch: routes.fetch, setting: 'PORT', closingMs }),
    );
    return {
      url: server.url,
      lapse: (signal) => lapsePrefills(deps, signal),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

function logEnd(log: Log, { advertiserId, prefillId, outcome, reason, trouble }: PrefillEnd): void {
  const facts = { advertiserId, prefillId, outcome, reason, ...(trouble !== null && { err: trouble }) };
  if (trouble === null) log.info(facts, 'a prefill ended');
  else log.warn(facts, 'a prefill met trouble');
}

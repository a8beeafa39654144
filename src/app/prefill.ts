// The candidate side put together: a client per configured account, the passes, the routes, and the public port.
// Opens and closes; decides nothing about what a prefill is.
import type { Config } from '../config.ts';
import type { Log } from '../log.ts';
import { createPrefillSource, type PrefillSource } from '../source/prefill.ts';
import type { Store } from '../store/store.ts';
import type { PrefillDeps, PrefillEnd } from '../sync/prefill.ts';
import { createPrefillRoutes } from '../web/prefill/routes.ts';
import { type HttpServer, openServer } from '../web/server.ts';
import { findConfigured, openBlobsOf, version } from './resources.ts';

/** No resume is as large; it is held in memory while a browser waits. */
const resumeMaxBytes = 20_000_000;
/** A browser waits: what takes longer has failed. */
const longestRequestMs = 30_000;
/** For candidates who are on their way through when the worker ends. */
const closingMs = 5_000;

/** The public port with blobs of its own; null when prefill is off. Closing it ends what it opened; the store stays with its owner. */
export async function openPrefillServer(
  config: Config<'source' | 'blobs' | 'prefill'>,
  request: {
    readonly store: Store;
    readonly log: Log;
    readonly signal: AbortSignal;
    readonly now?: () => number;
  },
): Promise<HttpServer | null> {
  const { store, log, signal, now = Date.now } = request;
  const { source, prefill } = config;
  if (prefill === null) return null;
  await using stack = new AsyncDisposableStack();
  const blobs = stack.use(await openBlobsOf(config, store, signal));
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
  const { fetch } = createPrefillRoutes({
    deps,
    redirectUri: prefill.redirectUri,
    returnUrls: prefill.returnUrls,
    key: () => prefill.key.current(),
    sessionSecret: () => prefill.sessionSecret.current(),
    now,
    onError: (route, err) => log.error({ route, err }, 'a prefill request failed'),
  });
  const { host, port } = prefill;
  const server = stack.use(await openServer({ host, port, fetch, setting: 'PORT', closingMs }));
  const owned = stack.move();
  return {
    url: server.url,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function logEnd(log: Log, { advertiserId, prefillId, outcome, reason, trouble }: PrefillEnd): void {
  const facts = { advertiserId, prefillId, outcome, reason, ...(trouble !== null && { err: trouble }) };
  if (trouble === null) log.info(facts, 'a prefill ended');
  else log.warn(facts, 'a prefill met trouble');
}

// Composes the candidate side: a client per configured account, the prefill steps, the routes, and the public port.
// Opens and closes resources; decides nothing about prefills.
import type { Config } from '../config.ts';
import { Trouble } from '../domain/trouble.ts';
import type { Log } from '../log.ts';
import { createPrefillSource, type PrefillSource } from '../source/prefill.ts';
import type { Store } from '../store/store.ts';
import type { PrefillDeps, PrefillEnd } from '../sync/prefill.ts';
import { createPrefillRoutes } from '../web/prefill/routes.ts';
import { type HttpServer, openServer } from '../web/server.ts';
import { openBlobsOf, version } from './resources.ts';

/** Larger than any expected resume. The resume is held in memory while the browser waits. */
const resumeMaxBytes = 20_000_000;
/** A request to the source that takes longer has failed, because a browser is waiting. */
const longestRequestMs = 30_000;
/** How long requests in progress may take to finish when the worker ends. */
const closingMs = 5_000;

export interface PrefillServing {
  readonly store: Store;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

/** Opens the public port with its own blob store client; null if prefill is off. Closing it closes both; the store stays open. */
export async function openPrefillServer(
  config: Config<'source' | 'blobs' | 'prefill'>,
  { store, log, signal, now = Date.now }: PrefillServing,
): Promise<HttpServer | null> {
  const { source, prefill } = config;
  if (prefill === null) return null;
  await using stack = new AsyncDisposableStack();
  const blobs = stack.use(await openBlobsOf(config, store, signal));
  const sources = new Map<string, PrefillSource>();
  for (const account of source.advertisers) {
    try {
      await store.advertisers.ensure(account.name, account.advertiserId);
    } catch (error) {
      // A wrongly configured account must not stop the prefills of the others.
      if (error instanceof Trouble && error.kind === 'mismatch') continue;
      throw error;
    }
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
    onError: (route, err) => log.error({ route, err }, 'prefill request failed'),
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
  if (trouble === null) log.info(facts, 'prefill ended');
  else log.warn(facts, 'prefill ended with an error');
}

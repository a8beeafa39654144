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

/** The public port. Closing it ends what it opened; the store and the blobs stay with their owner. */
export interface PrefillServer extends Server {
  /** One maintenance pass: lets go what was never redeemed in time. */
  lapse(signal: AbortSignal): Promise<{ readonly lapsed: number }>;
}

export interface PrefillParts {
  readonly source: Config<'source'>['source'];
  readonly prefill: NonNullable<Config<'prefill'>['prefill']>;
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly log: Log;
  readonly userAgent: string;
  readonly now: () => number;
}

/** No resume is as large; it is held in memory while a browser waits. */
const resumeMaxBytes = 20_000_000;
/** A browser waits: what takes longer has failed. */
const longestRequestMs = 30_000;

/** Opens the public port. */
export async function openPrefill(parts: PrefillParts): Promise<PrefillServer> {
  const { source, prefill, store, blobs, log, now } = parts;
  const stack = new AsyncDisposableStack();
  try {
    const sources = new Map<string, PrefillSource>();
    for (const account of source.advertisers) {
      await store.ensureAdvertiser(account.name, account.advertiserId);
      const client = createPrefillSource({
        url: account.url,
        authUrl: prefill.authUrl,
        clientId: prefill.clientId,
        clientSecret: () => prefill.clientSecret.current(),
        redirectUri: prefill.redirectUri,
        idleTimeoutMs: Math.min(source.idleTimeoutMs, longestRequestMs),
        totalTimeoutMs: longestRequestMs,
        connections: source.concurrency,
        userAgent: parts.userAgent,
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
    const server = stack.use(await openServer({ host: prefill.host, port: prefill.port, fetch: routes.fetch }));
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

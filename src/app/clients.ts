// Opens the configured HTTP clients: those of the source and of webhooks.
import { type Config, toWebhookSecrets } from '../config.ts';
import { version } from '../domain/version.ts';
import { createSource, type Source, type SourceOptions } from '../source/client.ts';
import { type Connections, openConnections } from '../source/http.ts';
import type { Store } from '../store/store.ts';
import { createRateLimiter, honourRetryAfter } from '../sync/rate-limiter.ts';
import { openWebhookClient, type WebhookClient } from '../webhooks/send.ts';

/** A larger list answer is abandoned and requested in smaller ranges, so that memory stays bounded whatever the source sends. */
const listMaxBytes = 3_000_000;
/** Far more than any expected application. A larger one is shown in the status and stays unread: it would take twenty times its size. */
const applicationMaxBytes = 16_000_000;
/** Time limit of one answer, even if bytes keep arriving. */
export const totalTimeoutMs = 600_000;

export type ConfiguredAdvertiser = Config<'source'>['source']['advertisers'][number];

/** The client of one account for read-only commands. It records only the shared rate limit and Retry-After. */
export function openSourceToLook(
  config: Config<'source'>,
  store: Store | null,
  account: ConfiguredAdvertiser,
  connections: Connections,
): Source {
  const { name, url } = account;
  // The rate limit is shared through the database. Without a database, the single request of a check is sent at once.
  if (store === null) return openSource(config, null, account, async () => {}, { connections });
  const takeSlot = createRateLimiter(store, url, config.source.SOURCE_RATE);
  const memory = { hasAnswered: () => store.advertisers.hasAnswered(name, url), noteAnswered: async () => {} };
  return openSource(config, store, account, takeSlot, { connections, memory });
}

export function openConnectionsOf({ source }: Config<'source'>): Connections {
  return openConnections(source.SOURCE_CONCURRENCY, source.SOURCE_TIMEOUT);
}

export function openSource(
  config: Config<'source'>,
  store: Store | null,
  { name, url, credential }: ConfiguredAdvertiser,
  takeSlot: (signal: AbortSignal) => Promise<void>,
  more: Pick<SourceOptions, 'connections' | 'onListBytes' | 'memory'>,
): Source {
  return createSource({
    url,
    credential: () => credential.current(),
    format: config.source.SOURCE_FORMAT,
    totalTimeoutMs,
    listMaxBytes,
    applicationMaxBytes,
    userAgent: `intake/${version}`,
    takeSlot,
    // Without a database, nothing is shared with other processes and nothing is recorded.
    ...(store !== null && {
      takeSlot: honourRetryAfter(store, name, takeSlot),
      // If this fails, the process still honours the Retry-After, and the other workers receive their own from the source.
      onRetryAfter: (retryAfterMs) => store.advertisers.noteRetryAfter(name, retryAfterMs).catch(() => {}),
      memory: {
        hasAnswered: () => store.advertisers.hasAnswered(name, url),
        noteAnswered: () => store.advertisers.noteAnswered(name, url),
      },
    }),
    ...more,
  });
}

export function openWebhook(
  { url, secret }: Config<'webhooks'>['webhooks']['endpoints'][number],
  { webhooks }: Config<'webhooks'>,
): WebhookClient {
  return openWebhookClient({
    url,
    secrets: () => toWebhookSecrets(secret),
    allowPrivate: webhooks.allowPrivate,
  });
}

/** A client per endpoint, so that none waits for another. */
export function openWebhooks(config: Config<'webhooks'>, stack: AsyncDisposableStack) {
  return config.webhooks.endpoints.map((endpoint) => ({ ...endpoint, ...stack.use(openWebhook(endpoint, config)) }));
}

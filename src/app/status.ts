// What `intake status` needs, and nothing beside it.
import type { Config } from '../config.ts';
import { type Status, toStatus } from '../domain/status.ts';
import { openStoreOf } from './database.ts';

/** What a person asks of `intake status`, once or again and again. */
export async function openStatus(
  config: Config<'database' | 'privacy' | 'sync'>,
  signal: AbortSignal,
): Promise<{ load(): Promise<Status> } & AsyncDisposable> {
  const app = await openStoreOf(config, 'status', signal);
  const staleAfterMs = config.sync.staleAfterMs();
  return {
    load: async () => toStatus(new Date(), await app.store.loadAdvertiserStatus(), staleAfterMs),
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  };
}

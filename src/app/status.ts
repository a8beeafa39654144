// Loads the status: the same value for the command, the page, the metrics and the probes.
import type { Config } from '../config.ts';
import { type Status, toStatus } from '../domain/status.ts';
import type { Wait } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';

/** `ownWaits` are those of this process that no other one can see. */
export async function loadStatus(
  store: Store,
  { sync: { staleAfterMs, proofLimit, verifyWithinMs }, extract }: Config<'sync' | 'extract'>,
  ownWaits: readonly Wait[] = [],
): Promise<Status> {
  return toStatus(new Date(), await store.reports.loadStatus(), staleAfterMs, {
    waits: [...ownWaits, ...(await store.advertisers.loadWaits())],
    webhooks: await store.webhooks.load(),
    extract: await store.extracts.loadStatus(extract.watched),
    proofLimit,
    verifyWithinMs,
  });
}

// Loads the status: the same value for the command, the page, the metrics and the probes.
import { type Config, toLocation } from '../config.ts';
import { isUsable, toSchemaTrouble } from '../domain/schema.ts';
import { type Status, toStatus } from '../domain/status/status.ts';
import { Trouble, type Wait } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';

/** `ownWaits` are those of this process that no other one can see. */
export async function loadStatus(
  store: Store,
  config: Config<'sync' | 'extract'>,
  ownWaits: readonly Wait[] = [],
): Promise<Status> {
  const watched = toWatched(config);
  return toStatus(new Date(), await store.reports.loadStatus(), {
    ...toLimits(config),
    waits: [...ownWaits, ...(await store.advertisers.loadWaits())],
    webhooks: await store.webhooks.loadWebhooks(),
    extract: watched && {
      ...watched,
      publishedAt: (await store.extracts.findExtract(watched.location))?.published_at ?? null,
    },
  });
}

/** The status, as far as the schema supports it. Throws SchemaTrouble if the schema is absent or too different. */
export async function loadAnyStatus(store: Store, config: Config<'sync' | 'extract'>): Promise<Status> {
  const schema = await store.schema.loadSchema();
  if (isUsable(schema)) return await loadStatus(store, config);
  if (schema.state === 'absent') throw toSchemaTrouble(schema);
  // An older schema may not have what the rest of the status needs.
  const advertisers = await store.reports.loadStatus().catch((error: unknown) => {
    throw error instanceof Trouble ? error : toSchemaTrouble(schema);
  });
  return toStatus(new Date(), advertisers, { ...toLimits(config), schema });
}

/** The ages after which the status reports a problem. `staleAfterMs` is null where nothing polls by schedule. */
export function toLimits({ sync }: Config<'sync'>) {
  return {
    staleAfterMs: sync.SYNC_SCHEDULE === null ? null : sync.SYNC_WITHIN,
    proofLimitMs: sync.RECHECK_WITHIN ?? (sync.RECHECK_SCHEDULE === null ? 14 : 2) * 86_400_000,
    verifyWithinMs: sync.VERIFY_WITHIN,
  };
}

/** How old the extract of the schedule may be; null without a schedule. */
export function toWatched({ extract: { EXTRACT_URL, EXTRACT_SCHEDULE, EXTRACT_WITHIN } }: Config<'extract'>) {
  if (EXTRACT_URL === null || EXTRACT_SCHEDULE === null) return null;
  return { location: toLocation(EXTRACT_URL), withinMs: EXTRACT_WITHIN };
}

// Composes `intake status` with as few imports as possible, so that it starts quickly.
import type { Config } from '../config.ts';
import { toSchemaTrouble } from '../domain/schema.ts';
import { type CommonFacts, type Status, toStatus, toUnknownStatus } from '../domain/status.ts';
import { Trouble } from '../domain/trouble.ts';
import { openStore, type Store } from '../store/store.ts';
import { isTemporary } from '../sync/retry.ts';
import { openPlace, toStoreOptions } from './database.ts';

/** Loads the status for `intake status`. Sends no query before the first `load` or `watch`. */
export interface StatusView extends AsyncDisposable {
  load(): Promise<Status>;
  /** For repeated calls: shows a temporarily unavailable database as unreachable. Throws errors that need an operator. */
  watch(): Promise<Status>;
}

export async function openStatus(config: Config<'database' | 'privacy' | 'sync'>): Promise<StatusView> {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await openPlace(config));
  const store = stack.use(openStore(toStoreOptions(config, place, 'status')));
  const { staleAfterMs, proofLimit, verifyWithinMs } = config.sync;
  const limits = { proofLimit, verifyWithinMs };
  const owned = stack.move();
  let awaySince: Date | null = null;
  return {
    load: () => loadStatus(store, staleAfterMs, limits),
    async watch() {
      try {
        const status = await loadStatus(store, staleAfterMs, limits);
        awaySince = null;
        return status;
      } catch (error) {
        if (!isTemporary(error)) throw error;
        awaySince ??= new Date();
        return toUnknownStatus(new Date(), awaySince, error.message);
      }
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The status, as far as the schema supports it. Throws SchemaTrouble if the schema is absent or too different. */
async function loadStatus(
  store: Store,
  staleAfterMs: number | null,
  limits: Pick<CommonFacts, 'proofLimit' | 'verifyWithinMs'>,
): Promise<Status> {
  const schema = await store.schema.load();
  if (schema.state === 'absent') throw toSchemaTrouble(schema);
  const advertisers = await store.reports.loadStatus().catch((error: unknown) => {
    throw schema.state === 'current' || error instanceof Trouble ? error : toSchemaTrouble(schema);
  });
  // An older schema may not have this column yet.
  const waits = schema.state === 'current' ? await store.advertisers.loadWaits() : [];
  return toStatus(new Date(), advertisers, staleAfterMs, { schema, waits, ...limits });
}

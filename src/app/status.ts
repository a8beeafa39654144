// What `intake status` needs, and nothing beside it.
import type { Config } from '../config.ts';
import { toSchemaTrouble } from '../domain/schema.ts';
import { type CommonFacts, type Status, toStatus, toUnknownStatus } from '../domain/status.ts';
import { Trouble } from '../domain/trouble.ts';
import { openStore, type Store } from '../store/store.ts';
import { isTemporary } from '../sync/retry.ts';
import { openPlace, toStoreOptions } from './database.ts';

/** What a person asks of `intake status`. Nothing is asked of the database before the first look. */
export interface StatusView extends AsyncDisposable {
  load(): Promise<Status>;
  /** The same, again and again: a database that restarts is shown as unreachable. What stays until someone acts is thrown. */
  watch(): Promise<Status>;
}

export async function openStatus(config: Config<'database' | 'privacy' | 'sync'>): Promise<StatusView> {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await openPlace(config));
  const store = stack.use(openStore(toStoreOptions(config, place, 'status')));
  const staleAfterMs = config.sync.staleAfterMs();
  const limits = { proofLimit: config.sync.proofLimit(), verifyWithinMs: config.sync.verifyWithinMs };
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

/** The status as far as the schema has it. Throws SchemaTrouble where nothing can be shown of it. */
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
  // A schema that is behind may not have them yet.
  const waits = schema.state === 'current' ? await store.waits.load() : [];
  return toStatus(new Date(), advertisers, staleAfterMs, { schema, waits, ...limits });
}

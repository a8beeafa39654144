// Composes `intake quarantine replay`: parses quarantined elements again with this version's parser.
import type { Config } from '../config.ts';
import { parseElement } from '../source/parse/list.ts';
import { requireKey } from '../sync/privacy/privacy-key.ts';
import { type ReplaySummary, replay } from '../sync/read/replay-quarantine.ts';
import { toActor, toOwner } from './actor.ts';
import { openStoreOf } from './database.ts';
import { type Chosen, toChosen } from './resources.ts';

/** Parses quarantined elements again. Returns a summary per advertiser. */
export async function replayQuarantine(
  config: Config<'database' | 'source' | 'privacy' | 'sync'>,
  request: Chosen & { readonly id: string | null },
): Promise<(ReplaySummary & { readonly name: string })[]> {
  await using app = await openStoreOf(config, 'quarantine', request.signal);
  await requireKey(app.store);
  const owner = toOwner('quarantine');
  const outcomes = [];
  for (const { name, advertiserId: configured } of toChosen(config, request.advertiser)) {
    const { advertiserId } = await app.store.advertisers.ensure(name, configured);
    if (advertiserId === null) continue;
    const { leaseMs } = config.sync;
    const summary = await replay(
      { store: app.store, parseElement },
      { name, advertiserId, id: request.id, owner, leaseMs, signal: request.signal },
    );
    outcomes.push({ name, ...summary });
    if (summary.read === 0) continue;
    const facts = { replayed: summary.read, added: summary.added };
    await app.store.privacy.recordAudit({
      ...{ advertiserId, action: 'quarantine', applicationId: null, by: toActor() },
      facts,
    });
  }
  return outcomes;
}

// Composes `intake quarantine`: lists elements, shows one in full, and parses them again with this version's parser.
import type { Config } from '../config.ts';
import { parseElement } from '../source/parse/list.ts';
import type { Quarantined, QuarantinedText } from '../store/applications/quarantine.ts';
import type { AuditEntry } from '../store/privacy/audit-log.ts';
import type { Store } from '../store/store.ts';
import { requireKey } from '../sync/privacy/privacy-key.ts';
import { type ReplaySummary, replay } from '../sync/read/replay-quarantine.ts';
import { toActor, toOwner } from './actor.ts';
import { openStoreOf } from './database.ts';
import { type Chosen, loadKnownIds, toChosen } from './resources.ts';

type QuarantineConfig = Config<'database' | 'source' | 'privacy' | 'sync'>;

/** Lists the quarantined elements without their contents. */
export async function listQuarantine(
  config: QuarantineConfig,
  request: Chosen & { readonly resolved: boolean },
): Promise<Quarantined[]> {
  await using app = await openStoreOf(config, 'quarantine', request.signal);
  const lists = [];
  for (const id of await loadKnownIds(config, app.store, request.advertiser)) {
    lists.push(await app.store.quarantine.load(id, { resolved: request.resolved, limit: 1_000 }));
  }
  return lists.flat();
}

/** Quarantined elements with their texts, by a prefix of their id. The access is recorded in the audit log. */
export async function showQuarantined(
  config: QuarantineConfig,
  request: Chosen & { readonly id: string },
): Promise<QuarantinedText[]> {
  await using app = await openStoreOf(config, 'quarantine', request.signal);
  const found: QuarantinedText[] = [];
  for (const advertiserId of await loadKnownIds(config, app.store, request.advertiser)) {
    found.push(...(await app.store.quarantine.loadTexts(advertiserId, { id: request.id, after: '', limit: 10 })));
  }
  // The id of an element without an application is a hash of its content, and would outlive an erasure in the audit log.
  for (const { advertiserId } of found) {
    await recordUse(app.store, advertiserId, { shown: 1 });
  }
  return found;
}

/** Parses quarantined elements again. Returns a summary per advertiser. */
export async function replayQuarantine(
  config: QuarantineConfig,
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
    await recordUse(app.store, advertiserId, { replayed: summary.read, added: summary.added });
  }
  return outcomes;
}

async function recordUse(store: Store, advertiserId: bigint, facts: AuditEntry['facts']): Promise<void> {
  await store.privacy.recordAudit({ advertiserId, action: 'quarantine', applicationId: null, by: toActor(), facts });
}

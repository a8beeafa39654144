// Parses quarantined elements again. An element that this version's parser can read becomes an application, as if a page had just shown it.
// It is committed like every page (lane, fence, tombstones), but as the oldest answer of all, so it never overwrites a stored application.
import { type Application, type Reject, sharedId } from '../../domain/application.ts';
import type { ReadPage } from '../../store/applications/diff-page.ts';
import type { Store } from '../../store/store.ts';
import { holdLane, type LaneRequest } from '../accounts/held-lane.ts';
import { commitApplications } from './commit-answer.ts';

export interface ReplayDeps {
  readonly store: Pick<Store, 'applications' | 'leases' | 'quarantine' | 'sweeps'>;
  /** Parses one element of the list; a Reject if it still cannot be used. */
  readonly parseElement: (text: string) => Application | Reject;
}

export interface ReplayRequest extends Omit<LaneRequest, 'lane'> {
  readonly advertiserId: bigint;
  /** Only this element; null is all. */
  readonly id: string | null;
}

export interface ReplaySummary {
  readonly read: number;
  /** Applications among them that were not stored before. */
  readonly added: number;
  /** Still without an id that is theirs alone. */
  readonly unusable: number;
}

const pageSize = 200;

export async function replay({ store, parseElement }: ReplayDeps, request: ReplayRequest): Promise<ReplaySummary> {
  const { advertiserId, id } = request;
  await using lane = await holdLane(store, { ...request, lane: 'backfill' });
  const counts = { read: 0, added: 0, unusable: 0 };
  for (let after = ''; ; ) {
    lane.signal.throwIfAborted();
    const waiting = await store.quarantine.loadTexts(advertiserId, { id, after, limit: pageSize });
    const readable: { readonly id: string; readonly application: Application }[] = [];
    for (const element of waiting) {
      const parsed = parseElement(element.text);
      if ('id' in parsed && element.reason !== sharedId) readable.push({ id: element.id, application: parsed });
      else counts.unusable += 1;
      after = element.id;
    }
    // Two elements may be the same application, and a page must hold each id only once.
    const chosen = [...new Map(readable.map((one) => [one.application.id, one])).values()];
    const toReplayed = (one: (typeof readable)[number]) => ({ id: one.id, applicationId: one.application.id });
    if (chosen.length > 0) {
      const startedAt = new Date();
      const page: ReadPage = {
        lease: lane.lease,
        advertiserId,
        seq: -(await store.sweeps.takeTicket()).seq,
        sweep: { sweepId: 0n, purpose: 'backfill', axis: 'id', low: 1n, high: null, startedAt },
        askedAt: startedAt,
        asked: null,
        applications: chosen.map(({ application }) => application),
        rejects: [],
        replayed: chosen.map(toReplayed),
      };
      const { added } = await commitApplications(store, page);
      counts.added += added;
      counts.read += readable.length;
      // Also resolves elements that changed nothing, and those of which another element of the same application was committed.
      await store.quarantine.resolve(advertiserId, readable.map(toReplayed));
    }
    if (waiting.length < pageSize) return counts;
  }
}

// Parses quarantined elements again. An element that this version's parser can read becomes an application, as if a page had just shown it.
// It is committed like every page (lane, fence, tombstones), but as the oldest answer of all, so it never overwrites a stored application.
import { type Application, inexactId, type Reject, sharedId } from '../../domain/application.ts';
import { type Applicant, isSomebodyElse } from '../../domain/copies.ts';
import type { Source } from '../../source/client.ts';
import type { ReadPage } from '../../store/applications/diff-page.ts';
import type { QuarantinedText } from '../../store/applications/quarantine.ts';
import type { Store } from '../../store/store.ts';
import { holdLane, type LaneHolder } from '../accounts/held-lane.ts';
import { commitAnswer } from './answers.ts';

export interface ReplayDeps {
  readonly store: Pick<Store, 'applications' | 'leases' | 'quarantine' | 'sweeps'>;
  readonly source: Pick<Source, 'toElement'> & {
    /** Parses one element of the list; a Reject if it still cannot be used. */
    readonly parseElement: (text: string) => Application | Reject;
  };
}

export interface ReplaySummary {
  readonly read: number;
  readonly added: number;
  /** Still without an id that is theirs alone. */
  readonly unusable: number;
}

/** An element may have millions of characters. */
const pageSize = 20;

export async function replay(
  deps: ReplayDeps,
  request: LaneHolder & { readonly name: string; readonly advertiserId: bigint },
): Promise<ReplaySummary> {
  const { store, source } = deps;
  const { advertiserId } = request;
  await using lane = await holdLane(store, { ...request, lane: 'backfill' });
  const counts = { read: 0, added: 0, unusable: 0 };
  for (let after = ''; ; ) {
    lane.signal.throwIfAborted();
    const waiting = await store.quarantine.loadQuarantineTexts(advertiserId, { id: null, after, limit: pageSize });
    const parsed = waiting.map((element) => ({ element, application: source.parseElement(element.text) }));
    const usable = parsed.flatMap(({ application }) => ('id' in application ? [application] : []));
    const applicants = await store.applications.loadApplicants(advertiserId, usable);
    const others = await store.applications.findErasedOthers(advertiserId, usable);
    const readable: { readonly id: string; readonly applicationId: bigint }[] = [];
    // Two elements may be the same application, and a page must hold each id only once.
    const chosen = new Map<bigint, { readonly id: string; readonly application: Application }>();
    for (const { element, application } of parsed) {
      after = element.id;
      const isReadable = 'id' in application && !others.has(application);
      if (!isReadable || !isUsable(element, application, applicants.get(application.id))) {
        counts.unusable += 1;
        continue;
      }
      readable.push({ id: element.id, applicationId: application.id });
      chosen.set(application.id, { id: element.id, application });
      if (!applicants.has(application.id)) applicants.set(application.id, application);
    }
    if (chosen.size > 0) {
      const page: ReadPage = {
        ...{ lease: lane.lease, advertiserId, seq: -(await store.sweeps.takeTicket()).seq, sweep: null },
        ...{ askedAt: new Date(), asked: null, rejects: [], shared: [] },
        applications: [...chosen.values()].map(({ application }) => application),
        replayed: [...chosen].map(([applicationId, { id }]) => ({ id, applicationId })),
      };
      counts.added += (await commitAnswer(deps, page, null)).added;
      counts.read += readable.length;
      // Also resolves elements that changed nothing, and those of which another element of the same application was committed.
      await store.quarantine.resolveQuarantine(advertiserId, readable);
    }
    if (waiting.length < pageSize) return counts;
  }
}

/** False where the id is another person's, or not the one that the source wrote. */
function isUsable({ reason, text }: QuarantinedText, application: Application, row: Applicant | undefined): boolean {
  if (reason === sharedId) return false;
  if (row !== undefined) return !isSomebodyElse(row, application);
  // Of elements that earlier versions stored, only jsonb is left, which writes 1.00122e+05 as 100122. Such an id is rounded: up to 2^53,
  // every version has read the ids that had all their digits.
  if (reason !== inexactId) return true;
  const isWrittenOut = [',', '}'].some((end) => text.toLowerCase().includes(`"id": ${application.id}${end}`));
  return !isWrittenOut || application.id > BigInt(Number.MAX_SAFE_INTEGER);
}

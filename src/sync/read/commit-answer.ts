// Commits the applications of an answer: compares its page with the stored rows (reads) and writes the difference, again if the rows have
// changed in between. ask-source.ts has already checked whose data the answer holds.
import { contains, coveredOf, rangeOf } from '../../domain/coverage/position.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { PageProgress, PageSummary } from '../../store/applications/commit-page.ts';
import type { PageDiff, ReadPage } from '../../store/applications/diff-page.ts';
import type { Store } from '../../store/store.ts';
import type { Sweep } from '../../store/sweeps/sweeps.ts';
import type { HeldLane } from '../accounts/held-lane.ts';
import type { ReceivedAnswer } from './ask-source.ts';

interface CommitDeps {
  readonly store: {
    readonly applications: Pick<Store['applications'], 'diffPage' | 'commitPage'>;
    readonly coverage: Pick<Store['coverage'], 'findHidden' | 'endCertificates'>;
  };
  readonly source: Pick<Source, 'toElement'>;
}

/** Who asks. The certificates that its answer contradicts name it; null for an answer that contradicts none. */
export type Asker =
  | 'a poll'
  | 'a sweep by ids'
  | 'a backfill by date'
  | 'a question about an unreadable id'
  | 'a random audit'
  | 'the check by date'
  | null;

export const nothingWritten: PageSummary = { added: 0, changed: 0, quarantined: 0, stale: [] };

/** So many tries fail only if another lane changes the same applications between every comparison and its commit. */
const mostTries = 20;

/**
 * Compares a page with the stored rows and commits it, again and again until the rows have not changed in between. `learn` says what the page
 * advances besides. Applications whose id is another person's go to quarantine. The hidden applications of the page (findHidden) end the
 * certificates that cover them, before they are stored: a stored application cannot be found hidden any more. Returns their ids, too.
 */
export async function commitAnswer(
  { store: { applications, coverage }, source }: CommitDeps,
  page: ReadPage,
  by: Asker,
  learn?: (diff: PageDiff) => Promise<PageProgress | null>,
): Promise<PageSummary & { readonly hidden: readonly bigint[] }> {
  const { advertiserId, sweep } = page;
  // A sweep that learns from the page judges its own range itself.
  const own = learn && by === 'a sweep by ids' ? sweep : null;
  const reason = `${by} found an application that the proof did not show`;
  const hidden: bigint[] = [];
  for (let tries = 0; tries < mostTries; tries++) {
    const diff = await applications.diffPage(page);
    const judged = by === null ? [] : diff.fresh.filter(({ id }) => own === null || !contains(rangeOf(own), id));
    const found = judged.length === 0 ? [] : await coverage.findHidden(advertiserId, judged, by === 'a poll');
    if (found.length > 0) await coverage.endCertificates(advertiserId, found, reason);
    hidden.push(...found);
    const progress = (await learn?.(diff)) ?? null;
    if (progress === null && needsNoCommit(diff)) return { ...nothingWritten, hidden };
    const rejects = [...page.rejects, ...diff.strangers.map(source.toElement)];
    const summary = await applications.commitPage({ ...page, rejects }, diff, progress);
    if (summary !== 'outdated') return { ...summary, hidden };
  }
  throw new Trouble('local', 'Another process keeps changing the applications of this page.', { at: 'database' });
}

/** While another lane is active, a page without changes is committed too, so that its ids and its request number are recorded. */
export function needsNoCommit({ writes, otherLane }: PageDiff): boolean {
  return writes === 0 && !otherLane;
}

export function toReadPage(
  { lease }: HeldLane,
  advertiserId: bigint,
  sweep: Sweep | null,
  answer: ReceivedAnswer,
): ReadPage {
  const { question, ticket, page } = answer;
  const { applications = [], rejects = [], shared = [] } = page ?? {};
  const asked = page && question.covers && coveredOf(question.covers);
  return { lease, advertiserId, seq: ticket.seq, sweep, askedAt: ticket.at, asked, applications, rejects, shared };
}

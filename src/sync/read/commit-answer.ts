// Commits the applications of an answer: compares its page with the stored rows (reads) and writes the difference, again if the rows have
// changed in between. account-identity.ts has already checked whose data the answer holds.
import { type Application, sharedId } from '../../domain/application.ts';
import { coveredOf } from '../../domain/coverage/covered.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { PageProgress, PageSummary } from '../../store/applications/commit-page.ts';
import type { PageDiff, ReadPage } from '../../store/applications/diff-page.ts';
import type { Store } from '../../store/store.ts';
import type { Sweep } from '../../store/sweeps/sweeps.ts';
import type { HeldLane } from '../accounts/held-lane.ts';
import type { ReceivedAnswer } from './ask-source.ts';

/**
 * Finds the hidden applications among these (findHidden), ends the certificates that cover them, and returns their ids. Must be called before
 * the applications are stored: a stored application cannot be found hidden any more.
 */
export async function endContradictedCertificates(
  store: Pick<Store, 'coverage'>,
  advertiserId: bigint,
  applications: readonly Pick<Application, 'id' | 'submittedAt'>[],
  by: string,
): Promise<readonly bigint[]> {
  const hidden = await store.coverage.findHidden(advertiserId, applications);
  const reason = `${by} found an application that the proof did not show`;
  if (hidden.length > 0) await store.coverage.endCertificates(advertiserId, hidden, reason);
  return hidden;
}

interface CommitDeps {
  readonly store: { readonly applications: Pick<Store['applications'], 'diffPage' | 'commitPage'> };
  readonly source: Pick<Source, 'toElement'>;
}

export const nothingWritten: PageSummary = { added: 0, changed: 0, quarantined: 0, stale: [] };

/** So many tries fail only if another lane changes the same applications between every comparison and its commit. */
const mostTries = 20;

/**
 * Compares a page with the stored rows and commits it, again and again until the rows have not changed in between. `learn` says what the page
 * advances besides. Applications whose id is another person's go to quarantine.
 */
export async function commitAnswer(
  { store: { applications }, source }: CommitDeps,
  page: ReadPage,
  learn: (diff: PageDiff) => Promise<PageProgress | null> = async () => null,
): Promise<PageSummary> {
  for (let tries = 0; tries < mostTries; tries++) {
    const diff = await applications.diffPage(page);
    const progress = await learn(diff);
    if (progress === null && needsNoCommit(diff)) return nothingWritten;
    // Of the copies of a shared id, the comparison decides anew which one is the application.
    const others = page.rejects.filter(({ reason }) => reason !== sharedId);
    const rejects = [...others, ...diff.strangers.map(source.toElement)];
    const summary = await applications.commitPage({ ...page, rejects }, diff, progress);
    if (summary !== 'outdated') return summary;
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

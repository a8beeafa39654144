// Audits are requests between sweeps. They prove nothing and can only contradict a proof. A random audit requests a random place of the
// list, whose bounds are not known ids, in two filter shapes. The check by date requests the newest applications by the date filter. A
// source that hides an application from the requests of a sweep may show it in these. One hidden application ends every certificate that
// covers it.
import { auditQuestions, auditSize, lackingQuestions } from '../../domain/coverage/audit.ts';
import type { Question } from '../../domain/coverage/question.ts';
import { dateSlackSeconds } from '../../domain/coverage/sweep-state.ts';
import type { Sweep } from '../../store/sweeps/sweeps.ts';
import { checkIdentity } from './account-identity.ts';
import { commitAudit, endContradictedCertificates, type ReceivedPage } from './commit-answer.ts';
import type { ReadContext } from './read-tasks.ts';
import { requestPage } from './request-page.ts';
import type { SweepDeps } from './sweep.ts';

/**
 * Audits one place of the covered ids; `random` returns a number from 0 to 1. Returns the number of contradictions: applications that a
 * certificate covers although they were not stored, and stored ones that an answer left out.
 */
export async function audit(deps: SweepDeps, task: ReadContext, random: () => number): Promise<number> {
  const { store } = deps;
  const { advertiserId } = task.advertiser;
  if (advertiserId === null) return 0;
  const { learned } = await store.sweeps.loadSyncState({ advertiserId, lagMs: task.lagMs });
  const size = auditSize(learned?.capacity.count ?? 0);
  const place = await store.coverage.loadAuditPlace(advertiserId, { random: random(), size });
  if (place === null) return 0;
  const { both, lower } = auditQuestions(place, random);
  const narrow = await ask(deps, task, both);
  const wide = await ask(deps, task, lower);
  const hidden = new Set([...narrow.hidden, ...wide.hidden]);
  const lacking = narrow.page && learned ? lackingQuestions(place, narrow.page, learned.capacity) : [];
  let leftOut = 0;
  for (const question of lacking) {
    const id = question.from as bigint;
    const asked = await send(deps, task, question);
    if (asked === null) continue;
    if (asked.answer.heard.page.ids.includes(id)) {
      leftOut += 1;
      const reason = 'the answer to a random audit left out an application that exists';
      await store.coverage.endCertificates(advertiserId, [id], reason);
    }
    await commit(deps, task, asked, 'a random audit');
  }
  return hidden.size + leftOut;
}

/**
 * Requests the newest applications by the date filter alone and stores what it shows. Returns how many of them were not stored although
 * the next poll starts above their ids, or a certificate covers them: evidence that the id filters hide applications.
 */
export async function witnessByDate(deps: SweepDeps, task: ReadContext, now: number): Promise<number> {
  const { store } = deps;
  const newestAt = await store.applications.loadNewest(task.advertiser.advertiserId);
  if (newestAt === null) return 0;
  const after = BigInt(Math.floor(Math.min(newestAt.getTime(), now) / 1_000)) - dateSlackSeconds;
  const bounds = { from: after, to: null, after, before: null, since: null };
  const asked = await send(deps, task, { axis: 'date', purpose: 'witness', ...bounds });
  if (asked === null) return 0;
  const { applications } = asked.answer.heard.page;
  const { pollFrom } = await store.sweeps.loadSyncState({ advertiserId: asked.advertiserId, lagMs: task.lagMs });
  const due = applications.filter((one) => pollFrom !== null && one.id < pollFrom).map((one) => one.id);
  const unheld = await store.applications.loadUnheld(asked.advertiserId, due);
  const hidden = await commit(deps, task, asked, 'the check by date');
  return new Set([...unheld, ...hidden]).size;
}

interface AuditAnswer {
  /** Null if the answer is not a page. */
  readonly page: ReceivedPage['heard']['page'] | null;
  readonly hidden: readonly bigint[];
}

async function ask(deps: SweepDeps, task: ReadContext, question: Question): Promise<AuditAnswer> {
  const asked = await send(deps, task, question);
  if (asked === null) return { page: null, hidden: [] };
  const hidden = await commit(deps, task, asked, 'a random audit');
  return { page: asked.answer.heard.page, hidden };
}

/** The page that answered a question outside a sweep. */
interface Asked {
  /** Has no row. Its id lets the quarantine count an element once. */
  readonly sweep: Sweep;
  readonly answer: ReceivedPage;
  readonly advertiserId: bigint | null;
}

/** Sends a question; null if the answer is not a page. */
async function send({ store, source }: SweepDeps, task: ReadContext, question: Question): Promise<Asked | null> {
  const { axis, from, to } = question;
  const sweep = { ...(await store.sweeps.begin()), purpose: 'witness', axis, low: from ?? 1n, high: to } as const;
  const ticket = await store.sweeps.takeTicket();
  const sentAt = performance.now();
  const heard = await requestPage(source, question, task.lane.signal);
  if (heard.kind !== 'page') return null;
  const answer = { question, ticket, heard, tookMs: performance.now() - sentAt, knew: 0 };
  const { advertiserId } = await checkIdentity(store, task.advertiser, heard.page);
  return { sweep, answer, advertiserId };
}

/** Commits an answer. Returns the ids that contradict a certificate. */
async function commit(
  { store }: SweepDeps,
  { lane }: ReadContext,
  { sweep, answer, advertiserId }: Asked,
  by: string,
): Promise<readonly bigint[]> {
  if (advertiserId === null) return [];
  const hidden = await endContradictedCertificates(store, advertiserId, answer.heard.page.applications, by);
  await commitAudit(store, lane, advertiserId, sweep, answer);
  return hidden;
}

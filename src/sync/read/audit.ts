// Audits: questions between two sweeps that prove nothing and can only contradict. A random audit chooses a place of the list, not at ids,
// and asks for it in two shapes; the check by date asks the date filter for the newest. A source that hides someone from the questions of
// a sweep need not hide them from these. One person who was hidden ends every certificate that covers them.
import { auditQuestions, auditSize, lackingQuestions } from '../../domain/coverage/audit.ts';
import type { Question } from '../../domain/coverage/question.ts';
import { dateSlackSeconds } from '../../domain/coverage/sweep-state.ts';
import { checkIdentity } from './account-identity.ts';
import { commitAudit, loadOrBeginSweep, type ReceivedAnswer, type SweepRun } from './commit-answer.ts';
import type { ReadContext } from './read-tasks.ts';
import { type Heard, requestPage } from './request-page.ts';
import type { SweepDeps } from './sweep.ts';
import type { SweepRequest } from './sweep-request.ts';

/** What an audit asked and found. */
export interface AuditSummary {
  readonly requests: number;
  /** Applications that the certificate should have known of, and stored ones that an answer left out. */
  readonly contradictions: number;
}

const nothing: AuditSummary = { requests: 0, contradictions: 0 };

/** Audits one place of what is covered; `random` is a number from 0 to 1. */
export async function audit(deps: SweepDeps, task: ReadContext, random: () => number): Promise<AuditSummary> {
  const { store } = deps;
  const { advertiserId } = task.advertiser;
  if (advertiserId === null) return nothing;
  const { learned } = await store.sweeps.loadSyncState({ advertiserId, lagMs: task.lagMs });
  const pageSize = learned?.capacity.count ?? 0;
  const place = await store.coverage.loadAuditPlace(advertiserId, { random: random(), size: auditSize(pageSize) });
  if (place === null) return nothing;
  const { both, lower } = auditQuestions(place, random);
  const narrow = await ask(deps, task, both);
  const wide = await ask(deps, task, lower);
  const hidden = [...new Set([...narrow.hidden, ...wide.hidden])];
  const lacking = narrow.isPage ? lackingQuestions(place, new Set(narrow.shown), pageSize) : [];
  const leftOut: bigint[] = [];
  for (const question of lacking) {
    const id = question.from as bigint;
    if (!(await ask(deps, task, question)).shown.includes(id)) continue;
    leftOut.push(id);
    const reason = 'a random audit was answered without somebody who is there';
    await store.coverage.endCertificates(advertiserId, [id], reason);
    deps.onContradiction?.();
  }
  return { requests: 2 + lacking.length, contradictions: hidden.length + leftOut.length };
}

/**
 * Asks the date filter alone for the newest applications and keeps what it shows. Answers how many of them the id filters had not
 * shown although the next poll begins above their ids: evidence that they hide something.
 */
export async function witnessByDate(deps: SweepDeps, task: ReadContext, now: number): Promise<number> {
  const { store } = deps;
  const { newestAt } = await store.applications.loadNewest(task.advertiser.advertiserId);
  if (newestAt === null) return 0;
  const after = BigInt(Math.floor(Math.min(newestAt.getTime(), now) / 1_000)) - dateSlackSeconds;
  const bounds = { from: after, to: null, after, before: null, since: null };
  const asked = await send(deps, task, { axis: 'date', purpose: 'witness', ...bounds });
  if (asked.page === null) return 0;
  const { pollFrom } = await store.sweeps.loadSyncState({ advertiserId: asked.advertiserId, lagMs: task.lagMs });
  const due = asked.page.applications.filter((one) => pollFrom !== null && one.id < pollFrom).map((one) => one.id);
  const unheld = await store.applications.loadUnheld(asked.advertiserId, due);
  const hidden = await commit(deps, asked, 'the check by date');
  return new Set([...unheld, ...hidden]).size;
}

interface AuditAnswer {
  readonly isPage: boolean;
  readonly shown: readonly bigint[];
  readonly hidden: readonly bigint[];
}

async function ask(deps: SweepDeps, task: ReadContext, question: Question): Promise<AuditAnswer> {
  const asked = await send(deps, task, question);
  if (asked.page === null) return { isPage: false, shown: [], hidden: [] };
  return { isPage: true, shown: asked.page.ids, hidden: await commit(deps, asked, 'a random audit') };
}

/** A question that was asked outside of a sweep, with its answer. */
interface Asked {
  readonly request: SweepRequest;
  readonly run: SweepRun;
  readonly answer: ReceivedAnswer;
  readonly advertiserId: bigint | null;
  /** Null where the answer is none. */
  readonly page: Extract<Heard, { kind: 'page' }>['page'] | null;
}

async function send({ store, source }: SweepDeps, task: ReadContext, question: Question): Promise<Asked> {
  const plan = { axis: question.axis, from: question.from ?? 1n, to: question.to, rigor: 'poll' } as const;
  const request = { ...task, purpose: 'witness', plan, parallel: 1, isNew: true } as const;
  const run = await loadOrBeginSweep(store, request, task.advertiser);
  const ticket = await store.sweeps.takeTicket();
  const sentAt = performance.now();
  const heard = await requestPage(source, question, task.lane.signal);
  const answer = { question, ticket, heard, tookMs: performance.now() - sentAt, knew: 0 };
  if (heard.kind !== 'page') return { request, run, answer, advertiserId: task.advertiser.advertiserId, page: null };
  const { advertiserId } = await checkIdentity(store, task.advertiser, heard.page);
  return { request, run, answer, advertiserId, page: heard.page };
}

/**
 * Commits an answer. Gives the ids that are covered by a certificate, were submitted before it and are not stored; their certificates are
 * ended before they are stored: afterwards nothing would tell that they were hidden.
 */
async function commit(
  { store, onContradiction }: SweepDeps,
  { request, run, answer, advertiserId, page }: Asked,
  by: string,
): Promise<readonly bigint[]> {
  if (advertiserId === null || page === null) return [];
  const submitted = page.applications.map(({ id, submittedAt }) => ({ id, submittedAt }));
  const hidden = await store.coverage.findUncovered(advertiserId, submitted);
  if (hidden.length > 0) {
    await store.coverage.endCertificates(advertiserId, hidden, `${by} found somebody whom the proof did not show`);
    onContradiction?.();
  }
  await commitAudit(store, request, advertiserId, run, answer);
  return hidden;
}

// Random audits: a place of the list is chosen at random, not at ids, and asked in two shapes. A source that hides someone from the
// questions of a sweep need not hide them from these. One person who was hidden ends every certificate that covers them.
import { auditQuestions, auditSize, lackingQuestions } from '../../domain/coverage/audit.ts';
import type { Question } from '../../domain/coverage/question.ts';
import type { KnownAdvertiser } from '../../store/sweeps/advertisers.ts';
import { checkIdentity } from './account-identity.ts';
import { commitAudit, loadOrBeginSweep } from './commit-answer.ts';
import type { ReadContext } from './read-tasks.ts';
import { type Heard, requestPage } from './request-page.ts';
import type { SweepDeps } from './sweep.ts';

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
    const reason = `a random audit was answered without application ${id}, which is there`;
    await store.coverage.endCertificates(advertiserId, [id], reason);
  }
  return { requests: 2 + lacking.length, contradictions: hidden.length + leftOut.length };
}

interface AuditAnswer {
  readonly isPage: boolean;
  readonly shown: readonly bigint[];
  /** Ids that are covered by a certificate, were submitted before it and are not stored. */
  readonly hidden: readonly bigint[];
}

async function ask(deps: SweepDeps, task: ReadContext, question: Question): Promise<AuditAnswer> {
  const { store } = deps;
  const request = {
    ...task,
    purpose: 'witness',
    plan: { from: question.from ?? 1n, to: question.to, rigor: 'poll' },
    parallel: 1,
    isNew: true,
  } as const;
  const run = await loadOrBeginSweep(store, request, task.advertiser);
  const ticket = await store.sweeps.takeTicket();
  const sentAt = performance.now();
  const heard: Heard = await requestPage(deps.source, question, task.lane.signal);
  const tookMs = performance.now() - sentAt;
  if (heard.kind !== 'page') return { isPage: false, shown: [], hidden: [] };
  const advertiser: KnownAdvertiser = await checkIdentity(store, task.advertiser, heard.page);
  const submitted = heard.page.applications.map(({ id, submittedAt }) => ({ id, submittedAt }));
  const hidden = await store.coverage.findUncovered(advertiser.advertiserId, submitted);
  // Before they are stored: once they are, no later audit would tell that they were hidden.
  if (advertiser.advertiserId !== null && hidden.length > 0) {
    const reason = `a random audit found application ${hidden[0]}, which the proof did not show`;
    await store.coverage.endCertificates(advertiser.advertiserId, hidden, reason);
  }
  if (advertiser.advertiserId !== null)
    await commitAudit(store, request, advertiser.advertiserId, run, { question, ticket, heard, tookMs, knew: 0 });
  return { isPage: true, shown: heard.page.ids, hidden };
}

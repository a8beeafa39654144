// Audits are requests between sweeps, at a random place or by date. They prove nothing and can only contradict: a source that hides an
// application from the requests of a sweep may show it in these. One hidden application ends every certificate that covers it.

import { auditQuestions, auditSize, lackingIds } from '../../domain/coverage/certificate.ts';
import { isSingle } from '../../domain/coverage/position.ts';
import { aloneQuestion, dateSlackSeconds, type Question } from '../../domain/coverage/question.ts';
import { toAuditBody } from '../../domain/evidence/record.ts';
import { type Asker, commitAnswer, compared, createAsker, toReadPage } from './answers.ts';
import { loadState, type ReadContext, type SweepDeps } from './sweep.ts';

/** Audits one place; `random` is from 0 to 1. Returns the contradictions: hidden applications, and stored ones that an answer left out. */
export async function audit(deps: SweepDeps, task: ReadContext, random: () => number): Promise<number> {
  const { store } = deps;
  const { advertiserId } = task.advertiser;
  if (advertiserId === null) return 0;
  const { pages } = await loadState(deps, task);
  const place = await store.sweeps.loadAuditPlace(advertiserId, random(), auditSize(pages));
  if (place === null) return 0;
  const [both, lower] = auditQuestions(place, random);
  const narrow = await ask(deps, task, both);
  const wide = await ask(deps, task, lower);
  const contradictions = new Set([...narrow.hidden, ...wide.hidden]);
  for (const id of narrow.page ? lackingIds(place, narrow.page, pages) : []) {
    const { page } = await ask(deps, task, aloneQuestion(id));
    if (!page?.ids.includes(id)) continue;
    contradictions.add(id);
    const reason = 'the answer to a random audit left out an application that exists';
    await store.sweeps.endCertificates(advertiserId, [id], reason);
  }
  return contradictions.size;
}

/** Reads the newest by date alone. Returns how many were not stored below the next poll or under a certificate: the id filters hide them. */
export async function witnessByDate(deps: SweepDeps, task: ReadContext): Promise<number> {
  const { afterDate, pollFrom } = await loadState(deps, task);
  if (afterDate === null) return 0;
  const since = BigInt(Math.floor(afterDate.getTime() / 1_000)) - dateSlackSeconds;
  const question = { purpose: 'witness', covers: null, afterId: null, beforeId: null, beforeDate: null } as const;
  const { hidden, fresh } = await ask(deps, task, { ...question, afterDate: since }, 'the check by date');
  return new Set([...hidden, ...fresh.filter((id) => pollFrom !== null && id < pollFrom)]).size;
}

/** Beyond this many audits a proof records only those that may contradict it; without rechecks its lines would grow without limit. */
export const mostAudits = 50;

/** Asks, commits what the answer shows, and appends its line to the proof that covers the audited place. No sweep learns from it. */
async function ask(deps: SweepDeps, task: ReadContext, question: Question, by: Asker = 'a random audit') {
  const answer = await createAsker(deps, task.advertiser, task.lane.signal)(question);
  const { page } = answer;
  const { advertiserId } = task.advertiser;
  if (page === null || advertiserId === null) return { page, hidden: [], fresh: [] };
  const read = toReadPage(task.lane, advertiserId, null, answer);
  const { covers } = question;
  let fresh: readonly bigint[] = [];
  const { hidden } = await commitAnswer(deps, read, by, async (diff) => {
    const proof = await deps.store.evidence.loadAuditedProof(advertiserId, covers?.from ?? null);
    fresh = diff.fresh.map(({ id }) => id);
    const isQuiet = fresh.length === 0 && !(covers !== null && isSingle(covers));
    if (proof === null || (isQuiet && proof.audits >= mostAudits)) return null;
    const body = toAuditBody(answer.sent, question, compared(answer, diff), proof.recentFrom);
    return { audited: { sweepId: proof.sweepId, body } };
  });
  return { page, hidden, fresh };
}

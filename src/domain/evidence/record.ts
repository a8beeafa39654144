// The lines of a proof, as docs/proof-format.md defines them: one JSON object for each question with its answer, for the beginning and the
// end of a sweep, and for each decision of an operator; in an exported file also for its certificates and the stored applications. They hold
// ids, counts and times of requests, and nothing else about people.

import { assumptions, type Conclusion, type Done, weakestOf } from '../coverage/certificate.ts';
import { type Covered, contains, type IdRange, isTiled, lastPosition, rangeOf } from '../coverage/position.ts';
import { type Answer, boundedQuestion, type Question, recentIds, sizeOf } from '../coverage/question.ts';
import { hasRoom, isUnreadable, type Learned, type State } from '../coverage/state.ts';

export interface Sent {
  readonly sentAt: number;
  readonly tookMs: number;
}

/** A line without its place in the chain, which the store adds. Members with their usual value are left out. */
export interface LineBody {
  readonly type: 'sweep' | 'answer' | 'end' | 'audit' | 'decision';
  readonly [member: string]: unknown;
}

/** The first line names the last hashes behind the certificates of this time. So the end of their chains cannot be cut off later. */
export function toSweepBody(
  advertiserId: bigint,
  { sweepId, purpose, startedAt }: { readonly sweepId: bigint; readonly purpose: string; readonly startedAt: Date },
  { facts, open }: State,
  certificates: readonly Pick<ExportedCertificate, 'sweepId' | 'last'>[],
): LineBody {
  const [from, to] = toPair(facts);
  // A sweep of the other lane may have begun and ended since.
  const earlier = certificates.filter(({ sweepId: id, last }) => id < sweepId && last !== null);
  return {
    type: 'sweep',
    format: 2,
    advertiser: String(advertiserId),
    sweep: String(sweepId),
    purpose,
    from,
    to,
    startedAt: startedAt.getTime(),
    recentFrom: facts.recentFrom === null ? null : String(facts.recentFrom),
    listedBefore: facts.listedBefore,
    longestBefore: facts.longestBefore,
    unreadable: toIdList(open.filter(isUnreadable).map(({ from: id }) => id)),
    accepted: toIdList(facts.accepted),
    previous: [...new Map(earlier.map(({ sweepId: id, last }) => [String(id), last]))],
  };
}

export function toAnswerBody(sent: Sent, question: Question, answer: Answer, learned: Learned): LineBody {
  const { facts, open } = learned.state;
  const { purpose, covers } = question;
  const isOpen = purpose === 'range' && covers !== null && learned.closed === null;
  const parts = isOpen ? open.filter(({ from, to }) => from >= covers.from && to <= covers.to) : [];
  return {
    type: 'answer',
    ...sent,
    purpose,
    ...toQuestionMembers(question),
    ...toAnswerMembers(answer, facts.recentFrom),
    largest: (answer.kind === 'page' && covers && largestOf(answer, facts)) || undefined,
    lacking: toIdList(lackingOf(question, answer, learned)) || undefined,
    closed: learned.closed ?? undefined,
    open: parts.length === 0 ? undefined : parts.map(toPair),
  };
}

/** The line of an audit. It changes no state and can only contradict. `recentFrom` is that of the sweep that it audits. */
export function toAuditBody(sent: Sent, question: Question, answer: Answer, recentFrom: bigint | null): LineBody {
  return { type: 'audit', ...sent, ...toQuestionMembers(question), ...toAnswerMembers(answer, recentFrom) };
}

function toQuestionMembers({ purpose, covers, afterId, beforeId, afterDate, beforeDate }: Question) {
  const [from, to] = covers === null ? [] : toPair(covers);
  const usual = covers === null ? { afterId: null, beforeId: null } : boundedQuestion(purpose, covers);
  const sent = (bound: bigint | null) => (bound === null ? null : String(bound));
  return {
    from,
    to,
    afterId: afterId === usual.afterId ? undefined : sent(afterId),
    beforeId: beforeId === usual.beforeId ? undefined : sent(beforeId),
    byDate: afterDate !== null || beforeDate !== null || undefined,
  };
}

function toAnswerMembers(answer: Answer, recentFrom: bigint | null) {
  if (answer.kind !== 'page') return { answer: answer.kind };
  const { rows, news } = answer;
  const fresh = [...new Set(rows.map(getId))].filter((id) => news.has(id));
  const recent = recentIds(answer, recentFrom);
  return {
    ids: toIdList(rows.map(getId)) || undefined,
    unreadable: answer.unreadable || undefined,
    bytes: answer.bytes,
    echo: answer.echo === 'matches' ? undefined : answer.echo,
    weakEmpty: answer.weakEmpty || undefined,
    cached: answer.cached || undefined,
    new: (fresh.length === rows.length && fresh.length > 0 ? 'all' : toIdList(fresh)) || undefined,
    arrived: toIdList(fresh.filter((id) => recent.has(id))) || undefined,
  };
}

const getId = ({ id }: { readonly id: bigint }) => id;

function largestOf({ rows }: Extract<Answer, { kind: 'page' }>, range: IdRange): number {
  return rows.reduce((most, { id, bytes }) => (contains(range, id) ? Math.max(most, bytes) : most), 0);
}

/** A page without room lacks ids because it was cut off. A page of a walk lacks all that comes after it, until one skips an id. */
function lackingOf(question: Question, answer: Answer, { lacked, state: { facts } }: Learned): bigint[] {
  if (question.purpose === 'range' || answer.kind !== 'page') return lacked.map(getId);
  const hasPlace = answer.rows.length === 0 || hasRoom(facts, sizeOf(question, answer));
  return (question.purpose === 'walk' ? facts.walk?.disagrees : hasPlace) ? answer.lacking.map(getId) : [];
}

export function toEndBody({ certificate, risk, reason, open, absent }: Done): LineBody {
  return { type: 'end', certificate, risk, reason, open: open.map(toPair), absent };
}

export interface Decision {
  readonly what: 'deletions' | 'unreadable';
  readonly by: string;
}

export function toDecisionBody(at: Date, { by, what }: Decision, ids: readonly bigint[]): LineBody {
  return { type: 'decision', at: at.getTime(), by, what, ids: toIdList(ids) };
}

/** A certificate, and the last hash of the evidence behind it; null where none is kept. */
export interface ExportedCertificate extends Covered, Conclusion {
  readonly sweepId: bigint;
  readonly startedAt: Date;
  readonly completeThrough: Date;
  readonly last: string | null;
}

export function toProofLine(
  advertiserId: bigint,
  exportedAt: Date,
  certificates: readonly ExportedCertificate[],
): string {
  return JSON.stringify({
    type: 'proof',
    format: 2,
    advertiser: String(advertiserId),
    exportedAt: exportedAt.getTime(),
    certificates: certificates.map(({ low, high, certificate, risk, reason, last, ...one }) => ({
      ...{ low: String(low), high: high === null ? null : String(high), certificate, risk, reason },
      sweep: String(one.sweepId),
      startedAt: one.startedAt.getTime(),
      completeThrough: one.completeThrough.getTime(),
      last,
    })),
  });
}

/** A line of stored applications: id, first seen and missing since, in seconds since 1970. Of an erased one only its id is left. */
export function toRowsLine(rows: readonly (readonly (string | null)[])[]): string {
  return JSON.stringify({ type: 'rows', rows });
}

function toPair({ from, to }: IdRange): readonly [from: string, to: string | null] {
  return [String(from), to === lastPosition ? null : String(to)];
}

/** Ids as text: the first one, then the difference of each to the one before. */
export function toIdList(ids: readonly bigint[]): string {
  return ids.map((id, nth) => id - (ids[nth - 1] ?? 0n)).join(' ');
}

/** The sweeps that keep evidence, of ended ones, oldest first: for each id the newest that covers it, the one before, and the first. */
export function findKept<Sweep extends Covered>(sweeps: readonly Sweep[]): Set<Sweep> {
  // Other sweeps cover an id only where one begins, or right after one has ended.
  const ids = new Set(sweeps.map(rangeOf).flatMap(({ from, to }) => [from, to + 1n]));
  const covering = [...ids].map((id) => sweeps.filter((sweep) => contains(rangeOf(sweep), id)));
  return new Set(covering.flatMap((here) => [...here.slice(0, 1), ...here.slice(-2)]));
}

export interface Asked {
  readonly questions: number;
  readonly witnesses: number;
  readonly audits: number;
}

/** What all sweeps together say about an account: the row of the view completeness, which the status and every command show. */
export interface Verdict extends Conclusion {
  /** Ranges of ids without a certificate, or that a later sweep could not close, and ids that cannot be read. */
  readonly openRanges: number;
  /** The last evidence hash of each sweep behind it, as SWEEP:HASH. */
  readonly evidence: readonly string[];
}

/** The verdict, the certificates in the order of their ids, and what their sweeps asked. */
export interface CurrentProof {
  readonly verdict: Verdict;
  readonly certificates: readonly ExportedCertificate[];
  readonly asked: ReadonlyMap<bigint, Asked>;
}

const unproven = { certificate: 'unproven', risk: 'doubt' } as const;

export type Explanation = ReturnType<typeof explain>;

/** Explains the proof to a person: at a moment, or as it is now if `at` is null. */
export function explain(at: Date | null, { verdict, certificates, asked }: CurrentProof) {
  const explained = certificates.map(({ last, ...one }) => ({
    ...one,
    ...(asked.get(one.sweepId) ?? { questions: 0, witnesses: 0, audits: 0 }),
    /** The certificate covers everything submitted up to the moment in question. */
    reaches: at === null || one.completeThrough.getTime() >= at.getTime(),
    /** The last hash, for safekeeping outside Intake; null where no evidence is kept. */
    evidence: last === null ? null : `${one.sweepId}:${last}`,
  }));
  const { openRanges } = verdict;
  // A gap that a later sweep left says nothing about an earlier day.
  const ofCertificates = isTiled(certificates) ? weakestOf(certificates) : undefined;
  const { certificate, risk } = (at === null ? verdict : ofCertificates) ?? unproven;
  const isOpen = at === null && openRanges > 0;
  /** Certificates that reach this moment cover every id from 1, none of them is unproven, and no range is open. */
  const complete = certificate !== 'unproven' && !isOpen && explained.every(({ reaches }) => reaches);
  return { at, complete, certificate, risk, openRanges, certificates: explained, assumptions };
}

// The records of a proof: questions, answers and conclusions. docs/proof-format.md defines them for readers who check a proof without this
// code; `seal` brings a record into the form that is hashed there. Pure: no clock, no database, no hash function of its own.

import { countPairs, rowLimit } from '../coverage/capacity.ts';
import type { Conclusion } from '../coverage/certificate.ts';
import { capacityOf } from '../coverage/page-cuts.ts';
import type { Answer, PageAnswer, Question } from '../coverage/question.ts';
import type { Covered, Range } from '../coverage/range.ts';
import { isShort } from '../coverage/range-answer.ts';
import { findChanges, isSorted, type State, type StateFacts } from '../coverage/sweep-state.ts';

/** How a sweep began. */
export interface OpeningRecord extends Covered, Pick<StateFacts, 'axis' | 'heldBefore' | 'longestBefore'> {
  readonly type: 'sweep';
  readonly advertiserId: bigint;
  readonly sweepId: bigint;
  readonly purpose: 'recheck' | 'backfill';
  readonly startedAt: number;
  readonly recentFrom: bigint;
  /** The last hashes, at that time, of the sweeps behind the current certificates. So the end of their chains cannot be cut off later. */
  readonly previous: readonly LastHash[];
  readonly bodyKeyHash: Uint8Array;
}

/** The last hash of a sweep. */
export interface LastHash {
  readonly sweepId: bigint;
  readonly hash: Uint8Array;
}

/** A question of a sweep, or of an audit after its end, with its answer. */
export interface AnswerRecord {
  readonly type: 'answer';
  /** 0 in audits. */
  readonly part: number;
  /** The last record that was committed when the question was sent. */
  readonly knew: number;
  readonly seq: bigint;
  readonly sentAt: number;
  readonly tookMs: number;
  readonly question: Omit<Question, 'purpose'> & { readonly purpose: Question['purpose'] | 'audit' };
  readonly answer: RecordedAnswer;
  readonly closed: readonly Bounds[];
  readonly opened: readonly Bounds[];
  readonly limit: readonly [after: number, both: number];
  readonly uneven: boolean;
  readonly sorted: 'rising' | 'falling' | null;
  readonly planned: readonly PlannedQuestion[] | null;
}

/** How a sweep ended. */
export interface EndRecord extends Conclusion {
  readonly type: 'end';
  readonly open: readonly Bounds[];
  readonly absent: number;
}

export type EvidenceRecord = OpeningRecord | AnswerRecord | EndRecord;

export type Bounds = Pick<Range, 'from' | 'to'>;
type PlannedQuestion = Pick<Question, 'axis' | 'after' | 'before' | 'since'>;

/** An answer without its applications, which are leaves. */
export interface RecordedAnswer extends Omit<PageAnswer, 'kind' | 'rows' | 'unheld' | 'unshown'> {
  readonly kind: Answer['kind'];
  readonly rows: number;
  readonly lacks: number;
  readonly largest: number;
  readonly sizes: readonly [rising: number, falling: number];
  readonly body: Uint8Array | null;
}

/** An application in an answer, or a stored one in the range of the question that the answer lacks. */
export interface Leaf {
  readonly id: bigint;
  readonly at: bigint | null;
  readonly mark: 'new' | 'held' | 'lacking';
}

/** When a question was sent, and what was known then. */
export type Sent = Pick<AnswerRecord, 'knew' | 'seq' | 'sentAt' | 'tookMs'>;

/** The record of an answer that moved a sweep from one state to the next. */
export function recordAnswer(
  sent: Sent,
  question: Question,
  heard: Answer,
  body: Uint8Array | null,
  before: State,
  after: State,
): { readonly record: AnswerRecord; readonly leaves: readonly Leaf[] } {
  const { dropped, added } = findChanges(before, after);
  const { facts } = after;
  const answer = withoutCutOff(heard, question, before, after);
  const isPlanned = before.facts.witnesses === null && facts.witnesses !== null;
  return {
    leaves: toLeaves(answer),
    record: {
      type: 'answer',
      ...sent,
      part: facts.part,
      question,
      answer: toRecorded(answer, body),
      closed: added.filter(isClosed).map(toBounds),
      opened: dropped.filter(isClosed).map(toBounds),
      limit: [rowLimit(facts.after), rowLimit(capacityOf(facts, 'both'))],
      uneven: facts.uneven,
      sorted: isSorted(facts) ? (facts.falling === 0 ? 'rising' : 'falling') : null,
      planned: isPlanned ? (facts.witnesses ?? []).map(toPlanned) : null,
    },
  };
}

/** The record of an audit. It changes no state and can only contradict. */
export function recordAudit(
  sent: Sent,
  question: Question,
  answer: Answer,
  body: Uint8Array | null,
): { readonly record: AnswerRecord; readonly leaves: readonly Leaf[] } {
  return {
    leaves: toLeaves(answer),
    record: {
      type: 'answer',
      ...sent,
      part: 0,
      question: { ...question, purpose: 'audit' },
      answer: toRecorded(answer, body),
      closed: [],
      opened: [],
      limit: [0, 0],
      uneven: false,
      sorted: null,
      planned: null,
    },
  };
}

/** Keeps the unshown ids only of a page that cannot have been cut off. A long page lacks ids simply because it had no room for them. */
function withoutCutOff(answer: Answer, question: Question, before: State, after: State): Answer {
  if (answer.kind !== 'page' || answer.unshown.length === 0) return answer;
  const isWhole = [before, after].some(({ facts }) => isShort(facts, question, answer));
  return isWhole ? answer : { ...answer, unshown: [] };
}

function isClosed({ state }: Range): boolean {
  return state === 'closed';
}

export function toBounds({ from, to }: Bounds): Bounds {
  return { from, to };
}

function toPlanned({ axis, after, before, since }: Question): PlannedQuestion {
  return { axis, after, before, since };
}

function toLeaves(answer: Answer): Leaf[] {
  if (answer.kind !== 'page') return [];
  const unheld = new Set(answer.unheld);
  const shown = answer.rows.map(({ id, at }): Leaf => ({ id, at, mark: unheld.has(id) ? 'new' : 'held' }));
  return [...shown, ...answer.unshown.map(({ id }): Leaf => ({ id, at: null, mark: 'lacking' }))];
}

const nothing = { rows: 0, lacks: 0, unreadable: 0, bytes: 0, largest: 0, sizes: [0, 0], echo: 'absent' } as const;

function toRecorded(answer: Answer, body: Uint8Array | null): RecordedAnswer {
  const { kind } = answer;
  if (kind !== 'page') return { ...nothing, kind, weakEmpty: false, cached: false, body: null };
  const { rows, unreadable, bytes, echo, weakEmpty, cached } = answer;
  const { rising, falling } = countPairs(rows.map((row) => row.bytes));
  return {
    kind,
    rows: rows.length,
    lacks: answer.unshown.length,
    unreadable,
    bytes,
    largest: rows.reduce((most, row) => Math.max(most, row.bytes), 0),
    sizes: [rising, falling],
    echo,
    weakEmpty,
    cached,
    body,
  };
}

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** The form of a record that is hashed and exported; `root` is the root of its leaves. */
export function seal(record: EvidenceRecord, n: number, root: Uint8Array | null): { readonly [name: string]: Json } {
  if (record.type === 'sweep') return sealOpening(record, n);
  if (record.type === 'end') {
    const { certificate, risk, reason, open, absent } = record;
    return { n, certificate, risk, reason, open: open.map(toPair), absent };
  }
  const { part, knew, seq, sentAt, tookMs, question, answer, closed, opened, limit, uneven, sorted } = record;
  const { axis, purpose, after, before, since, from, to } = question;
  return {
    n,
    part,
    knew,
    seq: String(seq),
    sentAt,
    tookMs,
    question: {
      purpose,
      axis,
      after: toText(after),
      before: toText(before),
      since: toText(since),
      from: toText(from),
      to: toText(to),
    },
    answer: { ...answer, root: toHex(root), body: toHex(answer.body) },
    closed: closed.map(toPair),
    opened: opened.map(toPair),
    limit,
    uneven,
    sorted,
    planned: record.planned?.map((one) => [one.axis, toText(one.after), toText(one.before), toText(one.since)]) ?? null,
  };
}

function sealOpening(record: OpeningRecord, n: number): { readonly [name: string]: Json } {
  return {
    n,
    format: 1,
    advertiser: String(record.advertiserId),
    sweep: String(record.sweepId),
    purpose: record.purpose,
    axis: record.axis,
    low: String(record.low),
    high: toText(record.high),
    startedAt: record.startedAt,
    recentFrom: String(record.recentFrom),
    heldBefore: record.heldBefore,
    longestBefore: record.longestBefore,
    previous: record.previous.map(({ sweepId, hash }) => [String(sweepId), toHex(hash)]),
    bodyKeyHash: toHex(record.bodyKeyHash),
  };
}

function toPair({ from, to }: Bounds): [string, string | null] {
  return [String(from), toText(to)];
}

export function toText(position: bigint | null): string | null {
  return position === null ? null : String(position);
}

export function toHex(bytes: Uint8Array): string;
export function toHex(bytes: Uint8Array | null): string | null;
export function toHex(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** JSON without white space, members in the order of their names. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value as { readonly [name: string]: Json })
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`);
  return `{${members.join(',')}}`;
}

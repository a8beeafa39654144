// A proof as a chart for people: the id axis cut into columns, each with how and when it was closed, how many applications it contains and
// how many audits checked it. Also the questions about one id.

import type { ExportedCertificate } from './export.ts';
import type { AnswerRecord, Bounds, EvidenceRecord } from './record.ts';

/**
 * Why nothing can be missing from a range. empty: the source shows nothing there. confirmed: empty in two shapes of question. short: its
 * page was less than half full. single: a range of one id, which was shown.
 */
export type Closing = 'empty' | 'confirmed' | 'short' | 'single';

/** A range that an answer closed and no later answer reopened. */
export interface ClosedRange extends Bounds {
  readonly how: Closing;
  readonly at: number;
}

/** A record of a sweep, with the number of applications that it showed first. */
export interface ShownRecord {
  readonly n: number;
  readonly record: EvidenceRecord;
  readonly added: number;
}

/** The stored applications of an advertiser, counted in equal parts of the id axis. A few outliers are counted as `below` and `above`. */
export interface Density {
  readonly lowest: bigint;
  readonly highest: bigint;
  /** From the lowest id to the highest. */
  readonly counts: readonly number[];
  readonly below: number;
  readonly above: number;
}

/** One column of the chart. */
export interface PictureColumn extends Bounds {
  /** Before the lowest application or after the highest one, not counting outliers. */
  readonly isEdge: boolean;
  /**
   * open: not fully covered by a certificate. shown: contains only ids that answers showed, and no closed range. unrecorded: read before
   * evidence was kept.
   */
  readonly state: Closing | 'open' | 'shown' | 'unrecorded';
  readonly certificate: ExportedCertificate['certificate'] | null;
  /** When the first of its closed ranges was closed; null if it has none. */
  readonly closedAt: number | null;
  readonly applications: number;
  readonly audits: number;
}

/** The ranges that are closed at the end of a sweep. */
export function findClosed(records: readonly ShownRecord[]): ClosedRange[] {
  const closed = new Map<string, ClosedRange>();
  for (const { record } of records) {
    if (record.type !== 'answer') continue;
    for (const range of record.opened) closed.delete(toKey(range));
    for (const range of record.closed) {
      closed.set(toKey(range), { ...range, how: toClosing(record, range), at: record.sentAt });
    }
  }
  return [...closed.values()];
}

export function toClosing({ question, answer }: AnswerRecord, { from, to }: Bounds): Closing {
  if (question.purpose === 'confirm' && answer.kind === 'page') return 'confirmed';
  if (answer.rows === 0) return 'empty';
  return from === to ? 'single' : 'short';
}

/** Columns for the part of the axis with applications, plus one column before it and one after it. */
export function toColumns(
  certificates: readonly ExportedCertificate[],
  recordsOf: (sweepId: bigint) => readonly ShownRecord[],
  density: Density | null,
): PictureColumn[] {
  const parts = toParts(density);
  const closed = certificates.map((one) => ({ ...one, ranges: findClosed(recordsOf(one.sweepId)) }));
  const audits = [...new Set(certificates.map(({ sweepId }) => sweepId))].flatMap((id) => findAudits(recordsOf(id)));
  return parts.map(({ applications, isEdge, ...part }) => {
    const touching = closed.filter((one) => overlapOf({ from: one.low, to: one.high }, part) > 0n);
    const ranges = touching.flatMap((one) => one.ranges).filter((range) => overlapOf(range, part) > 0n);
    const covered = touching.reduce((sum, one) => sum + overlapOf({ from: one.low, to: one.high }, part), 0n);
    return {
      ...part,
      isEdge,
      applications,
      state: covered < lengthOf(part) ? 'open' : toState(touching, ranges, part),
      certificate: weakest.find((word) => touching.some((one) => one.certificate === word)) ?? null,
      closedAt: ranges.reduce<number | null>((first, { at }) => (first === null || at < first ? at : first), null),
      audits: audits.filter(({ from, to }) => from !== null && overlapOf({ from, to }, part) > 0n).length,
    };
  });
}

const weakest = ['unproven', 'assumed', 'proven'] as const;

/** The axis begins at 1 and has no end: the columns before and after the applications may be very long. */
function toParts(density: Density | null): (Bounds & Pick<PictureColumn, 'isEdge' | 'applications'>)[] {
  if (density === null) return [{ from: 1n, to: null, isEdge: true, applications: 0 }];
  const { lowest, highest, counts, below, above } = density;
  const length = highest - lowest + 1n;
  const columns = BigInt(counts.length);
  // The first id of a column, rounded up.
  const firstOf = (index: number) => lowest + (length * BigInt(index) + columns - 1n) / columns;
  return [
    ...(lowest > 1n ? [{ from: 1n, to: lowest - 1n, isEdge: true, applications: below }] : []),
    ...counts.map((applications, index) => ({
      ...{ from: firstOf(index), to: firstOf(index + 1) - 1n },
      ...{ isEdge: false, applications },
    })),
    { from: highest + 1n, to: null, isEdge: true, applications: above },
  ];
}

/** How the largest share of a column was closed. */
function toState(
  certificates: readonly { readonly last: Uint8Array | null }[],
  ranges: readonly ClosedRange[],
  part: Bounds,
): PictureColumn['state'] {
  if (ranges.length === 0) return certificates.some(({ last }) => last === null) ? 'unrecorded' : 'shown';
  const lengths = new Map<Closing, bigint>();
  for (const range of ranges) lengths.set(range.how, (lengths.get(range.how) ?? 0n) + overlapOf(range, part));
  return [...lengths].reduce((most, one) => (one[1] > most[1] ? one : most))[0];
}

/** Larger than any id: the end of a range without one. */
const endless = 1n << 63n;

function lengthOf({ from, to }: Bounds): bigint {
  return (to ?? endless) - from + 1n;
}

function overlapOf(a: Bounds, b: Bounds): bigint {
  const from = a.from > b.from ? a.from : b.from;
  const to = (a.to ?? endless) < (b.to ?? endless) ? (a.to ?? endless) : (b.to ?? endless);
  return to < from ? 0n : to - from + 1n;
}

function toKey({ from, to }: Bounds): string {
  return `${from} ${to}`;
}

function findAudits(records: readonly ShownRecord[]): AnswerRecord['question'][] {
  return answersOf(records)
    .map(({ record }) => record.question)
    .filter(({ purpose }) => purpose === 'audit');
}

/** An answer among the records. */
export type ShownAnswer = ShownRecord & { readonly record: AnswerRecord };

/** The answers of a sweep, in order. */
export function answersOf(records: readonly ShownRecord[]): ShownAnswer[] {
  return records.filter((one): one is ShownAnswer => one.record.type === 'answer');
}

/** The questions of a sweep whose range contains the id. Witnesses and audits are left out. */
export function findQuestionsAbout(records: readonly ShownRecord[], id: bigint): ShownAnswer[] {
  return answersOf(records).filter(({ record: { question } }) => {
    const { purpose, axis, from, to } = question;
    if (purpose === 'witness' || purpose === 'audit' || axis !== 'id' || from === null) return false;
    return from <= id && (to === null || id <= to);
  });
}

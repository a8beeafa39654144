// A proof as a chart for people: the id axis cut into columns, each with how and when it was closed, how many applications it contains and
// how many audits checked it. Also the questions about one id.

import type { ExportedCertificate } from './export.ts';
import type { AnswerLine } from './record.ts';

/** From and to, both included; null at the end of the axis. */
export interface Bounds {
  readonly from: bigint;
  readonly to: bigint | null;
}

type Closing = NonNullable<AnswerLine['closed']>;

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
  /** When the first of its closed ranges was closed; null if it has none. */
  readonly closedAt: number | null;
  readonly applications: number;
  readonly audits: number;
}

/** The ids that a question covers; null for a question by date alone. */
export function boundsOf({ from, to }: AnswerLine): Bounds | null {
  return from === undefined ? null : { from: BigInt(from), to: to ? BigInt(to) : null };
}

/** Columns for the part of the axis with applications, plus one column before it and one after it. */
export function toColumns(
  certificates: readonly ExportedCertificate[],
  answersOf: (sweepId: bigint) => readonly AnswerLine[],
  density: Density | null,
): PictureColumn[] {
  const covered = certificates.map((one) => ({ from: one.low, to: one.high, last: one.last }));
  const lines = [...new Set(certificates.map(({ sweepId }) => sweepId))].flatMap(answersOf);
  const asked = lines.flatMap((line) => {
    const bounds = boundsOf(line);
    return bounds === null ? [] : [{ ...bounds, closed: line.closed, at: line.sentAt, isAudit: line.type === 'audit' }];
  });
  return toParts(density).map((part) => {
    const touching = covered.filter((one) => overlapOf(one, part) > 0n);
    const inside = asked.filter((one) => overlapOf(one, part) > 0n);
    const closed = inside.flatMap((one) => (one.closed ? [{ ...one, closed: one.closed }] : []));
    const length = touching.reduce((sum, one) => sum + overlapOf(one, part), 0n);
    return {
      ...part,
      state: length < lengthOf(part) ? 'open' : toState(touching, closed, part),
      closedAt: closed.reduce<number | null>((first, { at }) => (first === null || at < first ? at : first), null),
      audits: inside.filter(({ isAudit }) => isAudit).length,
    };
  });
}

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
  closed: readonly (Bounds & { readonly closed: Closing })[],
  part: Bounds,
): PictureColumn['state'] {
  if (closed.length === 0) return certificates.some(({ last }) => last === null) ? 'unrecorded' : 'shown';
  const lengths = new Map<Closing, bigint>();
  for (const one of closed) lengths.set(one.closed, (lengths.get(one.closed) ?? 0n) + overlapOf(one, part));
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

/** The questions of a sweep whose range contains the id. Witnesses and audits are left out. */
export function findQuestionsAbout(answers: readonly AnswerLine[], id: bigint): AnswerLine[] {
  return answers.filter((line) => {
    const bounds = line.purpose === 'range' || line.purpose === 'walk' ? boundsOf(line) : null;
    return bounds !== null && overlapOf(bounds, { from: id, to: id }) > 0n;
  });
}

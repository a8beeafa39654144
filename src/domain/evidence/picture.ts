// A proof as a chart for people: the id axis cut into columns, each with whether it was read, how many applications it contains and how many
// audits checked it. Also the questions about one id.

import { type Covered, isTiled, rangeOf } from '../coverage/covered.ts';
import { contains, type IdRange, nearestPosition, wholeAxis } from '../coverage/position.ts';
import type { AnswerLine, ExportedCertificate } from './record.ts';

/** The stored applications of an advertiser, outliers aside. */
export interface Density {
  readonly lowest: bigint;
  readonly highest: bigint;
  /** Outliers below `lowest`, applications in equal parts of the ids up to `highest`, outliers above it. */
  readonly counts: readonly number[];
}

export interface PictureColumn extends IdRange {
  /** Before the lowest application or after the highest one, not counting outliers. */
  readonly isEdge: boolean;
  /** open: not fully covered by certificates. */
  readonly state: 'closed' | 'open';
  readonly applications: number;
  readonly audits: number;
}

/** The ids that a question covers; null for a question by date alone. */
export function rangeOfLine({ from, to }: AnswerLine): IdRange | null {
  return from === undefined ? null : rangeOf({ low: BigInt(from), high: to ? BigInt(to) : null });
}

/** Columns for the part of the axis with applications, plus one column before it and one after it. */
export function toColumns(
  certificates: readonly ExportedCertificate[],
  lines: readonly AnswerLine[],
  density: Density | null,
): PictureColumn[] {
  const audited = lines.flatMap((line) => rangeOfLine(line) ?? []);
  return toParts(density).map(({ low, high, ...part }) => {
    const range = rangeOf({ low, high });
    const state = isTiled(certificates, range) ? 'closed' : 'open';
    const audits = audited.filter(({ from, to }) => from <= range.to && range.from <= to).length;
    return { ...part, ...range, state, audits };
  });
}

/** The axis has no end: the columns before and after the applications may be very long. */
function toParts(density: Density | null): (Covered & Pick<PictureColumn, 'isEdge' | 'applications'>)[] {
  const { from: first } = wholeAxis;
  if (density === null) return [{ low: first, high: null, isEdge: true, applications: 0 }];
  const { lowest, highest, counts } = density;
  const last = counts.length - 1;
  const [length, columns] = [highest - lowest + 1n, BigInt(last - 1)];
  // The last id of a column, rounded up.
  const endOf = (nth: number) => lowest + (length * BigInt(nth) + columns - 1n) / columns - 1n;
  const parts = counts.map((applications, nth) => {
    const low = nth === 0 ? first : endOf(nth - 1) + 1n;
    return { low, high: nth === last ? null : endOf(nth), isEdge: nth === 0 || nth === last, applications };
  });
  return lowest > first ? parts : parts.slice(1);
}

/** The questions of a sweep whose range contains the id. Witnesses and audits are left out. */
export function findQuestionsAbout(answers: readonly AnswerLine[], id: bigint): AnswerLine[] {
  return answers.filter((line) => {
    const range = line.purpose === 'range' || line.purpose === 'walk' ? rangeOfLine(line) : null;
    return range !== null && contains(range, nearestPosition(id));
  });
}

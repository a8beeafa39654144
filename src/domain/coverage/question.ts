// The questions that a sweep asks a list, and the possible answers. A position is an id on the id axis and a whole second since the epoch
// on the date axis. Only source/ knows how the source writes either.

import type { PageSize } from './capacity.ts';

export type Axis = 'id' | 'date';

/** Which bounds a question sends. A source may treat each shape differently: the page size, inclusive bounds, even which rows it shows. */
export type FilterShape = 'after' | 'before' | 'both';

/**
 * range: read a range. confirm: the same range in another shape, because it was answered empty. alone: is this one id still there?
 * witness: a question in another shape or at another place, which closes nothing and can only contradict. walk: one filter, page by page.
 */
type Purpose = 'range' | 'confirm' | 'alone' | 'witness' | 'walk';

/** One list request and its purpose. */
export interface Question {
  readonly axis: Axis;
  readonly purpose: Purpose;
  /** First position that the answer should cover; null when it covers no particular range. */
  readonly from: bigint | null;
  /** Last position that the answer should cover; null is no end. */
  readonly to: bigint | null;
  /** The bounds to send; null leaves the filter out. */
  readonly after: bigint | null;
  readonly before: bigint | null;
  /** A lower date bound sent together with the id filters, in seconds. A date filter turns off a default time window of the source. */
  readonly since: bigint | null;
}

/** An application in the list, reduced to its position and its share of the page. */
export interface ListedRow {
  readonly id: bigint;
  /** Submission time in whole seconds since the epoch; null where unknown. */
  readonly at: bigint | null;
  readonly bytes: number;
}

/** A known id in the range of the question that the answer does not show. */
export interface UnshownId {
  readonly id: bigint;
  /** It was stored before the sweep began, so the source may have deleted it since. Otherwise it was first seen during the sweep. */
  readonly old: boolean;
}

/** A complete answer from the right advertiser. */
export interface PageAnswer {
  readonly kind: 'page';
  /** As returned: in the order of the answer, with duplicates and with ids outside the question. */
  readonly rows: readonly ListedRow[];
  /** Elements whose id cannot be parsed. They take up room on the page and are kept in quarantine. */
  readonly unreadable: number;
  readonly bytes: number;
  /** Whether the filters that the answer repeats are those that were sent. */
  readonly echo: 'matches' | 'absent' | 'differs';
  /** Empty by 204, 404 or an empty body instead of an empty list. */
  readonly weakEmpty: boolean;
  /** The answer says that it comes from a cache. */
  readonly cached: boolean;
  /** Ids on this page that were not stored before it. */
  readonly unheld: readonly bigint[];
  /** By the rule of unshown.ts, at most `mostUnshown` ids. */
  readonly unshown: readonly UnshownId[];
}

/**
 * overflow: the answer exceeded the byte budget and was abandoned; nothing is stored, and its first ids serve as cut points.
 * refused: the source does not accept this combination of filters.
 */
export type Answer =
  | PageAnswer
  | { readonly kind: 'overflow'; readonly rows: readonly ListedRow[] }
  | { readonly kind: 'refused' };

/** The position of a row on an axis. */
export function positionOf(axis: Axis, row: Pick<ListedRow, 'id' | 'at'>): bigint | null {
  return axis === 'id' ? row.id : row.at;
}

/** The number of elements on a page, and its bytes. */
export function sizeOf({ rows, unreadable, bytes }: PageAnswer): PageSize {
  return { rows: rows.length + unreadable, bytes };
}

/** The shape of a question, by the bounds it sends. */
export function shapeOf({ after, before }: Pick<Question, 'after' | 'before'>): FilterShape {
  return after === null ? 'before' : before === null ? 'after' : 'both';
}

/** True if both send the same request for the same purpose. */
export function isSameQuestion(a: Question, b: Question): boolean {
  return (
    a.purpose === b.purpose &&
    a.axis === b.axis &&
    a.after === b.after &&
    a.before === b.before &&
    a.since === b.since &&
    a.from === b.from &&
    a.to === b.to
  );
}

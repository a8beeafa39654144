// What a sweep may ask of a list, and what it can be told. A position is an id on the id axis and a whole second since the epoch on
// the date axis; how a source spells either is known to source/ only.

export type Axis = 'id' | 'date';

/** Which bounds a question sends. A source may treat each shape differently: page size, inclusive bounds, even which rows it shows. */
export type FilterShape = 'after' | 'before' | 'both';

/**
 * range: read a range. confirm: the same range in another shape, because it was answered empty. alone: is this one id still there?
 * witness: a question in another shape or at another place, which closes nothing and can only contradict. walk: one filter, page by page.
 */
type Purpose = 'range' | 'confirm' | 'alone' | 'witness' | 'walk';

/** One list request, and what it is asked for. */
export interface Question {
  readonly axis: Axis;
  readonly purpose: Purpose;
  /** First position that the answer should speak of; null when it speaks of none in particular. */
  readonly from: bigint | null;
  /** Last position that the answer should speak of; null is no end. */
  readonly to: bigint | null;
  /** The bounds to send; null leaves the filter out. */
  readonly after: bigint | null;
  readonly before: bigint | null;
  /** A lower bound by date sent beside the ids, in seconds: a default window of the source ends where a date filter is sent. */
  readonly since: bigint | null;
}

/** An application as the list showed it, reduced to where it lies and how much of the page it takes. */
export interface ListedRow {
  readonly id: bigint;
  /** Submission in whole seconds since the epoch; null where it is not known. */
  readonly at: bigint | null;
  readonly bytes: number;
}

/** A known id that the asked range holds and the answer does not. */
export interface UnshownId {
  readonly id: bigint;
  /** It was stored before the sweep began, so the source may have deleted it since; otherwise this sweep itself has seen it. */
  readonly old: boolean;
}

/** A whole answer that was read to its end and came from our advertiser. */
export interface PageAnswer {
  readonly kind: 'page';
  /** As returned: in order, with copies and with ids that were not asked for. */
  readonly rows: readonly ListedRow[];
  /** Elements whose id could not be read. They take up places of the page, and are kept in quarantine. */
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
  /** What `findUnshown` (unshown.ts) finds, at most `mostUnshown` of it. */
  readonly unshown: readonly UnshownId[];
}

/** overflow: abandoned over the byte budget, nothing stored, the ids of its beginning serve as cut points. refused: not this mixture of filters. */
export type Answer =
  | PageAnswer
  | { readonly kind: 'overflow'; readonly rows: readonly ListedRow[] }
  | { readonly kind: 'refused' };

/** The position of a row on an axis. */
export function positionOf(axis: Axis, row: Pick<ListedRow, 'id' | 'at'>): bigint | null {
  return axis === 'id' ? row.id : row.at;
}

/** How many elements a page holds. */
export function lengthOf({ rows, unreadable }: Pick<PageAnswer, 'rows' | 'unreadable'>): number {
  return rows.length + unreadable;
}

/** The shape of a question, by the bounds it sends. */
export function shapeOf({ after, before }: Pick<Question, 'after' | 'before'>): FilterShape {
  return after === null ? 'before' : before === null ? 'after' : 'both';
}

/** True when both would send the same request for the same reason. */
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

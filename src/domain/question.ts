// What a sweep may ask of a list and what it can be told: the vocabulary between the reasoning and whoever carries the questions.
// Positions are ids on the id axis and whole seconds since the epoch on the date axis; how a source spells either is not known here.

export type Axis = 'id' | 'date';

/**
 * range: read a range. again: the same question once more, because an id in its closed range turned up elsewhere.
 * alone: is this one id still there? witness: one filter only, to catch a range that was closed wrongly. walk: one filter, page by page.
 */
type Purpose = 'range' | 'again' | 'alone' | 'witness' | 'walk';

/** One list request, and what it is asked for. */
export interface Question {
  readonly axis: Axis;
  readonly purpose: Purpose;
  /** First position that the answer should speak of. */
  readonly from: bigint | null;
  /** Last position that the answer should speak of; null is no end. */
  readonly to: bigint | null;
  /** The bounds to send, null where the filter is left out. */
  readonly after: bigint | null;
  readonly before: bigint | null;
  /** The id that this question is about, for `again` and `alone`. */
  readonly expects: bigint | null;
}

/** An application as the list showed it, reduced to where it lies. */
export interface Row {
  readonly id: bigint;
  /** Submission in whole seconds since the epoch, where it is known. */
  readonly at: bigint | null;
}

/** A whole answer that was read to its end, came from our advertiser and is kept together with what it teaches. */
export interface Page {
  readonly kind: 'page';
  /** As returned: in order, with copies and with ids that were not asked for. */
  readonly rows: readonly Row[];
  readonly bytes: number;
  /** Whether the filters that the answer repeats are those that were sent. */
  readonly echo: 'matches' | 'absent' | 'differs';
  /** Empty by 204, 404 or an empty body instead of an empty list. */
  readonly weakEmpty: boolean;
  /** Ids on this page that were not held before it. */
  readonly unheld: readonly bigint[];
  /**
   * Ids held between `from` and `to` of the question that are not on this page: those nearest to where the page begins are enough,
   * toMostMissing of them.
   */
  readonly missing: readonly bigint[];
}

/** overflow: abandoned over the byte budget, nothing stored, the ids of its beginning serve as cut points. refused: not this mixture of filters. */
export type Answer = Page | { readonly kind: 'overflow'; readonly rows: readonly Row[] } | { readonly kind: 'refused' };

/** The position of a row on an axis. */
export function toPosition(axis: Axis, row: Row): bigint | null {
  return axis === 'id' ? row.id : row.at;
}

/** True when both would send the same request for the same reason. */
export function isSameQuestion(a: Question, b: Question): boolean {
  return (
    a.purpose === b.purpose &&
    a.axis === b.axis &&
    a.after === b.after &&
    a.before === b.before &&
    a.expects === b.expects
  );
}

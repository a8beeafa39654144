// The questions that a sweep sends to the source's list, and the answers. Only source/ knows how the source writes either.

import { type IdRange, idsInside, lowerBound, type Position, upperBound } from './position.ts';

export interface PageSize {
  readonly rows: number;
  readonly bytes: number;
}

/** Whether a question sends both id bounds, or one, whichever it is. A source may have another page size for each. */
export type Shape = 'after' | 'both';

export interface ShapedPage extends PageSize {
  readonly shape: Shape;
}

/** One request of the list, and what it is for. Null leaves a filter out. */
export interface Question {
  /** range: read one. witness: asked in another shape or place, it can only contradict. walk: read by one filter, page by page. */
  readonly purpose: 'range' | 'witness' | 'walk';
  /** The ids that the answer should show; null for a question by date. */
  readonly covers: IdRange | null;
  readonly afterId: bigint | null;
  readonly beforeId: bigint | null;
  /** In whole seconds since 1970. */
  readonly afterDate: bigint | null;
  readonly beforeDate: bigint | null;
}

/** Covers every interpretation of "Australian Eastern Standard time", with a margin. In seconds. */
export const dateSlackSeconds = 26n * 3600n;

/** An application in the list: its id, when it was submitted (seconds since 1970), and its share of the body. */
export interface ListedRow {
  readonly id: bigint;
  readonly at: bigint | null;
  readonly bytes: number;
}

/** A stored id that the answer should show and does not. */
export interface LackingId {
  readonly id: bigint;
  /** Stored before the sweep began. Otherwise this sweep saw it first. */
  readonly old: boolean;
  /** An earlier answer of this sweep lacked it too. */
  readonly again: boolean;
}

/** A complete answer of the right account, compared with what is stored. */
export interface PageAnswer {
  readonly kind: 'page';
  /** In the order of the answer, with duplicates and with ids outside the question. */
  readonly rows: readonly ListedRow[];
  /** Elements without a readable id. They take up room and are kept in quarantine. */
  readonly unreadable: number;
  readonly bytes: number;
  /** Whether the filters that the answer repeats are those that were sent. */
  readonly echo: 'matches' | 'absent' | 'differs';
  /** Empty by 204, 404, no body, or an envelope with a message and no list, instead of an empty list. */
  readonly weakEmpty: boolean;
  readonly cached: boolean;
  /** Ids of the page that were not stored before it. */
  readonly news: ReadonlySet<bigint>;
  /** In rising order, at most `mostLacking`. Ids that two answers of this sweep have lacked are gone, and left out. */
  readonly lacking: readonly LackingId[];
}

/** Bounds one statement. A list that was cut off never confirms a deletion. A choice. */
export const mostLacking = 500;

/**
 * unanswered: the source fails for this question while it serves others, or the body is larger than the byte budget; `ids` were readable.
 * refused: the source does not accept these filters.
 */
export type Answer =
  | PageAnswer
  | { readonly kind: 'unanswered'; readonly why: string; readonly ids: readonly bigint[] }
  | { readonly kind: 'refused' };

/** The ids of a page inside a range, each once, in rising order. */
export function shownInside(range: IdRange, { rows }: PageAnswer): Position[] {
  const ids = rows.map(({ id }) => id);
  return idsInside(range, ids);
}

/** The ids of a page that may have arrived during the sweep: submitted from this second on. */
export function recentIds({ rows }: PageAnswer, recentFrom: bigint | null): Set<bigint> {
  const recent = rows.filter(({ at }) => recentFrom !== null && at !== null && at >= recentFrom);
  return new Set(recent.map(({ id }) => id));
}

export function sizeOf({ afterId, beforeId }: Question, { rows, unreadable, bytes }: PageAnswer): ShapedPage {
  const shape = afterId === null || beforeId === null ? 'after' : 'both';
  return { rows: rows.length + unreadable, bytes, shape };
}

export function boundedQuestion(purpose: Question['purpose'], { from, to }: IdRange): Question {
  const covers = { from, to };
  const [afterId, beforeId] = [lowerBound(covers), upperBound(covers)];
  return { purpose, covers, afterId, beforeId, afterDate: null, beforeDate: null };
}

export const aloneQuestion = (id: Position): Question => boundedQuestion('witness', { from: id, to: id });

/** True if the page shows an id beyond a bound of its question. The bounds themselves may come back. */
export function isStray({ afterId, beforeId }: Question, { rows }: PageAnswer): boolean {
  return rows.some(({ id }) => (afterId !== null && id < afterId) || (beforeId !== null && id > beforeId));
}

const parts = ['purpose', 'afterId', 'beforeId', 'afterDate', 'beforeDate'] as const;

export function isSameQuestion(a: Question, b: Question): boolean {
  return parts.every((part) => a[part] === b[part]);
}

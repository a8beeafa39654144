// Reads a range of submission dates, window by window. It stores what it is shown and proves nothing: dates are sent without a time zone, and
// only ids can be split without end. A window that may have been cut off is split in two.

import { type Answer, dateSlackSeconds, type ListedRow, type Question } from './coverage/question.ts';

/** Seconds since 1970, both ends included. */
interface Window {
  readonly from: bigint;
  readonly to: bigint;
  /** How many applications of the window a wider answer has shown; null for the first. */
  readonly seen: number | null;
}

export interface DateProgress {
  /** Windows still to be read, the next one last. */
  readonly windows: readonly Window[];
  /** The end of the whole range. No upper bound is sent for a window that ends here. */
  readonly endless: bigint | null;
  readonly longest: number;
  readonly found: number;
  /** Questions without an answer since the last page; absent in the rows of earlier versions. */
  readonly unanswered?: number;
  readonly highest: bigint | null;
  /** Why something may be missing; null while nothing speaks for it. */
  readonly trouble: string | null;
}

/** The range is wider by the slack: the source may read its ends in another zone. `to` null: to the newest, the first window up to `now`. */
export function beginDates(asked: bigint, to: bigint | null, now: bigint): DateProgress {
  const from = asked > dateSlackSeconds ? asked - dateSlackSeconds : 0n;
  const end = (to ?? now) + dateSlackSeconds;
  const windows = end < from ? [] : [{ from, to: end, seen: null }];
  return { windows, endless: to === null ? end : null, longest: 0, found: 0, highest: null, trouble: null };
}

/** The question for the next window; null when all are read. */
export function askDates({ windows, endless }: DateProgress): Question | null {
  const window = windows.at(-1);
  if (window === undefined) return null;
  const beforeDate = window.to === endless ? null : window.to + 1n;
  return { purpose: 'range', covers: null, afterId: null, beforeId: null, afterDate: window.from - 1n, beforeDate };
}

/** In a row. Halving the longest range down to a second takes 33. */
const mostUnanswered = 60;

export function learnDates(progress: DateProgress, answer: Answer): DateProgress {
  const windows = progress.windows.slice(0, -1);
  const window = progress.windows.at(-1) as Window;
  const next = { ...progress, windows };
  if (answer.kind === 'refused') return { ...next, windows: [], trouble: 'the source refuses the date filters' };
  if (answer.kind === 'unanswered') {
    const unanswered = (progress.unanswered ?? 0) + 1;
    if (unanswered > mostUnanswered)
      return { ...next, windows: [], trouble: `the date filters lead to no answer: ${answer.why}` };
    const left = { ...next, unanswered };
    if (window.from === window.to) return { ...left, trouble: `a second could not be read: ${answer.why}` };
    return { ...left, windows: [...windows, ...split(window, middleOf(window), null)] };
  }
  const { rows } = answer;
  const isStray = ({ at }: ListedRow) =>
    at !== null && (at < window.from - dateSlackSeconds || at > window.to + dateSlackSeconds);
  if (rows.some(isStray)) return { ...next, windows: [], trouble: 'the source does not honour the date filters' };
  const longest = Math.max(progress.longest, rows.length);
  let { highest } = progress;
  for (const { id } of rows) if (highest === null || id > highest) highest = id;
  const found = progress.found + Math.max(0, rows.length - (window.seen ?? 0));
  const read = { ...next, unanswered: 0, longest, highest, found };
  const isAsSeen = window.seen !== null && rows.length <= window.seen && rows.length < longest;
  const isWhole = isAsSeen || rows.length * 2 < longest;
  if (rows.length === 0 || isWhole || window.from === window.to) return read;
  // They belong to no window that ends, and splitting would lead to each second of it.
  if (window.to !== progress.endless && rows.every(({ at }) => at === null))
    return { ...read, trouble: 'the source shows applications without a date' };
  return { ...read, windows: [...windows, ...split(window, medianOf(window, rows), rows)] };
}

/** Two windows, the earlier one last, so that it is read first. */
function split(window: Window, cut: bigint, rows: readonly ListedRow[] | null): Window[] {
  const earlier = rows?.filter(({ at }) => at === null || at <= cut).length ?? null;
  const later = rows === null || earlier === null ? null : rows.length - earlier;
  return [
    { from: cut + 1n, to: window.to, seen: later },
    { from: window.from, to: cut, seen: earlier },
  ];
}

const middleOf = ({ from, to }: Window) => (from + to) / 2n;

/** The last second of the earlier window: the median submission if it splits the window, else the middle. */
function medianOf(window: Window, rows: readonly ListedRow[]): bigint {
  const dates = rows.flatMap(({ at }) => at ?? []).sort((a, b) => (a < b ? -1 : 1));
  const median = dates[(dates.length - 1) >> 1];
  return median !== undefined && median >= window.from && median < window.to ? median : middleOf(window);
}

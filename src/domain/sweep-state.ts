// Everything a sweep has to remember between two questions, as plain values that can be stored after each answer and resumed.
// `facts` is small and changes with every answer; `ranges` are many, and an answer replaces only a few of them.

import { type Capacity, unknownCapacity } from './capacity.ts';
import { type Axis, type Question, type Row, toPosition } from './question.ts';
import type { Direction, Range } from './range.ts';
import type { Walk } from './walk.ts';

/** A sweep between two questions. */
export interface State {
  readonly facts: Facts;
  /** In rising order, without overlap; positions in none of them are ids that a whole answer showed. */
  readonly ranges: readonly Range[];
}

/** What was learned so far. It holds for this sweep only. */
export interface Facts {
  readonly axis: Axis;
  readonly from: bigint;
  readonly to: bigint | null;
  /** A proof asks witnesses; a poll takes the page size on trust and asks none. */
  readonly rigor: 'proof' | 'poll';
  readonly requests: number;
  readonly requestLimit: number;
  /** Applications found in the range so far. */
  readonly found: number;
  /** Applications held in the range before the sweep. */
  readonly heldBefore: number;
  readonly one: Capacity;
  readonly two: Capacity;
  /** The page size was brought along from an earlier sweep. */
  readonly borrowed: boolean;
  readonly inclusiveAfter: boolean;
  readonly inclusiveBefore: boolean;
  readonly rising: number;
  readonly falling: number;
  /** Which filters were seen to act before the cap: ids came to light because that bound alone was moved. */
  readonly reachAfter: boolean;
  readonly reachBefore: boolean;
  /** Many ids came to light when both bounds were moved: one of the two filters acts before the cap. */
  readonly reachInner: boolean;
  /** Some answer is known to have been cut off. */
  readonly cut: boolean;
  /** Rows of the longest page of all, whatever it was asked for. */
  readonly longest: number;
  /** A page that was surely cut off, by what is held, and whether one of them skipped a held id before its last row. */
  readonly endsInOrder: boolean;
  readonly skips: boolean;
  readonly lowest: bigint | null;
  readonly highest: bigint | null;
  readonly earliestAt: bigint | null;
  readonly latestAt: bigint | null;
  /** Why the sweep can be assumed at best. */
  readonly doubts: readonly string[];
  /** Why the sweep proves nothing. */
  readonly faults: readonly string[];
  /** Held ids that a closed range did not show, to be asked alone. */
  readonly suspects: readonly bigint[];
  /** Held ids that did not come back when asked alone. */
  readonly absent: readonly bigint[];
  /** Ids that turned up in closed ranges, whose questions must be asked again. */
  readonly surprises: readonly bigint[];
  /** Null until every range is closed. */
  readonly witnesses: readonly Question[] | null;
  readonly walk: Walk | null;
}

/** The facts of a sweep that has asked nothing. */
export function createFacts(
  given: Pick<Facts, 'axis' | 'from' | 'to' | 'rigor' | 'requestLimit' | 'heldBefore'> & {
    readonly capacity: Capacity | null;
  },
): Facts {
  const { axis, from, to, rigor, requestLimit, heldBefore, capacity } = given;
  return {
    axis,
    from,
    to,
    rigor,
    requestLimit,
    heldBefore,
    requests: 0,
    found: 0,
    one: capacity ?? unknownCapacity,
    two: capacity ?? unknownCapacity,
    borrowed: capacity !== null,
    inclusiveAfter: false,
    inclusiveBefore: false,
    rising: 0,
    falling: 0,
    reachAfter: false,
    reachBefore: false,
    reachInner: false,
    cut: false,
    longest: 0,
    endsInOrder: false,
    skips: false,
    lowest: null,
    highest: null,
    earliestAt: null,
    latestAt: null,
    doubts: [],
    faults: [],
    suspects: [],
    absent: [],
    surprises: [],
    witnesses: null,
    walk: null,
  };
}

/** Counts in which order neighbours came. */
export function noteOrder(facts: Draft['facts'], rows: readonly Row[]): void {
  let last: bigint | null = null;
  for (const row of rows) {
    const position = toPosition(facts.axis, row);
    if (position === null) continue;
    if (last !== null && position > last) facts.rising++;
    if (last !== null && position < last) facts.falling++;
    last = position;
  }
}

/** The order in which pages came, by three pairs in four. */
export function toDirection(facts: Facts): Direction {
  const pairs = facts.rising + facts.falling;
  if (facts.rising * 4 > pairs * 3) return 'ascending';
  return facts.falling * 4 > pairs * 3 ? 'descending' : 'mixed';
}

/** How much of the range is read, from 0 to 1, as far as it can be told; null before the first id is seen. */
export function toShare({ facts, ranges }: State): number | null {
  const top = facts.to ?? facts.highest;
  if (top === null || top < facts.from || facts.walk !== null) return null;
  let open = 0n;
  for (const range of ranges) {
    if (range.state === 'closed' || range.from > top) continue;
    open += (range.to === null || range.to > top ? top : range.to) - range.from + 1n;
  }
  return 1 - Number(open) / Number(top - facts.from + 1n);
}

/** Text for a jsonb column, of facts or of a range; ids stay exact. */
export function encode(value: Facts | Range): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? `${member}n` : member));
}

/** The facts that `encode` wrote. */
export function decodeFacts(text: string): Facts {
  return JSON.parse(text, revive) as Facts;
}

/** The range that `encode` wrote. */
export function decodeRange(text: string): Range {
  return JSON.parse(text, revive) as Range;
}

function revive(_: string, member: unknown): unknown {
  return typeof member === 'string' && /^-?\d+n$/.test(member) ? BigInt(member.slice(0, -1)) : member;
}

/** Which ranges an answer replaced: few, so that storing a step is cheap. */
export function toChanges(before: State, after: State): { readonly dropped: Range[]; readonly added: Range[] } {
  const old = new Set(before.ranges);
  const now = new Set(after.ranges);
  return {
    dropped: before.ranges.filter((range) => !now.has(range)),
    added: after.ranges.filter((range) => !old.has(range)),
  };
}

/** A step in the making: facts may be set, ranges are replaced. */
export interface Draft {
  readonly facts: { -readonly [K in keyof Facts]: Facts[K] };
  ranges: readonly Range[];
}

/** Puts pieces in the place of a range. */
export function replace(draft: Draft, old: Range, pieces: readonly Range[]): void {
  const at = draft.ranges.indexOf(old);
  const sorted = [...pieces].sort((a, b) => (a.from < b.from ? -1 : 1));
  draft.ranges = draft.ranges.toSpliced(at, 1, ...sorted);
}

/** Notes why the sweep proves nothing. */
export function addFault(facts: Draft['facts'], reason: string): void {
  if (!facts.faults.includes(reason)) facts.faults = [...facts.faults, reason];
}

/** Notes why the sweep can be assumed at best. */
export function addDoubt(facts: Draft['facts'], reason: string): void {
  if (!facts.doubts.includes(reason)) facts.doubts = [...facts.doubts, reason];
}

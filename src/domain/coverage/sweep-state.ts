// Everything that a sweep remembers between two questions, as plain values that are stored after each answer and can be loaded again.
// `facts` is small and changes with every answer; `ranges` are many, and an answer replaces only a few of them.

import {
  type Capacity,
  countPairs,
  type Direction,
  fewestPairs,
  type PageSize,
  type Pairs,
  unknownCapacity,
} from './capacity.ts';
import { type Axis, type FilterShape, type ListedRow, positionOf, type Question, type UnshownId } from './question.ts';
import type { Range } from './range.ts';
import type { Walk } from './walk.ts';

/** A sweep between two questions. */
export interface State {
  readonly facts: StateFacts;
  /** In rising order, without overlap. Positions in none of them are ids that a complete answer showed. */
  readonly ranges: readonly Range[];
}

/** Why a sweep is not a proof. harmless: there is no evidence against completeness. doubt: there is such evidence. */
export interface Reservation {
  readonly risk: 'harmless' | 'doubt';
  readonly reason: string;
}

/** A known id that a short answer lacked and that is asked alone next, with the size and shape of that answer. */
export interface Suspect extends UnshownId, PageSize {
  readonly shape: FilterShape;
  /** The id was asked alone once and did not come back. */
  readonly missedOnce: boolean;
}

/** What the sweep has learned so far. It is valid for this sweep only. */
export interface StateFacts {
  readonly axis: Axis;
  /** First position. A proof of the whole list begins at id 1. */
  readonly from: bigint;
  /** Last position; null is no end. */
  readonly to: bigint | null;
  /** A proof asks witnesses and confirms empty answers. A poll does neither, asks one question if nothing is new, and is `assumed` at best. */
  readonly rigor: 'proof' | 'poll';
  /** Rises when the sweep continues after so long a pause that it learns page sizes anew. */
  readonly part: number;
  readonly requests: number;
  /** Applications found in the range so far. */
  readonly found: number;
  /** Of these, applications that may have arrived during the sweep. */
  readonly recent: number;
  /** Applications stored in the range before the sweep. */
  readonly heldBefore: number;
  /** Of these, applications that are not erased: only they can be found gone at the source. */
  readonly listedBefore: number;
  /** Rows of the longest page that earlier sweeps have seen. */
  readonly longestBefore: number;
  /** Applications submitted from this second on may have arrived during the sweep; null without a clock. */
  readonly recentFrom: bigint | null;
  /** Decides where the witnesses split ranges at random. */
  readonly seed: number;
  /** Pages with a lower bound alone and pages with both bounds may be cut off at different sizes, so each shape has its own capacity. */
  readonly after: Capacity;
  readonly both: Capacity;
  /** Bytes of the largest row that was shown. */
  readonly largestRow: number;
  /** Total rows shown, and their bytes. */
  readonly shown: PageSize;
  /** Whether the bound itself came back, by the shape of the question. */
  readonly inclusive: Readonly<Record<FilterShape, { readonly after: boolean; readonly before: boolean }>>;
  /** Most rows and bytes of pages that held only the bounds of their question, by shape; null while there was none. */
  readonly boundsOnly: Readonly<Record<'after' | 'both', PageSize | null>>;
  /** Adjacent pairs of rows in rising and in falling order of positions. */
  readonly rising: number;
  readonly falling: number;
  /** Adjacent pairs of rows whose second row has more bytes, and fewer bytes. */
  readonly sizes: Pairs;
  /** Number of parts of answers that agree with a choice of rows by rising and by falling ids; null once a part contradicts it. */
  readonly chosen: { readonly ascending: number | null; readonly descending: number | null };
  /** Rows of the last answer of a shape that is known to have been cut off; null while none is. */
  readonly cutAt: { readonly after: number | null; readonly both: number | null };
  /** Answers were cut off at different lengths. */
  readonly uneven: boolean;
  /** The filter was seen to act before the cap: moving that bound alone revealed ids. */
  readonly reachAfter: boolean;
  readonly reachBefore: boolean;
  /** Moving both bounds revealed ids, so one of the two filters acts before the cap. */
  readonly reachInner: boolean;
  /** A part of an answer's range showed clearly more ids than the answer did, so that answer was cut off. */
  readonly cut: boolean;
  /** Some answer exceeded the byte budget and was abandoned. */
  readonly overflowed: boolean;
  /** Rows of the longest page, whatever its question. */
  readonly longest: number;
  readonly lowest: bigint | null;
  readonly highest: bigint | null;
  readonly earliestAt: bigint | null;
  readonly latestAt: bigint | null;
  /** By how many seconds the source interprets a date bound later than intended, at least and at most. */
  readonly shift: { readonly least: bigint; readonly most: bigint };
  /** Why the sweep can be assumed at best. */
  readonly reservations: readonly Reservation[];
  /** Why the sweep proves nothing. */
  readonly faults: readonly string[];
  readonly suspects: readonly Suspect[];
  /** Ids stored before the sweep that did not come back when asked alone. */
  readonly absent: readonly bigint[];
  /** Ids first seen during the sweep that did not come back when asked alone. */
  readonly vanished: readonly bigint[];
  /** Null until every range is closed. */
  readonly witnesses: readonly Question[] | null;
  readonly walk: Walk | null;
}

/** What a sweep reads, and what was known before it. */
export type SweepBounds = Pick<
  StateFacts,
  'axis' | 'from' | 'to' | 'rigor' | 'heldBefore' | 'listedBefore' | 'longestBefore' | 'recentFrom' | 'seed'
>;

/** A page size that an earlier sweep has seen. */
export interface KnownCapacity {
  readonly count: number;
  readonly bytes: number;
  readonly largestRow: number;
  /** The order of ids in which rows are chosen and shown; mixed if there is none. */
  readonly order: Direction;
  /** Pages are cut off at different lengths. */
  readonly uneven: boolean;
  /** Rows of the longest page of all sweeps. */
  readonly longest: number;
}

/** Covers every interpretation of "Australian Eastern Standard time", with a margin. */
export const dateSlackSeconds = 26n * 3600n;

/** The facts of a sweep that has asked nothing yet. */
export function createFacts(given: SweepBounds, known: KnownCapacity | null): StateFacts {
  const capacity = known === null ? unknownCapacity : { rows: known.count, bytes: known.bytes, cutRows: null };
  const neither = { after: false, before: false };
  return {
    ...given,
    part: 1,
    requests: 0,
    found: 0,
    recent: 0,
    after: capacity,
    both: capacity,
    largestRow: known?.largestRow ?? 0,
    shown: { rows: 0, bytes: 0 },
    inclusive: { after: neither, before: neither, both: neither },
    boundsOnly: { after: null, both: null },
    rising: known?.order === 'ascending' ? fewestPairs : 0,
    falling: known?.order === 'descending' ? fewestPairs : 0,
    sizes: { rising: 0, falling: 0 },
    chosen: { ascending: 0, descending: 0 },
    cutAt: { after: null, both: null },
    uneven: known?.uneven ?? false,
    reachAfter: false,
    reachBefore: false,
    reachInner: false,
    cut: false,
    overflowed: false,
    longest: 0,
    lowest: null,
    highest: null,
    earliestAt: null,
    latestAt: null,
    shift: { least: -dateSlackSeconds, most: dateSlackSeconds },
    reservations: [],
    faults: [],
    suspects: [],
    absent: [],
    vanished: [],
    witnesses: null,
    walk: null,
  };
}

/** The next state while an answer is applied: facts may be set, ranges are replaced. */
export interface SweepDraft {
  readonly facts: { -readonly [K in keyof StateFacts]: StateFacts[K] };
  ranges: readonly Range[];
}

/** Counts adjacent rows in rising and falling order, and records the largest row. */
export function noteRows(facts: SweepDraft['facts'], rows: readonly ListedRow[]): void {
  const bySize = countPairs(rows.map((row) => row.bytes));
  const byPosition = countPairs(rows.map((row) => positionOf(facts.axis, row)).filter((position) => position !== null));
  facts.sizes = { rising: facts.sizes.rising + bySize.rising, falling: facts.sizes.falling + bySize.falling };
  facts.rising += byPosition.rising;
  facts.falling += byPosition.falling;
  facts.largestRow = rows.reduce((most, row) => Math.max(most, row.bytes), facts.largestRow);
  const bytes = rows.reduce((sum, row) => sum + row.bytes, facts.shown.bytes);
  facts.shown = { rows: facts.shown.rows + rows.length, bytes };
}

/** True when, as far as answers show, the source chooses and returns rows in one order. Then a page is complete up to its last row. */
export function isSorted({ rising, falling, chosen }: StateFacts): boolean {
  if (rising + falling < fewestPairs || Math.min(rising, falling) > 0) return false;
  return (falling === 0 ? chosen.ascending : chosen.descending) !== null;
}

/** An estimate of how much of the range has been read, from 0 to 1; null before the first id is seen, and in a walk. */
export function shareRead({ facts, ranges }: State): number | null {
  const top = facts.to ?? facts.highest;
  if (top === null || top < facts.from || facts.walk !== null) return null;
  let open = 0n;
  for (const range of ranges) {
    if (range.state === 'closed' || range.from > top) continue;
    open += (range.to === null || range.to > top ? top : range.to) - range.from + 1n;
  }
  return 1 - Number(open) / Number(top - facts.from + 1n);
}

/** Facts or a range as text for a jsonb column; ids stay exact. */
export function encode(value: StateFacts | Range): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? `${member}n` : member));
}

/** The facts that `encode` wrote. Members that an earlier version did not know start as in a new sweep. */
export function decodeFacts(text: string): StateFacts {
  const facts = JSON.parse(text, revive) as StateFacts;
  return { ...createFacts({ ...facts, listedBefore: facts.heldBefore, longestBefore: 0 }, null), ...facts };
}

/** The range that `encode` wrote. */
export function decodeRange(text: string): Range {
  return JSON.parse(text, revive) as Range;
}

function revive(_: string, member: unknown): unknown {
  return typeof member === 'string' && /^-?\d+n$/.test(member) ? BigInt(member.slice(0, -1)) : member;
}

/** The ranges that an answer replaced. They are few, so storing the new state is cheap. */
export function findChanges(before: State, after: State): { readonly dropped: Range[]; readonly added: Range[] } {
  const [old, now] = [new Set(before.ranges), new Set(after.ranges)];
  return { dropped: [...old.difference(now)], added: [...now.difference(old)] };
}

/** Replaces a range by its pieces. */
export function replace(draft: SweepDraft, old: Range, pieces: readonly Range[]): void {
  const at = draft.ranges.indexOf(old);
  const sorted = [...pieces].sort((a, b) => (a.from < b.from ? -1 : 1));
  draft.ranges = draft.ranges.toSpliced(at, 1, ...sorted);
}

/** Records why the sweep proves nothing. */
export function addFault(facts: SweepDraft['facts'], reason: string): void {
  if (!facts.faults.includes(reason)) facts.faults = [...facts.faults, reason];
}

/** Records why the sweep can be assumed at best. */
export function addReservation(facts: SweepDraft['facts'], risk: Reservation['risk'], reason: string): void {
  if (facts.reservations.some((one) => one.reason === reason)) return;
  facts.reservations = [...facts.reservations, { risk, reason }];
}

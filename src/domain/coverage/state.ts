// What a sweep remembers between two answers: a fixed number of facts, and the ranges of ids that are still open. All other ids of the
// sweep are closed. An answer replaces one open range by a few, so what is stored after each answer is small.

import { firstIndex, type IdRange, isSingle, type Position } from './position.ts';
import type { LackingId, PageSize, Question, Shape, ShapedPage } from './question.ts';
import type { Walk } from './walk.ts';

/** The answer that an open range was cut from. */
export interface Wider extends ShapedPage {
  /** How many ids it showed inside the range. If the range shows more, it was cut off. */
  readonly inside: number;
  /** Which bound of the question has moved since. */
  readonly moved: 'after' | 'before' | 'both';
}

export interface OpenRange extends IdRange {
  readonly wider: Wider | null;
  /** Bounds that came back and filled the page. The question steps over them. */
  readonly steps: { readonly after: boolean; readonly before: boolean };
  /** Why it is not asked again in this sweep; null while it is. */
  readonly stuck: string | null;
}

/** Why a sweep is less than a proof. fault: unproven. doubt: evidence against completeness. harmless: none. */
export interface Reason {
  readonly risk: 'harmless' | 'doubt' | 'fault';
  readonly reason: string;
}

/** What a sweep reads, and what is known before it. */
export interface Plan extends IdRange {
  /** A poll asks no witnesses and takes the page size from the sweep before. */
  readonly rigor: 'proof' | 'poll';
  /** Stored applications in the range that the source should show. */
  readonly listedBefore: number;
  /** Rows of the longest page that earlier sweeps have seen. */
  readonly longestBefore: number;
  /** Applications submitted from this second on may have arrived during the sweep; null without a clock. */
  readonly recentFrom: bigint | null;
  /** Stored ids that a poll asks alone if it is shown nothing at all; emptied when one of them comes. */
  readonly lifelines: readonly Position[];
  /** Ids that earlier sweeps could not read. This sweep does not ask for them, and no other question crosses them. */
  readonly unreadable: readonly Position[];
  /** Ids that an operator accepted as unreadable. They do not lower the certificate. */
  readonly accepted: readonly Position[];
  /** What earlier sweeps have learned about pages, for a poll. A proof measures them itself. */
  readonly learned: KnownPages | null;
  /** Decides where witnesses split ranges. */
  readonly seed: number;
}

export interface Facts extends Omit<Plan, 'unreadable' | 'learned'> {
  readonly requests: number;
  /** Applications in closed ranges, and how many of them may have arrived during the sweep. */
  readonly found: number;
  readonly recent: number;
  /** Most rows and most bytes of a page without and with an upper bound. */
  readonly pages: Readonly<Record<Shape, PageSize>>;
  readonly largestRow: number;
  /** Neighbouring rows with rising and with falling ids. */
  readonly rising: number;
  readonly falling: number;
  /** Moving this bound showed more ids: the page before was cut off, and the source applies the bound before it cuts. */
  readonly reach: Readonly<Record<Wider['moved'], boolean>>;
  readonly lowest: Position | null;
  readonly highest: Position | null;
  readonly earliestAt: bigint | null;
  readonly latestAt: bigint | null;
  readonly reasons: readonly Reason[];
  /** How many stored ids are gone: two answers with room lacked them. `vanished`: the same for ids that this sweep saw first. */
  readonly absent: number;
  readonly vanished: number;
  /** Some of the ids that are gone. They are asked alone at the end. */
  readonly goneSample: readonly Position[];
  /** The widest runs of ids without an application in closed ranges. What hides as a block lies in one of them. */
  readonly gaps: readonly IdRange[];
  /** Some closed ranges, chosen at random. They are asked again at the end, split at random. */
  readonly samples: readonly IdRange[];
  readonly closedRanges: number;
  /** The witnesses that are still to be asked; null before all ranges are closed. */
  readonly witnesses: readonly Question[] | null;
  /** The progress of a walk by one filter; null while two filters are trusted. */
  readonly walk: Walk | null;
}

export interface State {
  readonly facts: Facts;
  /** In rising order. Neighbours share at most one id. */
  readonly open: readonly OpenRange[];
}

/** What an answer changes, beside the state. */
export interface Learned {
  readonly state: State;
  /** The rule by which the answer closes the range of its question. */
  readonly closed: 'known' | 'empty' | 'single' | null;
  /** Ids that an answer with room lacked. The store counts them: those that two answers lack are gone. */
  readonly lacked: readonly LackingId[];
}

export interface Draft {
  readonly facts: { -readonly [Name in keyof Facts]: Facts[Name] };
  open: readonly OpenRange[];
}

/** What a sweep has learned about pages, for later sweeps. */
export interface KnownPages extends Readonly<Record<Shape, PageSize>> {
  readonly largestRow: number;
  readonly order: Order;
  readonly longest: number;
  /** Whether afterid and beforeid are honoured together. */
  readonly together: boolean;
}

export type Order = 'ascending' | 'descending' | 'mixed';

/** The order that more than three pairs in four have. It decides where ranges are split and which bounds must be seen to act. */
export function orderOf({ rising, falling }: Pick<Facts, 'rising' | 'falling'>): Order {
  if (rising * 4 > (rising + falling) * 3) return 'ascending';
  return falling * 4 > (rising + falling) * 3 ? 'descending' : 'mixed';
}

// Room: when an answer certainly shows everything that matches. Rule R1 of docs/coverage.md derives half of the rows and 9/16 of the bytes
// from the second assumption. A poll knows only the pages of an earlier sweep. It takes 3/8: the bytes may have fallen to half since.

type PageFacts = Pick<Facts, 'pages' | 'largestRow' | 'rigor'>;

export function longestOf({ pages }: Pick<Facts, 'pages'>): number {
  return Math.max(pages.after.rows, pages.both.rows);
}

/** In shorter pages a few deleted or late rows are half of a page. A choice: it costs requests only. */
export const smallPage = 16;

/** Bytes below which an answer of this shape cannot have been cut off; 0 if none can tell. */
function byteLimit(facts: PageFacts, shape: Shape): number {
  const { rows, bytes } = facts.pages[shape];
  return rows < smallPage || facts.largestRow * 8 >= bytes ? 0 : bytes * (facts.rigor === 'poll' ? 3 / 8 : 9 / 16);
}

/** R1: true if an answer of this size cannot have been cut off. */
export function hasRoom(facts: PageFacts, { rows, bytes, shape }: ShapedPage): boolean {
  return rows * 2 < facts.pages[shape].rows && bytes < byteLimit(facts, shape);
}

/** R3: true if a page of elements without a readable id, or of bounds that came back, has room by the longest page of any shape. */
export function isFarFromFull({ pages }: Pick<Facts, 'pages'>, { rows, bytes }: PageSize): boolean {
  const mostBytes = Math.max(pages.after.bytes, pages.both.bytes);
  return rows * 2 < longestOf({ pages }) && bytes * 16 < mostBytes * 9;
}

/** How many rows a part may have so that its answer will have room, with two to spare for bounds that come back; 0 if none will have. */
export function partRows(facts: PageFacts, shape: Shape): number {
  const page = facts.pages[shape];
  const byRows = Math.ceil(page.rows / 2) - 3;
  // Rows differ in size: 4 % to spare, a choice. A part that turns out too large is only split again.
  const byBytes = Math.floor((byteLimit(facts, shape) * 0.96 * page.rows) / page.bytes) - 2;
  return Math.max(0, Math.min(byRows, byBytes));
}

/** True for a single id for which the source fails. It is kept apart and is in nobody's way. */
export function isUnreadable(range: OpenRange): range is OpenRange & { readonly stuck: string } {
  return range.stuck !== null && isSingle(range);
}

/** Why a range is stuck: its id was unreadable before the sweep, or its page shows no id but the bounds of the question. */
export const knownAsUnreadable = 'known as unreadable';
export const unreadableOnly = 'the page holds no readable id but the bounds of its question';

export function openRange({ from, to }: IdRange, wider: Wider | null = null): OpenRange {
  return { from, to, wider, steps: { after: false, before: false }, stuck: null };
}

/** Index of the first open range that ends at this id or later. */
export function indexOfOpen(open: readonly OpenRange[], id: bigint): number {
  return firstIndex(open, ({ to }) => to < id);
}

export function encode(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? `${member}n` : member));
}

export function decode<Value>(text: string): Value {
  return JSON.parse(text, (_, member: unknown) =>
    typeof member === 'string' && /^-?\d+n$/.test(member) ? BigInt(member.slice(0, -1)) : member,
  ) as Value;
}

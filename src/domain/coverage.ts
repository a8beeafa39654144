// Reading a list whose order, paging and filters are unknown, without losing anyone: what to ask next, what an answer proves.
// A pure state machine. It knows no clock, no network and no database: whoever drives it commits each page before `learn`
// and stores the state with it, so a sweep can stop after any answer and go on.
//
// Invariants (test/unit/coverage.test.ts names each in a test):
//   I1  A range is closed only by an empty answer, or by one that this source has shown it can double (capacity.ts).
//   I2  Every position of the swept range lies in a range, open or closed, or is an id that a whole answer showed.
//   I3  A cut leaves only strictly smaller ranges; requests stay under 64 + 6 per application found, and under the limit.
//   I4  An answer that proves to have been cut off lowers what may be believed, and reopens whatever was closed on more.
//   I5  An id outside the question, or a refused mixture, ends belief in both filters together: walk, `assumed` at best.
//   I6  An echo that contradicts the question ends every proof; an absent one leaves `assumed`.
//   I7  A bound that comes back is inclusive, and is stepped over from then on.
//   I8  An id that turns up in a closed range must be shown by that range's own question, asked again, or nothing is proven.
//   I9  A held id that a closed range did not show is asked alone: back, and I8 holds; not back, and it is absent.
//   I10 More absent ids than max(20, 2 %) mean that the source is not to be believed, and none is absent.
//   I11 `proven` needs witnesses; beyond one page it also needs to have seen the filters act before the cap.

import { fits, type Shape, smallPage, toLimit, toPieceSize, withAnswer, withCut } from './capacity.ts';
import { type Certificate, conclude, hasTooManyAbsent, isOverBudget } from './certificate.ts';
import { type Answer, type Axis, isSameQuestion, type Page, type Question, toPosition } from './question.ts';
import { cutRange, type Range, toPart, toRemainders } from './range.ts';
import { createFacts, type Facts, type State, toDirection } from './sweep-state.ts';
import { askWalk, beginWalk, learnWalk } from './walk.ts';
import { planWitnesses } from './witness.ts';

/** What is swept, and how hard. */
export interface Plan {
  readonly axis?: Axis;
  /** First position; the proof speaks of ids from 1. */
  readonly from?: bigint;
  /** Last position; null, the default, is no end. */
  readonly to?: bigint | null;
  /** poll: one question when nothing is new, `assumed` at best. */
  readonly rigor?: 'proof' | 'poll';
  readonly requestLimit?: number;
  /** Applications held in the range before the sweep. */
  readonly heldBefore?: number;
  /** For a poll: the page size that an earlier sweep has seen. */
  readonly capacity?: { readonly count: number; readonly bytes: number };
}

/** Some of the ids already held, in rising order, one in every `stride`: questions are cut there so that each expects half a page. */
export interface Known {
  readonly positions: readonly bigint[];
  readonly stride: number;
}

/** The end of a sweep. */
export interface Done extends Certificate {
  readonly kind: 'done';
}

/** Every reading of "Australian Eastern Standard time", with room: bounds on the date axis are sent this much wider. */
export const dateSlackSeconds = 26n * 3600n;

/** Begins a sweep: a backfill, a recheck or a poll, by its range. */
export function begin(plan: Plan): State {
  const from = plan.from ?? 1n;
  const to = plan.to ?? null;
  const axis = plan.axis ?? 'id';
  const facts = createFacts({
    axis,
    from,
    to,
    rigor: plan.rigor ?? 'proof',
    requestLimit: plan.requestLimit ?? 100_000,
    heldBefore: plan.heldBefore ?? 0,
    capacity:
      plan.capacity === undefined
        ? null
        : { largest: plan.capacity.count, largestBytes: plan.capacity.bytes, smallestCut: null },
  });
  if (to !== null && to < from) return { facts, ranges: [] };
  return { facts, ranges: [{ from, to, state: 'open', answer: null, expected: 0, origin: null }] };
}

/** What to ask next: a question, the end, or null when only answers in flight can tell. */
export function ask(state: State, inFlight: readonly Question[] = [], known?: Known): Question | Done | null {
  const { facts } = state;
  const isAsked = (question: Question) => inFlight.some((other) => isSameQuestion(other, question));
  const waitOr = (next: Question | null) =>
    next !== null && !isAsked(next) ? next : inFlight.length > 0 ? null : toDone(state);
  if (isOverBudget(facts)) return waitOr(null);
  if (facts.walk !== null) return waitOr(askWalk(facts.walk));
  const range = toNextRange(state.ranges, inFlight);
  if (range !== undefined) return toRangeQuestion(facts, range, known);
  if (state.ranges.some((other) => other.state === 'open')) return waitOr(null);
  for (const id of facts.surprises) {
    const home = state.ranges.find((other) => isInside(other, id));
    const question = home === undefined ? null : { ...toQuestion(facts, home, 'again'), expects: id };
    if (question !== null && !isAsked(question)) return question;
  }
  for (const id of facts.suspects) {
    const question = { ...toQuestion(facts, { from: id, to: id }, 'alone'), expects: id };
    if (!isAsked(question)) return question;
  }
  return waitOr(facts.witnesses?.find((question) => !isAsked(question)) ?? null);
}

/** What an answer teaches. A page must have been committed before. */
export function learn(state: State, question: Question, answer: Answer): State {
  const draft: Draft = { facts: { ...state.facts, requests: state.facts.requests + 1 }, ranges: state.ranges };
  const { facts } = draft;
  // Answers that were in flight when belief in both filters ended prove nothing any more.
  if (facts.walk !== null && question.purpose !== 'walk') return draft;
  if (answer.kind === 'page') learnPage(facts, question, answer);
  if (question.purpose === 'walk') learnWalkAnswer(facts, answer);
  else if (question.purpose === 'range') learnRange(draft, question, answer);
  else if (question.purpose === 'again') learnAgain(draft, question, answer);
  else if (question.purpose === 'alone') learnAlone(draft, question, answer);
  else learnWitness(draft, question, answer);
  settle(draft);
  return draft;
}

interface Draft {
  readonly facts: { -readonly [K in keyof Facts]: Facts[K] };
  ranges: readonly Range[];
}

/** What every page teaches, whatever it was asked for. */
function learnPage(facts: Draft['facts'], question: Question, page: Page): void {
  if (page.echo === 'differs') addFault(facts, 'the source repeats other filters than were sent');
  if (page.echo === 'absent') addDoubt(facts, 'the source does not repeat the filters that were sent');
  const positions = page.rows.map((row) => toPosition(question.axis, row));
  for (let i = 1; i < positions.length; i++) {
    const [last, next] = [positions[i - 1], positions[i]];
    if (last === null || last === undefined || next === null || next === undefined) continue;
    if (next > last) facts.rising++;
    if (next < last) facts.falling++;
  }
}

function learnRange(draft: Draft, question: Question, answer: Answer): void {
  const { facts } = draft;
  const whole = draft.ranges.find((range) => range.state === 'open' && contains(range, question));
  if (whole === undefined || question.from === null) return;
  const range = toPart(whole, question.from, question.to);
  if (answer.kind === 'refused') {
    if (question.after !== null && question.before !== null) return startWalk(facts, 'refuses');
    addFault(facts, 'the source refuses a single filter');
    return replace(draft, whole, [{ ...whole, state: 'stuck' }]);
  }
  const rest = toRemainders(whole, question.from, question.to);
  if (answer.kind === 'overflow') {
    const pieces = cutAbandoned(
      facts,
      range,
      answer.rows.map((row) => toPosition(facts.axis, row)),
    );
    return replace(draft, whole, [...rest, ...pieces]);
  }
  const inside = readRange(facts, range, question, answer);
  if (inside === null) return;
  noteExcess(draft, range, inside.length);
  const shape = toShape(range);
  const count = answer.rows.length;
  facts[shape] = withAnswer(facts[shape], count, answer.bytes);
  const single = facts.axis === 'id' && range.from === range.to && inside.length === 1;
  if (single || fits(facts[shape], count, answer.bytes)) {
    closeRange(facts, answer);
    const closed: Range = { ...range, state: 'closed', answer: { count, bytes: answer.bytes } };
    return replace(draft, whole, [...rest, closed]);
  }
  replace(draft, whole, [...rest, ...cutAnswered(facts, range, question, inside, count)]);
}

/** The positions that a page shows inside the range, distinct and rising; null when it shows what was not asked for. */
function readRange(facts: Draft['facts'], range: Range, question: Question, page: Page): bigint[] | null {
  const inside = new Set<bigint>();
  for (const row of page.rows) {
    const position = toPosition(facts.axis, row);
    if (position === null) continue;
    if (isInside(range, position)) inside.add(position);
    else if (facts.axis === 'date') continue;
    else if (position === question.after) facts.inclusiveAfter = true;
    else if (position === question.before) facts.inclusiveBefore = true;
    else {
      startWalk(facts, 'does not honour');
      return null;
    }
    noteExtremes(facts, row.id, row.at);
  }
  return [...inside].sort((a, b) => (a < b ? -1 : 1));
}

/** More ids than the wider answer showed: that one was cut off, and the bound that moved acts before the cap. */
function noteExcess(draft: Draft, range: Range, count: number): void {
  const { facts } = draft;
  const excess = count - range.expected;
  facts.found += Math.max(0, excess);
  if (excess <= 0 || range.origin === null) return;
  const { side, shape, count: wider } = range.origin;
  // One or two more are late commits or arrivals, not a page that was cut off.
  const limit = toLimit(facts[shape]);
  if (limit >= smallPage && excess * 8 <= limit) return;
  facts.cut = true;
  if (side === 'after') facts.reachAfter = true;
  else if (side === 'before') facts.reachBefore = true;
  else if (side === 'inner' && range.expected === 0) facts.reachInner = true;
  lower(draft, shape, wider);
}

/** An answer of this many rows had been cut off: whatever was closed on more than half of it is open again. */
function lower(draft: Draft, shape: Shape, count: number): void {
  const { facts } = draft;
  const before = toLimit(facts[shape]);
  facts[shape] = withCut(facts[shape], count);
  if (toLimit(facts[shape]) >= before) return;
  draft.ranges = draft.ranges.map((range) => {
    if (range.state !== 'closed' || range.answer === null || toShape(range) !== shape) return range;
    if (range.from === range.to || fits(facts[shape], range.answer.count, range.answer.bytes)) return range;
    const origin = { count: range.answer.count, shape, side: 'whole' as const };
    return { ...range, state: 'open' as const, expected: range.answer.count, origin };
  });
}

function closeRange(facts: Draft['facts'], page: Page): void {
  if (page.weakEmpty) addDoubt(facts, 'the source says "nothing" without an empty list');
  if (facts.axis === 'date') return;
  const fresh = page.missing.filter((id) => !facts.suspects.includes(id) && !facts.absent.includes(id));
  facts.suspects = [...facts.suspects, ...fresh];
}

function cutAnswered(facts: Facts, range: Range, question: Question, inside: bigint[], count: number): Range[] {
  const shape = toShape(range);
  const two = toPieceSize(facts.two);
  const pieces = cutRange(range, inside, {
    direction: toDirection(facts),
    pieceSize: two === Number.POSITIVE_INFINITY && count < smallPage ? 0 : two,
    skipCuts: facts.axis === 'id',
    origin: { count, shape },
  });
  if (pieces.length > 0) return pieces;
  // Only the bound came back, and it is stepped over from now on: the same range, another question.
  const changed = toQuestion(facts, range, 'range');
  if (inside.length === 0 && !isSameQuestion(changed, { ...question, purpose: 'range' })) return [range];
  if (inside.length > 0 && facts.axis === 'id') return [];
  return [{ ...range, state: 'stuck' }];
}

/** A cut point needs no trust, so the beginning of an abandoned answer may give it; none of it is held, so none is skipped. */
function cutAbandoned(facts: Facts, range: Range, positions: (bigint | null)[]): Range[] {
  const inside = [
    ...new Set(positions.filter((position) => position !== null && isInside(range, position))),
  ] as bigint[];
  inside.sort((a, b) => (a < b ? -1 : 1));
  const known = toPieceSize(facts.two);
  const pieceSize = known === Number.POSITIVE_INFINITY ? Math.floor(inside.length / 2) : known;
  const pieces = cutRange(range, inside, { direction: toDirection(facts), pieceSize, skipCuts: false, origin: null });
  if (pieces.length > 0) return pieces;
  const middle = range.to === null ? range.from * 2n + 1024n : (range.from + range.to) / 2n;
  if (range.to !== null && range.from === range.to) return [{ ...range, state: 'stuck' }];
  return cutRange(range, [middle], { direction: 'mixed', pieceSize: 1, skipCuts: false, origin: null });
}

function learnAgain(draft: Draft, question: Question, answer: Answer): void {
  const { facts } = draft;
  const home = draft.ranges.find((range) => range.state === 'closed' && contains(range, question));
  facts.surprises = facts.surprises.filter((id) => home !== undefined && !isInside(home, id));
  if (home === undefined) return;
  const shown = answer.kind === 'page' && answer.rows.some((row) => row.id === question.expects);
  if (!shown) {
    addFault(facts, 'the source shows applications by one question that it hides from another');
    if (home.answer !== null) lower(draft, toShape(home), home.answer.count);
  }
  const now = draft.ranges.find((range) => range.from === home.from) ?? home;
  const open: Range = { ...now, state: 'open', expected: home.answer?.count ?? 0, origin: null };
  replace(draft, now, [open]);
  learnRange(draft, question, answer);
}

function learnAlone(draft: Draft, question: Question, answer: Answer): void {
  const { facts } = draft;
  const id = question.expects as bigint;
  if (!facts.suspects.includes(id)) return;
  facts.suspects = facts.suspects.filter((other) => other !== id);
  const cameBack = answer.kind !== 'page' || answer.rows.some((row) => row.id === id);
  // It may have arrived while the wide answer was on its way: that question is asked again before anyone is blamed.
  if (cameBack) facts.surprises = [...facts.surprises, id];
  else facts.absent = [...facts.absent, id];
  // The brake: past it nothing is marked, so the rest need not be asked.
  if (hasTooManyAbsent(facts)) facts.suspects = [];
}

function learnWitness(draft: Draft, question: Question, answer: Answer): void {
  const { facts } = draft;
  facts.witnesses = facts.witnesses?.filter((other) => !isSameQuestion(other, question)) ?? null;
  if (answer.kind !== 'page') return;
  const homes = new Set<Range>();
  for (const id of answer.unheld) {
    const home = draft.ranges.find((range) => range.state === 'closed' && isInside(range, id));
    if (home === undefined || homes.has(home)) continue;
    homes.add(home);
    facts.surprises = [...facts.surprises, id];
  }
}

function learnWalkAnswer(facts: Draft['facts'], answer: Answer): void {
  if (facts.walk === null) return;
  if (answer.kind === 'overflow') addFault(facts, 'the source answers a single filter with more than the byte budget');
  const { walk, found } = learnWalk(facts.walk, answer.kind === 'page' ? answer : null, facts);
  facts.walk = walk;
  facts.found += found;
}

/** When every range is closed and nothing is left to clear up, the witnesses are called, once. */
function settle(draft: Draft): void {
  const { facts, ranges } = draft;
  if (facts.witnesses !== null || facts.walk !== null || facts.rigor === 'poll' || facts.axis === 'date') return;
  if (ranges.some((range) => range.state !== 'closed') || facts.suspects.length + facts.surprises.length > 0) return;
  facts.witnesses = planWitnesses(facts, ranges);
}

function startWalk(facts: Draft['facts'], does: string): void {
  const why = `the source ${does} afterid and beforeid together`;
  if (facts.axis === 'date') addFault(facts, 'the source does not honour its date filters');
  else facts.walk = beginWalk(facts.from, facts.to, facts, why);
}

function toNextRange(ranges: readonly Range[], inFlight: readonly Question[]): Range | undefined {
  const free = (range: Range) =>
    range.state === 'open' && !inFlight.some((question) => question.purpose === 'range' && contains(range, question));
  // Ranges whose content is known first: they close, and the list of open ranges stays short.
  return ranges.find((range) => range.expected > 0 && free(range)) ?? ranges.find(free);
}

function toRangeQuestion(facts: Facts, range: Range, known: Known | undefined): Question {
  const size = toPieceSize(facts.two);
  if (known === undefined || range.expected > 0 || size === Number.POSITIVE_INFINITY || size === 0) {
    return toQuestion(facts, range, 'range');
  }
  // Nine tenths of what may close at once: a few new ones fit in.
  const step = Math.max(1, Math.floor((size * 0.9) / known.stride));
  const to = known.positions[toIndex(known.positions, range.from) + step - 1];
  if (to === undefined || (range.to !== null && to >= range.to)) return toQuestion(facts, range, 'range');
  return toQuestion(facts, { from: range.from, to }, 'range');
}

/** Index of the first position that is not below `from`. */
function toIndex(positions: readonly bigint[], from: bigint): number {
  let [low, high] = [0, positions.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((positions[middle] as bigint) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

function toQuestion(facts: Facts, range: Pick<Range, 'from' | 'to'>, purpose: Question['purpose']): Question {
  const { from, to } = range;
  const slack = facts.axis === 'date' ? dateSlackSeconds : 0n;
  const after = facts.inclusiveAfter ? from : from - 1n - slack;
  const before = to === null ? null : facts.inclusiveBefore ? to : to + 1n + slack;
  return { axis: facts.axis, purpose, from, to, after, before, expects: null };
}

function toShape(range: Pick<Range, 'to'>): Shape {
  return range.to === null ? 'one' : 'two';
}

function contains(range: Range, question: Question): boolean {
  if (question.from === null || question.from < range.from) return false;
  return range.to === null ? true : question.to !== null && question.to <= range.to;
}

function isInside(range: Pick<Range, 'from' | 'to'>, position: bigint): boolean {
  return position >= range.from && (range.to === null || position <= range.to);
}

function replace(draft: Draft, old: Range, pieces: readonly Range[]): void {
  const at = draft.ranges.indexOf(old);
  const sorted = [...pieces].sort((a, b) => (a.from < b.from ? -1 : 1));
  draft.ranges = draft.ranges.toSpliced(at, 1, ...sorted);
}

function noteExtremes(facts: Draft['facts'], id: bigint, at: bigint | null): void {
  if (facts.lowest === null || id < facts.lowest) facts.lowest = id;
  if (facts.highest === null || id > facts.highest) facts.highest = id;
  if (at === null) return;
  if (facts.earliestAt === null || at < facts.earliestAt) facts.earliestAt = at;
  if (facts.latestAt === null || at > facts.latestAt) facts.latestAt = at;
}

function addFault(facts: Draft['facts'], reason: string): void {
  if (!facts.faults.includes(reason)) facts.faults = [...facts.faults, reason];
}

function addDoubt(facts: Draft['facts'], reason: string): void {
  if (!facts.doubts.includes(reason)) facts.doubts = [...facts.doubts, reason];
}

function toDone(state: State): Done {
  return { kind: 'done', ...conclude(state) };
}

// Reads a list whose order, paging and filters are unknown without missing an application: what to ask next, and what an answer proves.
// A pure state machine without clock, network or database. Its caller commits a page and the state that `learn` returns in one
// transaction, so a sweep can stop after any answer and continue.
//
// Rules (test/unit/coverage.test.ts names each in a test):
//   R1  A range is closed only by an empty answer, by an answer that shows its only id, or by a short answer. Short is less than half of
//       the rows of the smallest page that may have been cut off, and less than 60 % of the bytes of the largest body. Where a byte cap may
//       end pages, the byte limit is lower: about half in a sorted list, which closes only up to the last row shown, and a quarter in any
//       other list while no row is large.
//   R2  Every position of the swept range lies in an open or closed range, or is an id that a complete answer showed.
//   R3  A cut leaves only strictly smaller ranges. Requests stay within a limit per application found.
//   R4  An answer that lacks a known id closes nothing. If it is short, each such id is asked alone, and then the question again. If it
//       is long, it was cut off: the assumed page size is lowered, and ranges that were closed on more are reopened. One exception: where
//       a byte cap may end the pages of a sorted list, ids may be missing behind the last row, and the sweep asks for the rest.
//   R5  A question of another shape confirms an empty answer.
//   R6  After an id outside a range question, or a refused combination of filters, the sweep no longer trusts both filters together. It
//       walks the list, which ends with a doubt at best.
//   R7  An echo that contradicts the question makes the sweep unproven; an absent echo allows `assumed` at best.
//   R8  Bounds are sent as if they were exclusive. A question steps over a bound that comes back only where it fills the page, separately
//       for each shape of question.
//   R9  An id that appears in a closed range reopens it. Unless the id is recent, it is a doubt.
//   R10 A stored id that does not come back when asked alone is absent. With more than max(20, 2 %) of them the source is not trusted.
//   R11 `proven` needs witnesses, some at random splits. Beyond one page the filters must also have been seen to act before the cap.
//   R12 An answer from a cache is a doubt.

import { isCutByBytes } from './capacity.ts';
import { type Certificate, conclude, hasTooManyAbsent, isOverBudget } from './certificate.ts';
import { aloneQuestion, nextRangeQuestion, type SplitPoints } from './next-question.ts';
import { capacityOf, lower, noteCut, reopen } from './page-cuts.ts';
import { type Answer, isSameQuestion, type PageAnswer, type Question, shapeOf, sizeOf } from './question.ts';
import { isInside, openRange, type Range } from './range.ts';
import {
  addSuspects,
  isShort,
  isUnshownBehind,
  learnConfirmation,
  learnRange,
  noteExtremes,
  noteLate,
} from './range-answer.ts';
import {
  addFault,
  addReservation,
  createFacts,
  isSorted,
  type KnownCapacity,
  noteRows,
  type State,
  type Suspect,
  type SweepBounds,
  type SweepDraft,
} from './sweep-state.ts';
import { askWalk, learnWalk } from './walk.ts';
import { planWitnesses } from './witness.ts';

/** What to sweep, and how thoroughly. The default is a proof of the whole list; `listedBefore` is `heldBefore` by default. */
export interface Plan extends Partial<SweepBounds> {
  /** For a poll: the page size that an earlier sweep has seen. */
  readonly capacity?: KnownCapacity;
}

const wholeList: Omit<SweepBounds, 'listedBefore'> = {
  axis: 'id',
  from: 1n,
  to: null,
  rigor: 'proof',
  heldBefore: 0,
  longestBefore: 0,
  recentFrom: null,
  seed: 1,
};

/** The end of a sweep. */
export interface Done extends Certificate {
  readonly kind: 'done';
}

/** Begins a sweep of a range: a backfill, a recheck or a poll. */
export function begin({ capacity, ...bounds }: Plan): State {
  const listedBefore = bounds.heldBefore ?? 0;
  const facts = createFacts({ ...wholeList, listedBefore, ...bounds }, capacity ?? null);
  const { from, to } = facts;
  if (to !== null && to < from) return { facts: { ...facts, witnesses: [] }, ranges: [] };
  return { facts, ranges: [openRange(from, to)] };
}

/** Continues a sweep after a long pause: closed ranges stay closed, and everything about the source is learned anew. */
export function renew({ facts, ranges }: State): State {
  const { inclusive, after, both, largestRow, chosen, cutAt, uneven, shift } = createFacts(facts, null);
  return {
    facts: { ...facts, part: facts.part + 1, inclusive, after, both, largestRow, chosen, cutAt, uneven, shift },
    // Row counts from before the pause say nothing about pages now.
    ranges: ranges.map(({ abandoned: _, ...range }) => ({ ...range, answer: null, origin: null, empty: null })),
  };
}

/** The next question, the end of the sweep, or null when that depends on answers in flight. */
export function ask(
  state: State,
  inFlight: readonly Question[] = [],
  splitPoints?: SplitPoints,
): Question | Done | null {
  const { facts } = state;
  const isAsked = (question: Question) => inFlight.some((other) => isSameQuestion(other, question));
  const waitOr = (next: Question | null): Question | Done | null => {
    if (next !== null && !isAsked(next)) return next;
    return inFlight.length > 0 ? null : { kind: 'done', ...conclude(state) };
  };
  if (isOverBudget(facts, inFlight.length)) return waitOr(null);
  if (facts.walk !== null) return waitOr(askWalk(facts.walk));
  const suspect = facts.suspects.map(({ id }) => aloneQuestion(id)).find((question) => !isAsked(question));
  if (suspect !== undefined) return suspect;
  const next = nextRangeQuestion(state, inFlight, splitPoints);
  if (next !== null) return next;
  if (state.ranges.some((range) => range.state === 'open')) return waitOr(null);
  return waitOr(facts.witnesses?.find((question) => !isAsked(question)) ?? null);
}

/** The state after an answer, to be committed together with the page. */
export function learn(state: State, question: Question, answer: Answer): State {
  const draft: SweepDraft = { facts: { ...state.facts, requests: state.facts.requests + 1 }, ranges: state.ranges };
  const { facts } = draft;
  // Answers that were in flight when the sweep stopped trusting both filters prove nothing any more.
  if (facts.walk !== null && question.purpose !== 'walk') return draft;
  if (answer.kind === 'page') {
    noteRows(facts, answer.rows);
    notePage(facts, question, answer);
  }
  if (answer.kind === 'overflow' && question.purpose !== 'alone') facts.overflowed = true;
  const isUneven = facts.uneven && !state.facts.uneven;
  if (isUneven || facts.largestRow > state.facts.largestRow || isSorted(state.facts) !== isSorted(facts)) reopen(draft);
  if (question.purpose === 'walk') learnWalkAnswer(facts, answer);
  else if (question.purpose === 'range') learnRange(draft, question, answer);
  else if (question.purpose === 'confirm') learnConfirmation(draft, question, answer);
  else if (question.purpose === 'alone') learnAlone(draft, question, answer);
  else learnWitness(draft, question, answer);
  callWitnesses(draft);
  return draft;
}

function notePage(facts: SweepDraft['facts'], question: Question, page: PageAnswer): void {
  if (page.echo === 'differs') addFault(facts, 'the source repeats other filters than were sent');
  if (page.echo === 'absent') {
    addReservation(facts, 'harmless', 'the source does not repeat the filters that were sent');
  }
  if (page.cached) addReservation(facts, 'doubt', 'answers came from a cache, although none was asked for');
  facts.longest = Math.max(facts.longest, sizeOf(page).rows);
  const capacity = facts[shapeOf(question) === 'both' ? 'both' : 'after'];
  if (question.axis === 'id' && isCutByBytes(capacity, sizeOf(page))) facts.uneven = true;
}

/** Applies the answer about a known id that a short answer lacked. */
function learnAlone(draft: SweepDraft, question: Question, answer: Answer): void {
  const { facts } = draft;
  const id = question.from as bigint;
  const suspect = facts.suspects.find((other) => other.id === id);
  if (suspect === undefined) return;
  facts.suspects = facts.suspects.filter((other) => other !== suspect);
  // An answer with unreadable elements, or no page at all, is no evidence of a deletion.
  const isBack = answer.kind !== 'page' || answer.unreadable > 0 || answer.rows.some((row) => row.id === id);
  if (isBack) {
    contradict(draft, suspect, answer);
    return;
  }
  if (suspect.old) facts.absent = [...facts.absent, id];
  // The id was shown during this sweep, so one wrong answer must not count as a deletion.
  else if (!suspect.missedOnce) facts.suspects = [...facts.suspects, { ...suspect, missedOnce: true }];
  else noteVanished(facts, id);
  // Beyond the limit no id is marked as missing, so the remaining suspects need not be asked.
  if (hasTooManyAbsent(facts)) facts.suspects = [];
}

/** Deletions during a sweep that are plausible, whatever its size. One more is a doubt. */
const mostVanished = 2;

function noteVanished(facts: SweepDraft['facts'], id: bigint): void {
  facts.vanished = [...facts.vanished, id];
  if (facts.vanished.length <= mostVanished)
    addReservation(facts, 'harmless', 'an application was deleted at the source while the list was read');
  else addReservation(facts, 'doubt', 'the source shows applications by one question that it hides from another');
}

/** The id exists, so the answer that lacked it was cut off or wrong. The other ids that it lacked need not be asked. */
function contradict(draft: SweepDraft, suspect: Suspect, answer: Answer): void {
  const { facts } = draft;
  const size = answer.kind === 'page' ? answer.bytes : 0;
  if (suspect.bytes + size > capacityOf(facts, suspect.shape).bytes) {
    // The row had no room on that page: a byte cap ends pages, not only a row cap.
    facts.uneven = true;
    reopen(draft);
  } else {
    addReservation(facts, 'doubt', 'the source left out applications that it shows when asked again');
  }
  const home = draft.ranges.find((range) => isInside(range, suspect.id));
  if (home !== undefined) facts.suspects = facts.suspects.filter(({ id }) => !isInside(home, id));
  lower(draft, suspect);
}

function learnWitness(draft: SweepDraft, question: Question, answer: Answer): void {
  const { facts } = draft;
  facts.witnesses = facts.witnesses?.filter((other) => !isSameQuestion(other, question)) ?? null;
  if (answer.kind !== 'page') return;
  if (question.axis === 'id' && question.since === null) {
    const isWhole = isShort(facts, question, answer) && !isUnshownBehind(facts, question, answer);
    if (isWhole) addSuspects(facts, question, answer);
    else noteCut(draft, question, answer);
  }
  const unheld = new Set(answer.unheld);
  const homes = new Set<Range>();
  for (const row of answer.rows) {
    const home =
      unheld.has(row.id) && draft.ranges.find((range) => range.state === 'closed' && isInside(range, row.id));
    if (!home) continue;
    homes.add(home);
    noteLate(facts, [row]);
  }
  draft.ranges = draft.ranges.map((range) =>
    homes.has(range) ? { ...openRange(range.from, range.to), expected: range.answer?.rows ?? 0 } : range,
  );
}

function learnWalkAnswer(facts: SweepDraft['facts'], answer: Answer): void {
  if (facts.walk === null) return;
  if (answer.kind === 'overflow') addFault(facts, 'the source answers a single filter with more than the byte budget');
  const { walk, found } = learnWalk(facts.walk, answer.kind === 'page' ? answer : null, facts);
  facts.walk = walk;
  facts.found += found;
  if (answer.kind === 'page') for (const row of answer.rows) noteExtremes(facts, row);
}

/** Plans the witnesses, once, when every range is closed and no suspect is left. */
function callWitnesses({ facts, ranges }: SweepDraft): void {
  if (facts.witnesses !== null || facts.walk !== null || facts.rigor === 'poll' || facts.axis === 'date') return;
  if (ranges.some((range) => range.state !== 'closed') || facts.suspects.length > 0) return;
  facts.witnesses = planWitnesses(facts, ranges);
}

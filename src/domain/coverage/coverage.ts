// Reading a list whose order, paging and filters are unknown, without losing anyone: what to ask next, and what an answer proves.
// A pure state machine without clock, network or database. Its driver commits a page and the state that `learn` returns in one
// transaction, or neither, so a sweep can stop after any answer and go on.
//
// Rules (test/unit/coverage.test.ts names each in a test):
//   R1  A range is closed only by an empty answer, or by one with strictly less than half of the rows and bytes of the smallest page
//       that may have been cut. Where bytes may end pages, a sorted list is closed up to the last row shown, any other by less than a
//       quarter of a page and only while no row is large.
//   R2  Every position of the swept range lies in a range, open or closed, or is an id that a whole answer showed.
//   R3  A cut leaves only strictly smaller ranges; requests stay within a bound per application found.
//   R4  An answer that lacks a known id closes nothing. If it is short, each such id is asked alone, and then the question again. If it
//       is long, it was cut off: what may be believed is lowered, and whatever was closed on more is open again. One exception: where
//       bytes may end the pages of a sorted list, ids may be missing behind the last row, and the rest is asked.
//   R5  An empty answer is confirmed by a question of another shape.
//   R6  An id outside a range question, or a refused mixture, ends belief in both filters together: walk, a doubt at best.
//   R7  An echo that contradicts the question ends every proof; an absent one leaves `assumed`.
//   R8  Bounds are sent as if they were exclusive; a bound that comes back is stepped over only where it fills the page, by the shape
//       of the question.
//   R9  An id that comes to light in a closed range opens it again; unless it is recent, it is a doubt.
//   R10 A stored id that does not come back when asked alone is absent; more than max(20, 2 %) mean that the source is not believed.
//   R11 `proven` needs witnesses and random audits; beyond one page it also needs to have seen the filters act before the cap.
//   R12 An answer that comes from a cache is a doubt.

import { isCutByBytes } from './capacity.ts';
import { type Certificate, conclude, hasTooManyAbsent, isOverBudget } from './certificate.ts';
import { aloneQuestion, believed, type Known, nextRangeQuestion } from './next-question.ts';
import { lower, noteCut, reopen } from './page-cuts.ts';
import {
  type Answer,
  type Axis,
  isSameQuestion,
  lengthOf,
  type PageAnswer,
  type Question,
  shapeOf,
} from './question.ts';
import { isInside, openRange, type Range } from './range.ts';
import { addSuspects, isShort, isUnshownBehind, learnConfirmation, learnRange, noteLate } from './range-answer.ts';
import {
  addFault,
  addReservation,
  createFacts,
  isSorted,
  type KnownCapacity,
  noteRows,
  type State,
  type Suspect,
  type SweepDraft,
} from './sweep-state.ts';
import { askWalk, learnWalk } from './walk.ts';
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
  /** Applications held in the range before the sweep. */
  readonly heldBefore?: number;
  /** Rows of the longest page that earlier sweeps have seen. */
  readonly longestBefore?: number;
  /** For a poll: the page size that an earlier sweep has seen. */
  readonly capacity?: KnownCapacity;
  /** Applications submitted from this second on may arrive while the sweep is under way. */
  readonly recentFrom?: bigint;
  /** Chooses the places of the random audits. */
  readonly seed?: number;
}

/** The end of a sweep. */
export interface Done extends Certificate {
  readonly kind: 'done';
}

/** Begins a sweep: a backfill, a recheck or a poll, by its range. */
export function begin(plan: Plan): State {
  const from = plan.from ?? 1n;
  const to = plan.to ?? null;
  const facts = createFacts(
    {
      axis: plan.axis ?? 'id',
      from,
      to,
      rigor: plan.rigor ?? 'proof',
      heldBefore: plan.heldBefore ?? 0,
      longestBefore: plan.longestBefore ?? 0,
      recentFrom: plan.recentFrom ?? null,
      seed: plan.seed ?? 1,
    },
    plan.capacity ?? null,
  );
  if (to !== null && to < from) return { facts: { ...facts, witnesses: [] }, ranges: [] };
  return { facts, ranges: [openRange(from, to)] };
}

/** A sweep taken up again after long: what is closed stays closed, what was learned of the source is learned anew. */
export function renew({ facts, ranges }: State): State {
  const { inclusive, after, both, largestRow, chosen, cutAt, uneven, shift } = createFacts(facts, null);
  return {
    facts: { ...facts, part: facts.part + 1, inclusive, after, both, largestRow, chosen, cutAt, uneven, shift },
    // Counts of then say nothing of the pages of now.
    ranges: ranges.map((range) => ({ ...range, answer: null, origin: null, empty: null })),
  };
}

/** What to ask next: a question, the end, or null when only answers in flight can tell. */
export function ask(state: State, inFlight: readonly Question[] = [], known?: Known): Question | Done | null {
  const { facts } = state;
  const isAsked = (question: Question) => inFlight.some((other) => isSameQuestion(other, question));
  const waitOr = (next: Question | null) =>
    next !== null && !isAsked(next) ? next : inFlight.length > 0 ? null : toDone(state);
  if (isOverBudget(facts, inFlight.length)) return waitOr(null);
  if (facts.walk !== null) return waitOr(askWalk(facts.walk));
  const suspect = facts.suspects.map(({ id }) => aloneQuestion(id)).find((question) => !isAsked(question));
  if (suspect !== undefined) return suspect;
  const next = nextRangeQuestion(state, inFlight, known);
  if (next !== null) return next;
  if (state.ranges.some((range) => range.state === 'open')) return waitOr(null);
  return waitOr(facts.witnesses?.find((question) => !isAsked(question)) ?? null);
}

/** What an answer teaches: a new state, to be committed together with the page. */
export function learn(state: State, question: Question, answer: Answer): State {
  const draft: SweepDraft = { facts: { ...state.facts, requests: state.facts.requests + 1 }, ranges: state.ranges };
  const { facts } = draft;
  // Answers that were in flight when belief in both filters ended prove nothing any more.
  if (facts.walk !== null && question.purpose !== 'walk') return draft;
  if (answer.kind !== 'refused') noteRows(facts, answer.rows);
  if (answer.kind === 'page') notePage(facts, answer);
  if (answer.kind === 'page') noteEnd(facts, question, answer);
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

function notePage(facts: SweepDraft['facts'], page: PageAnswer): void {
  if (page.echo === 'differs') addFault(facts, 'the source repeats other filters than were sent');
  if (page.echo === 'absent') {
    addReservation(facts, 'harmless', 'the source does not repeat the filters that were sent');
  }
  if (page.cached) addReservation(facts, 'doubt', 'answers came from a cache, although none was asked for');
  facts.longest = Math.max(facts.longest, lengthOf(page));
}

/** Pages may be ended by their bytes. */
function noteEnd(facts: SweepDraft['facts'], question: Question, page: PageAnswer): void {
  if (question.axis !== 'id') return;
  const capacity = facts[shapeOf(question) === 'both' ? 'both' : 'after'];
  if (isCutByBytes(capacity, lengthOf(page), page.bytes)) facts.uneven = true;
}

/** A known id that a short answer lacked was asked alone. */
function learnAlone(draft: SweepDraft, question: Question, answer: Answer): void {
  const { facts } = draft;
  const id = question.from as bigint;
  const suspect = facts.suspects.find((other) => other.id === id);
  if (suspect === undefined) return;
  facts.suspects = facts.suspects.filter((other) => other !== suspect);
  // An answer that cannot be read is no evidence of a deletion.
  const isBack = answer.kind !== 'page' || answer.unreadable > 0 || answer.rows.some((row) => row.id === id);
  if (isBack) {
    contradict(draft, suspect, answer);
    return;
  }
  if (suspect.old) facts.absent = [...facts.absent, id];
  // It was there a moment ago: one false answer must not pass for a deletion.
  else if (!suspect.missedOnce) facts.suspects = [...facts.suspects, { ...suspect, missedOnce: true }];
  else noteVanished(facts, id);
  // The brake: past it nothing is marked, so the rest need not be asked.
  if (hasTooManyAbsent(facts)) facts.suspects = [];
}

/** Deletions that one sweep takes for what they seem, whatever its size. One more is a doubt. */
const mostVanished = 2;

function noteVanished(facts: SweepDraft['facts'], id: bigint): void {
  facts.vanished = [...facts.vanished, id];
  if (facts.vanished.length <= mostVanished)
    addReservation(facts, 'harmless', 'an application was deleted at the source while the list was read');
  else addReservation(facts, 'doubt', 'the source shows applications by one question that it hides from another');
}

/** The id is there, so the answer that lacked it was cut off or false. Other ids that it lacked need not be asked. */
function contradict(draft: SweepDraft, suspect: Suspect, answer: Answer): void {
  const { facts } = draft;
  const size = answer.kind === 'page' ? answer.bytes : 0;
  if (suspect.bytes + size > believed(facts, suspect.shape).bytes) {
    // It had no room on that page: bytes end pages here, not only rows.
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
}

/** When every range is closed and nothing is left to clear up, the witnesses are planned, once. */
function callWitnesses({ facts, ranges }: SweepDraft): void {
  if (facts.witnesses !== null || facts.walk !== null || facts.rigor === 'poll' || facts.axis === 'date') return;
  if (ranges.some((range) => range.state !== 'closed') || facts.suspects.length > 0) return;
  facts.witnesses = planWitnesses(facts, ranges);
}

function toDone(state: State): Done {
  return { kind: 'done', ...conclude(state) };
}

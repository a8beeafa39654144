// Reading a list whose order, paging and filters are unknown, without losing anyone: what to ask next, what an answer proves.
// A pure state machine. It knows no clock, no network and no database: whoever drives it keeps a page and the state that `learn` gives
// in one transaction, or neither, so a sweep can stop after any answer and go on.
//
// Invariants (test/unit/coverage.test.ts names each in a test):
//   I1  A range is closed only by an empty answer, by one that this source has shown it can double (capacity.ts), or by I12.
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
//   I12 Read again, a range is closed up to the last held id shown, in a list that was seen to be cut where it ends (posts.ts).

import { smallPage, toLimit } from './capacity.ts';
import { type Certificate, conclude, hasTooManyAbsent, isOverBudget } from './certificate.ts';
import { type Known, toNextRange, toQuestion } from './next-question.ts';
import { noteEnd } from './posts.ts';
import { type Answer, type Axis, isSameQuestion, type Page, type Question } from './question.ts';
import { contains, isInside, type Range, toShape } from './range.ts';
import { learnRange, lower } from './range-answer.ts';
import {
  addDoubt,
  addFault,
  createFacts,
  type Draft,
  noteOrder,
  replace,
  type State,
  toDirection,
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
  readonly requestLimit?: number;
  /** Applications held in the range before the sweep. */
  readonly heldBefore?: number;
  /** For a poll: the page size that an earlier sweep has seen. */
  readonly capacity?: { readonly count: number; readonly bytes: number };
}

/** The end of a sweep. */
export interface Done extends Certificate {
  readonly kind: 'done';
}

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
  if (to !== null && to < from) return { facts: { ...facts, witnesses: [] }, ranges: [] };
  const whole: Range = { from, to, state: 'open', answer: null, expected: 0, origin: null };
  return { facts, ranges: [whole] };
}

/** A sweep taken up again after long: what is closed stays closed, what was learned of the source is learned anew. */
export function renew({ facts, ranges }: State): State {
  const anew = createFacts({ ...facts, capacity: null });
  const { inclusiveAfter, inclusiveBefore, one, two, borrowed, endsInOrder } = anew;
  return {
    facts: { ...facts, inclusiveAfter, inclusiveBefore, one, two, borrowed, endsInOrder },
    // Counts of then say nothing of the pages of now.
    ranges: ranges.map((range) => ({ ...range, answer: null, origin: null })),
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
  const next = toNextRange(state, inFlight, known);
  if (next !== null) return next;
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

/** What an answer teaches: a new state, to be kept together with the page. */
export function learn(state: State, question: Question, answer: Answer): State {
  const draft: Draft = { facts: { ...state.facts, requests: state.facts.requests + 1 }, ranges: state.ranges };
  const { facts } = draft;
  // Answers that were in flight when belief in both filters ended prove nothing any more.
  if (facts.walk !== null && question.purpose !== 'walk') return draft;
  if (answer.kind !== 'refused') noteOrder(facts, answer.rows);
  if (answer.kind === 'page') {
    noteEcho(facts, answer);
    facts.longest = Math.max(facts.longest, answer.rows.length);
  }
  if (question.purpose === 'walk') learnWalkAnswer(facts, answer);
  else if (question.purpose === 'range') learnRange(draft, question, answer);
  else if (question.purpose === 'again') learnAgain(draft, question, answer);
  else if (question.purpose === 'alone') learnAlone(draft, question, answer);
  else learnWitness(draft, question, answer);
  settle(draft);
  return draft;
}

function noteEcho(facts: Draft['facts'], page: Page): void {
  if (page.echo === 'differs') addFault(facts, 'the source repeats other filters than were sent');
  if (page.echo === 'absent') addDoubt(facts, 'the source does not repeat the filters that were sent');
}

function learnAgain(draft: Draft, question: Question, answer: Answer): void {
  const { facts } = draft;
  const home = draft.ranges.find((range) => range.state === 'closed' && contains(range, question));
  facts.surprises = facts.surprises.filter((id) => id !== question.expects && !(home && isInside(home, id)));
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
  noteEnd(draft, answer);
  // A page that lacks ids we hold was cut off; one much smaller than those before it says that pages have shrunk.
  const count = answer.rows.length;
  const comparable = question.axis === 'id' && question.before === null && count > 0;
  if (comparable && answer.missing.length * 8 > Math.min(toLimit(facts.one), 4000)) lower(draft, 'one', count);
  const homes = new Set<Range>();
  for (const id of answer.unheld) {
    const home = draft.ranges.find((range) => range.state === 'closed' && isInside(range, id));
    if (home === undefined || homes.has(home)) continue;
    homes.add(home);
    facts.surprises = [...facts.surprises, id];
    // In a sorted list of large pages that is a late commit; elsewhere it may be an answer that is empty by chance.
    const chance = toDirection(facts) === 'mixed' || toLimit(facts.one) < smallPage;
    if (chance && facts.highest !== null && id < facts.highest) {
      addDoubt(facts, 'an application came to light in a range already closed');
    }
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
  // A surprise in no range is an id at which one was cut: it has been shown.
  facts.surprises = facts.surprises.filter((id) => ranges.some((range) => isInside(range, id)));
  if (facts.witnesses !== null || facts.walk !== null || facts.rigor === 'poll' || facts.axis === 'date') return;
  if (ranges.some((range) => range.state !== 'closed') || facts.suspects.length + facts.surprises.length > 0) return;
  facts.witnesses = planWitnesses(facts, ranges);
}

function toDone(state: State): Done {
  return { kind: 'done', ...conclude(state) };
}

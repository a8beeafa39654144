// Drives the sweep machine over a simulated source with a store that is only a set of ids, as the worker drives it over HTTP and
// Postgres: a page is committed before it is learned from, the state is stored after each answer, and a crash may come anywhere.

import { ask, begin, type Done, learn, type Plan } from '../../src/domain/coverage.ts';
import type { Known } from '../../src/domain/next-question.ts';
import type { Answer, Page, Question } from '../../src/domain/question.ts';
import { decodeFacts, decodeRange, encode, type State } from '../../src/domain/sweep-state.ts';
import { createRandom } from './random.ts';
import type { SimulatedSource } from './simulated-source.ts';

export interface SweepOptions {
  readonly plan?: Plan;
  /** Ids held before, and those committed on the way. */
  readonly held: Set<bigint>;
  readonly known?: Known;
  /** Questions in flight at once. */
  readonly lanes?: number;
  /** Chance that the process dies before an answer is committed; the state is read back from its stored text. */
  readonly crashes?: number;
  readonly seed?: number;
  /** Bodies over this many bytes are abandoned; the first rows are seen. */
  readonly byteBudget?: number;
  readonly onStep?: (before: State, question: Question, answer: Answer, after: State) => void;
}

export interface SweepResult {
  readonly done: Done;
  /** Every list request, also those whose answer a crash took. */
  readonly requests: number;
  /** Ids that could be seen at every moment of the sweep and are not held. */
  readonly lost: readonly bigint[];
  readonly state: State;
}

/** Sweeps until the machine says that it is done. */
export function runSweep(source: SimulatedSource, options: SweepOptions): SweepResult {
  const random = createRandom(options.seed ?? 1);
  const { held } = options;
  const startedAt = source.tick();
  let state = begin({ heldBefore: held.size, ...options.plan });
  let inFlight: { question: Question; answer: Answer }[] = [];
  for (;;) {
    const next =
      inFlight.length < (options.lanes ?? 1)
        ? ask(
            state,
            inFlight.map((flight) => flight.question),
            options.known,
          )
        : null;
    if (next !== null && 'kind' in next) {
      const lost = source
        .visibleThroughout(startedAt, source.tick())
        .filter((id) => isIn(options.plan, id) && !held.has(id));
      return { done: next, requests: source.tick() - startedAt, lost, state };
    }
    if (next !== null) {
      inFlight.push({ question: next, answer: toBudget(source.answer(next), options.byteBudget) });
      continue;
    }
    if (random.chance(options.crashes ?? 0)) {
      inFlight = [];
      state = restore(state);
      continue;
    }
    const [landed] = inFlight.splice(random.between(0, inFlight.length - 1), 1);
    if (landed === undefined) throw new Error('the machine waits for nothing');
    const before = state;
    const answer = commit(held, landed.question, landed.answer);
    state = learn(state, landed.question, answer);
    options.onStep?.(before, landed.question, answer, state);
  }
}

/** What a process finds again after a crash: the stored text of the state. */
export function restore(state: State): State {
  return {
    facts: decodeFacts(encode(state.facts)),
    ranges: state.ranges.map((range) => decodeRange(encode(range))),
  };
}

function commit(held: Set<bigint>, question: Question, answer: Answer): Answer {
  if (answer.kind !== 'page') return answer;
  const shown = new Set(answer.rows.map((row) => row.id));
  const unheld = [...shown].filter((id) => !held.has(id));
  const missing: bigint[] = [];
  if (question.axis === 'id' && question.from !== null) {
    for (const id of held) {
      if (id >= question.from && (question.to === null || id <= question.to) && !shown.has(id)) missing.push(id);
    }
  }
  for (const id of unheld) held.add(id);
  return { ...answer, unheld, missing };
}

function toBudget(answer: Answer, byteBudget = Number.POSITIVE_INFINITY): Answer {
  if (answer.kind !== 'page' || answer.bytes <= byteBudget) return answer;
  const seen = Math.floor((answer.rows.length * byteBudget) / (answer as Page).bytes);
  return { kind: 'overflow', rows: answer.rows.slice(0, seen) };
}

function isIn(plan: Plan | undefined, id: bigint): boolean {
  return id >= (plan?.from ?? 1n) && (plan?.to == null || id <= plan.to);
}

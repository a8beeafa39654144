// Explores every schedule of a few clients, up to a given number of preemptions. The search replays each schedule from the start and
// goes by the number of preemptions. By default a client runs until it ends or waits; stopping it earlier, killing it, or letting time
// pass counts as a preemption. Where a schedule reaches a state that an earlier one reached (footprint.ts), the search does not branch.
import { type Cast, type Choice, type Outcome, runSchedule, type Stage, Unplayable } from './schedule.ts';

/** A situation to explore. Every schedule sets it up again. */
export interface Scenario {
  readonly name: string;
  /** What must hold, in one sentence. */
  readonly promise: string;
  /** Deadlocks are not a failure here, as long as the client whose statement is cancelled retries. */
  readonly allowsDeadlocks?: boolean;
  /** Upper limit of schedules, for scenarios whose schedules take long. */
  readonly most?: number;
  /** Sets up the situation and returns the clients. `check` runs after the last step and throws when the promise is broken. */
  open(): Promise<Cast & { readonly check: (outcome: Outcome) => Promise<void> }>;
}

export interface Bounds {
  readonly preemptions: number;
  /** Upper limit of schedules. */
  readonly most?: number;
}

/** A schedule that broke a promise. */
export interface Counterexample {
  /** Counted from 1 in the order of the search. */
  readonly number: number;
  readonly choices: readonly Choice[];
  readonly outcome: Outcome;
  readonly error: Error;
}

export interface Explored {
  /** The number of schedules with no preemption, with one, with two, and so on. */
  readonly schedules: readonly number[];
  readonly found: Counterexample | null;
  /** False when the search ended early: `most` was reached, or a promise was broken. */
  readonly isComplete: boolean;
  readonly deadlocks: number;
  /** Schedules that could not be replayed, see `playAgain`. */
  readonly diverged: number;
  readonly ms: number;
}

/** Explores until a promise is broken or no schedule is left. */
export async function explore(stage: Stage, scenario: Scenario, bounds: Bounds): Promise<Explored> {
  const startedAt = performance.now();
  const levels: Choice[][][] = Array.from({ length: bounds.preemptions + 1 }, () => []);
  levels[0]?.push([]);
  const schedules = levels.map(() => 0);
  const seen = new Set<string>();
  let count = 0;
  let deadlocks = 0;
  let diverged = 0;
  const end = (found: Counterexample | null, isComplete: boolean): Explored => ({
    ...{ schedules, found, isComplete, deadlocks, diverged, ms: performance.now() - startedAt },
  });
  const most = Math.min(bounds.most ?? Number.POSITIVE_INFINITY, scenario.most ?? Number.POSITIVE_INFINITY);
  // With a limit, the golden ratio spreads the choice over all prefixes. It is deterministic, so a number always names the same schedule.
  const takeNext = (prefixes: Choice[][]) =>
    most === Number.POSITIVE_INFINITY ? prefixes.pop() : prefixes.splice(((count * 0.618) % 1) * prefixes.length, 1)[0];
  for (const [level, prefixes] of levels.entries()) {
    for (let prefix = takeNext(prefixes); prefix; prefix = takeNext(prefixes)) {
      if (count >= most) return end(null, false);
      count++;
      schedules[level] = (schedules[level] ?? 0) + 1;
      const played = await playAgain(stage, scenario, prefix);
      if (played === null) {
        diverged++;
        continue;
      }
      const { outcome, error } = played;
      deadlocks += outcome.deadlocks;
      const chosen = outcome.decisions.map((decision) => decision.chosen);
      if (error) return end({ number: count, choices: chosen, outcome, error }, false);
      for (const [at, { others, state }] of outcome.decisions.entries()) {
        if (at < prefix.length) continue;
        // An earlier schedule reached this state with at least as many preemptions left, so its continuations are already queued.
        if (seen.has(state)) break;
        seen.add(state);
        for (const { choice, cost } of others.toReversed())
          levels[level + cost]?.push([...chosen.slice(0, at), choice]);
      }
    }
  }
  return end(null, true);
}

/**
 * Plays a schedule, retrying when it diverges. When a commit unblocks two clients that wait for the same new row, Postgres may wake
 * either first, so a replay sometimes gets the other order than the schedule assumes. Returns null after five diverging tries.
 */
export async function playAgain(stage: Stage, scenario: Scenario, prefix: readonly Choice[]) {
  for (let tries = 0; tries < 5; tries++) {
    const played = await play(stage, scenario, prefix).catch((error: unknown) => {
      if (!(error instanceof Unplayable)) throw error;
      return null;
    });
    if (played) return played;
  }
  return null;
}

/** A scenario could not be set up: the scenario has a bug, or the product now rejects the setup. */
export class SetUpFailed extends Error {
  override name = 'SetUpFailed';
}

/** Plays one schedule of a scenario and checks its promise. */
export async function play(
  stage: Stage,
  scenario: Scenario,
  choices: readonly Choice[],
): Promise<{ readonly outcome: Outcome; readonly error: Error | null }> {
  const { check, ...cast } = await scenario.open().catch((error: unknown) => {
    throw new SetUpFailed(`"${scenario.name}" could not be set up: ${toMessage(error)}`, { cause: error });
  });
  const outcome = await runSchedule(stage, cast, choices);
  try {
    const failures = outcome.failures.map(({ client, error }) => `${client} failed: ${toMessage(error)}`);
    const told = [...failures, ...outcome.broken];
    if (told.length > 0) throw new Error(told.join('\n'), { cause: outcome.failures[0]?.error });
    if (outcome.deadlocks > 0 && !scenario.allowsDeadlocks) throw new Error('Clients wait for each other in a circle.');
    await check(outcome);
    return { outcome, error: null };
  } catch (error) {
    return { outcome, error: error as Error };
  }
}

function toMessage(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** Encodes choices as text for `--replay`: `a3.b12.a!` lets a take three steps, lets b take twelve, and kills a. */
export function toText(choices: readonly Choice[]): string {
  const parts: string[] = [];
  for (let at = 0; at < choices.length; ) {
    let to = at;
    while (choices[to] === choices[at]) to++;
    const choice = choices[at] as string;
    parts.push(choice.endsWith('!') ? choice : `${choice}${to - at}`);
    at = to;
  }
  return parts.join('.');
}

/** Decodes the text that `toText` writes. */
export function fromText(text: string): Choice[] {
  return text.split('.').flatMap((part) => {
    const [, name = '', count] = /^(.+?)(\d+|!)$/.exec(part) ?? [];
    return count === '!' ? [`${name}!`] : Array.from({ length: Number(count) }, () => name);
  });
}

/** A report shows only the last steps of a longer schedule. */
const mostLines = 200;

/** Renders a counterexample for a person. */
export function describe(scenario: Scenario, { number, choices, outcome, error }: Counterexample): string {
  const steps = outcome.lines.map(({ client, text, waited, isDeadlock }) => {
    const mark = isDeadlock ? ' (deadlock: chosen to give up)' : waited ? ' (waits)' : '';
    return `  ${client.padEnd(6)} ${text}${mark}`;
  });
  const left = steps.slice(-mostLines);
  return [
    `${scenario.name}, schedule ${number} (${toText(choices)}): ${error.message}`,
    `  promise: ${scenario.promise}`,
    ...(left.length < steps.length ? [`  .. ${steps.length - left.length} steps before`] : []),
    ...left,
  ].join('\n');
}

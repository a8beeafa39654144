// Every schedule of some clients with up to so many preemptions: a search by the number of preemptions, without stored states. A client
// runs until it ends or waits; to stop it earlier, to kill it or to let time pass there is a preemption. A schedule that only repeats a
// state which was met before (footprint.ts) is not continued in other ways.
import { type Cast, type Choice, type Outcome, runSchedule, type Stage, Unplayable } from './schedule.ts';

/** A situation to explore. It is made anew for every schedule. */
export interface Scenario {
  readonly name: string;
  /** What must hold, in one sentence. */
  readonly promise: string;
  /** Deadlocks are no failure here, as long as the client that is chosen to give up tries again. */
  readonly allowsDeadlocks?: boolean;
  /** At most so many schedules, where each takes long. */
  readonly most?: number;
  /** Sets the situation up and returns the clients. `check` is called after the last step, and throws where a promise is broken. */
  open(): Promise<Cast & { readonly check: (outcome: Outcome) => Promise<void> }>;
}

export interface Bounds {
  readonly preemptions: number;
  /** At most so many schedules. */
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
  /** How many schedules had no preemption, one, two .. */
  readonly schedules: readonly number[];
  readonly found: Counterexample | null;
  /** False where `most` ended the search. */
  readonly isComplete: boolean;
  readonly deadlocks: number;
  /** Schedules that could not be played as they were begun, see `playAgain`. */
  readonly diverged: number;
  readonly ms: number;
}

/** Explores until a promise is broken or nothing is left. */
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
  // Where not all are played, they are taken from all over: by the golden ratio, so that a number names the same schedule every time.
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
        // Met before, with as many preemptions left: what can follow from here has been followed.
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
 * Where a commit frees two clients that wait for the same new row, Postgres lets either go first. A schedule that was begun after one
 * order meets the other now and then: it is tried a few times, and then left out. Null is left out.
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

/** The situation of a scenario could not be made: a mistake of the scenario, or something that the product now refuses. */
export class SetUpFailed extends Error {
  override name = 'SetUpFailed';
}

/** Plays one schedule of a scenario and checks its promises. */
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

/** Choices as one word, by which a schedule is played again: `a3.b12.a!` lets a take three steps, b twelve, and kills a. */
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

/** The choices of such a word. */
export function fromText(text: string): Choice[] {
  return text.split('.').flatMap((part) => {
    const [, name = '', count] = /^(.+?)(\d+|!)$/.exec(part) ?? [];
    return count === '!' ? [`${name}!`] : Array.from({ length: Number(count) }, () => name);
  });
}

/** Of a schedule that does not end, the last steps are told. */
const mostLines = 200;

/** A counterexample as a person reads it. */
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

// One schedule: several clients run, one statement at a time, in an order that is given or chosen by default. A client that waits for a
// lock is noticed and left waiting; a client can be killed; the time can be moved. What happened is returned, with every point at which
// another choice was possible.
import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  areDependent,
  type Footprint,
  forget,
  type Neighbours,
  type OpenTransaction,
  onEverything,
  onObjects,
  openTransaction,
  toFootprint,
} from './footprint.ts';
import type { Gate, Step } from './gate.ts';

/** Runs a statement on a connection of the explorer's own. */
export type Query = <Row extends object = Record<string, unknown>>(
  sql: string,
  values?: readonly unknown[],
) => Promise<Row[]>;

/** Thrown into a client that is killed; whatever it does then is not looked at. */
class Killed extends Error {
  override name = 'Killed';
}

/** A schedule names a client that has ended, or waits. */
export class Unplayable extends Error {
  override name = 'Unplayable';
}

/** A schedule does not come to its end. */
class Endless extends Error {
  override name = 'Endless';
}

/** A client of a schedule as its program sees it. */
export interface Actor {
  readonly name: string;
  /** A step that is no statement: a put or a delete of an object. No transaction may be open meanwhile. */
  act<T>(what: string, work: () => T): Promise<T>;
}

/** What a client runs. */
export type Program = (actor: Actor) => Promise<unknown>;

export interface Cast {
  /** In the order in which they are chosen by default. */
  readonly programs: ReadonlyMap<string, Program>;
  /** Clients that may die: one in a schedule, at a point at which it would go on. */
  readonly mortal: readonly string[];
  /** How far the time moves at each step of the clock, in milliseconds. */
  readonly lapses: readonly number[];
  /** A write outside a transaction takes two steps: it is carried out, and it is committed. */
  readonly commitsApart?: boolean;
  readonly limits?: Limits;
}

/** A schedule that exceeds one of these counts as endless. */
export interface Limits {
  readonly steps: number;
  /** How long nothing may happen: no answer, no new statement, no lock that is waited for. */
  readonly stillMs: number;
}

const usualLimits: Limits = { steps: 1_000, stillMs: 60_000 };

/** A choice is a client's name, with `!` where it dies. The clock is a client, too. */
export type Choice = string;
const clock = 'time';

/** A point at which a choice was made. */
export interface Decision {
  readonly chosen: Choice;
  /** What else could have been chosen, and whether that is a preemption. */
  readonly others: readonly { readonly choice: Choice; readonly cost: 0 | 1 }[];
  /** Equal for states that are equal. */
  readonly state: string;
}

export interface Line {
  readonly client: string;
  readonly text: string;
  /** Set when it had to wait. */
  waited: boolean;
  isDeadlock?: boolean;
}

export interface Outcome {
  readonly decisions: readonly Decision[];
  readonly lines: readonly Line[];
  readonly deadlocks: number;
  /** Errors of clients that were not killed. */
  readonly failures: readonly { readonly client: string; readonly error: unknown }[];
  /** A rule that every schedule must keep, and that this one broke. */
  readonly broken: readonly string[];
}

export interface Stage {
  readonly gate: Gate;
  readonly query: Query;
  readonly neighbours: Neighbours;
}

/** Runs the programs: the choices that are given first, then each client until it ends or waits. */
export async function runSchedule(stage: Stage, cast: Cast, choices: readonly Choice[]): Promise<Outcome> {
  const run = new Run(stage, cast);
  return await run.play(choices);
}

interface Client {
  readonly name: string;
  readonly open: OpenTransaction;
  isEnded: boolean;
  isDead: boolean;
  error: unknown;
  steps: number;
}

class Run {
  readonly #stage: Stage;
  readonly #cast: Cast;
  readonly #clients: Client[] = [];
  readonly #lapses: number[];
  readonly #limits: Limits;
  readonly #lines: Line[] = [];
  readonly #decisions: Decision[] = [];
  readonly #trace: { readonly client: string; readonly footprint: Footprint; readonly key: string }[] = [];
  readonly #broken: string[] = [];
  /** The lines of steps that were released and have no answer yet. */
  readonly #open = new Map<Client, Line>();
  #deadlocks = 0;
  #changed = Promise.withResolvers<void>();

  constructor(stage: Stage, cast: Cast) {
    this.#stage = stage;
    this.#cast = cast;
    this.#lapses = [...cast.lapses];
    this.#limits = cast.limits ?? usualLimits;
  }

  async play(choices: readonly Choice[]): Promise<Outcome> {
    const { gate } = this.#stage;
    gate.clockMs = 0;
    gate.commitsApart = this.#cast.commitsApart ?? false;
    for (const [name, program] of this.#cast.programs) this.#start(name, program);
    try {
      await this.#playOut(choices);
    } catch (error) {
      if (!(error instanceof Endless)) throw error;
      this.#broken.push([error.message, ...(await this.#loadUnended())].join('\n  '));
    } finally {
      // Nobody of this schedule may take part in the next one.
      for (const client of this.#clients.filter(({ isEnded }) => !isEnded)) await this.#cut(client);
    }
    gate.clockMs = 0;
    const failures = this.#clients
      .filter(({ error, isDead }) => error !== undefined && !isDead)
      .map(({ name, error }) => ({ client: name, error }));
    const { decisions, lines, deadlocks, broken } = {
      ...{ decisions: this.#decisions, lines: this.#lines, deadlocks: this.#deadlocks, broken: this.#broken },
    };
    return { decisions, lines, deadlocks, failures, broken };
  }

  async #playOut(choices: readonly Choice[]): Promise<void> {
    let current: string | null = null;
    for (let steps = 0; ; steps++) {
      await this.#untilQuiet();
      if (this.#clients.every((client) => client.isEnded)) return;
      if (steps >= this.#limits.steps) throw new Endless(`The schedule has not ended after ${steps} steps.`);
      const enabled = this.#enabled();
      if (enabled.length === 0) {
        await this.#endDeadlock();
        continue;
      }
      const decision = this.#decide(enabled, current, choices[this.#decisions.length]);
      this.#decisions.push(decision);
      current = await this.#perform(decision.chosen);
    }
  }

  #start(name: string, program: Program): void {
    const traffic = this.#stage.gate.traffic(name);
    const client: Client = { name, open: openTransaction(), isEnded: false, isDead: false, error: undefined, steps: 0 };
    this.#clients.push(client);
    if (traffic.isDead) Object.assign(traffic, { isDead: false, life: traffic.life + 1 });
    traffic.onChange = () => this.#wake();
    const actor: Actor = {
      name,
      act: (what, work) =>
        new Promise((resolve, reject) => {
          if (client.isDead) return reject(new Killed());
          if (this.#stage.gate.connections(name).some(({ status }) => 'TE'.includes(status) && status !== ''))
            this.#broken.push(`${name} holds a transaction open while it does something else (${what}).`);
          const step: Step = {
            ...{ text: what, sent: what, connection: null, isAlone: true, isAnswered: false },
            release: () => {
              traffic.waiting.splice(traffic.waiting.indexOf(step), 1);
              if (client.isDead) return reject(new Killed());
              try {
                resolve(work());
              } catch (error) {
                reject(error as Error);
              }
            },
          };
          traffic.waiting.push(step);
          this.#wake();
        }),
    };
    const end = () => {
      client.isEnded = true;
      this.#wake();
    };
    Promise.try(() => program(actor)).then(end, (error: unknown) => {
      client.error = error ?? new Error('rejected');
      end();
    });
  }

  #wake(): void {
    this.#changed.resolve();
  }

  /** Until every client has ended, has a step to release, or waits for a lock that nobody is about to free. */
  async #untilQuiet(): Promise<void> {
    const { gate, query } = this.#stage;
    const since = performance.now();
    let blockedOnce = '';
    for (;;) {
      this.#changed = Promise.withResolvers();
      const busy = this.#clients.filter(({ name, isEnded }) => {
        const { waiting, pending } = gate.traffic(name);
        return !isEnded && (pending !== null || waiting.length === 0);
      });
      for (const [client, line] of this.#open) {
        if (gate.traffic(client.name).pending === null) {
          this.#open.delete(client);
          // Once more in the trace: where it waited, it took place only now.
          if (line.waited) this.#note(client.name, this.#lastFootprint(client.name));
        }
      }
      if (busy.length === 0) return;
      this.#failIfStill(since);
      const pids = busy.flatMap(({ name }) => gate.traffic(name).pending?.connection?.pid ?? []);
      const isMoving = pids.length < busy.length;
      const wake = this.#changed.promise;
      const isWoken = await Promise.race([wake.then(() => true), sleep(isMoving ? 200 : 4).then(() => false)]);
      if (isWoken || isMoving) continue;
      const blocked = await query<{ pid: number; by: number[] }>(
        `SELECT pid, pg_blocking_pids(pid) AS by FROM unnest($1::int[]) AS pid`,
        [pids],
      );
      const isStill = blocked.every(({ by }) => by.length > 0);
      // Woken meanwhile, or two that wait for each other's end: looked at once more.
      const text = JSON.stringify(blocked);
      if (!isStill || (pids.length > 1 && text !== blockedOnce)) {
        blockedOnce = isStill ? text : '';
        continue;
      }
      for (const client of busy) {
        const line = this.#open.get(client);
        if (line) line.waited = true;
      }
      return;
    }
  }

  #enabled(): string[] {
    const { gate } = this.#stage;
    const names = this.#clients
      .filter(({ name, isEnded }) => !isEnded && gate.traffic(name).pending === null)
      .map(({ name }) => name);
    const isOver = this.#clients.every(({ isEnded }) => isEnded);
    // Where all others wait for locks, time alone frees nobody.
    if (names.length > 0 && this.#lapses.length > 0 && !isOver) names.push(clock);
    return names;
  }

  #decide(enabled: readonly string[], current: string | null, wanted: Choice | undefined): Decision {
    const canContinue = current !== null && enabled.includes(current) && current !== clock;
    // The client that ran last goes on where it can; to choose another one then is a preemption.
    const byDefault = canContinue ? current : (enabled[0] as string);
    const isBegin = this.#isBegin(byDefault);
    const options: { choice: Choice; cost: 0 | 1 }[] = [];
    // BEGIN alone touches nothing but the clock: once no time passes any more, to stop before it and to stop behind it is the same.
    if (!(canContinue && isBegin && this.#lapses.length === 0)) {
      for (const name of enabled) {
        if (name === clock) options.push({ choice: name, cost: 1 });
        else options.push({ choice: name, cost: canContinue && name !== current ? 1 : 0 });
      }
      const isAnyDead = this.#clients.some(({ isDead }) => isDead);
      if (!isAnyDead && this.#cast.mortal.includes(byDefault) && this.#stepsOf(byDefault) > 0) {
        options.push({ choice: `${byDefault}!`, cost: 1 });
      }
    }
    const chosen = wanted ?? byDefault;
    if (!enabled.includes(chosen.replace('!', ''))) {
      throw new Unplayable(`The schedule cannot be played: ${chosen} cannot go on at step ${this.#decisions.length}.`);
    }
    const state = `${canContinue ? current : ''}|${this.#lapses.length}|${this.#key()}`;
    return { chosen, others: options.filter(({ choice }) => choice !== chosen), state };
  }

  #isBegin(name: string): boolean {
    const step = this.#stage.gate.traffic(name).waiting[0];
    return step?.text.startsWith('BEGIN') === true && !step.text.includes('pg_advisory');
  }

  #stepsOf(name: string): number {
    return this.#clients.find((client) => client.name === name)?.steps ?? 0;
  }

  async #perform(choice: Choice): Promise<string | null> {
    if (choice === clock) {
      const ms = this.#lapses.shift() ?? 0;
      this.#stage.gate.clockMs += ms;
      this.#lines.push({ client: clock, text: `${ms / 1_000} s pass`, waited: false });
      this.#note(clock, onEverything);
      return clock;
    }
    const client = this.#clients.find(({ name }) => name === choice.replace('!', ''));
    if (!client) throw new Error(`There is no client ${choice}.`);
    if (choice.endsWith('!')) {
      await this.#kill(client);
      return null;
    }
    const step = this.#stage.gate.traffic(client.name).waiting[0];
    if (!step) throw new Error(`${client.name} has nothing to do.`);
    step.release();
    client.steps++;
    const line: Line = { client: client.name, text: toShort(step.sent), waited: false };
    this.#lines.push(line);
    if (step.connection) this.#open.set(client, line);
    this.#note(
      client.name,
      step.connection ? toFootprint(step.sent, step.isAlone, client.open, this.#stage.neighbours) : onObjects,
    );
    return client.name;
  }

  async #kill(client: Client): Promise<void> {
    this.#lines.push({ client: client.name, text: 'dies', waited: false });
    await this.#cut(client);
    forget(client.open);
    this.#note(client.name, onEverything);
  }

  /** Takes everything from a client. */
  async #cut(client: Client): Promise<void> {
    const { gate } = this.#stage;
    client.isDead = true;
    const traffic = gate.traffic(client.name);
    traffic.isDead = true;
    await gate.cut(client.name);
    for (const step of [...traffic.waiting]) step.release();
  }

  #failIfStill(since: number): void {
    const { stillMs } = this.#limits;
    if (performance.now() - since > stillMs) throw new Endless(`Nobody could go on for ${stillMs / 1_000} s.`);
  }

  /** Clients that have not ended, and what each waits for. */
  async #loadUnended(): Promise<string[]> {
    const { gate, query } = this.#stage;
    const unended = this.#clients.filter(({ isEnded }) => !isEnded);
    const pids = unended.flatMap(({ name }) => gate.traffic(name).pending?.connection?.pid ?? []);
    const rows = await query<{ pid: number; by: number; holder: string }>(
      `SELECT w.pid, h.pid AS by, coalesce(s.application_name, '') AS holder FROM unnest($1::int[]) AS w (pid),
         unnest(pg_blocking_pids(w.pid)) AS h (pid) LEFT JOIN pg_stat_activity s ON s.pid = h.pid`,
      [pids],
    );
    return unended.map(({ name, isDead }) => {
      const { pending, waiting } = gate.traffic(name);
      const holders = rows
        .filter(({ pid }) => pid === pending?.connection?.pid)
        .map(
          ({ by, holder }) =>
            this.#clients.find((one) => gate.connections(one.name).some(({ pid }) => pid === by))?.name ??
            `another session (${holder})`,
        );
      if (isDead) return `${name} does not end although it was killed.`;
      if (pending && holders.length > 0)
        return `${name} waits for a lock of ${[...new Set(holders)].join(', ')}: ${toShort(pending.sent)}`;
      if (pending) return `${name} has no answer to: ${toShort(pending.sent)}`;
      if (waiting[0]) return `${name} can go on with: ${toShort(waiting[0].text)}`;
      return `${name} neither ends nor sends a statement.`;
    });
  }

  /**
   * Postgres would end one of those that wait for each other after a second, the first or the last. Here it is the last, at once, unless
   * the guard that is taken out is what another one does then.
   */
  async #endDeadlock(): Promise<void> {
    const { gate, query } = this.#stage;
    const held = [...this.#open].filter(([{ name }]) => gate.traffic(name).pending !== null);
    const [client, line] = held.find(([{ name }]) => name === gate.hidesConflictsOf) ?? held.at(-1) ?? [];
    const pid = client && gate.traffic(client.name).pending?.connection?.pid;
    if (!client || !line || pid === undefined) throw new Endless('Nobody can go on, and nobody waits for a lock.');
    const waiting = this.#clients.flatMap(({ name }) => gate.traffic(name).pending?.connection?.pid ?? []);
    const [holders] = await query<{ pids: number[] | null }>(
      `SELECT array_agg(DISTINCT by) AS pids FROM unnest($1::int[]) AS pid, unnest(pg_blocking_pids(pid)) AS by`,
      [waiting],
    );
    // A session that is just ending, and frees what it holds, is no circle.
    if (holders?.pids?.every((one) => waiting.includes(one)) !== true) return await sleep(5);
    this.#deadlocks++;
    line.isDeadlock = true;
    gate.nameDeadlock(pid);
    await query('SELECT pg_cancel_backend($1)', [pid]);
    const since = performance.now();
    while (gate.traffic(client.name).pending?.connection?.pid === pid) {
      this.#changed = Promise.withResolvers();
      this.#failIfStill(since);
      await Promise.race([this.#changed.promise, sleep(200)]);
    }
    this.#note(client.name, onEverything);
  }

  /** Adds to the trace. A step's key says what it is and which steps before it it depends on; equal sets of keys are equal states. */
  #note(client: string, footprint: Footprint): void {
    const before = this.#trace
      .filter((one) => one.client === client || areDependent(one.footprint, footprint))
      .map(({ key }) => key);
    const nth = this.#trace.filter((one) => one.client === client).length;
    this.#trace.push({
      client,
      footprint,
      key: hash('sha1', `${client} ${nth} ${before.toSorted(inOrder).join()}`, 'base64'),
    });
  }

  #lastFootprint(client: string): Footprint {
    return this.#trace.findLast((one) => one.client === client)?.footprint ?? onEverything;
  }

  #key(): string {
    return hash(
      'sha1',
      this.#trace
        .map(({ key }) => key)
        .toSorted(inOrder)
        .join(),
      'base64',
    );
  }
}

function toShort(sql: string): string {
  const text = sql
    .replaceAll(/SET LOCAL [^;]+;?/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return text.length > 140 ? `${text.slice(0, 140)} ..` : text;
}

function inOrder(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

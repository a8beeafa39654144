// Runs one schedule: several clients, one statement at a time, first in a given order, then in the default order. The run detects clients
// that wait for a lock and leaves them waiting. It can kill a client and move the clock. It returns the steps taken, and every point at
// which another choice was possible.
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

/** Runs a statement on the explorer's own connection. */
export type Query = <Row extends object = Record<string, unknown>>(
  sql: string,
  values?: readonly unknown[],
) => Promise<Row[]>;

/** Rejects the pending step of a killed client. The schedule ignores what the client does after that. */
class Killed extends Error {
  override name = 'Killed';
}

/** A schedule chooses a client that has ended or waits for a lock. */
export class Unplayable extends Error {
  override name = 'Unplayable';
}

/** A schedule exceeds its limits, or no client can continue. */
class Endless extends Error {
  override name = 'Endless';
}

/** A client of a schedule as its program sees it. */
export interface Actor {
  readonly name: string;
  /** Takes a step that is not a statement, such as a put or a delete of an object. The client must not have a transaction open. */
  act<T>(what: string, work: () => T): Promise<T>;
}

/** What a client runs. */
export type Program = (actor: Actor) => Promise<unknown>;

export interface Cast {
  /** The clients, in the order in which the default schedule runs them. */
  readonly programs: Readonly<Record<string, Program>>;
  /**
   * Clients that may die; none by default. At most one dies per schedule: the one that would run next by default, and not before its first
   * step.
   */
  readonly mortal?: readonly string[];
  /** How far each step of the clock moves the time, in milliseconds; it stands still by default. */
  readonly lapses?: readonly number[];
  /** A write outside a transaction takes two steps: one executes it, the next commits it. */
  readonly commitsApart?: boolean;
  readonly limits?: Limits;
}

/** A schedule that exceeds one of these counts as endless. */
export interface Limits {
  readonly steps: number;
  /** How long the clients may take after a step until each has ended, has a next step, or waits for a lock. */
  readonly stillMs: number;
}

const usualLimits: Limits = { steps: 1_000, stillMs: 60_000 };

/** A client's name, followed by `!` when the client dies. The clock counts as a client. */
export type Choice = string;
const clock = 'time';

/** A point at which a choice was made. */
export interface Decision {
  readonly chosen: Choice;
  /** The other possible choices. A choice with cost 1 is a preemption. */
  readonly others: readonly { readonly choice: Choice; readonly cost: 0 | 1 }[];
  /** Equal states have equal text. */
  readonly state: string;
}

export interface Line {
  readonly client: string;
  readonly text: string;
  /** Set when the statement had to wait for a lock. */
  waited: boolean;
  isDeadlock?: boolean;
}

export interface Outcome {
  readonly decisions: readonly Decision[];
  readonly lines: readonly Line[];
  readonly deadlocks: number;
  /** Errors of clients that were not killed. */
  readonly failures: readonly { readonly client: string; readonly error: unknown }[];
  /** Rules for every schedule that this one broke. */
  readonly broken: readonly string[];
}

export interface Stage {
  readonly gate: Gate;
  readonly query: Query;
  readonly neighbours: Neighbours;
}

/** A client that asks for a lock from time to time: it asks again only when another one has taken a step. */
const polling = /^SELECT pg_try_advisory_lock/;

/** Runs the programs: follows the given choices, then runs each client until it ends or waits. */
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
  /** The lines of released steps that have no answer yet. */
  readonly #open = new Map<Client, Line>();
  #deadlocks = 0;
  #changed = Promise.withResolvers<void>();

  constructor(stage: Stage, cast: Cast) {
    this.#stage = stage;
    this.#cast = cast;
    this.#lapses = [...(cast.lapses ?? [])];
    this.#limits = cast.limits ?? usualLimits;
  }

  async play(choices: readonly Choice[]): Promise<Outcome> {
    const { gate } = this.#stage;
    gate.clockMs = 0;
    gate.commitsApart = this.#cast.commitsApart ?? false;
    for (const [name, program] of Object.entries(this.#cast.programs)) this.#start(name, program);
    try {
      await this.#playOut(choices);
    } catch (error) {
      if (!(error instanceof Endless)) throw error;
      this.#broken.push([error.message, ...(await this.#loadUnended())].join('\n  '));
    } finally {
      // No client of this schedule may still run during the next one.
      for (const client of this.#clients.filter(({ isEnded }) => !isEnded)) await this.#cut(client);
    }
    gate.clockMs = 0;
    const failures = this.#clients
      .filter(({ error, isDead }) => error !== undefined && !isDead)
      .map(({ name, error }) => ({ client: name, error }));
    const [decisions, lines, broken] = [this.#decisions, this.#lines, this.#broken];
    return { decisions, lines, deadlocks: this.#deadlocks, failures, broken };
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

  /** Waits until every client has ended, has a step to release, or waits for a lock that no running statement will free. */
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
          // A statement that waited takes effect only now, so the trace gets it a second time.
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
      // Check again when a client is not blocked any more, and when several clients are blocked but not by the same sessions as last time.
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
    const able = this.#clients
      .filter(({ name, isEnded }) => !isEnded && gate.traffic(name).pending === null)
      .map(({ name }) => name);
    const last = this.#lines.at(-1);
    const asksAgain = (name: string) =>
      last?.client === name && [last.text, gate.traffic(name).waiting[0]?.text ?? ''].every((sql) => polling.test(sql));
    const names = able.length > 1 ? able.filter((name) => !asksAgain(name)) : able;
    const isOver = this.#clients.every(({ isEnded }) => isEnded);
    // When every client waits for a lock, moving the clock frees none of them.
    if (names.length > 0 && this.#lapses.length > 0 && !isOver) names.push(clock);
    return names;
  }

  #decide(enabled: readonly string[], current: string | null, wanted: Choice | undefined): Decision {
    const canContinue = current !== null && enabled.includes(current) && current !== clock;
    // By default the client that ran last continues if it can. Choosing another client then is a preemption.
    const byDefault = canContinue ? current : (enabled[0] as string);
    const isBegin = this.#isBegin(byDefault);
    const options: { choice: Choice; cost: 0 | 1 }[] = [];
    // BEGIN alone depends only on the clock. Once no lapse is left, preempting before BEGIN equals preempting after it.
    if (!(canContinue && isBegin && this.#lapses.length === 0)) {
      for (const name of enabled) {
        if (name === clock) options.push({ choice: name, cost: 1 });
        else options.push({ choice: name, cost: canContinue && name !== current ? 1 : 0 });
      }
      const isAnyDead = this.#clients.some(({ isDead }) => isDead);
      if (!isAnyDead && this.#cast.mortal?.includes(byDefault) && this.#stepsOf(byDefault) > 0) {
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

  /** Closes the connections of a client and rejects its waiting steps. */
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

  /** Describes each client that has not ended, and what it waits for. */
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
   * Ends a deadlock by cancelling one statement. Postgres would wait for one second and then cancel the first or the last waiter. Here the
   * last waiter is cancelled at once, unless the guard under test is the retry of another waiter: then that waiter is cancelled.
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
    // If a session outside the waiters holds a lock, it is just ending and will release the lock: this is not a deadlock.
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

  /** Adds a step to the trace. Its key identifies the step and the earlier steps it depends on. Equal sets of keys mean equal states. */
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

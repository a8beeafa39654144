// One advertiser's account: its applications, choices and faults, and everything that can happen to them while it is in use.
// Knows nothing of HTTP. Applications are rows until somebody looks at them.

import { type Choices, choicesForm, defaultChoices } from '../behaviour/choices.ts';
import { createFaults, type FaultPlan, type Faults } from '../behaviour/faults.ts';
import {
  type BoardRow,
  countBelow,
  createWorld,
  type SandboxApplication,
  toApplication,
  type World,
} from '../people/applications.ts';
import { spreadOverWeeks } from '../people/calendar.ts';
import type { Stock } from '../people/people.ts';
import { type ApplicationPlan, type ParsedPlan, planForm } from '../people/plan.ts';
import { createDraw, mix } from '../people/random.ts';
import type { Templates } from '../people/templates.ts';
import { type TruthRow, toTruth } from './truth.ts';

/** What a test or the control API can do to an account. */
export interface BoardAdvertiser {
  readonly credential: string;
  readonly advertiserId: bigint;
  /** The name that candidates know the advertiser by. */
  readonly employer: string;
  readonly choices: Choices;
  choose(some: Partial<Choices>): void;
  /** Arms a fault; the number ends it again. */
  fault(plan: FaultPlan): number;
  clearFaults(number?: number): void;
  faults(): ReturnType<Faults['list']>;
  /** Adds applications submitted now (or when their plan says); answers their ids. */
  add(wanted?: number | readonly ApplicationPlan[]): bigint[];
  /** Gives ids and dates to applications that show only after their release: late arrivals. */
  holdBack(wanted?: number | readonly ApplicationPlan[]): bigint[];
  /** Shows what was held back, all of it or these. */
  release(ids?: readonly bigint[]): bigint[];
  change(id: bigint, plan: ApplicationPlan): void;
  remove(id: bigint): void;
  /** Shows a removed application again, as it was. */
  restore(id: bigint): void;
  /** Adds so many applications a minute from now on; 0 stops. */
  startArrivals(perMinute: number): void;
  /** How many applications show. */
  readonly size: number;
  /** What a perfect reader would store, in order of id. */
  truth(): Iterable<TruthRow>;
}

export interface AccountOptions {
  readonly seed: number;
  readonly advertiserId: bigint;
  readonly credential: string;
  readonly applications: number;
  readonly choices: Partial<Choices>;
  readonly templates: Templates;
  readonly stock: Stock;
  readonly now: () => number;
  /** The applications that it starts with were submitted in so many weeks before that moment. */
  readonly weeks: number;
  readonly historyEndsAt: number;
  /** Name and port under which the sandbox is reached, once it is. */
  readonly host: () => string;
  readonly firstId: bigint;
}

/** An account; `rows` are what shows, sorted by id. */
export class Account implements BoardAdvertiser {
  readonly credential: string;
  readonly advertiserId: bigint;
  readonly employer: string;
  readonly seed: number;
  readonly armed: Faults;
  readonly now: () => number;
  readonly host: () => string;
  choices: Choices;
  rows: BoardRow[] = [];
  readonly removed = new Map<bigint, BoardRow>();
  requestCount = 0;
  readonly #templates: Templates;
  readonly #stock: Stock;
  readonly #held = new Map<bigint, BoardRow>();
  #world: World | undefined;
  #nextOrdinal = 0;
  #nextId: bigint;
  #rateSecond = 0;
  #rateCount = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AccountOptions) {
    this.credential = options.credential;
    this.advertiserId = options.advertiserId;
    this.seed = mix(options.seed, Number(options.advertiserId % 0x1_0000_0000n));
    this.employer = createDraw(this.seed, 30).pick(options.stock.companies);
    this.armed = createFaults(this.seed);
    this.now = options.now;
    this.host = options.host;
    this.choices = { ...defaultChoices, ...choicesForm.parse(options.choices) };
    this.#templates = options.templates;
    this.#stock = options.stock;
    this.#nextId = options.firstId;
    const moments = spreadOverWeeks(
      options.applications,
      { weeks: options.weeks, endsAt: options.historyEndsAt },
      (ordinal) => (mix(this.seed, 6, ordinal) % 1000) / 1000,
    );
    for (const submittedAt of moments) this.rows.push(this.#create(submittedAt, null));
  }

  get size(): number {
    return this.rows.length;
  }

  choose(some: Partial<Choices>): void {
    this.choices = { ...this.choices, ...choicesForm.parse(some) };
  }

  fault(plan: FaultPlan): number {
    return this.armed.add(plan);
  }

  clearFaults(number?: number): void {
    this.armed.clear(number);
  }

  faults(): ReturnType<Faults['list']> {
    return this.armed.list();
  }

  add(wanted: number | readonly ApplicationPlan[] = 1): bigint[] {
    return this.#createSome(wanted).map((row) => this.#show(row));
  }

  holdBack(wanted: number | readonly ApplicationPlan[] = 1): bigint[] {
    return this.#createSome(wanted).map((row) => {
      this.#held.set(row.id, row);
      return row.id;
    });
  }

  release(ids: readonly bigint[] = [...this.#held.keys()]): bigint[] {
    return ids.flatMap((id) => {
      const row = this.#held.get(id);
      if (!row) return [];
      this.#held.delete(id);
      return [this.#show(row)];
    });
  }

  change(id: bigint, plan: ApplicationPlan): void {
    const at = countBelow(this.rows, id);
    const row = this.rows[at];
    if (row?.id !== id) throw new RangeError(`No application ${id} to change.`);
    const { attach = [], detach = [], ...rest } = planForm.parse(plan);
    const before: ParsedPlan = { ...row.plan, ...(rest.attachments ? { attach: [], detach: [] } : {}) };
    // A later word on a kind of attachment replaces an earlier one.
    const spoken = new Set([...attach.map((one) => one.kind), ...detach]);
    const merged: ParsedPlan = {
      ...before,
      ...rest,
      attach: [...(before.attach ?? []).filter((one) => !spoken.has(one.kind)), ...attach],
      detach: [...(before.detach ?? []), ...detach],
    };
    this.rows[at] = { ...row, submittedAt: rest.submittedAt ?? row.submittedAt, plan: merged };
  }

  remove(id: bigint): void {
    const at = countBelow(this.rows, id);
    const row = this.rows[at];
    if (row?.id !== id) throw new RangeError(`No application ${id} to remove.`);
    this.rows.splice(at, 1);
    this.removed.set(id, row);
  }

  restore(id: bigint): void {
    const row = this.removed.get(id);
    if (!row) throw new RangeError(`No application ${id} to show again.`);
    this.removed.delete(id);
    this.rows.splice(countBelow(this.rows, id), 0, row);
  }

  startArrivals(perMinute: number): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (perMinute > 0) this.#timer = setInterval(() => this.add(1), 60_000 / perMinute).unref();
  }

  *truth(): Generator<TruthRow> {
    for (const row of this.rows) {
      if (!this.isWithdrawn(row)) yield toTruth(this.look(row), this.choices, this.host());
    }
  }

  /** The application that shows under an id. */
  get(id: bigint): SandboxApplication | null {
    const row = this.rows[countBelow(this.rows, id)];
    return row?.id === id && !this.isWithdrawn(row) ? this.look(row) : null;
  }

  look(row: BoardRow): SandboxApplication {
    // An account that nobody asks costs no world.
    this.#world ??= createWorld(this.seed, this.#templates, this.#stock);
    return toApplication(this.#world, { ...row, submittedAt: this.submittedAt(row) });
  }

  /** When the row was submitted; `crossed` lets neighbours change places by up to three days. */
  submittedAt(row: BoardRow): number {
    if (this.choices.idsAgainstDates === 'rising') return row.submittedAt;
    return row.submittedAt - (mix(this.seed, 8, row.ordinal) % (3 * 86_400_000));
  }

  /** Withdrawn applications take a place on a page and are not shown. */
  isWithdrawn(row: BoardRow): boolean {
    return this.choices.withdrawnPerMille > 0 && mix(this.seed, 9, row.ordinal) % 1000 < this.choices.withdrawnPerMille;
  }

  /** Counts this request against the account's rate. */
  isOverRate(): boolean {
    const second = Math.floor(this.now() / 1000);
    if (second !== this.#rateSecond) {
      this.#rateSecond = second;
      this.#rateCount = 0;
    }
    this.#rateCount += 1;
    return this.choices.ratePerSecond !== null && this.#rateCount > this.choices.ratePerSecond;
  }

  #createSome(wanted: number | readonly ApplicationPlan[]): BoardRow[] {
    if (typeof wanted === 'number') return Array.from({ length: wanted }, () => this.#create(this.now(), null));
    return wanted.map((one) => {
      const plan = planForm.parse(one);
      return this.#create(plan.submittedAt ?? this.now(), plan);
    });
  }

  #create(submittedAt: number, plan: ParsedPlan | null): BoardRow {
    const ordinal = this.#nextOrdinal;
    this.#nextOrdinal += 1;
    const id = plan?.id ?? this.#nextId;
    // A given id does not move the counter: one absurd id must not drag all later ones along.
    if (plan?.id === undefined) this.#nextId += BigInt(idStep(this.choices, this.seed, ordinal));
    return { id, ordinal, submittedAt, plan };
  }

  #show(row: BoardRow): bigint {
    const at = countBelow(this.rows, row.id);
    if (this.rows[at]?.id === row.id) throw new RangeError(`Application ${row.id} is there already.`);
    if (at === this.rows.length) this.rows.push(row);
    else this.rows.splice(at, 0, row);
    return row.id;
  }
}

function idStep(choices: Choices, seed: number, ordinal: number): number {
  if (choices.idSpacing === 'consecutive') return 1;
  return 1 + (mix(seed, 10, ordinal) % (choices.idSpacing === 'sparse' ? 40 : 100_000));
}

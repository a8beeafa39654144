// One advertiser's account: its applications, choices and faults, and the operations that change them.
// Does not know HTTP. Applications are kept as rows; `look` generates the rest.

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
  /** The advertiser's name, as shown to candidates. */
  readonly employer: string;
  readonly choices: Choices;
  choose(some: Partial<Choices>): void;
  /** Adds a fault; its number removes it again. */
  fault(plan: FaultPlan): number;
  clearFaults(number?: number): void;
  faults(): ReturnType<Faults['list']>;
  /** Adds applications submitted now, or at the time in their plan; returns their ids. */
  add(wanted?: number | readonly ApplicationPlan[]): bigint[];
  /** Assigns ids and dates to applications that are listed only after their release: late arrivals. */
  holdBack(wanted?: number | readonly ApplicationPlan[]): bigint[];
  /** Lists applications that were held back, all of them or these. */
  release(ids?: readonly bigint[]): bigint[];
  change(id: bigint, plan: ApplicationPlan): void;
  remove(id: bigint): void;
  /** Lists a removed application again, unchanged. */
  restore(id: bigint): void;
  /** Adds this many applications per minute; 0 stops. */
  startArrivals(perMinute: number): void;
  /** How many applications are listed. */
  readonly size: number;
  /** What a perfect reader would have stored, ordered by id. */
  truth(): Iterable<TruthRow>;
}

/** What may be said about a new account; the sandbox chooses the rest. */
export interface AdvertiserOptions {
  readonly advertiserId?: bigint;
  readonly credential?: string;
  /** How many applications it starts with. */
  readonly applications?: number;
  /** Over how many weeks before `historyEndsAt` they are spread; by default a year. */
  readonly weeks?: number;
  readonly choices?: Partial<Choices>;
  /** The id of its first application. */
  readonly firstId?: bigint;
}

export interface AccountOptions extends Required<AdvertiserOptions> {
  readonly seed: number;
  readonly templates: Templates;
  readonly stock: Stock;
  readonly now: () => number;
  readonly historyEndsAt: number;
  /** Host and port of the sandbox, once it listens. */
  readonly host: () => string;
}

/** An account; `rows` are the listed applications, sorted by id. */
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
    // A later plan for a kind of attachment replaces an earlier one.
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
    if (!row) throw new RangeError(`No application ${id} to restore.`);
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

  /** The listed application with this id. */
  get(id: bigint): SandboxApplication | null {
    const row = this.rows[countBelow(this.rows, id)];
    return row?.id === id && !this.isWithdrawn(row) ? this.look(row) : null;
  }

  look(row: BoardRow): SandboxApplication {
    // Created lazily: an account that receives no request needs no world.
    this.#world ??= createWorld(this.seed, this.#templates, this.#stock);
    return toApplication(this.#world, { ...row, submittedAt: this.submittedAt(row) });
  }

  /** When the row was submitted; `crossed` moves each date back by up to three days, so that ids and dates disagree in order. */
  submittedAt(row: BoardRow): number {
    if (this.choices.idsAgainstDates === 'rising') return row.submittedAt;
    return row.submittedAt - (mix(this.seed, 8, row.ordinal) % (3 * 86_400_000));
  }

  /** Withdrawn applications count towards the page limit but are not shown. */
  isWithdrawn(row: BoardRow): boolean {
    return this.choices.withdrawnPerMille > 0 && mix(this.seed, 9, row.ordinal) % 1000 < this.choices.withdrawnPerMille;
  }

  /** Counts this request, and returns whether it exceeds the account's rate limit. */
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
    // An explicit id does not move the counter: one absurd id must not affect all later ones.
    if (plan?.id === undefined) this.#nextId += BigInt(idStep(this.choices, this.seed, ordinal));
    return { id, ordinal, submittedAt, plan };
  }

  #show(row: BoardRow): bigint {
    const at = countBelow(this.rows, row.id);
    if (this.rows[at]?.id === row.id) throw new RangeError(`Application ${row.id} already exists.`);
    if (at === this.rows.length) this.rows.push(row);
    else this.rows.splice(at, 0, row);
    return row.id;
  }
}

function idStep(choices: Choices, seed: number, ordinal: number): number {
  if (choices.idSpacing === 'consecutive') return 1;
  return 1 + (mix(seed, 10, ordinal) % (choices.idSpacing === 'sparse' ? 40 : 100_000));
}

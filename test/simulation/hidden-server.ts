// A simulated list server whose rules the reader does not know. The engine builds every answer in the same order of steps, and the traits
// of a kind define what each step does. Omitted traits are those of the friendly server: ascending by id, bounds excluded, both filters
// applied, one constant cap by count.
import { Draws } from './draws.ts';
import { beginning, ordinaryWorld, World, type WorldRow, type WorldTraits } from './world.ts';

export interface ListRequest {
  readonly afterId: bigint | null;
  readonly beforeId: bigint | null;
  /** Seconds since the epoch, as the reader means them. The text on the wire has no time zone. */
  readonly afterDate: number | null;
  readonly beforeDate: number | null;
}

export interface ListedRow {
  readonly id: bigint;
  /** Seconds since the epoch; null when the row has no readable date. */
  readonly submittedAt: number | null;
  /** Size of the element on the wire. */
  readonly bytes: number;
  /** The id on the wire is not a number. */
  readonly unreadable?: true;
}

type ListStatus = 200 | 204 | 400 | 403 | 404 | 500;
type Echo = 'matches' | 'absent' | 'differs';

export interface ListReply {
  readonly status: ListStatus;
  readonly rows: readonly ListedRow[];
  /** Bytes of the whole body. */
  readonly bytes: number;
  /** none: a 200 without a body. broken: the body ends in the middle, and nothing in it can be read. */
  readonly body?: 'none' | 'broken';
  readonly echo: Echo;
  /** The Age header in seconds; null when the server sends none. */
  readonly age: number | null;
}

export interface HiddenServer {
  readonly kind: string;
  readonly seed: number;
  /** Answers a request that arrives at this virtual time, in milliseconds. The time must not decrease between calls. */
  list(request: ListRequest, atMs: number): ListReply;
  /** Ids that were in the list during the whole time span and that at least one question could have shown. */
  presentThroughout(fromMs: number, toMs: number): bigint[];
  /** An application fills a quarter of a page, or more, which the second assumption rules out. */
  readonly isHeavy: boolean;
  /** Ids in the list at this time. */
  presentAt(atMs: number): bigint[];
  /** Simulates a night: arrivals, late commits, deletions, and perhaps a deploy that changes the cap. Call it between two sweeps. */
  passNight(atMs: number): void;
  /** Simulates the minutes between two polls: usually zero to a few arrivals, rarely a commit that is late by seconds. */
  passMinutes(atMs: number): void;
}

export interface ServerOptions {
  /** Rows at the start. By default the seed chooses 0 to 600. */
  readonly rows?: number;
  /** Rows per page. By default the seed or the kind chooses 1 to 100. */
  readonly page?: number;
  /** Rows arrive, change and are deleted only in `passNight` and `passMinutes`. */
  readonly still?: boolean;
  /** The start of the virtual time, in milliseconds since the epoch. The initial rows are older. */
  readonly startMs?: number;
}

export interface Keeps {
  readonly filtersBeforeCap: boolean;
  readonly capAboveHalf: boolean;
  readonly oneCurrentList: boolean;
}

export interface Kind {
  readonly name: string;
  readonly keeps: Keeps;
  create(seed: number, options?: ServerOptions): HiddenServer;
}

export type FilterName = keyof ListRequest;

export type Order =
  | 'id'
  | 'id-descending'
  | 'date'
  | 'date-descending'
  | 'day-then-id-descending'
  | 'score'
  | 'hash'
  | 'job'
  | 'person'
  | 'size'
  | 'commit'
  | 'modified'
  | 'id-text'
  | 'date-random-ties'
  | 'random';

/** One question, with the state of the server when it arrives. */
export interface Ask {
  readonly request: ListRequest;
  /** The number of id filters in the request. */
  readonly idFilters: 0 | 1 | 2;
  readonly hasDates: boolean;
  readonly atMs: number;
  /** Seconds since the epoch. */
  readonly now: number;
  /** Milliseconds since the previous question. */
  readonly gapMs: number;
  /** The number of earlier questions since the last night. */
  readonly before: number;
  /** The day's deploy has happened. It comes once a day, after a number of questions (up to 60) or a time (up to two minutes) by seed. */
  readonly deployed: boolean;
  readonly nights: number;
  /** Rows per page since the last night's deploy. */
  readonly page: number;
  readonly pageBytes: number;
  /** The server's own random draws, for answers that depend on chance. */
  readonly draws: Draws;
}

export interface Cap {
  readonly count: number;
  readonly bytes: number;
  /** Whether the page ends before or after the row that exceeds its bytes. */
  readonly overflow: 'before' | 'after';
  /** The server shows the first row even if it alone exceeds the bytes. */
  readonly atLeastOne: boolean;
}

export const unlimited: Cap = {
  count: Number.POSITIVE_INFINITY,
  bytes: Number.POSITIVE_INFINITY,
  overflow: 'before',
  atLeastOne: true,
};

export interface Cache {
  /** Null when the cache does not answer the question. */
  readonly key: (ask: Ask) => string | null;
  readonly forMs: number;
  readonly tellsAge: boolean;
  /** The cache is emptied whenever the list changes. */
  readonly current: boolean;
}

export interface Traits {
  readonly world?: Partial<WorldTraits>;
  /** Rows per page. By default the seed chooses. */
  readonly page?: number;
  readonly leastPage?: number;
  /** The factors by which a deploy at night may multiply the page. */
  readonly nightFactors?: readonly [number, ...number[]];
  readonly refuses?: (ask: Ask) => 400 | 403 | null;
  readonly cache?: Cache;
  /** The request as the server understands it. */
  readonly rewrite?: (request: ListRequest, ask: Ask) => ListRequest;
  /** The time whose list the server shows. A time before the first question counts as its time, except for `beginning`. */
  readonly viewAt?: (ask: Ask) => number;
  readonly hides?: (row: WorldRow, ask: Ask) => boolean;
  readonly groups?: 'never' | 'before-filters' | 'after-filters';
  /** Below 0 when the row's id is lower than the bound. */
  readonly compareIds?: (id: bigint, bound: bigint) => number;
  readonly inclusive?: (filter: FilterName, ask: Ask) => boolean;
  readonly combine?: 'and' | 'or' | 'after-wins' | 'before-wins';
  readonly stage?: (filter: FilterName, ask: Ask) => 'before-cap' | 'after-cap' | 'never';
  /** Whether a row without a date passes a date filter. */
  readonly undatedMatches?: boolean;
  /** The difference in seconds between the server's interpretation of a date filter and what the reader means. */
  readonly dateShift?: (seconds: number) => number;
  /** The number of rows that the server reads before it applies any filter. */
  readonly prefetch?: (ask: Ask) => number;
  readonly order?: Order | ((ask: Ask) => Order);
  readonly cap?: (ask: Ask) => Cap;
  readonly measure?: (row: WorldRow) => number;
  /** The server continues past the cap until the page shows at least half the cap in rows that are not deleted. */
  readonly refills?: boolean;
  readonly repeatsCopies?: boolean;
  readonly shown?: Order | ((ask: Ask) => Order | 'as-chosen');
  readonly trims?: (rows: readonly ListedRow[], ask: Ask) => readonly ListedRow[];
  readonly shows?: (row: ListedRow) => ListedRow;
  readonly emptyStatus?: 200 | 204 | 404;
  /** An empty answer is 200 without a body. */
  readonly emptyBody?: boolean;
  /** An answer that would show this row fails, with 500 or with a body that does not parse. */
  readonly poison?: (row: WorldRow) => '500' | 'broken' | null;
  readonly echo?: (ask: Ask) => Echo;
  /** False when no question can show this row. */
  readonly couldShow?: (row: WorldRow, pageBytes: number, rows: readonly WorldRow[]) => boolean;
}

/** True if a reply is no answer: an error of the server, or a body that does not parse. */
export function isFailure({ status, body }: ListReply): boolean {
  return status === 500 || body === 'broken';
}

/** 2026-03-31T23:33:20Z, four days before daylight saving time ends in Melbourne. */
const defaultStartMs = 1_775_000_000_000;
const envelopeBytes = 420;
const bytesPerRow = 700;

export function createServer(
  kind: string,
  seed: number,
  options: ServerOptions,
  toTraits: (draws: Draws) => Traits,
): HiddenServer {
  return new Engine(kind, seed, options, toTraits(new Draws(`traits ${kind} ${seed}`)));
}

class Engine implements HiddenServer {
  readonly kind: string;
  readonly seed: number;
  readonly #traits: Traits;
  readonly #world: World;
  readonly #answerDraws: Draws;
  readonly #deployDraws: Draws;
  readonly #cached = new Map<string, { readonly at: number; readonly version: number; readonly reply: ListReply }>();
  readonly #sorted = new Map<Order, readonly WorldRow[]>();
  #sortedVersion = -1;
  #page: number;
  #pageBytes: number;
  #nights = 0;
  #before = 0;
  #firstAt: number | null = null;
  #lastAt = Number.NEGATIVE_INFINITY;
  #dayBegan: number | null = null;
  #deploy: { readonly afterMs: number; readonly afterQuestions: number };
  isHeavy = false;

  constructor(kind: string, seed: number, options: ServerOptions, traits: Traits) {
    this.kind = kind;
    this.seed = seed;
    this.#traits = traits;
    // Separate random streams keep the world and the page of a seed the same for every kind that does not change them.
    this.#answerDraws = new Draws(`answers ${seed}`);
    this.#deployDraws = new Draws(`deploys ${seed}`);
    const pageDraws = new Draws(`page ${seed}`);
    const drawnPage = pageDraws.logInt(1, 100);
    this.#page = Math.max(traits.leastPage ?? 1, options.page ?? traits.page ?? drawnPage);
    this.#pageBytes = Math.max(4, this.#page) * bytesPerRow;
    this.#deploy = this.#planDeploy();
    const drawnRows = drawRows(pageDraws, this.#page);
    this.#world = new World(
      {
        traits: { ...ordinaryWorld, ...traits.world },
        rows: options.rows ?? drawnRows,
        page: this.#page,
        pageBytes: this.#pageBytes,
        startMs: options.startMs ?? defaultStartMs,
        still: options.still ?? false,
      },
      new Draws(`world ${seed}`),
    );
  }

  list(request: ListRequest, atMs: number): ListReply {
    this.#world.advance(atMs);
    const ask = this.#toAsk(request, atMs);
    const refused = this.#traits.refuses?.(ask) ?? null;
    if (refused !== null) return { ...nothing, status: refused };
    const cache = this.#traits.cache;
    const key = cache?.key(ask) ?? null;
    if (cache === undefined || key === null) return this.#answer(ask);
    const held = this.#cached.get(key);
    if (held && atMs - held.at < cache.forMs && (!cache.current || held.version === this.#world.version))
      return { ...held.reply, age: cache.tellsAge ? Math.floor((atMs - held.at) / 1000) : null };
    const reply = { ...this.#answer(ask), age: cache.tellsAge ? 0 : null };
    this.#cached.set(key, { at: atMs, version: this.#world.version, reply });
    return reply;
  }

  presentThroughout(fromMs: number, toMs: number): bigint[] {
    this.#world.advance(toMs);
    const rows = this.#world.throughout(fromMs, toMs);
    const could = this.#traits.couldShow;
    const live = could ? this.#world.liveAt(toMs) : [];
    const seen = could ? rows.filter((row) => could(row, this.#pageBytes, live)) : rows;
    return seen.map((row) => row.id).sort(ascending);
  }

  presentAt(atMs: number): bigint[] {
    this.#world.advance(atMs);
    return this.#world
      .liveAt(atMs)
      .map((row) => row.id)
      .sort(ascending);
  }

  passNight(atMs: number): void {
    this.#world.passNight(atMs, this.#page);
    this.#nights++;
    this.#before = 0;
    this.#dayBegan = null;
    const factor = this.#deployDraws.pick(this.#traits.nightFactors ?? [1, 1, 1, 1, 0.5, 2, 0.3]);
    this.#page = Math.max(this.#traits.leastPage ?? 1, Math.round(this.#page * factor));
    this.#pageBytes = Math.ceil(this.#pageBytes * factor);
    this.#deploy = this.#planDeploy();
  }

  passMinutes(atMs: number): void {
    this.#world.passMinutes(atMs, this.#page);
  }

  #planDeploy(): { readonly afterMs: number; readonly afterQuestions: number } {
    const byTime = this.#deployDraws.chance(0.3);
    const afterMs = this.#deployDraws.logInt(300, 120_000);
    const afterQuestions = this.#deployDraws.logInt(1, 60);
    const never = Number.POSITIVE_INFINITY;
    return byTime ? { afterMs, afterQuestions: never } : { afterMs: never, afterQuestions };
  }

  #toAsk(request: ListRequest, atMs: number): Ask {
    this.#firstAt ??= atMs;
    this.#dayBegan ??= atMs;
    const before = this.#before++;
    const gapMs = atMs - this.#lastAt;
    this.#lastAt = atMs;
    const sent = Number(request.afterId !== null) + Number(request.beforeId !== null);
    return {
      request,
      idFilters: sent === 2 ? 2 : sent === 1 ? 1 : 0,
      hasDates: request.afterDate !== null || request.beforeDate !== null,
      atMs,
      now: this.#world.toDate(atMs),
      gapMs,
      before,
      deployed: before >= this.#deploy.afterQuestions || atMs - this.#dayBegan >= this.#deploy.afterMs,
      nights: this.#nights,
      page: this.#page,
      pageBytes: this.#pageBytes,
      draws: this.#answerDraws,
    };
  }

  #answer(ask: Ask): ListReply {
    const traits = this.#traits;
    const wanted = traits.viewAt?.(ask) ?? ask.atMs;
    const viewMs = wanted === beginning ? beginning : Math.max(this.#firstAt ?? ask.atMs, wanted);
    const order = typeof traits.order === 'function' ? traits.order(ask) : (traits.order ?? 'id');
    const [beforeCap, afterCap] = this.#toFilters(ask);
    let rows = this.#inOrder(viewMs, order, ask);
    if (traits.hides) rows = rows.filter((row) => !traits.hides?.(row, ask));
    if (traits.prefetch) rows = rows.slice(0, traits.prefetch(ask));
    if (traits.groups === 'before-filters') rows = onePerPerson(rows);
    const isWhole = order === 'random' || order === 'date-random-ties' || traits.groups === 'after-filters';
    if (isWhole) {
      rows = rows.filter(beforeCap);
      if (traits.groups === 'after-filters') rows = onePerPerson(rows);
      if (order === 'random') rows = ask.draws.shuffle(rows);
      else if (order === 'date-random-ties') rows = withRandomTies(rows, ask.draws);
    }
    let chosen = this.#cut(rows, isWhole ? null : beforeCap, viewMs, ask).filter(afterCap);
    const poison = traits.poison && chosen.map(traits.poison).find((failure) => failure !== null);
    if (poison) return { ...nothing, status: poison === '500' ? 500 : 200, body: 'broken' };
    const shown = typeof traits.shown === 'function' ? traits.shown(ask) : (traits.shown ?? 'as-chosen');
    if (shown !== 'as-chosen') chosen = shown === 'random' ? ask.draws.shuffle(chosen) : chosen.sort(toCompare(shown));
    let listed: readonly ListedRow[] = chosen.map(({ id, submittedAt, bytes }) => ({ id, submittedAt, bytes }));
    if (traits.shows) listed = listed.map(traits.shows);
    if (traits.trims) listed = traits.trims(listed, ask);
    const status = listed.length === 0 ? (traits.emptyStatus ?? 200) : 200;
    if (listed.length === 0 && traits.emptyBody) return { ...nothing, status, body: 'none' };
    const sum = listed.reduce((bytes, row) => bytes + row.bytes + 1, 0);
    return {
      status,
      rows: listed,
      bytes: status === 200 ? envelopeBytes + sum : 0,
      echo: status === 200 ? (traits.echo?.(ask) ?? 'matches') : 'absent',
      age: null,
    };
  }

  /** Fills the places of a page. Returns the rows that it shows, each as often as it is shown. */
  #cut(rows: readonly WorldRow[], matches: ((row: WorldRow) => boolean) | null, viewMs: number, ask: Ask): WorldRow[] {
    const traits = this.#traits;
    const cap = traits.cap?.(ask) ?? { ...unlimited, count: ask.page };
    const least = traits.refills ? Math.ceil(cap.count / 2) : 0;
    const taken: WorldRow[] = [];
    let places = 0;
    let bytes = 0;
    for (const row of rows) {
      if (places >= cap.count && taken.length >= least) break;
      if (matches && !matches(row)) continue;
      if (!this.#world.isLive(row, viewMs)) {
        places++;
        continue;
      }
      const size = traits.measure?.(row) ?? row.bytes;
      if (size * 4 >= cap.bytes) this.isHeavy = true;
      const overflows = bytes + size > cap.bytes;
      const isFirst = taken.length === 0;
      if (overflows && cap.overflow === 'before' && !(isFirst && cap.atLeastOne)) break;
      bytes += size;
      const copies = Math.max(1, Math.min(row.copies, cap.count - places));
      places += copies;
      for (let left = traits.repeatsCopies ? copies : 1; left > 0; left--) taken.push(row);
      if (overflows) break;
    }
    return taken;
  }

  #toFilters(ask: Ask): [(row: WorldRow) => boolean, (row: WorldRow) => boolean] {
    const traits = this.#traits;
    const request = traits.rewrite?.(ask.request, ask) ?? ask.request;
    const stage = (filter: FilterName) => traits.stage?.(filter, ask) ?? 'before-cap';
    const compare = traits.compareIds ?? ascending;
    const shift = traits.dateShift ?? (() => 0);
    const { afterId, beforeId, afterDate, beforeDate } = request;
    const includes = Object.fromEntries(
      filterNames.map((name) => [name, traits.inclusive?.(name, ask) ?? false]),
    ) as Record<FilterName, boolean>;
    const passes = (order: number, filter: FilterName) => order > 0 || (order === 0 && includes[filter]);
    const wins = ask.idFilters === 2 ? traits.combine : 'and';
    const tests: Partial<Record<FilterName, (row: WorldRow) => boolean>> = {};
    if (afterId !== null && wins !== 'before-wins')
      tests.afterId = (row) => passes(compare(row.id, afterId), 'afterId');
    if (beforeId !== null && wins !== 'after-wins')
      tests.beforeId = (row) => passes(-compare(row.id, beforeId), 'beforeId');
    const undated = traits.undatedMatches ?? false;
    if (afterDate !== null) {
      const bound = afterDate + shift(afterDate);
      tests.afterDate = (row) => (row.submittedAt === null ? undated : passes(row.submittedAt - bound, 'afterDate'));
    }
    if (beforeDate !== null) {
      const bound = beforeDate + shift(beforeDate);
      tests.beforeDate = (row) => (row.submittedAt === null ? undated : passes(bound - row.submittedAt, 'beforeDate'));
    }
    const at = (when: 'before-cap' | 'after-cap') => {
      const list = filterNames.filter((name) => stage(name) === when).flatMap((name) => tests[name] ?? []);
      const one = traits.combine === 'or' && list.length > 0;
      return (row: WorldRow) => (one ? list.some((test) => test(row)) : list.every((test) => test(row)));
    };
    return [at('before-cap'), at('after-cap')];
  }

  #inOrder(viewMs: number, order: Order, ask: Ask): readonly WorldRow[] {
    const places = this.#world.placesAt(viewMs);
    if (order === 'random') return places;
    if (viewMs !== ask.atMs) return [...places].sort(toCompare(order));
    if (this.#sortedVersion !== this.#world.version) this.#sorted.clear();
    this.#sortedVersion = this.#world.version;
    const known = this.#sorted.get(order);
    if (known) return known;
    const sorted = [...places].sort(toCompare(order));
    this.#sorted.set(order, sorted);
    return sorted;
  }
}

const nothing = { rows: [], bytes: 0, echo: 'absent', age: null } as const;

const filterNames: readonly FilterName[] = ['afterId', 'beforeId', 'afterDate', 'beforeDate'];

function drawRows(draws: Draws, page: number): number {
  const kind = draws.next();
  const anywhere = draws.logInt(4, 600);
  const few = draws.int(1, 3);
  const pages = draws.int(1, 6);
  if (kind < 0.04) return 0;
  if (kind < 0.09) return few;
  if (kind < 0.3) return Math.min(600, page * pages);
  return anywhere;
}

function ascending(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function toCompare(order: Order): (a: WorldRow, b: WorldRow) => number {
  const date = (row: WorldRow) => row.submittedAt ?? Number.MIN_SAFE_INTEGER;
  const by = (key: (row: WorldRow) => number) => (a: WorldRow, b: WorldRow) => key(a) - key(b) || ascending(a.id, b.id);
  switch (order) {
    case 'id':
    case 'random':
      return (a, b) => ascending(a.id, b.id);
    case 'id-descending':
      return (a, b) => ascending(b.id, a.id);
    case 'date':
    case 'date-random-ties':
      return by(date);
    case 'date-descending':
      return (a, b) => by(date)(b, a);
    case 'day-then-id-descending':
      return (a, b) => Math.floor(date(a) / 86_400) - Math.floor(date(b) / 86_400) || ascending(b.id, a.id);
    case 'score':
      return by((row) => -row.score);
    case 'hash':
      return by((row) => row.hash);
    case 'job':
      return by((row) => row.job);
    case 'person':
      return by((row) => row.person);
    case 'size':
      return by((row) => row.bytes);
    case 'commit':
      return by((row) => row.commit);
    case 'modified':
      return by((row) => -row.modifiedAt);
    case 'id-text':
      return (a, b) => compareText(a.id, b.id);
  }
}

/** Compares ids as text: '996' comes after '1042'. */
export function compareText(a: bigint, b: bigint): number {
  const left = String(a);
  const right = String(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Keeps the newest row of each person, at the position of the person's first row. */
function onePerPerson(rows: readonly WorldRow[]): WorldRow[] {
  const newest = new Map<number, WorldRow>();
  for (const row of rows) {
    const held = newest.get(row.person);
    if (held === undefined || held.id < row.id) newest.set(row.person, row);
  }
  return [...newest.values()];
}

function withRandomTies(rows: readonly WorldRow[], draws: Draws): WorldRow[] {
  return draws.shuffle(rows).sort((a, b) => (a.submittedAt ?? 0) - (b.submittedAt ?? 0));
}

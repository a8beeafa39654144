// The applications of one account, and the events that change them in virtual time. A simulated server answers from this list. Tests read
// the true contents from it.
import type { Draws } from './draws.ts';

/** A time span: `from` is inclusive, `to` is exclusive. */
interface Span {
  readonly from: number;
  to: number;
}

export interface WorldRow {
  readonly id: bigint;
  readonly submittedAt: number | null;
  readonly bytes: number;
  readonly person: number;
  readonly job: number;
  readonly score: number;
  readonly hash: number;
  /** The size of the row in the server's store, as a fraction of its bytes on the wire: above 0, at most 1. */
  readonly weight: number;
  /** The number of rows that a join returns for this row. */
  readonly copies: number;
  /** The position in commit order. */
  readonly commit: number;
  readonly spans: Span[];
  modifiedAt: number;
  /** The row still takes a place in a page after it was deleted. */
  keepsSlot: boolean;
}

export type IdStyle = 'any' | 'dense' | 'gaps' | 'sparse' | 'digits' | 'above-32-bit' | 'above-double';
export type DateStyle = 'monotone' | 'jitter' | 'shuffled' | 'ties' | 'missing' | 'imports' | 'drafts-late';
export type SizeStyle = 'even' | 'lognormal' | 'heavy' | 'eighths' | 'thirds' | 'halves' | 'wholes' | 'oversized';
type Happening = 'arrival' | 'late' | 'deletion' | 'change' | 'return';

export interface WorldTraits {
  readonly ids: IdStyle;
  readonly dates: DateStyle;
  readonly sizes: SizeStyle;
  /** Deleted rows that still take a place in a page. */
  readonly tombstones: 'none' | 'spaced' | 'scattered' | 'runs' | 'long-runs';
  /** The least share of the list that a night deletes at once; 0 for a few rows only. */
  readonly purge: number;
  readonly copiesUpTo: number;
  readonly leastWeight: number;
  /** The probability that an id is reserved and committed later, or never. */
  readonly drafts: number;
  /** The date of a late commit: the date of its draft, the date of its commit, or either. */
  readonly lateDates: 'old' | 'new' | 'either';
  /** An arrival may take the id of a deleted row. */
  readonly reusesIds: boolean;
  /** Mean milliseconds between two events during a sweep; null lets the seed choose. */
  readonly eventEveryMs: number | null;
  readonly mix: Readonly<Record<Happening, number>>;
}

export const ordinaryWorld: WorldTraits = {
  ids: 'any',
  dates: 'jitter',
  sizes: 'lognormal',
  tombstones: 'none',
  purge: 0,
  copiesUpTo: 1,
  leastWeight: 1,
  drafts: 0.05,
  lateDates: 'either',
  reusesIds: false,
  eventEveryMs: null,
  mix: { arrival: 0.6, late: 0.15, deletion: 0.15, change: 0.1, return: 0 },
};

export interface WorldSettings {
  readonly traits: WorldTraits;
  readonly rows: number;
  readonly page: number;
  /** The byte cap of a page. Large rows are sized as fractions of it. */
  readonly pageBytes: number;
  readonly startMs: number;
  /** The world changes only by `passNight` and `passMinutes`. */
  readonly still: boolean;
}

interface Draft {
  readonly id: bigint;
  readonly date: number;
}

/** The moment that a never refreshed copy of the list shows. */
export const beginning = Number.NEGATIVE_INFINITY;
/** A moment after `beginning` and before the first question, at which the newest initial rows arrived and a few rows were deleted. */
const recently = -1e15;
const longGapMs = 600_000;
/** The smallest size of a row: the fields of an application without attachments. */
const leastRowBytes = 330;

export class World {
  readonly #draws: Draws;
  readonly #settings: WorldSettings;
  readonly #rows: WorldRow[] = [];
  /** Rows in the list now, and deleted rows that still take a place. */
  readonly #current = new Set<WorldRow>();
  readonly #byId = new Map<bigint, WorldRow[]>();
  readonly #drafts: Draft[] = [];
  readonly #freeIds: bigint[] = [];
  readonly #idStyle: IdStyle;
  readonly #eventEveryMs: number | null;
  #lastId: bigint;
  #now = Number.NEGATIVE_INFINITY;
  #nextEvent = Number.POSITIVE_INFINITY;
  #commits = 0;
  #version = 0;
  #places: { readonly version: number; readonly rows: WorldRow[] } | null = null;

  constructor(settings: WorldSettings, draws: Draws) {
    this.#settings = settings;
    this.#draws = draws;
    const { traits } = settings;
    const anyIds = draws.pick(['dense', 'gaps', 'gaps', 'sparse', 'digits'] as const);
    this.#idStyle = traits.ids === 'any' ? anyIds : traits.ids;
    this.#lastId = firstId(this.#idStyle, settings.rows, draws);
    const moves = draws.chance(0.5);
    const ownEveryMs = draws.logInt(400, 60_000);
    this.#eventEveryMs =
      settings.still || !(moves || traits.eventEveryMs !== null) ? null : (traits.eventEveryMs ?? ownEveryMs);
    this.#fill();
  }

  /** Changes whenever the list changes. */
  get version(): number {
    return this.#version;
  }

  /** Runs all events up to this time. */
  advance(toMs: number): void {
    if (toMs <= this.#now) return;
    if (this.#eventEveryMs !== null) {
      // A long pause skips these events: passNight and passMinutes have their own.
      if (toMs - this.#now > longGapMs) this.#nextEvent = toMs + this.#draws.wait(this.#eventEveryMs);
      while (this.#nextEvent <= toMs) {
        this.#now = this.#nextEvent;
        this.#happen(this.#nextEvent);
        this.#nextEvent += 1 + this.#draws.wait(this.#eventEveryMs);
      }
    }
    this.#now = toMs;
  }

  passNight(atMs: number, page: number): void {
    this.#skipTo(atMs);
    const draws = this.#draws;
    const count = this.liveAt(atMs).length;
    this.#arriveMany(
      atMs,
      draws.chance(0.3) ? toNextMultiple(count, page, draws) : draws.int(0, Math.ceil(page * 1.5)),
    );
    for (let left = draws.int(0, 4); left > 0; left--) this.#commitLate(atMs);
    for (let left = draws.int(0, Math.ceil(count * 0.04)); left > 0; left--) this.#delete(atMs);
    const { purge } = this.#settings.traits;
    if (purge > 0) for (let left = Math.ceil(count * draws.between(purge, 0.6)); left > 0; left--) this.#delete(atMs);
    for (let left = draws.int(0, 3); left > 0; left--) this.#change(atMs);
    if (this.#settings.traits.mix.return > 0) for (let left = draws.int(0, 3); left > 0; left--) this.#bringBack(atMs);
  }

  passMinutes(atMs: number, page: number): void {
    this.#skipTo(atMs);
    const draws = this.#draws;
    const toMultiple = toNextMultiple(this.liveAt(atMs).length, page, draws);
    this.#arriveMany(atMs, draws.chance(0.15) ? toMultiple : Math.floor(draws.wait(1.2)));
    if (!draws.chance(0.1)) return;
    // The commit is late by seconds: its id was assigned before the id of an arrival that is already visible.
    const id = this.#lastId + 1n;
    this.#lastId += 2n;
    this.#add(this.#lastId, this.toDate(atMs), atMs);
    this.#drafts.push({ id, date: this.toDate(atMs) - draws.int(1, 30) });
    if (draws.chance(0.7)) this.#commitLate(atMs, this.#drafts.length - 1);
  }

  /** Rows in the list at this time. */
  liveAt(atMs: number): readonly WorldRow[] {
    const places = this.placesAt(atMs);
    const areAllLive = atMs === this.#now && this.#settings.traits.tombstones === 'none';
    return areAllLive ? places : places.filter((row) => isLive(row, atMs));
  }

  /** Rows in the list at this time, and deleted rows that still take a place; in no particular order. */
  placesAt(atMs: number): readonly WorldRow[] {
    if (atMs !== this.#now)
      return this.#rows.filter((row) => isLive(row, atMs) || (row.keepsSlot && isOver(row, atMs)));
    if (this.#places?.version !== this.#version) this.#places = { version: this.#version, rows: [...this.#current] };
    return this.#places.rows;
  }

  isLive(row: WorldRow, atMs: number): boolean {
    return isLive(row, atMs);
  }

  /** Rows that were in the list during the whole time span. */
  throughout(fromMs: number, toMs: number): WorldRow[] {
    return this.#rows.filter((row) => row.spans.some((span) => span.from <= fromMs && span.to > toMs));
  }

  /** Converts a virtual time to seconds since the epoch. Times near 0 count from `startMs`. */
  toDate(atMs: number): number {
    return Math.floor((atMs < 100_000_000_000 ? this.#settings.startMs + atMs : atMs) / 1000);
  }

  #skipTo(atMs: number): void {
    this.advance(atMs);
    if (this.#eventEveryMs !== null) this.#nextEvent = atMs + this.#draws.wait(this.#eventEveryMs);
  }

  #fill(): void {
    const { rows, traits, startMs } = this.#settings;
    const draws = this.#draws;
    const end = Math.floor(startMs / 1000) - draws.int(0, 7200);
    const length = draws.logInt(2, 500) * 86_400;
    const offsets = Array.from({ length: rows }, () => Math.floor(draws.next() * length)).sort((a, b) => a - b);
    let dates: (number | null)[] = offsets.map((offset) => end - length + offset);
    dates = toStyle(dates as number[], traits.dates, draws);
    const recent = draws.int(0, Math.ceil(rows * 0.05));
    const purges = traits.tombstones === 'none' ? 0.02 : 0;
    const longRuns = traits.tombstones === 'long-runs' ? draws.int(1, 3) : 0;
    const runs = Array.from({ length: longRuns }, () => ({ at: draws.int(0, rows), pages: draws.int(1, 30) }));
    const buryRuns = (place: number, date: number | null) => {
      for (const { pages } of runs.filter(({ at }) => at === place))
        for (let left = pages * this.#settings.page; left > 0; left--)
          this.#bury(this.#add(this.#takeId(), date, beginning));
    };
    for (const [at, date] of dates.entries()) {
      buryRuns(at, date);
      while (draws.chance(traits.drafts)) this.#drafts.push({ id: this.#takeId(), date: date ?? end });
      if (draws.chance(purges)) {
        const purged = this.#add(this.#takeId(), date, beginning);
        purged.spans.splice(0, 1, { from: beginning, to: recently });
        this.#current.delete(purged);
      }
      this.#add(this.#takeId(), date, at < rows - recent ? beginning : recently);
    }
    buryRuns(rows, end);
    this.#buryFirst();
  }

  /** Deletes rows before the first question, so that deleted rows take places from the first answer on. */
  #buryFirst(): void {
    const { tombstones } = this.#settings.traits;
    if (tombstones === 'none' || tombstones === 'long-runs') return;
    const draws = this.#draws;
    const share = draws.between(0.05, 0.3);
    if (tombstones === 'runs') {
      for (let at = draws.int(0, 20); at < this.#rows.length; at += draws.int(1, 60)) {
        const run = draws.int(1, Math.max(2, Math.ceil(this.#settings.page * 1.5)));
        for (let end = at + run; at < Math.min(end, this.#rows.length); at++) this.#bury(this.#rows[at]);
      }
      return;
    }
    let since = 3;
    for (const row of this.#rows) {
      const may = tombstones === 'scattered' || since >= 3;
      if (may && draws.chance(share)) {
        this.#bury(row);
        since = 0;
      } else since++;
    }
  }

  #bury(row: WorldRow | undefined): void {
    if (row === undefined) return;
    row.keepsSlot = true;
    row.spans.length = 0;
  }

  #happen(atMs: number): void {
    const { mix } = this.#settings.traits;
    const doings: readonly (readonly [number, () => void])[] = [
      [mix.arrival, () => this.#arriveMany(atMs, 1)],
      [mix.late, () => this.#commitLate(atMs)],
      [mix.deletion, () => this.#delete(atMs)],
      [mix.change, () => this.#change(atMs)],
      [mix.return, () => this.#bringBack(atMs)],
    ];
    let left = this.#draws.next() * doings.reduce((sum, [part]) => sum + part, 0);
    for (const [part, happens] of doings) {
      left -= part;
      if (left >= 0) continue;
      happens();
      return;
    }
  }

  #arriveMany(atMs: number, count: number): void {
    const { traits } = this.#settings;
    const draws = this.#draws;
    for (let left = count; left > 0; left--) {
      const reused = traits.reusesIds && draws.chance(0.7) ? this.#freeIds.shift() : undefined;
      while (reused === undefined && draws.chance(traits.drafts))
        this.#drafts.push({ id: this.#takeId(), date: this.toDate(atMs) });
      const isImport = traits.dates === 'imports' && draws.chance(0.4);
      const isMissing = traits.dates === 'missing' && draws.chance(0.2);
      const date = this.toDate(atMs) - (isImport ? draws.logInt(86_400, 86_400 * 400) : 0);
      this.#add(reused ?? this.#takeId(), isMissing ? null : date, atMs);
    }
  }

  #commitLate(atMs: number, which = this.#draws.int(0, Math.max(0, this.#drafts.length - 1))): void {
    const [draft] = this.#drafts.splice(which, 1);
    if (draft === undefined) {
      this.#arriveMany(atMs, 1);
      return;
    }
    const { lateDates } = this.#settings.traits;
    const isOld = lateDates === 'old' || (lateDates === 'either' && this.#draws.chance(0.5));
    this.#add(draft.id, isOld ? draft.date : this.toDate(atMs), atMs);
  }

  #delete(atMs: number): void {
    const live = this.liveAt(atMs);
    const row = live[this.#draws.int(0, live.length - 1)];
    const { tombstones } = this.#settings.traits;
    if (row === undefined || (tombstones === 'spaced' && !this.#isFarFromBuried(row, atMs))) return;
    const span = row.spans.at(-1);
    if (span === undefined || span.from >= atMs) return;
    span.to = atMs;
    if (tombstones === 'none') this.#current.delete(row);
    row.keepsSlot = tombstones !== 'none';
    if (this.#settings.traits.reusesIds) this.#freeIds.push(row.id);
    this.#version++;
  }

  #isFarFromBuried(row: WorldRow, atMs: number): boolean {
    const places = [...this.placesAt(atMs)].sort((a, b) => (a.id < b.id ? -1 : 1));
    const at = places.indexOf(row);
    return places.slice(Math.max(0, at - 3), at + 4).every((near) => isLive(near, atMs));
  }

  #change(atMs: number): void {
    const live = this.liveAt(atMs);
    const row = live[this.#draws.int(0, live.length - 1)];
    if (row === undefined) return;
    row.modifiedAt = this.toDate(atMs);
    this.#version++;
  }

  #bringBack(atMs: number): void {
    const gone = this.#rows.filter((row) => isOver(row, atMs) && row.spans.length > 0);
    const row = gone[this.#draws.int(0, gone.length - 1)];
    if (row === undefined || this.#byId.get(row.id)?.some((same) => isLive(same, atMs))) return;
    const free = this.#freeIds.indexOf(row.id);
    if (free >= 0) this.#freeIds.splice(free, 1);
    row.spans.push({ from: atMs, to: Number.POSITIVE_INFINITY });
    this.#current.add(row);
    this.#version++;
  }

  #add(id: bigint, submittedAt: number | null, fromMs: number): WorldRow {
    const draws = this.#draws;
    const { traits } = this.#settings;
    const row: WorldRow = {
      id,
      submittedAt,
      bytes: this.#drawBytes(),
      person: draws.int(0, Math.max(3, Math.floor(this.#settings.rows * 0.6))),
      job: draws.int(0, 12),
      score: draws.int(0, 100),
      hash: draws.next(),
      weight: draws.between(traits.leastWeight, 1),
      copies: this.#drawCopies(),
      commit: this.#commits++,
      spans: [{ from: fromMs, to: Number.POSITIVE_INFINITY }],
      modifiedAt: submittedAt ?? 0,
      keepsSlot: false,
    };
    this.#rows.push(row);
    this.#current.add(row);
    const same = this.#byId.get(id);
    if (same) same.push(row);
    else this.#byId.set(id, [row]);
    this.#version++;
    return row;
  }

  /** Draws the number of copies. Many copies come in runs of rows, as when one job requires more documents than another. */
  #drawCopies(): number {
    const most = this.#settings.traits.copiesUpTo;
    if (most <= 2) return this.#draws.int(1, most);
    const run = Math.floor(this.#commits / Math.max(10, this.#settings.page));
    return run % 2 === 0 ? 1 : this.#draws.int(most - 1, most);
  }

  #drawBytes(): number {
    const { traits, pageBytes } = this.#settings;
    const draws = this.#draws;
    const spread = Math.round(Math.exp(6.35 + draws.normal() * 0.35));
    const isGiant = draws.chance(0.12);
    const giants = [1 / 8, 1 / 3, 1 / 2, 0.97] as const;
    const part = {
      even: 0,
      lognormal: 0,
      heavy: draws.pick(giants),
      eighths: 1 / 8,
      thirds: 1 / 3,
      halves: 1 / 2,
      wholes: draws.between(0.95, 1),
      oversized: draws.chance(0.5) ? draws.between(1.01, 2) : 0.5,
    }[traits.sizes];
    const bytes = traits.sizes === 'even' ? 640 : isGiant && part > 0 ? Math.floor(pageBytes * part) : spread;
    const most = traits.sizes === 'oversized' ? pageBytes * 2 : pageBytes;
    return Math.max(leastRowBytes, Math.min(bytes, most));
  }

  #takeId(): bigint {
    const draws = this.#draws;
    const step = {
      any: 1,
      dense: 1,
      gaps: draws.int(1, 20),
      sparse: draws.logInt(1, 1_000_000),
      digits: draws.logInt(1, 12),
      'above-32-bit': draws.logInt(1, 30_000_000),
      'above-double': draws.int(1, 3),
    }[this.#idStyle];
    this.#lastId += BigInt(step);
    return this.#lastId;
  }
}

function isLive(row: WorldRow, atMs: number): boolean {
  return row.spans.some((span) => span.from <= atMs && atMs < span.to);
}

function isOver(row: WorldRow, atMs: number): boolean {
  return row.spans.every((span) => span.to <= atMs);
}

function firstId(style: IdStyle, rows: number, draws: Draws): bigint {
  const digits = 10 ** draws.int(1, 9);
  const below = draws.int(0, Math.max(1, rows * 3));
  const anywhere = draws.logInt(1, 2_000_000_000);
  if (style === 'digits') return BigInt(Math.max(0, digits - below));
  if (style === 'above-32-bit') return 2_147_483_647n - BigInt(below * draws.int(1, 20));
  if (style === 'above-double') return 9_007_199_254_740_992n + BigInt(anywhere);
  return BigInt(anywhere);
}

function toNextMultiple(count: number, page: number, draws: Draws): number {
  const missing = (page - (count % page)) % page;
  return missing + (draws.chance(0.3) ? page : 0);
}

function toStyle(dates: readonly number[], style: DateStyle, draws: Draws): (number | null)[] {
  switch (style) {
    case 'monotone':
      return [...dates];
    case 'jitter':
      return dates.map((date) => date - (draws.chance(0.1) ? draws.int(0, 20) : 0));
    case 'shuffled':
      return draws.shuffle(dates);
    case 'ties':
      return dates.map((date) => date - (date % (86_400 * 7)));
    case 'missing':
      return dates.map((date) => (draws.chance(0.2) ? null : date));
    case 'drafts-late':
      return dates.map((date, at) => (draws.chance(0.15) ? (dates[draws.int(at, dates.length - 1)] ?? date) : date));
    case 'imports': {
      const first = dates[0] ?? 0;
      let left = 0;
      return dates.map((date) => {
        if (left === 0 && draws.chance(0.03)) left = draws.int(3, 60);
        if (left > 0) left--;
        return left > 0 ? first - draws.logInt(1, 86_400 * 300) : date;
      });
    }
  }
}

// A source with hidden semantics, drawn from a seed. It answers questions as some server somewhere might, and alone knows the truth.
// It knows nothing of the reader's reasoning: only the shape of a question and of an answer.

import type { Answer, Question, Row } from '../../src/domain/question.ts';
import { createRandom, type Random } from './random.ts';

export type Order =
  | 'ascending'
  | 'descending'
  | 'by date'
  | 'by date, newest first'
  | 'shuffled'
  | 'another on every request';

/** Everything about a server that its reader cannot see. */
export interface Traits {
  order: Order;
  /** Rows are put into this order after the cap has chosen them; null shows them as they were chosen. */
  shown: 'ascending' | 'descending' | null;
  /** Rows on a page; null is no limit. */
  cap: number | null;
  /** Rows on a page when both id filters are sent, where it differs. */
  capOfTwoFilters: number | null;
  capBytes: number | null;
  /** From this request on the cap is `cap * shrinksTo`. */
  shrinksAt: number | null;
  shrinksTo: number;
  inclusiveAfter: boolean;
  inclusiveBefore: boolean;
  combine: 'and' | 'or' | 'after wins' | 'before wins' | 'refuses both';
  ignores: 'nothing' | 'after' | 'before' | 'all';
  /** Filters applied in memory, after the cap. */
  afterTheCap: 'none' | 'after' | 'before' | 'both';
  /** Whether the date filters too act after the cap. */
  datesAfterTheCap: boolean;
  /** Share of rows dropped after the cap (withdrawn applications). */
  dropped: number;
  /** Without a lower bound only this many of the newest rows exist. */
  windowWithoutLowerBound: number | null;
  /** A lower bound below this row is silently raised to it; the echo tells. */
  clampsAfterTo: number | null;
  echo: 'matches' | 'absent' | 'differs';
  emptyIsWeak: boolean;
  /** Most rows one application takes up on a page before its copies are merged, or not. */
  fanOut: number;
  mergesCopies: boolean;
  /** How far the server's reading of a date without offset lies from ours. */
  dateShiftSeconds: number;
  /** Answers any range with ids nobody has ever had. */
  inventsIds: boolean;
}

interface SimulatedRow {
  offset: number;
  id: bigint;
  atSeconds: number;
  bytes: number;
  withdrawn: boolean;
  copies: number;
  shuffle: number;
  visibleFrom: number;
  visibleUntil: number;
}

export interface SimulatedSource {
  readonly kind: string;
  readonly traits: Traits;
  /** Answers as the hidden server would; `unheld` and `missing` are left empty for whoever keeps the store. */
  answer(question: Question): Answer;
  /** Ids that could be seen at every moment between two request numbers. */
  visibleThroughout(fromTick: number, toTick: number): bigint[];
  visibleNow(): bigint[];
  tick(): number;
  /** True when some question by ids, asked now, would show an id that is not among these. */
  couldShowMoreThan(held: ReadonlySet<bigint>): boolean;
  /** New applications arrive, newest ids. */
  grow(count: number): void;
  /** Applications commit late, with ids among those that have long been there. */
  commitLate(count: number): void;
  /** From now on pages are cut at this share of what they were cut at. */
  shrink(share: number): void;
}

const honest: Traits = {
  order: 'ascending',
  shown: null,
  cap: null,
  capOfTwoFilters: null,
  capBytes: null,
  shrinksAt: null,
  shrinksTo: 1,
  inclusiveAfter: false,
  inclusiveBefore: false,
  combine: 'and',
  ignores: 'nothing',
  afterTheCap: 'none',
  datesAfterTheCap: false,
  dropped: 0,
  windowWithoutLowerBound: null,
  clampsAfterTo: null,
  echo: 'matches',
  emptyIsWeak: false,
  fanOut: 1,
  mergesCopies: false,
  dateShiftSeconds: 0,
  inventsIds: false,
};

const orders: readonly Order[] = [
  'ascending',
  'descending',
  'by date',
  'by date, newest first',
  'shuffled',
  'another on every request',
];
const caps = [null, 1, 2, 7, 20, 50] as const;

/** What a kind of server is drawn from, and what a reader owes on it. */
interface Kind {
  draw(random: Random): Partial<Traits>;
  /** complete: nothing may be lost. honest: nothing but the certificate counts. */
  readonly owes: 'complete' | 'honest';
}

const anyHonest = (random: Random): Partial<Traits> => ({
  order: random.pick(orders),
  cap: random.pick(caps),
  inclusiveAfter: random.chance(0.3),
  inclusiveBefore: random.chance(0.3),
});

/** Every kind of server, by the name under which its cost is published. */
export const kinds: Readonly<Record<string, Kind>> = {
  'ascending, capped': {
    owes: 'complete',
    draw: (r) => ({ ...anyHonest(r), order: 'ascending', cap: r.pick([20, 50]) }),
  },
  'descending, capped': {
    owes: 'complete',
    draw: (r) => ({ ...anyHonest(r), order: 'descending', cap: r.pick([20, 50]) }),
  },
  'by date, capped': {
    owes: 'complete',
    draw: (r) => ({
      ...anyHonest(r),
      order: r.pick(['by date', 'by date, newest first'] as const),
      cap: r.pick([20, 50]),
    }),
  },
  'shuffled, capped': {
    owes: 'complete',
    draw: (r) => ({ ...anyHonest(r), order: 'shuffled', cap: r.pick([20, 50]) }),
  },
  'another order on every request, capped': {
    owes: 'complete',
    draw: (r) => ({ ...anyHonest(r), order: 'another on every request', cap: r.pick([20, 50]) }),
  },
  'pages of 1, 2 or 7': { owes: 'complete', draw: (r) => ({ ...anyHonest(r), cap: r.pick([1, 2, 7]) }) },
  'no cap': { owes: 'complete', draw: (r) => ({ ...anyHonest(r), cap: null }) },
  'capped by bytes': {
    owes: 'complete',
    draw: (r) => ({ ...anyHonest(r), cap: null, capBytes: r.pick([60_000, 120_000, 300_000]) }),
  },
  'capped by bytes and by count': {
    owes: 'complete',
    draw: (r) => ({ ...anyHonest(r), cap: 50, capBytes: r.pick([120_000, 300_000]) }),
  },
  'rows dropped after the cap': {
    owes: 'complete',
    draw: (r) => ({ ...anyHonest(r), cap: 50, dropped: r.pick([0.05, 0.2, 0.3]) }),
  },
  'many rows dropped after the cap': {
    owes: 'honest',
    draw: (r) => ({ ...anyHonest(r), cap: r.pick([20, 50]), dropped: r.pick([0.3, 0.4]) }),
  },
  'most rows dropped after a small cap': {
    owes: 'honest',
    draw: (r) => ({ ...anyHonest(r), cap: 7, dropped: r.pick([0.3, 0.5, 0.7]) }),
  },
  'copies of a row fill the page': {
    owes: 'complete',
    draw: (r) => ({ ...anyHonest(r), cap: 50, fanOut: 3, mergesCopies: r.chance(0.5) }),
  },
  'smaller pages when both filters are sent': {
    owes: 'complete',
    draw: (r) => ({ ...anyHonest(r), cap: 50, capOfTwoFilters: r.pick([8, 15, 24]) }),
  },
  'chosen in one order, shown in that of ids': {
    owes: 'honest',
    draw: (r) => ({
      ...anyHonest(r),
      cap: r.pick([20, 50]),
      shown: r.pick(['ascending', 'descending'] as const),
      capBytes: r.pick([null, null, 120_000]),
      dropped: r.pick([0, 0, 0.2]),
    }),
  },
  'pages shrink within the sweep': {
    owes: 'honest',
    draw: (r) => ({ ...anyHonest(r), cap: 50, shrinksAt: r.between(1, 40), shrinksTo: r.pick([0.2, 0.4, 0.7]) }),
  },
  'beforeid applied after the cap': {
    owes: 'honest',
    draw: (r) => ({ ...anyHonest(r), afterTheCap: 'before', datesAfterTheCap: r.chance(0.5) }),
  },
  'afterid applied after the cap': {
    owes: 'honest',
    draw: (r) => ({ ...anyHonest(r), afterTheCap: 'after', datesAfterTheCap: r.chance(0.5) }),
  },
  'both filters applied after the cap': {
    owes: 'honest',
    draw: (r) => ({ ...anyHonest(r), afterTheCap: 'both', datesAfterTheCap: r.chance(0.5) }),
  },
  'filters combined by OR': { owes: 'honest', draw: (r) => ({ ...anyHonest(r), combine: 'or' }) },
  'afterid wins': { owes: 'honest', draw: (r) => ({ ...anyHonest(r), combine: 'after wins' }) },
  'beforeid wins': { owes: 'honest', draw: (r) => ({ ...anyHonest(r), combine: 'before wins' }) },
  'both filters refused': { owes: 'honest', draw: (r) => ({ ...anyHonest(r), combine: 'refuses both' }) },
  'one filter only, in its order': {
    owes: 'complete',
    draw: (r) => {
      const forward = r.chance(0.5);
      return {
        ...anyHonest(r),
        order: forward ? 'ascending' : 'descending',
        cap: r.pick([7, 20, 50]),
        combine: r.pick([forward ? 'after wins' : 'before wins', 'or', 'refuses both'] as const),
      };
    },
  },
  'a filter ignored': {
    owes: 'honest',
    draw: (r) => ({ ...anyHonest(r), ignores: r.pick(['after', 'before', 'all'] as const) }),
  },
  'a window when no lower bound is sent': {
    owes: 'complete',
    draw: (r) => ({ ...anyHonest(r), windowWithoutLowerBound: r.between(1, 40) }),
  },
  'a lower bound silently raised': {
    owes: 'honest',
    draw: (r) => ({ ...anyHonest(r), clampsAfterTo: r.between(1, 60) }),
  },
  'echo absent': { owes: 'complete', draw: (r) => ({ ...anyHonest(r), echo: 'absent' }) },
  'echo wrong': { owes: 'complete', draw: (r) => ({ ...anyHonest(r), echo: 'differs' }) },
  'empty as 204 or 404': { owes: 'complete', draw: (r) => ({ ...anyHonest(r), emptyIsWeak: true }) },
  'always something new': { owes: 'honest', draw: (r) => ({ ...anyHonest(r), inventsIds: true }) },
};

export const kindNames: readonly string[] = Object.keys(kinds);

export interface World {
  readonly kind: string;
  readonly count?: number;
  readonly traits?: Partial<Traits>;
  /** Nothing arrives, leaves or commits late. */
  readonly still?: boolean;
}

/** Creates the hidden server of a seed; the same seed and world give the same server. */
export function createSimulatedSource(seed: number, world: World): SimulatedSource {
  const random = createRandom(seed);
  const kind = kinds[world.kind];
  if (kind === undefined) throw new Error(`no kind of server is called ${world.kind}`);
  const traits: Traits = { ...honest, ...kind.draw(random), ...world.traits };
  const count = world.count ?? drawCount(random, traits);
  const base = random.chance(0.1) ? 9_007_199_254_740_000n : BigInt(random.between(0, 1000));
  const meanGap = random.pick([1, 2, 10, 1000]);
  const meanSilence = random.pick([600, 20_000]);
  // Where ids and dates agree throughout, a list by date cannot be told from one by id until someone is late.
  const agree = traits.shown !== null && random.chance(0.5);
  const [strays, jitter] = agree ? [0, 0] : [0.05, 30];
  const bytesOf = traits.capBytes === null ? () => random.between(700, 1300) : () => random.between(200, 18_000);
  let requests = 0;
  let offset = 0;
  let atSeconds = 1_700_000_000;
  const rows: SimulatedRow[] = [];
  const toRow = (at: number, submittedAt: number, visibleFrom: number): SimulatedRow => ({
    offset: at,
    id: base + BigInt(at),
    atSeconds: submittedAt,
    bytes: bytesOf(),
    withdrawn: random.chance(traits.dropped),
    copies: traits.fanOut === 1 ? 1 : random.between(1, traits.fanOut),
    shuffle: random.next(),
    visibleFrom,
    visibleUntil: Number.POSITIVE_INFINITY,
  });
  const add = (visibleFrom: number) => {
    // Ids come in bursts: now and then a run without gaps, now and then a long silence.
    offset += meanGap === 1 || random.chance(0.2) ? 1 : 1 + Math.floor(-Math.log(1 - random.next()) * meanGap);
    atSeconds += random.between(0, meanSilence);
    const submittedAt = random.chance(strays)
      ? atSeconds - random.between(0, 200_000)
      : atSeconds + random.between(0, jitter);
    rows.push(toRow(offset, submittedAt, visibleFrom));
  };
  for (let i = 0; i < count; i++) add(0);
  if (world.still !== true) stir(rows, random, add);

  const visible = (row: SimulatedRow) => !row.withdrawn && row.visibleFrom <= requests && requests < row.visibleUntil;
  return {
    kind: world.kind,
    traits,
    tick: () => requests,
    couldShowMoreThan(held) {
      const bounds = [null, 0n, ...rows.map((row) => row.id)];
      for (const after of bounds) {
        for (const before of bounds) {
          if (before === 0n) continue;
          const question: Question = {
            axis: 'id',
            purpose: 'witness',
            from: 1n,
            to: null,
            after,
            before,
            expects: null,
          };
          const answer = toAnswer(question, rows, traits, base, requests, random);
          if (answer.kind === 'page' && answer.rows.some((row) => !held.has(row.id))) return true;
        }
      }
      return false;
    },
    grow(more) {
      for (let i = 0; i < more; i++) add(requests);
    },
    commitLate(count) {
      for (let i = 0; i < count && rows.length > 1; i++) {
        const at = random.between(0, rows.length - 2);
        const [below, above] = [rows[at] as SimulatedRow, rows[at + 1] as SimulatedRow];
        if (above.offset - below.offset < 2) continue;
        // An application that was begun long ago carries the date of its beginning, or that of its end.
        const submittedAt = random.chance(0.5) ? below.atSeconds : atSeconds + random.between(0, 600);
        rows.splice(at + 1, 0, toRow(random.between(below.offset + 1, above.offset - 1), submittedAt, requests));
      }
    },
    shrink(share) {
      if (traits.cap !== null) traits.cap = Math.max(1, Math.floor(traits.cap * share));
    },
    visibleNow: () => rows.filter(visible).map((row) => row.id),
    visibleThroughout: (fromTick, toTick) =>
      rows
        .filter((row) => !row.withdrawn && row.visibleFrom <= fromTick && row.visibleUntil > toTick)
        .map((row) => row.id),
    answer(question) {
      const answer = toAnswer(question, rows, traits, base, requests, random);
      requests++;
      return answer;
    },
  };
}

function drawCount(random: Random, traits: Traits): number {
  if (random.chance(0.15)) return random.between(0, 12);
  return random.between(0, traits.cap !== null && traits.cap <= 7 ? 80 : 320);
}

/** Growth, deletion and late commits, at request numbers drawn now. */
function stir(rows: SimulatedRow[], random: Random, add: (visibleFrom: number) => void): void {
  if (random.chance(0.3)) for (let i = random.between(1, 12); i > 0; i--) add(random.between(1, 60));
  const some = (most: number) => random.between(1, Math.min(most, rows.length));
  if (rows.length > 0 && random.chance(0.2)) {
    for (let i = some(4); i > 0; i--) random.pick(rows).visibleUntil = random.between(1, 60);
  }
  if (rows.length > 0 && random.chance(0.2)) {
    for (let i = some(4); i > 0; i--) random.pick(rows.slice(-30)).visibleFrom = random.between(1, 60);
  }
}

function toAnswer(
  question: Question,
  rows: readonly SimulatedRow[],
  traits: Traits,
  base: bigint,
  tick: number,
  random: Random,
): Answer {
  const dates = question.axis === 'date';
  const toBound = (bound: bigint | null) =>
    bound === null ? null : dates ? Number(bound) + traits.dateShiftSeconds : Number(bound - base);
  let after = toBound(question.after);
  let before = toBound(question.before);
  const sentBoth = after !== null && before !== null;
  if (sentBoth && traits.combine === 'refuses both') return { kind: 'refused' };
  let echo = traits.echo;
  if (traits.inventsIds && !dates) return toInvented(question, random);
  if (!dates) {
    if (traits.ignores === 'after' || traits.ignores === 'all') after = null;
    if (traits.ignores === 'before' || traits.ignores === 'all') before = null;
    if (sentBoth && traits.combine === 'after wins') before = null;
    if (sentBoth && traits.combine === 'before wins') after = null;
    const floor = traits.clampsAfterTo === null ? undefined : rows[traits.clampsAfterTo]?.offset;
    if (floor !== undefined && after !== null && after < floor) {
      after = floor;
      echo = 'differs';
    }
  }
  const at = (row: SimulatedRow) => (dates ? row.atSeconds : row.offset);
  const isAfter = (row: SimulatedRow) => after === null || (traits.inclusiveAfter ? at(row) >= after : at(row) > after);
  const isBefore = (row: SimulatedRow) =>
    before === null || (traits.inclusiveBefore ? at(row) <= before : at(row) < before);
  const byOr = traits.combine === 'or' && after !== null && before !== null;
  const late = dates ? (traits.datesAfterTheCap ? 'both' : 'none') : traits.afterTheCap;
  const afterIsLate = late === 'after' || late === 'both';
  const beforeIsLate = late === 'before' || late === 'both';

  let matching = rows.filter((row) => {
    if (row.visibleFrom > tick || tick >= row.visibleUntil) return false;
    if (byOr) return isAfter(row) || isBefore(row);
    return (afterIsLate || isAfter(row)) && (beforeIsLate || isBefore(row));
  });
  if (question.after === null && traits.windowWithoutLowerBound !== null) {
    matching = matching.slice(-traits.windowWithoutLowerBound);
  }
  toOrder(matching, traits.order, random);
  const page: SimulatedRow[] = [];
  let bytes = 0;
  let taken = 0;
  let cap = sentBoth && traits.capOfTwoFilters !== null ? traits.capOfTwoFilters : traits.cap;
  if (cap !== null && traits.shrinksAt !== null && tick >= traits.shrinksAt) {
    cap = Math.max(1, Math.floor(cap * traits.shrinksTo));
  }
  for (const row of matching) {
    if (cap !== null && taken >= cap) break;
    if (traits.capBytes !== null && bytes + row.bytes > traits.capBytes) break;
    taken += row.copies;
    bytes += row.bytes;
    page.push(row);
  }
  const shown = page.filter((row) => !row.withdrawn && (byOr || (isAfter(row) && isBefore(row))));
  if (traits.shown !== null) {
    shown.sort((a, b) => (traits.shown === 'ascending' ? a.offset - b.offset : b.offset - a.offset));
  }
  return {
    kind: 'page',
    rows: shown.flatMap((row): Row[] => {
      const one: Row = { id: row.id, at: BigInt(row.atSeconds) };
      return traits.mergesCopies ? [one] : new Array<Row>(row.copies).fill(one);
    }),
    bytes: 150 + shown.reduce((sum, row) => sum + row.bytes, 0),
    echo,
    weakEmpty: traits.emptyIsWeak && shown.length === 0,
    unheld: [],
    missing: [],
  };
}

function toOrder(rows: SimulatedRow[], order: Order, random: Random): void {
  if (order === 'descending') rows.reverse();
  else if (order === 'by date') rows.sort((a, b) => a.atSeconds - b.atSeconds);
  else if (order === 'by date, newest first') rows.sort((a, b) => b.atSeconds - a.atSeconds);
  else if (order === 'shuffled') rows.sort((a, b) => a.shuffle - b.shuffle);
  else if (order === 'another on every request') {
    for (let i = rows.length - 1; i > 0; i--) {
      const j = random.between(0, i);
      [rows[i], rows[j]] = [rows[j] as SimulatedRow, rows[i] as SimulatedRow];
    }
  }
}

function toInvented(question: Question, random: Random): Answer {
  const low = (question.after ?? 0n) + 1n;
  const high = question.before === null ? low + 1_000_000_000n : question.before - 1n;
  const rows: Row[] = [];
  for (let i = 0; i < 20 && high >= low; i++) {
    rows.push({ id: low + BigInt(Math.floor(random.next() * Number(high - low + 1n))), at: null });
  }
  return { kind: 'page', rows, bytes: 20_000, echo: 'matches', weakEmpty: false, unheld: [], missing: [] };
}

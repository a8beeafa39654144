// The rules at the top of src/domain/coverage/coverage.ts, each by its number, on servers whose behaviour is written out here.
import { describe, expect, test } from 'vitest';
import { isCutByBytes, isShortByBytes, withCut } from '../../src/domain/coverage/capacity.ts';
import { conclude } from '../../src/domain/coverage/certificate.ts';
import { ask, begin, type Done, learn, type Plan, renew } from '../../src/domain/coverage/coverage.ts';
import { aloneQuestion, rangeQuestion, type SplitPoints } from '../../src/domain/coverage/next-question.ts';
import { capacityOf, vouchOf } from '../../src/domain/coverage/page-cuts.ts';
import type { Answer, ListedRow, PageAnswer, Question } from '../../src/domain/coverage/question.ts';
import { isInside, largestId, openRange } from '../../src/domain/coverage/range.ts';
import { decodeFacts, encode, findChanges, isSorted, type State } from '../../src/domain/coverage/sweep-state.ts';
import { toExpectedIds } from '../../src/domain/coverage/unshown.ts';
import { planWitnesses } from '../../src/domain/coverage/witness.ts';
import { findUnshown, type Held } from '../simulation/find-unshown.ts';
import { restore } from '../simulation/simulated-reader.ts';

const second = 1_790_000_000n;
const aRow = (id: bigint, more: Partial<ListedRow> = {}): ListedRow => ({
  id,
  at: second + id * 60n,
  bytes: 1_000,
  ...more,
});

/** Rows with ids 10, 20, 30 and so on. */
const rowsUpTo = (count: number) => Array.from({ length: count }, (_, nth) => aRow(BigInt(nth + 1) * 10n));

const idsOf = (rows: readonly ListedRow[]) => rows.map(({ id }) => id);

function aPage(rows: readonly ListedRow[], more: Partial<PageAnswer> = {}): PageAnswer {
  const bytes = 400 + rows.reduce((sum, row) => sum + row.bytes, 0);
  const shared = { echo: 'matches', weakEmpty: false, cached: false, unheld: [], unshown: [], unreadable: 0 } as const;
  return { kind: 'page', rows, bytes, ...shared, ...more };
}

/** What a server makes of a question: its answer, or the rows of one. `matching` rises by id, bounds excluded. */
type Rule = (matching: readonly ListedRow[], question: Question, nth: number) => Answer | readonly ListedRow[];

const toMatching = (rows: readonly ListedRow[], { axis, after, before, since }: Question) =>
  rows.filter(({ id, at }) => {
    const position = axis === 'id' ? id : (at ?? 0n);
    const isSince = since === null || (at ?? 0n) > since;
    return isSince && (after === null || position > after) && (before === null || position < before);
  });

interface Step {
  readonly question: Question;
  readonly answer: Answer;
  readonly before: State;
  readonly after: State;
}

interface Swept {
  readonly done: Done;
  readonly steps: readonly Step[];
  /** Ids that were shown in this sweep or before. */
  readonly held: ReadonlyMap<bigint, Held>;
}

interface Sweeping {
  readonly plan?: Plan;
  readonly known?: SplitPoints;
  /** Ids stored before the sweep. */
  readonly held?: readonly bigint[];
  readonly onStep?: (step: Step) => void;
}

/** Sweeps by the rule. What was shown a moment ago is expected back, as the store tells it. */
function sweep(rows: readonly ListedRow[], rule: Rule, { plan, known, held = [], onStep }: Sweeping = {}): Swept {
  const memory = new Map<bigint, Held>(held.map((id) => [id, { id, firstSeenAt: -1, missingSince: null }]));
  const heldBefore = memory.size;
  const steps: Step[] = [];
  let state = begin({ heldBefore, ...plan });
  for (let now = 1; now < 20_000; now++) {
    const next = ask(state, [], known);
    if (next === null) throw new Error('The reasoning waits for nothing.');
    if ('kind' in next) return { done: next, steps, held: memory };
    const ruled = rule(toMatching(rows, next), next, steps.length);
    const answer = complete('kind' in ruled ? ruled : aPage(ruled), next, memory, now, heldBefore);
    const step = { question: next, answer, before: state, after: learn(state, next, answer) };
    steps.push(step);
    onStep?.(step);
    state = step.after;
  }
  throw new Error('The sweep does not end.');
}

function complete(
  answer: Answer,
  question: Question,
  held: Map<bigint, Held>,
  now: number,
  heldBefore: number,
): Answer {
  if (answer.kind !== 'page') return answer;
  const asked = toExpectedIds(question, heldBefore);
  const times = { sentAt: now, sweepStartedAt: 0 };
  const unshown = asked === null ? [] : findUnshown(asked, answer.rows, held.values(), times);
  const unheld = [...new Set(idsOf(answer.rows))].filter((id) => !held.has(id));
  for (const id of unheld) held.set(id, { id, firstSeenAt: now, missingSince: null });
  return { ...answer, unheld, unshown };
}

/** A state with so many requests left of those that its applications justify; none of them is recent. */
function withLeft(state: State, left: number): State {
  return { ...state, facts: { ...state.facts, requests: 96 + 6 * state.facts.found - left } };
}

const capped =
  (cap: number): Rule =>
  (matching) =>
    matching.slice(0, cap);
const falling =
  (cap: number): Rule =>
  (matching) =>
    matching.toReversed().slice(0, cap);
/** A fixed order that says nothing of ids. */
const hashOf = ({ id }: ListedRow) => Number((id * 7_919n) % 1_009n);
const hashed =
  (cap: number): Rule =>
  (matching) =>
    matching.toSorted((a, b) => hashOf(a) - hashOf(b)).slice(0, cap);

/** A page ends before the first row that no longer fits into its bytes. */
const cutByBytes =
  (limit: number): Rule =>
  (matching) => {
    let left = limit;
    const end = matching.findIndex(({ bytes }) => {
      left -= bytes;
      return left < 0;
    });
    return end < 0 ? matching : matching.slice(0, end);
  };

const inOrder = (rows: readonly ListedRow[]) => rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
const isNoticed = ({ done }: Swept) => done.certificate === 'unproven' || done.risk === 'doubt';
const lostOf = (rows: readonly ListedRow[], { held }: Swept) => idsOf(rows).filter((id) => !held.has(id));
const closedOf = ({ ranges }: State) => ranges.filter(({ state }) => state === 'closed');
const knownOf = (ids: readonly bigint[]): SplitPoints => ({ positions: [...ids], stride: 1, uneven: false });

/** Asks the next question and answers it with these rows. */
function answerNext(state: State, rows: readonly ListedRow[], more: Partial<PageAnswer> = {}): State {
  return learn(state, ask(state) as Question, aPage(rows, more));
}

/** A sweep of a long list, by pages of 100, that has seen a whole page with both bounds. */
function opened(cap = 100): State {
  const rows = rowsUpTo(10 * cap);
  let state = begin({});
  while (state.facts.both.rows < cap) {
    const question = ask(state) as Question;
    state = learn(state, question, aPage(toMatching(rows, question).slice(0, cap)));
  }
  return state;
}

/** The same sweep when three ranges are closed on 32 to 34 rows, and the next one expects 49. */
function wellOpened(): State {
  let state = opened();
  for (let asked = 0; asked < 4; asked++) {
    state = answerNext(state, toMatching(rowsUpTo(1_000), ask(state) as Question).slice(0, 100));
  }
  return state;
}

/** Answers the next question with so many rows from the beginning of its range. */
function answerWith(state: State, count: number, more: Partial<PageAnswer> = {}, apart = 5): State {
  const { from } = ask(state) as Question;
  const rows = Array.from({ length: count }, (_, nth) => aRow((from as bigint) + BigInt(nth * apart)));
  return answerNext(state, rows, more);
}

/** Known ids that the answer to the next question lacks: the last ones of its range, or those from the first on. */
function lacking(state: State, count: number, side: 'first' | 'last' = 'last'): Partial<PageAnswer> {
  const { from, to } = ask(state) as Question;
  const idAt = (nth: bigint) => (side === 'first' ? (from as bigint) + nth : (to as bigint) - nth);
  return { unshown: Array.from({ length: count }, (_, nth) => ({ id: idAt(BigInt(nth)), old: true })) };
}

const isClosedAt = (state: State, from: bigint) => closedOf(state).some((range) => range.from === from);

describe('R1: a range is closed by an empty answer or by one well below the smallest page that may have been cut', () => {
  const closedBy = (count: number, bytes?: number) => {
    const state = opened();
    const { from } = ask(state) as Question;
    const rows = Array.from({ length: count }, (_, nth) => aRow((from as bigint) + BigInt(nth)));
    const after = answerNext(state, rows, bytes === undefined ? {} : { bytes });
    return closedOf(after).length - closedOf(state).length;
  };

  test('less than half of the rows closes, exactly half does not', () => {
    expect(closedBy(49, 30_000)).toBe(1);
    expect(closedBy(50, 30_000)).toBe(0);
  });

  test('few rows with many bytes do not close: the page may have been cut off by its bytes', () => {
    expect(closedBy(3, 20_000)).toBe(1);
    expect(closedBy(3, 70_000)).toBe(0);
  });

  test('where pages end at different lengths, the margin in bytes covers the largest row seen', () => {
    const capacity = { rows: 100, bytes: 100_000, cutRows: null };
    const isShort = (bytes: number, largestRow: number) => isShortByBytes(capacity, bytes, largestRow, 'sorted');
    expect([isShort(45_000, 4_000), isShort(45_000, 6_000), isShort(24_000, 90_000)]).toEqual([true, false, true]);
  });

  test('the smallest page that was cut off counts, of either shape', () => {
    const capacity = { rows: 100, bytes: 100_000, cutRows: null };
    const limits = [60, 80, 40].map((rows) => withCut(withCut(capacity, 60), rows).cutRows);
    expect(limits).toEqual([60, 60, 40]);
    const limit = (after: number, both: number) =>
      capacityOf({ after: { ...capacity, cutRows: after }, both: { ...capacity, cutRows: both } }, 'both').cutRows;
    expect([limit(80, 60), limit(60, 80)]).toEqual([60, 60]);
  });

  test('on pages of fewer than sixteen rows only an empty answer closes', () => {
    const rows = rowsUpTo(36);
    const closings: number[] = [];
    const swept = sweep(rows, capped(7), {
      onStep: ({ question, answer, before, after }) => {
        const isClosing = closedOf(after).length > closedOf(before).length;
        const isOne = question.from !== null && question.from === question.to;
        if (isClosing && !isOne && question.purpose === 'range' && answer.kind === 'page')
          closings.push(answer.rows.length);
      },
    });
    expect(lostOf(rows, swept)).toEqual([]);
    expect(new Set(closings)).toEqual(new Set([0]));
  });

  test('pages with both bounds may be half as long as those with one', () => {
    const rows = rowsUpTo(300);
    const swept = sweep(rows, (matching, { before }) => matching.slice(0, before === null ? 50 : 25));
    expect(lostOf(rows, swept)).toEqual([]);
    // A poll is told the smaller of both.
    expect(swept.done).toMatchObject({ certificate: 'proven', capacity: { count: 25, bytes: 25_400 } });
  });

  test('replay: pages of 30 that become exactly 15 lose nobody', () => {
    const rows = rowsUpTo(65);
    const swept = sweep(rows, (matching, _, nth) => matching.slice(0, nth === 0 ? 30 : 15));
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.done.certificate).not.toBe('proven');
  });

  test('replay: after=0 shows 30, the range below 3224 shows 15, and 15 of 20 after it close nothing', () => {
    const all = Array.from({ length: 50 }, (_, nth) => aRow(BigInt(3_195 + nth)));
    let state = answerNext(begin({}), all.slice(0, 30));
    for (let asked = 0; asked < 6; asked++) {
      const question = ask(state) as Question;
      const matching = toMatching(all, question);
      state = learn(state, question, aPage(matching.slice(0, 15)));
      const isCut = matching.length > 15;
      const closed = closedOf(state).some((range) => matching.slice(15).some(({ id }) => isInside(range, id)));
      if (isCut) expect(closed).toBe(false);
    }
  });

  test('replay: a row of nearly a whole page, in pages cut off by bytes, is not left out', () => {
    for (const [nth, choose] of [
      (rows: readonly ListedRow[]) => rows,
      (rows: readonly ListedRow[]) => rows.toReversed(),
      (rows: readonly ListedRow[]) => rows.toSorted((a, b) => hashOf(a) - hashOf(b)),
    ].entries()) {
      const rows = rowsUpTo(200).map((row) => (row.id % 430n === 0n ? { ...row, bytes: 38_000 } : row));
      const swept = sweep(rows, (matching) => {
        const shown: ListedRow[] = [];
        let left = 40_000;
        for (const row of choose(matching)) {
          if (row.bytes > left) break;
          left -= row.bytes;
          shown.push(row);
        }
        return shown;
      });
      const { certificate, risk } = swept.done;
      const isNoticed = certificate === 'unproven' || risk === 'doubt';
      expect([nth, isNoticed ? [] : lostOf(rows, swept)]).toEqual([nth, []]);
    }
  });
});

describe('R1: where rows of different sizes end pages at different lengths', () => {
  const rows = rowsUpTo(300).map((row, nth) => ({ ...row, bytes: nth % 43 === 20 ? 38_000 : 400 + (nth % 7) * 200 }));
  const downwards: Rule = (matching, ...asked) => cutByBytes(40_000)(matching.toReversed(), ...asked);

  test.each([
    ['rises', cutByBytes(40_000)],
    ['falls', downwards],
  ] as const)('a list that %s is closed up to the last row of an answer, and the rest is asked', (_, rule) => {
    const swept = sweep(rows, rule);
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.steps.length).toBeLessThan(300);
  });

  test('in a list without order only empty answers close', () => {
    const swept = sweep(rows, (matching, ...asked) =>
      cutByBytes(40_000)(
        matching.toSorted((a, b) => hashOf(a) - hashOf(b)),
        ...asked,
      ),
    );
    expect(lostOf(rows, swept)).toEqual([]);
  });

  test('a list is in order by ten pairs of neighbours, none of them reversed', () => {
    const facts = { ...begin({}).facts, chosen: { ascending: 1, descending: 1 } };
    const pairs = [
      { rising: 9, falling: 0 },
      { rising: 10, falling: 0 },
      { rising: 0, falling: 10 },
      { rising: 30, falling: 1 },
    ];
    expect(pairs.map((seen) => isSorted({ ...facts, ...seen }))).toEqual([false, true, true, false]);
  });

  test('a row larger than all before opens again what was closed without room for it', () => {
    const state = opened();
    const { from, to } = ask(state) as Question;
    const rows = Array.from({ length: 34 }, (_, nth) => aRow((to as bigint) - 33n + BigInt(nth)));
    const closed = answerNext(state, rows);
    expect(isClosedAt(closed, from as bigint)).toBe(true);
    const { from: next } = ask(closed) as Question;
    expect(isClosedAt(answerNext(closed, [aRow(next as bigint, { bytes: 30_000 })]), from as bigint)).toBe(false);
  });
});

describe('R1: pages cut off by their bytes, without order', () => {
  const sized = (count: number, largest: number) =>
    rowsUpTo(count).map((row, nth) => ({ ...row, bytes: 600 + ((nth * 37) % 400) + (nth === 77 ? largest : 0) }));
  const byHash =
    (limit: number): Rule =>
    (matching, ...asked) =>
      cutByBytes(limit)(
        matching.toSorted((a, b) => hashOf(a) - hashOf(b)),
        ...asked,
      );

  test('while no row is large, less than a quarter of a page closes: about eleven requests a page', () => {
    const rows = sized(1_500, 0);
    const swept = sweep(rows, byHash(40_000));
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.done.certificate).toBe('proven');
    expect(swept.steps.length).toBeLessThan(30 * 12);
  });

  test('a large row that is seen opens everything again: only empty answers close', () => {
    const rows = sized(200, 9_000);
    const swept = sweep(rows, byHash(40_000));
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.steps.length).toBeGreaterThan(300);
  });
});

describe('R1: what says that bytes end pages', () => {
  const capacity = { rows: 100, bytes: 100_000, cutRows: null };

  test('a fifth fewer rows, or as many more, in about as many bytes', () => {
    const pages = [
      [80, 96_000],
      [81, 96_000],
      [80, 94_000],
      [125, 100_000],
      [124, 100_000],
    ] as const;
    expect(pages.map(([rows, bytes]) => isCutByBytes(capacity, { rows, bytes }))).toEqual([
      true,
      false,
      false,
      true,
      false,
    ]);
    expect(isCutByBytes({ ...capacity, rows: 10 }, { rows: 5, bytes: 100_000 })).toBe(false);
  });

  test('it opens again what was closed by less than 60 % of a page', () => {
    const state = wellOpened();
    const closed = answerWith(state, 45, { bytes: 46_000 });
    const rows = Array.from({ length: 60 }, (_, nth) => aRow(900_000n + BigInt((nth * 37) % 61)));
    const question = {
      ...(ask(state) as Question),
      purpose: 'witness',
      from: 1n,
      to: null,
      after: 0n,
      before: null,
    } as const;
    const count = (one: State) => one.ranges.filter((range) => range.state === 'closed').length;
    const after = learn(closed, question, aPage(rows, { bytes: 99_000 }));
    expect(count(after)).toBeLessThan(count(closed));
  });

  test('where that comes to light in a sorted list, a range that was not shown up to its end is opened again', () => {
    const state = wellOpened();
    // No more rows than expected: nothing but the bytes speaks.
    const ranges = state.ranges.map((range) => ({ ...range, sorted: false, expected: 100 }));
    const first = 10n;
    const after = answerWith({ ...state, ranges }, 75, { bytes: 100_000 }, 1);
    expect([isClosedAt(state, first), isClosedAt(after, first)]).toEqual([true, false]);
  });

  test('where bytes end pages, a list that turns out to be unsorted opens again what order had closed', () => {
    const state = wellOpened();
    const sorted = { ...state, facts: { ...state.facts, uneven: true } };
    const first = 10n;
    const { from } = ask(sorted) as Question;
    const swapped = [2n, 1n].map((nth) => aRow((from as bigint) + nth));
    expect(isClosedAt(answerNext(sorted, swapped.toReversed()), first)).toBe(true);
    expect(isClosedAt(answerNext(sorted, swapped), first)).toBe(false);
  });

  test('without order, pages with the smallest rows first vouch for nothing', () => {
    const facts = { ...opened().facts, rising: 10, falling: 10, uneven: true };
    const vouch = (rising: number, falling: number) => vouchOf({ ...facts, sizes: { rising, falling } }, 'both');
    expect([vouch(90, 10), vouch(50, 50), vouch(10, 90)]).toEqual(['none', 'small', 'small']);
  });

  test('smallest first without order, the large rows are those that no page shows: only empty answers close', () => {
    const rows = rowsUpTo(120).map((row, nth) => ({ ...row, bytes: 400 + ((nth * 53) % 120) * 12 }));
    const hidden = rows.map((row, nth) => (nth === 77 ? { ...row, bytes: 30_000 } : row));
    const smallestFirst: Rule = (matching, ...asked) =>
      cutByBytes(40_000)(
        matching.toSorted((a, b) => a.bytes - b.bytes),
        ...asked,
      );
    expect(lostOf(hidden, sweep(hidden, smallestFirst))).toEqual([]);
  });
});

describe('R1: elements whose id cannot be read', () => {
  /** Every row from here on is one. */
  const unreadable =
    (from: bigint): Rule =>
    (matching) => {
      const page = matching.slice(0, 50);
      const rows = page.filter(({ id }) => id < from);
      return aPage(rows, { unreadable: page.length - rows.length });
    };

  test('take up places of the page: one that they fill is not empty, and not short', () => {
    const rows = rowsUpTo(200);
    const behind: Rule = (matching) => {
      const page = matching.slice(0, 50);
      const readable = page.filter(({ id }) => id < 400n || id > 1_400n);
      return aPage(readable, { unreadable: page.length - readable.length });
    };
    const readable = rows.filter(({ id }) => id < 400n || id > 1_400n);
    const swept = sweep(rows, behind);
    expect(lostOf(readable, swept).length === 0 || isNoticed(swept)).toBe(true);
  });

  test('a page that holds nothing else closes nothing from half of its places on', () => {
    const state = wellOpened();
    const { from } = ask(state) as Question;
    const isAnsweredBy = (unreadable: number) => {
      const { ranges } = answerNext(state, [], { unreadable, bytes: 400 });
      return ranges.find((range) => range.from === from)?.empty !== null;
    };
    expect([0, 49, 50, 100].map(isAnsweredBy)).toEqual([true, true, false, false]);
  });

  test('a few of them hide nobody', () => {
    expect(sweep(rowsUpTo(100), unreadable(981n)).done.certificate).toBe('proven');
    expect(sweep(rowsUpTo(5), unreadable(50n)).done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });
});

describe('R4: a row that had no room on a page', () => {
  test.each([
    ['rising', (rows: readonly ListedRow[]) => rows],
    ['falling', (rows: readonly ListedRow[]) => rows.toReversed()],
  ] as const)('is no contradiction in a list in order, however large it is: a list %s', (_, order) => {
    for (const [nth, size] of [
      [65, 38_000],
      [110, 38_000],
      [65, 52_000],
      [110, 52_000],
    ] as const) {
      const rows = rowsUpTo(187).map((row, at) => (at === nth ? { ...row, bytes: size } : row));
      // A row that is larger than a page is shown alone.
      const rule: Rule = (matching, ...asked) => {
        const shown = cutByBytes(40_000)(order(matching), ...asked) as readonly ListedRow[];
        return shown.length > 0 ? shown.slice(0, 100) : order(matching).slice(0, 1);
      };
      const first = sweep(rows, rule);
      expect(lostOf(rows, first)).toEqual([]);
      expect(first.done.certificate).toBe('proven');
      const known = { held: idsOf(rows), known: knownOf(idsOf(rows)) };
      expect(sweep(rows, rule, known).done.certificate).toBe('proven');
    }
  });
});

describe('R2: every position lies in a range or is an id that a whole answer showed', () => {
  test.each([
    ['rises', capped(20)],
    ['falls', falling(20)],
    ['has no order', hashed(20)],
  ] as const)('in a list that %s', (_, rule) => {
    const shown = new Set<bigint>();
    sweep(rowsUpTo(120), rule, {
      onStep: ({ answer, after }) => {
        if (answer.kind === 'page') for (const { id } of answer.rows) shown.add(id);
        let next: bigint | null = 1n;
        for (const range of after.ranges) {
          if (next === null) throw new Error('A range follows one without an end.');
          for (let position: bigint = next; position < range.from; position++) expect(shown).toContain(position);
          next = range.to === null ? null : range.to + 1n;
        }
        expect(next).toBe(null);
      },
    });
  });

  test('an abandoned answer cuts its range inside it, whatever else it showed', () => {
    const state = begin({ from: 100n, to: 200n });
    const rows = [5n, 50n, 99n, 120n, 150n, 201n, 900n].map((id) => aRow(id));
    const { ranges } = learn(state, ask(state) as Question, { kind: 'overflow', rows });
    expect(ranges.length).toBeGreaterThan(1);
    expect(ranges.map(({ from }) => from)).toEqual([100n, ...ranges.slice(0, -1).map(({ to }) => (to as bigint) + 1n)]);
    expect(ranges.at(-1)?.to).toBe(200n);
  });

  test.for<[string, bigint, bigint]>([
    ['of one page whose ids lie far apart', 300_000_000n, 3_300_000n],
    ['whose ids are near the end of 32 bits', 2_147_483_000n, 10n],
    ['of one application', 1_500_000_000n, 0n],
  ])('no bound above 2^31-1 is asked for in a list %s', ([, first, step]) => {
    const ids = new Set(Array.from({ length: 60 }, (_, nth) => first + BigInt(nth) * step));
    const rows = [...ids].map((id) => aRow(id, { at: second }));
    const asked: bigint[] = [];
    const swept = sweep(rows, (matching, { axis, after, before }) => {
      if (axis === 'id') asked.push(after ?? 0n, before ?? 0n);
      return matching.slice(0, 100);
    });
    expect(lostOf(rows, swept)).toEqual([]);
    expect(asked.filter((bound) => bound >= 2n ** 31n)).toEqual([]);
    expect(asked.some((bound) => bound > (rows.at(-1)?.id ?? 0n))).toBe(true);
  });

  test('2^63-1 is read like any other id, and nothing beyond it is asked for', () => {
    const largest = 2n ** 63n - 1n;
    for (const [top, cap] of [
      [largest, 30],
      [largest - 5n, 30],
      [largest / 2n, 200],
    ] as const) {
      const rows = [...rowsUpTo(100), aRow(top, { at: second })];
      const swept = sweep(rows, (matching, { after, before, axis }) => {
        if (axis === 'id') expect((after ?? 0n) <= largest && (before ?? 0n) <= largest).toBe(true);
        return matching.slice(0, cap);
      });
      expect(lostOf(rows, swept)).toEqual([]);
    }
  });
});

describe('R3: a sweep ends', () => {
  test('a cut leaves smaller ranges, and few of them', () => {
    sweep(rowsUpTo(200), (matching, _, nth) => hashed(20)(matching.toSpliced(nth % 7, nth % 3), _, nth), {
      onStep: ({ question, before, after }) => {
        if (question.purpose !== 'range') return;
        const { dropped, added } = findChanges(before, after);
        const isAsked = (from: bigint) =>
          question.from !== null && isInside({ from: question.from, to: question.to }, from);
        const pieces = added.filter(({ state, from }) => state === 'open' && isAsked(from));
        expect(pieces.length).toBeLessThan(20);
        const [old] = dropped.filter(({ state, from }) => state === 'open' && isAsked(from));
        if (old === undefined || pieces.length < 2) return;
        for (const piece of pieces) expect([piece.from, piece.to]).not.toEqual([old.from, old.to]);
      },
    });
  });

  test('a source that always has something new is left, and called unproven', () => {
    // Every multiple of ten is an application that arrived just now: a page for every question, without end.
    const endless: Rule = (_, { axis, after, before }) => {
      if (axis === 'date') return [];
      const first = ((after ?? 0n) / 10n + 1n) * 10n;
      const page = Array.from({ length: 20 }, (_, nth) => aRow(first + BigInt(nth) * 10n));
      return page.filter(({ id }) => before === null || id < before);
    };
    const swept = sweep([], endless, { plan: { recentFrom: 0n } });
    expect(swept.steps.length).toBeLessThanOrEqual(1_300);
    expect(swept.done.certificate).toBe('unproven');
  });

  test.each([
    ['rises', capped(100), 3.2],
    ['falls', falling(100), 3.2],
  ] as const)('a list that %s costs about three requests a page', (_, rule, most) => {
    const rows = rowsUpTo(4_000);
    const swept = sweep(rows, rule);
    expect(swept.done.certificate).toBe('proven');
    expect(swept.steps.length / 40).toBeLessThan(most + 1);
  });

  test('bounds that come back take up rows, and cost no more requests', () => {
    const rows = rowsUpTo(2_000);
    const { steps } = sweep(rows, (_, { after, before, ...question }) => {
      const low = after === null ? null : after - 1n;
      return toMatching(rows, { ...question, after: low, before: before === null ? null : before + 1n }).slice(0, 100);
    });
    expect(steps.length / 20).toBeLessThan(6);
  });

  test('no range is asked twice at once', () => {
    const first = ask(begin({})) as Question;
    expect(ask(begin({}), [first])).toBe(null);
  });

  test('questions in flight count', () => {
    const state = opened();
    const first = ask(state) as Question;
    expect(ask(withLeft(state, 2), [first])).toMatchObject({ purpose: 'range' });
    expect(ask(withLeft(state, 1), [first])).toBe(null);
  });

  test('an application over the byte budget stays open, and everyone else is read', () => {
    const rows = rowsUpTo(100);
    const swept = sweep(rows, (matching) => {
      const page = matching.slice(0, 30);
      return page.some(({ id }) => id === 500n) ? { kind: 'overflow', rows: page } : page;
    });
    expect(lostOf(rows, swept)).toEqual([500n]);
    expect(swept.done).toMatchObject({
      certificate: 'unproven',
      reason: 'a range could not be split small enough to be closed',
      open: [{ from: 500n, to: 500n }],
    });
  });

  test('a body that is abandoned before its first id is cut blindly', () => {
    const rows = rowsUpTo(100);
    const swept = sweep(rows, (matching) => (matching.length > 30 ? { kind: 'overflow', rows: [] } : matching));
    expect(lostOf(rows, swept)).toEqual([]);
  });

  test('a body over the byte budget is abandoned, and its range is cut until the pieces fit', () => {
    for (const rule of [capped(5_000), falling(5_000), hashed(5_000)]) {
      const rows = rowsUpTo(1_000);
      const swept = sweep(rows, (...asked) => {
        const shown = rule(...asked) as readonly ListedRow[];
        return shown.length > 200 ? { kind: 'overflow', rows: shown.slice(0, 200) } : shown;
      });
      expect(lostOf(rows, swept)).toEqual([]);
      expect(swept.done.certificate).not.toBe('unproven');
    }
  });
});

describe('R4: an answer that lacks a known id closes nothing', () => {
  test('short, and the id is back when asked alone: the range is asked again, and the sweep is in doubt', () => {
    const rows = rowsUpTo(120);
    let isHidden = true;
    const swept = sweep(
      rows,
      (matching, { purpose, from, to }, nth) => {
        const shown = capped(40)(matching, { purpose, from, to } as Question, nth) as readonly ListedRow[];
        const isShort = shown.length < 20 && shown.some(({ id }) => id === 500n) && purpose === 'range';
        if (!isShort || !isHidden) return shown;
        isHidden = false;
        return shown.filter(({ id }) => id !== 500n);
      },
      { held: idsOf(rows), known: knownOf(idsOf(rows)) },
    );
    expect(isHidden).toBe(false);
    expect(swept.steps.some(({ question }) => question.purpose === 'alone' && question.from === 500n)).toBe(true);
    const reason = 'the source left out applications that it shows when asked again';
    expect(swept.done).toMatchObject({ risk: 'doubt', absent: [], reason });
  });

  test('short, because pages became shorter: the rest is read in smaller pieces', () => {
    const rows = rowsUpTo(400);
    const held = idsOf(rows.filter((_, nth) => nth % 5 > 0));
    const swept = sweep(rows, (matching, _, nth) => matching.slice(0, nth > 8 ? 20 : 50), {
      held,
      known: knownOf(held),
    });
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.done).toMatchObject({ certificate: 'assumed', risk: 'doubt' });
    // One id that is back tells enough: the others that the same answer lacked are not asked.
    expect(swept.steps.filter(({ question }) => question.purpose === 'alone').length).toBeLessThan(15);
  });

  test('an answer that lacks known ids when everything else is read is asked about, too', () => {
    const swept = sweep(rowsUpTo(200), (matching, { purpose }) =>
      matching.filter(({ id }) => purpose !== 'witness' || id % 100n !== 0n).slice(0, 50),
    );
    expect(isNoticed(swept)).toBe(true);
  });

  test('one false answer to the question for an id alone is no deletion', () => {
    let alone = 0;
    const { done } = sweep(rowsUpTo(120), (matching, { purpose }, nth) => {
      if (purpose === 'alone') alone++;
      const isHidden = nth > 0 && (purpose === 'range' ? nth < 8 : purpose === 'alone' && alone === 1);
      return matching.filter(({ id }) => !(isHidden && id === 200n)).slice(0, 50);
    });
    expect(done.risk).toBe('doubt');
  });

  test('an id whose element cannot be read any more is not gone', () => {
    const rows = rowsUpTo(120);
    const { done } = sweep(
      rows.filter(({ id }) => id !== 200n),
      (matching, { purpose, from }) =>
        purpose === 'alone' && from === 200n ? aPage([], { unreadable: 1 }) : matching.slice(0, 50),
      { held: idsOf(rows) },
    );
    expect(done.absent).toEqual([]);
  });

  test('two ids that this sweep has shown and that do not come back were deleted meanwhile; more are a doubt', () => {
    const vanish = (...ids: readonly bigint[]) =>
      sweep(rowsUpTo(120), (matching, _, nth) =>
        matching.filter(({ id }) => !ids.includes(id) || nth === 0).slice(0, 50),
      ).done;
    const deleted = 'an application was deleted at the source while the list was read';
    const hidden = 'the source shows applications by one question that it hides from another';
    const nobody = { certificate: 'assumed', absent: [] };
    expect(vanish(200n, 300n)).toMatchObject({ ...nobody, risk: 'harmless', reason: deleted });
    expect(vanish(200n, 300n, 400n)).toMatchObject({ ...nobody, risk: 'doubt', reason: hidden });
  });

  test('an application that is too large to be read alone is not absent', () => {
    const rows = rowsUpTo(120);
    const { done } = sweep(
      rows,
      (matching, { purpose }) =>
        purpose === 'alone' ? { kind: 'overflow', rows: [] } : matching.filter(({ id }) => id !== 500n).slice(0, 50),
      { held: idsOf(rows), known: knownOf(idsOf(rows)) },
    );
    expect(done.absent).toEqual([]);
  });

  test('long, and many are lacking: what may be believed is lowered, and what was closed on more is open again', () => {
    const rows = rowsUpTo(400);
    const reopened: number[] = [];
    const swept = sweep(rows, (matching, _, nth) => matching.slice(0, nth > 12 ? 16 : 50), {
      onStep: ({ before, after }) => {
        const closed = new Set(closedOf(before).map(({ from }) => from));
        reopened.push(after.ranges.filter(({ state, from }) => state === 'open' && closed.has(from)).length);
      },
    });
    expect(Math.max(...reopened)).toBeGreaterThan(0);
    expect(swept.done.certificate === 'proven' ? lostOf(rows, swept) : []).toEqual([]);
  });

  test('more than an eighth of a page is many', () => {
    const state = wellOpened();
    expect(isClosedAt(answerWith(state, 52, lacking(state, 12)), 10n)).toBe(true);
    expect(isClosedAt(answerWith(state, 52, lacking(state, 13)), 10n)).toBe(false);
  });

  test('pages with both bounds are not believed to be longer than those with one', () => {
    let state = opened();
    for (let asked = 0; asked < 3; asked++) {
      state = answerNext(state, toMatching(rowsUpTo(1_000), ask(state) as Question).slice(0, 100));
    }
    expect(ask(state)).toMatchObject({ from: 1_001n, before: null });
    expect(isClosedAt(state, 10n)).toBe(true);
    const unshown = Array.from({ length: 13 }, (_, nth) => ({ id: 9_000n + BigInt(nth), old: true }));
    expect(isClosedAt(answerWith(state, 52, { unshown }), 10n)).toBe(false);
  });

  test('a range is not asked again while its unshown id is asked alone', () => {
    const state = wellOpened();
    const { from } = ask(state) as Question;
    const suspicious = answerWith(state, 10, lacking(state, 1));
    const alone = ask(suspicious) as Question;
    expect(alone.purpose).toBe('alone');
    expect((ask(suspicious, [alone]) as Question).from).not.toBe(from);
  });

  test('on long pages sixty-four are many: more are never counted', () => {
    const opening = opened(1_000);
    const closed = answerWith(opening, 300);
    expect(isClosedAt(closed, 10n)).toBe(true);
    expect(isClosedAt(answerWith(closed, 520, lacking(closed, 64)), 10n)).toBe(false);
  });

  test('cut off by its bytes, the number of its rows says nothing', () => {
    const state = wellOpened();
    const after = answerWith(state, 30, { ...lacking(state, 13), bytes: 62_000 });
    expect(isClosedAt(after, 10n)).toBe(true);
    expect(after.facts.reservations).toEqual([]);
  });

  describe('cut off at different lengths', () => {
    const cutAt = (state: State, count: number) => answerWith(state, count, { ...lacking(state, 13), bytes: 70_000 });
    const uneven = () => {
      const first = wellOpened();
      const { from } = ask(first) as Question;
      const closed = answerWith(first, 40);
      return { before: cutAt(closed, 49), after: cutAt(cutAt(closed, 49), 25), from: from as bigint };
    };

    test('only a list in order vouches for a range, and only up to a row that was shown', () => {
      const { before, after, from } = uneven();
      expect([isClosedAt(before, 10n), isClosedAt(before, from)]).toEqual([true, true]);
      expect([isClosedAt(after, 10n), isClosedAt(after, from)]).toEqual([true, false]);
    });

    test('a list that shows more below the last row of an answer was not chosen in order', () => {
      // The range that is open again comes first; the next one is a part of an answer that was cut off.
      const state = answerWith(uneven().after, 40);
      const { from } = ask(state) as Question;
      const expected = state.ranges.find((range) => range.from === from)?.expected as number;
      expect(isClosedAt(answerWith(state, expected, {}, 1), 10n)).toBe(true);
      expect(isClosedAt(answerWith(state, expected + 1, {}, 1), 10n)).toBe(false);
    });

    test('a page out of order ends what the order vouched for', () => {
      const { after } = uneven();
      const { from } = ask(after) as Question;
      const page = [5n, 3n, 1n].map((nth) => aRow((from as bigint) + nth, { bytes: 2_000 }));
      expect(isClosedAt(answerNext(after, page.toReversed()), 10n)).toBe(true);
      expect(isClosedAt(answerNext(after, page), 10n)).toBe(false);
    });

    test('nor was one that lacks many known ids below its last row', () => {
      const { after } = uneven();
      const long = { bytes: 70_000 };
      expect(isClosedAt(answerWith(after, 22, { ...lacking(after, 21), ...long }), 10n)).toBe(true);
      expect(isClosedAt(answerWith(after, 22, { ...lacking(after, 21, 'first'), ...long }), 10n)).toBe(false);
    });
  });

  test('answers that keep lacking what is shown elsewhere end in unproven', () => {
    const rows = rowsUpTo(120);
    const swept = sweep(
      rows,
      (matching, { purpose }) => matching.filter(({ id }) => purpose === 'alone' || id !== 500n).slice(0, 40),
      { held: idsOf(rows), known: knownOf(idsOf(rows)) },
    );
    expect(swept.done).toMatchObject({
      certificate: 'unproven',
      reason: 'answers keep lacking applications that the source shows elsewhere',
      absent: [],
    });
  });

  test('replay: an empty answer against ids that were seen a moment ago closes nothing', () => {
    const rows = rowsUpTo(100);
    let falsely = 0;
    const swept = sweep(rows, (matching, { purpose }, nth) => {
      if (purpose !== 'range' || nth % 4 !== 2 || matching.length === 0) return matching.slice(0, 20);
      falsely++;
      return [];
    });
    expect(falsely).toBeGreaterThan(3);
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.done.certificate).not.toBe('proven');
  });

  test('replay: a recheck of a list chosen by date and shown by id finds a late commit', () => {
    // The date of the late one is the newest, its id lies in the middle: a page by date shows it last, or not at all.
    const rows = rowsUpTo(300);
    for (const at of [second + 9_000_000n, second - 9_000_000n]) {
      for (const id of [15n, 1_505n, 2_985n]) {
        const now = [...rows, aRow(id, { at })];
        const swept = sweep(
          now,
          (matching) =>
            matching
              .toSorted((a, b) => Number((a.at as bigint) - (b.at as bigint)))
              .slice(0, 50)
              .sort((a, b) => (a.id < b.id ? -1 : 1)),
          { held: idsOf(rows), known: knownOf(idsOf(rows)) },
        );
        expect(lostOf(now, swept)).toEqual([]);
      }
    }
  });
});

describe('R5: an empty answer is confirmed by a question of another shape', () => {
  test('a refused confirmation with both filters ends belief in them', () => {
    const { done } = sweep(rowsUpTo(50), (matching, { purpose, after, before }) =>
      purpose === 'confirm' && after !== null && before !== null ? { kind: 'refused' } : matching.slice(0, 50),
    );
    expect(done.reason).toContain('refuses afterid and beforeid together');
  });

  test('a confirmation that unreadable elements fill confirms nothing', () => {
    const { done } = sweep(rowsUpTo(120), (matching, { purpose }) =>
      purpose === 'confirm' ? aPage([], { unreadable: 50 }) : matching.slice(0, 50),
    );
    expect(done).toMatchObject({ risk: 'doubt', reason: 'an empty answer could not be confirmed' });
  });

  test('a confirmation that exceeds the byte budget is asked by the other filter; if that does, too, it confirms nothing', () => {
    const confirmed: (string | null)[] = [];
    const { done } = sweep(rowsUpTo(120), (matching, { purpose, from, after }) => {
      if (purpose !== 'confirm' || from !== 1n) return matching.slice(0, 50);
      confirmed.push(after === null ? 'before' : 'after');
      return { kind: 'overflow', rows: [] };
    });
    expect(confirmed).toEqual(['after', 'before']);
    expect(done).toMatchObject({ risk: 'harmless', reason: 'an empty answer could not be confirmed' });
  });

  test('the other filter confirms by a whole page, and not by one that was cut off far from the range', () => {
    const empty = answerNext(answerWith(opened(), 40), []);
    const first = ask({ ...empty, ranges: empty.ranges.filter((range) => range.empty !== null) }) as Question;
    const abandoned = learn(empty, first, { kind: 'overflow', rows: [] });
    const second = ask({ ...abandoned, ranges: abandoned.ranges.filter((range) => range.empty !== null) }) as Question;
    expect(second).toMatchObject({
      purpose: 'confirm',
      from: first.from,
      after: first.before,
      before: expect.anything(),
    });
    const far = Array.from({ length: 50 }, (_, nth) => aRow((first.from as bigint) - 1_000n - BigInt(nth)));
    const unconfirmed = { risk: 'harmless', reason: 'an empty answer could not be confirmed' };
    expect(learn(abandoned, second, aPage(far)).facts.reservations).toContainEqual(unconfirmed);
    expect(learn(abandoned, second, aPage([])).facts.reservations).not.toContainEqual(unconfirmed);
  });

  test('what one shape says is empty and another shows is read', () => {
    const rows = rowsUpTo(100);
    // With both bounds nothing beyond id 700 is shown.
    const swept = sweep(rows, (matching, { before, after }) =>
      before !== null && after !== null && after >= 700n ? [] : matching.slice(0, 20),
    );
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.done.certificate).not.toBe('proven');
  });

  test('contradicted, the range stays open, and what was closed by its length is open again', () => {
    const closed = answerWith(opened(), 40);
    expect(isClosedAt(closed, 10n)).toBe(true);
    const empty = answerNext(closed, []);
    const waiting = empty.ranges.filter((range) => range.empty !== null);
    const question = ask({ ...empty, ranges: waiting }) as Question;
    expect(question.purpose).toBe('confirm');
    const { facts, ranges } = learn(empty, question, aPage([aRow(question.from as bigint)]));
    expect(ranges.find(({ from }) => from === question.from)?.state).toBe('open');
    expect(closedOf({ facts, ranges }).filter(({ answer }) => answer?.rows !== 0)).toEqual([]);
    const reason = 'an application appeared in a range that had been read';
    expect(facts.reservations).toContainEqual({ risk: 'doubt', reason });
  });

  test('the other shape is one filter, on the side where the list begins', () => {
    const confirming = (page: readonly ListedRow[]) => ask(answerNext(answerNext(begin({}), page), []));
    const rows = rowsUpTo(100);
    expect(confirming(rows)).toMatchObject({ purpose: 'confirm', after: 0n, before: null });
    expect(confirming(rows.toReversed())).toMatchObject({ purpose: 'confirm', after: null, before: 10n });
  });

  test('an old one that comes to light beside a recent one is a doubt', () => {
    const first = answerNext(begin({ recentFrom: second + 1_000n }), rowsUpTo(100));
    const after = answerNext(answerNext(first, []), [aRow(4n, { at: second }), aRow(5n, { at: second + 2_000n })]);
    expect(after.facts.reservations).toMatchObject([{ risk: 'doubt' }]);
  });

  test('an application that arrives between the two is no doubt', () => {
    const late = aRow(605n, { at: second + 2_000_000n });
    let isThere = false;
    const swept = sweep(
      [...rowsUpTo(60), late],
      (matching, { purpose, to }) => {
        isThere ||= purpose === 'confirm' && to === null;
        return matching.filter((row) => row !== late || isThere).slice(0, 100);
      },
      { plan: { recentFrom: second + 1_000_000n } },
    );
    expect(swept.held.has(late.id)).toBe(true);
    expect(swept.done.certificate).toBe('proven');
  });

  test('on small pages, where half of all answers are empty, both ends are', () => {
    const confirmed = (plan: Plan) =>
      sweep(rowsUpTo(36), capped(7), { plan })
        .steps.map(({ question }) => question)
        .filter(({ purpose }) => purpose === 'confirm')
        .map(({ from, to }) => [from, to]);
    expect(confirmed({})).toEqual([
      [1n, 9n],
      [361n, null],
    ]);
    expect(confirmed({ from: 5n, to: 500n })).toEqual([
      [5n, 9n],
      [361n, 500n],
    ]);
  });

  test('between two neighbours on a sorted page it need not be; without order it must', () => {
    const rows = rowsUpTo(400).map((row) => (row.id % 300n < 20n ? { ...row, bytes: 13_000 } : row));
    const confirmed = (choose: (rows: readonly ListedRow[]) => readonly ListedRow[]) => {
      const { steps } = sweep(rows, (matching) => {
        let left = 40_000;
        return choose(matching).filter(({ bytes }) => {
          left -= bytes;
          return left >= 0;
        });
      });
      const isGap = ({ from, to }: Question) => from !== null && to !== null && from % 300n === 1n && to === from + 8n;
      return steps.filter(({ question }) => question.purpose === 'confirm' && isGap(question)).length;
    };
    // Of fourteen such gaps, those that one page shows with both neighbours.
    expect(confirmed((list) => list)).toBe(7);
    expect(confirmed((list) => list.toSorted((a, b) => hashOf(a) - hashOf(b)))).toBe(14);
  });

  test('the end of the list is asked in two shapes before it is closed', () => {
    const { steps } = sweep(rowsUpTo(60), capped(100));
    const confirms = steps.filter(({ question }) => question.purpose === 'confirm');
    expect(confirms.some(({ question }) => question.to === null && question.before !== null)).toBe(true);
  });
});

describe('R6: filters that are not honoured together end in a walk, a doubt at best', () => {
  const all = rowsUpTo(200);
  const one = (by: 'after' | 'before', question: Question) => toMatching(all, { ...question, [by]: null });

  test.each<[string, Rule]>([
    ['only the lower bound counts', (_, question) => one('before', question).slice(0, 50)],
    [
      'only the upper bound counts',
      (_, question) =>
        one(question.before === null ? 'before' : 'after', question)
          .toReversed()
          .slice(0, 50),
    ],
    [
      'the mixture is refused',
      (matching, { after, before }) =>
        after !== null && before !== null ? { kind: 'refused' } : matching.slice(0, 50),
    ],
  ])('%s', (_, rule) => {
    const swept = sweep(all, rule);
    expect(lostOf(all, swept)).toEqual([]);
    expect(swept.done).toMatchObject({ certificate: 'assumed', risk: 'doubt' });
    expect(swept.done.reason).toContain('afterid and beforeid together');
  });

  test('a source that ignores its filters is never called complete', () => {
    const swept = sweep(all, () => all.slice(0, 50));
    expect(swept.done.certificate).toBe('unproven');
    expect(swept.steps.length).toBeLessThan(12);
  });

  test('a walk comes to the end of a long list', () => {
    const rows = rowsUpTo(3_000);
    const swept = sweep(rows, (_, question) => toMatching(rows, { ...question, before: null }).slice(0, 20));
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.done).toMatchObject({ certificate: 'assumed', open: [] });
    // From here the next poll reads on.
    expect(swept.steps.at(-1)?.after.facts.highest).toBe(rows.at(-1)?.id);
  });

  test('a walk whose pages leave rows out that the page before has shown is unproven', () => {
    const swept = sweep(all, (_, question, nth) =>
      one('before', question)
        .slice(0, 50)
        .filter(({ id }) => nth % 2 === 0 || id < 700n || id % 30n !== 0n),
    );
    expect(swept.done.certificate).toBe('unproven');
  });

  test('a walk that ends before an id that is stored is unproven', () => {
    const gone = 2_005n;
    const swept = sweep(all, (_, question) => one('before', question).slice(0, 50), { held: [gone] });
    expect(swept.done).toMatchObject({ certificate: 'unproven', absent: [] });
  });

  test('an answer that was in flight when the walk began does not begin it again', () => {
    const first = ask(begin({})) as Question;
    const outside = aPage([aRow(5_000n)]);
    const question = { ...first, to: 100n, before: 101n };
    let state = learn(begin({ to: 100n }), question, outside);
    expect(state.facts.walk).not.toBe(null);
    state = answerNext(state, rowsUpTo(5));
    expect(learn(state, question, outside).facts.walk).toEqual(state.facts.walk);
  });

  test('a question with one filter that is refused is the reason why nothing is proven', () => {
    const { done } = sweep(all, () => ({ kind: 'refused' }));
    expect(done).toMatchObject({ certificate: 'unproven', reason: 'the source refuses the filters of a question' });
  });

  test.each([1, 2, 3])('a walk over pages of %d loses nobody, also where the bound comes back', (cap) => {
    const rows = rowsUpTo(20);
    for (const low of [0n, 1n]) {
      const swept = sweep(rows, (_, { after, ...question }) =>
        toMatching(rows, { ...question, after: after === null ? null : after - low, before: null }).slice(0, cap),
      );
      expect(lostOf(rows, swept)).toEqual([]);
    }
  });

  test('a walk ends where the sweep does', () => {
    const { steps } = sweep(all, (_, question) => one('before', question).slice(0, 50), { plan: { to: 505n } });
    for (const { question } of steps) expect((question.after as bigint) < 505n).toBe(true);
  });

  test('a walk over a single page without order proves nothing, nor does one over two rows', () => {
    for (const [rows, rule] of [
      [all, hashed(250)],
      [all.slice(0, 2), capped(250)],
    ] as const) {
      const swept = sweep(rows, (_, question, nth) => {
        const ignored = question.before === null ? 'before' : 'after';
        return rule(toMatching(rows, { ...question, [ignored]: null }), question, nth);
      });
      expect(swept.done.certificate).toBe('unproven');
    }
  });

  test('a walk without order proves nothing', () => {
    const swept = sweep(all, (_, question, nth) => hashed(50)(one('before', question), question, nth));
    expect(swept.done.certificate).toBe('unproven');
  });
});

describe('R7: the echo', () => {
  test('one contradiction ends every proof, though nothing is lost', () => {
    const rows = rowsUpTo(100);
    const swept = sweep(rows, (matching, _, nth) =>
      aPage(matching.slice(0, 30), { echo: nth === 5 ? 'differs' : 'matches' }),
    );
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.done).toMatchObject({
      certificate: 'unproven',
      reason: 'the source repeats other filters than were sent',
    });
  });

  test('an absent one leaves assumed, without a doubt', () => {
    const swept = sweep(rowsUpTo(100), (matching) => aPage(matching.slice(0, 30), { echo: 'absent' }));
    expect(swept.done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });

  test('an empty answer without a list leaves assumed', () => {
    const swept = sweep(rowsUpTo(100), (matching) =>
      aPage(matching.slice(0, 30), { weakEmpty: matching.length === 0 }),
    );
    expect(swept.done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });
});

describe('R8: bounds are sent as if they were exclusive', () => {
  const inclusive = (
    rows: readonly ListedRow[],
    { axis, after, before, since }: Question,
    low: boolean,
    high: boolean,
  ) =>
    toMatching(rows, {
      axis,
      since,
      after: after !== null && low ? after - 1n : after,
      before: before !== null && high ? before + 1n : before,
    } as Question);

  test.each([
    [1, true, false],
    [1, false, true],
    [2, true, true],
    [7, true, true],
    [50, true, true],
  ] as const)('inclusive bounds lose nobody on pages of %d (lower %s, upper %s)', (cap, low, high) => {
    const rows = rowsUpTo(45);
    const swept = sweep(rows, (_, question) => inclusive(rows, question, low, high).slice(0, cap));
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.done.certificate).not.toBe('unproven');
  });

  test('inclusive bounds are no doubt where pages are long, or where one page shows the whole account', () => {
    for (const [count, cap] of [
      [450, 50],
      [450, 17],
      [3, 50],
      [1, 50],
    ] as const) {
      const rows = rowsUpTo(count);
      const { done } = sweep(rows, (_, question) => inclusive(rows, question, true, true).slice(0, cap));
      const worth = count < 16 ? { certificate: 'assumed', risk: 'harmless' } : { certificate: 'proven', risk: 'none' };
      expect([count, cap, done]).toMatchObject([count, cap, worth]);
    }
  });

  test('inclusive bounds that fill half of a page are a doubt', () => {
    const rows = rowsUpTo(45);
    for (const cap of [1, 2, 3]) {
      const { done } = sweep(rows, (_, question) => inclusive(rows, question, true, true).slice(0, cap));
      expect(done).toMatchObject({ certificate: 'assumed', risk: 'doubt' });
    }
  });

  test('inclusive bounds that fill less than half of a small page are none', () => {
    const rows = rowsUpTo(45);
    const { done } = sweep(rows, (_, question) => inclusive(rows, question, true, true).toReversed().slice(0, 7));
    expect(done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });

  test('replay: inclusive in one shape and exclusive in another, nobody is stepped over', () => {
    const rows = Array.from({ length: 80 }, (_, nth) => aRow(3_650n + BigInt(nth)));
    for (const cap of [1, 2, 20, 30]) {
      for (const isInclusive of [(both: boolean) => both, (both: boolean) => !both]) {
        const swept = sweep(rows, (_, question) => {
          const is = isInclusive(question.after !== null && question.before !== null);
          return inclusive(rows, question, is, is).slice(0, cap);
        });
        expect(lostOf(rows, swept)).toEqual([]);
      }
    }
  });

  test('no bound is sent beyond the largest id', () => {
    const { facts } = begin({});
    const upperBound = (to: bigint) => rangeQuestion(facts, openRange(1n, to)).before;
    expect([upperBound(largestId - 1n), upperBound(largestId)]).toEqual([largestId, null]);
    expect([aloneQuestion(largestId - 1n).before, aloneQuestion(largestId).before]).toEqual([largestId, null]);
  });

  test('a bound that comes back beside others changes no question', () => {
    const rows = rowsUpTo(100);
    const { steps } = sweep(rows, (_, question) => inclusive(rows, question, true, true).slice(0, 30));
    const isBound = ({ after, before }: Question, { id }: ListedRow) => id === after || id === before;
    for (const [nth, { question }] of steps.entries()) {
      const isStepped = question.after === question.from || (question.to !== null && question.before === question.to);
      if (question.purpose !== 'range' || !isStepped) continue;
      const reason = steps.slice(0, nth).findLast((step) => step.question.from === question.from);
      const shown = reason?.answer.kind === 'page' ? reason.answer.rows : [];
      expect(shown.length).toBeGreaterThan(0);
      expect(shown.every((row) => isBound(reason?.question as Question, row))).toBe(true);
    }
  });
});

describe('R9: an id that comes to light in a closed range opens it again', () => {
  const hiding = (rows: readonly ListedRow[], at: bigint, plan?: Plan) =>
    sweep(
      [...rows, aRow(505n, { at })].sort((a, b) => (a.id < b.id ? -1 : 1)),
      (matching, { purpose }) => matching.filter(({ id }) => id !== 505n || purpose === 'witness').slice(0, 30),
      { ...(plan && { plan }) },
    );

  test('an old one is a doubt', () => {
    const { done, held, steps } = hiding(rowsUpTo(100), second, { recentFrom: second + 1_000_000n });
    expect(held.has(505n)).toBe(true);
    expect(done.certificate === 'unproven' || done.risk === 'doubt').toBe(true);
    const reopened = steps.some(
      ({ question, before, after }) =>
        question.purpose === 'witness' &&
        closedOf(before).some((range) => isInside(range, 505n)) &&
        !closedOf(after).some((range) => isInside(range, 505n)),
    );
    expect(reopened).toBe(true);
  });

  test.each([
    ['a recent one arrived meanwhile, and the proof stands', second + 2_000_000n, 'proven', 'none'],
    ['one of the first second counts as recent', second + 1_000_000n, 'proven', 'none'],
    ['an old one may have been hidden, and is a doubt', second, 'assumed', 'doubt'],
    ['so may one without a date', null, 'assumed', 'doubt'],
  ] as const)('%s', (_, at, certificate, risk) => {
    const late = aRow(505n, { at });
    const rows = [...rowsUpTo(100), late].sort((a, b) => (a.id < b.id ? -1 : 1));
    let isThere = false;
    const swept = sweep(
      rows,
      (matching, { purpose }) => {
        isThere ||= purpose === 'witness';
        return matching.filter(({ id }) => id !== late.id || isThere).slice(0, 30);
      },
      { plan: { recentFrom: second + 1_000_000n } },
    );
    expect(swept.held.has(late.id)).toBe(true);
    expect(swept.done).toMatchObject({ certificate, risk });
  });
});

describe('R10: a stored id that does not come back when asked alone is absent', () => {
  const rows = rowsUpTo(300);
  const goneAt = (count: number) => Array.from({ length: count }, (_, nth) => 1_005n + BigInt(nth) * 10n);
  const recheck = (gone: readonly bigint[]) => {
    const held = [...idsOf(rows), ...gone];
    const known = knownOf(held.toSorted((a, b) => (a < b ? -1 : 1)));
    return sweep(rows, capped(50), { held, known });
  };

  test('and the proof stands', () => {
    expect(recheck([1_005n]).done).toMatchObject({ certificate: 'proven', absent: [1_005n] });
  });

  test('also where bounds are inclusive and its neighbours come back instead', () => {
    const all = Array.from({ length: 300 }, (_, nth) => aRow(BigInt(nth + 1)));
    const present = all.filter(({ id }) => id !== 150n);
    const swept = sweep(
      present,
      (_, { after, before, ...question }) =>
        toMatching(present, {
          ...question,
          after: after === null ? null : after - 1n,
          before: before === null ? null : before + 1n,
        }).slice(0, 50),
      { held: idsOf(all), known: knownOf(idsOf(all)) },
    );
    expect(swept.done).toMatchObject({ certificate: 'proven', absent: [150n] });
  });

  test('past the limit no further one is asked alone', () => {
    const { steps } = sweep(rows, capped(50), { held: [...idsOf(rows), ...goneAt(60)] });
    expect(steps.filter(({ question }) => question.purpose === 'alone').length).toBeLessThan(40);
  });

  test('twenty are believed, more are not, and then none is absent', () => {
    expect(recheck(goneAt(20)).done.absent).toHaveLength(20);
    const more = recheck(goneAt(21)).done;
    expect(more).toMatchObject({ certificate: 'unproven', absent: [] });
    expect(more.reason).toContain('too many');
  });

  test('erased ones do not count towards the two in a hundred: they cannot go', () => {
    const begun = begin({ heldBefore: 100_000, listedBefore: 20_000 });
    const judge = (count: number) => conclude({ ...begun, facts: { ...begun.facts, absent: goneAt(count) } }).reason;
    expect(judge(400)).not.toContain('too many');
    expect(judge(401)).toContain('too many');
  });

  test('of a large account two in a hundred are believed', () => {
    const many = rowsUpTo(2_000);
    const gone = Array.from({ length: 38 }, (_, nth) => 255n + BigInt(nth) * 510n);
    const held = [...idsOf(many), ...gone];
    const known = knownOf(held.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(sweep(many, capped(100), { held, known }).done.absent).toHaveLength(gone.length);
  });
});

describe('R11: what proven rests on', () => {
  test('witnesses and audits that were not asked prove nothing', () => {
    const rows = rowsUpTo(200);
    const full = sweep(rows, capped(50));
    const { before } = full.steps.at(-1) as Step;
    expect(full.done.certificate).toBe('proven');
    expect(ask(withLeft(before, 0))).toMatchObject({
      certificate: 'unproven',
      reason: 'the sweep asked more questions than the applications it found can justify',
    });
  });

  test('closed ranges are audited at places that the seed decides', () => {
    const places = (seed: number) =>
      sweep(rowsUpTo(400), capped(50), { plan: { seed } })
        .steps.filter(({ question }) => question.purpose === 'witness' && question.axis === 'id')
        .map(({ question }) => `${question.after} ${question.before}`);
    expect(places(1)).toEqual(places(1));
    expect(places(1)).not.toEqual(places(2));
    expect(places(1).length).toBeGreaterThan(8);
  });

  test('a few more than the wider answer showed arrived meanwhile, more than an eighth of a page were cut off', () => {
    // The next range was cut from an answer that showed 34 rows in it.
    expect(answerWith(opened(), 34 + 12).facts).toMatchObject({ cut: false, reachBefore: false });
    expect(answerWith(opened(), 34 + 13).facts).toMatchObject({ cut: true, reachBefore: true });
  });

  test.each(['before', 'after'] as const)('a filter (%s) that acts after the cap is not believed', (late) => {
    const rows = rowsUpTo(120);
    const swept = sweep(rows, (_, question, nth) => {
      const page = hashed(20)(toMatching(rows, { ...question, [late]: null }), question, nth) as readonly ListedRow[];
      return toMatching(page, question);
    });
    expect(lostOf(rows, swept).length).toBeGreaterThan(0);
    expect(swept.done.certificate).not.toBe('proven');
    expect(swept.done.risk).toBe('doubt');
  });

  test.each(['before', 'after'] as const)(
    'of a long list, too: nothing else shows that %s acts after the cap',
    (late) => {
      const rows = rowsUpTo(400);
      const { done } = sweep(rows, (_, question, nth) => {
        const page = hashed(50)(toMatching(rows, { ...question, [late]: null }), question, nth) as readonly ListedRow[];
        return toMatching(page, question);
      });
      expect(done.risk).toBe('doubt');
    },
  );

  test('in a list without order a few more than a page are enough to ask for that', () => {
    const rows = rowsUpTo(54);
    const swept = sweep(rows, (_, question, nth) => {
      const page = hashed(50)(toMatching(rows, { ...question, before: null }), question, nth) as readonly ListedRow[];
      return toMatching(page, question);
    });
    expect(lostOf(rows, swept).length).toBeGreaterThan(0);
    expect(swept.done.risk).toBe('doubt');
  });

  test('but not one that arrives behind the last', () => {
    const rows = [...rowsUpTo(40), aRow(405n, { at: second + 2_000_000n })];
    const { done } = sweep(
      rows,
      (matching, question, nth) => fromTheMiddle(nth === 0 ? matching.slice(0, 40) : matching, question, nth),
      { plan: { recentFrom: second + 1_000_000n } },
    );
    expect(done.certificate).toBe('proven');
  });

  test('in a list in order the filter towards its far end must have shown more, or both together', () => {
    const rows = rowsUpTo(300);
    const known = { held: idsOf(rows), known: knownOf(idsOf(rows)) };
    expect(sweep(rows, capped(20), known).done.certificate).toBe('proven');
    // The newest page in rising order, and the oldest in falling order: which rows are chosen counts, not how they are shown.
    for (const rule of [
      ((matching) => matching.slice(-20)) satisfies Rule,
      ((matching) => matching.slice(0, 20).toReversed()) satisfies Rule,
    ]) {
      expect(sweep(rows, rule).done.certificate).toBe('proven');
    }
  });

  test('in a list without order one more than the wider answer showed is enough to have seen a filter reach', () => {
    const { done } = sweep(rowsUpTo(21), hashed(20));
    expect(done.reason).not.toBe('the filters were not seen to act before the page is cut off');
  });

  test.each([
    ['rises', capped(1)],
    ['falls', falling(1)],
  ] as const)('pages of one row show the order of a list that %s by what parts of answers show', (_, rule) => {
    expect(sweep(rowsUpTo(45), rule).done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });

  test('of fewer than sixteen applications on small pages that is not asked for', () => {
    const { done } = sweep(rowsUpTo(12), (matching) => matching.slice(-5));
    expect(done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });

  test('a part of the ids where nobody is may be proven', () => {
    expect(sweep(rowsUpTo(200), capped(50), { plan: { from: 5_000n } }).done.certificate).toBe('proven');
  });

  test('the date filter is asked beyond the earliest and the latest date that was shown', () => {
    const rows = rowsUpTo(400);
    const [earliest, latest] = [rows[0]?.at as bigint, rows.at(-1)?.at as bigint];
    for (const rule of [capped(20), falling(20)]) {
      const asked = sweep(rows, rule).steps.flatMap(({ question }) => (question.axis === 'date' ? [question] : []));
      expect(asked.some(({ before }) => before !== null && before < earliest)).toBe(true);
      expect(asked.some(({ after }) => after !== null && after > latest)).toBe(true);
    }
  });

  test('fifteen applications are too few to tell whether pages are cut short, sixteen are not', () => {
    expect(sweep(rowsUpTo(15), capped(100)).done).toMatchObject({
      certificate: 'assumed',
      risk: 'harmless',
      reason: 'there are too few applications to tell whether pages are cut short',
    });
    expect(sweep(rowsUpTo(16), capped(100)).done.certificate).toBe('proven');
  });

  test('an account that shows nothing at all is assumed to be empty', () => {
    expect(sweep([], capped(100)).done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });

  test('held ids beyond the outermost page that are gone are not believed', () => {
    // The newest fifty show, whatever is asked: five have arrived, the five oldest have dropped out.
    const rows = rowsUpTo(55);
    const shown = rows.slice(-50);
    const swept = (longestBefore: number) =>
      sweep(shown, falling(50), { held: idsOf(rows.slice(0, 50)), plan: { longestBefore } }).done;
    expect(swept(50).risk).toBe('doubt');
    // A page that was longer once is not full now; one that was shorter was not full then.
    expect([swept(51).certificate, swept(49).certificate]).toEqual(['proven', 'proven']);
  });

  const distance = ({ id }: ListedRow) => Number(id > 200n ? id - 200n : 201n - id);
  const fromTheMiddle: Rule = (matching) => matching.toSorted((a, b) => distance(a) - distance(b)).slice(0, 50);

  test.each([
    ['beyond the last of a list that rises', capped(50), 405n, 'assumed'],
    ['inside a list that rises', capped(50), 205n, 'proven'],
    ['inside a list that falls', falling(50), 205n, 'proven'],
    ['inside a list without order', fromTheMiddle, 205n, 'assumed'],
  ] as const)('a held id that is gone, on a single page, %s', (_, rule, gone, certificate) => {
    const held = [...idsOf(rowsUpTo(40)), gone];
    expect(sweep(rowsUpTo(40), rule, { held, plan: { longestBefore: 40 } }).done).toMatchObject({
      certificate,
      absent: [gone],
    });
  });

  test('a held id beyond the last one is gone where the filters were seen to reach beyond a page', () => {
    const { done } = sweep(rowsUpTo(300), capped(50), { held: [3_005n], plan: { longestBefore: 50 } });
    expect(done).toMatchObject({ certificate: 'proven', absent: [3_005n] });
  });

  test('in a list without order one more row than the wider page showed says that the filter acts before the cap', () => {
    const state = wellOpened();
    const { from } = ask(state) as Question;
    const reached = (pairs: { rising: number; falling: number }) => {
      const ranges = state.ranges.map((range) =>
        range.from === from && range.origin !== null
          ? { ...range, expected: 20, origin: { ...range.origin, side: 'before' as const } }
          : range,
      );
      return answerWith({ ranges, facts: { ...state.facts, ...pairs, reachBefore: false } }, 21).facts.reachBefore;
    };
    expect(reached({ rising: 500, falling: 500 })).toBe(true);
    expect(reached({ rising: 1_000, falling: 0 })).toBe(false);
  });

  test('an account that shows nobody any more is not believed', () => {
    const { done } = sweep([], capped(50), { held: [10n, 20n] });
    expect(done).toMatchObject({ certificate: 'assumed', risk: 'doubt', absent: [10n, 20n] });
  });
});

describe('R11: a witness gives a source away that hides people from every range question', () => {
  const rows = rowsUpTo(200);

  test.each([
    ['rises', { rising: 90, falling: 0 }],
    ['falls', { rising: 0, falling: 90 }],
  ] as const)('in a list that %s, the upper part of an audited range comes first on its page', (does, pairs) => {
    const state = wellOpened();
    const filled = closedOf(state).filter(({ answer }) => answer?.rows !== 0);
    const asked = planWitnesses({ ...state.facts, ...pairs, highest: 10_000n }, filled);
    const audited = asked.flatMap(({ after, before, since }) => {
      const range = filled.find(
        ({ from, to }) => after === from - 1n && before !== null && before <= (to as bigint) + 1n,
      );
      return range === undefined || since !== null ? [] : [{ end: range.to as bigint, split: (before as bigint) - 1n }];
    });
    const upper = audited.map(({ end, split }) =>
      does === 'falls' ? { after: null, before: end + 1n } : { after: split, before: null },
    );
    expect(upper.length).toBeGreaterThan(2);
    for (const bounds of upper) expect(asked).toContainEqual(expect.objectContaining(bounds));
  });

  test('the last 90 days show unless an old date is sent', () => {
    const swept = sweep(rows, (matching, { since }) =>
      matching.filter(({ id }) => since !== null || id > 1_000n).slice(0, 50),
    );
    expect(isNoticed(swept)).toBe(true);
  });

  test('an afterid of 0 is read as 1: the first application shows only without a lower bound', () => {
    const all = [aRow(1n), ...rows.map(({ id }) => aRow(id - 8n))];
    const swept = sweep(all, (matching, { axis, after }) =>
      matching
        .filter(({ id }) => id > 1n || axis === 'date' || after !== 0n)
        .toReversed()
        .slice(0, 50),
    );
    expect(lostOf(all, swept)).toEqual([]);
  });

  test('a row too large for the rest of the last page shows where it comes first', () => {
    const all = [...rowsUpTo(130), aRow(1_301n, { bytes: 39_500 })];
    expect(lostOf(all, sweep(all, cutByBytes(40_000)))).toEqual([]);
  });

  test('a row too large for any page hides what follows it until the question begins behind it', () => {
    const all = [...rowsUpTo(130), aRow(1_301n, { bytes: 41_000 }), aRow(1_302n)];
    const swept = sweep(all, cutByBytes(40_000));
    expect(swept.held.has(1_302n)).toBe(true);
    expect(isNoticed(swept)).toBe(true);
  });

  test.each([
    ['a sixteenth of a page', 51, 1, 60n],
    ['a page', 60, 8, 510n],
    ['ten pages', 600, 8, 5_100n],
  ] as const)('deleted rows fill the pages beyond the edge, over %s of ids', (_, count, apart, far) => {
    const live = aRow(2_000n + far, { at: second + 60_000n });
    const deleted = Array.from({ length: count }, (_, nth) => aRow(2_000n + BigInt((nth + 1) * apart), { at: second }));
    const isDeleted = new Set(idsOf(deleted));
    for (const mirror of [(id: bigint) => id, (id: bigint) => 10_000n - id]) {
      const all = inOrder([...rows, ...deleted, live].map((row) => ({ ...row, id: mirror(row.id) })));
      const swept = sweep(all, (matching) => {
        const page = mirror(1n) === 1n ? matching.slice(0, 50) : matching.toReversed().slice(0, 50);
        return page.filter(({ id }) => !isDeleted.has(mirror(id)));
      });
      expect(swept.held.has(mirror(live.id))).toBe(true);
    }
  });

  test('deleted rows fill the first page of an account that shows nobody', () => {
    const all = [...Array.from({ length: 60 }, (_, nth) => aRow(BigInt(nth + 1))), aRow(5_000n)];
    const swept = sweep(all, (matching) => matching.slice(0, 50).filter(({ id }) => id > 60n));
    expect(swept.held.has(5_000n)).toBe(true);
  });

  test('a row on the first page is left out wherever a lower bound is sent', () => {
    const all = inOrder([...rows, aRow(25n)]);
    const swept = sweep(all, (matching, { after }) =>
      matching.filter(({ id }) => id !== 25n || after === null).slice(0, 50),
    );
    expect(isNoticed(swept)).toBe(true);
  });

  test('in a list without order a row anywhere is left out wherever a lower bound is sent', () => {
    const [hidden] = rows.slice(140, 165).toSorted((a, b) => hashOf(a) - hashOf(b));
    const swept = sweep(rows, (matching, question, nth) =>
      hashed(50)(
        matching.filter((row) => row !== hidden || question.after === null),
        question,
        nth,
      ),
    );
    expect(isNoticed(swept)).toBe(true);
  });

  test('the whole list shows a row that the filters leave out, once it has moved to the top', () => {
    const moved = aRow(1_505n);
    const swept = sweep(rows, (matching, { axis, after, before }, nth) => {
      const isWhole = axis === 'id' && after === 0n && before === null;
      return isWhole && nth > 10 ? [moved, ...matching.slice(0, 49)] : matching.slice(0, 50);
    });
    expect(isNoticed(swept)).toBe(true);
  });

  test('some rows show only in questions about few ids', () => {
    const all = inOrder([...rows, ...Array.from({ length: 20 }, (_, nth) => aRow(BigInt(nth) * 100n + 55n))]);
    const swept = sweep(all, (matching, { after, before }) => {
      const isNarrow = after !== null && before !== null && before - after < 100n;
      return matching.filter(({ id }) => id % 100n !== 55n || isNarrow).slice(0, 50);
    });
    expect(isNoticed(swept)).toBe(true);
  });

  const thousands = Array.from({ length: 20 }, (_, nth) => BigInt(nth) * 1_000n + 505n);

  test.each([
    ['a third up the list', [6_505n]],
    ['at random places', thousands.filter((id) => id !== 6_505n)],
  ] as const)('rows that came late show only with one filter, %s', (_, late) => {
    const before = rowsUpTo(2_000);
    const all = inOrder([...before, ...late.map((id) => aRow(id))]);
    const isLate = new Set<bigint>(late);
    const swept = sweep(
      all,
      (matching, question) =>
        matching
          .filter(({ id }) => !isLate.has(id) || (question.before === null && question.after !== 0n))
          .slice(0, 100),
      { held: idsOf(before), known: knownOf(idsOf(before)) },
    );
    expect(isNoticed(swept)).toBe(true);
  });

  test('the filters by id show nobody, the filters by date do', () => {
    const swept = sweep(rows, (matching, { axis }) => (axis === 'id' ? [] : matching.slice(0, 50)));
    expect(isNoticed(swept)).toBe(true);
  });

  test.each([
    ['older', second - 1_000_000n],
    ['newer', second + 1_000_000n],
  ] as const)('the filters by id leave out a row that is days %s than all others', (_, at) => {
    const all = inOrder([...rows, aRow(1_005n, { at })]);
    const swept = sweep(all, (matching, { axis }) =>
      matching.filter(({ id }) => id !== 1_005n || axis === 'date').slice(0, 50),
    );
    expect(isNoticed(swept)).toBe(true);
  });

  test.each([0n, 10n, 11n])('the id filters act after the cap, and dates are read %d hours late', (hours) => {
    const all = Array.from({ length: 53 }, (_, nth) => aRow(101n + BigInt(nth)));
    const late = (bound: bigint | null) => (bound === null ? null : bound + hours * 3_600n);
    for (const isFalling of [true, false]) {
      const shown = isFalling ? all.slice(-50) : all.slice(0, 50);
      const swept = sweep(shown, (matching, question) => {
        const { axis, after, before } = question;
        const found =
          axis === 'id' ? matching : toMatching(all, { ...question, after: late(after), before: late(before) });
        return isFalling ? found.toReversed().slice(0, 50) : found.slice(0, 50);
      });
      expect([isFalling, isNoticed(swept)]).toEqual([isFalling, true]);
    }
  });
});

test('R12: an answer that comes from a cache is a doubt', () => {
  const rows = rowsUpTo(100);
  const swept = sweep(rows, (matching, _, nth) =>
    aPage(matching.slice(0, 30), { echo: nth < 5 ? 'absent' : 'matches', cached: nth === 7 }),
  );
  expect(swept.done).toMatchObject({
    certificate: 'assumed',
    risk: 'doubt',
    reason: 'answers came from a cache, although none was asked for',
  });
});

describe('what an answer is expected to show', () => {
  const range: Question = { axis: 'id', purpose: 'range', from: 10n, to: 50n, after: 9n, before: 51n, since: null };
  const held = [
    { id: 20n, firstSeenAt: -1, missingSince: null },
    { id: 30n, firstSeenAt: 3, missingSince: null },
    { id: 40n, firstSeenAt: 8, missingSince: null },
    { id: 60n, firstSeenAt: -1, missingSince: null },
  ];
  const times = { sentAt: 5, sweepStartedAt: 0 };

  test('every id in its range that was stored before it was sent, also by this sweep', () => {
    const asked = toExpectedIds(range, 0) as NonNullable<ReturnType<typeof toExpectedIds>>;
    expect(findUnshown(asked, [], held, times)).toEqual([
      { id: 20n, old: true },
      { id: 30n, old: false },
    ]);
  });

  test('nothing where it speaks of dates or of one id', () => {
    expect(toExpectedIds({ ...range, axis: 'date' }, 0)).toBe(null);
    expect(toExpectedIds({ ...range, purpose: 'alone' }, 0)).toBe(null);
  });

  test('more than may be gone at once, and those next to a walk first', () => {
    expect(toExpectedIds(range, 100)).toMatchObject({ limit: 64, fromTop: false });
    expect(toExpectedIds(range, 10_000)).toMatchObject({ limit: 201 });
    expect(toExpectedIds({ ...range, purpose: 'walk', after: null }, 0)).toMatchObject({ fromTop: true });
  });
});

describe('the same reasoning over other ranges', () => {
  test('a quiet poll costs one request and is assumed', () => {
    const rows = rowsUpTo(300);
    const { capacity } = sweep(rows, capped(50)).done;
    const plan: Plan = { rigor: 'poll', from: 3_001n, capacity };
    const quiet = sweep(rows, capped(50), { plan });
    expect(quiet.steps).toHaveLength(1);
    expect(quiet.done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
    const more = rowsUpTo(420);
    const busy = sweep(more, capped(50), { plan });
    expect(lostOf(more.slice(300), busy)).toEqual([]);
    expect(busy.done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
    // Whether the filters reach beyond a page is a matter of the sweep.
    expect(sweep(more, (matching) => matching.slice(-50), { plan }).done).toMatchObject({ risk: 'harmless' });
    const { before } = busy.steps.at(-1) as Step;
    expect(ask(withLeft(before, 0))).toMatchObject({ kind: 'done', certificate: 'unproven' });
  });

  test('a poll takes the page size from the sweep: a few new ones cost two requests', () => {
    const { capacity } = sweep(rowsUpTo(300), capped(50)).done;
    const { steps } = sweep(rowsUpTo(305), capped(50), { plan: { rigor: 'poll', from: 3_001n, capacity } });
    expect(steps).toHaveLength(2);
  });

  test.each([
    ['pages end at different lengths', { largestRow: 3_000, uneven: true }],
    ['rows may nearly fill a page', { largestRow: 38_000, uneven: false }],
  ])('a poll knows from the sweep that %s', (_, seen) => {
    const rows = [3_010n, 3_020n, 3_030n, 3_040n, 3_050n].map((id) => aRow(id, id === 3_030n ? { bytes: 38_000 } : {}));
    const ends: Rule = (matching, ...asked) =>
      cutByBytes(40_000)(
        matching.toSorted((a, b) => a.bytes - b.bytes || hashOf(a) - hashOf(b)),
        ...asked,
      );
    const capacity = { count: 40, bytes: 40_400, order: 'mixed', longest: 40, ...seen } as const;
    expect(lostOf(rows, sweep(rows, ends, { plan: { rigor: 'poll', from: 3_001n, capacity } }))).toEqual([]);
  });

  test('a poll reads on behind its last row: one too large for the rest of the page may follow', () => {
    const { capacity } = sweep(rowsUpTo(300), cutByBytes(40_000)).done;
    const rows = [...rowsUpTo(305), aRow(3_055n, { bytes: 39_500 }), aRow(3_060n)];
    const swept = sweep(rows, cutByBytes(40_000), { plan: { rigor: 'poll', from: 3_001n, capacity } });
    expect(lostOf(rows.slice(300), swept)).toEqual([]);
  });

  test.each([
    ['rising', (rows: readonly ListedRow[]) => rows],
    ['falling', (rows: readonly ListedRow[]) => rows.toReversed()],
    ['without order', (rows: readonly ListedRow[]) => rows.toSorted((a, b) => hashOf(a) - hashOf(b))],
  ] as const)(
    'a poll loses nobody when pages became a fifth of what they were since the sweep: a list %s',
    (_, order) => {
      const old = rowsUpTo(300);
      const { capacity } = sweep(old, (matching) => order(matching).slice(0, 100)).done;
      for (const [arrived, page] of [
        [60, 30],
        [60, 20],
        [30, 10],
      ] as const) {
        const rows = rowsUpTo(300 + arrived);
        const plan = { rigor: 'poll', from: 3_001n, capacity } as const;
        const swept = sweep(rows, (matching) => order(matching).slice(0, page), { plan });
        expect(lostOf(rows.slice(300), swept)).toEqual([]);
      }
    },
  );

  test('a poll that brings something asks once more in a list in order, and both halves in any other', () => {
    const rows = rowsUpTo(304);
    const requests = (rule: Rule) => {
      const { capacity } = sweep(rows.slice(0, 300), rule).done;
      return sweep(rows, rule, { plan: { rigor: 'poll', from: 3_001n, capacity } }).steps.length;
    };
    expect([requests(capped(100)), requests(falling(100)), requests(hashed(100))]).toEqual([2, 2, 3]);
  });

  test('a recheck is cut at the ids that are held: each question expects less than half a page', () => {
    const rows = rowsUpTo(2_000);
    const all = knownOf(idsOf(rows));
    const fifths = { ...all, positions: all.positions.filter((_, nth) => nth % 5 === 4), stride: 5 };
    for (const [rule, known] of [
      [capped(100), all],
      [falling(100), all],
      [hashed(100), all],
      [capped(100), fifths],
    ] as const) {
      const { done, steps } = sweep(rows, rule, { held: idsOf(rows), known });
      expect(done.certificate).toBe('proven');
      const lengths = steps
        .filter(({ question }) => question.purpose === 'range' && question.to !== null)
        .map(({ answer }) => (answer.kind === 'page' ? answer.rows.length : 0));
      expect(lengths.filter((length) => length < 50).length).toBeGreaterThan(lengths.length * 0.85);
    }
  });

  test('stored after each answer and read back, a sweep goes on as if nothing had happened', () => {
    const run = (store: (state: State) => State) => {
      const rows = rowsUpTo(100);
      const questions: Question[] = [];
      let state = begin({});
      for (;;) {
        const next = ask(state);
        if (next === null || 'kind' in next) return { questions, next };
        questions.push(next);
        const shown = hashed(20)(toMatching(rows, next), next, 0) as readonly ListedRow[];
        state = store(learn(state, next, aPage(shown)));
      }
    };
    expect(run(restore)).toEqual(run((state) => state));
  });

  test('a stretch without positions asks nothing', () => {
    expect(sweep(rowsUpTo(10), capped(5), { plan: { from: 50n, to: 49n } }).steps).toEqual([]);
  });

  test.each([-11n, 0n, 10n])('by date, whatever zone the source reads a date in (%d hours late)', (hours) => {
    const rows = rowsUpTo(600);
    const late = (bound: bigint | null) => (bound === null ? null : bound + hours * 3_600n);
    const plan = { axis: 'date', from: rows[100]?.at as bigint, to: rows[499]?.at as bigint } as const;
    const swept = sweep(
      rows,
      (_, question) => {
        expect(question.axis).toBe('date');
        return toMatching(rows, { ...question, after: late(question.after), before: late(question.before) }).slice(
          0,
          300,
        );
      },
      { plan },
    );
    expect(lostOf(rows.slice(100, 500), swept)).toEqual([]);
    expect(swept.done).toMatchObject({ certificate: 'assumed', risk: 'doubt', open: [] });
  });

  test('by date, more in an hour than a page holds cannot be told apart', () => {
    const rows = Array.from({ length: 200 }, (_, nth) => aRow(BigInt(nth + 1), { at: second + BigInt(nth) }));
    const plan = { axis: 'date', from: second - 86_400n, to: second + 86_400n } as const;
    const { done, steps } = sweep(rows, capped(50), { plan });
    expect(done.certificate).toBe('unproven');
    expect(done.reason).toContain('the time zone of the date filter is not known well enough');
    expect(steps.length).toBeLessThan(40);
  });

  test('by date, a source that does not honour its date filters is unproven', () => {
    const rows = rowsUpTo(600);
    const plan = { axis: 'date', from: second + 250_000n, to: second + 260_000n } as const;
    const { done } = sweep(rows, () => rows.slice(0, 50), { plan });
    expect(done).toMatchObject({
      certificate: 'unproven',
      reason: 'the source does not honour its date filters',
    });
  });

  test('dates are tried only where a sweep by ids leaves a doubt', () => {
    const rows = rowsUpTo(200);
    const doubtful: Rule = (matching) => aPage(matching.slice(0, 50), { cached: true });
    const { capacity } = sweep(rows, capped(50)).done;
    const tries = (rule: Rule, plan: Plan = {}, list: readonly ListedRow[] = rows) =>
      sweep(list, rule, { plan }).done.tryDates;
    expect(tries(doubtful)).toBe(true);
    expect(tries(capped(50))).toBe(false);
    expect(tries(doubtful, { axis: 'date', from: second, to: second + 200_000n })).toBe(false);
    expect(tries(doubtful, { rigor: 'poll', from: 1_500n, capacity })).toBe(false);
    expect(tries(doubtful, {}, [])).toBe(false);
  });

  test('a poll marks what is gone, and is assumed', () => {
    const rows = rowsUpTo(300);
    const { capacity } = sweep(rows, capped(50)).done;
    const { done } = sweep(rows, capped(50), { plan: { rigor: 'poll', from: 3_001n, capacity }, held: [3_005n] });
    expect(done).toMatchObject({ certificate: 'assumed', risk: 'harmless', absent: [3_005n] });
  });

  test('a poll is told of no order by a sweep that read by date', () => {
    const rows = rowsUpTo(200);
    const plan = { axis: 'date', from: second, to: rows.at(-1)?.at as bigint } as const;
    expect(sweep(rows, capped(150), { plan }).done.capacity.order).toBe('mixed');
  });

  test('a poll is told of no order where one page was out of order', () => {
    const orderOf = (rule: Rule) => sweep(rowsUpTo(200), rule).done.capacity.order;
    expect(orderOf(capped(50))).toBe('ascending');
    expect(orderOf(falling(50))).toBe('descending');
    expect(
      orderOf((matching, _, nth) =>
        nth === 0 ? [...matching.slice(1, 50), ...matching.slice(0, 1)] : matching.slice(0, 50),
      ),
    ).toBe('mixed');
  });

  test('a sweep that an earlier version stored goes on with the facts that it knew', () => {
    const { facts } = begin({ heldBefore: 7 });
    const { sizes, longestBefore, ...older } = facts;
    expect(decodeFacts(encode(older as typeof facts))).toEqual({ ...facts, sizes, longestBefore });
  });

  test('taken up again after long, a sweep asks no closed range again and believes no page size of then', () => {
    const rows = rowsUpTo(600);
    let state = begin({});
    const shown = new Set<bigint>();
    const answer = (cap: number, asked: Question[] = []) => {
      const question = ask(state);
      if (question === null || 'kind' in question) return false;
      asked.push(question);
      const page = toMatching(rows, question).slice(0, cap);
      for (const { id } of page) shown.add(id);
      state = learn(state, question, aPage(page));
      return true;
    };
    for (let asked = 0; asked < 12; asked++) answer(50);
    const closed = closedOf(state);
    expect(closed.length).toBeGreaterThan(3);
    state = renew(state);
    expect(closedOf(state).map(({ from, to }) => [from, to])).toEqual(closed.map(({ from, to }) => [from, to]));
    // Overnight the pages have become less than half as long.
    const asked: Question[] = [];
    while (answer(20, asked));
    expect(idsOf(rows).filter((id) => !shown.has(id))).toEqual([]);
    const again = asked.filter(
      ({ purpose, from }) => purpose === 'range' && closed.some((range) => range.from === from),
    );
    expect(again).toEqual([]);
  });

  test('taken up again after long, when only pages with both bounds have become shorter', () => {
    const rows = rowsUpTo(600);
    const shown = new Set<bigint>();
    let state = begin({});
    for (let asked = 0; ; asked++) {
      if (asked === 6) state = renew(state);
      const question = ask(state);
      if (question === null || 'kind' in question) break;
      const cap = asked >= 6 && question.before !== null ? 20 : 50;
      const page = toMatching(rows, question).toReversed().slice(0, cap);
      for (const { id } of page) shown.add(id);
      state = learn(state, question, aPage(page));
    }
    expect(idsOf(rows).filter((id) => !shown.has(id))).toEqual([]);
  });
});

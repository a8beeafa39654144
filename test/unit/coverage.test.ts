// The invariants of domain/coverage.ts, one by one, on servers whose semantics are written out here.

import { describe, expect, test } from 'vitest';
import { ask, begin, learn, renew } from '../../src/domain/coverage.ts';
import { dateSlackSeconds } from '../../src/domain/next-question.ts';
import type { Answer, Page, Question } from '../../src/domain/question.ts';
import { isInside } from '../../src/domain/range.ts';
import { type State, toChanges } from '../../src/domain/sweep-state.ts';
import { createSimulatedSource, type SimulatedSource, type Traits } from '../support/simulated-source.ts';
import { restore, runSweep, type SweepOptions } from '../support/simulated-sweep.ts';

function createServer(count: number, traits: Partial<Traits> = {}, seed = 7): SimulatedSource {
  const plain = { order: 'ascending', cap: null, inclusiveAfter: false, inclusiveBefore: false } as const;
  return createSimulatedSource(seed, { kind: 'no cap', still: true, count, traits: { ...plain, ...traits } });
}

function sweep(source: SimulatedSource, options: Partial<SweepOptions> = {}) {
  return runSweep(source, { held: new Set(), ...options });
}

/** A server that answers every question by a rule of the test's own. */
function createRuled(count: number, rule: (question: Question, page: Page) => Answer, traits: Partial<Traits> = {}) {
  const source = createServer(count, traits);
  return {
    ...source,
    answer(question: Question): Answer {
      const answer = source.answer(question);
      return answer.kind === 'page' ? rule(question, answer) : answer;
    },
  };
}

const page = (ids: readonly bigint[], more: Partial<Page> = {}): Page => ({
  kind: 'page',
  rows: ids.map((id) => ({ id, at: null })),
  bytes: 150 + ids.length * 1000,
  echo: 'matches',
  weakEmpty: false,
  unheld: ids,
  missing: [],
  ...more,
});

const upTo = (last: number) => Array.from({ length: last }, (_, index) => BigInt(index + 1) * 10n);

describe('I1: a range is closed only by an empty answer, or by one that this source has shown it can double', () => {
  test('half a page closes, one row more does not', () => {
    const opened = () => {
      let state = begin({});
      state = learn(state, ask(state) as Question, page(upTo(100)));
      // The stretch that was shown, asked with both bounds: what a page with both bounds can hold.
      return learn(state, ask(state) as Question, page(upTo(99)));
    };
    const answer = (rows: number) => {
      const state = opened();
      const question = ask(state) as Question;
      const first = question.from as bigint;
      const ids = Array.from({ length: rows }, (_, index) => first + BigInt(index));
      const after = learn(state, question, page(ids));
      return after.ranges.filter((range) => range.state === 'closed').length;
    };
    expect(answer(49)).toBe(1);
    expect(answer(50)).toBe(0);
    expect(answer(0)).toBe(1);
  });

  test('a page cut off by bytes is not taken for a short one', () => {
    let state = begin({});
    state = learn(state, ask(state) as Question, page(upTo(100)));
    state = learn(state, ask(state) as Question, page(upTo(99)));
    const question = ask(state) as Question;
    const large = learn(state, question, page([question.from as bigint], { bytes: 100_000 }));
    expect(large.ranges.some((range) => range.state === 'closed')).toBe(false);
  });

  test('on small pages counts prove nothing: only an empty answer closes', () => {
    const closings: number[] = [];
    sweep(createServer(60, { cap: 7 }), {
      onStep: (before, _, answer, after) => {
        const isMore =
          after.ranges.filter((r) => r.state === 'closed').length >
          before.ranges.filter((r) => r.state === 'closed').length;
        if (isMore && answer.kind === 'page') closings.push(answer.rows.length);
      },
    });
    expect(Math.max(...closings)).toBe(0);
  });

  test('pages that are smaller with both filters than with one are measured apart', () => {
    const result = sweep(createServer(300, { cap: 50, capOfTwoFilters: 24 }));
    expect(result.lost).toEqual([]);
    expect(result.done.certificate).toBe('proven');
  });
});

describe('I2: every position lies in a range or is an id that a whole answer showed', () => {
  test.each(['ascending', 'descending', 'shuffled'] as const)('in a list that is %s', (order) => {
    const shown = new Set<bigint>();
    sweep(createServer(200, { cap: 20, order }), {
      onStep: (_, __, answer, after) => {
        if (answer.kind === 'page') for (const row of answer.rows) shown.add(row.id);
        let next = 1n;
        for (const range of after.ranges) {
          for (let position = next; position < range.from; position++) expect(shown.has(position)).toBe(true);
          next = range.to === null ? -1n : range.to + 1n;
        }
        expect(next).toBe(-1n);
      },
    });
  });
});

describe('I3: a sweep ends', () => {
  test('each answer closes a range or leaves only smaller ones, and changes few', () => {
    sweep(createServer(300, { cap: 20, order: 'another on every request' }), {
      onStep: (before, question, _, after) => {
        if (question.purpose !== 'range') return;
        const { dropped, added } = toChanges(before, after);
        expect(added.length).toBeLessThan(20);
        for (const range of added.filter((one) => one.state === 'open')) {
          const parent = dropped.find((old) => isInside(old, range.from));
          expect(parent === undefined || parent.from !== range.from || parent.to !== range.to).toBe(true);
        }
      },
    });
  });

  test('a source that always has something new is left, and called unproven', () => {
    const source = createServer(0, { inventsIds: true });
    const result = sweep(source, { plan: { requestLimit: 200 } });
    expect(result.requests).toBe(200);
    expect(result.done).toMatchObject({ certificate: 'unproven', reason: 'the budget of requests is used up' });
    expect(result.done.open.length).toBeGreaterThan(0);
  });

  test('L15: an id of 2^63-1 is read like any other, and nothing beyond it is asked for', () => {
    const largest = 9_223_372_036_854_775_807n;
    for (const inclusiveAfter of [false, true]) {
      const source = createRuled(
        300,
        (question, answer) => {
          expect((question.after ?? 0n) <= largest && (question.before ?? 0n) <= largest).toBe(true);
          const isAsked = question.axis === 'id' && question.before === null && (question.after ?? 0n) < largest;
          return isAsked && answer.rows.length < 50
            ? { ...answer, rows: [...answer.rows, { id: largest, at: null }] }
            : answer;
        },
        { cap: 50, inclusiveAfter },
      );
      const held = new Set<bigint>();
      const result = sweep(source, { held });
      expect(held.has(largest)).toBe(true);
      expect(result.lost).toEqual([]);
      expect(result.done.certificate).toBe('proven');
    }
  });

  test('a body over the byte budget is abandoned, and its range is cut until the pieces fit', () => {
    for (const order of ['ascending', 'descending', 'shuffled'] as const) {
      const result = sweep(createServer(2000, { order }), { byteBudget: 200_000 });
      expect(result.lost).toEqual([]);
      expect(result.done.certificate).toBe('proven');
    }
  });

  test('an abandoned answer cuts its range inside it, whatever else it showed', () => {
    const state = begin({ from: 100n, to: 200n });
    const rows = [5n, 50n, 99n, 120n, 150n, 201n, 900n].map((id) => ({ id, at: null }));
    const { ranges } = learn(state, ask(state) as Question, { kind: 'overflow', rows });
    expect(ranges.length).toBeGreaterThan(1);
    // Side by side, from end to end of what was to be read.
    expect(
      ranges.map(({ from, to }, nth) => [from === (nth === 0 ? 100n : (ranges[nth - 1]?.to ?? 0n) + 1n), to]),
    ).toEqual(ranges.map(({ to }, nth) => [true, nth === ranges.length - 1 ? 200n : to]));
    for (const { from, to } of ranges)
      expect([from >= 100n, to !== null && to >= from && to <= 200n]).toEqual([true, true]);
  });
});

test('I4: an answer that proves to have been cut off reopens what was closed on more than half of it', () => {
  const reopened: number[] = [];
  const result = sweep(createServer(320, { cap: 50, dropped: 0.4, order: 'ascending' }, 3), {
    onStep: (before, _, __, after) => {
      const closed = new Set(before.ranges.filter((range) => range.state === 'closed').map((range) => range.from));
      reopened.push(after.ranges.filter((range) => range.state === 'open' && closed.has(range.from)).length);
    },
  });
  expect(Math.max(...reopened)).toBeGreaterThan(0);
  expect(result.lost).toEqual([]);
});

describe('I5: filters that are not honoured together end in a walk, assumed at best', () => {
  test.each([
    ['after wins', 'ascending'],
    ['before wins', 'descending'],
    ['or', 'ascending'],
    ['refuses both', 'descending'],
  ] as const)('L4: %s, in a list that is %s', (combine, order) => {
    const result = sweep(createServer(300, { cap: 50, combine, order }));
    expect(result.lost).toEqual([]);
    expect(result.done.certificate).toBe('assumed');
    expect(result.done.reason).toContain('afterid and beforeid together');
  });

  test('L5: a source that ignores its filters is never called complete', () => {
    const result = sweep(createServer(300, { cap: 50, ignores: 'all' }));
    expect(result.done.certificate).toBe('unproven');
    expect(result.requests).toBeLessThan(10);
  });

  test('a walk without order proves nothing', () => {
    const result = sweep(createServer(300, { cap: 50, combine: 'after wins', order: 'shuffled' }));
    expect(result.done.certificate).toBe('unproven');
  });
});

describe('I6: the echo', () => {
  test('L16: one contradiction ends every proof, though nothing is lost', () => {
    let asked = 0;
    const source = createRuled(300, (_, answer) => ({ ...answer, echo: ++asked === 5 ? 'differs' : 'matches' }), {
      cap: 50,
    });
    const result = sweep(source);
    expect(result.lost).toEqual([]);
    expect(result.done).toMatchObject({
      certificate: 'unproven',
      reason: 'the source repeats other filters than were sent',
    });
  });

  test('L16: an absent echo is assumed at best', () => {
    expect(sweep(createServer(300, { cap: 50, echo: 'absent' })).done.certificate).toBe('assumed');
  });

  test('a recent window that the source silently puts in place of the lower bound is betrayed by its echo alone', () => {
    const windowFrom = createServer(300).visibleNow()[120] as bigint;
    const source = createRuled(
      300,
      (question, answer) => ({
        ...answer,
        rows: answer.rows.filter((row) => row.id >= windowFrom),
        echo: (question.after ?? 0n) < windowFrom - 1n && question.after !== null ? 'differs' : 'matches',
      }),
      { cap: null },
    );
    const result = sweep(source);
    expect(result.lost.length).toBe(120);
    expect(result.done.certificate).toBe('unproven');
  });

  test('L8: an empty answer without a list is assumed at best', () => {
    expect(sweep(createServer(300, { cap: 50, emptyIsWeak: true })).done.certificate).toBe('assumed');
  });
});

describe('I7: a bound that comes back is inclusive, and is stepped over from then on', () => {
  test.each([1, 2, 7, 50])('L3: pages of %d', (cap) => {
    for (const order of ['ascending', 'descending'] as const) {
      const result = sweep(createServer(60, { cap, order, inclusiveAfter: true, inclusiveBefore: true }));
      expect(result.lost).toEqual([]);
      expect(result.done.certificate).not.toBe('unproven');
    }
  });
});

describe('I8: an id that turns up in a closed range must be shown by the question that closed it', () => {
  test('hidden from both filters, shown to one: nothing is proven', () => {
    const hidden = new Set<bigint>();
    const source = createRuled(
      300,
      (question, answer) => {
        if (hidden.size === 0) hidden.add(answer.rows[20]?.id as bigint);
        if (question.purpose === 'witness' || question.after === null) return answer;
        return { ...answer, rows: answer.rows.filter((row) => !hidden.has(row.id)) };
      },
      { cap: 50 },
    );
    const result = sweep(source);
    expect(result.done).toMatchObject({
      certificate: 'unproven',
      reason: 'the source shows applications by one question that it hides from another',
    });
  });

  test('committed late, after its range was closed: read again, and proven', () => {
    let late: bigint | undefined;
    const source = createRuled(
      300,
      (question, answer) => {
        late ??= answer.rows[20]?.id;
        if (question.purpose === 'witness' || question.purpose === 'again') return answer;
        return { ...answer, rows: answer.rows.filter((row) => row.id !== late) };
      },
      { cap: 50 },
    );
    const held = new Set<bigint>();
    const result = sweep(source, { held });
    expect(held.has(late as bigint)).toBe(true);
    expect(result.done.certificate).toBe('proven');
  });
});

describe('I9: a held id that a closed range did not show is asked alone', () => {
  const gone = (count: number) => Array.from({ length: count }, (_, index) => 2_000_000n + BigInt(index) * 3n);

  test('not back: absent, and the proof stands', () => {
    const source = createServer(300, { cap: 50, order: 'descending' });
    const between = source.visibleNow().find((id, index, all) => all[index + 1] !== id + 1n) as bigint;
    const held = new Set([...source.visibleNow(), between + 1n]);
    const result = sweep(source, { held });
    expect(result.done).toMatchObject({ certificate: 'proven', absent: [between + 1n] });
  });

  test('back, and hidden again from the wide question: nothing is proven', () => {
    const source = createServer(300, { cap: 50 });
    const all = source.visibleNow();
    const hidden = all[100] as bigint;
    const hiding = createRuled(
      300,
      (question, answer) =>
        question.purpose === 'alone' ? answer : { ...answer, rows: answer.rows.filter((row) => row.id !== hidden) },
      { cap: 50 },
    );
    const result = sweep(hiding, { held: new Set(all) });
    expect(result.done.certificate).toBe('unproven');
    expect(result.done.absent).toEqual([]);
  });

  test('I10: more than twenty at once are not believed, and none is absent', () => {
    const source = createServer(300, { cap: 50 });
    const twenty = sweep(source, { held: new Set([...source.visibleNow(), ...gone(20)]) });
    const more = sweep(source, { held: new Set([...source.visibleNow(), ...gone(21)]) });
    expect(twenty.done.absent.length).toBe(20);
    expect(more.done).toMatchObject({ certificate: 'unproven', absent: [] });
    expect(more.done.reason).toContain('too many');
  });
});

describe('I11: what proven rests on', () => {
  test('witnesses that were not heard prove nothing', () => {
    const full = sweep(createServer(300, { cap: 50 }));
    const short = sweep(createServer(300, { cap: 50 }), { plan: { requestLimit: full.requests - 1 } });
    expect(full.done.certificate).toBe('proven');
    expect(short.done.certificate).toBe('unproven');
  });

  test('pages that shrink within the sweep are noticed by the widest question, asked again', () => {
    const result = sweep(createServer(300, { cap: 50, shrinksAt: 19, shrinksTo: 0.2 }));
    expect(result.done.certificate).not.toBe('proven');
  });

  test('a filter that acts after the cap passes for a small account at first, and the first evidence ends it', () => {
    const source = createServer(120, { cap: 50, order: 'descending', afterTheCap: 'before', datesAfterTheCap: true });
    const held = new Set<bigint>();
    const cold = sweep(source, { held });
    expect(cold.done.certificate).toBe('proven');
    expect(cold.lost.length).toBe(70);
    // Five arrive; the five oldest that we hold drop out of sight. A deletion at the far end of a single page is not believed.
    source.grow(5);
    const later = sweep(source, { held });
    expect(later.done.certificate).toBe('unproven');
    expect(later.done.absent).toEqual([]);
  });

  test.each(['before', 'after'] as const)(
    'beyond one page without order, a filter %s that acts after the cap is not believed',
    (which) => {
      for (const seed of [5, 7, 9, 11, 13]) {
        const traits = { cap: 20, order: 'shuffled', afterTheCap: which, datesAfterTheCap: true } as const;
        const result = sweep(createServer(120, traits, seed));
        expect(result.lost.length).toBeGreaterThan(0);
        expect(result.done.certificate).not.toBe('proven');
      }
    },
  );

  test('the date filters betray a filter that acts after the cap', () => {
    const source = createServer(400, { cap: 50, order: 'descending', afterTheCap: 'before' }, 5);
    const days = (source.visibleNow().length * 600) / 86_400;
    expect(days).toBeGreaterThan(1);
    expect(sweep(source).done.certificate).not.toBe('proven');
  });

  test('the date filter is asked beyond the earliest and the latest date that was shown', () => {
    const shown: bigint[] = [];
    const asked: Question[] = [];
    sweep(createServer(60, { cap: 20 }), {
      onStep: (_, question, answer) => {
        if (question.axis === 'date') asked.push(question);
        else if (answer.kind === 'page') shown.push(...answer.rows.flatMap(({ at }) => (at === null ? [] : [at])));
      },
    });
    const latest = shown.reduce((a, b) => (a > b ? a : b));
    const earliest = shown.reduce((a, b) => (a < b ? a : b));
    expect(asked.map(({ after, before }) => [after, before])).toEqual([
      [null, earliest - dateSlackSeconds],
      [latest + dateSlackSeconds, null],
    ]);
  });

  test('fifteen applications are too few to tell whether pages are cut short, sixteen are not', () => {
    expect(sweep(createServer(15)).done).toMatchObject({
      certificate: 'assumed',
      reason: 'there are too few applications to tell whether pages are cut short',
    });
    expect(sweep(createServer(16)).done.certificate).toBe('proven');
  });

  test('the few applications of a last day are proven by the long page that a witness shows before them', () => {
    const source = createServer(300, { cap: 50 });
    const from = source.visibleNow().at(-5) as bigint;
    expect(sweep(source, { plan: { from } }).done.certificate).toBe('proven');
  });

  test('an account that shows nothing at all is assumed to be empty', () => {
    expect(sweep(createServer(0)).done).toMatchObject({ certificate: 'assumed', requests: 1 });
  });
});

describe('I12: read again, a range is closed up to the last held id shown, in a list that is cut where it ends', () => {
  const toKnown = (source: SimulatedSource) => ({ positions: source.visibleNow(), stride: 1 });
  const isPosted = (state: State) => state.ranges.some((range) => range.posted);

  test.each(['ascending', 'descending'] as const)('which costs 1.2 requests a page when it is %s', (order) => {
    const source = createServer(10_000, { cap: 100, order });
    const again = sweep(source, { held: new Set(source.visibleNow()), known: toKnown(source) });
    expect(again.done.certificate).toBe('proven');
    expect(again.requests).toBeLessThan(1.3 * 100);
  });

  test.each(['ascending', 'descending'] as const)(
    'L6: and finds who committed late in between, when it is %s',
    (order) => {
      const source = createServer(1000, { cap: 50, order }, 9);
      const held = new Set(source.visibleNow());
      const known = toKnown(source);
      source.commitLate(40);
      const late = source.visibleNow().filter((id) => !held.has(id));
      expect(late.length).toBeGreaterThan(10);
      const again = sweep(source, { held, known });
      expect(isPosted(again.state)).toBe(true);
      expect(late.filter((id) => !held.has(id))).toEqual([]);
      expect(again.done.certificate).toBe('proven');
    },
  );

  test.each(['by date', 'shuffled'] as const)('a list chosen %s and then sorted loses nobody by it', (order) => {
    for (const seed of [3, 9, 10, 11]) {
      const source = createServer(1000, { cap: 50, order, shown: 'ascending' }, seed);
      const held = new Set(source.visibleNow());
      const known = toKnown(source);
      source.commitLate(40);
      const again = sweep(source, { held, known });
      expect(again.lost).toEqual([]);
      if (order === 'shuffled') expect(isPosted(again.state)).toBe(false);
    }
  });

  test('the first page that skips a held id opens again whatever rested on it', () => {
    const plain = createServer(1000, { cap: 50 });
    const all = plain.visibleNow();
    let skipping = false;
    const source = createRuled(
      1000,
      (question, answer) =>
        skipping && question.before === null ? { ...answer, rows: answer.rows.filter((_, at) => at !== 7) } : answer,
      { cap: 50 },
    );
    let [most, after] = [0, 0];
    sweep(source, {
      held: new Set(all),
      known: toKnown(plain),
      onStep: (before, _, __, state) => {
        const posted = (one: State) => one.ranges.filter((range) => range.posted).length;
        most = Math.max(most, posted(before));
        if (skipping && posted(before) > posted(state)) after = posted(before);
        skipping ||= posted(state) > 10;
      },
    });
    expect(most).toBeGreaterThan(10);
    expect(after).toBe(most);
  });

  test('without ids held from before no list is believed so', () => {
    const result = sweep(createServer(1000, { cap: 50 }));
    expect(isPosted(result.state)).toBe(false);
  });
});

describe('the same machine over other ranges', () => {
  test('a quiet poll costs one request and is assumed', () => {
    const source = createServer(300, { cap: 50 });
    const held = new Set<bigint>();
    const { capacity } = sweep(source, { held }).done;
    const from = source.visibleNow().at(-10) as bigint;
    const quiet = sweep(source, { held, plan: { rigor: 'poll', from, capacity } });
    expect(quiet.requests).toBe(1);
    expect(quiet.done.certificate).toBe('assumed');
    source.grow(120);
    const busy = sweep(source, { held, plan: { rigor: 'poll', from, capacity } });
    expect(busy.lost).toEqual([]);
    expect(source.visibleNow().every((id) => held.has(id))).toBe(true);
  });

  test('a recheck is cut at the ids that are held, also with several questions in flight', () => {
    for (const order of ['ascending', 'descending', 'shuffled'] as const) {
      const source = createServer(2000, { cap: 100, order });
      const held = new Set<bigint>();
      const first = sweep(source, { held });
      const positions = source.visibleNow().filter((_, index) => index % 5 === 4);
      const known = { positions, stride: 5 };
      const again = sweep(source, { held, known, lanes: 4 });
      expect(again.done.certificate).toBe('proven');
      expect(again.requests).toBeLessThan(first.requests);
      expect(again.requests).toBeLessThan(order === 'shuffled' ? 3.4 * 20 : 2.2 * 20);
    }
  });

  test('a proven sweep of a sorted list costs three requests a page, and a few', () => {
    for (const order of ['ascending', 'descending'] as const) {
      expect(sweep(createServer(10_000, { cap: 100, order })).requests).toBeLessThan(3.1 * 100);
    }
  });

  test.each([
    ['+10:00, as ours', 0],
    ['Melbourne in summer', -1],
    ['UTC', 10],
    ['a zone west of Greenwich', 15],
  ])('by date a sweep is assumed at best, and loses nobody when the source reads bounds as %s', (_, hours) => {
    for (const order of ['ascending', 'descending'] as const) {
      const source = createServer(400, { cap: 150, order, dateShiftSeconds: hours * 3600 }, 22);
      const result = sweep(source, { plan: { axis: 'date', from: 0n } });
      expect(result.lost).toEqual([]);
      expect(result.done.certificate).toBe('assumed');
    }
  });

  test('by date a busy account cannot be cut finer than the unknown zone, and the reason says what to do instead', () => {
    const source = createServer(400, { cap: 50 }, 22);
    const held = new Set<bigint>();
    const byDate = sweep(source, { held, plan: { axis: 'date', from: 0n } });
    expect(byDate.done).toMatchObject({ certificate: 'unproven', reason: expect.stringContaining('read by ids') });
    expect(sweep(source, { held }).done.certificate).toBe('proven');
  });

  test('taken up again after long, a sweep asks no closed range again and believes no page size of then', () => {
    const source = createServer(600, { cap: 50 });
    let state = begin({});
    for (let asked = 0; asked < 12; asked++) {
      const question = ask(state) as Question;
      state = learn(state, question, source.answer(question));
    }
    const closed = state.ranges.filter((range) => range.state === 'closed');
    expect(closed.length).toBeGreaterThan(3);
    // Overnight the pages have become half as long.
    const smaller = createServer(600, { cap: 24 });
    state = renew(state);
    const shown = new Set(source.visibleNow().slice(0, 200));
    for (;;) {
      const next = ask(state);
      if (next === null || 'kind' in next) break;
      if (next.purpose === 'range') {
        expect(closed.some((range) => range.from === next.from && range.to === next.to)).toBe(false);
      }
      const answer = smaller.answer(next);
      if (answer.kind === 'page') for (const row of answer.rows) shown.add(row.id);
      state = learn(state, next, answer);
    }
    expect(smaller.visibleNow().filter((id) => !shown.has(id))).toEqual([]);
  });

  test('stored after each answer and read back, a sweep goes on as if nothing had happened', () => {
    const run = (store: (state: State) => State) => {
      const source = createServer(200, { cap: 20, order: 'shuffled' });
      const questions: Question[] = [];
      let state = begin({});
      for (;;) {
        const next = ask(state);
        if (next === null || 'kind' in next) return { questions, next };
        questions.push(next);
        state = store(learn(state, next, source.answer(next)));
      }
    };
    expect(run(restore)).toEqual(run((state) => state));
  });
});

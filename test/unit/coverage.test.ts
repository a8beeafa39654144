// The rules at the top of src/domain/coverage/coverage.ts, each by its number, on servers whose behaviour is written out here.
import { describe, expect, test } from 'vitest';
import { isShortByBytes } from '../../src/domain/coverage/capacity.ts';
import { ask, begin, type Done, learn, type Plan, renew } from '../../src/domain/coverage/coverage.ts';
import type { Known } from '../../src/domain/coverage/next-question.ts';
import type { Answer, Page, Question, Row } from '../../src/domain/coverage/question.ts';
import { isInside } from '../../src/domain/coverage/range.ts';
import { findMissing, type Held, toAsked } from '../../src/domain/coverage/seen.ts';
import { findChanges, type State } from '../../src/domain/coverage/sweep-state.ts';
import { restore } from '../simulation/simulated-reader.ts';

const second = 1_790_000_000n;
const aRow = (id: bigint, more: Partial<Row> = {}): Row => ({ id, at: second + id * 60n, bytes: 1_000, ...more });

/** Rows with ids 10, 20, 30 and so on. */
const rowsUpTo = (count: number) => Array.from({ length: count }, (_, nth) => aRow(BigInt(nth + 1) * 10n));

const idsOf = (rows: readonly Row[]) => rows.map(({ id }) => id);

function aPage(rows: readonly Row[], more: Partial<Page> = {}): Page {
  const bytes = 400 + rows.reduce((sum, row) => sum + row.bytes, 0);
  const shared = { echo: 'matches', weakEmpty: false, cached: false, unheld: [], missing: [] } as const;
  return { kind: 'page', rows, bytes, ...shared, ...more };
}

/** What a server makes of a question: its answer, or the rows of one. `matching` rises by id, bounds excluded. */
type Rule = (matching: readonly Row[], question: Question, nth: number) => Answer | readonly Row[];

const toMatching = (rows: readonly Row[], { axis, after, before, since }: Question) =>
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
  readonly known?: Known;
  /** Ids stored before the sweep. */
  readonly held?: readonly bigint[];
  readonly onStep?: (step: Step) => void;
}

/** Sweeps by the rule. What was shown a moment ago is expected back, as the store tells it. */
function sweep(rows: readonly Row[], rule: Rule, { plan, known, held = [], onStep }: Sweeping = {}): Swept {
  const memory = new Map<bigint, Held>(held.map((id) => [id, { id, firstSeenAt: -1 }]));
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
  const asked = toAsked(question, heldBefore);
  const times = { sentAt: now, sweepStartedAt: 0 };
  const missing = asked === null ? [] : findMissing(asked, answer.rows, held.values(), times);
  const unheld = [...new Set(idsOf(answer.rows))].filter((id) => !held.has(id));
  for (const id of unheld) held.set(id, { id, firstSeenAt: now });
  return { ...answer, unheld, missing };
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
const hashOf = ({ id }: Row) => Number((id * 7_919n) % 1_009n);
const hashed =
  (cap: number): Rule =>
  (matching) =>
    matching.toSorted((a, b) => hashOf(a) - hashOf(b)).slice(0, cap);

const lostOf = (rows: readonly Row[], { held }: Swept) => idsOf(rows).filter((id) => !held.has(id));
const closedOf = ({ ranges }: State) => ranges.filter(({ state }) => state === 'closed');
const knownOf = (ids: readonly bigint[]): Known => ({ positions: [...ids], stride: 1, uneven: false });

/** Asks the next question and answers it with these rows. */
function answerNext(state: State, rows: readonly Row[], more: Partial<Page> = {}): State {
  return learn(state, ask(state) as Question, aPage(rows, more));
}

/** A sweep of a long list by pages of 100 that has seen a whole page with both bounds. */
function opened(): State {
  const rows = rowsUpTo(1_000);
  let state = begin({});
  while (state.facts.both.rows < 100) {
    const question = ask(state) as Question;
    state = learn(state, question, aPage(toMatching(rows, question).slice(0, 100)));
  }
  return state;
}

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
    const isShort = (bytes: number, largestRow: number) => isShortByBytes(capacity, bytes, largestRow, false);
    expect([isShort(45_000, 4_000), isShort(45_000, 6_000), isShort(24_000, 90_000)]).toEqual([true, false, true]);
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
    expect(swept.done.certificate).toBe('proven');
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
      (rows: readonly Row[]) => rows,
      (rows: readonly Row[]) => rows.toReversed(),
      (rows: readonly Row[]) => rows.toSorted((a, b) => hashOf(a) - hashOf(b)),
    ].entries()) {
      const rows = rowsUpTo(200).map((row) => (row.id % 430n === 0n ? { ...row, bytes: 38_000 } : row));
      const swept = sweep(rows, (matching) => {
        const shown: Row[] = [];
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

  test('2^63-1 is read like any other id, and nothing beyond it is asked for', () => {
    const largest = 2n ** 63n - 1n;
    const rows = [...rowsUpTo(100), aRow(largest, { at: second })];
    const swept = sweep(rows, (matching, { after, before, axis }) => {
      if (axis === 'id') expect((after ?? 0n) <= largest && (before ?? 0n) <= largest).toBe(true);
      return matching.slice(0, 30);
    });
    expect(lostOf(rows, swept)).toEqual([]);
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

  test('a body over the byte budget is abandoned, and its range is cut until the pieces fit', () => {
    for (const rule of [capped(5_000), falling(5_000), hashed(5_000)]) {
      const rows = rowsUpTo(1_000);
      const swept = sweep(rows, (...asked) => {
        const shown = rule(...asked) as readonly Row[];
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
        const shown = capped(40)(matching, { purpose, from, to } as Question, nth) as readonly Row[];
        const isShort = shown.length < 20 && shown.some(({ id }) => id === 500n) && purpose === 'range';
        if (!isShort || !isHidden) return shown;
        isHidden = false;
        return shown.filter(({ id }) => id !== 500n);
      },
      { held: idsOf(rows), known: knownOf(idsOf(rows)) },
    );
    expect(isHidden).toBe(false);
    expect(swept.steps.some(({ question }) => question.purpose === 'alone' && question.from === 500n)).toBe(true);
    expect(swept.done).toMatchObject({ risk: 'doubt', absent: [] });
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
  test('what one shape says is empty and another shows is read', () => {
    const rows = rowsUpTo(100);
    // With both bounds nothing beyond id 700 is shown.
    const swept = sweep(rows, (matching, { before, after }) =>
      before !== null && after !== null && after >= 700n ? [] : matching.slice(0, 20),
    );
    expect(lostOf(rows, swept)).toEqual([]);
    expect(swept.done.certificate).not.toBe('proven');
  });

  test('between two neighbours on a sorted page it need not be; without order it must', () => {
    const rows = rowsUpTo(400).map((row) => (row.id % 300n < 20n ? { ...row, bytes: 13_000 } : row));
    const confirmed = (choose: (rows: readonly Row[]) => readonly Row[]) => {
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
    expect(confirmed((list) => list.toSorted((a, b) => hashOf(a) - hashOf(b)))).toBeGreaterThan(7);
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
  const inclusive = (rows: readonly Row[], { axis, after, before, since }: Question, low: boolean, high: boolean) =>
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

  test('a bound that comes back beside others changes no question', () => {
    const rows = rowsUpTo(100);
    const { steps } = sweep(rows, (_, question) => inclusive(rows, question, true, true).slice(0, 30));
    const isBound = ({ after, before }: Question, { id }: Row) => id === after || id === before;
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
  const hiding = (rows: readonly Row[], at: bigint, plan?: Plan) =>
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
    ['an old one may have been hidden, and is a doubt', second, 'assumed', 'doubt'],
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

  test('twenty are believed, more are not, and then none is absent', () => {
    expect(recheck(goneAt(20)).done.absent).toHaveLength(20);
    const more = recheck(goneAt(21)).done;
    expect(more).toMatchObject({ certificate: 'unproven', absent: [] });
    expect(more.reason).toContain('too many');
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
    const short = sweep(rows, capped(50), { plan: { requestLimit: full.steps.length - 1 } });
    expect(full.done.certificate).toBe('proven');
    expect(short.done.certificate).toBe('unproven');
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

  test.each(['before', 'after'] as const)('a filter (%s) that acts after the cap is not believed', (late) => {
    const rows = rowsUpTo(120);
    const swept = sweep(rows, (_, question, nth) => {
      const page = hashed(20)(toMatching(rows, { ...question, [late]: null }), question, nth) as readonly Row[];
      return toMatching(page, question);
    });
    expect(lostOf(rows, swept).length).toBeGreaterThan(0);
    expect(swept.done.certificate).not.toBe('proven');
    expect(swept.done.risk).toBe('doubt');
  });

  test('the date filter is asked beyond the earliest and the latest date that was shown', () => {
    const rows = rowsUpTo(60);
    const { steps } = sweep(rows, capped(20));
    const [earliest, latest] = [rows[0]?.at as bigint, rows.at(-1)?.at as bigint];
    const asked = steps.map(({ question }) => question).filter(({ axis }) => axis === 'date');
    expect(asked.some(({ before }) => before !== null && before < earliest)).toBe(true);
    expect(asked.some(({ after }) => after !== null && after > latest)).toBe(true);
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
    const swept = sweep(shown, falling(50), { held: idsOf(rows.slice(0, 50)) });
    expect(swept.done).toMatchObject({ certificate: 'unproven', absent: [] });
  });
});

test('R12: an answer that comes from a cache is a doubt', () => {
  const rows = rowsUpTo(100);
  const swept = sweep(rows, (matching, _, nth) => aPage(matching.slice(0, 30), { cached: nth === 7 }));
  expect(swept.done).toMatchObject({
    certificate: 'assumed',
    risk: 'doubt',
    reason: 'answers came from a cache, although none was asked for',
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
    expect(lostOf(more.slice(300), sweep(more, capped(50), { plan }))).toEqual([]);
  });

  test('a recheck is cut at the ids that are held: each question expects less than half a page', () => {
    const rows = rowsUpTo(2_000);
    for (const rule of [capped(100), falling(100), hashed(100)]) {
      const { done, steps } = sweep(rows, rule, { held: idsOf(rows), known: knownOf(idsOf(rows)) });
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
        const shown = hashed(20)(toMatching(rows, next), next, 0) as readonly Row[];
        state = store(learn(state, next, aPage(shown)));
      }
    };
    expect(run(restore)).toEqual(run((state) => state));
  });

  test('taken up again after long, a sweep asks no closed range again and believes no page size of then', () => {
    const rows = rowsUpTo(600);
    let state = begin({});
    const shown = new Set<bigint>();
    const answer = (cap: number) => {
      const question = ask(state);
      if (question === null || 'kind' in question) return false;
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
    while (answer(20));
    expect(idsOf(rows).filter((id) => !shown.has(id))).toEqual([]);
  });
});

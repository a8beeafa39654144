// The rules of docs/coverage.md, each on a small server whose behaviour is written out here.
import { describe, expect, test } from 'vitest';
import { ask, begin, renew } from '../../../src/domain/coverage/coverage.ts';
import { learn } from '../../../src/domain/coverage/learn.ts';
import { contains, lastPosition, type Position } from '../../../src/domain/coverage/position.ts';
import type { Answer, ListedRow, PageAnswer, Question } from '../../../src/domain/coverage/question.ts';
import { decode, encode, type Plan, type State } from '../../../src/domain/coverage/state.ts';
import { createMemory, type Step, type SweepOptions, sweepBy } from '../../simulation/simulated-reader.ts';

const second = 1_790_000_000n;
const aRow = (id: bigint, more: Partial<ListedRow> = {}): ListedRow => {
  return { id, at: second + id * 60n, bytes: 1_000, ...more };
};

/** Rows with the ids 10, 20, 30 and so on. */
const rowsUpTo = (count: number) => Array.from({ length: count }, (_, nth) => aRow(BigInt(nth + 1) * 10n));
const idsOf = (rows: readonly Pick<ListedRow, 'id'>[]) => rows.map(({ id }) => id as Position);

function aPage(rows: readonly ListedRow[], more: Partial<PageAnswer> = {}): PageAnswer {
  const bytes = 400 + rows.reduce((sum, row) => sum + row.bytes, 0);
  const usual = { unreadable: 0, echo: 'matches', weakEmpty: false, cached: false } as const;
  return { kind: 'page', rows, bytes, ...usual, news: new Set(), lacking: [], ...more };
}

/** What a server makes of a question: its answer, or the rows of one. `matching` rises by id, bounds excluded. */
type Rule = (matching: readonly ListedRow[], question: Question, nth: number) => Answer | readonly ListedRow[];

const toMatching = (rows: readonly ListedRow[], { afterId, beforeId, afterDate, beforeDate }: Question) =>
  rows.filter(
    ({ id, at }) =>
      (afterId === null || id > afterId) &&
      (beforeId === null || id < beforeId) &&
      (afterDate === null || (at ?? 0n) > afterDate) &&
      (beforeDate === null || (at ?? 0n) < beforeDate),
  );

type Swept = ReturnType<typeof sweep>;

interface Sweeping extends Pick<SweepOptions, 'plan' | 'pages' | 'onStep'> {
  /** Ids that were stored before the sweep. */
  readonly held?: readonly bigint[];
  /** Splits the range at the stored ids, as a recheck does. */
  readonly isRecheck?: boolean;
}

/** Sweeps by the rule, long after the rows came. */
function sweep(rows: readonly ListedRow[], rule: Rule, { held = [], isRecheck = false, ...options }: Sweeping = {}) {
  const memory = createMemory(Number(second + 100_000_000n) * 1_000);
  for (const id of held) memory.held.set(id, { id, firstSeenAt: 0, submittedAt: null });
  const steps: Step[] = [];
  const answerTo = (question: Question) => {
    const ruled = rule(toMatching(rows, question), question, steps.length);
    return 'kind' in ruled ? ruled : aPage(ruled);
  };
  const onStep = (step: Step) => {
    steps.push(step);
    return options.onStep?.(step);
  };
  const { done, gone } = sweepBy(answerTo, memory, { ...options, onStep, known: isRecheck });
  return { done, steps, held: memory.held, gone };
}

const capped =
  (cap: number): Rule =>
  (matching) =>
    matching.slice(0, cap);
const falling =
  (cap: number): Rule =>
  (matching) =>
    matching.toReversed().slice(0, cap);
/** A fixed order that says nothing about ids. */
const hashOf = ({ id }: ListedRow) => Number((id * 7_919n) % 1_009n);
const hashed =
  (cap: number): Rule =>
  (matching) =>
    matching.toSorted((a, b) => hashOf(a) - hashOf(b)).slice(0, cap);
const isNoticed = ({ done }: Swept) => done.certificate === 'unproven' || done.risk === 'doubt';
const lostOf = (rows: readonly ListedRow[], { held }: Swept) => idsOf(rows).filter((id) => !held.has(id));

describe('a complete list is read to a proof', () => {
  test.for([
    ['ascending', capped],
    ['descending', falling],
    ['without order', hashed],
  ] as const)('%s, with pages of 16, 30 and 100', ([, order]) => {
    const rows = rowsUpTo(400);
    for (const cap of [16, 30, 100]) {
      const swept = sweep(rows, order(cap));
      expect({ cap, lost: lostOf(rows, swept), ...swept.done }).toMatchObject({ lost: [], open: [], absent: 0 });
      expect(isNoticed(swept)).toBe(false);
      if (cap > 16) expect(swept.done.certificate).toBe('proven');
      const again = sweep(rows, order(cap), { held: idsOf(rows), isRecheck: true });
      expect(isNoticed(again)).toBe(false);
    }
  });

  test('at every step each id lies in an open range, or in a closed one, or was shown between parts', () => {
    const rows = rowsUpTo(300);
    for (const rule of [capped(30), falling(30), hashed(30)]) {
      const closed: { readonly from: bigint; readonly to: bigint }[] = [];
      const shown = new Set<bigint>();
      const swept = sweep(rows, rule, {
        onStep({ question, answer, after, learned }) {
          if (learned.closed && question.covers) closed.push(question.covers);
          if (answer.kind === 'page') for (const { id } of answer.rows) shown.add(id);
          for (let id = 1n; id < 3_100n; id++) {
            const isIn = ({ from, to }: { from: bigint; to: bigint }) => id >= from && id <= to;
            if (shown.has(id) || after.open.some(isIn) || closed.some(isIn)) continue;
            throw new Error(`No range has id ${id}.`);
          }
          return undefined;
        },
      });
      expect(lostOf(rows, swept)).toEqual([]);
    }
  });
});

describe('an answer closes its range', () => {
  /** A sweep that has seen a whole page of 100 with one bound and with both, and its next question. */
  function opened(): { readonly state: State; readonly question: Question } {
    const rows = rowsUpTo(1_000);
    let state = begin({});
    let shown = new Set<bigint>();
    for (;;) {
      const question = ask(state) as Question;
      if (state.facts.pages.both.rows >= 100 && question.beforeId !== null) return { state, question };
      const page = aPage(toMatching(rows, question).slice(0, 100));
      const ids = new Set(page.rows.map(({ id }) => id));
      state = learn(state, question, { ...page, news: ids.difference(shown) }).state;
      shown = shown.union(ids);
    }
  }
  const answerWith = (count: number, more: Partial<PageAnswer> = {}, bytes = 1_000) => {
    const { state, question } = opened();
    const first = question.covers?.from as bigint;
    const rows = Array.from({ length: count }, (_, nth) => aRow(first + BigInt(nth), { bytes }));
    return learn(state, question, aPage(rows, more)).closed;
  };

  test('that has room for more and shows exactly what is known there', () => {
    expect(answerWith(49)).toBe('known');
    // Half of a page may have been cut off.
    expect(answerWith(50)).toBeNull();
  });

  test('not with something new: it is read a second time', () => {
    const { question } = opened();
    expect(answerWith(10, { news: new Set([question.covers?.from as bigint]) })).toBeNull();
  });

  test('not if a known id is lacking: it is asked for again', () => {
    const { question } = opened();
    const id = (question.covers?.from as bigint) + 30n;
    expect(answerWith(10, { lacking: [{ id, old: true, again: false }] })).toBeNull();
    expect(answerWith(10, { lacking: [{ id, old: true, again: true }] })).toBe('known');
    expect(answerWith(0, { lacking: [{ id, old: true, again: false }] })).toBeNull();
  });

  test('not with few rows of many bytes: the page may have been cut off by its bytes', () => {
    expect(answerWith(20, {}, 3_500)).toBeNull();
    expect(answerWith(20, {}, 2_000)).toBe('known');
  });

  test('that is empty; elements whose id cannot be read take up room', () => {
    expect(answerWith(0)).toBe('empty');
    expect(answerWith(0, { unreadable: 49 })).toBe('empty');
    expect(answerWith(0, { unreadable: 50 })).toBeNull();
    expect(answerWith(10, { unreadable: 40 })).toBeNull();
  });

  test('of fewer than sixteen rows only if it is empty or about one id', () => {
    const rows = rowsUpTo(40);
    const { steps, done } = sweep(rows, capped(15));
    expect(new Set(steps.flatMap(({ learned }) => learned.closed ?? []))).not.toContain('known');
    expect(done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
    expect(lostOf(rows, sweep(rows, capped(15)))).toEqual([]);
  });
});

describe('a sweep ends', () => {
  test('without asking the same range twice at once', () => {
    const state = begin({});
    const first = ask(state) as Question;
    expect(ask(state, [first])).toEqual({ kind: 'wait' });
  });

  test('when its state is stored after each answer as if nothing had happened', () => {
    const rows = rowsUpTo(300);
    const onStep = ({ after }: Step) => decode<State>(encode(after));
    const [stored, kept] = [sweep(rows, hashed(30), { onStep }), sweep(rows, hashed(30))];
    expect(stored.steps.map(({ question }) => question)).toEqual(kept.steps.map(({ question }) => question));
    expect(stored.done).toEqual(kept.done);
  });

  test('after a long pause, measures its pages again, and asks no closed range again', () => {
    const rows = rowsUpTo(600);
    let paused: State | undefined;
    const swept = sweep(rows, (matching) => matching.slice(0, paused ? 30 : 100), {
      onStep({ after, before }) {
        if (paused || before.facts.closedRanges < 4) return undefined;
        paused = renew(after);
        return paused;
      },
    });
    expect(paused?.facts.pages).toEqual({ after: { rows: 0, bytes: 0 }, both: { rows: 0, bytes: 0 } });
    expect(lostOf(rows, swept)).toEqual([]);
    expect(isNoticed(swept)).toBe(false);
  });
});

describe('stored ids that the source no longer shows', () => {
  const rows = rowsUpTo(1_500);
  const without = (gone: readonly bigint[]) => rows.filter(({ id }) => !gone.includes(id));
  const recheck = (gone: readonly bigint[]) =>
    sweep(without(gone), capped(100), { held: idsOf(rows), isRecheck: true, plan: { longestBefore: 100 } });

  test('are gone after two answers with room, and the proof stands', () => {
    const { done, gone } = recheck([500n, 510n, 9_000n]);
    expect(done).toMatchObject({ certificate: 'proven', absent: 3 });
    expect([...gone].sort()).toEqual([500n, 510n, 9_000n].sort());
  });

  test('are believed up to thirty of 1,500; more leave the sweep unproven, and are counted', () => {
    const some = (count: number) => idsOf(rows.filter((_, nth) => nth % 40 === 3).slice(0, count));
    expect(recheck(some(30)).done).toMatchObject({ certificate: 'proven', absent: 30 });
    expect(recheck(some(31)).done).toMatchObject({ certificate: 'unproven', absent: 31 });
  });

  test('are a doubt if the source shows them when asked alone', () => {
    const hidden = 500n;
    const rule: Rule = (matching, { covers }) => {
      const isAlone = covers !== null && covers.from === hidden && covers.to === hidden;
      return isAlone ? [aRow(hidden)] : matching.filter(({ id }) => id !== hidden).slice(0, 100);
    };
    expect(isNoticed(sweep(rows, rule, { held: idsOf(rows), isRecheck: true }))).toBe(true);
  });

  test('are not gone because one answer leaves them out', () => {
    let wasLeftOut = false;
    const rule: Rule = (matching) => {
      const isFirst = !wasLeftOut && matching.some(({ id }) => id === 500n);
      if (isFirst) wasLeftOut = true;
      return (isFirst ? matching.filter(({ id }) => id !== 500n) : matching).slice(0, 100);
    };
    const { done, gone } = sweep(rows, rule, { held: idsOf(rows), isRecheck: true });
    expect({ gone: [...gone], absent: done.absent }).toEqual({ gone: [], absent: 0 });
  });
});

describe('filters that are not honoured together end in a walk, a doubt at best', () => {
  const rows = rowsUpTo(120);
  test.for<[string, Rule]>([
    [
      'are combined by OR',
      (_, { afterId, beforeId }) =>
        rows.filter(({ id }) => id > (afterId ?? lastPosition) || id < (beforeId ?? 0n)).slice(0, 30),
    ],
    [
      'are refused',
      (matching, { afterId, beforeId }) =>
        afterId !== null && beforeId !== null ? { kind: 'refused' } : matching.slice(0, 30),
    ],
    ['are ignored', () => rows.slice(0, 30)],
    ['show only the first', (_, { afterId }) => rows.filter(({ id }) => id > (afterId ?? 0n)).slice(0, 30)],
  ])('%s', ([name, rule]) => {
    const swept = sweep(rows, rule);
    expect(isNoticed(swept)).toBe(true);
    expect(swept.done.certificate).not.toBe('proven');
    expect(swept.steps.length).toBeLessThan(60);
    if (name !== 'are ignored') expect(lostOf(rows, swept)).toEqual([]);
  });
});

describe('a walk ends where the sweep does, although one filter does not', () => {
  const rows = rowsUpTo(400);
  const refusing =
    (order: Rule): Rule =>
    (matching, question, nth) =>
      question.afterId !== null && question.beforeId !== null ? { kind: 'refused' } : order(matching, question, nth);

  test.for([
    ['ascending', capped(30)],
    ['descending', falling(30)],
  ] as const)('in a list that is %s', ([, order]) => {
    const plan = { from: 1_000n as Position, to: 3_000n as Position };
    const part = rows.filter(({ id }) => contains(plan, id));
    const swept = sweep(rows, refusing(order), { plan });
    expect(lostOf(part, swept)).toEqual([]);
    expect(swept.done).toMatchObject({ certificate: 'assumed', risk: 'doubt', open: [] });
    const from = 2_000n as Position;
    const held = idsOf(rows.slice(0, 200));
    const poll = sweep(rows, refusing(order), { held, plan: { rigor: 'poll', from } });
    expect(lostOf(rows, poll)).toEqual([]);
    expect(poll.done).toMatchObject({ certificate: 'assumed', risk: 'doubt', open: [] });
  });
});

describe('what lowers a certificate', () => {
  const rows = rowsUpTo(200);
  const read = (more: Partial<PageAnswer>, plan?: Partial<Plan>) =>
    sweep(rows, (matching) => aPage(matching.slice(0, 50), more), plan && { plan }).done;

  test('filters that the answer repeats otherwise: unproven', () => {
    expect(read({ echo: 'differs' }).certificate).toBe('unproven');
  });
  test('filters that are not repeated, or nothing without a list: assumed, without a doubt', () => {
    expect(read({ echo: 'absent' })).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
    expect(read({ weakEmpty: true })).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });
  test('an answer from a cache: a doubt', () => {
    expect(read({ cached: true })).toMatchObject({ certificate: 'assumed', risk: 'doubt' });
  });
  test('fewer than sixteen applications, or none: assumed, without a doubt', () => {
    expect(sweep(rowsUpTo(15), capped(50)).done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
    expect(sweep(rowsUpTo(16), capped(50)).done).toMatchObject({ certificate: 'proven' });
    expect(sweep([], capped(50)).done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });
  test('a part of the ids where nobody is may be proven', () => {
    const plan = { from: 5_000n as Position, to: 6_000n as Position };
    expect(sweep(rows, capped(50), { plan }).done.certificate).toBe('proven');
  });
  test('an account that shows nobody any more: not believed', () => {
    expect(isNoticed(sweep([], capped(50), { held: idsOf(rows), isRecheck: true }))).toBe(true);
  });
  test.for(['afterId', 'beforeId'] as const)('a filter (%s) that acts after the page is cut off is noticed', (late) => {
    const rule: Rule = (_, question) => {
      const early = { ...question, [late]: null };
      return toMatching(toMatching(rows, early).slice(0, 50), question);
    };
    const swept = sweep(rows, rule);
    expect(lostOf(rows, swept).length === 0 || isNoticed(swept)).toBe(true);
  });
});

describe('a witness', () => {
  const rows = rowsUpTo(200);
  const hiddenFrom = (isHidden: (question: Question, row: ListedRow) => boolean, plan: Partial<Plan> = {}) => {
    const rule: Rule = (matching, question) => matching.filter((row) => !isHidden(question, row)).slice(0, 50);
    return sweep(rows, rule, { plan });
  };

  test('that shows an old application in a closed range opens it again, and is a doubt', () => {
    const swept = hiddenFrom(({ purpose }, { id }) => purpose === 'range' && id === 1_000n);
    expect(lostOf(rows, swept)).toEqual([]);
    expect(isNoticed(swept)).toBe(true);
  });

  test('that shows a recent one opens it again without a doubt', () => {
    const recentFrom = second + 1_000n * 60n;
    const swept = hiddenFrom(({ purpose }, { id }) => purpose === 'range' && id === 2_000n, { recentFrom });
    expect(lostOf(rows, swept)).toEqual([]);
    expect(isNoticed(swept)).toBe(false);
  });

  test('is asked beyond both ends, by id and by date, and a default window shows', () => {
    const { steps } = sweep(rows, capped(50));
    const witnesses = steps.map(({ question }) => question).filter(({ purpose }) => purpose === 'witness');
    expect(witnesses.some(({ afterId, beforeId }) => afterId === null && beforeId !== null && beforeId <= 10n)).toBe(
      true,
    );
    expect(witnesses.some(({ afterId, beforeId }) => beforeId === null && afterId !== null && afterId >= 2_000n)).toBe(
      true,
    );
    expect(witnesses.some(({ afterDate }) => afterDate !== null)).toBe(true);
    expect(witnesses.some(({ beforeDate }) => beforeDate !== null)).toBe(true);
    const recent = (row: ListedRow) => (row.at ?? 0n) > second + 100n * 600n;
    const windowed = sweep(rows, (matching, { afterDate, beforeDate }) =>
      (afterDate === null && beforeDate === null ? matching.filter(recent) : matching).slice(0, 50),
    );
    expect(lostOf(rows, windowed).length === 0 || isNoticed(windowed)).toBe(true);
  });

  test('that was not asked proves nothing', () => {
    let state = begin({});
    for (;;) {
      const next = ask(state);
      if ('kind' in next || next.purpose === 'witness') break;
      const shown = toMatching(rows, next).slice(0, 50);
      const news = new Set(idsOf(shown).filter(() => state.facts.found === 0 && state.facts.requests < 4));
      state = learn(state, next, aPage(shown, { news })).state;
    }
    expect(state.facts.witnesses?.length).toBeGreaterThan(5);
    expect(ask({ ...state, facts: { ...state.facts, requests: 100_000 } })).toMatchObject({ certificate: 'unproven' });
  });
});

describe('a poll', () => {
  const rows = rowsUpTo(400);
  const pages = sweep(rows, capped(50)).done.pages;
  const poll = (now: readonly ListedRow[], rule: Rule = capped(50)) =>
    sweep(now, rule, { held: idsOf(rows), pages, plan: { rigor: 'poll', from: 4_000n as Position } });

  test('costs one request if nothing is new', () => {
    const { done, steps } = poll(rows);
    expect(steps).toHaveLength(1);
    expect(done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });

  test('costs few if something is new, and loses nobody', () => {
    const now = rowsUpTo(405);
    const swept = poll(now);
    expect(lostOf(now, swept)).toEqual([]);
    expect(swept.steps.length).toBeLessThanOrEqual(3);
  });

  test('reads on if more than a page is new', () => {
    const now = rowsUpTo(600);
    for (const rule of [capped(50), falling(50), hashed(50)]) expect(lostOf(now, poll(now, rule))).toEqual([]);
  });

  test('finds the newest gone, and is assumed', () => {
    const { done, gone } = poll(rows.slice(0, -1));
    expect([...gone]).toEqual([4_000n]);
    expect(done).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
  });
});

// The lines of a proof: what they say, how they follow on each other, and which sweeps keep them.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { begin } from '../../../src/domain/coverage/coverage.ts';
import { learn } from '../../../src/domain/coverage/learn.ts';
import type { Position } from '../../../src/domain/coverage/position.ts';
import type { PageAnswer, Question } from '../../../src/domain/coverage/question.ts';
import {
  findKept,
  toAnswerBody,
  toAuditBody,
  toDecisionBody,
  toIdList,
  toSweepBody,
} from '../../../src/domain/evidence/record.ts';
import { chain } from '../../support/chain.ts';

const sent = { sentAt: 1_763_290_000_012, tookMs: 41 };
const recentFrom = 1_763_289_100n;
const state = begin({ recentFrom });
const whole: Question = {
  purpose: 'range',
  covers: { from: 1n as Position, to: (2n ** 63n - 1n) as Position },
  ...{ afterId: 0n, beforeId: null, afterDate: null, beforeDate: null },
};

function page(ids: readonly bigint[], members: Partial<PageAnswer> = {}): PageAnswer {
  return {
    kind: 'page',
    rows: ids.map((id) => ({ id, at: null, bytes: 700 + Number(id % 7n) })),
    ...{ unreadable: 0, bytes: ids.length * 720, echo: 'matches', weakEmpty: false, cached: false },
    ...{ news: new Set(ids), lacking: [] },
    ...members,
  };
}

const answer = (
  members: Partial<PageAnswer> = {},
  question: Question = whole,
  ids: readonly bigint[] = [101n, 103n, 105n],
) => {
  const heard = page(ids, members);
  return JSON.parse(JSON.stringify(toAnswerBody(sent, question, heard, learn(state, question, heard))));
};

describe('the line of an answer', () => {
  test('says what was asked, what came, and what stays open; the usual is left out', () => {
    expect(answer()).toEqual({
      type: 'answer',
      ...sent,
      purpose: 'range',
      from: '1',
      to: null,
      ids: '101 2 2',
      bytes: 2_160,
      largest: 705,
      new: 'all',
      open: [
        ['1', '100'],
        ['102', '102'],
        ['104', '104'],
        ['106', null],
      ],
    });
  });

  test('holds no time of a person: whether a new one may have arrived, and that a date was asked', () => {
    const rows = [
      { id: 101n, at: recentFrom, bytes: 1 },
      { id: 102n, at: recentFrom - 1n, bytes: 1 },
    ];
    const news = new Set([101n, 102n]);
    expect(answer({ rows, news })).toMatchObject({ new: 'all', arrived: '101' });
    const byDate = { ...whole, purpose: 'witness', covers: null, afterId: null, afterDate: 1_721_000_000n } as const;
    const line = answer({ rows, news }, byDate);
    expect(line).toMatchObject({ purpose: 'witness', byDate: true, ids: '101 1' });
    expect(line).not.toHaveProperty('from');
    expect(JSON.stringify(line)).not.toContain('1721');
    expect(JSON.stringify(line)).not.toContain(String(recentFrom));
  });

  test('says what is not usual, and names bounds that are not next to its range, also the lack of one', () => {
    const unusual = { unreadable: 2, echo: 'absent', weakEmpty: true, cached: true, news: new Set([103n]) } as const;
    expect(answer(unusual)).toMatchObject({ unreadable: 2, echo: 'absent', weakEmpty: true, cached: true, new: '103' });
    const covers = { from: 5n as Position, to: 9n as Position };
    const both = answer({}, { ...whole, purpose: 'witness', covers, afterId: 4n, beforeId: 10n });
    expect([both.afterId, both.beforeId]).toEqual([undefined, undefined]);
    const other = answer({}, { ...whole, purpose: 'witness', covers, afterId: null, beforeId: 9n });
    expect([other.afterId, other.beforeId]).toEqual([null, '9']);
  });

  test('names the rule that closes its range, and ids that a page with room lacks', () => {
    const empty = answer({}, whole, []);
    expect(empty).toMatchObject({ closed: 'empty', bytes: 0 });
    expect(empty).not.toHaveProperty('open');
    const lacking = [{ id: 7n, old: true, again: false }];
    expect(answer({ lacking }, whole, [])).toMatchObject({ lacking: '7', open: [['1', null]] });
    expect(answer({ lacking })).not.toHaveProperty('lacking');
  });

  test('says that nothing came', () => {
    const none = { kind: 'unanswered', why: 'HTTP 500 for jane@example.com', ids: [5n] } as const;
    const line = toAnswerBody(sent, whole, none, learn(state, whole, none));
    expect(line).toMatchObject({
      answer: 'unanswered',
      open: [
        ['1', '5'],
        ['6', null],
      ],
    });
    expect(JSON.stringify(line)).not.toContain('jane');
  });
});

test('an audit says what came, and closes nothing', () => {
  const line = toAuditBody(sent, { ...whole, purpose: 'witness' }, page([5n]), recentFrom);
  expect(JSON.parse(JSON.stringify(line))).toEqual({
    ...{ type: 'audit', ...sent, from: '1', to: null, ids: '5', bytes: 720, new: 'all' },
  });
});

test('a list of ids keeps their order, repetitions and numbers beyond 2^53', () => {
  expect(toIdList([5n, 5n, 2n, 2n ** 62n])).toBe(`5 0 -3 ${2n ** 62n - 2n}`);
  expect(toIdList([])).toBe('');
});

describe('the lines of a sweep', () => {
  const sweep = { sweepId: 1n, purpose: 'recheck', startedAt: new Date(1_763_290_000_000) };
  const heard = page([101n, 103n, 105n], {
    bytes: 2_210,
    rows: [101n, 103n, 105n].map((id) => ({ id, at: null, bytes: 760 })),
  });
  const bodies = [toSweepBody(7001n, sweep, state, []), toAnswerBody(sent, whole, heard, learn(state, whole, heard))];

  test('are those of the example in docs/proof-format.md', () => {
    const example = readFileSync('docs/proof-format.md', 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{"n":'));
    expect(chain(null, bodies).map(({ text }) => text)).toEqual(example);
  });

  test('are followed by the decisions of operators', () => {
    const decision = toDecisionBody(new Date(5), { by: 'ops', what: 'deletions' }, [101n, 103n]);
    const text = chain(null, [...bodies, decision]).at(-1)?.text ?? '';
    expect(JSON.parse(text)).toMatchObject({ n: 2, type: 'decision', at: 5, by: 'ops', ids: '101 2' });
  });
});

describe('which sweeps keep their evidence', () => {
  const whole = (name: string) => ({ name, low: 1n, high: null });
  const names = (kept: Set<{ name: string }>) =>
    [...kept].map(({ name }) => name).toSorted((a, b) => a.localeCompare(b));

  test('by range: recent days that are read again often leave the rest as it was', () => {
    const recent = (name: string, low: bigint) => ({ name, low, high: null });
    const sweeps = [whole('a'), whole('b'), recent('c', 900n), recent('d', 905n), recent('e', 910n), recent('f', 915n)];
    expect(names(findKept(sweeps))).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(names(findKept([...sweeps, recent('g', 900n), recent('h', 900n)]))).toEqual(['a', 'b', 'g', 'h']);
    expect(names(findKept([...sweeps, whole('g'), whole('h')]))).toEqual(['a', 'g', 'h']);
  });

  test('for every id the newest, the one before it and the first, and no other', () => {
    const end = fc.option(fc.bigInt({ min: 1n, max: 20n }), { nil: null });
    const sweep = fc.tuple(fc.bigInt({ min: 1n, max: 20n }), end).map(([low, high]) => {
      return { low, high: high === null ? null : low + high };
    });
    fc.assert(
      fc.property(fc.array(sweep, { maxLength: 12 }), (sweeps) => {
        const kept = findKept(sweeps);
        const needed = new Set<unknown>();
        for (let id = 1n; id <= 45n; id++) {
          const here = sweeps.filter(({ low, high }) => low <= id && (high === null || id <= high));
          for (const one of [here.at(0), here.at(-1), here.at(-2)]) if (one) needed.add(one);
        }
        expect(kept).toEqual(needed);
      }),
    );
  });
});

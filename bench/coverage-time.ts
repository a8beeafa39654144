// Prints the time that the coverage logic takes for one answer, by the rows of a page and by the open ranges of a sweep:
// node bench/coverage-time.ts. Ten times as many should take about ten times as long.
import { ask, begin } from '../src/domain/coverage/coverage.ts';
import { learn } from '../src/domain/coverage/learn.ts';
import { type IdRange, nearestPosition } from '../src/domain/coverage/position.ts';
import type { PageAnswer, Question } from '../src/domain/coverage/question.ts';
import { openRange, type State } from '../src/domain/coverage/state.ts';

const counts = [2_000, 20_000, 200_000];
const answers = 50;

function toRange(from: number, to: number): IdRange {
  return { from: nearestPosition(BigInt(from)), to: nearestPosition(BigInt(to)) };
}

function toPage(count: number, from: bigint): PageAnswer {
  const rows = Array.from({ length: count }, (_, nth) => ({
    id: from + BigInt(nth * 3),
    at: 1_700_000_000n,
    bytes: 500,
  }));
  const news = new Set(rows.map(({ id }) => id));
  return {
    kind: 'page',
    rows,
    unreadable: 0,
    bytes: count * 500,
    echo: 'matches',
    weakEmpty: false,
    cached: false,
    news,
    lacking: [],
  };
}

function time(work: () => void): number {
  const startedAt = performance.now();
  work();
  return performance.now() - startedAt;
}

function toQuestion(state: State): Question {
  const next = ask(state);
  if (!('purpose' in next)) throw new Error(`The sweep asks nothing: ${JSON.stringify(next)}.`);
  return next;
}

const say = (line: string) => process.stdout.write(`${line}\n`);

for (const count of counts) {
  const page = toPage(count, 1_000n);
  const state = begin({});
  const question = toQuestion(state);
  const ms = time(() => learn(state, question, page));
  const read: State = { ...state, open: [] };
  const again = time(() => learn(read, { ...question, purpose: 'witness' }, page));
  say(`a page of ${count} rows: ${ms.toFixed(0)} ms; the same as a contradiction: ${again.toFixed(0)} ms`);
}

for (const count of counts) {
  const size = { rows: 100, bytes: 50_000 };
  const learned = { after: size, both: size, largestRow: 500, order: 'mixed', longest: 100, together: true } as const;
  const { facts } = begin({ longestBefore: 100, learned });
  const open = Array.from({ length: count }, (_, nth) =>
    openRange(toRange(nth * 1_000 + 1, nth * 1_000 + 900 + (nth % 37))),
  );
  let state: State = { facts: { ...facts, found: 1_000_000 }, open };
  const ms = time(() => {
    for (let nth = 0; nth < answers; nth++) {
      const question = toQuestion(state);
      state = learn(state, question, toPage(90, question.covers?.from ?? 1n)).state;
    }
  });
  say(`${count} open ranges: ${(ms / answers).toFixed(1)} ms per question and answer`);
}

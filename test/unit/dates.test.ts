// Sweeps by date of lists whose order, page size and time zone are hidden.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Answer, ListedRow, Question } from '../../src/domain/coverage/question.ts';
import { askDates, beginDates, type DateProgress, learnDates } from '../../src/domain/dates.ts';

const july = 1_782_864_000n;
const day = 86_400n;

interface Board {
  readonly dates: readonly number[];
  readonly cap: number;
  readonly order: 'rising' | 'falling' | 'none';
  /** How far the source's zone is from the one in which the dates are written, in hours. */
  readonly zone: number;
  readonly isInclusive: boolean;
}

const boards: fc.Arbitrary<Board> = fc.record({
  dates: fc.array(fc.integer({ min: 0, max: 31 * 86_400 }), { maxLength: 60 }),
  cap: fc.integer({ min: 2, max: 30 }),
  order: fc.constantFrom('rising', 'falling', 'none'),
  zone: fc.constantFrom(0, 1, 10, -10),
  isInclusive: fc.boolean(),
});

function answer({ dates, cap, order, zone, isInclusive }: Board, { afterDate, beforeDate }: Question): Answer {
  const shift = BigInt(zone) * 3_600n;
  const margin = isInclusive ? 0n : 1n;
  const isMatch = (at: bigint) =>
    (afterDate === null || at >= afterDate + shift + margin) &&
    (beforeDate === null || at <= beforeDate + shift - margin);
  const rows = dates
    .map((seconds, nth): ListedRow => ({ id: BigInt(nth + 1), at: july + BigInt(seconds), bytes: 100 }))
    .filter(({ at }) => at !== null && isMatch(at))
    .sort((a, b) => {
      const later = Number((a.at ?? 0n) - (b.at ?? 0n));
      return order === 'rising'
        ? later
        : order === 'falling'
          ? -later
          : Number((a.id * 7n) % 13n) - Number((b.id * 7n) % 13n);
    })
    .slice(0, cap);
  const size = { unreadable: 0, bytes: rows.length * 100 };
  return {
    kind: 'page',
    rows,
    ...size,
    echo: 'matches',
    weakEmpty: false,
    cached: false,
    news: new Set(),
    lacking: [],
  };
}

function read(board: Board, from: bigint, to: bigint | null) {
  let progress = beginDates(from, to, july + 60n * day);
  const found = new Set<bigint>();
  let requests = 0;
  for (let question = askDates(progress); question !== null; question = askDates(progress)) {
    const page = answer(board, question);
    if (page.kind === 'page') for (const { id } of page.rows) found.add(id);
    progress = learnDates(progress, page);
    if (++requests > 5_000) throw new Error('The sweep does not end.');
  }
  return { found, progress, requests };
}

/** More applications in one second than fit into a page cannot be told apart by dates. */
const isReadable = ({ dates, cap }: Board) => dates.every((one) => dates.filter((other) => other === one).length < cap);

test('every application of the range is found, whatever the order, the page size and the zone of the source', () => {
  fc.assert(
    fc.property(boards.filter(isReadable), (board) => {
      const { found, progress } = read(board, july, july + 31n * day);
      expect(found.size).toBe(board.dates.length);
      expect(progress.trouble).toBeNull();
    }),
    { numRuns: 300 },
  );
});

test('ten applications in eight months take few requests and leave no trouble', () => {
  const board: Board = {
    dates: [1, 5, 9, 20, 22, 25, 30].map((n) => n * 86_400),
    cap: 100,
    order: 'falling',
    zone: 0,
    isInclusive: false,
  };
  const { found, progress, requests } = read(board, july - 180n * day, july + 60n * day);
  expect(found.size).toBe(7);
  expect(progress).toMatchObject({ trouble: null, windows: [] });
  expect(requests).toBeLessThan(8);
});

test('a source that ignores the dates, refuses them or fails for a second leaves a trouble that says so', () => {
  const question = (progress: DateProgress) => askDates(progress) as Question;
  const begun = beginDates(july, july + day, july);
  const all: Board = { dates: [20 * 86_400], cap: 10, order: 'none', zone: 0, isInclusive: false };
  expect(learnDates(begun, answer(all, { ...question(begun), afterDate: null, beforeDate: null })).trouble).toMatch(
    /honour/,
  );
  expect(learnDates(begun, { kind: 'refused' }).trouble).toMatch(/refuses/);
  let progress = begun;
  while (askDates(progress) !== null && progress.trouble === null)
    progress = learnDates(progress, { kind: 'unanswered', why: '500', ids: [] });
  expect(progress.trouble).toBe('a second could not be read: 500');
});

test('a source that shows undated applications for every range, or answers none, ends the sweep instead of asking for each second', () => {
  const page = answer(
    { dates: [], cap: 2, order: 'none', zone: 0, isInclusive: true },
    askDates(beginDates(july, null, july)) as Question,
  );
  const undated = { ...page, rows: [1n, 2n].map((id): ListedRow => ({ id, at: null, bytes: 100 })) } as Answer;
  for (const [given, trouble] of [
    [undated, /without a date/],
    [{ kind: 'unanswered', why: '500', ids: [] }, /no answer: 500/],
  ] as const) {
    let progress = beginDates(0n, null, july);
    let requests = 0;
    for (; askDates(progress) !== null && requests < 100; requests++) progress = learnDates(progress, given);
    expect(requests).toBeLessThan(70);
    expect(progress.trouble).toMatch(trouble);
  }
});

// Every combination that matters of what a source may do, through HTTP and Postgres, with one assertion:
// every application that the source holds is stored exactly once and equal to the truth, or the status says that it cannot be proven.
import { describe, expect } from 'vitest';
import type { Choices } from '../../src/sandbox/choices.ts';
import { openSandbox, type Sandbox } from '../../src/sandbox/server.ts';
import { findDifferences } from '../support/equality.ts';
import { syncBoard } from '../support/syncing.ts';
import { openTestDatabase, type TestDatabase, test } from '../support/test-database.ts';

type Combination = Partial<Choices>;

const orders: Combination[] = [
  { order: 'ascending' },
  { order: 'descending' },
  { order: 'byDate', idsAgainstDates: 'crossed' },
  { order: 'random' },
  { order: 'perRequest' },
];
const caps: Combination[] = [
  { pageCap: null },
  { pageCap: 1 },
  { pageCap: 2 },
  { pageCap: 7 },
  { pageCap: 50 },
  { pageCapBytes: 20_000 },
  { pageCap: 40, pageCapVaries: true },
  { pageCap: 50, withdrawnPerMille: 200 },
];
const bounds: Combination[] = [
  {},
  { afterIdBound: 'inclusive' },
  { beforeIdBound: 'inclusive' },
  { afterIdBound: 'inclusive', beforeIdBound: 'inclusive' },
];
const filters: Combination[] = [
  { combination: 'or' },
  { combination: 'afterWins' },
  { combination: 'beforeWins' },
  { combination: 'refuse400' },
  { combination: 'refuse403' },
  { ignoredFilters: ['beforeid'] },
  { ignoredFilters: ['afterid'] },
  { ignoredFilters: ['afterid', 'beforeid', 'afterdate', 'beforedate'] },
  { filtersAfterCap: ['beforeid'] },
  { filtersAfterCap: ['afterid'] },
  { defaultWindowDays: 30 },
];
const shapes: Combination[] = [
  { echo: 'absent' },
  { echo: 'null' },
  { echo: 'number' },
  { echo: 'wrong' },
  { echo: 'otherZone' },
  { empty: 'null' },
  { empty: 'missingKey' },
  { empty: 'emptyObject' },
  { empty: 'nullResult' },
  { empty: 'bareList' },
  { empty: 'emptyBody' },
  { empty: 'noContent' },
  { empty: 'notFound' },
  { topLevel: 'unwrapped' },
  { single: 'object', pageCap: 1 },
  { keyCase: 'camel' },
  { keyCase: 'upper' },
  { extraMembers: true },
  { dateReading: 'utc' },
  { dateReading: 'melbourne' },
  { idSpacing: 'consecutive' },
  { idSpacing: 'wide' },
  { idShape: 'text' },
  { agentId: 'changing' },
];

/** Orders with caps and bounds with filters in full; the rest once each, on a capped descending list. */
const combinations: Combination[] = [
  ...orders.flatMap((order) => caps.map((cap) => ({ ...order, ...cap }))),
  ...bounds.flatMap((bound) => orders.slice(0, 2).map((order) => ({ ...bound, ...order, pageCap: 20 }))),
  ...filters.flatMap((filter) =>
    [orders[0], orders[1], orders[3]].map((order) => ({ pageCap: 20, ...order, ...filter })),
  ),
  ...shapes.map((shape) => ({ pageCap: 20, order: 'descending' as const, ...shape })),
];

describe('whatever the source does', () => {
  test('every application is stored once and equal, or the status says that nothing is proven', {
    timeout: 300_000,
  }, async () => {
    const counts = { proven: 0, assumed: 0, unproven: 0 };
    for (const [at, choices] of combinations.entries()) {
      const wrong = await readOnce(choices, at, counts);
      expect(wrong, `choices ${JSON.stringify(choices)}`).toEqual([]);
    }
    // A reader that never dares to say anything would pass the above.
    expect(counts.proven).toBeGreaterThan(combinations.length / 3);
  });
});

const applications = 60;

async function readOnce(choices: Combination, seed: number, counts: Record<string, number>): Promise<string[]> {
  await using database = await openTestDatabase();
  await using board = await openSandbox({ seed, applications, choices });
  const sweeps = await syncBoard(database, board);
  const certificate = sweeps.at(-1)?.certificate ?? 'unproven';
  counts[certificate] = (counts[certificate] ?? 0) + 1;
  const duplicates = await database.query(
    `SELECT application_id FROM intake.applications GROUP BY advertiser_id, application_id HAVING count(*) > 1`,
  );
  const differences = await findVisibleDifferences(database, board);
  if (duplicates.length > 0) return ['an application is stored twice'];
  if (certificate === 'proven') return isBlind(choices) ? [] : differences;
  if (certificate === 'assumed') return isBlind(choices) || choices.pageCapVaries ? [] : differences;
  const [row] = await database.query<{ certificate: string }>(`SELECT certificate FROM intake_analytics.completeness`);
  return row?.certificate === 'unproven' ? [] : [`read unproven, but completeness says ${row?.certificate}`];
}

/** Withdrawn rows are in the truth but never shown, and volatile facts are compared elsewhere. */
async function findVisibleDifferences(database: TestDatabase, board: Sandbox): Promise<string[]> {
  return (await findDifferences(database, board)).filter(
    (line) => !line.includes('stored undefined') || !board.choices.withdrawnPerMille,
  );
}

// Pages that shrink at random are outside what `assumed` rests on; they are never called proven, which is checked above.
/** The one kind that no question can tell from an honest small account, as docs/coverage.md says. */
function isBlind(choices: Combination): boolean {
  return (choices.filtersAfterCap?.length ?? 0) > 0;
}

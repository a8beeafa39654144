// @module-tag slow
// Every combination that matters of what a source may do, through HTTP and Postgres, with one assertion:
// every application that the source holds is stored exactly once and equal to the truth, or the status says that it cannot be proven.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { type Outcome, syncOnce } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import type { BoardAdvertiser } from '../../../src/dev/sandbox/account/account.ts';
import type { Choices } from '../../../src/dev/sandbox/behaviour/choices.ts';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import type { SweepSummary } from '../../../src/sync/read/sweep.ts';
import { openTestDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { findDifferences } from '../../support/equality.ts';
import { toEnvironment } from '../../support/processes/syncing.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';

type Combination = Partial<Choices>;

/** L2, L7 */
const orders: Combination[] = [
  { order: 'ascending' },
  { order: 'descending' },
  { order: 'byDate', idsAgainstDates: 'crossed' },
  { order: 'random' },
  { order: 'perRequest' },
];
/** L1, L14 */
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
/** L3 */
const bounds: Combination[] = [
  {},
  { afterIdBound: 'inclusive' },
  { beforeIdBound: 'inclusive' },
  { afterIdBound: 'inclusive', beforeIdBound: 'inclusive' },
];
/** L4, L5 */
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
/** L8, L9, L16, L17 */
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
  { dateZone: 'utc' },
  { dateZone: 'melbourne' },
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

/** Read together, as the accounts of one operator are. */
const groups = Array.from({ length: Math.ceil(combinations.length / 10) }, (_, nth) => ({
  nth: nth + 1,
  group: combinations.slice(10 * nth, 10 * nth + 10),
}));

describe('whatever the source does', () => {
  const counts = { proven: 0, assumed: 0, unproven: 0 };

  test.for(groups)(
    'every application is stored once and equal, or the status says that nothing is proven: group $nth',
    async ({ group }) => {
      await using database = await openTestDatabase();
      // One account per combination: none may disturb another.
      const [first, ...more] = group.map((choices) => ({ applications: toCount(choices), choices }));
      await using board = await openSandbox({ ...first, advertisers: more });
      const accounts = board.advertisers.map((account) => ({ account, name: String(account.advertiserId) }));
      const outcomes = await readAll(database, board.url, accounts);
      for (const [at, { account, name }] of accounts.entries()) {
        const outcome = outcomes[at];
        if (outcome?.name !== name || outcome.account === null) throw outcome?.trouble;
        const certificate = outcome.sweeps.at(-1)?.certificate ?? 'unproven';
        counts[certificate] += 1;
        const choices = group[at] as Combination;
        const wrong = await findWrongs(database, account, choices, certificate);
        expect(wrong, `choices ${JSON.stringify(choices)}`).toEqual([]);
      }
    },
  );

  test('and a third of it is proven: a reader that never dares to say anything would pass the above', () => {
    expect(counts.proven).toBeGreaterThan(combinations.length / 3);
  });
});

/** More than the longest page; where a page holds but a few, a few of them are many pages already. */
function toCount({ pageCap }: Combination): number {
  if (typeof pageCap !== 'number' || pageCap > 7) return 60;
  return pageCap > 2 ? 28 : 12;
}

/** One sync over all accounts, as an operator with several of them runs it. */
async function readAll(
  database: TestDatabase,
  url: string,
  accounts: readonly { readonly account: BoardAdvertiser; readonly name: string }[],
): Promise<readonly Outcome[]> {
  await using folder = await openScratch();
  const file = join(folder.path, 'advertisers.json');
  await writeFile(
    file,
    JSON.stringify(accounts.map(({ account: { credential }, name }) => ({ name, url, credential }))),
  );
  const { SOURCE_URL, SOURCE_CREDENTIAL, ...env } = toEnvironment(database, { url, credential: '' });
  const config = loadConfig(
    { ...env, ADVERTISERS_FILE: file },
    { needs: ['database', 'source', 'sync', 'privacy', 'blobs'] },
  );
  const signal = AbortSignal.timeout(600_000);
  return (await syncOnce(config, { recheck: false, files: false, signal })).advertisers;
}

async function findWrongs(
  database: TestDatabase,
  account: BoardAdvertiser,
  choices: Combination,
  certificate: SweepSummary['certificate'],
): Promise<string[]> {
  const duplicates = await database.query(
    `SELECT application_id FROM intake.applications WHERE advertiser_id = $1 GROUP BY application_id HAVING count(*) > 1`,
    [account.advertiserId],
  );
  if (duplicates.length > 0) return ['an application is stored twice'];
  const differences = await findVisibleDifferences(database, account);
  if (certificate === 'proven') return isBlind(choices) ? [] : differences;
  if (certificate === 'assumed') return isBlind(choices) || choices.pageCapVaries ? [] : differences;
  const [row] = await database.query<{ certificate: string }>(
    `SELECT certificate FROM intake_analytics.completeness WHERE advertiser_id = $1`,
    [account.advertiserId],
  );
  return row?.certificate === 'unproven' ? [] : [`read unproven, but completeness says ${row?.certificate}`];
}

/** Withdrawn rows are in the truth but never shown, and volatile facts are compared elsewhere. */
async function findVisibleDifferences(database: TestDatabase, account: BoardAdvertiser): Promise<string[]> {
  return (await findDifferences(database, account)).filter(
    (line) => !line.includes('stored undefined') || !account.choices.withdrawnPerMille,
  );
}

// Pages that shrink at random are outside what `assumed` rests on; they are never called proven, which is checked above.
/** The one kind that no question can tell from an honest small account, as docs/coverage.md says. */
function isBlind(choices: Combination): boolean {
  return (choices.filtersAfterCap?.length ?? 0) > 0;
}

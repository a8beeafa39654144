// What a sweep accepts from the source, and what it learns about it.
import { expect } from 'vitest';
import { type IdRange, wholeAxis } from '../../src/domain/coverage/position.ts';
import type { ListFilters, Source } from '../../src/source/client.ts';
import type { Store } from '../../src/store/store.ts';
import { holdLane } from '../../src/sync/accounts/held-lane.ts';
import { backfill } from '../../src/sync/read/read-account.ts';
import { readAgain } from '../../src/sync/read/read-tasks.ts';
import { openSmallIntake, type SmallIntake } from '../support/small-intake.ts';
import { test } from '../support/test-database.ts';

async function read({ store }: Pick<SmallIntake, 'store'>, source: Source, range: IdRange) {
  const advertiser = await store.advertisers.ensure('default', null);
  const signal = AbortSignal.timeout(600_000);
  await using lane = await holdLane(store, { name: 'default', lane: 'live', owner: 'test', leaseMs: 30_000, signal });
  return await readAgain({ store, source }, { lane, advertiser, lagMs: 0, startAt: null, retryForMs: 0 }, range);
}

test('an overtaken answer is asked again as the same question, whose answer must be of the same advertiser', async ({
  database,
}) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 40 });
  await intake.sweep();
  const { applications } = intake.store;
  const asked: ListFilters[] = [];
  let isOvertaken = false;
  // As if the other lane had seen a newer state of an application than this page shows.
  const store: Store = {
    ...intake.store,
    applications: {
      ...applications,
      commitPage: async (...page) => {
        const summary = await applications.commitPage(...page);
        isOvertaken = true;
        return summary === 'outdated' ? summary : { ...summary, stale: [1n] };
      },
    },
  };
  await using inner = intake.openSource('json');
  const source: Source = {
    ...inner,
    list: async (filters, ...rest) => {
      asked.push(filters);
      const isRepeated = isOvertaken;
      const answer = await inner.list(filters, ...rest);
      if (!isRepeated || answer.kind !== 'page') return answer;
      return { ...answer, page: { ...answer.page, advertiserId: 77n } };
    },
  };
  await expect(read({ store }, source, wholeAxis)).rejects.toThrow('data of advertiser 77');
  expect(asked.slice(0, -1)).toContainEqual(asked.at(-1));
  expect(await database.query(`SELECT halt_kind FROM intake.advertisers`)).toEqual([{ halt_kind: 'mismatch' }]);
});

test('a sweep by date changes nothing that sweeps by id have learned about pages', { tags: ['slow'] }, async ({
  database,
}) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices: { pageCap: 20 } });
  await intake.sweep();
  const learned = await database.query(`SELECT learned FROM intake.advertisers`);
  await using source = intake.openSource('json');
  const byDate = await backfill(
    { store: intake.store, source },
    {
      ...{ name: 'default', advertiserId: null, owner: 'test', leaseMs: 30_000, lagMs: 0, retryForMs: 0, parallel: 1 },
      ...{ range: { axis: 'date', low: 0n, high: null }, restart: false, signal: AbortSignal.timeout(600_000) },
    },
  );
  expect(byDate).toMatchObject([{ stopped: false }]);
  expect(await database.query(`SELECT learned FROM intake.advertisers`)).toEqual(learned);
});

test('a certificate covers applications up to the beginning of its sweep, less twice the delay that polls have seen', {
  tags: ['slow'],
}, async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 40 });
  await intake.sweep();
  await database.query(`UPDATE intake.advertisers SET late_ms = 2 * 3600 * 1000, late_at = now()`);
  await using source = intake.openSource('json');
  await read(intake, source, wholeAxis);
  const hours = `SELECT extract(epoch FROM date_trunc('second', as_of) - complete_through)::float8 / 3600 AS hours FROM intake.coverage`;
  expect(await database.query(hours)).toEqual([{ hours: 4 }]);
  await database.query(`UPDATE intake.advertisers SET late_at = now() - interval '31 days'`);
  await read(intake, source, wholeAxis);
  expect(await database.query(hours)).toEqual([{ hours: 0 }]);
});

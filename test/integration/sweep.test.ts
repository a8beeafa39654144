// What a sweep accepts from the source, and what it learns about it.
import { expect } from 'vitest';
import type { Source } from '../../src/source/client.ts';
import type { Store } from '../../src/store/store.ts';
import { holdLane } from '../../src/sync/read/held-lane.ts';
import { readAgain } from '../../src/sync/read/read-tasks.ts';
import { openSmallIntake, type SmallIntake } from '../support/small-intake.ts';
import { test } from '../support/test-database.ts';

async function read({ store }: Pick<SmallIntake, 'store'>, source: Source, plan: Parameters<typeof readAgain>[2]) {
  const advertiser = await store.advertisers.ensure('default', null);
  const signal = AbortSignal.timeout(600_000);
  await using lane = await holdLane(store, { name: 'default', lane: 'live', owner: 'test', leaseMs: 30_000, signal });
  return await readAgain({ store, source }, { lane, advertiser, lagMs: 0, startAt: null, retryForMs: 0 }, plan);
}

test('an application that is requested alone is not stored if the answer holds data of another advertiser', async ({
  database,
}) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 40 });
  await intake.sweep();
  const [{ id } = { id: '0' }] = await database.query<{ id: string }>(
    `SELECT max(application_id) AS id FROM intake.applications`,
  );
  const { applications } = intake.store;
  // As if the other lane had seen a newer state of the application than this page shows.
  const store: Store = {
    ...intake.store,
    applications: {
      ...applications,
      commitPage: async (...page) => {
        const summary = await applications.commitPage(...page);
        return summary === 'outdated' ? summary : { ...summary, stale: [BigInt(id)] };
      },
    },
  };
  await using inner = intake.openSource('json');
  const source: Source = {
    ...inner,
    list: async (filters, ...rest) => {
      const answer = await inner.list(filters, ...rest);
      const isAlone = filters.afterId === BigInt(id) - 1n && filters.beforeId === BigInt(id) + 1n;
      if (!isAlone || answer.kind !== 'page') return answer;
      return { ...answer, page: { ...answer.page, advertiserId: 77n } };
    },
  };
  await expect(read({ store }, source, { from: 1n })).rejects.toThrow('data of advertiser 77');
  expect(await database.query(`SELECT halt_kind FROM intake.advertisers`)).toEqual([{ halt_kind: 'mismatch' }]);
});

test('a sweep by date changes nothing that sweeps by id have learned about pages', { tags: ['slow'] }, async ({
  database,
}) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices: { pageCap: 20 } });
  await intake.sweep();
  const learned = await database.query(`SELECT learned FROM intake.advertisers`);
  await using source = intake.openSource('json');
  expect(await read(intake, source, { axis: 'date', from: 0n })).toMatchObject({ stopped: null });
  expect(await database.query(`SELECT learned FROM intake.advertisers`)).toEqual(learned);
});

test('a certificate covers applications up to the beginning of its sweep, less twice the delay that polls have seen', {
  tags: ['slow'],
}, async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 40 });
  await intake.sweep();
  await database.query(`UPDATE intake.advertisers SET late_ms = 2 * 3600 * 1000, late_at = now()`);
  await using source = intake.openSource('json');
  await read(intake, source, { from: 1n });
  const hours = `SELECT extract(epoch FROM as_of - complete_through)::float8 / 3600 AS hours FROM intake.coverage`;
  expect(await database.query(hours)).toEqual([{ hours: 4 }]);
  await database.query(`UPDATE intake.advertisers SET late_at = now() - interval '31 days'`);
  await read(intake, source, { from: 1n });
  expect(await database.query(hours)).toEqual([{ hours: 0 }]);
});

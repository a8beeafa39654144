// What a sweep accepts from the source, what it learns about it, and what is read next after one that did not reach the end of the list.
import { expect } from 'vitest';
import type { ListFilters, Source } from '../../../src/source/client.ts';
import type { Store } from '../../../src/store/store.ts';
import { confirmRead, readAgain, readNew } from '../../../src/sync/read/read-tasks.ts';
import type { TaskName } from '../../../src/sync/worker/account-queue.ts';
import { test } from '../../support/database/test-database.ts';
import { inLane, readSome, runTaskOf } from '../../support/reading.ts';
import { openSmallIntake } from '../../support/small-intake.ts';

test('an overtaken answer is asked again, and must be of the same advertiser', async ({ database }) => {
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
  const swept = inLane({ ...intake, store }, (read) => readAgain(...read), { source });
  await expect(swept).rejects.toThrow('data of advertiser 77');
  expect(asked.slice(0, -1)).toContainEqual(asked.at(-1));
  expect(await database.query(`SELECT halt_kind FROM intake.advertisers`)).toEqual([{ halt_kind: 'mismatch' }]);
});

test('a worker that was paused after its last answer confirms no later read', async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 12 });
  await intake.sweep();
  await inLane(intake, async ([deps, context]) => {
    const [before] = await database.query<{ asOf: string }>(`SELECT as_of::text AS "asOf" FROM intake.cursors`);
    const sweeps = [await readNew(deps, context)];
    const [paused] = await database.query<{ at: string }>(`SELECT now()::text AS at`);
    await confirmRead(deps, context, sweeps);
    const confirmed = `SELECT as_of > $1::timestamptz AS confirmed, as_of < $2::timestamptz AS early FROM intake.cursors`;
    expect(await database.query(confirmed, [before?.asOf, paused?.at])).toEqual([{ confirmed: true, early: true }]);
  });
});

test('a certificate ends where its sweep began, less twice the delay', { tags: ['slow'] }, async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 40 });
  await intake.sweep();
  await database.query(`UPDATE intake.advertisers SET late_ms = 2 * 3600 * 1000, late_at = now()`);
  await inLane(intake, (read) => readAgain(...read));
  const hours = `SELECT extract(epoch FROM date_trunc('second', as_of) - complete_through)::float8 / 3600 AS hours FROM intake.coverage`;
  expect(await database.query(hours)).toEqual([{ hours: 4 }]);
  await database.query(`UPDATE intake.advertisers SET late_at = now() - interval '31 days'`);
  await inLane(intake, (read) => readAgain(...read));
  expect(await database.query(hours)).toEqual([{ hours: 0 }]);
});

test.for(['day', 'fortnight'] as const)(
  'a first sweep that stopped early is continued before the recheck of a %s',
  { tags: ['slow'] },
  async (name, { database }) => {
    const choices = { pageCap: 20, order: 'descending' } as const;
    await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices });
    await using source = intake.openSource('json');
    await readSome(intake, 1);
    const demanded: string[] = [];
    const run = (task: TaskName) => runTaskOf(intake.store, source, task, (one) => demanded.push(one));
    expect(await run(name)).toMatchObject({ sweeps: [] });
    expect(demanded).toEqual(['unfinished']);
    expect(await database.query(`SELECT after_id FROM intake.cursors`)).toEqual([]);
    expect(await run('unfinished')).toMatchObject({ sweeps: [{ stopped: false }, {}] });
    expect(await database.query(`SELECT count(*)::int AS n FROM intake.applications`)).toEqual([{ n: 120 }]);
  },
);

test('a poll that leaves ranges open does not count as a poll that read to the end', async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 120, choices: { pageCap: 20 } });
  await intake.sweep();
  await using source = intake.openSource('json');
  const poll = () => runTaskOf(intake.store, source, 'poll');
  const loadReadAt = async () => (await database.query(`SELECT done_at FROM intake.leases`))[0]?.done_at;
  const before = await loadReadAt();
  expect(await poll()).toMatchObject({ sweeps: [{ openRanges: 0 }] });
  const read = await loadReadAt();
  expect(read).not.toEqual(before);
  intake.board.choose({ combination: 'refuse400', order: 'perRequest' });
  intake.board.add(Array.from({ length: 120 }, () => ({ attachments: [] })));
  expect(await poll()).toMatchObject({ sweeps: [{ certificate: 'unproven', stopped: false }] });
  expect(await loadReadAt()).toEqual(read);
});

test('the first and the last date that a server knows spoil no proof and are not the newest', async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database });
  const at = Date.UTC(2024, 0, 15);
  const dates = [Date.parse('0002-01-01T12:00:00Z'), Date.UTC(9999, 11, 31, 23, 59, 59), at];
  intake.board.add(
    Array.from({ length: 40 }, (_, nth) => ({
      id: BigInt(1_000 + 10 * nth),
      attachments: [],
      submittedAt: dates[nth % 3] ?? at,
    })),
  );
  await intake.sweep(true);
  const [status] = await intake.store.reports.loadStatus();
  expect(status).toMatchObject({ newestSubmittedAt: new Date(at), coverage: { certificate: 'proven' } });
});

test('a copy of an id that names several people counts as a row once', async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 20 });
  intake.board.fault({ kind: 'duplicate', on: 'list', times: null, differing: true });
  await intake.sweep();
  expect(await database.query(`SELECT DISTINCT reason FROM intake.quarantine`)).toHaveLength(1);
  const counted = `SELECT count(*)::int > 0 AS answers, count(line::jsonb -> 'unreadable')::int AS unreadable FROM intake.evidence
    WHERE line::jsonb ->> 'type' = 'answer'`;
  expect(await database.query(counted)).toEqual([{ answers: true, unreadable: 0 }]);
});

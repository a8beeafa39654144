// The hourly check by dates: a source that refuses date filters and serves everything else keeps its account.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Trouble } from '../../src/domain/trouble.ts';
import type { Source } from '../../src/source/client.ts';
import { createAccountQueues } from '../../src/sync/worker/account-queue.ts';
import { type RunTaskRequest, runTask } from '../../src/sync/worker/run-task.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { openTestDatabase, type TestDatabase } from '../support/test-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

describe('a source that answers date filters', () => {
  test.each([400, 401, 403])('with %i and serves its list is not halted', async (status) => {
    await using intake = await openSmallIntake({ database });
    intake.board.add([{ attachments: [] }]);
    await intake.sweep();
    await using inner = intake.openSource('json');
    const source: Source = {
      ...inner,
      list: async (filters, ...rest) => {
        if (filters.afterDate !== undefined) throw new Trouble('refused', 'The source refuses.', { status });
        return await inner.list(filters, ...rest);
      },
    };
    const account = { name: 'default', advertiserId: null, source, watch: () => {} };
    const signal = AbortSignal.timeout(60_000);
    const [queue] = createAccountQueues({
      accounts: [account],
      atOnce: 1,
      longAtOnce: 1,
      work: async () => {},
      signal,
    }).all;
    const request: RunTaskRequest = {
      ...{ owner: 'test', leaseMs: 30_000, lagMs: 0, startAt: null, skipIfDoneWithinMs: 0, signal },
    };
    if (!queue) throw new Error('There is no account.');
    const deps = { store: intake.store, now: Date.now, demand: () => {} };
    expect(await runTask(deps, request, queue, 'witness')).toMatchObject({ hidden: 0 });
    expect(await database.query(`SELECT state FROM intake.advertisers`)).toEqual([{ state: 'active' }]);
  });
});

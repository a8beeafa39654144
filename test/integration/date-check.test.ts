// The hourly check by dates and the random audits, as the worker runs them: a source that refuses date filters and serves everything else keeps
// its account, and a contradiction brings a recheck also where the rest of the audit fails.
import { describe, expect, test } from 'vitest';
import { Trouble } from '../../src/domain/trouble.ts';
import type { Source } from '../../src/source/client.ts';
import type { Store } from '../../src/store/store.ts';
import { createAccountQueues, type TaskName } from '../../src/sync/worker/account-queue.ts';
import { type RunTaskRequest, runTask } from '../../src/sync/worker/run-task.ts';
import { openSmallIntake, type SmallIntake } from '../support/small-intake.ts';
import { shareDatabase } from '../support/test-database.ts';

const database = shareDatabase();

/** Runs a task of the worker for the only account; gives the tasks that it made due. */
async function run(intake: SmallIntake, source: Source, name: TaskName, demand: (name: TaskName) => void = () => {}) {
  const account = { name: 'default', advertiserId: null, source, watch: () => {} };
  const signal = AbortSignal.timeout(60_000);
  const limits = { atOnce: 1, longAtOnce: 1 };
  const [queue] = createAccountQueues({ accounts: [account], ...limits, work: async () => {}, signal }).all;
  const request: RunTaskRequest = {
    ...{ owner: 'test', leaseMs: 30_000, lagMs: 0, startAt: null, skipIfDoneWithinMs: 0, signal },
  };
  if (!queue) throw new Error('There is no account.');
  return await runTask({ store: intake.store, demand }, request, queue, name);
}

describe('a source that answers date filters', () => {
  test.each([400, 401, 403])('with %i and serves its list is not halted', async (status) => {
    await using intake = await openSmallIntake({ rigor: 'proof', database });
    await intake.receive([{ attachments: [] }]);
    await using inner = intake.openSource('json');
    const source: Source = {
      ...inner,
      list: async (filters, ...rest) => {
        if (filters.afterDate !== undefined) throw new Trouble('refused', 'The source refuses.', { status });
        return await inner.list(filters, ...rest);
      },
    };
    expect(await run(intake, source, 'witness')).toMatchObject({ hidden: 0 });
    expect(await database.query(`SELECT state FROM intake.advertisers`)).toEqual([{ state: 'active' }]);
  });
});

describe('a contradiction makes a recheck of everything due', { tags: ['slow'] }, () => {
  test.each(['witness', 'audit'] as const)('also where the rest of the %s fails', async (name) => {
    await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 12 });
    await intake.sweep();
    // Of the same day as the newest, and above it: wherever an audit asks, it meets them.
    const [newest] = await database.query<{ at: Date }>(`SELECT max(submitted_at) AS at FROM intake.applications`);
    intake.board.add([{ submittedAt: newest?.at.getTime() ?? 0 }]);
    const { coverage, evidence } = intake.store;
    let hasEnded = false;
    const store: Store = {
      ...intake.store,
      coverage: {
        ...coverage,
        async endCertificates(...args) {
          await coverage.endCertificates(...args);
          hasEnded = true;
        },
      },
      evidence: {
        ...evidence,
        loadAudited: (...args) => (hasEnded ? Promise.reject(new Error('away')) : evidence.loadAudited(...args)),
      },
    };
    await using source = intake.openSource('json');
    const due: TaskName[] = [];
    const demand = (task: TaskName) => due.push(task);
    await expect(run({ ...intake, store }, source, name, demand)).rejects.toThrow('away');
    expect(await database.query(`SELECT certificate FROM intake.coverage`)).toEqual([{ certificate: 'unproven' }]);
    // The process may have ended meanwhile: the next poll, of whichever worker, finds the contradiction in the rows.
    await run(intake, source, 'poll', demand);
    expect(due).toEqual(['everything']);
  });

  test('until that recheck has ended, whatever it proves', async () => {
    await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 12 });
    await intake.sweep();
    const [{ id } = { id: 0n }] = await database.query<{ id: bigint }>(
      `SELECT min(application_id) AS id FROM intake.applications`,
    );
    await intake.store.coverage.endCertificates(BigInt(intake.board.advertiserId), [id], 'test');
    await using source = intake.openSource('json');
    const due: TaskName[] = [];
    const demand = (task: TaskName) => due.push(task);
    await run(intake, source, 'poll', demand);
    expect(due).toEqual(['everything']);
    const silent: Source = {
      ...source,
      list: (filters, ...rest) => source.list({ ...filters, beforeId: 1n }, ...rest),
    };
    await run(intake, silent, 'everything', demand);
    expect(await database.query(`SELECT certificate FROM intake.coverage`)).toEqual([{ certificate: 'unproven' }]);
    await run(intake, source, 'poll', demand);
    expect(due).toEqual(['everything']);
  });
});

// The hourly check by dates and the random audits, as the worker runs them: a source that refuses date filters and serves everything else
// keeps its account, and a contradiction brings a recheck also where the rest of the audit fails.
import { describe, expect, test } from 'vitest';
import { Trouble } from '../../../src/domain/trouble.ts';
import type { Source } from '../../../src/source/client.ts';
import type { Store } from '../../../src/store/store.ts';
import type { TaskName } from '../../../src/sync/worker/account-queue.ts';
import { shareDatabase } from '../../support/database/test-database.ts';
import { runTaskOf } from '../../support/reading.ts';
import { openSmallIntake } from '../../support/small-intake.ts';

const database = shareDatabase();

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
    expect(await runTaskOf(intake.store, source, 'witness')).toMatchObject({ hidden: 0 });
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
    const { sweeps, evidence } = intake.store;
    let hasEnded = false;
    const store: Store = {
      ...intake.store,
      sweeps: {
        ...sweeps,
        async endCertificates(...args) {
          await sweeps.endCertificates(...args);
          hasEnded = true;
        },
      },
      evidence: {
        ...evidence,
        loadAuditedProof: (...args) =>
          hasEnded ? Promise.reject(new Error('away')) : evidence.loadAuditedProof(...args),
      },
    };
    await using source = intake.openSource('json');
    const due: TaskName[] = [];
    const demand = (task: TaskName) => due.push(task);
    await expect(runTaskOf(store, source, name, demand)).rejects.toThrow('away');
    expect(await database.query(`SELECT certificate FROM intake.coverage`)).toEqual([{ certificate: 'unproven' }]);
    // The process may have ended meanwhile: the next poll, of whichever worker, finds the contradiction in the rows.
    await runTaskOf(intake.store, source, 'poll', demand);
    expect(due).toEqual(['everything']);
  });

  test('until that recheck has ended, whatever it proves', async () => {
    await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 12 });
    await intake.sweep();
    const [{ id } = { id: 0n }] = await database.query<{ id: bigint }>(
      `SELECT min(application_id) AS id FROM intake.applications`,
    );
    await intake.store.sweeps.endCertificates(BigInt(intake.board.advertiserId), [id], 'test');
    await using source = intake.openSource('json');
    const due: TaskName[] = [];
    const demand = (task: TaskName) => due.push(task);
    await runTaskOf(intake.store, source, 'poll', demand);
    expect(due).toEqual(['everything']);
    const silent: Source = {
      ...source,
      list: (filters, ...rest) => source.list({ ...filters, beforeId: 1n }, ...rest),
    };
    await runTaskOf(intake.store, silent, 'everything', demand);
    expect(await database.query(`SELECT certificate FROM intake.coverage`)).toEqual([{ certificate: 'unproven' }]);
    await runTaskOf(intake.store, source, 'poll', demand);
    expect(due).toEqual(['everything']);
  });
});

// A commit whose answer is lost: the sweep is run again, and goes on where the rows say, whichever page it was.
import { describe, expect } from 'vitest';
import { Trouble } from '../../../src/domain/trouble.ts';
import type { Store } from '../../../src/store/store.ts';
import { syncAccount } from '../../../src/sync/read/read-account.ts';
import { test } from '../../support/database/test-database.ts';
import { openSmallIntake, type SmallIntake } from '../../support/small-intake.ts';

/** The store, whose commits are carried out and once not heard of: the one that `isMeant` chooses. */
function loseAnswer(store: Store, isMeant: (ended: boolean) => boolean) {
  let lost = 0;
  let commits = 0;
  const commitPage: Store['applications']['commitPage'] = async (page, diff, progress) => {
    const summary = await store.applications.commitPage(page, diff, progress);
    commits++;
    if (lost === 0 && progress !== null && 'ended' in progress && isMeant(progress.ended !== null)) {
      lost++;
      throw new Trouble('local', 'The connection to the database was lost.', { at: 'database' });
    }
    return summary;
  };
  return {
    store: { ...store, applications: { ...store.applications, commitPage } },
    count: () => ({ lost, commits }),
  };
}

async function read(intake: SmallIntake, store: Store) {
  await using source = intake.openSource('json');
  const whose = { name: 'default', advertiserId: null, owner: 'test' };
  const how = { leaseMs: 30_000, lagMs: 900_000, startAt: null, retryForMs: 60_000, recheck: false };
  return await syncAccount({ store, source }, { ...whose, ...how, signal: AbortSignal.timeout(600_000) });
}

describe('a sweep whose commit is not heard of', () => {
  test.for([
    ['the first page', (ended: boolean) => !ended, 40],
    ['the page that ends it', (ended: boolean) => ended, 40],
    ['the page that ends it, which is its only one', (ended: boolean) => ended, 0],
  ] as const)('%s: ends all the same, and commits nothing twice', async ([, isMeant, applications], { database }) => {
    await using intake = await openSmallIntake({ database, rigor: 'proof', applications });
    const { store, count } = loseAnswer(intake.store, isMeant);
    await read(intake, store);
    const { lost, commits } = count();
    expect(lost).toBe(1);
    const ended = await intake.database.query<{ state: string; requests: number }>(
      `SELECT state, requests FROM intake.sweeps`,
    );
    expect(new Set(ended.map(({ state }) => state))).toEqual(new Set(['closed']));
    expect(ended.reduce((sum, { requests }) => sum + requests, 0)).toBe(commits);
    const evidence = await intake.database.query<{ n: number }>(
      `SELECT n FROM intake.evidence WHERE sweep_id = (SELECT max(sweep_id) FROM intake.evidence) ORDER BY n`,
    );
    expect(evidence.map(({ n }) => n)).toEqual(evidence.map((_one, index) => index));
    expect(await intake.database.query(`SELECT count(*)::int AS n FROM intake.applications`)).toEqual([
      { n: applications },
    ]);
  });
});

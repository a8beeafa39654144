// One sync of Intake against a sandbox and a test database, as the CLI would run it.
import { type ReadRequest, syncOnce } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import type { Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import type { SweepCounts, SweepSummary } from '../../../src/sync/read/sweep.ts';
import type { TestDatabase } from '../database/test-database.ts';

/** Shared by the stores and commands of all tests, so that their person keys and tombstones agree. */
export const testPrivacyKey = 'a privacy key for tests, long enough';

/** The environment of an operator who reads this board into this database. */
export function toEnvironment(
  database: Pick<TestDatabase, 'url'>,
  board: Pick<Sandbox, 'url' | 'credential'>,
  blobsFolder?: string,
): Record<string, string> {
  return {
    ...(blobsFolder && { BLOBS_URL: `file:${blobsFolder}` }),
    DATABASE_URL: database.url,
    SOURCE_URL: board.url,
    SOURCE_CREDENTIAL: board.credential,
    SOURCE_RATE: 'off',
    ADMIN_PORT: '0',
    PRIVACY_KEY: testPrivacyKey,
  };
}

/** A sweep of a sync, with the counts of all sweeps of that sync. */
export type CountedSweep = SweepSummary & SweepCounts;

/** Runs one sync without files; throws the first advertiser's trouble when its sync failed. */
export async function syncBoard(
  database: TestDatabase,
  board: Sandbox,
  options: { env?: Record<string, string>; recheck?: boolean } & Partial<ReadRequest> = {},
): Promise<readonly CountedSweep[]> {
  const { env, ...request } = options;
  const config = loadConfig(
    { ...toEnvironment(database, board), ...env },
    { needs: ['database', 'source', 'sync', 'privacy', 'blobs'] },
  );
  const signal = AbortSignal.timeout(600_000);
  const { advertisers } = await syncOnce(config, { recheck: false, files: false, signal, ...request });
  const [outcome] = advertisers;
  if (!outcome) throw new Error('No advertiser is configured.');
  if (outcome.account === null) throw outcome.trouble;
  return outcome.sweeps.map((sweep) => ({ ...outcome.counts, ...sweep }));
}

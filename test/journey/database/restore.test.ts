// The restore drill of docs/upgrade.md: a database and a bucket that come from different backups find together again.
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { syncOnce } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import { openSandbox, type Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import { dumpedBoard, openRestored } from '../../support/database/dump-database.ts';
import { copyDatabase, openTestDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { findDifferences } from '../../support/equality.ts';
import { callIntake } from '../../support/processes/intake.ts';
import { toEnvironment } from '../../support/processes/syncing.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';

function toOperator(database: TestDatabase, board: Sandbox, folder: string) {
  const needs = ['database', 'source', 'sync', 'privacy', 'blobs'] as const;
  const env = toEnvironment(database, board, folder);
  const config = loadConfig(env, { needs });
  const signal = AbortSignal.timeout(600_000);
  return {
    sync: ({ recheck = false } = {}) => syncOnce(config, { recheck, files: true, signal }),
    async verify() {
      const { stdout } = await callIntake(['verify', '--full', '--json'], env);
      return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, number>;
    },
  };
}

const loadStates = (database: TestDatabase) =>
  database.query(`SELECT DISTINCT state FROM intake.attachments WHERE state <> 'infected'`);

/** Keys of stored files whose bytes do not lie in the bucket as they should. */
async function findUnheld(database: TestDatabase, bucket: string): Promise<string[]> {
  const rows = await database.query<{ key: string; sha256: string }>(
    `SELECT DISTINCT b.key, b.sha256 FROM intake.attachments a JOIN intake.blobs b USING (advertiser_id, sha256) WHERE a.state = 'stored'`,
  );
  expect(rows.length).toBeGreaterThan(0);
  const isHeld = (path: string, sha256: string) =>
    existsSync(path) && createHash('sha256').update(readFileSync(path)).digest('hex') === sha256;
  return rows.filter(({ key, sha256 }) => !isHeld(join(bucket, key), sha256)).map(({ key }) => key);
}

describe('after a restore', { tags: ['slow'] }, () => {
  test('an older database beside a newer bucket is complete again after a recheck, and verify agrees', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 12 });
    await using scratch = await openScratch();
    const bucket = join(scratch.path, 'blobs');
    await toOperator(database, board, bucket).sync();
    await using older = await copyDatabase(database);
    const [changed] = board.add(6);
    await toOperator(database, board, bucket).sync();
    if (changed !== undefined) board.change(changed, { email: 'changed@example.com' });
    board.remove([...board.truth()][0]?.id ?? 0n);

    expect(await callIntake(['adopt-store', '--yes'], toEnvironment(older, board, bucket))).toMatchObject({ code: 0 });
    const operator = toOperator(older, board, bucket);
    expect(await findDifferences(older, board)).not.toEqual([]);
    const { files } = await operator.sync({ recheck: true });
    expect(files).toMatchObject({ waiting: 0, failures: 0 });
    const shown = await findDifferences(older, board);
    // Who has left the source since is kept, and marked absent.
    expect(shown).toEqual([expect.stringContaining('the source does not show it')]);
    expect(await older.query(`SELECT 1 FROM intake.applications WHERE absent_since IS NOT NULL`)).toHaveLength(1);
    expect(await loadStates(older)).toEqual([{ state: 'stored' }]);
    expect(await operator.verify()).toMatchObject({ missing: 0, damaged: 0, unrepaired: 0, lost: 0, braked: false });
    expect(await findUnheld(older, bucket)).toEqual([]);
  });

  test('a newer database beside an older bucket fetches again what the bucket lost', async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 12 });
    await using scratch = await openScratch();
    const bucket = join(scratch.path, 'blobs');
    const olderBucket = join(scratch.path, 'restored');
    await toOperator(database, board, bucket).sync();
    cpSync(bucket, olderBucket, { recursive: true });
    board.add(6);
    await toOperator(database, board, bucket).sync();

    const operator = toOperator(database, board, olderBucket);
    const found = await operator.verify();
    expect(found.missing).toBeGreaterThan(0);
    expect(found).toMatchObject({ lost: 0 });
    expect((await operator.sync()).files).toMatchObject({ waiting: 0 });
    expect(await operator.verify()).toMatchObject({ missing: 0, damaged: 0, unrepaired: 0, requeued: 0 });
    expect(await findUnheld(database, olderBucket)).toEqual([]);
    expect(await findDifferences(database, board)).toEqual([]);
    expect(await loadStates(database)).toEqual([{ state: 'stored' }]);
  });

  // Written by the code of that commit or release (test/support/database/write-dump.ts). The bucket is not part of it.
  const dumps = readdirSync('test/support/database').filter((name) => name.endsWith('.sql.gz'));
  if (dumps.length === 0) throw new Error('test/support/database holds no dump.');
  test.for(dumps)('%s, an earlier backup, is upgraded, complete again, and the erased stay erased', async (dump) => {
    await using database = await openRestored(
      gunzipSync(readFileSync(`test/support/database/${dump}`)).toString('utf8'),
    );
    const tables = [
      'applications',
      'attachments',
      'attachment_versions',
      'erasures',
      'events',
      'quarantine',
      'screens',
    ];
    const count = () =>
      Promise.all(
        tables.map((table) => database.query(`SELECT '${table}' AS held, count(*) AS n FROM intake.${table}`)),
      );
    const before = await count();
    expect(before.flat().filter(({ n }) => n === '0')).toEqual([]);
    const [last] = await database.query<{ id: string }>(`SELECT max(event_id) AS id FROM intake.events`);
    const erased = await database.query<{ id: string }>(
      `SELECT application_id AS id FROM intake.applications WHERE erased_at IS NOT NULL`,
    );
    expect(erased).toHaveLength(1);

    await using board = await openSandbox(dumpedBoard);
    await using scratch = await openScratch();
    const bucket = join(scratch.path, 'blobs');
    const env = toEnvironment(database, board, bucket);
    expect(await callIntake(['migrate'], env)).toMatchObject({ code: 0 });
    expect(await count()).toEqual(before);
    board.add(3);
    expect(await callIntake(['adopt-store', '--yes'], env)).toMatchObject({ code: 0 });
    const operator = toOperator(database, board, bucket);
    await operator.sync({ recheck: true });
    await operator.verify();
    await operator.sync();
    expect(await operator.verify()).toMatchObject({ missing: 0, damaged: 0 });

    const truth = () => [...board.truth()].filter(({ id }) => String(id) !== erased[0]?.id);
    expect(await findDifferences(database, { advertiserId: board.advertiserId, truth })).toEqual([]);
    expect(await findUnheld(database, bucket)).toEqual([]);
    // A consumer goes on behind the events of the backup.
    const received = await database.query(
      `SELECT 1 FROM intake.events WHERE event_id > $1 AND type = 'application.received'`,
      [last?.id],
    );
    expect(received).toHaveLength(3);
    expect(await callIntake(['prove', '--check'], env)).toMatchObject({ code: 0 });
  });
});

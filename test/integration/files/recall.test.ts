// P8: infected bytes are unreadable within a minute of the flag being read, whatever else is under way and however long it takes.
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { backfillOnce, type ReadRequest, syncOnce } from '../../../src/app.ts';
import { openDiskBlobs } from '../../../src/blobs/disk.ts';
import { loadConfig } from '../../../src/config.ts';
import { openSandbox, type Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import type { BlobStore } from '../../../src/domain/blob.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import { startDeletion } from '../../../src/sync/files/delete-objects.ts';
import { emptyDatabase, shareDatabase } from '../../support/database/test-database.ts';
import { hireWorker, openSettings, type WorkerSettings } from '../../support/processes/worker.ts';
import { eraseAt, openSmallIntake } from '../../support/small-intake.ts';
import { until } from '../../support/suite/until.ts';

const database = shareDatabase();

const resume = { kind: 'resume', content: 'bytes that will be flagged', hasVirus: null, uploadedAt: 1_700_000_000_000 };

interface Recall extends AsyncDisposable {
  readonly board: Sandbox;
  readonly settings: WorkerSettings;
  readonly id: bigint;
  keys(): Promise<string[]>;
  run(command: 'sync' | 'backfill', request?: Partial<ReadRequest>): Promise<unknown>;
}

/** One stored resume, and so many applications after it that the list has five pages. */
async function openStored(env: Record<string, string> = {}): Promise<Recall> {
  await emptyDatabase(database);
  const board = await openSandbox({ applications: 0, choices: { pageCap: 3, order: 'ascending' } });
  const settings = await openSettings(database, board, { SOURCE_TIMEOUT: '5m', LEASE: '10m', ...env });
  const config = loadConfig(settings.env, { needs: ['database', 'source', 'sync', 'privacy', 'blobs'] });
  const [id = 0n] = board.add([{ attachments: [resume] }]);
  board.add(Array.from({ length: 12 }, () => ({ attachments: [] })));
  const run: Recall['run'] = async (command, request = {}) => {
    const how = { files: true, signal: AbortSignal.timeout(600_000), ...request };
    if (command === 'sync') return await syncOnce(config, { recheck: true, ...how });
    return await backfillOnce(config, { range: { axis: 'id', low: 1n, high: null }, restart: true, ...how });
  };
  const outcome = await run('sync');
  const files = await database.query(
    `SELECT a.state, a.reason, d.attempts, d.trouble FROM intake.attachments a LEFT JOIN intake.downloads d USING (advertiser_id, application_id, kind)`,
  );
  expect(files, inspect(outcome, { depth: 6 })).toEqual([
    { state: 'stored', reason: null, attempts: null, trouble: null },
  ]);
  return {
    board,
    settings,
    id,
    run,
    async keys() {
      await using blobs = await openDiskBlobs(join(settings.blobsPath));
      return await Array.fromAsync(blobs.list('', AbortSignal.timeout(600_000)), ({ key }) => key);
    },
    async [Symbol.asyncDispose]() {
      await settings[Symbol.asyncDispose]();
      await board[Symbol.asyncDispose]();
    },
  };
}

function flag({ board, id }: Recall): void {
  board.change(id, { attachments: [{ ...resume, hasVirus: true }] });
}

describe('infected bytes are deleted', () => {
  test('by a worker whose download run does not come to an end', { tags: ['slow'] }, async () => {
    await using recall = await openStored({ RECHECK_SCHEDULE: '* * * * * *' });
    const { board } = recall;
    expect(await recall.keys()).toHaveLength(1);
    board.fault({ kind: 'hang', on: 'files', times: null });
    board.add([{ attachments: [{ kind: 'resume', content: 'never comes' }] }]);
    await using _worker = await hireWorker(recall.settings.env);
    const isFetching = () =>
      board.requests().some(({ path }) => path.includes('/resume/') && !path.endsWith(`/${recall.id}`));
    await until(isFetching);
    flag(recall);
    await until(async () => (await recall.keys()).length === 0);
    const downloads = `SELECT lease_token IS NOT NULL AS fetching, attempts, lapses, trouble FROM intake.downloads`;
    expect(await database.query(downloads)).toEqual([{ fetching: true, attempts: 1, lapses: 0, trouble: null }]);
  });

  for (const [command, on, skip, tags] of [
    // The first pages come, the flagged application among them; then the list says nothing any more.
    ['sync', 'list', 5, []],
    ['backfill', 'files', 0, ['slow']],
  ] as const) {
    test(`by ${command} while its ${on} do not come`, { tags: [...tags] }, async () => {
      await using recall = await openStored();
      flag(recall);
      if (on === 'files') recall.board.add([{ attachments: [{ kind: 'resume', content: 'never comes' }] }]);
      recall.board.fault({ kind: 'hang', on, times: null, skip });
      const stop = new AbortController();
      const running = recall.run(command, { signal: stop.signal }).catch(() => 'stopped');
      try {
        await until(() => recall.board.requests().some(({ faults }) => faults.includes('hang')));
        await until(async () => (await recall.keys()).length === 0);
      } finally {
        stop.abort();
        expect(await running).toBe('stopped');
      }
    });
  }

  test('before a command that leaves the files alone has ended', { tags: ['slow'] }, async () => {
    await using recall = await openStored();
    flag(recall);
    await recall.run('sync', { files: false });
    expect(await recall.keys()).toEqual([]);
  });
});

test('a recall stays in trouble while bytes that the store refused to delete remain, although others are deleted', async () => {
  await using intake = await openSmallIntake({ database });
  const other = { ...resume, content: 'others' };
  const [id = 0n, second = 0n] = intake.board.add([{ attachments: [resume] }, { attachments: [other] }]);
  await intake.sweep();
  await intake.runDownloads();
  intake.board.change(id, { attachments: [{ ...resume, hasVirus: true }] });
  await intake.sweep(true);
  const refusal = new Trouble('local', 'The store refuses.', { at: 'storage' });
  let refusals = 1;
  const blobs: BlobStore = {
    ...intake.blobs,
    delete: (...args) => (refusals-- > 0 ? Promise.reject(refusal) : intake.blobs.delete(...args)),
  };
  const told: unknown[] = [];
  const onTrouble = (error: unknown) => void told.push(error);
  const deps = { store: intake.store, openBlobs: async () => blobs, onTrouble, everyMs: 5 };
  await using running = startDeletion(deps, AbortSignal.timeout(600_000));
  await until(() => told.length > 0);
  intake.board.change(second, { attachments: [{ ...other, hasVirus: true }] });
  await intake.sweep(true);
  await until(async () => (await intake.keys()).length === 1);
  await expect(running.finish()).rejects.toBe(refusal);
  expect(told).toEqual([refusal]);
});

test('a worker whose store cannot be reached deletes infected bytes when it is back', { tags: ['slow'] }, async () => {
  await using recall = await openStored({ RECHECK_SCHEDULE: '* * * * * *' });
  const isEmptied = async () =>
    (await database.query(`SELECT 1 FROM intake.blobs WHERE deleted_at IS NOT NULL`)).length > 0;
  const [owned] = await database.query<{ identity: string }>(`SELECT identity FROM intake.blob_store`);
  await database.query(`UPDATE intake.blob_store SET identity = 'another'`);
  await using worker = await hireWorker(recall.settings.env);
  flag(recall);
  await until(() => worker.lines.some((line) => line.includes('files not deleted')));
  expect(await isEmptied()).toBe(false);
  await database.query(`UPDATE intake.blob_store SET identity = $1`, [owned?.identity]);
  await until(isEmptied);
  expect(await recall.keys()).toEqual([]);
});

test('infected bytes are not among the files that stay because somebody else has them', async () => {
  await using intake = await openSmallIntake({ database });
  const { board } = intake;
  const [id = 0n] = board.add([{ attachments: [resume] }, { phone: '1', attachments: [resume] }]);
  await intake.sweep();
  await intake.runDownloads();
  board.change(id, { attachments: [{ ...resume, hasVirus: true }] });
  await intake.sweep(true);
  const receipts = await eraseAt(intake, { by: 'application', applicationId: id });
  expect(receipts).toMatchObject([{ counts: { files: 1, shared: 0 } }]);
  expect(await intake.keys()).toEqual([]);
});

test('infected bytes stay so for others who sent them when the person with the flag is erased', async () => {
  await using intake = await openSmallIntake({ database });
  const { board } = intake;
  const [flagged = 0n, other = 0n] = board.add([{ attachments: [resume] }, { phone: '1', attachments: [resume] }]);
  const readAll = async () => {
    await intake.sweep(true);
    await intake.runDownloads();
    return [(await intake.files()).map(({ state }) => state), await intake.keys()];
  };
  await readAll();
  board.change(flagged, { attachments: [{ ...resume, hasVirus: true }] });
  expect(await readAll()).toEqual([['infected', 'infected'], []]);
  await eraseAt(intake, { by: 'application', applicationId: flagged });
  board.change(other, { phone: '2' });
  expect(await readAll()).toEqual([['infected'], []]);
});

// Verify: every planted defect is found, damaged files are fetched again, orphans go in two phases, and a wrong store is refused.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { largestScreenBytes } from '../../../src/domain/application.ts';
import { type BlobStore, toBlobKey } from '../../../src/domain/blob.ts';
import { parseScreens, screenParserVersion } from '../../../src/source/parse/screen.ts';
import { reparse } from '../../../src/sync/files/reparse.ts';
import { adoptStore, guardStore } from '../../../src/sync/files/store-owner.ts';
import { shareDatabase } from '../../support/database/test-database.ts';
import { openSmallIntake, type SmallIntake, verifyAt } from '../../support/small-intake.ts';
import { findFileDifferences } from '../../support/stores/file-equality.ts';
import { testFirst } from '../../support/suite/variants.ts';

const database = shareDatabase();

/** Three stored files. */
async function openThree(): Promise<SmallIntake & { paths: string[] }> {
  const intake = await openSmallIntake({ database });
  await intake.receiveWithFiles(
    ['one', 'two!', 'three'].map((content) => ({ attachments: [{ kind: 'resume', content }] })),
  );
  const paths = (await intake.keys()).map((key) => join(intake.folder, 'blobs', key));
  expect(paths).toHaveLength(3);
  return Object.assign(intake, { paths });
}

const clean = {
  missing: 0,
  damaged: 0,
  unrepaired: 0,
  requeued: 0,
  extra: 0,
  foreign: 0,
  orphans: 0,
  collected: 0,
  braked: false,
};

describe('verify', () => {
  test('finds nothing where nothing is wrong, and records what it proved', async () => {
    await using intake = await openThree();
    expect(await verifyAt(intake)).toMatchObject({ ...clean, blobs: 3, read: 3, readBytes: 12 });
    expect(await verifyAt(intake, { amount: { share: 0 } })).toMatchObject({ ...clean, blobs: 3, read: 0 });
  });

  type Plant = (paths: readonly string[]) => void;
  const defects: [name: string, plant: Plant, share: number, found: object][] = [
    ['deleted', (paths) => rmSync(paths[0] ?? ''), 0, { missing: 1, requeued: 1 }],
    ['truncated', (paths) => truncateSync(paths[0] ?? '', 1), 0, { damaged: 1, requeued: 1 }],
    ['of the wrong size', (paths) => writeFileSync(paths[0] ?? '', 'much longer'), 0, { damaged: 1, requeued: 1 }],
    [
      'with one flipped byte',
      (paths) => {
        const bytes = readFileSync(paths[0] ?? '');
        bytes[1] = (bytes[1] ?? 0) ^ 1;
        writeFileSync(paths[0] ?? '', bytes);
      },
      1,
      { damaged: 1, requeued: 1 },
    ],
  ];

  testFirst(defects)('finds an object that is %s, and the file is fetched again', async ([, plant, share, found]) => {
    await using intake = await openThree();
    plant(intake.paths);
    expect(await verifyAt(intake, { amount: { share } })).toMatchObject({ ...clean, ...found });
    expect(await database.query(`SELECT 1 FROM intake.applications WHERE ready_at IS NULL`)).not.toEqual([]);
    await intake.runDownloads();
    expect(await findFileDifferences(intake, 'json')).toEqual([]);
    expect(await verifyAt(intake)).toMatchObject(clean);
  });

  test('counts what was lost until its files have bytes again, however long that takes', async () => {
    await using intake = await openThree();
    rmSync(intake.paths[0] ?? '');
    expect(await verifyAt(intake)).toMatchObject({ missing: 1, unrepaired: 0 });
    // A blob of long ago, that nothing but the lost file refers to: no orphan.
    await database.query(`UPDATE intake.blobs SET intended_at = intended_at - interval '9 days'`);
    for (let run = 0; run < 2; run++) {
      expect(await verifyAt(intake)).toMatchObject({ ...clean, unrepaired: 1 });
    }
    intake.board.fault({ kind: 'fail', status: 410, on: 'resume', times: null });
    await intake.runDownloads();
    expect(await verifyAt(intake)).toMatchObject({ ...clean, unrepaired: 1 });
    expect(await intake.store.reports.loadStatus()).toMatchObject([{ damagedBlobs: 1 }]);
    const choice = { applicationId: null, kind: null, state: null };
    expect(await intake.store.downloads.retryDownloads(intake.board.advertiserId, choice)).toBe(1);
    expect(await verifyAt(intake)).toMatchObject({ ...clean, unrepaired: 1 });
    intake.board.clearFaults();
    await intake.runDownloads();
    expect(await findFileDifferences(intake, 'json')).toEqual([]);
    expect(await verifyAt(intake)).toMatchObject(clean);
    expect(await intake.store.reports.loadStatus()).toMatchObject([{ damagedBlobs: 0 }]);
  });

  test('tells once of lost bytes of an earlier version, which the source has no copy of', async () => {
    await using intake = await openThree();
    const [one] = [...intake.board.truth()];
    await intake.changeWithFiles(one?.id ?? 0n, { attachments: [{ kind: 'resume', content: 'another' }] });
    const sha256 = createHash('sha256').update('one').digest('hex');
    rmSync(join(intake.folder, 'blobs', toBlobKey(intake.board.advertiserId, sha256)));
    expect(await verifyAt(intake)).toMatchObject({ ...clean, missing: 1, lost: 1 });
    expect(await verifyAt(intake)).toMatchObject({ ...clean, lost: 0 });
    expect(await intake.store.reports.loadStatus()).toMatchObject([{ damagedBlobs: 0 }]);
  });

  test.for(['missing', 'damaged'] as const)('calls nothing lost that was %s in one of two looks', async (condition) => {
    await using intake = await openThree();
    const [one] = [...intake.board.truth()];
    await intake.changeWithFiles(one?.id ?? 0n, { attachments: [{ kind: 'resume', content: 'another' }] });
    const lied = new Set<string>();
    const look: BlobStore['verify'] = async (key, ...rest) => {
      const isFirst = !lied.has(key);
      lied.add(key);
      return isFirst ? condition : await intake.blobs.verify(key, ...rest);
    };
    const found = await verifyAt({ ...intake, blobs: { ...intake.blobs, verify: look } });
    expect(found).toMatchObject({ ...clean, read: 4, lost: 0 });
  });

  test('calls nothing lost when the mount of its folder has gone away', async () => {
    await using intake = await openThree();
    const [one] = [...intake.board.truth()];
    await intake.changeWithFiles(one?.id ?? 0n, { attachments: [{ kind: 'resume', content: 'another' }] });
    const signal = AbortSignal.timeout(600_000);
    await adoptStore(intake, signal);
    const guarded = { ...intake, blobs: guardStore(intake) };
    const folder = join(intake.folder, 'blobs');
    renameSync(folder, `${folder}.mounted`);
    // What earlier releases made when they started without the mount.
    mkdirSync(join(folder, '.aside'), { recursive: true });
    await expect(verifyAt(guarded)).rejects.toMatchObject({ name: 'WrongStore' });
    rmSync(folder, { recursive: true });
    renameSync(`${folder}.mounted`, folder);
    expect(await database.query(`SELECT state FROM intake.attachment_versions`)).toEqual([{ state: 'stored' }]);
    expect(await verifyAt(guarded)).toMatchObject({ ...clean, blobs: 4, read: 4, lost: 0 });
  });

  test('finds an object that nobody knows, keeps it for the grace, then deletes it', async () => {
    await using intake = await openThree();
    const bytes = 'left by somebody';
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const extra = join(intake.folder, 'blobs', toBlobKey(intake.board.advertiserId, sha256));
    mkdirSync(join(extra, '..'), { recursive: true });
    writeFileSync(extra, bytes);
    // A name that is not ours is left alone.
    writeFileSync(join(intake.folder, 'blobs', String(intake.board.advertiserId), 'readme'), 'hands off');
    const found = { ...clean, foreign: 1 };
    expect(await verifyAt(intake)).toMatchObject({ ...found, extra: 1, orphans: 1 });
    expect(await verifyAt(intake)).toMatchObject({ ...found, orphans: 1 });
    expect(await intake.keys()).toHaveLength(5);
    await database.query(`UPDATE intake.blobs SET intended_at = intended_at - interval '25 hours'`);
    expect(await verifyAt(intake)).toMatchObject({ ...found, orphans: 1, collected: 1 });
    expect(await intake.keys()).toHaveLength(4);
    expect(await verifyAt(intake)).toMatchObject({ ...found, blobs: 3 });
  });

  test('finds nothing wrong with a file whose object was there before it, cut', async () => {
    await using intake = await openSmallIntake({ database });
    const bytes = 'whole bytes';
    const key = toBlobKey(intake.board.advertiserId, createHash('sha256').update(bytes).digest('hex'));
    await intake.receiveWithFiles([{ attachments: [{ kind: 'resume', content: 'another' }] }]);
    const path = join(intake.folder, 'blobs', key);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, 'whole');
    expect(await verifyAt(intake)).toMatchObject({ extra: 1 });
    await intake.receiveWithFiles([{ attachments: [{ kind: 'resume', content: bytes }] }]);
    expect(await verifyAt(intake)).toMatchObject(clean);
    expect(await database.query(`SELECT size_bytes::int AS size FROM intake.blobs WHERE key = $1`, [key])).toEqual([
      { size: bytes.length },
    ]);
  });

  test('never collects what came into use again meanwhile', async () => {
    await using intake = await openThree();
    await database.query(`UPDATE intake.blobs SET intended_at = now() - interval '2 days'`);
    // Nor are they counted: too many orphans would hold back the collection of real ones.
    expect(await verifyAt(intake)).toMatchObject({ orphans: 0, collected: 0 });
    expect(await intake.keys()).toHaveLength(3);
  });

  test('deletes nothing when there are too many orphans to be believed, unless a person says so', async () => {
    await using intake = await openThree();
    await database.query(
      `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, intended_at)
       SELECT $1, lpad(n::text, 64, '0'), 1, 'x', 'damaged', now() - interval '3 days'
       FROM generate_series(1, 30) AS n`,
      [intake.board.advertiserId],
    );
    expect(await verifyAt(intake)).toMatchObject({ orphans: 30, collected: 0, braked: true });
    expect(await verifyAt(intake, { mayDeleteManyOrphans: true })).toMatchObject({
      orphans: 30,
      collected: 30,
      braked: false,
    });
  });

  test('finds infected bytes that came back, and deletes them', async () => {
    await using intake = await openThree();
    await database.query(
      `UPDATE intake.blobs SET state = 'infected', infected_at = now(), deleted_at = now() WHERE size_bytes = 3`,
    );
    await verifyAt(intake);
    expect(await intake.keys()).toHaveLength(2);
  });
});

describe('reparse', () => {
  test('rebuilds the rows of screens from their bytes, without the network', async () => {
    await using intake = await openSmallIntake({ database, applications: 30 });
    await intake.syncWithFiles();
    const rows = `SELECT a.application_id, a.text, a.selected, s.parser_version FROM intake.screen_answers a
      JOIN intake.screens s USING (advertiser_id, application_id, screen_no) ORDER BY 1, question_no, answer_no`;
    const before = await database.query(rows);
    expect(before.length).toBeGreaterThan(20);
    const [{ n }] = (await database.query(
      `SELECT count(*)::int AS n FROM intake.attachments WHERE kind = 'screen' AND state = 'stored'`,
    )) as [{ n: number }];
    // The download has recorded which parser read it.
    const recorded = `SELECT DISTINCT parser_version FROM intake.attachments WHERE kind = 'screen' AND state = 'stored'`;
    expect(await database.query(recorded)).toEqual([{ parser_version: screenParserVersion }]);
    await database.query(
      `DELETE FROM intake.screens; UPDATE intake.attachments SET parser_version = NULL WHERE kind = 'screen'`,
    );
    expect(await intake.store.reports.loadStatus()).toMatchObject([{ unreadableScreens: n }]);
    intake.board.clearRequests();
    const request = { advertisers: [intake.board.advertiserId], signal: AbortSignal.timeout(600_000) };
    const deps = { ...intake, parseScreens };
    expect(await reparse(deps, { ...request, parserVersion: screenParserVersion })).toEqual({
      read: n,
      unreadable: 0,
      missing: 0,
    });
    expect(await database.query(rows)).toEqual(before);
    expect(intake.board.requests()).toEqual([]);
    // Rows that were not there before are told of; the same rows once more are not.
    const changes = `SELECT count(*)::int AS n FROM intake.events WHERE type = 'application.changed'`;
    expect(await database.query(changes)).toEqual([{ n }]);
    expect(await reparse(deps, { ...request, parserVersion: screenParserVersion })).toMatchObject({ read: 0 });
    // What was noted of the bytes themselves is no matter of a parser.
    const bytes = { field: 'bytes', reason: 'other bytes on each download; the last are kept' };
    const unreadable = { field: 'screen', reason: 'cannot be read: by the parser of yesterday' };
    await database.query(`UPDATE intake.attachments SET notes = $1 WHERE kind = 'screen'`, [
      JSON.stringify([bytes, unreadable]),
    ]);
    expect(await reparse(deps, { ...request, parserVersion: null })).toMatchObject({ read: n });
    expect(await database.query(changes)).toEqual([{ n }]);
    expect(
      await database.query(`SELECT DISTINCT notes FROM intake.attachments WHERE kind = 'screen' AND state = 'stored'`),
    ).toEqual([{ notes: [bytes] }]);
    // Damaged bytes are not parsed: the rows stay, and the next verify reads these files first.
    const screens = await database.query<{ key: string; sha256: string }>(
      `SELECT DISTINCT key, sha256 FROM intake.blobs JOIN intake.attachments USING (advertiser_id, sha256) WHERE kind = 'screen'`,
    );
    for (const { key } of screens) {
      const path = join(intake.folder, 'blobs', key);
      writeFileSync(path, Buffer.alloc(statSync(path).size));
    }
    await database.query(`UPDATE intake.blobs SET verified_at = now() - interval '7 days' WHERE sha256 <> ALL ($1)`, [
      screens.map(({ sha256 }) => sha256),
    ]);
    expect(await reparse(deps, { ...request, parserVersion: null })).toEqual({ read: 0, unreadable: 0, missing: n });
    expect(await database.query(rows)).toEqual(before);
    expect(await verifyAt(intake, { amount: { share: 1e-9 } })).toMatchObject({ read: 1, damaged: 1, requeued: 1 });
  });

  test('reads no bytes of a file above the limit of a screen, which no parser takes', async () => {
    await using intake = await openSmallIntake({ database, applications: 30 });
    await intake.syncWithFiles();
    const screens = `SELECT 1 FROM intake.attachments WHERE kind = 'screen' AND state = 'stored'`;
    const unreadable = (await database.query(screens)).length;
    expect(unreadable).toBeGreaterThan(0);
    await database.query(`UPDATE intake.blobs SET size_bytes = $1`, [largestScreenBytes + 1]);
    const keys: string[] = [];
    const get: BlobStore['get'] = (key, signal) => {
      keys.push(key);
      return intake.blobs.get(key, signal);
    };
    const deps = { store: intake.store, blobs: { ...intake.blobs, get }, parseScreens };
    const request = { advertisers: [intake.board.advertiserId], signal: AbortSignal.timeout(600_000) };
    expect(await reparse(deps, { ...request, parserVersion: null })).toEqual({ read: 0, unreadable, missing: 0 });
    expect(keys).toEqual([]);
  });
});

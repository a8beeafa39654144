// A target of extracts has one owner: a copy of its database neither publishes nor erases there, and adopt-store moves it.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import type { Manifest } from '../../../src/domain/extract/manifest.ts';
import { copyDatabase, openTestDatabase, type TestDatabase, test } from '../../support/database/test-database.ts';
import { compareRows } from '../../support/extract/extracting.ts';
import { callIntake, runIntake } from '../../support/processes/intake.ts';
import { toEnvironment } from '../../support/processes/syncing.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';

/** A database with an extract of its people, which may have been killed, and a copy of that database with a store of files of its own. */
async function openCopied({ killedAt = '' } = {}) {
  await using stack = new AsyncDisposableStack();
  const board = stack.use(await openSandbox({ applications: 4 }));
  const scratch = stack.use(await openScratch());
  const original = stack.use(await openTestDatabase());
  const target = join(scratch.path, 'extract');
  const stores = new Map<string, string>();
  const run = (args: readonly string[], whose: TestDatabase, more: Record<string, string> = {}) => {
    const store = stores.get(whose.url) ?? join(scratch.path, 'blobs');
    const env = { ...toEnvironment(whose, board, store), LEASE: '1s', ...more };
    return 'INTAKE_CRASH_AT' in more ? runIntake(args, env) : callIntake(args, env);
  };
  expect(await run(['backfill', '--from', '2000-01-01'], original)).toMatchObject({ code: 3 });
  const args = ['extract', '--to', `file:${target}`, '--with-people'];
  const extract = (whose: TestDatabase, ...more: readonly string[]) => run([...args, ...more], whose);
  if (killedAt) expect(await run(args, original, { INTAKE_CRASH_AT: killedAt })).toMatchObject({ code: null });
  // Nothing is proven by dates, hence 3.
  else expect(await extract(original)).toMatchObject({ code: 3 });
  const copy = stack.use(await copyDatabase(original));
  stores.set(copy.url, join(scratch.path, 'staging'));
  mkdirSync(join(scratch.path, 'staging'));
  const owned = stack.move();
  const loadManifest = () => {
    const { manifest } = JSON.parse(readFileSync(join(target, 'latest.json'), 'utf8')) as { manifest: string };
    return JSON.parse(readFileSync(join(target, manifest), 'utf8')) as Manifest;
  };
  const [person] = [...board.truth()];
  return {
    ...{ board, original, copy, target, run, extract, loadManifest },
    files: () => readdirSync(target, { recursive: true }).map(String).sort(),
    erase: (whose: TestDatabase) => run(['erase', '--application', String(person?.id), '--yes', '--json'], whose),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

describe('the target of a database', () => {
  test('is left alone by a copy with a store of its own, whose receipt says so', async () => {
    await using copied = await openCopied();
    const { original, copy } = copied;
    expect(await copied.run(['adopt-store', '--yes'], copy)).toMatchObject({ code: 0 });
    const before = copied.files();
    const { code, stdout } = await copied.erase(copy);
    expect(code).toBe(0);
    const { receipts } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as {
      receipts: { counts: Record<string, unknown> }[];
    };
    expect(receipts[0]?.counts).toMatchObject({ extractsOfOthers: [`file:${copied.target}`] });
    expect(receipts[0]?.counts).not.toHaveProperty('extractFiles');
    expect(await copied.extract(copy)).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining(`of the database ${copied.loadManifest().database}; this is`) },
    });
    expect(copied.files()).toEqual(before);
    expect(await copied.extract(original, '--since-last')).toMatchObject({ code: 3 });
  });

  test('is its own from the first file on, before a snapshot is published', async () => {
    await using copied = await openCopied({ killedAt: 'extractWritten' });
    const { original, copy, target } = copied;
    expect(await copied.run(['adopt-store', '--yes'], copy)).toMatchObject({ code: 0 });
    const before = copied.files();
    expect(before.filter((path) => path.startsWith('people/') && path.endsWith('.parquet'))).not.toEqual([]);
    expect(await copied.erase(copy)).toMatchObject({ code: 0, stdout: expect.stringContaining('extractsOfOthers') });
    expect(await copied.extract(copy)).toMatchObject({ code: 2 });
    expect(copied.files()).toEqual(before);
    // A folder that is not mounted holds nothing, and is not where the person was taken out of.
    renameSync(target, `${target}-away`);
    mkdirSync(target);
    await original.query(`DELETE FROM intake.leases WHERE name LIKE 'extract %'`);
    expect(await copied.erase(original)).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('Mount or open it'),
    });
    rmSync(target, { recursive: true });
    renameSync(`${target}-away`, target);
    expect(await copied.erase(original)).toMatchObject({ code: 0, stdout: expect.stringContaining('extractFiles') });
    expect(copied.files().filter((path) => path.endsWith('.parquet'))).toEqual([]);
  });

  test('moves to the database that takes its place; the former one is refused', async () => {
    await using copied = await openCopied();
    const { original, copy: restored, target } = copied;
    const former = copied.loadManifest();
    // What this database has done since it was copied has event numbers of its own, which the original's snapshot knows too.
    await restored.query(`UPDATE intake.applications SET job_reference = 'changed here'`);
    const adopted = await copied.run(['adopt-store', '--yes', '--json'], restored, { EXTRACT_URL: `file:${target}` });
    expect(adopted).toMatchObject({ code: 0 });
    const { owner, extracts } = JSON.parse(adopted.stdout) as { owner: { databaseId: string }; extracts: string };
    expect(extracts).toBe(`file:${target}`);
    expect(copied.loadManifest()).toMatchObject({ database: owner.databaseId, files: former.files });
    const before = copied.files();
    expect(await copied.extract(original)).toMatchObject({ code: 2 });
    expect(await copied.erase(original)).toMatchObject({
      ...{ code: 0, stdout: expect.stringContaining('extractsOfOthers') },
    });
    expect(copied.files()).toEqual(before);
    expect(await copied.erase(restored)).toMatchObject({ code: 0, stdout: expect.stringContaining('extractFiles') });
    expect(await copied.extract(restored, '--since-last')).toMatchObject({ code: 3 });
    const after = copied.loadManifest();
    const { applications_anonymous = [], attachments = [] } = after.columns;
    await compareRows(restored, target, { ...after, columns: { applications_anonymous, attachments } });
  });
});

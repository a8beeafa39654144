// @module-tag slow
// Extracts by a worker's schedule and in a bucket: the same snapshots, and an erasure that leaves no version behind.
import { expect } from 'vitest';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import type { Manifest } from '../../../src/domain/extract/manifest.ts';
import { test } from '../../support/database/test-database.ts';
import { runIntake } from '../../support/processes/intake.ts';
import { openSettings, spawnWorker } from '../../support/processes/worker.ts';
import { openStrictS3 } from '../../support/stores/strict-s3.ts';
import { until } from '../../support/suite/until.ts';

test('a worker extracts by schedule into a bucket, where an erasure leaves no version', async ({ database }) => {
  await using s3 = await openStrictS3({ versions: 'deletable' });
  await using board = await openSandbox({ applications: 40 });
  const target = `s3://${s3.bucket}/lake`;
  await using settings = await openSettings(database, board, {
    ...{ EXTRACT_URL: target, EXTRACT_SCHEDULE: '*/2 * * * * *', EXTRACT_KEEP: '2' },
    ...{ S3_ENDPOINT: s3.endpoint, S3_REGION: s3.region, S3_FORCE_PATH_STYLE: 'true' },
    ...{ AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey },
  });
  const load = (path: string) => JSON.parse(s3.objects.get(`lake/${path}`)?.bytes.toString() ?? 'null');
  const loadManifest = (): Manifest | null => load('latest.json') && load(load('latest.json').manifest);
  const countRows = (manifest: Manifest | null) =>
    (manifest?.files ?? [])
      .filter(({ view }) => view === 'applications_anonymous')
      .reduce((sum, { rows }) => sum + rows, 0);
  {
    await using _worker = await spawnWorker(settings.env);
    await until(() => countRows(loadManifest()) === 40);
    const first = loadManifest()?.snapshot_id;
    // A second one, of what has changed since.
    await until(() => loadManifest()?.snapshot_id !== first);
  }
  const told = await runIntake(['status', '--json'], settings.env);
  const watched = { location: target, publishedAt: expect.stringMatching(/^20/), withinMs: 172_800_000 };
  expect(JSON.parse(told.stdout)).toMatchObject({ extract: watched });
  for (const { path, bytes } of loadManifest()?.files ?? []) {
    expect(s3.objects.get(`lake/${path}`)?.bytes.length, path).toBe(bytes);
  }

  const env = { ...settings.env, EXTRACT_SCHEDULE: 'off' };
  // What the worker held when it was killed lapses first.
  expect(await runIntake(['extract', '--with-people', '--views', 'jobs'], env)).toMatchObject({ code: 0 });
  const person = [...board.truth()].find(({ email }) => (email ?? '').length > 10);
  const holding = () =>
    [...s3.objects].filter(([, { bytes }]) => bytes.includes(person?.email ?? '')).map(([key]) => key);
  const held = holding();
  expect(held.filter((key) => key.startsWith('lake/people/applications/')).length).toBeGreaterThan(0);
  const erased = await runIntake(['erase', '--email', person?.email ?? '', '--yes', '--json'], env);
  expect(erased).toMatchObject({ code: 0 });
  expect(holding()).toEqual([]);
  const versions = [...s3.versions.values()].map(({ key }) => key);
  expect(held.filter((key) => versions.includes(key))).toEqual([]);
});

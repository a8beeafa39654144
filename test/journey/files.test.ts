// Applications with their files from the sandbox into database and blob store, compared with the sandbox's truth.
// JOURNEY_APPLICATIONS takes more of them: `JOURNEY_APPLICATIONS=20000 npx vitest run test/journey/files.test.ts`.
import { describe, expect } from 'vitest';
import { openS3Blobs } from '../../src/blobs/s3.ts';
import { toSettings } from '../support/blob-stores.ts';
import { findFileDifferences } from '../support/file-equality.ts';
import { openUnreliableS3, trouble } from '../support/mishaps.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { test } from '../support/test-database.ts';

const asked = process.env.JOURNEY_APPLICATIONS;
const applications = Number(asked ?? 50);
/** Few enough requests would all be spared. */
const withFaults = Number(asked ?? 100);
const timeout = 600_000 + withFaults * 300;
const signal = () => AbortSignal.timeout(timeout);

describe('a board with its files', { timeout }, () => {
  for (const { format, tags } of [
    { format: 'json', tags: [] },
    { format: 'xml', tags: ['slow'] },
  ] as const) {
    test(`ends as its truth says, each content once, by ${format}`, { tags: [...tags] }, async ({ database }) => {
      await using intake = await openSmallIntake({ database, applications, choices: { pageCap: 500 } });
      await intake.sweep();
      const startedAt = performance.now();
      const summary = await intake.runDownloads({ format, signal: signal() });
      tell(`${format}: ${summary.stored} files, ${summary.linked} linked`, summary.stored, startedAt);
      expect(summary).toMatchObject({ waiting: 0, givenUp: 0, rejected: 0, failures: 0 });
      expect(await findFileDifferences(intake, format)).toEqual([]);
    });
  }

  test('ends as its truth says when one request in ten fails, at the source and at the store', {
    tags: ['slow'],
  }, async ({ database }) => {
    await using s3 = await openUnreliableS3(7);
    await using blobs = openS3Blobs(toSettings(s3));
    await using intake = await openSmallIntake({
      database,
      rigor: 'proof',
      applications: withFaults,
      blobs,
      choices: { pageCap: 500 },
    });
    await intake.sweep();
    trouble(intake.board);
    const startedAt = performance.now();
    let stored = 0;
    let waiting = 1;
    // Nobody waits for a day here, and no run gives up while the store is away for a moment.
    using _haste = setInterval(() => void intake.hasten().catch(() => {}), 200);
    for (let run = 0; run < 60 && waiting > 0; run++) {
      const summary = await intake.runDownloads({ signal: signal(), retryForMs: 60_000 });
      expect(summary).toMatchObject({ givenUp: 0, rejected: 0 });
      ({ waiting } = summary);
      stored += summary.stored;
      await intake.hasten();
    }
    tell(`with faults: ${stored} files`, stored, startedAt);
    expect(waiting).toBe(0);
    expect(await findFileDifferences(intake, 'json')).toEqual([]);
  });
});

/** Figures of a long run. */
function tell(what: string, files: number, startedAt: number): void {
  if (!asked) return;
  const seconds = (performance.now() - startedAt) / 1_000;
  process.stderr.write(`${what} in ${seconds.toFixed(1)} s, ${Math.round(files / seconds)}/s\n`);
}

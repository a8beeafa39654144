// Applications with their files from the sandbox into database and blob store, compared with the sandbox's truth.
import { describe, expect } from 'vitest';
import { findFileDifferences } from '../support/file-equality.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { test } from '../support/test-database.ts';

describe('a board with its files', () => {
  for (const { format, tags } of [
    { format: 'json', tags: [] },
    { format: 'xml', tags: ['slow'] },
  ] as const) {
    test(`ends as its truth says, each content once, by ${format}`, { tags: [...tags] }, async ({ database }) => {
      await using intake = await openSmallIntake({ database, applications: 50, choices: { pageCap: 500 } });
      await intake.sweep();
      const summary = await intake.runDownloads({ format });
      expect(summary).toMatchObject({ waiting: 0, givenUp: 0, rejected: 0, failures: 0 });
      expect(await findFileDifferences(intake, format)).toEqual([]);
    });
  }
});

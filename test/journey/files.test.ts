// Applications with their files from the sandbox into database and blob store, compared with the sandbox's truth.
import { describe, expect } from 'vitest';
import { test } from '../support/database/test-database.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { findFileDifferences } from '../support/stores/file-equality.ts';

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

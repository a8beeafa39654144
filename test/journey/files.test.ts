// Applications with their files from the sandbox into database and blob store, compared with the sandbox's truth.
import { describe, expect } from 'vitest';
import { openSmallIntake } from '../support/draining.ts';
import { findFileDifferences } from '../support/file-equality.ts';
import { test } from '../support/test-database.ts';

describe('a board with its files', () => {
  test.for(['json', 'xml'] as const)('ends as its truth says, each content once, by %s', async (format) => {
    await using intake = await openSmallIntake({ applications: 300, choices: { pageCap: 100 } });
    await intake.sweep();
    const summary = await intake.drain({ format });
    expect(summary).toMatchObject({ waiting: 0, givenUp: 0, rejected: 0, failures: 0 });
    expect(await findFileDifferences(intake, format)).toEqual([]);
  });
});

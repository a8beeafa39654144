// What an access request is answered with: all of the person and nobody else, whatever their files are called.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exportPerson } from '../../src/sync/export.ts';
import { openSmallIntake, type SmallIntake } from '../support/draining.ts';
import { openTestDatabase, type TestDatabase } from '../support/test-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

async function exportAt(intake: SmallIntake, applicationId: bigint) {
  const folder = join(intake.folder, 'export');
  const { advertiserId } = intake.board;
  const signal = AbortSignal.timeout(600_000);
  const summary = await exportPerson(intake, { advertiserId, applicationId, folder, by: 'test', signal });
  const text = readFileSync(join(folder, 'export.json'), 'utf8');
  const paths: string[] = JSON.parse(text).files.map((file: { path: string }) => file.path);
  return { summary, text, paths, read: (path: string) => readFileSync(join(folder, path), 'utf8') };
}

describe('a file with a long name', () => {
  test('in letters of three bytes is exported under the end of its name, cut between letters', async () => {
    await using intake = await openSmallIntake({ database });
    const fileName = `${'履歴書'.repeat(32)}.pdf`;
    const [id = 0n] = intake.board.add([{ attachments: [{ kind: 'resume', content: 'first', fileName }] }]);
    await intake.sweep();
    await intake.drain();
    const { summary, paths, read } = await exportAt(intake, id);
    expect(summary).toMatchObject({ files: 1, missing: 0 });
    const [path = ''] = paths;
    expect(basename(path)).toMatch(/^resume-1-[履歴書]{65}\.pdf$/);
    expect(read(path)).toBe('first');
  });

  test('is not written over by another one whose name has the same end', async () => {
    await using intake = await openSmallIntake({ database });
    const end = `${'履歴書'.repeat(29)}.pdf`;
    const named = (start: string) => ({ fileName: `${start}${end}` });
    const [id = 0n] = intake.board.add([
      {
        attachments: [
          { kind: 'resume', content: 'first', ...named('甲') },
          { kind: 'coverLetter', content: 'letter', ...named('丙') },
        ],
      },
    ]);
    await intake.sweep();
    await intake.drain();
    intake.board.change(id, { attach: [{ kind: 'resume', content: 'second', ...named('乙') }] });
    await intake.sweep(true);
    await intake.drain();
    const { paths, read } = await exportAt(intake, id);
    expect(new Set(paths.map(read))).toEqual(new Set(['first', 'letter', 'second']));
  });
});

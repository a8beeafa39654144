// What an access request is answered with: all of the person and nobody else, whatever their files are called.
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { exportPerson } from '../../src/sync/privacy/export.ts';
import { shareDatabase } from '../support/database/test-database.ts';
import { visit } from '../support/prefill/prefill-visit.ts';
import { testPrivacyKey } from '../support/processes/syncing.ts';
import { openSmallIntake, type SmallIntake, verifyAt } from '../support/small-intake.ts';
import { testFirst } from '../support/suite/variants.ts';

const database = shareDatabase();

async function exportAt(intake: SmallIntake, applicationId: bigint, name = 'export') {
  const folder = join(intake.folder, name);
  const { advertiserId } = intake.board;
  const signal = AbortSignal.timeout(600_000);
  const summary = await exportPerson(intake, { advertiserId, applicationId, folder, by: 'test', signal });
  const text = readFileSync(join(folder, 'export.json'), 'utf8');
  const paths: string[] = JSON.parse(text).files.map((file: { path: string }) => file.path);
  return { summary, text, paths, read: (path: string) => readFileSync(join(folder, path), 'utf8') };
}

const zelda = { email: 'zelda@example.com', lastName: 'Quarlesworth', attachments: [] };
const stranger = { email: 'stranger@example.org', lastName: 'Stranger', attachments: [] };
const placeholders = ['0', '00000000-0000-0000-0000-000000000000', 'null', ' NULL ', '', '-', '\u200b'];

describe('an account id that names nobody', () => {
  testFirst(placeholders)('%j finds nobody, and shows nobody else to the person who asks', async (jobSeekerId) => {
    await using intake = await openSmallIntake({ database });
    const [id = 0n] = intake.board.add([
      { ...zelda, jobSeekerId },
      { ...zelda, email: '', jobSeekerId },
      { ...stranger, email: zelda.email, jobSeekerId },
      { ...stranger, jobSeekerId },
    ]);
    const json = JSON.stringify({ ID: 'none', JobSeekerID: jobSeekerId, LastName: 'Stranger' });
    intake.board.fault({ kind: 'poison', on: 'list', times: null, json });
    await intake.sweep();
    const { summary, text } = await exportAt(intake, id);
    expect(summary).toMatchObject({ applicationIds: [id], leftOut: 0 });
    expect(text).not.toMatch(/stranger/i);
    const { advertiserId } = intake.board;
    const { counts } = await intake.store.privacy.findPerson(advertiserId, { by: 'jobseeker', jobSeekerId });
    expect(counts).toMatchObject({ applications: 0, quarantined: 0, prefills: 0 });
  });

  test('does not make one person of all who have it', async () => {
    await using intake = await openSmallIntake({ database });
    await intake.receive([zelda, stranger].map((who) => ({ ...who, jobSeekerId: '0' })));
    const keys = await database.query<{ key: string }>(`SELECT DISTINCT person_key AS key FROM intake.applications`);
    expect(keys).toHaveLength(2);
    expect(keys.every(({ key }) => key !== null)).toBe(true);
  });

  test('does not make PRIVACY_KEY another one than the one an earlier version used', async () => {
    await using intake = await openSmallIntake({ database });
    await intake.receive([{ ...zelda, jobSeekerId: ' 0' }]);
    const { advertiserId } = intake.board;
    const earlier = createHmac('sha256', testPrivacyKey).update(`${advertiserId}: 0`).digest('hex').slice(0, 32);
    await database.query(`UPDATE intake.applications SET person_key = $1`, [earlier]);
    expect(await intake.store.privacy.loadKeyState()).toBe('matches');
  });
});

test('an export is refused with another PRIVACY_KEY: nobody would be kept out of it', async () => {
  await using intake = await openSmallIntake({ database });
  const [id = 0n] = await intake.receive([zelda]);
  await database.query(`UPDATE intake.applications SET person_key = 'made with another key'`);
  await expect(exportAt(intake, id)).rejects.toThrow('PRIVACY_KEY is not the key');
});

test('no keyed hash leaves with the person: analysts see it, and it would tell them who asked', async () => {
  await using intake = await openSmallIntake({ database });
  const [id = 0n] = await intake.receive([{ ...zelda, jobSeekerId: '' }]);
  await database.query(
    `INSERT INTO intake.prefills (advertiser_id, prefill_id, outcome, form_url, return_url, profile, person_key, person_keys)
     SELECT advertiser_id, gen_random_uuid(), 'redeemed', 'https://a/', 'https://a/', '{}', person_key, ARRAY[person_key] FROM intake.applications`,
  );
  const [row] = await database.query<{ key: string }>(`SELECT person_key AS key FROM intake.applications`);
  const { summary, text } = await exportAt(intake, id);
  expect(summary).toMatchObject({ prefills: 1 });
  expect(text).not.toContain(row?.key);
  expect(text).not.toContain('person_key');
});

test('an application whose account and address the source has removed is still exported with the others of the account', async () => {
  await using intake = await openSmallIntake({ database });
  const [id = 0n, emptied = 0n] = await intake.receive([zelda, zelda].map((one) => ({ ...one, jobSeekerId: 's1' })));
  await intake.change(emptied, { ...zelda, email: '', jobSeekerId: '' });
  expect((await exportAt(intake, id)).summary).toMatchObject({ applicationIds: [id, emptied], leftOut: 0 });
});

describe('an account whose applications carry several addresses', () => {
  test('may be that of several people: those with the address of the one who asks are shown, the others are counted', async () => {
    await using intake = await openSmallIntake({ database });
    const jobSeekerId = 'shared';
    const [id = 0n, second = 0n] = intake.board.add([
      { ...zelda, jobSeekerId },
      { ...zelda, email: 'Zelda <ZELDA@example.com>', jobSeekerId },
      { ...stranger, jobSeekerId },
      { ...stranger, email: '', jobSeekerId },
    ]);
    const json = JSON.stringify({ ID: 'none', JobSeekerID: jobSeekerId, LastName: 'Stranger' });
    intake.board.fault({ kind: 'poison', on: 'list', times: null, json });
    await intake.sweep();
    const { summary, text } = await exportAt(intake, id);
    expect(summary).toMatchObject({ applicationIds: [id, second], leftOut: 2 });
    expect(text).not.toMatch(/stranger/i);
  });

  test('is that of one person where they carry one address or none', async () => {
    await using intake = await openSmallIntake({ database });
    const ids = intake.board.add([
      { ...zelda, jobSeekerId: 's1' },
      { ...zelda, email: '', jobSeekerId: ' s1' },
    ]);
    await intake.sweep();
    for (const id of ids) {
      const { summary } = await exportAt(intake, id, `export-${id}`);
      expect(summary).toMatchObject({ applicationIds: ids, leftOut: 0 });
    }
  });
});

describe('a prefill', () => {
  testFirst<[string, string, Record<string, string>, number]>([
    ['another account', 'z1', { emailAddress: zelda.email, jobSeekerId: 'stranger' }, 0],
    ['no account', 'z1', { emailAddress: zelda.email }, 0],
    ['another account than one who has none', '', { emailAddress: zelda.email, jobSeekerId: 'stranger' }, 0],
    ['no account either', '', { emailAddress: zelda.email }, 1],
    ['the account under another address', 'z1', { emailAddress: stranger.email, jobSeekerId: 'z1' }, 1],
    ['the account and the address', 'z1', { emailAddress: zelda.email, jobSeekerId: 'z1' }, 1],
  ])('with the address that an applicant typed is not shown to them unless it is theirs: %s', async (given) => {
    const [, jobSeekerId, profile, prefills] = given;
    await using intake = await openSmallIntake({ database });
    const link = '/v2/resumes/00000000-0000-4000-8000-000000000001';
    await visit(intake, { profile: { ...profile, phone: '0400 111 222', link } });
    const [id = 0n] = await intake.receive([{ ...zelda, email: 'Zelda@Example.com', jobSeekerId }]);
    const { summary, text } = await exportAt(intake, id);
    expect(summary).toMatchObject({ prefills, prefillsLeftOut: 1 - prefills, files: prefills });
    expect(text.includes('0400 111 222')).toBe(prefills > 0);
  });

  test('of an account that several people share is shown to the one with its address', async () => {
    await using intake = await openSmallIntake({ database });
    const jobSeekerId = 'shared';
    const [id = 0n] = await intake.receive([zelda, stranger].map((one) => ({ ...one, jobSeekerId })));
    for (const emailAddress of [zelda.email, stranger.email])
      await visit(intake, { profile: { emailAddress, jobSeekerId } });
    const { summary, text } = await exportAt(intake, id);
    expect(summary).toMatchObject({ prefills: 1, prefillsLeftOut: 1 });
    expect(text).not.toMatch(/stranger/i);
  });
});

test('a file with damaged bytes is left out and named, and is what the next verify reads first', async () => {
  await using intake = await openSmallIntake({ database });
  const [id = 0n] = await intake.receiveWithFiles([{ attachments: [{ kind: 'resume', content: 'whole' }] }]);
  const [key = ''] = await intake.keys();
  writeFileSync(join(intake.folder, 'blobs', key), 'wrong');
  await intake.receiveWithFiles([{ attachments: [{ kind: 'resume', content: 'read last week' }] }]);
  await database.query(`UPDATE intake.blobs SET verified_at = now() - interval '7 days' WHERE key <> $1`, [key]);
  const { summary, paths } = await exportAt(intake, id);
  expect(summary).toMatchObject({ files: 0, missing: 1 });
  expect(paths).toEqual([null]);
  // Bytes are no longer unread than they were.
  const [status] = await intake.store.reports.loadStatus();
  expect(status?.verifiedSince?.getTime()).toBeGreaterThan(Date.now() - 8 * 86_400_000);
  expect(await verifyAt(intake, { amount: { share: 0.01 } })).toMatchObject({ read: 1, damaged: 1, requeued: 1 });
});

describe('a file with a long name', () => {
  test('in letters of three bytes is exported under the end of its name, cut between letters', async () => {
    await using intake = await openSmallIntake({ database });
    const fileName = `${'履歴書'.repeat(32)}.pdf`;
    const [id = 0n] = await intake.receiveWithFiles([
      { attachments: [{ kind: 'resume', content: 'first', fileName }] },
    ]);
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
    const [id = 0n] = await intake.receiveWithFiles([
      {
        attachments: [
          { kind: 'resume', content: 'first', ...named('甲') },
          { kind: 'coverLetter', content: 'letter', ...named('丙') },
        ],
      },
    ]);
    await intake.changeWithFiles(id, { attach: [{ kind: 'resume', content: 'second', ...named('乙') }] });
    const { paths, read } = await exportAt(intake, id);
    expect(new Set(paths.map(read))).toEqual(new Set(['first', 'letter', 'second']));
  });
});

test('a folder that cannot be written is named, and none of it stays', async () => {
  await using intake = await openSmallIntake({ database });
  const [applicationId = 0n] = await intake.receiveWithFiles([
    { attachments: [{ kind: 'resume', content: 'resume' }] },
  ]);
  const folder = join(intake.folder, 'export');
  const get: typeof intake.blobs.get = (...asked) => {
    rmSync(folder, { recursive: true });
    return intake.blobs.get(...asked);
  };
  const { advertiserId } = intake.board;
  const request = { advertiserId, applicationId, folder, by: 'test', signal: AbortSignal.timeout(600_000) };
  const { store, blobs } = intake;
  await expect(exportPerson({ store, blobs: { ...blobs, get } }, request)).rejects.toMatchObject({
    name: 'Trouble',
    kind: 'local',
    message: `${folder} could not be written (ENOENT) and was removed.`,
  });
  expect(existsSync(folder)).toBe(false);
});

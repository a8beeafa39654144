// A3: the source's Hash may be missing, constant, volatile or equal for different files. It is a hint that earns trust and loses it.
import { describe, expect, test } from 'vitest';
import type { SandboxOptions } from '../../../src/dev/sandbox/http/server.ts';
import { shareDatabase } from '../../support/database/test-database.ts';
import { eraseAt, openSmallIntake, type SmallIntake, verifyAt } from '../../support/small-intake.ts';
import { testFirst } from '../../support/suite/variants.ts';

const database = shareDatabase();
const open = (options: SandboxOptions = {}) => openSmallIntake({ database, ...options });

/** Applications of one jobseeker, each with this resume, read one after the other so that each can know the earlier ones. */
async function apply(intake: SmallIntake, contents: readonly string[], hash: 'learn' | 'always' | 'never' = 'learn') {
  for (const content of contents) {
    await intake.receive([{ jobSeekerId: 'js-1', attachments: [{ kind: 'resume', content }] }]);
    await intake.runDownloads({ hash });
  }
}

const requests = (intake: SmallIntake) =>
  intake.board.requests().filter((entry) => entry.path.includes('/resume/')).length;
const trust = () =>
  database.query(`SELECT agreed, contradicted_at IS NOT NULL AS contradicted, unchanged FROM intake.hash_trust`);
/** The types of all events, in their order. */
const types = async () =>
  (await database.query<{ type: string }>(`SELECT type FROM intake.events ORDER BY event_id`)).map(({ type }) =>
    type.replace('application.', ''),
  );
/** As after so many pairs that agreed. */
const setTrust = (intake: SmallIntake, agreed: number) =>
  database.query(`INSERT INTO intake.hash_trust (advertiser_id, agreed) VALUES ($1, $2)`, [
    intake.board.advertiserId,
    agreed,
  ]);

describe('learn', () => {
  test('fetches the first pairs anyway and counts those that agree', async () => {
    await using intake = await open();
    await apply(intake, ['same', 'same', 'same']);
    expect(requests(intake)).toBe(3);
    expect(await trust()).toEqual([{ agreed: 2, contradicted: false, unchanged: 0 }]);
    expect(await intake.keys()).toHaveLength(1);
  });

  test('spares most downloads after twenty pairs, compares some for ever, and says which were linked', async () => {
    await using intake = await open();
    await setTrust(intake, 20);
    await intake.receive(
      Array.from({ length: 41 }, () => ({
        jobSeekerId: 'js-1',
        attachments: [{ kind: 'resume', content: 'same', contentType: 'text/plain', fileName: 'resume.txt' }],
      })),
    );
    // The first must be there before the others can be linked to it.
    await database.query(
      `UPDATE intake.downloads SET due_at = now() + interval '1 hour' WHERE application_id > (SELECT min(application_id) FROM intake.downloads)`,
    );
    await intake.runDownloads();
    await intake.hasten();
    const { linked, stored } = await intake.runDownloads();
    expect(stored).toBe(40);
    expect(linked).toBeGreaterThan(25);
    expect(requests(intake)).toBe(41 - linked);
    const files = await intake.files();
    expect(files.every((file) => file.state === 'stored')).toBe(true);
    expect(new Set(files.map((file) => `${file.sha256} ${file.content_type}`)).size).toBe(1);
    expect(files.filter((file) => file.linked)).toHaveLength(linked);
  });

  test('links nothing by an account id that names nobody', { tags: ['slow'] }, async () => {
    await using intake = await open();
    await setTrust(intake, 20);
    for (const jobSeekerId of ['0', '00000000-0000-0000-0000-000000000000', 'NULL ', '']) {
      for (const content of Array(2).fill(`same ${jobSeekerId}`)) {
        await intake.receiveWithFiles([{ jobSeekerId, attachments: [{ kind: 'resume', content }] }]);
      }
    }
    expect(requests(intake)).toBe(8);
    expect(await trust()).toEqual([{ agreed: 20, contradicted: false, unchanged: 0 }]);
  });

  test('of another jobseeker, kind or Size is no pair', async () => {
    await using intake = await open({ choices: { hash: 'constant' } });
    await apply(intake, ['some bytes']);
    await intake.receiveWithFiles([
      { jobSeekerId: 'js-2', attachments: [{ kind: 'resume', content: 'some bytes' }] },
      { jobSeekerId: 'js-1', attachments: [{ kind: 'coverLetter', content: 'some bytes' }] },
      { jobSeekerId: 'js-1', attachments: [{ kind: 'resume', content: 'more bytes than before' }] },
    ]);
    expect(await trust()).toEqual([]);
  });

  test('ends at one contradiction, and what was linked by Hash alone is fetched', async () => {
    await using intake = await open({ choices: { hash: 'constant' } });
    await setTrust(intake, 20);
    await apply(intake, ['resume A'], 'learn');
    await apply(intake, ['resume B'], 'always');
    const wrong = await intake.files();
    expect(wrong[1]).toMatchObject({ linked: true, sha256: wrong[0]?.sha256 });
    await database.query(`UPDATE intake.hash_trust SET agreed = 0`);
    await apply(intake, ['resume C']);
    await intake.runDownloads();
    const truth = [...intake.board.truth()].map((one) => one.attachments[0]?.sha256);
    expect((await intake.files()).map((file) => file.sha256)).toEqual(truth);
    expect(await trust()).toEqual([{ agreed: 0, contradicted: true, unchanged: 0 }]);
    intake.board.clearFaults();
    await apply(intake, ['resume C']);
    expect((await intake.files()).every((file) => !file.linked)).toBe(true);
  });

  test('keeps the bytes of a file that it opens again for a day: they may be the only ones', async () => {
    await using intake = await open({ choices: { hash: 'constant' } });
    await setTrust(intake, 20);
    await apply(intake, ['same']);
    await apply(intake, ['same'], 'always');
    const [first, linked] = await intake.files();
    await eraseAt(intake, { by: 'application', applicationId: BigInt(first?.application_id ?? 0) });
    await database.query(`UPDATE intake.blobs SET intended_at = now() - interval '40 days'`);
    const [key] = await intake.keys();
    intake.board.fault({
      kind: 'fail',
      status: 500,
      on: 'resume',
      times: null,
      applicationId: BigInt(linked?.application_id ?? 0),
    });
    await database.query(`UPDATE intake.hash_trust SET agreed = 0`);
    await apply(intake, ['else']);
    await apply(intake, ['other']);
    expect(await trust()).toMatchObject([{ contradicted: true }]);
    expect((await intake.files())[0]).toMatchObject({ state: 'pending', sha256: null });
    const collect = async () => {
      await verifyAt(intake);
      return await intake.keys();
    };
    expect(await collect()).toContain(key);
    await database.query(`UPDATE intake.blobs SET intended_at = now() - interval '25 hours'`);
    expect(await collect()).not.toContain(key);
  });

  test('never links a screen, whose rows are read from its own bytes', { tags: ['slow'] }, async () => {
    await using intake = await open();
    await setTrust(intake, 20);
    const rawScreen = { json: '{"screen":{"@id":"1","@successful":"True"}}', xml: '<screen id="1"/>' };
    for (let nth = 0; nth < 2; nth++) {
      await intake.receiveWithFiles([{ jobSeekerId: 'js-1', attachments: [{ kind: 'screen' }], rawScreen }]);
    }
    expect((await intake.files()).map((file) => [file.state, file.linked])).toEqual(Array(2).fill(['stored', false]));
    expect(await database.query(`SELECT outcome FROM intake.screens`)).toEqual(Array(2).fill({ outcome: 'pass' }));
  });

  testFirst(['null', 'absent', 'empty'] as const)('without a Hash (%s) nothing is compared or linked', async (hash) => {
    await using intake = await open({ choices: { hash } });
    await setTrust(intake, 20);
    await apply(intake, ['same', 'same']);
    expect(requests(intake)).toBe(2);
    expect(await trust()).toEqual([{ agreed: 20, contradicted: false, unchanged: 0 }]);
  });
});

describe('always', () => {
  test('links any equal Hash and Size of the advertiser without a request', async () => {
    await using intake = await open();
    await apply(intake, ['same'], 'always');
    await intake.receive([{ jobSeekerId: 'js-2', attachments: [{ kind: 'coverLetter', content: 'same' }] }]);
    expect(await intake.runDownloads({ hash: 'always' })).toMatchObject({ stored: 1, linked: 1 });
  });

  test('does not link to bytes that are damaged', { tags: ['slow'] }, async () => {
    await using intake = await open();
    await apply(intake, ['same'], 'always');
    await database.query(`UPDATE intake.blobs SET state = 'damaged'`);
    await apply(intake, ['same'], 'always');
    expect((await intake.files()).map((file) => file.linked)).toEqual([false, false]);
  });
});

test('never: fetches everything, and stores the same bytes once', async () => {
  await using intake = await open();
  await setTrust(intake, 1_000);
  await apply(intake, ['same', 'same', 'same'], 'never');
  expect(requests(intake)).toBe(3);
  expect(await intake.keys()).toHaveLength(1);
});

test('a Hash of 4,000 characters is kept whole, its file is stored, and an equal one is known by it', async () => {
  await using intake = await open({ choices: { hash: 'long' } });
  await apply(intake, ['resume A', 'resume B', 'resume A'], 'always');
  const files = await intake.files();
  expect(files.map(({ state, linked }) => [state, linked])).toEqual([
    ['stored', false],
    ['stored', false],
    ['stored', true],
  ]);
  expect(files[2]?.sha256).toBe(files[0]?.sha256);
  expect(await database.query(`SELECT DISTINCT length(source_hash) AS length FROM intake.attachments`)).toEqual([
    { length: 4_032 },
  ]);
});

describe('a Hash that stays while the file is replaced', () => {
  const uploadedAt = Date.UTC(2026, 0, 5);
  test.for([
    ['by one of another Size', { content: 'second, longer', uploadedAt }],
    ['by one of equal Size, uploaded later', { content: 'other', uploadedAt: uploadedAt + 1_000 }],
  ] as const)('%s: the new file is fetched, and the earlier one is a version', async ([, replacement]) => {
    await using intake = await open({ choices: { hash: 'constant' } });
    const [id = 0n] = await intake.receiveWithFiles([
      { attachments: [{ kind: 'resume', content: 'first', uploadedAt }] },
    ]);
    const first = await intake.file();
    await intake.change(id, { attachments: [{ kind: 'resume', ...replacement }] });
    expect(await intake.file()).toMatchObject({ state: 'pending', version: 2 });
    await intake.runDownloads();
    const [truth] = [...intake.board.truth()];
    expect(await intake.file()).toMatchObject({ state: 'stored', version: 2, sha256: truth?.attachments[0]?.sha256 });
    expect(await database.query(`SELECT version, state, sha256 FROM intake.attachment_versions`)).toEqual([
      { version: 1, state: 'stored', sha256: first.sha256 },
    ]);
    expect(await types()).toEqual(['received', 'ready', 'changed', 'ready']);
  });

  test('and is flagged, which empties its Size: that is the same file, and no version', async () => {
    await using intake = await open({ choices: { hash: 'constant' } });
    const resume = { kind: 'resume', content: 'flagged for a while', uploadedAt };
    const [id = 0n] = await intake.receiveWithFiles([{ attachments: [resume] }]);
    for (const [hasVirus, state] of [
      [true, 'infected'],
      [false, 'stored'],
    ] as const) {
      await intake.changeWithFiles(id, { attachments: [{ ...resume, hasVirus }] });
      expect(await intake.file()).toMatchObject({ state, version: 1 });
    }
    expect(await database.query(`SELECT 1 FROM intake.attachment_versions`)).toEqual([]);
  });
});

test.each(['md5', 'volatile'] as const)(
  'a Href that is another at every look is stored and no event, with a Hash that is %s',
  async (hash) => {
    await using intake = await open({ choices: { href: 'signed', hash } });
    await apply(intake, ['always the same']);
    const hrefs = new Set<unknown>();
    for (let nth = 1; nth <= 5; nth++) {
      await intake.syncWithFiles();
      expect(await intake.file()).toMatchObject({ state: 'stored', version: 1 });
      for (const { href } of await database.query(`SELECT href FROM intake.attachments`)) hrefs.add(href);
    }
    expect(hrefs.size).toBeGreaterThan(2);
    expect(await types()).toEqual(['received', 'ready']);
  },
);

describe('a Hash that changes while the bytes do not', () => {
  test('makes no new version, and after three it is no sign of change any more', async () => {
    await using intake = await open({ choices: { hash: 'volatile' } });
    await apply(intake, ['always the same']);
    for (let nth = 1; nth <= 5; nth++) {
      await intake.syncWithFiles();
      expect(await intake.file()).toMatchObject({ state: 'stored', version: 1 });
    }
    expect(await trust()).toMatchObject([{ unchanged: 3 }]);
    expect(requests(intake)).toBe(4);
    expect(await database.query(`SELECT 1 FROM intake.attachment_versions`)).toEqual([]);
    expect(await types()).toEqual(['received', 'ready']);
  });

  test('cannot be told where the file is too large by now: nothing was stored, and no download spared', async () => {
    await using intake = await open({ choices: { hash: 'volatile' } });
    await apply(intake, ['held']);
    await intake.sweep(true);
    expect(await intake.runDownloads({ maxBytes: 3 })).toMatchObject({ stored: 0, linked: 0, waiting: 0 });
    expect(await intake.file()).toMatchObject({
      state: 'stored',
      notes: [{ field: 'Hash', reason: expect.stringContaining('could not be fetched again') }],
    });
    expect(await types()).toEqual(['received', 'ready']);
  });

  test('while changed bytes of equal Size and upload are a new version, and the earlier ones stay', async () => {
    await using intake = await open();
    const uploadedAt = Date.UTC(2026, 0, 5);
    const [id = 0n] = await intake.receiveWithFiles([
      { attachments: [{ kind: 'resume', content: 'first', uploadedAt }] },
    ]);
    const first = await intake.file();
    await intake.changeWithFiles(id, { attachments: [{ kind: 'resume', content: 'other', uploadedAt }] });
    const [truth] = [...intake.board.truth()];
    expect(await intake.file()).toMatchObject({ state: 'stored', version: 2, sha256: truth?.attachments[0]?.sha256 });
    expect(await database.query(`SELECT version, state, sha256 FROM intake.attachment_versions`)).toEqual([
      { version: 1, state: 'stored', sha256: first.sha256 },
    ]);
    expect(await intake.keys()).toHaveLength(2);
    expect(await trust()).toEqual([]);
    expect(await types()).toEqual(['received', 'ready', 'changed', 'ready']);
  });
});

// What the source may do to a file (rows A1 to A14), and what becomes of it: played by the sandbox, fetched by a real download run.
// Redirects (A10) are followed by one function for lists and files: source-http.test.ts.
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Choices } from '../../../src/dev/sandbox/behaviour/choices.ts';
import type { SandboxOptions } from '../../../src/dev/sandbox/http/server.ts';
import { unreadableFlag } from '../../../src/domain/application.ts';
import { shareDatabase } from '../../support/database/test-database.ts';
import { loadProblems, openSmallIntake, type SmallIntake } from '../../support/small-intake.ts';
import { loadScreens } from '../../support/stores/file-equality.ts';
import { testFirst } from '../../support/suite/variants.ts';

const database = shareDatabase();
const open = (options: SandboxOptions = {}) => openSmallIntake({ database, ...options });

const resume = (content: string, more: object = {}) => ({
  kind: 'resume',
  content,
  contentType: 'text/plain',
  ...more,
});
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** One application with one resume of this content, read but not fetched. */
async function openOne(content = 'The resume of Ada.', more: object = {}): Promise<SmallIntake & { id: bigint }> {
  const intake = await open();
  const [id = 0n] = await intake.receive([{ jobSeekerId: 'js-1', attachments: [resume(content, more)] }]);
  return Object.assign(intake, { id });
}

const requestsFor = (intake: SmallIntake, path: string) =>
  intake.board.requests().filter((entry) => entry.path.includes(`/${path}/`)).length;

describe('A1 HasVirus', () => {
  test('null is fetched; when it becomes true the bytes go, for every reference to them, and never come back', async () => {
    await using intake = await open();
    const { board } = intake;
    const same = 'the same infected bytes';
    const [first = 0n, second = 0n] = await intake.receiveWithFiles([
      { attachments: [resume(same, { hasVirus: null })] },
      { attachments: [resume(same, { hasVirus: false })] },
    ]);
    expect((await intake.files()).map((row) => row.state)).toEqual(['stored', 'stored']);
    expect(await intake.keys()).toHaveLength(1);

    await intake.change(first, { attachments: [resume(same, { hasVirus: true })] });
    // From this moment nobody is shown where they lie.
    for (const id of [first, second]) {
      expect(await intake.store.files.findStoredFile([board.advertiserId], id, 'resume')).toEqual([]);
    }
    expect(await intake.store.deletions.hasDueDeletes()).toBe(true);
    await intake.runDownloads();
    expect(await intake.store.deletions.hasDueDeletes()).toBe(false);
    expect((await intake.files()).map((row) => row.state)).toEqual(['infected', 'infected']);
    expect(await intake.keys()).toEqual([]);
    expect(await intake.database.query(`SELECT 1 FROM intake.applications WHERE ready_at IS NULL`)).toEqual([]);

    const [third = 0n] = await intake.receive([{ attachments: [resume(same, { hasVirus: false })] }]);
    expect(await intake.runDownloads()).toMatchObject({ infected: 1, stored: 0 });
    expect(await intake.keys()).toEqual([]);
    expect((await intake.files()).find((row) => row.application_id === String(third))).toMatchObject({
      state: 'infected',
      reason: expect.stringContaining('flagged the same bytes'),
    });

    // The flag is lifted: all of them are fetched again.
    await intake.changeWithFiles(first, { attachments: [resume(same, { hasVirus: false })] });
    expect((await intake.files()).map((row) => [BigInt(row.application_id), row.state])).toEqual([
      [first, 'stored'],
      [second, 'stored'],
      [third, 'stored'],
    ]);
    expect(await intake.keys()).toHaveLength(1);
  });

  test('true on a newly uploaded file recalls no earlier one, here or elsewhere', async () => {
    await using intake = await openSmallIntake();
    const resume = { kind: 'resume', content: 'the same clean resume', hasVirus: false };
    const [first] = await intake.receiveWithFiles([{ attachments: [resume] }, { attachments: [resume] }]);
    const newer = { kind: 'resume', content: 'another file', hasVirus: true, uploadedAt: Date.now() + 60_000 };
    await intake.changeWithFiles(first as bigint, { attachments: [newer] });
    expect((await intake.files()).map(({ state, reason }) => [state, reason])).toEqual([
      ['infected', null],
      ['stored', null],
    ]);
    expect(await intake.keys()).toHaveLength(1);
  });

  test('true on an upload of which other bytes came before: all of its bytes are infected, also when it was replaced since', async () => {
    await using intake = await open();
    const { board } = intake;
    const at = 1_700_000_000_000;
    const show = (content: string, hasVirus: boolean | null, uploadedAt = at) => ({
      attachments: [resume(content, { hasVirus, uploadedAt })],
    });
    const [id = 0n] = board.add([show('bytes A', null), show('bytes A', null), show('bytes B', null)]);
    const changes = [
      show('bytes A', null),
      show('bytes B', null),
      show('bytes B', true),
      show('clean', false, at + 60_000),
    ];
    for (const change of changes) {
      board.change(id, change);
      await intake.sweep(true);
      await intake.runDownloads();
    }
    expect((await intake.files()).map((row) => row.state)).toEqual(['stored', 'infected', 'infected']);
    expect(await intake.keys()).toEqual([expect.stringContaining(sha256('clean'))]);
  });

  test('true recalls an earlier version of another file, and the rows of a screen', { tags: ['slow'] }, async () => {
    await using intake = await open();
    const bad = '{"screen":{"@id":"1","question":{"@id":"2","answer":"read from bad bytes"}}}';
    const screen = { kind: 'screen', hasVirus: false, uploadedAt: 1_700_000_000_000 };
    const [first = 0n, second = 0n] = await intake.receiveWithFiles([
      { attachments: [resume(bad)] },
      { attachments: [screen], rawScreen: { json: bad, xml: '<screen id="1"/>' } },
    ]);
    await intake.changeWithFiles(first, { attachments: [resume('another resume')] });
    expect((await loadScreens(database)).size).toBe(1);
    await intake.changeWithFiles(second, { attachments: [{ ...screen, hasVirus: true }] });
    expect((await intake.files()).map((row) => row.state)).toEqual(['stored', 'infected']);
    expect(await database.query(`SELECT version, state FROM intake.attachment_versions`)).toEqual([
      { version: 1, state: 'infected' },
    ]);
    expect((await loadScreens(database)).size).toBe(0);
    expect(await intake.keys()).toEqual([expect.stringContaining(sha256('another resume'))]);
  });
});

describe('A2 HasVirus', () => {
  test('true with bytes: nothing is requested, nothing kept', async () => {
    await using intake = await openOne('a virus', { hasVirus: true });
    intake.board.choose({ virusBody: 'bytes' });
    expect(await intake.runDownloads()).toMatchObject({ stored: 0 });
    expect(requestsFor(intake, 'resume')).toBe(0);
    expect(await intake.file()).toMatchObject({ state: 'infected', sha256: null });
  });

  testFirst(['"yes"', '"infected"', '2', '[true]', '{}'])(
    '%s cannot be read: nothing is requested until it can be',
    async (flag) => {
      await using intake = await openOne('The resume of Ada.', { raw: { HasVirus: flag } });
      const problems = async () => (await loadProblems(intake)).map(({ what }) => what);
      const line = '1 file is not fetched until the virus flag (HasVirus) can be read: ask the source.';
      expect(await intake.file()).toMatchObject({ state: 'rejected', reason: unreadableFlag });
      expect(await problems()).toContain(line);
      expect(await problems()).not.toContain('1 file is rejected.');
      const every = { state: null, applicationId: null, kind: null } as const;
      expect(await intake.store.downloads.retryDownloads(intake.board.advertiserId, every)).toBe(0);
      expect(await intake.runDownloads()).toMatchObject({ stored: 0 });
      expect(requestsFor(intake, 'resume')).toBe(0);

      await intake.change(intake.id, { attachments: [resume('The resume of Ada.', { hasVirus: false })] });
      expect(await intake.runDownloads()).toMatchObject({ stored: 1 });
      expect(await intake.file()).toMatchObject({ state: 'stored', reason: null });
      expect(await problems()).not.toContain(line);
    },
  );

  test('that becomes unreadable takes a waiting file out of the queue, and leaves stored bytes where they are', async () => {
    await using intake = await open();
    const { board } = intake;
    const [stored = 0n] = await intake.receiveWithFiles([{ attachments: [resume('stored')] }]);
    const [waiting = 0n] = await intake.receive([{ attachments: [resume('waiting')] }]);
    const raw = { HasVirus: '"N/A"' };
    board.change(stored, { attachments: [resume('stored', { raw })] });
    await intake.change(waiting, { attachments: [resume('waiting', { raw })] });
    expect(await intake.runDownloads()).toMatchObject({ stored: 0, waiting: 0 });
    expect((await intake.files()).map(({ state }) => state)).toEqual(['stored', 'rejected']);
    expect(await intake.keys()).toHaveLength(1);
  });

  test('false with an empty body is incomplete and tried again', async () => {
    await using intake = await openOne();
    intake.board.fault({ kind: 'emptyBody', on: 'resume', times: 1 });
    await intake.runDownloads();
    expect(await intake.file()).toMatchObject({ state: 'pending' });
    await intake.hasten();
    await intake.runDownloads();
    expect(await intake.file()).toMatchObject({ state: 'stored', sha256: sha256('The resume of Ada.') });
  });
});

describe('A4 Size', () => {
  test('of a screen says 9 MB, and 300 bytes come: its answers are read', async () => {
    await using intake = await open({ choices: { framing: 'chunked' } });
    const screen = {
      json: '{"screen":{"@id":"7","question":{"@id":"1","answer":{"@selected":"True","#text":"Yes"}}}}',
      xml: '<screen/>',
    };
    await intake.receiveWithFiles([{ attachments: [{ kind: 'screen', raw: { Size: '9000000' } }], rawScreen: screen }]);
    expect(await intake.file()).toMatchObject({ state: 'stored', notes: null });
    expect(await intake.database.query(`SELECT text FROM intake.screen_answers`)).toEqual([{ text: 'Yes' }]);
  });

  test.for(['offByThree', 'zero'] as const)('wrong (%s): two equal fetches decide, and it is noted', async (size) => {
    await using intake = await open({ choices: { size } });
    await intake.receiveWithFiles([{ attachments: [resume('exactly this')] }]);
    expect(await intake.file()).toMatchObject({
      state: 'stored',
      sha256: sha256('exactly this'),
      notes: [{ field: 'Size', reason: expect.stringContaining('12 bytes came') }],
    });
    expect(requestsFor(intake, 'resume')).toBe(2);
  });

  test('zero, and truly so: the empty file is stored, and nobody says that its Hash spared a download', async () => {
    await using intake = await openOne('');
    expect(await intake.runDownloads()).toMatchObject({ stored: 1, linked: 0 });
    expect(await intake.file()).toMatchObject({ state: 'stored', sha256: sha256(''), linked: false });
  });

  testFirst(['null', 'absent', 'negative', 'text'] as const)('%s: one fetch is enough', async (size) => {
    await using intake = await open({ choices: { size } });
    await intake.receiveWithFiles([{ attachments: [resume('exactly this')] }]);
    expect(await intake.file()).toMatchObject({ state: 'stored', notes: null });
    expect(requestsFor(intake, 'resume')).toBe(1);
  });
});

describe('A5 a body that is cut', () => {
  testFirst(['contentLength', 'chunked', 'closeDelimited'] as const)('by %s is never stored short', async (framing) => {
    const content = 'a resume of some length, so that half of it is something';
    await using intake = await openOne(content);
    intake.board.fault({ kind: 'cut', framing, on: 'resume', times: 3 });
    await intake.runDownloads();
    expect((await intake.keys()).join()).not.toContain(sha256(content.slice(0, content.length / 2)));
    for (let tries = 0; tries < 3; tries++) {
      await intake.hasten();
      await intake.runDownloads();
    }
    expect(await intake.file()).toMatchObject({ state: 'stored', sha256: sha256(content) });
    expect(await intake.keys()).toHaveLength(1);
  });

  testFirst(['null', 'offByThree'] as const)(
    'cannot be told from a whole one that closes, where Size is %s',
    async (size) => {
      await using intake = await open({ choices: { size, framing: 'closeDelimited' } });
      await intake.receiveWithFiles([{ attachments: [resume('exactly this')] }]);
      expect(await intake.file()).toMatchObject({ state: 'pending', sha256: null });
      // One that says where its end is needs no Size.
      intake.board.choose({ framing: 'contentLength' });
      await intake.hasten();
      await intake.runDownloads();
      expect(await intake.file()).toMatchObject({ state: 'stored', sha256: sha256('exactly this') });
    },
  );

  test('is whole by its Size where only the closing of its connection ends it', async () => {
    await using intake = await open({ choices: { framing: 'closeDelimited' } });
    await intake.receiveWithFiles([{ attachments: [resume('exactly this')] }]);
    expect(await intake.file()).toMatchObject({ state: 'stored', sha256: sha256('exactly this'), notes: null });
  });

  test('with a Content-Length that is wrong is not stored', async () => {
    await using intake = await openOne();
    intake.board.fault({ kind: 'wrongLength', byBytes: 10, on: 'resume', times: null });
    await intake.runDownloads();
    expect(await intake.file()).toMatchObject({ state: 'pending' });
    expect(await intake.keys()).toEqual([]);
  });
});

describe('A6 an error page with status 200', () => {
  test('is not stored; tried again, then final with its reason', async () => {
    await using intake = await openOne();
    intake.board.fault({ kind: 'html', on: 'resume', times: null });
    for (let tries = 0; tries < 9; tries++) {
      expect(await intake.file()).toMatchObject({ state: 'pending' });
      await intake.sweep();
      await intake.hasten();
      await intake.runDownloads();
    }
    const file = await intake.file();
    expect(file).toMatchObject({ state: 'given_up', reason: expect.stringContaining('error page'), sha256: null });
  });

  test('a file that is HTML, with the announced size, is a file', async () => {
    await using intake = await openOne('<html><body>My resume</body></html>', { contentType: 'text/html' });
    await intake.runDownloads();
    expect(await intake.file()).toMatchObject({ state: 'stored', content_type: 'text/html' });
  });
});

test('A7 Href in whatever form is never followed: the path is made of kind and id, and a difference is noted', async () => {
  await using stranger = await openSmallIntake();
  await using intake = await open();
  const { board } = intake;
  const { host } = new URL(stranger.board.url);
  const forms = [
    `http://${host}/v1/x`,
    `//${host}/v1/x`,
    `\\\\${host}\\x`,
    `/\t/${host}/x`,
    '../../../etc/passwd',
    `${board.url}/v1/advertiser/applications/resume/1`,
    'ADVERTISER/APPLICATIONS/RESUME/1',
    '/v1/advertiser/applications/resume/1',
    'advertiser/applications/resume/2',
    '',
    null,
  ];
  const ids = board.add(
    forms.map((href, nth) => ({ attachments: [resume(`file ${nth}`, { raw: { Href: JSON.stringify(href) } })] })),
  );
  const [plain] = await intake.receiveWithFiles([{ attachments: [{ ...resume('a letter'), kind: 'coverLetter' }] }]);
  expect((await intake.files()).map((row) => [row.state, row.sha256])).toEqual(
    [...forms.map((_, nth) => `file ${nth}`), 'a letter'].map((content) => ['stored', sha256(content)]),
  );
  const asked = board.requests().map((entry) => entry.path.replace('/v1/advertiser/applications/', ''));
  expect(asked).toEqual(expect.arrayContaining([...ids.map((id) => `resume/${id}`), `coverletter/${plain}`]));
  expect(stranger.board.requests()).toEqual([]);
  expect(
    await database.query(`SELECT application_id FROM intake.applications WHERE notes::text LIKE '%Attachments.Href%'`),
  ).toHaveLength(forms.length);
});

test('A8 Type unknown or null is a row, and nothing is requested; two of one kind are marked', async () => {
  await using intake = await open();
  const odd = { kind: 'coverLetter', content: 'z', raw: { Type: 'null' } };
  intake.board.add([{ attachments: [{ kind: 'portfolio', content: 'x' }, resume('y'), odd] }]);
  const twice = [resume('w', { hasVirus: false }), { ...resume('w'), kind: 'coverLetter', raw: { Type: '"resume"' } }];
  const [ambiguous] = await intake.receiveWithFiles([{ attachments: twice }]);
  expect((await intake.files()).map((row) => [row.kind, row.state])).toEqual([
    ['portfolio', 'rejected'],
    ['resume', 'stored'],
    ['unknown', 'rejected'],
    ['resume', 'stored'],
  ]);
  expect(requestsFor(intake, 'coverletter')).toBe(0);
  const [row] = await database.query(`SELECT notes FROM intake.applications WHERE application_id = $1`, [ambiguous]);
  expect(row?.notes).toContainEqual({ field: 'Attachments.Type', reason: expect.stringContaining('ambiguous') });
});

describe('A9 a file that is not there', () => {
  test('now, and is later: it waits, the application is not ready, then it is stored', async () => {
    await using intake = await openOne();
    intake.board.fault({ kind: 'fail', status: 404, on: 'resume', times: 1 });
    expect(await intake.runDownloads()).toMatchObject({ waiting: 1, notThere: 1, missing: 0 });
    expect(await intake.file()).toMatchObject({ state: 'pending' });
    await intake.hasten();
    expect(await intake.runDownloads()).toMatchObject({ stored: 1, waiting: 0 });
  });

  test('for ever ends as missing after tries over a day, and the application is ready without it', async () => {
    await using intake = await openOne();
    intake.board.fault({ kind: 'fail', status: 404, on: 'resume', times: null });
    let waitedMs = 0;
    for (let tries = 0; tries < 7; tries++) {
      await intake.runDownloads();
      const [row] = await intake.database.query<{ ms: number }>(
        `SELECT extract(epoch FROM due_at - now())::float8 * 1000 AS ms FROM intake.downloads`,
      );
      waitedMs += row?.ms ?? 0;
      await intake.hasten();
    }
    expect(waitedMs).toBeGreaterThan(20 * 3_600_000);
    expect(waitedMs).toBeLessThan(28 * 3_600_000);
    expect(await intake.file()).toMatchObject({ state: 'missing', reason: expect.stringContaining('404') });
    expect(await intake.database.query(`SELECT 1 FROM intake.applications WHERE ready_at IS NULL`)).toEqual([]);
  });

  test('for good (410) is missing at once', async () => {
    await using intake = await openOne();
    intake.board.fault({ kind: 'fail', status: 410, on: 'resume', times: 1 });
    expect(await intake.runDownloads()).toMatchObject({ missing: 1, waiting: 0 });
  });
});

describe('A11 Content-Disposition', () => {
  testFirst([
    ['plain', /^Resume_[A-Za-z_]+\.\w+$/],
    ['extended', /^Lebenslauf Zoë – Resume [A-Za-z ]+\.\w+$/],
    ['traversal', /^Resume [A-Za-z ]+\.\w+$/],
    ['long', /^(?:long )+.{1,5}$/],
  ] as const)('%s is kept as a name, never as a path', async ([disposition, name]) => {
    await using intake = await open({ choices: { disposition } });
    await intake.receiveWithFiles([{ attachments: [{ kind: 'resume' }] }]);
    const file = await intake.file();
    expect(file.file_name).toMatch(name);
    expect(file.file_name?.length).toBeLessThanOrEqual(255);
    expect((await intake.keys()).join()).toMatch(/^\d+\/[0-9a-f]{2}\/[0-9a-f]{64}$/);
  });

  test('missing: no name', async () => {
    await using intake = await open({ choices: { disposition: 'missing' } });
    await intake.receiveWithFiles([{ attachments: [{ kind: 'resume' }] }]);
    expect(await intake.file()).toMatchObject({ state: 'stored', file_name: null });
  });
});

describe('A12 a file', () => {
  test('of 10 GB is abandoned at the limit and rejected with the reason', async () => {
    await using intake = await openOne();
    intake.board.fault({ kind: 'flood', on: 'resume', times: null });
    expect(await intake.runDownloads({ maxBytes: 1_000_000 })).toMatchObject({ rejected: 1 });
    expect(await intake.file()).toMatchObject({ state: 'rejected', reason: expect.stringContaining('1000000') });
    expect(await intake.keys()).toEqual([]);
    expect(readdirSync(intake.folder)).toEqual([]);
  });

  test('that announces more than the limit is rejected without being read', async () => {
    await using intake = await open({ choices: { framing: 'contentLength' } });
    await intake.receive([{ attachments: [{ kind: 'resume', sizeBytes: 2_000_000 }] }]);
    let pieces = 0;
    const deps = { onBytes: () => void pieces++ };
    expect(await intake.runDownloads({ maxBytes: 1_000_000, deps })).toMatchObject({ rejected: 1 });
    expect(pieces).toBe(0);
  });

  test.for(['contentLength', 'chunked'] as const)(
    'of exactly the limit is a file, one byte more is too large (%s)',
    async (framing) => {
      await using intake = await open({ choices: { framing } });
      await intake.receive([
        { attachments: [resume('x'.repeat(4_000)), { ...resume('x'.repeat(4_001)), kind: 'coverLetter' }] },
      ]);
      expect(await intake.runDownloads({ maxBytes: 4_000 })).toMatchObject({ stored: 1, rejected: 1 });
      expect((await intake.files()).map(({ kind, state }) => [kind, state])).toEqual([
        ['coverLetter', 'rejected'],
        ['resume', 'stored'],
      ]);
    },
  );

  test('that drips a byte at a time ends at the total deadline, though it is never idle', async () => {
    await using intake = await openOne('x'.repeat(500));
    intake.board.fault({ kind: 'drip', pieceBytes: 1, everyMs: 50, on: 'resume', times: null });
    await intake.runDownloads({ http: { totalTimeoutMs: 600 } });
    // Read to its end, 25 seconds of drips would be a file.
    expect(await intake.file()).toMatchObject({ state: 'pending' });
  });

  test('larger than memory allows goes through the spool, which keeps nothing', async () => {
    await using intake = await open();
    await intake.receive([{ attachments: [{ kind: 'resume', sizeBytes: 10_000_000 }] }]);
    expect(await intake.runDownloads()).toMatchObject({ stored: 1, bytes: 10_000_000 });
    expect(readdirSync(intake.folder)).toEqual(['blobs']);
    const [truth] = [...intake.board.truth()];
    expect((await intake.file()).sha256).toBe(truth?.attachments[0]?.sha256);
  });
});

test('A13 a packed file is not inflated: kept as it came, and noted', async () => {
  await using intake = await openOne('some text, some text, some text');
  intake.board.fault({ kind: 'gzip', on: 'resume', times: null });
  await intake.runDownloads();
  const file = await intake.file();
  expect(file).toMatchObject({ state: 'stored', detected_type: 'application/gzip' });
  expect(file.notes).toContainEqual({ field: 'Content-Encoding', reason: 'gzip, kept as it came' });
});

test('A14 other bytes on every download are noted as unstable, and the last are kept', async () => {
  await using intake = await openOne();
  intake.board.fault({ kind: 'otherBytes', on: 'resume', times: null });
  await intake.runDownloads();
  const file = await intake.file();
  expect(file.state).toBe('stored');
  expect(file.notes).toContainEqual({ field: 'bytes', reason: expect.stringContaining('no two downloads in a row') });
  expect(await intake.keys()).toEqual([expect.stringContaining(file.sha256 ?? '')]);
});
describe('a screen', () => {
  testFirst<Partial<Choices>>([
    { formatHonoured: 'opposite', screenExtras: true },
    { screenShape: 'array', answerText: 'list' },
    { charset: 'utf16', screenShape: 'unwrapped', answerShape: 'objectsWhenOne' },
  ])('is the same rows in whatever form it comes: %j', async (choices) => {
    await using intake = await open({ choices });
    const answers = [{ id: '1', text: '0412', selected: true }];
    const questions = [{ id: '7', type: 'MultipleAnswer', text: 'Which?', answers }];
    const screens = [{ id: '3', name: 'First', successful: true, questions }];
    const [id] = await intake.receiveWithFiles([{ attachments: [{ kind: 'screen' }], screens }]);
    expect((await loadScreens(database)).get(String(id))).toMatchObject([
      {
        ...{ screenId: '3', outcome: 'pass' },
        questions: [{ questionId: '7', answers: [{ answerId: '1', text: '0412', selected: true }] }],
      },
    ]);
  });

  testFirst(['notFound', 'noContent', 'emptyBody'] as const)(
    'that is not there (%s) is waited for',
    async (screenMissing) => {
      await using intake = await open({ choices: { screenMissing } });
      await intake.receive([{ attachments: [{ kind: 'screen' }], screens: [] }]);
      expect(await intake.runDownloads()).toMatchObject({ waiting: 1, stored: 0 });
      expect(await intake.file()).toMatchObject({ state: 'pending', sha256: null });
    },
  );

  test('that cannot be read is kept as bytes, and that is visible', async () => {
    await using intake = await open();
    await intake.receiveWithFiles([
      { attachments: [{ kind: 'screen' }], rawScreen: { json: '{"error": 1}', xml: '<a/>' } },
    ]);
    expect(await intake.file()).toMatchObject({
      state: 'stored',
      sha256: sha256('{"error": 1}'),
      notes: [{ field: 'screen', reason: expect.stringContaining('cannot be read') }],
    });
    expect(await intake.store.reports.loadStatus()).toMatchObject([{ unreadableScreens: 1 }]);
  });

  test('whose answer is a login page is not kept', async () => {
    await using intake = await open();
    await intake.receive([{ attachments: [{ kind: 'screen' }], rawScreen: { json: '{"screen":null}', xml: '<a/>' } }]);
    intake.board.fault({ kind: 'html', on: 'screen', times: null });
    await intake.runDownloads();
    expect(await intake.file()).toMatchObject({ state: 'pending' });
  });
});

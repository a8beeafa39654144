// Values that Postgres refuses or alters, from the wire to the row: the page is stored, its neighbours are untouched.
import { createSecretKey } from 'node:crypto';
import { describe, expect } from 'vitest';
import { toStatus } from '../../../src/domain/status/status.ts';
import { parseElement, parsePage, toElement } from '../../../src/source/parse/list.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { openStore } from '../../../src/store/store.ts';
import { replay } from '../../../src/sync/read/replay-quarantine.ts';
import { aPage, commitPage, commitPageOf } from '../../support/applications.ts';
import { type TestDatabase, test } from '../../support/database/test-database.ts';
import { openAccount, takeLease } from '../../support/leases.ts';
import { openSmallIntake } from '../../support/small-intake.ts';

const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** Members of one element each; `stored` is what its row must show. */
const poison: readonly (readonly [what: string, members: string, stored: Record<string, unknown>])[] = [
  ['NUL in a name', '"FirstName": "a\\u0000b"', { first_name: 'a\ufffdb' }],
  ['a lone surrogate in a name', '"LastName": "a\\ud800b"', { last_name: 'a\ufffdb' }],
  ['NUL in an unknown member', '"Extra": "\\u0000"', { first_name: null }],
  ['a lone surrogate in a key', '"\\udc00": 1', { first_name: null }],
  ['a number beyond jsonb', '"Extra": 1e999999', { first_name: null }],
  ['131,000 digits', `"Extra": ${'9'.repeat(131_000)}`, { first_name: null }],
  ['nesting of 900', `"Extra": ${deep(900)}`, { first_name: null }],
  ['nesting of 20,000', `"Extra": ${deep(20_000)}`, { first_name: null }],
  ['a name of 10,000 characters', `"FirstName": "${'x'.repeat(10_000)}"`, { first_name: 'x'.repeat(10_000) }],
  ['a job reference of 10,000 characters', `"JobReference": "${'\u{1f600}'.repeat(5_000)}"`, { first_name: null }],
  ['a jobseeker id of 10,000 characters', `"JobSeekerID": "${'y'.repeat(10_000)}"`, { job_seeker_id: 'y'.repeat(500) }],
  [
    'a job reference that would drop a table',
    `"JobReference": "'; DROP TABLE intake.applications; --"`,
    { job_reference: `'; DROP TABLE intake.applications; --` },
  ],
  ['a year 1 date', '"DateSubmitted": "/Date(-62135596800000+0000)/"', { submitted_at: null }],
  ['a far date', '"DateSubmitted": "/Date(253402300799999+0000)/"', { submitted_at: new Date(253402300799999) }],
  ['a date beyond', '"DateSubmitted": "/Date(253402300800000+0000)/"', { submitted_at: null }],
  [
    'months beyond an integer',
    '"PrimaryJobSeekingInfo": {"TimeInRole": 99999999999, "JobTitle": "Cook"}',
    { first_name: null },
  ],
  ['a size beyond 2^53', '"Attachments": [{"Type": "resume", "Size": 99999999999999999999}]', { first_name: null }],
  ['a type of 5,000 characters', `"Attachments": [{"Type": "${'z'.repeat(5_000)}"}]`, { first_name: null }],
  ['an own __proto__', '"__proto__": {"Email": "x@example.com"}', { email: null }],
  [
    'markup',
    '"FirstName": "<img onerror=alert(1)>", "LastName": "=1+1"',
    { first_name: '<img onerror=alert(1)>', last_name: '=1+1' },
  ],
];

describe('an application that Postgres would refuse', () => {
  test('is stored with its neighbours, its whole source object kept', async ({ database }) => {
    await using db = openDatabase({ url: database.url, role: 'test' });
    const lease = await takeLease(db, { name: 'acme', lane: 'live', owner: 'test', leaseMs: 60_000 });
    const elements = poison.map(([, members], at) => `{"ID": ${at + 1}, ${members}}`);
    const page = parsePage(`{"JobApplications": {"AdvertiserID": 7, "JobApplicationsList": [${elements.join()}]}}`);
    expect(page.rejects).toEqual([]);
    await commitPage(db, createSecretKey(Buffer.from('key')), aPage(lease, page.applications));
    for (const [at, [what, , stored]] of poison.entries()) {
      const [row] = await db.query(`SELECT * FROM intake.applications WHERE application_id = $1`, [at + 1]);
      expect(row, what).toMatchObject(stored);
      expect(row?.raw_text ?? JSON.stringify(row?.raw), what).toMatch(/"ID": ?\d/);
    }
    const noted = await db.query<{ application_id: bigint }>(
      `SELECT application_id FROM intake.applications WHERE notes IS NOT NULL`,
    );
    expect(noted.length).toBeGreaterThan(10);
  });
});

test('numbers that jsonb writes with all their digits make no text of many times the length', async ({ database }) => {
  await using db = openDatabase({ url: database.url, role: 'test' });
  const lease = await takeLease(db, { name: 'acme', lane: 'live', owner: 'test', leaseMs: 60_000 });
  const numbers = ['1e130000', '1e-130000', '1e499', '1e-499', '1e40', '1e-40', '1e39', '-1e-39'];
  const elements = numbers.map((number, at) => `{"ID":${at + 1},"Big":[${Array(100).fill(number)}]}`);
  const { applications } = parsePage(`[${elements}]`);
  await commitPage(db, createSecretKey(Buffer.from('key')), aPage(lease, applications));
  const rows = await db.query<{ short: boolean; sent: boolean | null }>(
    `SELECT length(a.raw::text) < 10 * length(e.text) AS short, a.raw_text = e.text AS sent
     FROM unnest($1::text[]) WITH ORDINALITY AS e (text, id) JOIN intake.applications a ON a.application_id = e.id ORDER BY e.id`,
    [elements],
  );
  expect(rows).toEqual(numbers.map((_, at) => ({ short: true, sent: at < 5 ? true : null })));
});

/** Elements as an earlier version stored them, beside an application of Ann with the id 556. */
async function replayAll(database: TestDatabase, advertiserId: bigint, raws: readonly string[]) {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('key') });
  const name = `before ${advertiserId}`;
  const lease = await openAccount(store, name, advertiserId);
  const rejects = raws.map((raw, nth) => {
    const reason = 'ID is not an exact integer';
    return { reason, identity: `0${nth}`, applicant: null, members: { ID: `${nth}` }, raw, rawText: null };
  });
  const { applications } = parsePage('[{"ID":556,"Email":"ann@example.com"}]');
  await commitPageOf(store, aPage(lease, applications, { advertiserId, rejects }));
  // A source finds elements whose fingerprints begin with the same twelve digits within seconds.
  await database.query(
    `UPDATE intake.quarantine SET fingerprint = '\\x000000000000'::bytea || substr(fingerprint, 7) WHERE advertiser_id = $1`,
    [advertiserId],
  );
  const whose = { name, advertiserId, owner: 'test', leaseMs: 60_000 };
  const summary = await replay(
    { store, source: { parseElement, toElement } },
    { ...whose, signal: AbortSignal.timeout(600_000) },
  );
  const stored = await database.query<{ id: string; email: string }>(
    `SELECT application_id AS id, email FROM intake.applications WHERE advertiser_id = $1 ORDER BY 1`,
    [advertiserId],
  );
  const open = await store.quarantine.loadQuarantine(advertiserId, 10);
  return { summary, stored: stored.map(({ id, email }) => `${id} ${email}`), open: open.length };
}

describe('a replay', () => {
  test('of an old element does not show that its application is back at the source', async ({ database }) => {
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('key') });
    const advertiserId = 201n;
    const lease = await openAccount(store, 'gone', advertiserId);
    const raw = `{"ID":555,"Email":"a@example.com"}`;
    const parsed = parseElement(raw);
    if (!('id' in parsed)) throw new Error('It cannot be read.');
    const rejects = [
      { reason: 'ID is not an exact integer', identity: '0555', applicant: null, members: {}, raw, rawText: null },
    ];
    await commitPageOf(store, aPage(lease, [parsed], { advertiserId, rejects }));
    await database.query(
      `UPDATE intake.applications SET absent_since = now() - interval '25 hours', missing_since = now() WHERE advertiser_id = $1`,
      [advertiserId],
    );
    const whose = { name: 'gone', advertiserId, owner: 'test', leaseMs: 60_000 };
    const summary = await replay(
      { store, source: { parseElement, toElement } },
      { ...whose, signal: AbortSignal.timeout(600_000) },
    );
    expect(summary).toEqual({ read: 1, added: 0, unusable: 0 });
    expect(
      await database.query(
        `SELECT missing_since IS NOT NULL AS missing, absent_since IS NOT NULL AS absent,
           (SELECT count(*)::int FROM intake.events e WHERE e.advertiser_id = a.advertiser_id AND type = 'application.changed') AS changes
         FROM intake.applications a WHERE advertiser_id = $1`,
        [advertiserId],
      ),
    ).toEqual([{ missing: true, absent: true, changes: 0 }]);
    expect(await store.quarantine.loadQuarantine(advertiserId, 10)).toEqual([]);
  });

  test('does not take a rounded id for one, of which jsonb has written out the digits', async ({ database }) => {
    expect(await replayAll(database, 203n, ['{"ID":1.00122e+05,"Email":"jo@example.com"}'])).toEqual({
      summary: { read: 0, added: 0, unusable: 1 },
      stored: ['556 ann@example.com'],
      open: 1,
    });
  });

  test('resolves the person whose id it is, and nobody else with it', async ({ database }) => {
    const large = 2n ** 53n + 1n;
    const raws = [
      '{"ID":556,"Email":"ann@example.com","X":1}',
      '{"ID":556,"Email":"jo@example.com"}',
      `{"ID":${large},"Email":"kim@example.com"}`,
      `{"ID":${large},"Email":"lee@example.com"}`,
    ];
    const { summary, stored, open } = await replayAll(database, 204n, raws);
    expect(summary).toEqual({ read: 2, added: 1, unusable: 2 });
    expect(stored).toEqual(['556 ann@example.com', expect.stringMatching(/^9007199254740993 (kim|lee)@example.com$/)]);
    expect(open).toBe(2);
  });
});

test('whose a row is takes no more memory where its text is long', async ({ database }) => {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('key') });
  const advertiserId = 207n;
  const lease = await openAccount(store, 'long', advertiserId);
  const long = 'x'.repeat(200_000);
  const elements = [
    { ID: 60, '@Email': ['ann@example.com'], Phone: [long], Resume: long },
    { ID: 61, LastName: [long] },
  ];
  const { applications } = parsePage(JSON.stringify(elements));
  await commitPageOf(store, aPage(lease, applications, { advertiserId }));
  const rows = await store.applications.loadApplicants(advertiserId, applications);
  expect([60n, 61n].map((id) => rows.get(id)?.raw)).toEqual(['{"@Email": ["ann@example.com"]}', null]);
});

describe('an id that names a second person', () => {
  test('does not pass on the row of the first, whom no column names', async ({ database }) => {
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('key') });
    const advertiserId = 205n;
    const lease = await openAccount(store, 'lists', advertiserId);
    const ids = Array.from({ length: 8 }, (_, nth) => nth + 1);
    const toElement = (name: string) => (ID: number) =>
      JSON.stringify({ ID, Email: { z: `${name}@example.com`, at: [ID] } });
    const [ann, jo] = [ids.map(toElement('ann')), ids.map(toElement('jo'))];
    for (const elements of [ann, [...ann, ...jo]]) {
      const { applications, rejects, shared } = parsePage(`[${elements.join()}]`);
      await commitPageOf(store, { ...aPage(lease, applications, { advertiserId, rejects }), shared });
    }
    const toName = (table: string) =>
      database.query(`SELECT DISTINCT raw #>> '{Email,z}' AS z FROM intake.${table} WHERE advertiser_id = $1`, [
        advertiserId,
      ]);
    expect(await toName('applications')).toEqual([{ z: 'ann@example.com' }]);
    expect(await toName('quarantine')).toEqual([{ z: 'jo@example.com' }]);
  });

  // The copies are ranked by their hashes, so either of them may come first.
  test.for(['a', 'b', 'c', 'd'])(
    'does not pass on the row of the first, nor her files: %s',
    async (x, { database }) => {
      await using intake = await openSmallIntake({ database });
      const email = `ann.${x}@example.com`;
      intake.board.add([{ email, attachments: [{ kind: 'resume', content: x }] }]);
      await intake.sweep();
      await intake.runDownloads();
      intake.board.fault({ kind: 'duplicate', on: 'list', times: null, differing: true });
      await intake.sweep(true);
      await intake.sweep(true);
      expect(
        await database.query(
          `SELECT a.email, f.state, (SELECT count(*)::int FROM intake.attachment_versions) AS versions,
           (SELECT count(*)::int FROM intake.events WHERE type = 'application.changed') AS changes
         FROM intake.applications a JOIN intake.attachments f USING (advertiser_id, application_id)`,
        ),
      ).toEqual([{ email, state: 'stored', versions: 0, changes: 0 }]);
      expect(await database.query(`SELECT raw ->> 'Email' AS email, reason FROM intake.quarantine`)).toEqual([
        { email: 'twice@example.com', reason: 'ID names another person as well' },
      ]);
    },
  );

  describe('and is shown alone', () => {
    const ann = {
      ...{ email: 'ann@example.com', jobSeekerId: 'ann', firstName: 'Ann', lastName: 'Ash', phone: '0491 570 006' },
      attachments: [{ kind: 'resume', content: 'of Ann' }],
    };
    const bob = {
      email: 'bob@example.com',
      jobSeekerId: 'bob',
      firstName: 'Bob',
      lastName: 'Birch',
      phone: '0491 570 156',
    };
    const look = (database: TestDatabase) =>
      database.query(
        `SELECT (SELECT email FROM intake.applications) AS email, (SELECT first_name FROM intake.applications) AS name,
           (SELECT count(*)::int FROM intake.events WHERE type = 'application.changed') AS changes,
           ARRAY(SELECT raw ->> 'Email' FROM intake.quarantine) AS others`,
      );

    test.for([
      ['with another account and another address', ann, bob],
      ['by another name, without account and address', ann, { ...bob, jobSeekerId: '', email: '' }],
      [
        'by another phone number alone',
        { ...ann, email: '', jobSeekerId: '' },
        { ...ann, email: '', jobSeekerId: '', phone: '1' },
      ],
    ] as const)(
      '%s, waits in quarantine, however often the answers alternate',
      async ([, first, second], { database }) => {
        await using intake = await openSmallIntake({ database });
        const [id = 0n] = await intake.receiveWithFiles([first]);
        for (const one of [second, first, second, second]) await intake.changeWithFiles(id, { ...first, ...one });
        expect(await look(database)).toEqual([{ email: first.email, name: 'Ann', changes: 0, others: [second.email] }]);
        const { problems } = toStatus(new Date(), await intake.store.reports.loadStatus());
        expect(problems).toContainEqual(expect.objectContaining({ what: expect.stringContaining('quarantine') }));
        expect(await intake.file()).toMatchObject({ state: 'stored', version: 1 });
      },
    );

    // The path of a file has the id alone, so that it serves the other person's.
    test('gets no file of the other one any more, until the row changes', async ({ database }) => {
      await using intake = await openSmallIntake({ database });
      const attachments = [...ann.attachments, { kind: 'coverLetter', content: 'a letter of Ann' }];
      const [id = 0n] = await intake.receiveWithFiles([ann]);
      await intake.change(id, { ...ann, attachments });
      const others = attachments.map((one) => ({ ...one, content: 'of Bob', hasVirus: true, uploadedAt: Date.now() }));
      await intake.changeWithFiles(id, { ...ann, ...bob, attachments: others });
      const reason = 'ID names another person as well';
      expect(await intake.files()).toMatchObject([
        { kind: 'coverLetter', state: 'rejected', reason },
        { kind: 'resume', state: 'stored' },
      ]);
      await intake.changeWithFiles(id, { ...ann, attachments, jobReference: 'another' });
      expect(await intake.files()).toMatchObject([{ state: 'stored' }, { state: 'stored' }]);
    });

    test('and flags the same upload: the file goes, since she may have another address and phone', async ({
      database,
    }) => {
      await using intake = await openSmallIntake({ database });
      const alone = { ...ann, jobSeekerId: '' };
      const [id = 0n] = await intake.receiveWithFiles([alone]);
      const attachments = ann.attachments.map((one) => ({ ...one, hasVirus: true }));
      await intake.changeWithFiles(id, { ...alone, email: 'new@example.com', phone: '1', attachments });
      expect(await intake.file()).toMatchObject({ state: 'infected' });
      expect(await intake.keys()).toEqual([]);
    });

    test.for([
      ['nothing', ''],
      ['a word in the place of the address', 'redacted'],
    ] as const)(
      'after an answer with %s for a person, waits in quarantine: the row is still hers',
      async ([, email], { database }) => {
        await using intake = await openSmallIntake({ database });
        const [id = 0n] = await intake.receiveWithFiles([ann]);
        const nobody = { ...ann, email, jobSeekerId: '', firstName: '', lastName: 'redacted', phone: '' };
        await intake.change(id, nobody);
        await intake.change(id, { ...ann, ...bob });
        await intake.change(id, { ...ann, ...bob, jobSeekerId: '' });
        expect(await look(database)).toMatchObject([{ name: '', others: [bob.email, bob.email] }]);
        expect(await intake.file()).toMatchObject({ state: 'stored', version: 1 });
        expect(await intake.store.privacy.loadKeyState()).not.toBe('differs');
        const found = await intake.store.privacy.findPerson(intake.board.advertiserId, {
          by: 'jobseeker',
          jobSeekerId: ann.jobSeekerId,
        });
        expect(found.applicationIds).toEqual([id]);
        await intake.change(id, ann);
        expect(await look(database)).toMatchObject([{ email: ann.email, name: 'Ann' }]);
      },
    );

    test('after an answer with nothing for one whom only her name tells, waits in quarantine', async ({ database }) => {
      await using intake = await openSmallIntake({ database });
      const named = { ...ann, email: '', jobSeekerId: '' };
      const [id = 0n] = await intake.receiveWithFiles([named]);
      await intake.change(id, { ...named, firstName: '', lastName: 'Redacted', phone: '-' });
      await intake.change(id, { ...named, ...bob });
      await intake.change(id, { ...named, ...bob, email: '', jobSeekerId: '' });
      expect(await look(database)).toMatchObject([{ name: '', others: expect.arrayContaining(['', bob.email]) }]);
      expect(await intake.file()).toMatchObject({ state: 'stored', version: 1 });
    });

    test.for([
      ['e-mail while the account stays', ann, { ...ann, email: 'ann.ash@example.com', phone: '' }],
      ['name, which is redacted', ann, { ...ann, firstName: 'redacted', lastName: 'REDACTED' }],
      [
        'name, e-mail and phone, which are redacted',
        ann,
        { ...ann, firstName: '[redacted]', lastName: '', email: 'redacted', phone: '' },
      ],
      [
        'e-mail, where there is no account',
        { ...ann, jobSeekerId: '' },
        { ...ann, jobSeekerId: '', email: 'ann.ash@example.com' },
      ],
      ['account, where there is no e-mail', { ...ann, email: '' }, { ...ann, email: '', jobSeekerId: 'ann-2' }],
    ] as const)('is the same person with another %s', async ([, first, second], { database }) => {
      await using intake = await openSmallIntake({ database });
      const [id = 0n] = await intake.receive([first]);
      await intake.change(id, second);
      expect(await look(database)).toMatchObject([
        { email: second.email, name: second.firstName, changes: 1, others: [] },
      ]);
    });

    test('beside an element that names nobody, waits in quarantine', async ({ database }) => {
      await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('key') });
      const advertiserId = 206n;
      const lease = await openAccount(store, 'nobody', advertiserId);
      for (const elements of ['{"ID":50,"Email":"ann@example.com"}', '{"ID":50},{"ID":50,"Email":"bob@example.com"}'])
        await commitPageOf(store, {
          ...aPage(lease, [], { advertiserId }),
          ...parsePage(`[${elements}]`),
          advertiserId,
        });
      const read = (table: string) =>
        database.query(`SELECT raw ->> 'Email' AS email FROM intake.${table} WHERE advertiser_id = $1`, [advertiserId]);
      expect(await read('applications')).toEqual([{ email: 'ann@example.com' }]);
      expect(await read('quarantine')).toEqual([{ email: 'bob@example.com' }]);
    });
  });
});

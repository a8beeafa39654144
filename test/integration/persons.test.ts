// Who is found by an address or an account, in whatever form the source passes on what people typed; and who is not.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Sought } from '../../src/domain/erasure.ts';
import { nobody, parseAddress, toAccountId } from '../../src/domain/person.ts';
import { readEmail } from '../../src/source/parse/values.ts';
import { accountIn, isAccount, isAddressIn, toAddressPattern } from '../../src/store/person-search.ts';
import { shareDatabase } from '../support/database/test-database.ts';
import { openSmallIntake, type SmallIntake } from '../support/small-intake.ts';

const database = shareDatabase();

const find = (intake: SmallIntake, sought: Sought) =>
  intake.store.privacy.findPerson(intake.board.advertiserId, sought);
const byAddress = { by: 'address', email: 'zelda@example.com' } as const;

const typed = [
  'zelda@example.com',
  'ZELDA@EXAMPLE.COM',
  `'zelda@example.com'`,
  `Zelda <'zelda@example.com'>`,
  '"zelda@example.com"',
  '<zelda@example.com>',
  '&lt;zelda@example.com&gt;',
  'mailto:zelda@example.com',
  'e-mail:zelda@example.com',
  'zelda@example.com,',
  'zelda@example.com.',
  'zelda@example.com-',
  'zelda@example.com_',
  'zelda@example.com@',
  'zelda@example.com...',
  '.zelda@example.com',
  'zelda @example.com',
  'zelda@ example.com',
  'zelda%40example.com',
  'zelda\uff20example.com',
  '\uff5a\uff45\uff4c\uff44\uff41\uff20example\uff0ecom',
  'zelda@exam\u200bple.com',
  'zelda@example\u00ad.com',
  '\u2060zelda@example.com\ufeff',
  // The rest of what cannot be seen has a test of its own.
  ...['\ufe0f', '\u{e0101}', '\u3164'].map((unseen) => `zel${unseen}da@example.com`),
  'zelda@example.com/zelda2@example.com',
  'zelda@example.com (home)',
  'home\nzelda@example.com',
  '"Quarles, Zelda" <ZELDA@Example.com>',
  'someone@example.org; zelda@example.com',
  'someone@example.org/zelda@example.com',
  'someone@example.org,zelda@example.com',
  'zelda@example.com\t',
  '\u00a0zelda@example.com\u00a0',
];
/** Each of them may be another person's. */
const others = [
  'o.zelda@example.com',
  'o-zelda@example.com',
  `o'zelda@example.com`,
  'x+zelda@example.com',
  '-zelda@example.com',
  ...Array.from('&/=!*#~$|?^{`', (sign) => [`${sign}zelda@example.com`, `tom${sign}zelda@example.com`]).flat(),
  'grizelda@example.com',
  'gri\u200bzelda@example.com',
  'zelda@example.com.au',
  'zelda@example.common',
  'zelda@example.com-pany.org',
  'zelda@example.com@example.org',
  'zelda@example.org',
  'zelda.example.com',
  'zelda at the example.com',
];

describe('an address', () => {
  test('is found in an application however it was typed, and nobody else’s is', async () => {
    await using intake = await openSmallIntake({ database });
    const ids = intake.board.add([...typed, ...others].map((email) => ({ email, attachments: [] })));
    await intake.sweep();
    const { applicationIds } = await find(intake, byAddress);
    expect(applicationIds.map((id) => [...typed, ...others][ids.indexOf(id)])).toEqual(typed);
  });

  test('is without what Unicode says cannot be seen, in Postgres as in the program', async () => {
    const points = Array.from({ length: 0x10ffff }, (_, at) => at + 1).filter((one) => one < 0xd800 || one > 0xdfff);
    const all = `a${points.map((one) => String.fromCodePoint(one)).join('')}a`;
    const [row] = await database.query<{ seen: string }>(`SELECT ${accountIn('$1::text')} AS seen`, [all]);
    expect(row?.seen === all.replace(/\p{Default_Ignorable_Code_Point}/gu, '')).toBe(true);
  });

  test('is found in quarantine however it was typed, and nobody else’s is', async () => {
    await using intake = await openSmallIntake({ database });
    intake.board.add([{ attachments: [] }]);
    for (const email of [...typed, ...others]) {
      const json = JSON.stringify({ ID: 'none', Comment: email });
      intake.board.fault({ kind: 'poison', on: 'list', times: 1, json });
    }
    await intake.sweep();
    const { fingerprints } = await find(intake, byAddress);
    const found = await database.query<{ comment: string }>(
      `SELECT raw->>'Comment' AS comment FROM intake.quarantine WHERE encode(fingerprint, 'hex') = ANY ($1)`,
      [fingerprints],
    );
    expect(new Set(found.map(({ comment }) => comment))).toEqual(new Set(typed));
  });

  test('is found beside texts that take long to normalize, and in one that is longer than any address', async () => {
    await using intake = await openSmallIntake({ database });
    const marks = '\u0301\u0316'.repeat(100_000);
    const [id] = intake.board.add([
      { attachments: [], email: `zelda@example.com ${'\ufdfa'.repeat(1_000)} ${marks}` },
      { attachments: [], email: 'x'.repeat(2_000) },
    ]);
    const json = JSON.stringify({ ID: 'none', Comment: `${marks} zelda@example.com` });
    intake.board.fault({ kind: 'poison', on: 'list', times: null, json });
    await intake.sweep();
    const { applicationIds, fingerprints } = await find(intake, byAddress);
    expect(applicationIds).toEqual([id]);
    expect(fingerprints).toHaveLength(1);
  });

  test('is found in an element of any shape, and so is an account', async () => {
    await using intake = await openSmallIntake({ database });
    intake.board.add([{ attachments: [] }]);
    const byShape = [
      '["Zelda <zelda@example.com>."]',
      '"mailto:zelda@example.com"',
      '{"E":"a\\u0000zelda@example.com"}',
    ];
    const accounts = ['{"JobSeekerID":7788}', '{"jobSeekerId":"7788"}', '{"@JobSeekerID":"7788"}'];
    for (const json of [...byShape, ...accounts, '{"JobSeekerID":77880}', '{"TimeInRole":7788}']) {
      intake.board.fault({ kind: 'poison', on: 'list', times: null, json });
    }
    await intake.sweep();
    expect((await find(intake, byAddress)).counts).toMatchObject({ applications: 0, quarantined: byShape.length });
    const { counts, fingerprints } = await find(intake, { by: 'jobseeker', jobSeekerId: '7788' });
    expect(counts).toMatchObject({ applications: 0, quarantined: 3 });
    const rows = await database.query(
      `SELECT raw FROM intake.quarantine WHERE encode(fingerprint, 'hex') = ANY ($1) ORDER BY raw::text`,
      [fingerprints],
    );
    const found = [{ '@JobSeekerID': '7788' }, { JobSeekerID: 7788 }, { jobSeekerId: '7788' }];
    expect(new Set(rows.map(({ raw }) => JSON.stringify(raw)))).toEqual(
      new Set(found.map((raw) => JSON.stringify(raw))),
    );
  });

  test.for(['["zelda@example.com"]', '{"Address":"zelda@example.com"}', '["home:\\nzelda@example.com"]'])(
    'is found where the source gives no text: %s',
    async (email) => {
      await using intake = await openSmallIntake({ database });
      intake.board.add([{ attachments: [] }]);
      for (const [id, value] of [
        [555, email],
        [556, email.replace('zelda', 'grizelda')],
      ]) {
        const json = `{"ID":${id},"Email":${value},"DateSubmitted":"/Date(1700000000000+1000)/"}`;
        intake.board.fault({ kind: 'poison', on: 'list', times: null, json });
      }
      await intake.sweep();
      expect((await find(intake, byAddress)).applicationIds).toEqual([555n]);
    },
  );

  test('is found, and kept out, where another member nests too deeply for the database, and so is an account', async () => {
    await using intake = await openSmallIntake({ database });
    const { advertiserId } = intake.board;
    const deep = (inner: string) => '['.repeat(1_100) + inner + ']'.repeat(1_100);
    const show = (id: number, members: string) =>
      intake.board.fault({ kind: 'poison', on: 'list', times: null, json: `{"ID":${id},${members}}` });
    intake.board.add([{ attachments: [] }]);
    show(555, `"Email":["zelda@example.com"],"JobSeekerID":["Z-1"],"Deep":${deep('')}`);
    show(556, `"Email":${deep('"zelda@example.com"')},"JobSeekerID":${deep('{"Value":"Z-1"}')}`);
    show(557, `"Email":"jo@example.com","Manager":${deep('"zelda@example.com", "Z-1"')}`);
    await intake.sweep();
    expect((await find(intake, byAddress)).applicationIds).toEqual([555n, 556n]);
    expect((await find(intake, { by: 'jobseeker', jobSeekerId: 'Z-1' })).applicationIds).toEqual([555n, 556n]);
    for (const sought of [byAddress, { by: 'jobseeker', jobSeekerId: 'Z-1' } as const]) {
      await intake.store.erasures.begin({ advertiserId, sought, by: 'test', future: true });
    }
    show(600, `"Email":["zelda@example.com"],"Deep":${deep('')}`);
    show(601, `"JobSeekerID":["Z-1"],"Deep":${deep('')}`);
    show(602, `"Email":["jo@example.com"],"JobSeekerID":["J-1"],"Deep":${deep('')}`);
    await intake.sweep(true);
    const rows = await database.query(
      `SELECT application_id AS id FROM intake.applications WHERE application_id < 1000 AND erased_at IS NULL ORDER BY id`,
    );
    expect(rows).toEqual([{ id: '557' }, { id: '602' }]);
  });

  test('of somebody whom an application only names is not its own', async () => {
    await using intake = await openSmallIntake({ database });
    intake.board.add([{ attachments: [] }]);
    for (const json of [
      '{"ID":555,"Email":null,"Manager":"zelda@example.com"}',
      '{"ID":556,"Manager":{"Email":"zelda@example.com"}}',
      '{"ID":557,"eMail":{"Home":["zelda@example.com"]},"Manager":"jo@example.com"}',
    ]) {
      intake.board.fault({ kind: 'poison', on: 'list', times: null, json });
    }
    await intake.sweep();
    expect((await find(intake, byAddress)).applicationIds).toEqual([557n]);
    expect((await find(intake, { by: 'address', email: 'jo@example.com' })).applicationIds).toEqual([]);
  });
});

describe('a jobseeker account', () => {
  const accounts = ['s1', 's1 ', ' s1', 's1\u200b', 's1\t', '\u00a0s1'];
  const strangers = ['S1', 's11', 's1 s1'];

  test.for(['s1', ' s1\u200b'])(
    'is found by %j with whatever cannot be seen around it, its letters as they are',
    async (id) => {
      await using intake = await openSmallIntake({ database });
      const ids = intake.board.add(
        [...accounts, ...strangers].map((jobSeekerId) => ({ jobSeekerId, attachments: [] })),
      );
      for (const jobSeekerId of [...accounts, ...strangers]) {
        const json = JSON.stringify({ ID: 'none', JobSeekerID: jobSeekerId });
        intake.board.fault({ kind: 'poison', on: 'list', times: null, json });
      }
      await intake.sweep();
      const { applicationIds, fingerprints } = await find(intake, { by: 'jobseeker', jobSeekerId: id });
      expect(applicationIds.map((one) => [...accounts, ...strangers][ids.indexOf(one)])).toEqual(accounts);
      const found = await database.query<{ id: string }>(
        `SELECT raw->>'JobSeekerID' AS id FROM intake.quarantine WHERE encode(fingerprint, 'hex') = ANY ($1)`,
        [fingerprints],
      );
      expect(new Set(found.map((row) => row.id.replace(/[\s\u200b]/g, '')))).toEqual(new Set(['s1']));
      expect(found.length).toBeGreaterThan(1);
    },
  );

  test.for(['["7788"]', '{"Value":" 7788"}', '[{"ID":7788}]'])(
    'is found where the source gives no text: %s',
    async (account) => {
      await using intake = await openSmallIntake({ database });
      intake.board.add([{ attachments: [] }]);
      for (const member of [
        `"@jobSeekerId": ${account}`,
        `"jobSeekerId":${account}`,
        `"JobSeekerID":${account.replace('7788', '77889')}`,
        `"X":7788`,
      ]) {
        const json = `{"ID":${member.length},${member}}`;
        intake.board.fault({ kind: 'poison', on: 'list', times: null, json });
      }
      await intake.sweep();
      const { applicationIds } = await find(intake, { by: 'jobseeker', jobSeekerId: '7788' });
      const { length } = `"jobSeekerId":${account}`;
      expect(applicationIds).toEqual([BigInt(length), BigInt(length + 2)]);
    },
  );
});

describe('the program and the database', () => {
  const oneOf = (...parts: string[]) => fc.constantFrom(...parts);
  const letter = oneOf(...'abiIkKzZ019éÉßẞσςΣıİſжЖ中ｚＺ﹒ﬁ\u212a\ua7f1');
  const mark = oneOf('\u0307', '\u0301', '\u0316', '\u0327', '\uff9e', '\u0301'.repeat(31), '\u0307\u0307');
  const unseen = oneOf('\u200b', '\u00ad', '\u034f', '\ufe0f', '\u{e0101}', '\u180e', '\ufeff', '\u3164');
  const sign = oneOf(...`._-+'"<>%@,;:()/\\!#$&*={}|~^\``, '\ufdfa', '\u0600', '\u0085', '\u001f');
  const blank = oneOf(...' \t\n\v\f\u00a0\u1680\u2007\u2028\u202f\u205f\u3000');
  const any = fc.integer({ min: 1, max: 0xd7ff }).map((point) => String.fromCodePoint(point));
  const draw = <T>(arbitrary: fc.Arbitrary<T>) => fc.sample(arbitrary, { numRuns: 1_500, seed: 38 });
  const word = (...parts: fc.Arbitrary<string>[]) =>
    fc.string({ unit: fc.oneof(letter, mark, unseen, ...parts), maxLength: 6 });

  test('agree on every address: who is asked for by a copy is found', async () => {
    const local = word(sign, any);
    const typed = draw(fc.tuple(local, word(sign, any), letter).map(([a, b, end]) => `${a}@${b}${end}`));
    const asked = typed.filter((email) => parseAddress(email) !== null);
    const rows = await database.query<{ found: boolean }>(
      `SELECT ${isAddressIn('email', 'ARRAY[pattern]')} AS found
       FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS t (email, pattern, nth) ORDER BY nth`,
      [asked.map((email) => readEmail(email, [])), asked.map(toAddressPattern)],
    );
    expect(asked.length).toBeGreaterThan(800);
    expect(asked.filter((_, nth) => !rows[nth]?.found).map(toAscii)).toEqual([]);
  });

  test('agree on which spellings are one address', async () => {
    const spelling = fc.string({
      unit: fc.oneof(oneOf('i', 'I', 'σ', 'ς', 'Σ', 'é', 'É', 'ｉ'), unseen, oneOf('\u0307', 'İ')),
      maxLength: 3,
    });
    const pairs = draw(fc.tuple(spelling, spelling)).map((pair) => pair.map((text) => `a${text}z@example.com`));
    const rows = await database.query<{ found: boolean }>(
      `SELECT ${isAddressIn('email', 'ARRAY[pattern]')} AS found
       FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS t (email, pattern, nth) ORDER BY nth`,
      [pairs.map(([email]) => email), pairs.map(([, sought = '']) => toAddressPattern(sought))],
    );
    const isOne = pairs.map(([a = '', b = '']) => parseAddress(a) === parseAddress(b));
    expect(isOne.filter((one) => one).length).toBeGreaterThan(100);
    expect(pairs.filter((_, nth) => rows[nth]?.found !== isOne[nth]).map(toAscii)).toEqual([]);
  });

  test('agree on every account', async () => {
    const around = (inside: fc.Arbitrary<string>) => fc.tuple(blank, inside, blank).map((parts) => parts.join(''));
    const placeholder = oneOf(...nobody, 'NULL', '0-0', '00');
    const ids = draw(fc.oneof(word(sign, blank, any), around(word(blank)), around(placeholder)));
    const rows = await database.query<{ account: string; names: boolean }>(
      `SELECT ${accountIn('id')} AS account, ${isAccount('id')} AS names
       FROM unnest($1::text[]) WITH ORDINALITY AS t (id, nth) ORDER BY nth`,
      [ids],
    );
    const differ = ids.filter((id, nth) => {
      const sought = toAccountId(id);
      const { account, names } = rows[nth] ?? {};
      // Which characters are letters depends on the version of Unicode; of Latin ones it does not.
      return (sought !== null && sought !== account) || (/\w/.test(id) && names !== (sought !== null));
    });
    expect(differ.map(toAscii)).toEqual([]);
  });
});

const toAscii = (value: unknown) =>
  JSON.stringify(value).replace(/[^ -~]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);

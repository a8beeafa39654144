// What strangers choose, at the door: an applicant's file, a candidate's profile, the board's members. Each value is bounded where it is
// parsed.
import { expect, test } from 'vitest';
import {
  cutMarks,
  findAccounts,
  findAddresses,
  mostNamed,
  mostSearched,
  parseAddress,
  toAccountId,
  toBareAddress,
} from '../../../src/domain/person.ts';
import { describeFile, detectType, startsAsHtml } from '../../../src/source/parse/file-description.ts';
import { parseJson } from '../../../src/source/parse/json.ts';
import { parsePage } from '../../../src/source/parse/list.ts';
import { parseProfile } from '../../../src/source/parse/profile.ts';
import { parseScreens } from '../../../src/source/parse/screen.ts';
import { mostValues } from '../../../src/source/parse/values.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');

test.for([
  ['a page', '<!DOCTYPE html><html>', true],
  ['a page behind comments and a byte order mark', '\xef\xbb\xbf \n<!-- a --> <!--><!----><HTML>', true],
  ['sixty empty comments, then text', `${'<!---->'.repeat(60)}text`, false],
  ['a comment that does not end', '<!-- <html>', false],
  ['an element whose name only begins like one', '<htmlish>', false],
] as const)('a file that begins with %s is a page: %s', ([, text, isPage]) => {
  expect(startsAsHtml(bytes(text))).toBe(isPage);
});

test('a run of millions of marks is cut to thirty, and what is no mark ends it', () => {
  expect(cutMarks('\u0301'.repeat(6_000_000))).toHaveLength(30);
  const marks = '\u0301'.repeat(25) + '\u{1e000}'.repeat(10);
  expect(cutMarks(`${marks}中${marks}`)).toBe(
    `${'\u0301'.repeat(25)}${'\u{1e000}'.repeat(5)}中`.repeat(2).slice(0, -1),
  );
});

test('an element without an id that is longer than a search reads is not kept, and delays nobody', () => {
  const toText = (Email: string) => JSON.stringify([{ Email }, { ID: 1, Email }]);
  const { applications, rejects } = parsePage(toText('x'.repeat(mostSearched)));
  expect(applications.map(({ id }) => id)).toEqual([1n]);
  expect(rejects).toMatchObject([
    { reason: expect.stringContaining('which are not kept'), raw: 'null', rawText: null },
  ]);
});

test('the type of a file is detected from its first 64 kB', async () => {
  expect(await detectType(bytes('%PDF-1.4'))).toBe('application/pdf');
  const asked: unknown[] = [];
  const large = Buffer.alloc(20_000_000);
  large.subarray = (...range) => {
    asked.push(range);
    return Buffer.alloc(1);
  };
  expect(await detectType(large)).toBeNull();
  expect(asked).toEqual([[0, 65_536]]);
  expect(await describeFile({}, bytes('text'))).toMatchObject({ detectedType: 'text/plain' });
});

test.for([
  ['zelda@example.com', 'zelda@example.com'],
  ['Zelda <ZELDA@example.com> ', 'zelda@example.com'],
  ['Zelda <one> <zelda@example.com>', 'zelda@example.com'],
  [`"mailto:zelda@example.com"`, 'mailto:zelda@example.com'],
  [`mailto: 'zelda@example.com'`, 'zelda@example.com'],
  ['zelda', null],
  ['@example.com', null],
  ['zelda@', null],
  ['zelda at home@example.com', null],
  [`${'z'.repeat(308)}@example.com`, `${'z'.repeat(308)}@example.com`],
  [`${'z'.repeat(309)}@example.com`, null],
] as const)('%s is the address %s', ([text, address]) => {
  expect(parseAddress(text)).toBe(address);
});

test('letters whose small form depends on the language or the place in a word are one letter, as in a search', () => {
  for (const text of ['İSMAİL.ΝΙΚΟΣ@example.com', 'i\u0307smail.νικος@example.com', 'I\u0307smail.νικοσ@EXAMPLE.com']) {
    expect([parseAddress(text), ...findAddresses(`"${text}"`)]).toEqual([
      'ismail.νικοσ@example.com',
      'ismail.νικοσ@example.com',
    ]);
  }
});

test('a name in brackets that is no address stays as it was typed', () => {
  expect(toBareAddress('<<zelda>')).toBe('<<zelda>');
  expect(toBareAddress(`<${'@'.repeat(20)}`)).toBe(`<${'@'.repeat(20)}`);
});

test('a text that can be read as one address or another gives both', () => {
  expect(findAddresses('{"a":"x!zelda@example.com. and o\'zelda %40 example.org"}')).toEqual([
    'x!zelda@example.com',
    "o'zelda@example.org",
  ]);
  expect(findAddresses('"x%40y@example.com"')).toEqual(['x@y', 'y@example.com']);
  expect(findAddresses('"a,b@example.com"')).toEqual(['a,b@example.com', 'b@example.com']);
});

test.for(['\ufe0f', '\u{e0101}', '\u3164', '\uffa0', '\u206a'])(
  'an address without %j, which cannot be seen',
  (unseen) => {
    expect(findAddresses(`"zel${unseen}da@example.com"`)).toEqual(['zelda@example.com']);
    expect(parseAddress(`zelda@${unseen}example.com`)).toBe('zelda@example.com');
  },
);

test.for(['x@my_host.com', 'x@[10.0.0.1]'])('the address %s is found as a request names it', (address) => {
  expect([findAddresses(`{"a":"Z <${address}>_"}`), parseAddress(address)]).toEqual([[address], address]);
});

test('an account id is found in a list and in an object, and nothing after them is', () => {
  expect(findAccounts('{"JobSeekerID":[{"a":"]"},7],"Other":8,"jobseekerid":{"b":["c"]},"x":"y"}')).toEqual(['7', 'c']);
  expect(findAccounts('{"JobSeekerID":["open')).toEqual([]);
});

test('a text gives a bounded number of addresses and accounts', () => {
  expect(findAddresses('!!!@a1'.repeat(40_000)).length).toBeLessThanOrEqual(mostNamed + 1);
  expect(findAddresses(Array.from({ length: 5_000 }, (_, at) => `p${at}@example.com`).join()).length).toBe(
    mostNamed + 1,
  );
  expect(findAccounts(Array.from({ length: 5_000 }, (_, at) => `"JobSeekerID":${at + 1}`).join()).length).toBe(
    mostNamed + 1,
  );
});

test.for(['DOM\\user', 'a"b', 'a\nb', 'a/b', '\u0001b'])(
  'an account id that JSON writes with escapes is found: %j',
  (id) => {
    expect(findAccounts(JSON.stringify({ JobSeekerID: id, Other: '"' }))).toEqual([id]);
  },
);

test('an account id in an attribute of XML is found', () => {
  expect(findAccounts('{"@JobSeekerID":"7","X":{"@jobseekerid":["8"]},"@@JobSeekerID":"9"}')).toEqual(['7', '8']);
});

test('a number in a profile keeps its digits', () => {
  const profile = parseProfile(parseJson('{"phone":61.40,"sub":7.0,"age":-0}'), 'https://api.example.com');
  expect(profile).toMatchObject({ phone: '61.40', accountIds: ['7.0'], raw: '{"phone":61.40,"sub":7.0,"age":-0}' });
});

test.for([
  ['00\u200b12', '0012'],
  [' 0-0 ', null],
  ['N/A', null],
  ['', null],
  ['Straße 1', 'Straße 1'],
  ['x'.repeat(501), null],
] as const)('the account id %s names %s', ([text, account]) => {
  expect(toAccountId(text)).toBe(account);
});

test('a profile that names more than a thousand people is refused: no erasure could be sure of it', () => {
  const parse = (members: Record<string, unknown>) => parseProfile(members, 'https://api.example.com');
  expect(() => parse({ note: Array.from({ length: 1_001 }, (_, at) => `p${at}@example.com`) })).toThrow(
    'more than 1000 people',
  );
  expect(() =>
    parse(Object.fromEntries(Array.from({ length: 1_001 }, (_, at) => [`m${at}`, { sub: `s${at}` }]))),
  ).toThrow('more than 1000 people');
});

test('a profile with many links to resumes elsewhere has one note of them', () => {
  const links = Array.from({ length: 500 }, (_, at) => `https://evil.example/v2/resumes/${at}`);
  const { notes, resumeId } = parseProfile({ links, own: '/v2/resumes/abc-1/' }, 'https://api.example.com');
  expect({ notes, resumeId }).toEqual({
    notes: [{ field: 'resume', reason: 'lies at another host' }],
    resumeId: 'abc-1',
  });
});

test('a link to a resume that is longer than any address is not read', () => {
  const link = (folders: number) => `https://api.example.com/${'x/'.repeat(folders)}v2/resumes/abc-1`;
  const find = (folders: number) => parseProfile({ link: link(folders) }, 'https://api.example.com').resumeId;
  expect([find(900), find(1_000)]).toEqual(['abc-1', null]);
});

const tooMany = mostValues + 1;
const inXml = (content: string) =>
  `<JobApplicationsList><JobApplication><ID>1</ID>${content}</JobApplication></JobApplicationsList>`;

test.for([
  ['numbers in JSON', `[${'1,'.repeat(4 * tooMany)}1]`],
  ['objects in JSON', `[{"ID":1,"Attachments":[${'{},'.repeat(3 * tooMany)}{}]}]`],
  ['elements in XML', inXml('<a/>'.repeat(tooMany))],
  ['attributes in XML', inXml(`<a${' b="c"'.repeat(tooMany)}/>`)],
] as const)('an answer with more %s than any list has is refused before it fills the memory', ([, text]) => {
  expect(() => parsePage(text)).toThrow('more than 400000 values');
});

test('a list with a hundred thousand bare tabs is read, one with more is refused before they fill the memory', () => {
  const page = (tabs: number) => parsePage(`[{"ID":1,"FirstName":"${'\t'.repeat(tabs)}"}]`);
  expect(page(100_000).applications[0]?.firstName).toHaveLength(100_000);
  expect(() => page(15_900_000)).toThrow('more than 100000 bare control characters');
});

test('a list of more elements than its bytes allow for is refused, and so is a screen of so many values', () => {
  expect(() => parsePage(`[${'1,'.repeat(20_000)}1]`)).toThrow('more than 20000 elements');
  const screen = Buffer.from(`{"screen":{"question":[${'{},'.repeat(tooMany)}{}]}}`);
  expect(() => parseScreens(screen, undefined)).toThrow('more than 400000 values');
});

test('an application in XML of more than 4 MB is refused, since its parser would take forty times that', () => {
  expect(() => parsePage(inXml(`<Email>${'x'.repeat(4_000_000)}</Email>`))).toThrow('longer than 4000000');
});

test.for([
  ['JSON', JSON.stringify([{ ID: 1, Email: '",{[\\'.repeat(tooMany) }])],
  ['XML', inXml(`<Email><![CDATA[${'<a b='.repeat(tooMany)}]]></Email>`)],
] as const)('what a person writes in %s is one value, whatever it looks like', ([, text]) => {
  expect(parsePage(text).applications).toHaveLength(1);
});

test('an application and a screen have a bounded number of notes, and an application of attachments', () => {
  const many = Array.from({ length: 20_000 }, (_, at) => ({ Type: `kind ${at}`, Size: 'x', HasVirus: at }));
  const [application] = parsePage(JSON.stringify([{ ID: 1, Attachments: [...many, { Type: 'resume' }] }])).applications;
  expect(application?.attachments).toHaveLength(101);
  expect(application?.attachments.at(-1)?.kind).toBe('resume');
  expect(application?.notes.map(({ field }) => field)).toEqual([
    ...['Attachments.Size', 'Attachments.HasVirus', 'Attachments', 'Attachments.Href'],
  ]);
  const questions = Buffer.from(JSON.stringify({ screen: { '@id': '1', question: Array(20_000).fill(1) } }));
  expect(parseScreens(questions, undefined).screens[0]?.notes).toHaveLength(100);
});

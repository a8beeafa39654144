// Values: what a member may hold, and what is stored of it. Each row is one thing a source was seen to send.

import { describe, expect, test } from 'vitest';
import type { Application, Reject } from '../../../src/domain/application.ts';
import { parseElement, parsePage } from '../../../src/source/parse/list.ts';

function read(elementJson: string): { application: Application | undefined; reject: Reject | undefined } {
  const page = parsePage(
    `{"JobApplications":{"AdvertiserID":7,"JobApplicationsList":[{"ID":1},${elementJson},{"ID":2}]}}`,
  );
  const others = page.applications.filter(({ raw }) => raw !== '{"ID":1}' && raw !== '{"ID":2}');
  // Whatever stands between them, its neighbours are there.
  expect(page.ids).toContain(1n);
  expect(page.ids).toContain(2n);
  return { application: others[0], reject: page.rejects[0] };
}

function application(members: string): Application {
  const found = read(`{"ID":5,${members}}`).application;
  if (found === undefined) throw new Error('no application was read');
  return found;
}

function notedFields(from: Application): string[] {
  return from.notes.map(({ field }) => field);
}

describe('an id', () => {
  test.for([
    ['a number', '123', 123n],
    ['a text of digits', '"123"', 123n],
    ['text with leading zeros', '"00123"', 123n],
    ['just above 2^53', '9007199254740993', 9007199254740993n],
    ['2^63-1', '9223372036854775807', 9223372036854775807n],
    ['2^63-1 as text', '"9223372036854775807"', 9223372036854775807n],
    ['written 3.0', '3.0', 3n],
  ] as const)('%s is kept exactly', ([, json, id]) => {
    expect(read(`{"ID":${json}}`).application?.id).toBe(id);
  });

  test.for([
    ['0', '0', /below 1/],
    ['negative', '-5', /below 1/],
    ['-2^63', '-9223372036854775808', /below 1/],
    ['2^63', '9223372036854775808', /64 bits/],
    ['twenty digits', '12345678901234567890', /64 bits/],
    ['"1e3"', '"1e3"', /exact integer/],
    ['1.5', '1.5', /exact integer/],
    ['a large number without its digits', '5e18', /exact integer/],
    ['empty text', '""', /exact integer/],
    ['true', 'true', /exact integer/],
    ['an object', '{"a":1}', /exact integer/],
    ['null', 'null', /missing/],
  ] as const)('%s makes its element a reject, kept whole', ([, json, reason]) => {
    const { application, reject } = read(`{"ID":${json},"Email":"a@example.com"}`);
    expect(application).toBeUndefined();
    expect(reject?.reason).toMatch(reason);
    expect(reject?.raw).toContain(json);
    expect(reject?.raw).toContain('a@example.com');
  });

  test.for(['1.00122e+05', '5e18'])('%s keeps its spelling, so that no replay reads it as an id', (json) => {
    const { reject } = read(`{"ID":${json},"Email":"a@example.com"}`);
    expect(parseElement(reject?.rawText ?? '')).toMatchObject({ reason: 'ID is not an exact integer' });
  });

  test('in a text that is no JSON is none, and what a search takes long for is cut', () => {
    const reject = parseElement(`{"ID":1,"X":"a${'\u0301'.repeat(200)}`);
    expect(reject).toMatchObject({ reason: 'is not valid JSON', rawText: null });
    expect(reject.raw).toContain('X');
    expect(reject.raw).not.toMatch(/\u0301{31}/);
  });

  test.for([
    ['{"FirstName":"John","LastName":"Smith"}', '{"FirstName":"John","LastName":"Smith","City":"Perth"}'],
    ['{"Phone":"131 500","FirstName":"Ann"}', '{"Phone":"131 500","FirstName":"Jo"}'],
  ] as const)('a name or a phone without an account or an address identifies nobody: %s, %s', ([one, other]) => {
    expect(read(one).reject?.identity).not.toBe(read(other).reject?.identity);
    expect(read(one).reject?.applicant).not.toBeNull();
  });

  test.for(['5', '"text"', 'null', 'true'])('an element %s is no object and becomes a reject', (json) => {
    expect(read(json).reject).toMatchObject({ reason: 'is not an object', raw: json, rawText: null });
  });

  test('digits beyond a double stay exact in raw, wherever they stand', () => {
    const literals = '"Other":12345678901234567890.123,"More":[1e39,1e-39,5.00000000000000000001]';
    expect(application(literals).raw).toBe(`{"ID":5,${literals}}`);
  });

  test('reads the same whatever its neighbours hold', () => {
    const element = '{"ID":3.0,"Size":1e3,"Other":1.50,"More":15e-1}';
    const [alone] = parsePage(`[${element}]`).applications;
    const [beside] = parsePage(`[${element},{"ID":9007199254740993}]`).applications;
    expect(beside).toEqual(alone);
  });
});

describe('a boolean', () => {
  test.for([
    ['true', true],
    ['false', false],
    ['"True"', true],
    ['1', true],
    ['0', false],
    ['null', null],
  ] as const)('%s is %s', ([json, hasVirus]) => {
    const read = application(`"Attachments":[{"Type":"other","HasVirus":${json}}]`);
    expect(read.attachments[0]?.hasVirus).toBe(hasVirus);
    expect(read.notes).toEqual([]);
  });

  test.for([
    ['""', null],
    ['"maybe"', 'unreadable'],
    ['2', 'unreadable'],
    ['[]', 'unreadable'],
  ])('%s is %s and noted', ([json, flag]) => {
    const read = application(`"Attachments":[{"Type":"other","HasVirus":${json}}]`);
    expect(read.attachments[0]?.hasVirus).toBe(flag);
    expect(notedFields(read)).toEqual(['Attachments.HasVirus']);
  });
});

describe('Size', () => {
  test.for([
    ['123', 123],
    ['"123"', 123],
    ['0', 0],
    ['123.0', 123],
    ['-0', 0],
    ['null', null],
    ['9007199254740991', 9007199254740991],
  ] as const)('%s is %s', ([json, sizeBytes]) => {
    const read = application(`"Attachments":[{"Type":"other","Size":${json}}]`);
    expect(read.attachments[0]?.sizeBytes).toBe(sizeBytes);
    expect(read.notes).toEqual([]);
  });

  test.for(['-1', '1.5', '"12 KB"', '9007199254740993', '1e30', '{}'])('%s is null and noted', (json) => {
    const read = application(`"Attachments":[{"Type":"other","Size":${json}}]`);
    expect(read.attachments[0]?.sizeBytes).toBeNull();
    expect(notedFields(read)).toEqual(['Attachments.Size']);
  });
});

describe('a text', () => {
  test.for([
    ["O'Brien", `"O'Brien"`],
    ['emoji', '"Zoë 😀"'],
    ['right-to-left marks', '"\u202eevil\u202c"'],
    ['markup', '"<img onerror=alert(1)>"'],
    ['a leading =', '"=HYPERLINK(1)"'],
    ['10,000 characters', JSON.stringify('x'.repeat(10_000))],
    ['control characters', '"a\\u0001\\u001fb\\u007f"'],
    ['a literal backslash-u', '"C:\\\\u0000\\\\ud800"'],
    ['empty', '""'],
  ] as const)('%s is stored as it came', ([, json]) => {
    const read = application(`"FirstName":${json}`);
    expect(read.firstName).toBe(JSON.parse(json));
    expect(read.notes).toEqual([]);
    expect(read.rawText).toBeNull();
    expect(JSON.parse(read.raw)).toEqual({ ID: 5, FirstName: JSON.parse(json) });
  });

  test.for([
    ['NUL', '"a\\u0000b"', 'a\ufffdb'],
    ['a lone high surrogate', '"a\\ud83db"', 'a\ufffdb'],
    ['a lone low surrogate', '"\\uDE00b"', '\ufffdb'],
    ['NUL after a backslash', '"\\\\\\u0000"', '\\\ufffd'],
  ] as const)('%s is replaced visibly, noted, and kept in the raw text', ([, json, stored]) => {
    const read = application(`"FirstName":${json}`);
    expect(read.firstName).toBe(stored);
    expect(notedFields(read)).toEqual(['raw', 'FirstName']);
    expect(JSON.parse(read.raw)).toEqual({ ID: 5, FirstName: stored });
    expect(JSON.parse(read.rawText ?? '')).toEqual({ ID: 5, FirstName: JSON.parse(json) });
  });

  test('with bare control characters, which JSON forbids, is stored as it came', () => {
    const read = application('"FirstName":"a\tb\r\n\u0001c","LastName":"\\\\","Phone":"\\"\t\\""');
    expect(read).toMatchObject({
      firstName: 'a\tb\r\n\u0001c',
      lastName: '\\',
      phone: '"\t"',
      notes: [],
      rawText: null,
    });
  });

  test('with a bare NUL is replaced like an escaped one', () => {
    expect(application('"FirstName":"a\0b"')).toMatchObject({
      firstName: 'a\ufffdb',
      rawText: '{"ID":5,"FirstName":"a\\u0000b"}',
    });
  });

  test('NUL in a member name does not reach jsonb either', () => {
    const read = application('"a\\u0000b":1');
    expect(read.raw).toBe('{"ID":5,"a\ufffdb":1}');
    expect(read.rawText).toBe('{"ID":5,"a\\u0000b":1}');
  });

  test.for([
    ['Phone', '"+61 412 345 678"', '+61 412 345 678'],
    ['Phone', '61.400', '61.400'],
    ['Phone', '-0', '-0'],
    ['JobReference', '-0.50', '-0.50'],
    ['JobSeekerID', '98765432109876543210', '98765432109876543210'],
    ['JobReference', `"'; DROP TABLE applications"`, "'; DROP TABLE applications"],
    ['Email', '"not an address"', 'not an address'],
  ] as const)('%s %s stays text', ([member, json, text]) => {
    const read = application(`"${member}":${json}`);
    const byMember = {
      Phone: read.phone,
      JobSeekerID: read.jobSeekerId,
      JobReference: read.jobReference,
      Email: read.email,
    };
    expect(byMember[member]).toBe(text);
    expect(read.raw).toContain(json);
    expect(read.notes).toEqual([]);
  });

  test('an object where a text was to be is null, noted, and still in raw', () => {
    const read = application('"Email":{"value":"a@example.com"}');
    expect(read.email).toBeNull();
    expect(notedFields(read)).toEqual(['Email']);
    expect(read.raw).toContain('a@example.com');
  });

  test('no note holds what it is about', () => {
    const read = application(
      '"Email":["secret-value"],"DateSubmitted":"secret-value","FirstName":"secret-value\\u0000"',
    );
    expect(read.notes).toHaveLength(4);
    expect(JSON.stringify(read.notes)).not.toContain('secret-value');
  });
});

describe('an object', () => {
  test('with __proto__ and constructor keys is read like any other and touches nothing', () => {
    const read = application(
      '"__proto__":{"Email":"evil@example.com","polluted":true},"constructor":{"prototype":{"x":1}}',
    );
    expect(read.email).toBeNull();
    expect(read.raw).toContain('"__proto__":{"Email":"evil@example.com"');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test('with other key case is read; the exact name wins over a variant', () => {
    expect(application('"firstname":"A","LASTNAME":"B","email":"variant","Email":"exact"')).toMatchObject({
      firstName: 'A',
      lastName: 'B',
      email: 'exact',
    });
  });

  test('with a name in two cases keeps the variant as a member we do not know', () => {
    const [a, b] = ['1', '2'].map((variant) => application(`"email":"${variant}","Email":"exact"`));
    expect(a?.email).toBe(b?.email);
    expect(a?.contentHash).not.toBe(b?.contentHash);
  });

  test('with a number that is too long for jsonb keeps it as text, noted, the original beside it', () => {
    const read = application('"Other":1e999999');
    expect(read.raw).toBe('{"ID":5,"Other":"1e999999"}');
    expect(read.rawText).toBe('{"ID":5,"Other":1e999999}');
    expect(read.notes).toEqual([{ field: 'raw', reason: 'a number of more than 40 digits kept as text' }]);
  });

  test('with a 5 MB text is stored whole', () => {
    const long = 'x'.repeat(5_000_000);
    expect(application(`"FirstName":"${long}"`).firstName).toBe(long);
  });
});

describe('what may turn out to be volatile', () => {
  test.for([
    ['"Email":["ann@example.com"]', '"Email":["jo@example.com"]'],
    ['"FirstName":{"First":"Ann"}', '"FirstName":{"First":"Jo"}'],
    ['"Phone":["1"]', '"Phone":["2"]'],
    ['"JobSeekerID":["7"]', '"JobSeekerID":["8"]'],
    [`"JobReference":"${'x'.repeat(500)}1"`, `"JobReference":"${'x'.repeat(500)}2"`],
  ] as const)('is no member that the spec names, however it is sent: %s', ([before, after]) => {
    const [a, b] = [application(`${before},"Extra":1`), application(`${after},"Extra":1`)];
    expect(Object.keys(a.members)).toEqual(['Extra']);
    expect(a.members).toEqual(b.members);
    expect(a.factsHash.slice(0, 32)).not.toBe(b.factsHash.slice(0, 32));
    expect(a.contentHash).not.toBe(b.contentHash);
  });
});

describe('primary job-seeking info', () => {
  test('is read member by member', () => {
    const info = '{"JobTitle":"Fitter","CompanyName":null,"TimeInRole":"14","IsNewToWorkForce":"False"}';
    expect(application(`"PrimaryJobSeekingInfo":${info}`).jobSeekingInfo).toEqual({
      jobTitle: 'Fitter',
      companyName: null,
      timeInRoleMonths: 14,
      isNewToWorkforce: false,
    });
  });

  test.for(['null', '{}', '{"JobTitle":null}'])('%s is none', (json) => {
    expect(application(`"PrimaryJobSeekingInfo":${json}`)).toMatchObject({ jobSeekingInfo: null, notes: [] });
  });

  test('a text in its place is none, and noted', () => {
    expect(application('"PrimaryJobSeekingInfo":"Fitter"')).toMatchObject({
      jobSeekingInfo: null,
      notes: [{ field: 'PrimaryJobSeekingInfo', reason: 'is not an object' }],
    });
  });

  test.for(['-3', '2147483648'])('a TimeInRole of %s is null and noted, the rest kept', (json) => {
    const read = application(`"PrimaryJobSeekingInfo":{"JobTitle":"Fitter","TimeInRole":${json}}`);
    expect(read.jobSeekingInfo).toMatchObject({ jobTitle: 'Fitter', timeInRoleMonths: null });
    expect(notedFields(read)).toEqual(['PrimaryJobSeekingInfo.TimeInRole']);
  });
});

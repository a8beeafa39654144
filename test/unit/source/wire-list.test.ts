// List: the envelope, repeated ids, echoes and attachments, row by row (L8 to L18, A7, A8), in JSON and in XML.

import { describe, expect, test } from 'vitest';
import type { Page } from '../../../src/domain/application.ts';
import { chooseCopy } from '../../../src/domain/copies.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import { parseJson } from '../../../src/source/parse/json.ts';
import { parsePage, scanIds, toElement } from '../../../src/source/parse/list.ts';
import { applicationShape } from '../../../src/source/parse/members.ts';
import { parseScreens } from '../../../src/source/parse/screen.ts';

type Facts = ReturnType<typeof parsePage>;

function list(elements: string): Facts {
  return parsePage(inJson(`"AdvertiserID":7,"JobApplicationsList":[${elements}]`));
}

const inXml = (content: string) => `<JobApplications>${content}</JobApplications>`;
const inJson = (members: string) => `{"JobApplications":{${members}}}`;

function refusal(text: string): Trouble {
  try {
    parsePage(text);
  } catch (error) {
    if (error instanceof Trouble) return error;
    throw error;
  }
  throw new Error('the page was believed');
}

describe('L8: an empty answer', () => {
  test.for([
    inJson('"AdvertiserID":7,"JobApplicationsList":[]'),
    inJson('"AdvertiserID":7,"JobApplicationsList":null'),
    inJson('"AdvertiserID":7'),
    inJson(''),
    '{"JobApplications":null}',
    '{"JobApplications":[]}',
    '{}',
    '[]',
    'null',
    ' [ ] \n',
    '<JobApplications/>',
    inXml('<JobApplicationsList/>'),
    inXml('<JobApplicationsList></JobApplicationsList>'),
    '<JobApplications xmlns:i="urn:i"><JobApplicationsList i:nil="true"/></JobApplications>',
    '<JobApplications xmlns:i="urn:i" i:nil="true"/>',
    '<?xml version="1.0"?>\n<!-- none --><JobApplicationsList/>\n',
    // What carries nothing beside the list: type hints, attributes, members that are empty themselves.
    '{"JobApplications":null,"__type":"Answer"}',
    inJson('"AdvertiserID":7,"JobApplicationsList":null,"__type":"List","Message":""'),
    '<JobApplications version="2"><AdvertiserID>7</AdvertiserID></JobApplications>',
    '<JobApplications version="2"><JobApplicationsList count="0"/></JobApplications>',
    '<JobApplications version="2"/>',
  ])('%s is empty', (text) => {
    expect(parsePage(text)).toMatchObject({ applications: [], ids: [], rejects: [], weakEmpty: false });
  });

  test('a message in the place of the list is empty, and proves nothing', () => {
    const text = inJson('"AdvertiserID":7,"JobApplicationsList":null,"Message":"Try again later."');
    expect(parsePage(text)).toMatchObject({ ids: [], weakEmpty: true });
  });

  test.for([
    ['an HTML login page', '<!DOCTYPE html><html><body>Please log in</body></html>'],
    ['XHTML that is whole XML', '<?xml version="1.0"?><html><body>Log in</body></html>'],
    ['another message in XML', '<Error><Message>Something broke</Message></Error>'],
    ['another message in JSON', '{"Message":"An error has occurred."}'],
    ['another message in the wrapper', inJson('"Message":"An error has occurred."')],
    ['another message beside an empty wrapper', '{"JobApplications":null,"Message":"An error has occurred."}'],
    ['a list that is a text', inJson('"JobApplicationsList":"none"')],
    ['a number', '0'],
    ['white space', ' \r\n'],
    ['plain words', 'Service unavailable'],
  ])('%s is trouble, never empty', ([, text]) => {
    expect(refusal(text as string).kind).toBe('malformed');
  });
});

describe('L9: the envelope', () => {
  test.for([
    ['wrapped', inJson('"AdvertiserID":7,"JobApplicationsList":[{"ID":1}]')],
    ['unwrapped', '{"AdvertiserID":7,"JobApplicationsList":[{"ID":1}]}'],
    ['in other key case', '{"jobApplications":{"advertiserId":7,"jobApplicationsList":[{"id":1}]}}'],
    ['with one object instead of an array', inJson('"AdvertiserID":7,"JobApplicationsList":{"ID":1}')],
    [
      'with __type and extra members',
      inJson('"__type":"x:#y","Total":1,"AdvertiserID":"7","JobApplicationsList":[{"__type":"x","ID":1}]'),
    ],
    ['in XML', inXml('<AdvertiserID>7</AdvertiserID><JobApplicationsList><a><ID>1</ID></a></JobApplicationsList>')],
  ])('%s is accepted', ([, text]) => {
    expect(parsePage(text as string)).toMatchObject({ advertiserId: 7n, ids: [1n], rejects: [] });
  });

  const people =
    '<JobApplication><ID>1</ID><Email>a</Email></JobApplication><JobApplication><ID>2</ID><Email>b</Email></JobApplication>';
  test.for([
    [
      'ArchivedApplicationsList',
      '{"JobApplicationsList":[{"ID":1}],"ArchivedApplicationsList":[{"id":2,"Email":"b"}]}',
    ],
    ['Archived', '{"JobApplicationsList":[{"ID":1}],"Archived":{"List":[{"ID":"x","JobReference":"r"}]}}'],
    ['More', '{"JobApplicationsList":[],"More":{"Page":{"Lists":[[{"ID":2,"Email":"b"}]]}}}'],
    ['JobApplication', inXml(`<JobApplicationsList/>${people}`)],
    ['JobApplication', inXml('<JobApplicationsList/><JobApplication ID="1" Email="a"/>')],
    ['Archived', inXml(`<JobApplicationsList/><Archived>${people}</Archived>`)],
    ['More', '{"JobApplicationsList":[{"ID":1}],"More":[{"ID":149,"FirstName":"Zed"}]}'],
    ['More', '{"JobApplicationsList":[{"ID":1}],"More":[{"@ID":"149","Phone":null}]}'],
  ] as const)('applications in member %s, outside of the list, refuse the answer: %s', ([member, text]) => {
    const message = `The answer holds applications outside of JobApplicationsList (member ${member}).`;
    expect(refusal(text)).toMatchObject({ kind: 'malformed', message });
  });

  test.for([
    ['JobApplication', '{"JobApplication":[{"ID":6}]}'],
    ['JobApplication', '{"ID":5,"Email":"a","JobApplication":[{"ID":6},{"ID":7}]}'],
    ['jobapplicationslist', '{"ID":5,"jobapplicationslist":{"ID":6}}'],
    ['JobApplications', '{"ID":5,"JobApplications":[[{"ID":6}]]}'],
  ] as const)('applications in member %s of an application refuse the answer: %s', ([member, element]) => {
    const message = `The answer holds applications inside of one (member ${member}).`;
    expect(refusal(`[{"ID":1},${element}]`)).toMatchObject({ kind: 'malformed', message });
  });

  test.for([
    `<ID>3</ID>${people}`,
    `<ID>3</ID>${people.replaceAll('JobApplication', 'Item')}`,
    '<ID>3</ID><Item ID="4" Email="b"/>',
    `<JobApplication><ID>3</ID>${people}</JobApplication>`,
  ])('a list in XML that is both one application and several refuses the answer: %s', (content) => {
    expect(refusal(inXml(`<JobApplicationsList>${content}</JobApplicationsList>`)).message).toContain('applications');
  });

  test.for([
    '{"ID":5,"JobApplication":"none","JobApplications":[1],"JobApplicationsList":null}',
    '{"ID":5,"Related":[{"ID":6}]}',
  ])('what is no list of applications stays a member: %s', (element) => {
    const [application] = list(element).applications;
    expect(application).toMatchObject({ id: 5n, raw: element });
  });

  test('an object with an id beside the list, which is no application, is ignored', () => {
    const page = parsePage(
      '{"JobApplicationsList":[{"ID":1}],"Advertiser":{"ID":7,"Name":"x"},"Meta":{"Request":{"ID":8}}}',
    );
    expect(page.ids).toEqual([1n]);
  });

  test.for([
    ['Errors', '{"JobApplicationsList":[{"ID":1}],"Errors":[{"Code":5}]}'],
    ['errorMessage', '{"JobApplications":{"JobApplicationsList":[{"ID":1}]},"errorMessage":"a@example.com"}'],
    ['Fault', inXml('<JobApplicationsList/><Fault><Reason>a@example.com</Reason></Fault>')],
  ] as const)('errors in member %s refuse the answer: %s', ([member, text]) => {
    const message = `The answer reports errors (member ${member}).`;
    expect(refusal(text)).toMatchObject({ kind: 'malformed', message });
  });

  test.for([
    '"Errors":[],"Error":null,"ErrorCode":0,"HasErrors":false,"ErrorMessage":" ","Fault":{"Code":""}',
    '"DefaultSize":50,"Total":1,"Links":[{"Rel":"next"}],"Paging":{"Page":1,"Next":{"Page":2}}',
  ])('%s beside the list is ignored', (members) => {
    expect(parsePage(`{"JobApplicationsList":[{"ID":1}],${members}}`).ids).toEqual([1n]);
  });

  test('a bare list is accepted, without an advertiser', () => {
    expect(parsePage('[{"ID":1},{"ID":2}]')).toMatchObject({ advertiserId: null, ids: [1n, 2n] });
  });

  test('every fact has its member, and another value of any member another hash', () => {
    const texts = {
      DateSubmitted: '/Date(5000000000000+1000)/',
      Attachments: [{ Type: 'Resume' }],
      PrimaryJobSeekingInfo: { JobTitle: 'a' },
    };
    const others = {
      DateSubmitted: '/Date(6000000000000+1000)/',
      Attachments: [],
      PrimaryJobSeekingInfo: { JobTitle: 'b' },
    };
    const names = [...new Set(applicationShape.names.values())];
    const element = { ...Object.fromEntries(names.map((name) => [name, 'a'])), ...texts, ID: 1 };
    const parse = (members: object) => list(JSON.stringify(members)).applications[0];
    const { rawText: _, ...facts } = parse(element) ?? {};
    const unread = Object.entries(facts).flatMap(([name, value]) => (value === null ? [name] : []));
    expect(unread, 'applicationShape of src/source/parse/members.ts lists the member of each fact').toEqual([]);
    const unhashed = names.filter((name) => {
      const changed = { ...element, [name]: name in others ? others[name as keyof typeof others] : 'b' };
      return name !== 'ID' && parse(changed)?.contentHash === parse(element)?.contentHash;
    });
    expect(unhashed, 'toHashes of src/source/parse/application.ts has each fact: without, no change is seen').toEqual(
      [],
    );
  });

  test('__type is not content, extra members are', () => {
    const hashes = ['{"ID":1}', '{"ID":1,"__type":"a"}', '{"ID":1,"Extra":"a"}', '{"ID":1,"Extra":"b"}'].map(
      (element) => list(element).applications[0]?.contentHash,
    );
    expect(hashes[0]).toBe(hashes[1]);
    expect(new Set(hashes).size).toBe(3);
  });

  test('L11: an AdvertiserID that is no integer cannot be told from ours, so nothing is believed', () => {
    expect(refusal(inJson('"AdvertiserID":"abc","JobApplicationsList":[{"ID":1}]')).kind).toBe('malformed');
  });
});

describe('an answer that names a member twice is not believed', () => {
  test.for([
    '{"JobApplicationsList":[{"ID":1}],"JobApplicationsList":[{"ID":2}]}',
    '{"AdvertiserID":7,"AdvertiserID":8,"JobApplicationsList":[]}',
    '[{"ID":700,"Email":"lost@example.com","ID":7}]',
    '[{"ID":7,"\\u0049D":8}]',
    '[{"ID":7,"Attachments":[{"Type":"resume","HasVirus":true,"HasVirus":false}]}]',
    '[{"ID":7,"ID":7}]',
    '[{"ID":9007199254740993,"X":"a\tb","X" : "a\tb"}]',
    '[{"ID":7,"__proto__":1,"__proto__":2}]',
    '[{"ID":7,"\\\\":1,"\\\\":": "}]',
    `[{"ID":7,"X":1,"Deep":${'['.repeat(5_000)}{"a":1,"a":2}${']'.repeat(5_000)},"Y":2}]`,
  ])('%s', (text) => {
    expect(refusal(text)).toMatchObject({ kind: 'malformed', message: 'The answer names a member twice.' });
  });

  test.for([
    '{"ID":7,"Email":":)","Phone":" : ","FirstName":":","LastName":"\\":\\\\"}',
    '{"ID":7,":":":",",":{":":1},"\\\\":"\\\\\\":"}',
    '{"ID":9007199254740993,"ID2":1.50,"X":[1e39,{"ID":1}],"id":":"}',
    '{"1":4,"ID":7,"__proto__":1,"constructor":2,"toString":3}',
  ])('one name in several objects, or in a text, is another matter: %s', (element) => {
    expect(list(element).applications[0]?.raw).toBe(element);
  });

  test('nor is a screen, a profile or a token', () => {
    const screen = '{"screen":{"@id":"1","@successful":"true","@successful":"false"}}';
    expect(() => parseScreens(Buffer.from(screen), 'application/json')).toThrow('names a member twice');
    expect(() => parseJson('{"sub":"1","sub":"2"}')).toThrow('names a member twice');
  });
});

describe('L10: the same id twice', () => {
  test('more than a hundred times refuses the answer', () => {
    const copies = (count: number) => Array.from({ length: count }, (_, nth) => `{"ID":1,"JobReference":${nth}}`);
    expect(list(copies(100).join()).applications).toHaveLength(1);
    for (const many of [copies(101), Array(101).fill('{"ID":1}')]) {
      expect(refusal(`[${many.join()}]`).message).toBe('The answer has more than 100 copies of one application.');
    }
  });

  test('equal copies are one application without a note', () => {
    const page = list('{"ID":1,"Email":"a"},{"ID":2},{"Email":"a","ID":1}');
    expect(page.ids).toEqual([1n, 2n, 1n]);
    expect(page.applications.map(({ id }) => id)).toEqual([1n, 2n]);
    expect(page.applications[0]?.notes).toEqual([]);
  });

  test('differing copies are one application with a note, the same one in any order', () => {
    const [a, b, c] = ['{"ID":1,"Email":"a"}', '{"ID":1,"Email":"b"}', '{"ID":1,"Email":"c"}'];
    const copies = [a, b, c, a, b];
    const forward = list(copies.join()).applications;
    const backward = list(copies.toReversed().join()).applications;
    expect(forward).toHaveLength(1);
    expect(forward[0]?.notes).toEqual([
      { field: 'ID', reason: 'came more than once in a page with different content' },
    ]);
    expect(forward[0]?.contentHash).toBe(backward[0]?.contentHash);
  });

  test('of differing copies the worst virus flag speaks, whatever else they contain', () => {
    const flagged = (json: string, phone: number) =>
      `{"ID":1,"Phone":${phone},"Attachments":[{"Type":"resume","HasVirus":${json}}]}`;
    // The digits make either copy the first one by its hash.
    for (const [worse, better, hasVirus] of [
      ['true', '"perhaps"', true],
      ['true', 'false', true],
      ['"perhaps"', 'false', 'unreadable'],
      ['"perhaps"', 'null', 'unreadable'],
    ] as const)
      for (let phone = 0; phone < 6; phone++)
        expect(list(`${flagged(worse, phone)},${flagged(better, 9)}`).applications).toMatchObject([
          { attachments: [{ hasVirus }] },
        ]);
  });

  test('of copies that flag different files both files have a virus, and another flag is other content', () => {
    const copy = (phone: number, resume: unknown, letter: unknown) =>
      JSON.stringify({
        ID: 1,
        Email: 'ann@example.com',
        Phone: phone,
        Attachments: [
          { Type: 'resume', HasVirus: resume },
          { Type: 'coverLetter', HasVirus: letter },
        ],
      });
    for (let phone = 0; phone < 6; phone++) {
      const [flagged] = list(`${copy(phone, true, 'perhaps')},${copy(9, false, true)}`).applications;
      const [clean] = list(`${copy(phone, true, false)},${copy(9, false, false)}`).applications;
      expect(flagged?.attachments.map(({ hasVirus }) => hasVirus)).toEqual([true, true]);
      expect(clean?.attachments.map(({ hasVirus }) => hasVirus)).toEqual([true, false]);
      expect(flagged?.contentHash).not.toBe(clean?.contentHash);
      expect(flagged?.factsHash).not.toBe(clean?.factsHash);
    }
  });

  test('of three copies, one of which names nobody, both people are kept', () => {
    for (let nth = 0; nth < 8; nth++) {
      const page = list(`{"ID":1,"Email":"ann@example.com"},{"ID":1,"X":${nth}},{"ID":1,"Email":"jo@example.com"}`);
      const { others } = chooseCopy(page.shared);
      expect([page.applications.length, others.length]).toEqual([1, 1]);
      const both = [...page.applications, ...others].map(({ raw }) => raw).join();
      expect(both).toContain('ann@');
      expect(both).toContain('jo@');
    }
  });

  test.for([
    ['{"ID":1,"Email":"ann@example.com"}', '{"ID":1,"Email":"jo@example.com"}'],
    ['{"ID":1,"Email":"ann@example.com"}', '{"ID":1,"JobSeekerID":"B7"}'],
    ['{"ID":1,"FirstName":"Ann","Phone":"1"}', '{"ID":1,"FirstName":"Jo","Phone":"2"}'],
    ['{"ID":1,"JobSeekerID":"7","Phone":"1"}', '{"ID":1,"JobSeekerID":8,"Email":"jo@example.com"}'],
    ['{"ID":1,"JobSeekerID":12345678901234567890}', '{"ID":1,"JobSeekerID":12345678901234567891}'],
    ['{"ID":1,"Email":"ann@example.com"}', '{"ID":1,"Email":"jo@example.com","X":"\\u0000"}'],
    // Nobody whom no column names is lost either.
    ['{"ID":1,"Email":["ann@example.com"]}', '{"ID":1,"Email":["jo@example.com"]}'],
    ['{"ID":1,"Email":"ann@example.com"}', '{"ID":1,"Email":{"@address":"jo@example.com"}}'],
    ['{"ID":1,"FirstName":["Ann"],"JobReference":"A"}', '{"ID":1,"FirstName":["Jo"],"JobReference":"B"}'],
    ['{"ID":1,"JobSeekerID":[7]}', '{"ID":1,"JobSeekerID":[8]}'],
    ['{"ID":1,"JobSeekerID":[12345678901234567890]}', '{"ID":1,"JobSeekerID":[12345678901234567891]}'],
    [`{"ID":1,"Email":"${' '.repeat(500)}ann@example.com"}`, `{"ID":1,"Email":"${' '.repeat(500)}jo@example.com"}`],
    ['{"ID":1,"Email":"ann at example.com"}', '{"ID":1,"Email":"jo at example.com"}'],
  ] as const)('of two people with one id, one is stored and the other goes to quarantine: %s, %s', (copies) => {
    for (const page of [list(copies.join()), list(copies.toReversed().join())]) {
      const others = chooseCopy(page.shared).others.map(toElement);
      const texts = [...page.applications, ...others].map(({ raw, rawText }) => rawText ?? raw);
      expect(new Set(texts)).toEqual(new Set(copies));
      expect(page.applications).toHaveLength(1);
      expect(others).toMatchObject([{ reason: 'ID names another person as well' }]);
      // Where a column names the person, so does the element.
      const isNamed = !/:[[{]/.test(copies[0]);
      expect(others[0]?.applicant !== null).toBe(isNamed);
    }
  });

  test('of two people with one id, the one whom the stored row names is the application', () => {
    const elements = ['"JobSeekerID":"7","Email":"ann@example.com"', '"JobSeekerID":"8","Email":"jo@example.com"'];
    const row = { jobSeekerId: null, email: null, phone: null, firstName: null, lastName: null, raw: null };
    for (const copies of [elements, elements.toReversed()])
      for (const [facts, name] of [
        [{ email: 'Ann <ANN@example.com>' }, 'ann'],
        [{ jobSeekerId: '7', email: 'before@example.com' }, 'ann'],
        [{ jobSeekerId: '8', email: 'ann@example.org' }, 'jo'],
        [{ email: 'jo@example.com' }, 'jo'],
      ] as const) {
        const { shared } = list([...copies, '"X":1'].map((members) => `{"ID":1,${members}}`).join());
        const { application, others } = chooseCopy(shared, { ...row, ...facts });
        expect(application.email).toBe(`${name}@example.com`);
        expect(others.map(({ raw }) => raw)).toEqual([expect.stringContaining(name === 'jo' ? 'ann@' : 'jo@')]);
      }
  });

  test('copies that may be of one person are one application, and nobody is a reject', () => {
    const ann = '{"ID":1,"Email":"Ann <ANN@example.com>","JobSeekerID":"7"}';
    for (const other of ['"Email":"ann@example.com"', '"JobSeekerID":7', '"JobSeekerID":"none"', '"Email":"x"']) {
      expect(list(`${ann},{"ID":1,${other}}`), other).toMatchObject({ ids: [1n, 1n], rejects: [] });
    }
  });
});

test('L12: one poison element among fifty costs only itself', () => {
  const good = Array.from({ length: 50 }, (_, index) => `{"ID":${index + 1}}`);
  const page = list(good.toSpliced(25, 0, '{"ID":"poison","DateSubmitted":{"a":[]},"Attachments":7}').join());
  expect(page.applications).toHaveLength(50);
  expect(page.rejects).toHaveLength(1);
});

test('L12: a poisoned element with a usable id is stored with notes', () => {
  const [application] = list(
    '{"ID":9,"DateSubmitted":{"a":[]},"Attachments":7,"Phone":{},"PrimaryJobSeekingInfo":[]}',
  ).applications;
  expect(application?.notes.map(({ field }) => field)).toEqual([
    'DateSubmitted',
    'Phone',
    'PrimaryJobSeekingInfo',
    'Attachments',
  ]);
});

describe('L16: an echo', () => {
  function echo(members: string): Page['echo'] {
    return parsePage(`{"JobApplications":{"JobApplicationsList":[]${members}}}`).echo;
  }

  test('is a value or null; one that is absent is like one that cannot be read', () => {
    expect(echo(',"AfterID":"12","BeforeID":null,"AfterDate":"/Date(1700000000000+1000)/"')).toEqual({
      afterId: 12n,
      beforeId: null,
      afterDate: 1_700_000_000_000,
      beforeDate: undefined,
    });
    expect(echo(',"AfterID":"twelve","BeforeDate":"soon"')).toMatchObject({
      afterId: undefined,
      beforeDate: undefined,
    });
  });

  test('as a number, exact beyond 2^53', () => {
    expect(echo(',"AfterID":9223372036854775806').afterId).toBe(9223372036854775806n);
  });

  test('as empty text, or as year 1, is none', () => {
    expect(echo(',"AfterID":"","AfterDate":"0001-01-01T00:00:00"')).toMatchObject({ afterId: null, afterDate: null });
  });

  test('of a date without zone, or in another zone, is the instant', () => {
    const at = Date.UTC(2024, 0, 15, 12);
    expect(echo(',"AfterDate":"2024-01-15T22:00:00","BeforeDate":"2024-01-15T12:00:00Z"')).toMatchObject({
      afterDate: at,
      beforeDate: at,
    });
  });
});

test.for([
  ['null', null],
  ['"agent-1"', 'agent-1'],
  ['42', '42'],
  [`"${'a'.repeat(3_000)}"`, 'a'.repeat(500)],
] as const)('L17: AgentID %s is kept, as long as an identifier may be', ([json, agentId]) => {
  expect(parsePage(`{"AgentID":${json},"JobApplicationsList":[]}`).agentId).toBe(agentId);
});

describe('L18: XML', () => {
  const plain =
    '<JobApplications><AdvertiserID>7</AdvertiserID><AfterID>3</AfterID><JobApplicationsList><JobApplication>' +
    '<ID>9007199254740993</ID><DateSubmitted>2024-01-15T23:00:00+11:00</DateSubmitted><Email>a@example.com</Email>' +
    '<Phone>0412345678</Phone><JobReference>1e5</JobReference><Attachments><Attachment><HasVirus>false</HasVirus><Size>12</Size><Type>resume</Type>' +
    '<Href>advertiser/applications/resume/9007199254740993</Href></Attachment></Attachments>' +
    '</JobApplication></JobApplicationsList></JobApplications>';
  const json =
    '{"JobApplications":{"AdvertiserID":7,"AfterID":"3","JobApplicationsList":[{"ID":9007199254740993,' +
    '"DateSubmitted":"\\/Date(1705320000000+1100)\\/","Email":"a@example.com","Phone":"0412345678","JobReference":"1e5","Attachments":' +
    '[{"HasVirus":false,"Size":12,"Type":"resume","Href":"advertiser/applications/resume/9007199254740993"}]}]}}';

  test('gives the values, the raw object and the hash of its JSON twin', () => {
    expect(parsePage(plain)).toEqual(parsePage(json));
  });

  test.for([
    ['with a default namespace', plain.replace('<JobApplications>', '<JobApplications xmlns="urn:applications">')],
    [
      'with prefixes',
      plain.replaceAll(/<(\/?)(\w)/g, '<$1d:$2').replace('<d:JobApplications>', '<d:JobApplications xmlns:d="urn:x">'),
    ],
    [
      'with a declaration, comments and white space',
      `<?xml version="1.0" encoding="utf-8"?>\n<!-- x -->\n${plain.replaceAll('><', '>\r\n  <')}\n`,
    ],
    ['with CDATA and entities', plain.replace('a@example.com', '<![CDATA[a@]]>example&#46;&#x63;om')],
    ['with /Date()/ text', plain.replace('2024-01-15T23:00:00+11:00', '/Date(1705320000000+1100)/')],
    ['with 7 fraction digits', plain.replace('23:00:00+', '23:00:00.0000000+')],
    ['with nil by i:', plain.replace('<Email>', '<FirstName xmlns:i="urn:i" i:nil="true"/><Email>')],
    [
      'with nil by xsi: and a closing tag',
      plain.replace('<Email>', '<LastName xmlns:xsi="urn:i" xsi:nil="1"></LastName><Email>'),
    ],
    [
      'in other order',
      plain.replace('<Email>a@example.com</Email>', '').replace('<ID>', '<Email>a@example.com</Email><ID>'),
    ],
  ])('%s gives the same content', ([, xml]) => {
    const page = parsePage(xml as string);
    expect(page.applications.map(({ contentHash }) => contentHash)).toEqual(
      parsePage(json).applications.map(({ contentHash }) => contentHash),
    );
    expect(page.applications[0]?.notes).toEqual([]);
  });

  test.for([
    ['nil', '<HasVirus xmlns:i="urn:i" i:nil="true"/>', null],
    ['empty', '<HasVirus/>', null],
    ['absent', '', null],
    ['true', '<HasVirus>true</HasVirus>', true],
  ] as const)('HasVirus that is %s', ([, element, hasVirus]) => {
    const page = parsePage(plain.replace('<HasVirus>false</HasVirus>', element));
    expect(page.applications[0]?.attachments[0]?.hasVirus).toBe(hasVirus);
    expect(page.applications[0]?.notes).toEqual([]);
  });

  test('text stays text, and only the named and numbered characters are decoded', () => {
    const page = parsePage(
      plain.replace('a@example.com', '+61&amp;&lt;&gt;&quot;&apos;&#39;&#x1F600;&nbsp;&constructor; 007 '),
    );
    expect(page.applications[0]?.email).toBe("+61&<>\"''😀&nbsp;&constructor; 007 ");
  });

  test('NUL and lone surrogates by reference are replaced and noted like their JSON twins', () => {
    const [application] = parsePage(plain.replace('a@example.com', 'a&#0;b&#xD800;c')).applications;
    expect(application?.email).toBe('a\ufffdb\ufffdc');
    expect(JSON.parse(application?.rawText ?? '')).toMatchObject({ Email: 'a\0b\ud800c' });
  });

  test('bare control characters, which XML forbids, are stored as they came, NUL replaced', () => {
    const [application] = parsePage(plain.replace('a@example.com', 'a\u0001\u001f\0b')).applications;
    expect(application?.email).toBe('a\u0001\u001f\ufffdb');
  });

  test('elements named __proto__, constructor or toString cost nothing', () => {
    const page = parsePage(
      plain.replace('<Email>', '<__proto__><x>1</x></__proto__><constructor/><toString>t</toString><Email>'),
    );
    expect(page.applications[0]?.email).toBe('a@example.com');
    expect(page.applications[0]?.raw).toContain('"__proto__":{"x":"1"},"constructor":"","toString":"t"');
  });

  test('more than 100,000 characters by reference are no bomb', () => {
    const page = parsePage(plain.replace('0412345678', '&amp;'.repeat(150_000)));
    expect(page.applications[0]?.phone).toBe('&'.repeat(150_000));
  });

  test.for([
    ['a DOCTYPE', `<!DOCTYPE JobApplications [<!ENTITY a "b">]>${plain}`],
    [
      'a DOCTYPE after a declaration',
      `<?xml version="1.0"?><!DOCTYPE JobApplications SYSTEM "file:///etc/passwd">${plain}`,
    ],
    ['a second root', `${plain}<JobApplications/>`],
    ['two empty roots', '<JobApplications/><JobApplications/>'],
    ['text after the root', `${plain}x`],
    ['crossed tags', plain.replace('</Email><Phone>', '</Phone><Phone>')],
    ['an unclosed tag', plain.replace('</Email>', '')],
  ])('with %s is refused', ([, xml]) => {
    expect(refusal(xml as string).kind).toBe('malformed');
  });

  test('a list of one without the element around it, and one list for each attachment, are read like any other', () => {
    const [, only = ''] = /<Attachment>(.*)<\/Attachment>/.exec(plain) ?? [];
    expect(parsePage(plain.replace(/<\/?Attachment>/g, ''))).toEqual(parsePage(json));
    const [application] = parsePage(
      plain.replace(
        /<Attachments>.*<\/Attachments>/,
        [only, '<Type>screen</Type>'].map((one) => `<Attachments>${one}</Attachments>`).join(''),
      ),
    ).applications;
    expect(application?.attachments.map(({ kind }) => kind)).toEqual(['resume', 'screen']);
    const alone = parsePage(plain.replace(/<\/?JobApplication>/g, ''));
    expect(alone.applications.map(({ id }) => id)).toEqual([9007199254740993n]);
  });

  test('an element without an id is a reject with the same identity in JSON and in XML', () => {
    const [json] = parsePage(
      '{"JobApplicationsList":[{"ID":"x","JobSeekerID":7,"DateSubmitted":"/Date(1700000000000+1000)/","T":"now"}]}',
    ).rejects;
    const [xml] = parsePage(
      inXml(`<JobApplicationsList><JobApplication><T>later</T><ID>x</ID><JobSeekerID>7</JobSeekerID>
       <DateSubmitted>2023-11-15T08:13:20+10:00</DateSubmitted></JobApplication></JobApplicationsList>`),
    ).rejects;
    expect(xml?.identity).toBe(json?.identity);
  });

  const inList = (elements: string) =>
    parsePage(inXml(`<JobApplicationsList count="1">${elements}</JobApplicationsList>`));

  test('applications in attributes are rejects with their content, each its own', () => {
    const page = inList('<JobApplication ID="1000" Email="a@b"/><JobApplication ID="1001" xmlns="urn:x" type="y"/>');
    expect(page.rejects.map(({ raw }) => raw)).toEqual(['{"@ID":"1000","@Email":"a@b"}', '{"@ID":"1001"}']);
  });

  test('attributes beside an ID are its members, but for what an element says', () => {
    const facts = { jobSeekerId: '7', email: 'own@b', submittedAt: 1_700_000_000_000 };
    const said = 'JobSeekerID="7" email="a@b" DateSubmitted="2023-11-15T08:13:20+10:00"';
    const json = '{"ID":1,"@JobSeekerID":"7","Email":"own@b","@DateSubmitted":"/Date(1700000000000+1000)/"}';
    const xml = inList(`<JobApplication ${said}><ID>1</ID><Email>own@b</Email></JobApplication>`);
    expect(xml.applications).toMatchObject([facts]);
    expect(list(json).applications).toMatchObject([facts]);
    expect(parsePage('<JobApplications AdvertiserID="8"/>').advertiserId).toBe(8n);
  });

  test.for([
    ['<Email type="work">a@b</Email>', { Email: 'a@b' }],
    ['<Email nil="true">a@b</Email>', { Email: 'a@b' }],
    ['<FirstName title="Dr">Ann</FirstName>', { FirstName: 'Ann', 'FirstName@title': 'Dr' }],
    ['<Attachments X="true"><Type>resume</Type></Attachments>', { Attachments: [{ '@X': 'true', Type: 'resume' }] }],
    ['<Extra nil="true">a@b</Extra>', { Extra: { '@nil': 'true', '#text': 'a@b' } }],
    ['<Email nil="true" type="work"/>', { Email: null }],
    ['<Email address="a@b"/>', { Email: { '@address': 'a@b' } }],
    ['<Attachments count="0"/>', { Attachments: [] }],
    ['<PrimaryJobSeekingInfo JobTitle="x"/>', { PrimaryJobSeekingInfo: { '@JobTitle': 'x' } }],
    ['hello', { '#text': 'hello' }],
  ] as const)('%s beside an ID lies in raw', ([xml, raw]) => {
    const [application] = inList(`<JobApplication source="web"><ID>1</ID>${xml}</JobApplication>`).applications;
    expect(JSON.parse(application?.raw ?? '')).toEqual({ '@source': 'web', ID: 1, ...raw });
  });

  test.for([
    ['<Attachment><Type>resume</Type><HasVirus value="true"/></Attachment>', 'unreadable'],
    ['<Attachment><Type>resume</Type><HasVirus nil="true">true</HasVirus></Attachment>', true],
    ['<Attachment HasVirus="true"><Type>resume</Type></Attachment>', true],
    ['<Attachment hasVirus="true"><Type>resume</Type></Attachment>', true],
    ['<Attachment HasVirus="true"><Type>resume</Type><HasVirus>false</HasVirus></Attachment>', true],
    ['<Attachment HasVirus="false"><Type>resume</Type></Attachment>', false],
  ] as const)('%s does not pass for a file without a virus', ([attachment, hasVirus]) => {
    const page = inList(`<JobApplication><ID>1</ID><Attachments>${attachment}</Attachments></JobApplication>`);
    expect(page.applications[0]?.attachments).toMatchObject([{ kind: 'resume', hasVirus }]);
  });

  test.for(['HasVirus="true"', 'hasvirus="perhaps"', 'HasVirusFound="true"', 'count="2" Type="resume"'])(
    'a list of attachments with an attribute that may be said of each of them is refused: %s',
    (attribute) => {
      const attachments = `<Attachments ${attribute}><Attachment><Type>resume</Type></Attachment></Attachments>`;
      expect(() => inList(`<JobApplication><ID>1</ID>${attachments}</JobApplication>`)).toThrow('attribute of a list');
    },
  );

  test.for([
    '<Attachment><Type>resume</Type><HasVirus infected="true">false</HasVirus></Attachment>',
    '<Attachment><Type HasVirus="true">resume</Type></Attachment>',
    '<Attachment x:HasVirus="true" HasVirus="false"><Type>resume</Type></Attachment>',
    '<Attachment HasVirus="false" x:HasVirus="true"><Type>resume</Type></Attachment>',
    '<Attachment><Type>resume</Type><Scan><HasVirus>true</HasVirus></Scan></Attachment>',
    '<Attachment><Type><v>resume</v></Type><HasVirus>true</HasVirus></Attachment><Attachment><Type>resume</Type></Attachment>',
    '<Attachment><Type>resume</Type><HasVirus>false</HasVirus></Attachment></Attachments><HasVirus>true</HasVirus><Attachments>',
  ])('a virus elsewhere in XML makes the flag unreadable: %s', (attachments) => {
    const page = inList(`<JobApplication><ID>1</ID><Attachments>${attachments}</Attachments></JobApplication>`);
    const resume = page.applications[0]?.attachments.find(({ kind }) => kind === 'resume');
    expect(resume?.hasVirus).toBe('unreadable');
  });

  test('a HasVirus at an application in XML makes the flags unreadable', () => {
    const one = '<Attachment><Type>resume</Type><HasVirus>false</HasVirus></Attachment>';
    const page = inList(`<JobApplication HasVirus="true"><ID>1</ID><Attachments>${one}</Attachments></JobApplication>`);
    expect(page.applications[0]?.attachments).toMatchObject([{ kind: 'resume', hasVirus: 'unreadable' }]);
  });

  test('a virus flag at an attachment without the element around it counts', () => {
    const flat = '<Attachments HasVirus="true"><Type>resume</Type></Attachments>';
    const [application] = inList(`<JobApplication><ID>1</ID>${flat}</JobApplication>`).applications;
    expect(application?.attachments).toMatchObject([{ kind: 'resume', hasVirus: true }]);
  });
});

describe('attachments', () => {
  function attachments(json: string) {
    const [application] = list(`{"ID":5,"Attachments":${json}}`).applications;
    if (application === undefined) throw new Error('no application was read');
    return application;
  }

  test.for([
    ['resume', 'resume'],
    ['CoverLetter', 'coverLetter'],
    ['selectioncriteria', 'selectionCriteria'],
    ['SCREEN', 'screen'],
  ])('Type %s is the kind %s', ([type, kind]) => {
    expect(attachments(`[{"Type":"${type}"}]`).attachments[0]?.kind).toBe(kind);
  });

  test.for([
    ['"Portfolio"', 'Portfolio'],
    ['null', 'unknown'],
  ])('A8: Type %s is stored as %s', ([json, kind]) => {
    expect(attachments(`[{"Type":${json}}]`).attachments[0]?.kind).toBe(kind);
    expect(attachments('[{}]').attachments[0]?.kind).toBe('unknown');
  });

  test('A8: a Type too long for a key is cut and noted', () => {
    const read = attachments(`[{"Type":"${'x'.repeat(5000)}"}]`);
    expect(read.attachments[0]?.kind).toBe('x'.repeat(100));
    expect(read.notes).toEqual([{ field: 'Attachments.Type', reason: 'cut to 100 characters' }]);
  });

  test('A8: of two of one kind the newest speaks, a virus in either counts, and it is noted', () => {
    const older = '{"Type":"portfolio","Hash":"a","DateUploaded":"/Date(1000)/","HasVirus":true}';
    const newer = '{"Type":"portfolio","Hash":"b","DateUploaded":"/Date(2000)/","HasVirus":false}';
    for (const both of [`[${older},${newer}]`, `[${newer},${older}]`]) {
      const read = attachments(both);
      expect(read.attachments).toMatchObject([{ sourceHash: 'b', hasVirus: true }]);
      expect(read.notes).toEqual([{ field: 'Attachments.Type', reason: 'ambiguous: more than one of a kind' }]);
    }
  });

  test('A8: of two of one kind that came a millisecond apart the newest speaks', () => {
    for (const older of [1_700_000_000_000, 1_700_000_000_001, -62_000_000_000_001]) {
      const at = (ms: number, hash: string) => `{"Type":"portfolio","Hash":"${hash}","DateUploaded":"/Date(${ms})/"}`;
      const read = attachments(`[${at(older, 'b')},${at(older + 1, 'a')}]`);
      expect(read.attachments).toMatchObject([{ sourceHash: 'a', uploadedAt: older + 1 }]);
    }
  });

  test('A8: of two of one kind and one moment the same one is kept in any order', () => {
    const [a, b] = ['{"Type":"portfolio","Hash":"a","Size":1}', '{"Type":"portfolio","Hash":"b","Size":2}'];
    expect(attachments(`[${a},${b}]`).contentHash).toBe(attachments(`[${b},${a}]`).contentHash);
  });

  const clean = '{"Type":"resume","HasVirus":false}';
  test.for([
    `"Attachments":[${clean}],"attachments":[{"Type":"resume","HasVirus":true}]`,
    '"Attachments":[{"Type":"resume","HasVirus":false,"HasVirus ":true}]',
    '"Attachments":[{"Type":"resume","HasVirus":null,"HasVirus@infected":"true"}]',
    '"Attachments":[{"Type":"resume","HasVirus":false,"HasVirusResult":"infected"}]',
    '"Attachments":[{"Type":{"#text":"x","@HasVirus":"true"}},{"Type":"resume"}]',
    `"Attachments":[${clean},{"HasVirus":true}]`,
    `"Attachments":[${clean},{"Type":["resume"],"HasVirus":"perhaps"}]`,
    `"Attachments":[{"Attachment":{"Type":"resume","HasVirus":true}},${clean}]`,
    `"Attachments":[${clean}],"HasVirus":true`,
    `"Attachments":[${clean}],"Scan":{"Results":[{"hasVirus":false}]}`,
  ])('a file is withheld where something else is named HasVirus: %s', (members) => {
    const [application] = list(`{"ID":5,${members}}`).applications;
    const resume = application?.attachments.find(({ kind }) => kind === 'resume');
    expect(resume?.hasVirus).toBe('unreadable');
    expect(application?.notes).toContainEqual({
      field: 'Attachments.HasVirus',
      reason: 'is not the only member of this name',
    });
  });

  test('a file is infected where an attribute of XML says so, in JSON too', () => {
    const [application] = list(`{"ID":5,"Attachments":[${clean},{"@Type":"resume","@HasVirus":"true"}]}`).applications;
    expect(application?.attachments).toMatchObject([{ kind: 'resume', hasVirus: true }]);
  });

  test.for([
    `"Attachments":[${clean},{"HasVirus":false},{"Type":7}]`,
    `"Attachments":[${clean}],"HasVirus":null,"Scan":{"HasVirus":" "}`,
    `"Attachments":[${clean}],"Email":"virus@example.com","Motto":"HasVirus"`,
    `"Attachments":[{"Type":"resume","HasVirus":false,"VirusScannedAt":"2026-11-18"}]`,
  ])('a file is not withheld where nothing else is named HasVirus: %s', (members) => {
    const [application] = list(`{"ID":5,${members}}`).applications;
    expect(application?.attachments[0]).toMatchObject({ kind: 'resume', hasVirus: false });
  });

  test('a file with a virus stays one, whatever else speaks of it', () => {
    const [application] = list('{"ID":5,"Virus":"?","Attachments":[{"Type":"resume","HasVirus":true}]}').applications;
    expect(application?.attachments).toMatchObject([{ kind: 'resume', hasVirus: true }]);
  });

  test('their order is not content', () => {
    const [a, b] = ['{"Type":"resume","Hash":"1"}', '{"Type":"screen","Hash":"2"}'];
    expect(attachments(`[${a},${b}]`).contentHash).toBe(attachments(`[${b},${a}]`).contentHash);
  });

  test.for(['advertiser/applications/coverletter/5', 'advertiser/applications/coverLetter/5'])(
    'Href %s is as the spec says',
    (href) => {
      const read = attachments(`[{"Type":"coverLetter","Href":"${href}"}]`);
      expect(read.notes).toEqual([]);
      expect(read.attachments[0]?.href).toBe(href);
    },
  );
});

describe('the beginning of a list too large to read', () => {
  test('shows its ids, in JSON and in XML, and no other number', () => {
    const json =
      '{"JobApplications":{"AdvertiserID":7,"AfterID":"3","JobApplicationsList":[{"ID":11,"Size":5},{ "id" : "12","Email":"';
    expect(scanIds(json)).toEqual([11n, 12n]);
    expect(
      scanIds(
        '<a:JobApplications><a:AdvertiserID>7</a:AdvertiserID><a:ID>11</a:ID><ID i:type="x"> 12 </ID><Size>5</Size><ID>1',
      ),
    ).toEqual([11n, 12n]);
  });

  test('an id that is cut off is not taken for a smaller one', () => {
    expect(scanIds('[{"ID":123},{"ID":45')).toEqual([123n]);
  });
});

test('lists within the list are one list', () => {
  expect(parsePage('{"JobApplicationsList": [[{"ID": 1}], [{"ID": 2}]]}').ids).toEqual([1n, 2n]);
  const list = (id: number) =>
    `<JobApplicationsList><JobApplication><ID>${id}</ID></JobApplication></JobApplicationsList>`;
  expect(parsePage(`<JobApplications>${list(1)}${list(2)}</JobApplications>`).ids).toEqual([1n, 2n]);
});

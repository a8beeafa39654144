// Screens in every dress a source was seen to give them, in JSON and in XML: both must give the same value. screen-properties.test.ts draws
// screens of the usual shapes.

import { describe, expect, test } from 'vitest';
import { parseScreens } from '../../../src/source/parse/screen.ts';

type Screens = ReturnType<typeof parseScreens>['screens'];

const read = (text: string, contentType?: string): Screens => parseScreens(Buffer.from(text), contentType).screens;
const answersOf = (screens: Screens) => screens[0]?.questions[0]?.answers;

/** Where lists stand: around one in JSON, around one in XML, and where its elements are found. */
const places: Record<string, [json: (list: string) => string, xml: string, find: (read: Screens) => unknown]> = {
  screen: [(list) => `{"@xmlns":"urn:s"${list}}`, '<screens>*</screens>', (screens) => screens],
  question: [(list) => `{"screen":{"@id":"1"${list}}}`, '<screen id="1">*</screen>', ([screen]) => screen?.questions],
  answer: [
    (list) => `{"screen":{"question":{"@id":"5"${list}}}}`,
    '<screen><question id="5">*</question></screen>',
    answersOf,
  ],
};

describe.for(Object.entries(places))('a list: %s', ([name, [inJson, around, find]]) => {
  test.for([
    ['an empty object', '{}', '<e/>', []],
    ['nothing among others', '[null,{},{"@id":"a"}]', '<e/><e/><e id="a"/>', ['a']],
    ['two with the same id', '[{"@id":"a"},{"@id":"a"}]', '<e id="a"/><e id="a"/>', ['a', 'a']],
    ['an empty id, which is not an absent one', '{"@id":""}', '<e id=""/>', ['']],
    ['a number as id', '{"@id":12345678901234567890}', '<e id="12345678901234567890"/>', ['12345678901234567890']],
    ['nil, and an id', '{"@id":"a","@xsi:nil":"true"}', '<e id="a" xmlns:xsi="urn:i" xsi:nil="true"/>', ['a']],
  ] as const)('%s', ([, json, xml, ids]) => {
    const text = inJson(json === null ? '' : `,"${name}":${json}`);
    for (const screens of [read(text), read(around.replace('*', xml.replaceAll(/(?<=<\/?)e\b/g, name)))]) {
      expect(find(screens)).toEqual(ids.map((id) => expect.objectContaining({ id })));
      expect(screens.flatMap(({ notes }) => notes)).toEqual([]);
    }
  });
});

describe('a screen', () => {
  const plain = { id: '1', name: null, outcome: 'unknown', questions: [], notes: [] };

  test.for([
    ['with ?xml and @xmlns members', '{"?xml":{"@version":"1.0"},"screen":{"@xmlns":"u","@xmlns:i":"i","@id":"1"}}'],
    ['in other case', '{"Screen":{"@ID":"1"}}'],
    ['in other case (XML)', '<Screen ID="1"/>'],
    ['with a declaration and namespaces', '<?xml version="1.0"?><screen xmlns="urn:s" xmlns:i="urn:i" id="1"/>'],
    ['with a prefix', '<s:screen xmlns:s="urn:s" id="1"/>'],
  ] as const)('%s', ([, text]) => {
    expect(read(text)).toEqual([plain]);
  });

  test.for(['{"screen":{"@xmlns":"urn:s"}}', '<screen xmlns="urn:s"/>', '{"?xml":{"@version":"1.0"}}'])(
    'is none in %s',
    (text) => expect(read(text)).toEqual([]),
  );

  test('without an id has what it has', () => {
    for (const text of ['{"screen":{"@name":"n"}}', '<screen xmlns:x="urn:x" x:name="n"/>'])
      expect(read(text)).toEqual([{ ...plain, id: null, name: 'n' }]);
  });

  test.for(['x:successful="true" successful="false"', 'successful="false" x:successful="true"'])(
    'has a note of an attribute that another namespace has too: %s',
    (attributes) => {
      const notes = [{ field: 'screen', reason: 'has unknown members, kept in the stored bytes only' }];
      expect(read(`<screen xmlns:x="urn:x" ${attributes}/>`)).toMatchObject([{ outcome: 'fail', notes }]);
    },
  );

  test.for([
    ['True', 'pass', false],
    ['true', 'pass', false],
    ['False', 'fail', false],
    ['', 'unknown', true],
    ['Pass', 'unknown', true],
    ['Fail', 'unknown', true],
    ['null', 'unknown', true],
  ] as const)('with @successful="%s" is %s, and never fails by doubt', ([word, outcome, noted]) => {
    for (const text of [`{"screen":{"@successful":"${word}"}}`, `<screen successful="${word}"/>`]) {
      const notes = noted ? [{ field: '@successful', reason: 'is not a boolean' }] : [];
      expect(read(text)).toMatchObject([{ outcome, notes }]);
    }
  });

  test.for([
    ['true', 'pass'],
    ['false', 'fail'],
    ['null', 'unknown'],
    ['{}', 'unknown'],
  ] as const)('with a JSON %s is %s', ([json, outcome]) => {
    expect(read(`{"screen":{"@id":"1","@successful":${json}}}`)).toMatchObject([{ outcome }]);
  });
});

test.for([
  ['of an unknown type', '{"@id":"5","@type":"Video"}', '<question id="5" type="Video"/>', { id: '5', type: 'Video' }],
  ['without an id', '{"@type":"Text"}', '<question type="Text"/>', { id: null, type: 'Text' }],
  ['whose type another namespace has too', null, '<question type="Q" xmlns:i="u" i:type="T"/>', { type: 'Q' }],
  ['that is an empty text', '"\\n "', '<question>\n </question>', null],
] as const)('a question %s', ([, json, xml, question]) => {
  for (const text of [`{"screen":{"@id":"1","question":${json}}}`, `<screen id="1">${xml}</screen>`].slice(
    json ? 0 : 1,
  ))
    expect(read(text)).toMatchObject([{ questions: question ? [question] : [], notes: [] }]);
});

test('a text in the place of a question is noted, and the others stay', () => {
  for (const text of [
    '{"screen":{"@id":"1","question":["What?",{"@id":"5"}]}}',
    '<screen id="1"><question>What?</question><question id="5"/></screen>',
  ])
    expect(read(text)).toMatchObject([
      { questions: [{ id: '5' }], notes: [{ field: 'question.1', reason: 'is not an object' }] },
    ]);
});

describe('answers', () => {
  const readBoth = (json: string | null, xml: string | null, type = 'MultipleChoiceOneAnswer') => [
    ...(json === null ? [] : [read(`{"screen":{"question":{"@type":"${type}","answer":${json}}}}`)]),
    ...(xml === null ? [] : [read(`<screen><question type="${type}">${xml}</question></screen>`)]),
  ];
  /** An id, a text, and a star if it is selected. */
  const brief = (screens: Screens) =>
    answersOf(screens)?.map(({ id, text, selected }) => `${id}=${text}${selected ? '*' : ''}`);

  test.for([
    ['a plain string', '"x"', '<answer>x</answer>', ['null=x']],
    ['a plain number', '[27.50]', '<answer>27.50</answer>', ['null=27.50']],
    ['without an id', '{"@selected":"True","#text":"x"}', '<answer selected="True">x</answer>', ['null=x*']],
    [
      'to a one-answer question with two selected',
      '[{"@id":"a","@selected":"True"},{"@id":"b","@selected":"True"}]',
      '<answer id="a" selected="True"/><answer id="b" selected="True"/>',
      ['a=*', 'b=*'],
    ],
  ] as const)('%s', ([, json, xml, expected]) => {
    for (const screens of readBoth(json, xml)) {
      expect(brief(screens)).toEqual(expected);
      expect(screens[0]?.notes).toEqual([]);
    }
  });

  test.for([
    ['without selected', '{"@id":"a","#text":"mine"}', '<answer id="a">mine</answer>', ['a=mine']],
    ['entered empty', '{"@id":"a","@selected":"True"}', '<answer id="a" selected="True"/>', ['a=*']],
    ['with nothing there', '""', '<answer></answer>', []],
    ['as an array', '[{"@id":"a","@selected":"True","#text":"x"}]', null, ['a=x*']],
  ] as const)('to a question of type Text, %s', ([, json, xml, expected]) => {
    for (const screens of readBoth(json, xml, 'Text')) expect(brief(screens)).toEqual(expected);
  });

  test.for([
    ['True', '*', false],
    ['true', '*', false],
    ['False', '', false],
    ['', '', true],
    ['perhaps', '', true],
  ] as const)('with @selected="%s"', ([word, star, noted]) => {
    for (const screens of readBoth(`{"@selected":"${word}"}`, `<answer selected="${word}"/>`)) {
      expect(brief(screens)).toEqual([`null=${star}`]);
      const fields = screens[0]?.notes.map(({ field }) => field);
      expect(fields).toEqual(noted ? ['question.1.answer.1.@selected'] : []);
    }
  });

  test.for([
    ['missing', null, '', ''],
    ['null', '"#text":null', null, ''],
    ['a number beyond a double', '"#text":12345678901234567890', null, '12345678901234567890'],
    ['a number with an exponent', '"#text":1e5', '1e5', '1e5'],
    ['an array with a number', '"#text":["Nr ",7]', 'Nr <!-- -->7', 'Nr 7'],
    ['references', null, 'O&#39;Brien &#x1F600; &lt;&amp;&gt;', `O'Brien 😀 <&>`],
  ] as const)('#text %s', ([, members, content, expected]) => {
    const json = members === null ? null : `{"@id":"a",${members}}`;
    for (const screens of readBoth(json, content === null ? null : `<answer id="a">${content}</answer>`)) {
      expect(brief(screens)).toEqual([`a=${expected}`]);
      expect(screens[0]?.notes).toEqual([]);
    }
  });
});

describe('what cannot be kept as it came', () => {
  const reason = 'NUL, lone surrogates or invalid bytes replaced by U+FFFD';
  test.for([
    '{"screen":{"@name":"a\\u0000b","question":{"answer":{"#text":"\\u0000"}}}}',
    '<screen name="a&#0;b"><question><answer>&#0;</answer></question></screen>',
    '{"screen":{"@name":"a\\ud800b","question":{"answer":{"#text":"\\udfff"}}}}',
    '<screen name="a&#xD800;b"><question><answer>&#xDFFF;</answer></question></screen>',
  ])('NUL and a lone surrogate become U+FFFD and are noted: %s', (text) => {
    const [screen] = read(text);
    expect(screen?.name).toBe('a\ufffdb');
    expect(screen?.questions[0]?.answers[0]?.text).toBe('\ufffd');
    expect(screen?.notes.map((note) => note.reason)).toEqual([reason, reason]);
    expect(screen?.notes[0]).toEqual({ field: '@name', reason });
    expect(screen?.notes[1]?.field).toMatch(/^question\.1\.answer\.1/);
  });

  test('a pair of surrogates split between two pieces is whole again', () => {
    const [screen] = read('{"screen":{"question":{"answer":{"#text":["\\ud83d","\\ude00"]}}}}');
    expect(screen?.questions[0]?.answers[0]?.text).toBe('😀');
    expect(screen?.notes).toEqual([]);
  });

  test.for([
    [
      'an object as text',
      '{"screen":{"@id":"1","question":{"answer":{"@id":"a","#text":{"b":1}}}}}',
      'question.1.answer.1.#text',
    ],
    ['an object as id', '{"screen":{"@name":"n","@id":{"b":1}}}', '@id'],
    ['a list as answer', '{"screen":{"@id":"1","question":{"answer":[["x"]]}}}', 'question.1.answer.1'],
    [
      'elements within an answer',
      '<screen><question><answer>a<b>c</b></answer></question></screen>',
      'question.1.answer.1',
    ],
    ['members we do not know', '{"screen":{"@id":"1","Score":7}}', 'screen'],
    ['a question of strangers', '{"screen":{"@id":"1","question":{"Id":"7"}}}', 'question.1'],
  ] as const)('%s is noted by its place, never by its content', ([, text, field]) => {
    const [screen] = read(text);
    expect(screen?.notes.map((note) => note.field)).toEqual([field]);
    expect(JSON.stringify(screen?.notes)).not.toMatch(/"c"|Score|"b"/);
  });

  test('bytes that are not UTF-8 are replaced and noted', () => {
    const body = Buffer.from('{"screen":{"@name":"Caf\xe9"}}', 'latin1');
    const inCharset = (charset: string) => parseScreens(body, `application/json; charset=${charset}`).screens;
    expect(inCharset('utf-8')).toMatchObject([{ name: 'Caf\ufffd', notes: [{ field: '@name', reason }] }]);
    expect(inCharset('iso-8859-1')).toMatchObject([{ name: 'Café', notes: [] }]);
  });
});

describe('no screen at all is Trouble malformed, which quotes nothing', () => {
  const bomb = '<!DOCTYPE s [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><screen name="&b;"/>';
  test.for([
    ['an empty text', ''],
    ['a DOCTYPE', '<!DOCTYPE screen><screen id="secret"/>'],
    ['an entity bomb', bomb],
    ['an outside entity', '<!DOCTYPE s [<!ENTITY x SYSTEM "file:///etc/passwd">]><screen name="&x;"/>'],
    ['a DOCTYPE behind a declaration and a comment', '<?xml version="1.0"?><!-- --><!DOCTYPE screen><screen/>'],
    ['an unclosed tag', '<screen id="secret"><question>'],
    ['a tag closed by another', '<screen id="secret"><question></screen></question>'],
    ['a second root', '<screen id="secret"/><screen id="2"/>'],
    ['text behind the root', '<screen id="secret"/>secret'],
    ['half a JSON', '{"screen":{"@id":"secret"'],
    ['two JSON values', '{"screen":null}{"screen":null}'],
    ['an error in JSON', '{"error":"secret"}'],
    ['an error in XML', '<error><message>secret</message></error>'],
    ['a problem with an id and a name', '{"id":"secret","name":"secret","message":"secret"}'],
    ['an HTML page', '<!doctype html><html><body>secret</body></html>'],
    ['a JSON text', '"secret"'],
    ['a screen that is a text', '{"screen":"secret"}'],
    ['a screen of strangers', '{"screen":{"Id":"secret"}}'],
    ['a question alone', '<question id="secret"/>'],
    ['elements nested 200,000 deep', '<a>'.repeat(200_000)],
    ['arrays nested 200,000 deep', '['.repeat(200_000) + ']'.repeat(200_000)],
    ['wrappers nested 200,000 deep', `${'{"screens":'.repeat(200_000)}null${'}'.repeat(200_000)}`],
  ] as const)('%s', ([, text]) => {
    const attempt = () => read(text);
    expect(attempt).toThrow(expect.objectContaining({ name: 'Trouble', kind: 'malformed' }));
    expect(attempt).not.toThrow(/secret/);
  });

  test('members called __proto__ and constructor are strangers like others', () => {
    expect(read('{"screen":{"@id":"1","__proto__":{"@name":"x"},"constructor":1}}')[0]?.name).toBeNull();
    expect(read('<screen id="1"><__proto__ name="x"/><constructor/></screen>')[0]?.name).toBeNull();
  });
});

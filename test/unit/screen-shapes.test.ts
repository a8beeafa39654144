// Screens in every dress a source was seen to give them. Each row is one shape, in JSON and, where it has one, in XML:
// both must give the same value.

import { describe, expect, test } from 'vitest';
import { toOutcome } from '../../src/domain/screen.ts';
import { parseScreens, screenParserVersion } from '../../src/source/parse/screen.ts';

type Screens = ReturnType<typeof parseScreens>['screens'];
type Row<T> = readonly [shape: string, json: string | null, xml: string | null, expected: T];

const read = (text: string, contentType?: string): Screens => parseScreens(Buffer.from(text), contentType).screens;

/** Every form of a row, by name. */
function forms<T>(rows: readonly Row<T>[]): [name: string, text: string, expected: T][] {
  return rows.flatMap(([shape, json, xml, expected]) => [
    ...(json === null ? [] : [[`${shape} (JSON)`, json, expected] as [string, string, T]]),
    ...(xml === null ? [] : [[`${shape} (XML)`, xml, expected] as [string, string, T]]),
  ]);
}

const aScreen = (facts: Partial<Screens[number]> = {}): Screens[number] => ({
  id: '1',
  name: null,
  outcome: 'unknown',
  questions: [],
  notes: [],
  ...facts,
});
const aQuestion = (facts: Partial<Screens[number]['questions'][number]> = {}) => ({
  id: '5',
  type: null,
  text: null,
  answers: [],
  ...facts,
});
const anAnswer = (id: string | null, text: string, selected = false) => ({ id, text, selected });

describe('the screen of the spec', () => {
  const json = `{"screen":{"@id":"77","@name":"Bar staff","@successful":"True","question":[
    {"@id":"1","@type":"MultipleChoiceOneAnswer","@text":"Where?","answer":[
      {"@id":"a","#text":"Here"},{"@id":"b","@selected":"True","#text":"There"}]},
    {"@id":"2","@type":"MultipleChoiceManyAnswers","@text":"When?","answer":[
      {"@id":"a","@selected":"True","#text":"Day"},{"@id":"b","#text":"Dusk"},{"@id":"c","@selected":"True","#text":"Night"}]},
    {"@id":"3","@type":"Text","@text":"Why?","answer":{"@id":"a","@selected":"True","#text":"I like it"}},
    {"@id":"4","@type":"True/False","@text":"Licence?","answer":[
      {"@id":"a","@selected":"True","#text":"True"},{"@id":"b","#text":"False"}]},
    {"@id":"5","@type":"URLQuestion","@text":"Site?","answer":{"@id":"a","@selected":"True","#text":"https://example.com/?a=1&b=2"}}]}}`;
  const xml = `<?xml version="1.0" encoding="utf-8"?>
    <screen id="77" name="Bar staff" successful="True">
      <question id="1" type="MultipleChoiceOneAnswer" text="Where?">
        <answer id="a">Here</answer><answer id="b" selected="True">There</answer>
      </question>
      <question id="2" type="MultipleChoiceManyAnswers" text="When?">
        <answer id="a" selected="True">Day</answer><answer id="b">Dusk</answer><answer id="c" selected="True">Night</answer>
      </question>
      <question id="3" type="Text" text="Why?"><answer id="a" selected="True">I like it</answer></question>
      <question id="4" type="True/False" text="Licence?">
        <answer id="a" selected="True">True</answer><answer id="b">False</answer>
      </question>
      <question id="5" type="URLQuestion" text="Site?">
        <answer id="a" selected="True">https://example.com/?a=1&amp;b=2</answer>
      </question>
    </screen>`;

  test.for(forms([['all five question types', json, xml, null]]))('%s', ([, text]) => {
    expect(parseScreens(Buffer.from(text), undefined)).toEqual({
      parserVersion: screenParserVersion,
      screens: [
        aScreen({
          id: '77',
          name: 'Bar staff',
          outcome: 'pass',
          questions: [
            {
              id: '1',
              type: 'MultipleChoiceOneAnswer',
              text: 'Where?',
              answers: [anAnswer('a', 'Here'), anAnswer('b', 'There', true)],
            },
            {
              id: '2',
              type: 'MultipleChoiceManyAnswers',
              text: 'When?',
              answers: [anAnswer('a', 'Day', true), anAnswer('b', 'Dusk'), anAnswer('c', 'Night', true)],
            },
            { id: '3', type: 'Text', text: 'Why?', answers: [anAnswer('a', 'I like it', true)] },
            {
              id: '4',
              type: 'True/False',
              text: 'Licence?',
              answers: [anAnswer('a', 'True', true), anAnswer('b', 'False')],
            },
            {
              id: '5',
              type: 'URLQuestion',
              text: 'Site?',
              answers: [anAnswer('a', 'https://example.com/?a=1&b=2', true)],
            },
          ],
        }),
      ],
    });
  });

  test.for([
    ['JSON asked, XML sent', xml, 'application/json; charset=utf-8'],
    ['XML asked, JSON sent', json, 'application/xml; charset=utf-8'],
    ['a type that says nothing', xml, 'application/octet-stream'],
    ['no type', json, undefined],
  ] as const)('%s: the bytes decide, not the header', ([, text, contentType]) => {
    expect(read(text, contentType)).toEqual(read(json));
    expect(read(text, contentType)).toEqual(read(xml));
  });
});

describe('screen', () => {
  test.for(
    forms<Screens>([
      ['an array', '{"screen":[{"@id":"1"}]}', '<screens><screen id="1"/></screens>', [aScreen()]],
      ['a single object', '{"screen":{"@id":"1"}}', '<screen id="1"/>', [aScreen()]],
      ['null', '{"screen":null}', '<screens><screen xmlns:i="urn:i" i:nil="true"/></screens>', []],
      ['absent', '{}', '<screens/>', []],
      ['an empty array', '{"screen":[]}', '<screens></screens>', []],
      ['an empty object', '{"screen":{}}', '<screen/>', []],
      ['nothing but a namespace', '{"screen":{"@xmlns":"urn:s"}}', '<screen xmlns="urn:s"/>', []],
      [
        'null among others',
        '{"screen":[null,{"@id":"1"}]}',
        '<screens><screen/><screen id="1"/></screens>',
        [aScreen()],
      ],
      [
        'two in one application',
        '{"screen":[{"@id":"1"},{"@id":"2","@successful":"False"}]}',
        '<screens><screen id="1"/><screen id="2" successful="False"/></screens>',
        [aScreen(), aScreen({ id: '2', outcome: 'fail' })],
      ],
      [
        'two with the same id',
        '{"screen":[{"@id":"1"},{"@id":"1"}]}',
        '<screens><screen id="1"/><screen id="1"/></screens>',
        [aScreen(), aScreen()],
      ],
      ['without an id', '{"screen":{"@name":"n"}}', '<screen name="n"/>', [aScreen({ id: null, name: 'n' })]],
      ['a bare array', '[{"@id":"1"}]', null, [aScreen()]],
      ['unwrapped', '{"@id":"1","question":[]}', null, [aScreen()]],
      [
        'with ?xml and @xmlns members',
        '{"?xml":{"@version":"1.0"},"screen":{"@xmlns":"urn:s","@xmlns:i":"urn:i","@id":"1"}}',
        '<?xml version="1.0"?><screen xmlns="urn:s" xmlns:i="urn:i" id="1"/>',
        [aScreen()],
      ],
      ['?xml and no screen', '{"?xml":{"@version":"1.0"}}', '<?xml version="1.0"?><screens/>', []],
      ['other case', '{"Screen":{"@ID":"1"}}', '<Screen ID="1"/>', [aScreen()]],
      ['a prefix', null, '<s:screen xmlns:s="urn:s" id="1"/>', [aScreen()]],
      [
        'an attribute of another namespace beside its own',
        null,
        '<screen xmlns:x="urn:x" x:id="9" id="1" x:name="m"/>',
        [aScreen({ name: 'm' })],
      ],
    ]),
  )('%s', ([, text, expected]) => {
    expect(read(text)).toEqual(expected);
  });
});

describe('@successful', () => {
  test.for([
    ['True', 'pass', false],
    ['true', 'pass', false],
    ['False', 'fail', false],
    ['false', 'fail', false],
    ['', 'unknown', true],
    ['Pass', 'unknown', true],
    ['Fail', 'unknown', true],
    ['null', 'unknown', true],
  ] as const)('"%s" is %s', ([word, outcome, noted]) => {
    for (const text of [`{"screen":{"@successful":"${word}"}}`, `<screen successful="${word}"/>`]) {
      const [screen] = read(text);
      expect(screen?.outcome).toBe(outcome);
      expect(screen?.notes).toEqual(noted ? [{ field: '@successful', reason: 'is not a boolean' }] : []);
    }
  });

  test.for(
    forms([
      ['missing', '{"screen":{"@id":"1"}}', '<screen id="1"/>', 'unknown'],
      ['null', '{"screen":{"@id":"1","@successful":null}}', null, 'unknown'],
      ['a JSON true', '{"screen":{"@id":"1","@successful":true}}', null, 'pass'],
      ['a JSON false', '{"screen":{"@id":"1","@successful":false}}', null, 'fail'],
      ['an object', '{"screen":{"@id":"1","@successful":{}}}', null, 'unknown'],
    ]),
  )('%s', ([, text, outcome]) => {
    expect(read(text)[0]?.outcome).toBe(outcome);
  });

  test('unknown is never fail', () => {
    expect([true, false, null].map(toOutcome)).toEqual(['pass', 'fail', 'unknown']);
  });
});

describe('question', () => {
  const inScreen = (json: string) => `{"screen":{"@id":"1"${json}}}`;
  const inXml = (xml: string) => `<screen id="1">${xml}</screen>`;
  test.for(
    forms<readonly unknown[]>([
      ['an array', inScreen(',"question":[{"@id":"5"}]'), null, [aQuestion()]],
      ['a single object', inScreen(',"question":{"@id":"5"}'), inXml('<question id="5"/>'), [aQuestion()]],
      ['null', inScreen(',"question":null'), inXml('<question/>'), []],
      ['absent', inScreen(''), inXml(''), []],
      ['an empty text', inScreen(',"question":"\\n "'), inXml('<question>\n </question>'), []],
      [
        'of an unknown type',
        inScreen(',"question":{"@id":"5","@type":"Video"}'),
        inXml('<question id="5" type="Video"/>'),
        [aQuestion({ type: 'Video' })],
      ],
      [
        'without an id',
        inScreen(',"question":{"@type":"Text"}'),
        inXml('<question type="Text"/>'),
        [aQuestion({ id: null, type: 'Text' })],
      ],
      [
        'with an id twice',
        inScreen(',"question":[{"@id":"5"},{"@id":"5","@text":"again"}]'),
        inXml('<question id="5"/><question id="5" text="again"/>'),
        [aQuestion(), aQuestion({ text: 'again' })],
      ],
      [
        'with a number as id',
        inScreen(',"question":{"@id":12345678901234567890}'),
        inXml('<question id="12345678901234567890"/>'),
        [aQuestion({ id: '12345678901234567890' })],
      ],
      [
        'whose type another namespace has too',
        null,
        inXml('<question type="Text" xmlns:xsi="urn:i" xsi:type="Q" id="5"/>'),
        [aQuestion({ type: 'Text' })],
      ],
      [
        'an empty attribute, which is not an absent one',
        inScreen(',"question":{"@id":"","@text":""}'),
        inXml('<question id="" text=""/>'),
        [aQuestion({ id: '', text: '' })],
      ],
    ]),
  )('%s', ([, text, expected]) => {
    const [screen] = read(text);
    expect(screen?.questions).toEqual(expected);
    expect(screen?.notes).toEqual([]);
  });

  test.for(
    forms([
      [
        'a text',
        inScreen(',"question":["What?",{"@id":"5"}]'),
        inXml('<question>What?</question><question id="5"/>'),
        { field: 'question.1', reason: 'is not an object' },
      ],
    ]),
  )('%s in its place is noted, and the others stay', ([, text, note]) => {
    expect(read(text)).toEqual([aScreen({ questions: [aQuestion()], notes: [note] })]);
  });
});

describe('answer', () => {
  const inQuestion = (json: string, type = 'MultipleChoiceOneAnswer') =>
    `{"screen":{"question":{"@type":"${type}"${json}}}}`;
  const inXml = (xml: string, type = 'MultipleChoiceOneAnswer') =>
    `<screen><question type="${type}">${xml}</question></screen>`;
  const answersOf = (text: string) => read(text)[0]?.questions[0]?.answers;

  test.for(
    forms<readonly unknown[]>([
      ['an array', inQuestion(',"answer":[{"@id":"a","#text":"x"}]'), null, [anAnswer('a', 'x')]],
      [
        'a single object',
        inQuestion(',"answer":{"@id":"a","#text":"x"}'),
        inXml('<answer id="a">x</answer>'),
        [anAnswer('a', 'x')],
      ],
      ['null', inQuestion(',"answer":null'), inXml('<answer/>'), []],
      ['absent', inQuestion(''), inXml(''), []],
      [
        'an empty object among others',
        inQuestion(',"answer":[{},{"@id":"a"}]'),
        inXml('<answer/><answer id="a"/>'),
        [anAnswer('a', '')],
      ],
      ['a plain string', inQuestion(',"answer":"x"'), inXml('<answer>x</answer>'), [anAnswer(null, 'x')]],
      [
        'plain strings',
        inQuestion(',"answer":["x"," y "]'),
        inXml('<answer>x</answer><answer> y </answer>'),
        [anAnswer(null, 'x'), anAnswer(null, ' y ')],
      ],
      ['a plain number', inQuestion(',"answer":[27.50]'), inXml('<answer>27.50</answer>'), [anAnswer(null, '27.50')]],
      [
        'without an id',
        inQuestion(',"answer":{"@selected":"True","#text":"x"}'),
        inXml('<answer selected="True">x</answer>'),
        [anAnswer(null, 'x', true)],
      ],
      [
        'with an id twice',
        inQuestion(',"answer":[{"@id":"a","#text":"x"},{"@id":"a","#text":"y"}]'),
        inXml('<answer id="a">x</answer><answer id="a">y</answer>'),
        [anAnswer('a', 'x'), anAnswer('a', 'y')],
      ],
      [
        'that says it is nil, and has an id',
        inQuestion(',"answer":{"@id":"a","@xsi:nil":"true"}'),
        inXml('<answer id="a" xmlns:xsi="urn:i" xsi:nil="true"/>'),
        [anAnswer('a', '')],
      ],
      [
        'one-answer question with two selected',
        inQuestion(',"answer":[{"@id":"a","@selected":"True"},{"@id":"b","@selected":"True"}]'),
        inXml('<answer id="a" selected="True"/><answer id="b" selected="True"/>'),
        [anAnswer('a', '', true), anAnswer('b', '', true)],
      ],
      [
        'one-answer question with none selected',
        inQuestion(',"answer":[{"@id":"a"},{"@id":"b"}]'),
        inXml('<answer id="a"/><answer id="b"/>'),
        [anAnswer('a', ''), anAnswer('b', '')],
      ],
      [
        'Text without selected',
        inQuestion(',"answer":{"@id":"a","#text":"mine"}', 'Text'),
        inXml('<answer id="a">mine</answer>', 'Text'),
        [anAnswer('a', 'mine')],
      ],
      [
        'Text entered empty',
        inQuestion(',"answer":{"@id":"a","@selected":"True"}', 'Text'),
        inXml('<answer id="a" selected="True"/>', 'Text'),
        [anAnswer('a', '', true)],
      ],
      ['Text, nothing there', inQuestion(',"answer":""', 'Text'), inXml('<answer></answer>', 'Text'), []],
      [
        'Text as an array',
        inQuestion(',"answer":[{"@id":"a","@selected":"True","#text":"x"}]', 'Text'),
        null,
        [anAnswer('a', 'x', true)],
      ],
    ]),
  )('%s', ([, text, expected]) => {
    expect(answersOf(text)).toEqual(expected);
    expect(read(text)[0]?.notes).toEqual([]);
  });

  test.for([
    ['True', true, false],
    ['true', true, false],
    ['False', false, false],
    ['false', false, false],
    ['', false, true],
    ['perhaps', false, true],
  ] as const)('@selected="%s" is %s', ([word, selected, noted]) => {
    for (const text of [inQuestion(`,"answer":{"@selected":"${word}"}`), inXml(`<answer selected="${word}"/>`)]) {
      expect(answersOf(text)).toEqual([anAnswer(null, '', selected)]);
      expect(read(text)[0]?.notes.map(({ field }) => field)).toEqual(noted ? ['question.1.answer.1.@selected'] : []);
    }
  });

  test.for(
    forms([
      ['missing', '{"@id":"a"}', '<answer id="a"/>', ''],
      ['empty', '{"@id":"a","#text":""}', '<answer id="a"></answer>', ''],
      ['null', '{"@id":"a","#text":null}', null, ''],
      ['a number', '{"@id":"a","#text":42}', '<answer id="a">42</answer>', '42'],
      ['a number with its digits', '{"@id":"a","#text":27.50}', '<answer id="a">27.50</answer>', '27.50'],
      [
        'a number beyond a double',
        '{"@id":"a","#text":12345678901234567890}',
        '<answer id="a">12345678901234567890</answer>',
        '12345678901234567890',
      ],
      ['a number with an exponent', '{"@id":"a","#text":1e5}', '<answer id="a">1e5</answer>', '1e5'],
      ['an array', '{"@id":"a","#text":["one ","two"]}', '<answer id="a">one <!-- -->two</answer>', 'one two'],
      ['an array with a number', '{"@id":"a","#text":["Nr ",7]}', '<answer id="a">Nr <!-- -->7</answer>', 'Nr 7'],
      [
        '#cdata-section',
        '{"@id":"a","#cdata-section":"<b> & ]]"}',
        '<answer id="a"><![CDATA[<b> & ]]]]></answer>',
        '<b> & ]]',
      ],
      [
        '#text before #cdata-section',
        '{"@id":"a","#text":"a","#cdata-section":"&amp;"}',
        '<answer id="a">a<![CDATA[&amp;]]></answer>',
        'a&amp;',
      ],
      [
        '#cdata-section before #text',
        '{"@id":"a","#cdata-section":"a","#text":"b"}',
        '<answer id="a"><![CDATA[a]]>b</answer>',
        'ab',
      ],
      ['a phone number', '{"@id":"a","#text":"0412345678"}', '<answer id="a">0412345678</answer>', '0412345678'],
      ['1e5', '{"@id":"a","#text":"1e5"}', '<answer id="a">1e5</answer>', '1e5'],
      ['0x1F', '{"@id":"a","#text":"0x1F"}', '<answer id="a">0x1F</answer>', '0x1F'],
      ['007', '{"@id":"a","#text":"007"}', '<answer id="a">007</answer>', '007'],
      ['true', '{"@id":"a","#text":"true"}', '<answer id="a">true</answer>', 'true'],
      ['space around', '{"@id":"a","#text":" \\n x "}', '<answer id="a"> \n x </answer>', ' \n x '],
      [
        'references',
        `{"@id":"a","#text":"O'Brien 😀 <&>"}`,
        '<answer id="a">O&#39;Brien &#x1F600; &lt;&amp;&gt;</answer>',
        `O'Brien 😀 <&>`,
      ],
    ]),
  )('#text %s', ([, element, expected]) => {
    const text = element.startsWith('<') ? inXml(element) : inQuestion(`,"answer":${element}`);
    expect(answersOf(text)).toEqual([anAnswer('a', expected)]);
    expect(read(text)[0]?.notes).toEqual([]);
  });
});

describe('what cannot be kept as it came', () => {
  const reason = 'NUL, lone surrogates or invalid bytes replaced by U+FFFD';
  test.for(
    forms([
      [
        'NUL',
        '{"screen":{"@name":"a\\u0000b","question":{"answer":{"#text":"\\u0000"}}}}',
        '<screen name="a&#0;b"><question><answer>&#0;</answer></question></screen>',
        null,
      ],
      [
        'a lone surrogate',
        '{"screen":{"@name":"a\\ud800b","question":{"answer":{"#text":"\\udfff"}}}}',
        '<screen name="a&#xD800;b"><question><answer>&#xDFFF;</answer></question></screen>',
        null,
      ],
    ]),
  )('%s becomes U+FFFD and is noted', ([, text]) => {
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
    expect(parseScreens(body, 'application/json; charset=utf-8').screens).toEqual([
      aScreen({
        id: null,
        name: 'Caf\ufffd',
        notes: [{ field: '@name', reason: 'NUL, lone surrogates or invalid bytes replaced by U+FFFD' }],
      }),
    ]);
    expect(parseScreens(body, 'application/json; charset=iso-8859-1').screens).toEqual([
      aScreen({ id: null, name: 'Café' }),
    ]);
  });
});

describe('no screen at all is Trouble malformed, which quotes nothing', () => {
  const bomb = '<!DOCTYPE s [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><screen name="&b;"/>';
  test.for([
    ['an empty text', ''],
    ['blanks', ' \n'],
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
    ['an XHTML page', '<html><body>secret</body></html>'],
    ['a JSON text', '"secret"'],
    ['a JSON number', '5'],
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

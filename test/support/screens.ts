// Random screens for tests, and the many ways in which a source may write them. The renderers interpret the spec independently and share
// no code with the parser under test.
import fc from 'fast-check';
import type { Screen, ScreenAnswer, ScreenQuestion } from '../../src/domain/application.ts';

/** Chooses one of several ways to write a value; fast-check replays and shrinks the choices. */
export type Pick = <T>(...ways: readonly T[]) => T;

// Every character except NUL and lone surrogates: no column can hold those, so the parser replaces them and adds a note.
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }).map((value) => value.replaceAll('\0', '')),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom('0412345678', '1e5', '0x1F', '007', '27.50', '+61491570156', 'true', 'null', '42'),
  fc.constantFrom('', ' ', ' padded ', 'a\r\nb\tc', `<&>"'`, ']]>', '&amp;', '&#39;', '<![CDATA[x]]>', '{"a":1}'),
);
const optional = fc.option(text, { nil: null });
const questionTypes = ['MultipleChoiceOneAnswer', 'MultipleChoiceManyAnswers', 'Text', 'True/False', 'URLQuestion'];

// The parser skips empty elements: they are no answer, question or screen. The renderers insert some at random.
const answer: fc.Arbitrary<ScreenAnswer> = fc
  .record({ id: optional, text, selected: fc.boolean() })
  .filter((a) => a.id !== null || a.text !== '' || a.selected);
const question: fc.Arbitrary<ScreenQuestion> = fc
  .record({
    id: optional,
    type: fc.option(fc.oneof(fc.constantFrom(...questionTypes), text), { nil: null }),
    text: optional,
    answers: fc.array(answer, { maxLength: 4 }),
  })
  .filter((q) => q.id !== null || q.type !== null || q.text !== null || q.answers.length > 0);

/** Any list of screens that an application may have. */
export const screenLists: fc.Arbitrary<readonly Screen[]> = fc.array(
  fc
    .record({
      id: optional,
      name: optional,
      outcome: fc.constantFrom('pass' as const, 'fail' as const, 'unknown' as const),
      questions: fc.array(question, { maxLength: 4 }),
      notes: fc.constant([]),
    })
    .filter((s) => s.id !== null || s.name !== null || s.outcome !== 'unknown'),
  { maxLength: 3 },
);

type Members = readonly (readonly [string, unknown])[];

/** The screens as JSON: single value or array, null or absent, text in pieces, with leftovers of a conversion from XML. */
export function renderScreensJson(screens: readonly Screen[], pick: Pick): string {
  const written = screens.map((screen) => toJsonScreen(screen, pick));
  if (written.length === 1 && pick(false, true)) return JSON.stringify(written[0]);
  if (pick(false, true)) return JSON.stringify(written);
  const leftovers: Members = pick([], [['?xml', { '@version': '1.0', '@encoding': 'utf-8' }]]);
  const body = toJsonObject([...leftovers, ...toJsonList('screen', written, pick)], pick);
  return JSON.stringify(pick(body, body, { screens: body }), null, pick(0, 2));
}

function toJsonScreen(screen: Screen, pick: Pick): unknown {
  const successful = {
    pass: pick<unknown>('True', 'true', 'TRUE', true, 1),
    fail: pick<unknown>('False', 'false', false, 0),
    unknown: pick(undefined, null),
  }[screen.outcome];
  return toJsonObject(
    [
      ...toNamespace(pick),
      ...toJsonText('@id', screen.id, pick),
      ...toJsonText('@name', screen.name, pick),
      ['@successful', successful],
      ...toJsonList(
        'question',
        screen.questions.map((question) => toJsonQuestion(question, pick)),
        pick,
      ),
    ],
    pick,
  );
}

function toJsonQuestion(question: ScreenQuestion, pick: Pick): unknown {
  return toJsonObject(
    [
      ...toJsonText('@id', question.id, pick),
      ...toJsonText('@type', question.type, pick),
      ...toJsonText('@text', question.text, pick),
      ...toJsonList(
        'answer',
        question.answers.map((answer) => toJsonAnswer(answer, pick)),
        pick,
      ),
    ],
    pick,
  );
}

function toJsonAnswer(answer: ScreenAnswer, pick: Pick): unknown {
  if (answer.id === null && !answer.selected && pick(true, false)) return answer.text;
  const members: Members = [
    ...toJsonText('@id', answer.id, pick),
    ['@selected', answer.selected ? pick<unknown>('True', 'true', true) : pick(undefined, 'False', 'false', null)],
  ];
  // The order of the pieces is the order of the text.
  return { ...toJsonObject(members, pick), ...Object.fromEntries(toJsonPieces(answer.text, pick)) };
}

function toJsonPieces(text: string, pick: Pick): Members {
  if (text === '') return pick<Members>([], [['#text', '']], [['#text', null]], [['#cdata-section', '']]);
  if (/^(?:0|[1-9]\d{0,14})$/.test(text) && pick(true, false)) return [['#text', Number(text)]];
  const half = Math.floor(text.length / 2);
  const [head, tail] = [text.slice(0, half), text.slice(half)];
  return pick<Members>(
    [['#text', text]],
    [['#cdata-section', text]],
    [['#text', [head, tail]]],
    [
      ['#text', head],
      ['#cdata-section', tail],
    ],
    [
      ['#cdata-section', [head]],
      ['#text', tail],
    ],
  );
}

function toJsonText(name: string, value: string | null, pick: Pick): Members {
  return value === null ? pick<Members>([], [[name, null]]) : [[name, value]];
}

function toJsonList(name: string, elements: readonly unknown[], pick: Pick): Members {
  if (elements.length === 0) return pick<Members>([], [[name, null]], [[name, []]], [[name, {}]], [[name, [null]]]);
  if (elements.length === 1) return [[name, pick(elements[0], elements)]];
  return [[name, pick(elements, [...elements, null], [{}, ...elements])]];
}

function toJsonObject(members: Members, pick: Pick): Record<string, unknown> {
  const present = members.filter(([, value]) => value !== undefined);
  return Object.fromEntries(pick(present, present.toReversed()));
}

function toNamespace(pick: Pick): Members {
  return pick<Members>([], [['@xmlns', 'http://schemas.example.com/screen']], [['@xmlns:xsi', 'urn:x']]);
}

/** The screens as XML: attributes in either order, both kinds of quotes, namespaces, whitespace, comments, CDATA and references. */
export function renderScreensXml(screens: readonly Screen[], pick: Pick): string {
  const prefix = pick('', '', 's:');
  const space = pick('', '\n  ', '<!-- between -->\n');
  const declared = prefix === '' ? pick('', ' xmlns="http://schemas.example.com/screen"') : ' xmlns:s="urn:screen"';
  const element = (name: string, attributes: readonly string[], content: readonly string[]) => {
    const written = pick(attributes, attributes.toReversed()).map((attribute) => `${pick(' ', '\n')}${attribute}`);
    const start = `${prefix}${name}${written.join('')}${name.startsWith('screen') ? declared : ''}`;
    return content.length === 0 && pick(true, false)
      ? `<${start} />`
      : `<${start}>${content.join('')}</${prefix}${name}>`;
  };
  const spaced = (children: readonly string[]) => children.flatMap((child) => [space, child, space]);
  const attributes = (values: Readonly<Record<string, string | null>>) =>
    Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [toXmlAttribute(name, value, pick)]));

  const written = screens.map((screen) =>
    element(
      'screen',
      attributes({
        id: screen.id,
        name: screen.name,
        successful: { pass: pick('True', 'true', '1'), fail: pick('False', 'false'), unknown: null }[screen.outcome],
      }),
      spaced(
        screen.questions.map((question) =>
          element('question', attributes({ id: question.id, type: question.type, text: question.text }), [
            ...spaced(
              question.answers.map((answer) =>
                element(
                  'answer',
                  attributes({ id: answer.id, selected: answer.selected ? pick('True', 'true') : pick(null, 'False') }),
                  answer.text === '' ? [] : [toXmlText(answer.text, pick)],
                ),
              ),
            ),
            ...pick([], [`<${prefix}answer/>`]),
          ]),
        ),
      ),
    ),
  );
  const root = written.length === 1 && pick(true, false) ? written.join('') : element('screens', [], spaced(written));
  return `${pick('', '<?xml version="1.0" encoding="utf-8"?>', '<?xml version="1.0"?>\n<!-- screen -->')}${root}`;
}

function toXmlAttribute(name: string, value: string, pick: Pick): string {
  const quote = pick('"', "'");
  return `${name}${pick('', '', ' ')}=${quote}${escapeXml(value, pick)}${quote}`;
}

function toXmlText(text: string, pick: Pick): string {
  // An XML parser turns line ends into \n, also in CDATA. CDATA has no escape for \r.
  const cdata = (part: string) =>
    part.includes('\r') ? escapeXml(part, pick) : `<![CDATA[${part.replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;
  const points = [...text];
  const half = points.length >> 1;
  const [head, tail] = [points.slice(0, half).join(''), points.slice(half).join('')];
  return pick(
    escapeXml(text, pick),
    cdata(text),
    `${escapeXml(head, pick)}${cdata(tail)}`,
    `${cdata(head)}<!-- amid -->${escapeXml(tail, pick)}`,
  );
}

function escapeXml(text: string, pick: Pick): string {
  const named: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&apos;',
  };
  const hex = pick(true, false);
  return text.replace(/[&<>"'\p{Cc}\ufffe\uffff]|[\u{10000}-\u{10ffff}]/gu, (found) => {
    const code = found.codePointAt(0) ?? 0;
    return named[found] ?? (hex ? `&#x${code.toString(16)};` : `&#${code};`);
  });
}

// Parses the bytes of a screen, JSON or XML, into questions and answers. XML is converted to the JSON form of the spec first (attributes
// as @name, text as #text), so one parser serves both. A document that is not a screen is rejected as a whole. Within a screen, a value
// that cannot be kept unchanged gets a note, and every answer option is kept, selected or not.

import { type Note, type ParsedScreens, toOutcome } from '../../domain/application.ts';
import { decodeText } from './charset.ts';
import { parseJson } from './json.ts';
import { type Members, type Names, namesOf, readMembers } from './members.ts';
import { addNote, isNothing, isObject, readBoolean, readText, refuse, toList } from './values.ts';
import { parseXml, toJsonShape } from './xml.ts';

/** Incremented by every change of this parser that gives different rows for the same bytes. */
export const screenParserVersion = 4;

const documentNames = namesOf(['screen', 'screens']);
const screenNames = namesOf(['@id', '@name', '@successful', 'question']);
const questionNames = namesOf(['@id', '@type', '@text', 'answer']);
const answerNames = namesOf(['@id', '@selected', '#text', '#cdata-section']);

/** Members that a conversion from XML leaves in JSON and that carry no fact: declarations, namespaces, nil, schema locations and types. */
const leftover = /^(?:\?.*|@xmlns(?::.*)?|@(?:[\w.-]+:)?(?:nil|schemaLocation)|@[\w.-]+:type)$/;

/** Parses the body of a screen. Its first character decides between JSON and XML, not its header. */
export function parseScreens(body: Uint8Array, contentType: string | undefined): ParsedScreens {
  const text = decodeText(body, contentType);
  const root = text.trimStart().startsWith('<') ? parseXml(text) : null;
  const document = root === null ? parseJson(text, true) : { [root.name]: toJsonShape(root) };
  return { screens: toScreenList(document).flatMap(toScreen), parserVersion: screenParserVersion };
}

// Spec: a top-level member screen, an array in the text, an object in the sample. Spec silent: no member, null, no wrapper, and several
// screens in XML, which need a root element.
function toScreenList(value: unknown, isInner = false): readonly unknown[] {
  if (isNothing(value)) return [];
  if (Array.isArray(value)) return value;
  if (!isObject(value)) return refuse('is neither an object nor a list');
  const { known } = readMembers(value, documentNames);
  if ('screen' in known) return toList(known.screen);
  if ('screens' in known && !isInner) return toScreenList(known.screens, true);
  const bare = readMembers(value, screenNames).known;
  if ('@id' in bare || '@name' in bare || '@successful' in bare) return [value];
  // An object with only unknown members is another message, most likely an error. Parsing it as no screen would hide that.
  return hasUnknown(Object.entries(value)) ? refuse('is not a screen') : [];
}

function toScreen(value: unknown) {
  if (isNothing(value)) return [];
  if (!isObject(value)) return refuse('contains a screen that is not an object');
  const notes: Note[] = [];
  const known = readPart(value, screenNames, 'screen', notes);
  if (known === null) return [];
  if (Object.keys(known).length === 0) return refuse('contains a screen with unknown members only');
  return [
    {
      id: readText(known['@id'], '@id', notes),
      name: readText(known['@name'], '@name', notes),
      outcome: toOutcome(readBoolean(known['@successful'], '@successful', notes)),
      questions: toList(known.question).flatMap((question, i) => toQuestion(question, `question.${i + 1}`, notes)),
      notes,
    },
  ];
}

function toQuestion(value: unknown, field: string, notes: Note[]) {
  if (isNothing(value)) return [];
  if (!isObject(value)) {
    addNote(notes, field, 'is not an object');
    return [];
  }
  const known = readPart(value, questionNames, field, notes);
  if (known === null) return [];
  const read = (name: string) => readText(known[name], `${field}.${name}`, notes);
  const [id, type, text] = [read('@id'), read('@type'), read('@text')];
  const answers = toList(known.answer).flatMap((answer, i) => toAnswer(answer, `${field}.answer.${i + 1}`, notes));
  return [{ id, type, text, answers }];
}

function toAnswer(value: unknown, field: string, notes: Note[]) {
  if (value === null || value === undefined || value === '') return [];
  // An XML element without attributes becomes its text.
  if (!isObject(value)) return [{ id: null, text: readText(value, field, notes) ?? '', selected: false }];
  const known = readPart(value, answerNames, field, notes);
  if (known === null) return [];
  const id = readText(known['@id'], `${field}.@id`, notes);
  const text = toAnswerText(known, field, notes);
  return [{ id, text, selected: readBoolean(known['@selected'], `${field}.@selected`, notes) ?? false }];
}

/** The known members; null where there is neither a known nor an unknown one. */
function readPart(value: Record<string, unknown>, names: Names, field: string, notes: Note[]): Members['known'] | null {
  const { known, unknown } = readMembers(value, names);
  const isMore = hasUnknown(unknown);
  if (isMore) addNote(notes, field, 'has unknown members, kept in the stored bytes only');
  return isMore || Object.keys(known).length > 0 ? known : null;
}

/** Text may be split into plain and CDATA pieces; they are joined in the order of their members. */
function toAnswerText(known: Members['known'], field: string, notes: Note[]): string {
  const names = Object.keys(known).filter((name) => name === '#text' || name === '#cdata-section');
  const pieces = names.flatMap((name) => toList(known[name]));
  // Joined before they are checked: a surrogate pair may be split between two pieces.
  if (pieces.every((piece) => typeof piece === 'string'))
    return readText(pieces.join(''), `${field}.#text`, notes) ?? '';
  return pieces.map((piece) => readText(piece, `${field}.#text`, notes) ?? '').join('');
}

function hasUnknown(members: Members['unknown']): boolean {
  return members.some(([name, value]) => !leftover.test(name) && !(name.startsWith('#') && isNothing(value)));
}

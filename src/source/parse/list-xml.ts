// Converts a list in XML to the JSON shape of the spec, with the types of members.ts, so that one parser serves both.
// A text that does not fit its member's type stays text; the parser in application.ts notes it.

import { Trouble } from '../../domain/trouble.ts';
import { parseDate, toDateText } from './dates.ts';
import { applicationShape, envelopeShape, type MemberType, type ObjectShape } from './members.ts';
import { isNil, parseXml, toJsonShape, toObject, type XmlElement } from './xml.ts';

/** Parses a list document into the value that the same list in JSON would have. */
export function parseListXml(text: string): unknown {
  const root = parseXml(text);
  const name = root.name.toLowerCase();
  if (name === 'jobapplications') return toValue(root, { object: envelopeShape });
  if (name === 'jobapplicationslist' || name === 'arrayofjobapplication')
    return toValue(root, { listOf: applicationShape });
  throw new Trouble('malformed', 'The answer is XML, but not a list of applications.');
}

function toValue(element: XmlElement, type: MemberType | undefined): unknown {
  if (isNil(element)) return null;
  if (type === undefined) return toJsonShape(element);
  if (typeof type === 'object') {
    return 'listOf' in type ? toList(element, type.listOf) : toMembers(element, type.object);
  }
  // Elements in place of a scalar are kept; application.ts notes them.
  return element.children.length > 0 ? toJsonShape(element) : toScalar(element.text, type);
}

function toList(element: XmlElement, shape: ObjectShape): unknown[] {
  const values = element.children.map((child) => toValue(child, { object: shape }));
  return element.text.trim() === '' ? values : [...values, element.text];
}

function toMembers(element: XmlElement, { names, types }: ObjectShape): unknown {
  if (element.children.length === 0 && element.text.trim() !== '') return element.text;
  const typeOf = (name: string) => types[names.get(name.toLowerCase()) ?? ''];
  return toObject(element.children.map((child) => [child.name, toValue(child, typeOf(child.name))]));
}

function toScalar(text: string, type: 'text' | 'integer' | 'boolean' | 'date'): unknown {
  const word = text.trim();
  if (type === 'text') return text;
  if (word === '') return null;
  if (type === 'boolean') return word === 'true' ? true : word === 'false' ? false : text;
  if (type === 'integer') {
    if (!/^(?:0|-?[1-9]\d{0,39})$/.test(word)) return text;
    return Number.isSafeInteger(Number(word)) ? Number(word) : JSON.rawJSON(word);
  }
  const { at, offset, problem } = parseDate(word);
  return at === null || problem !== null ? text : toDateText(at, offset);
}

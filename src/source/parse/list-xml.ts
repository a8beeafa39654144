// Converts a list in XML to the JSON shape of the spec, with the types of members.ts, so that one parser serves both.
// A text that does not fit its member's type stays text; the parser in application.ts notes it.

import { parseDate, toDateText } from './dates.ts';
import { applicationShape, envelopeShape, type MemberType, namesApplication, type ObjectShape } from './members.ts';
import { refuse } from './values.ts';
import { isNil, parseXml, toJsonShape, toLocalName, toObject, type XmlElement } from './xml.ts';

/** Parses a list document into the value that the same list in JSON would have. */
export function parseListXml(text: string): unknown {
  const whole = parseXml(text);
  // The other attributes of the root describe the document, not a person.
  const named = [...whole.attributes].filter(([name]) => envelopeShape.names.has(name.toLowerCase()));
  const root = { ...whole, attributes: new Map(named) };
  const name = root.name.toLowerCase();
  if (name === 'jobapplications') return toValue(root, { object: envelopeShape });
  if (name === 'jobapplicationslist' || name === 'arrayofjobapplication')
    return toValue(root, { listOf: applicationShape });
  return refuse('is XML, but not a list of applications');
}

function toValue(element: XmlElement, type: MemberType | undefined): unknown {
  const { children, text } = element;
  const others = toOthers(element);
  if (isNil(element) && others.length === 0) return null;
  if (type === undefined) return toJsonShape(element);
  if (typeof type === 'object') {
    return 'listOf' in type ? toList(element, type.listOf) : toMembers(element, type.object);
  }
  // Elements and attributes in place of a scalar are kept; application.ts notes them.
  const isOther = children.length > 0 || (others.length > 0 && text.trim() === '');
  return isOther ? toJsonShape(element) : toScalar(text, type);
}

/** The attributes that are not about the type of the element. */
function toOthers({ attributes }: XmlElement): [string, string][] {
  if (attributes.size === 0) return [];
  return [...attributes].filter(([name]) => !['nil', 'type'].includes(toLocalName(name)));
}

function toList(element: XmlElement, shape: ObjectShape): unknown[] {
  const isMember = ({ name }: XmlElement) => shape.names.has(name.toLowerCase());
  // Members in place of elements: a list of one, without the element around it.
  if (element.children.some(isMember)) {
    const isApplication = (child: XmlElement) =>
      namesApplication([...child.attributes.keys(), ...child.children.map(({ name }) => name)]);
    if (element.children.some((child) => !isMember(child) && isApplication(child)))
      refuse('has members of one application beside applications');
    return [toMembers(element, shape)];
  }
  // It may be said of any element of the list.
  const isSaid = (name: string) => shape.names.has(name.toLowerCase()) || /hasvirus/i.test(name);
  if ([...element.attributes.keys()].some(isSaid)) refuse('has a member of the spec as an attribute of a list');
  const values = element.children.map((child) => toValue(child, { object: shape }));
  return element.text.trim() === '' ? values : [...values, element.text];
}

function toMembers(element: XmlElement, { names, types }: ObjectShape): unknown {
  const { children, text } = element;
  const members: [string, unknown][] = toOthers(element).map(([name, value]) => [`@${name}`, value]);
  for (const child of children) {
    const value = toValue(child, types[names.get(child.name.toLowerCase()) ?? '']);
    members.push([child.name, value]);
    // An attribute beside the text of a scalar.
    if (typeof value !== 'object')
      for (const [name, text] of toOthers(child)) members.push([`${child.name}@${name}`, text]);
  }
  if (text.trim() === '') return toObject(members);
  return members.length === 0 ? text : toObject([...members, ['#text', text]]);
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

// Parses XML into a tree of local names, attributes and text, and gives it the JSON shape: of a list, with the types of members.ts, so that
// one parser serves both. A text that does not fit its member's type stays text; the parser in application.ts notes it.

import { parseDate, toDateText } from './dates.ts';
import { applicationShape, envelopeShape, type MemberType, namesApplication, type ObjectShape } from './members.ts';
import { mostValues, refuse } from './values.ts';

/** An element with its local name; namespace and prefix are dropped. */
interface XmlElement {
  readonly name: string;
  /** By local name, without namespace declarations. Of several with one local name, those with a prefix keep it. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: XmlElement[];
  /** Text and CDATA of the element itself, joined; empty when it contains elements with only whitespace between them. */
  text: string;
}

/** What walks through the elements is recursive. */
const deepest = 100;
const entities = new Map(Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }));
const tag = /<(\/?)([\p{L}_:][\p{L}\p{M}\p{N}_:.-]*)/uy;
const attribute = /\s+([\p{L}_:][\p{L}\p{M}\p{N}_:.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')/uy;
const tagEnd = /\s*(\/?)>/y;
const other = /<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<\?.*?\?>/sy;

/** Parses a complete, well-formed document; anything else throws Trouble malformed. */
export function parseXml(document: string): XmlElement {
  const text = document.replace(/\r\n?/g, '\n');
  const root: XmlElement = { name: '', attributes: new Map(), children: [], text: '' };
  const open = [{ written: '', element: root }];
  let [at, values] = [0, 0];

  const take = (expression: RegExp) => {
    expression.lastIndex = at;
    const found = expression.exec(text);
    if (found !== null) at = expression.lastIndex;
    return found;
  };
  const count = () => ++values > mostValues && refuse(`has more than ${mostValues} values`);
  const takeAttributes = () => {
    const written = new Map<string, string>();
    for (let found = take(attribute); found !== null; found = take(attribute)) {
      const [, name = '', double, single = ''] = found;
      if (written.has(name)) fail();
      written.set(name, toText(double ?? single));
      count();
    }
    const attributes = new Map<string, string>();
    // Those without a prefix first, so that they keep their name.
    for (const [name, value] of [...written].sort(([a], [b]) => Number(a.includes(':')) - Number(b.includes(':')))) {
      const local = toLocalName(name);
      if (!/^xmlns(?::|$)/.test(name)) attributes.set(attributes.has(local) ? name : local, value);
    }
    return attributes;
  };

  for (;;) {
    const { written, element } = open.at(-1) ?? fail();
    const next = text.indexOf('<', at);
    element.text += toText(text.slice(at, next < 0 ? text.length : next));
    if (next < 0) break;
    at = next;
    const found = take(other);
    element.text += found?.[1] ?? '';
    if (found !== null) continue;
    // A DOCTYPE is no tag: it can define entity bombs and external references, and no answer of the source needs one.
    const [, closing, name = ''] = take(tag) ?? fail();
    const attributes = takeAttributes();
    const [, empty] = take(tagEnd) ?? fail();
    if (closing) {
      if (name !== written || attributes.size > 0 || empty) fail();
      if (element.children.length > 0 && element.text.trim() === '') element.text = '';
      open.pop();
    } else {
      const child = { name: toLocalName(name), attributes, children: [], text: '' };
      element.children.push(child);
      count();
      if (!empty && open.push({ written: name, element: child }) > deepest) refuse('nests too deeply');
    }
  }
  const [only = fail(), ...others] = root.children;
  return open.length > 1 || others.length > 0 || root.text.trim() !== '' ? fail() : only;
}

function fail(): never {
  refuse('is not whole, valid XML');
}

function toLocalName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

/** NUL and lone surrogates by reference stay, so that they are replaced and noted as in JSON. What is no reference stays as it is. */
function toText(written: string): string {
  if (!written.includes('&')) return written;
  return written.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(\w+));/gi, (reference, hex, decimal, name) => {
    if (name !== undefined) return entities.get(name) ?? reference;
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0x10ffff ? reference : String.fromCodePoint(code);
  });
}

/** True for an empty element with a true `nil` attribute, with any prefix. */
function isNil({ attributes, children, text }: XmlElement): boolean {
  return /^(?:true|1)$/.test(attributes.get('nil') ?? '') && children.length === 0 && text.trim() === '';
}

/**
 * Converts an element without a known shape to JSON form: attributes as `@name`, text as `#text`, repeated children as arrays.
 * An element with text alone becomes that text; an element whose only attribute is a true `nil` becomes null.
 */
export function toJsonShape(element: XmlElement): unknown {
  if (isNil(element) && element.attributes.size === 1) return null;
  if (element.children.length === 0 && element.attributes.size === 0) return element.text;
  const members: [string, unknown][] = Array.from(element.attributes, ([name, value]) => [`@${name}`, value]);
  for (const child of element.children) members.push([child.name, toJsonShape(child)]);
  if (element.text !== '') members.push(['#text', element.text]);
  return toObject(members);
}

/** Builds an object from members; values with the same name become an array. */
function toObject(members: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const grouped = Map.groupBy(members, ([name]) => name);
  const toValue = (named: typeof members) => (named.length === 1 ? named[0]?.[1] : named.map(([, value]) => value));
  // fromEntries defines properties: one called __proto__ becomes a property, not the prototype.
  return Object.fromEntries(Array.from(grouped, ([name, named]) => [name, toValue(named)]));
}

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

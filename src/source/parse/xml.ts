// Parses XML into a tree of local names, attributes and text, and gives it the JSON shape: of a list, with the types of members.ts, so that
// one parser serves both. Stricter than fast-xml-parser: it rejects unclosed tags, a second root and a DOCTYPE.

import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { Trouble } from '../../domain/trouble.ts';
import { parseDate, toDateText } from './dates.ts';
import { applicationShape, envelopeShape, type MemberType, namesApplication, type ObjectShape } from './members.ts';
import { mostValues, refuse } from './values.ts';

/** An element with its local name; namespace and prefix are dropped. */
interface XmlElement {
  readonly name: string;
  /** By local name, without namespace declarations. Of several with one local name, those with a prefix keep it. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  /** Its own text and CDATA; empty for whitespace between elements. V8 keeps the whole document while this slice of it is referenced. */
  readonly text: string;
}

// A node as the parser returns it with preserveOrder: the first key is its name.
type OrderedNode = { readonly [name: string]: unknown };

/** The parser takes 40 bytes of memory for each character (measured: 2.4 GB for a text of 60 MB). A list is at most 3 MB. */
const longestXml = 4_000_000;

const attributesKey = ':@';
const textKey = '#text';
const guard = '$';
const noAttributes: ReadonlyMap<string, string> = new Map();
const entities = new Map(Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }));

const parser = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  textNodeName: textKey,
  parseTagValue: false,
  parseAttributeValue: false,
  trimValues: false,
  ignoreDeclaration: true,
  ignorePiTags: true,
  jPath: false,
  // The parser throws on these three names. No XML name starts with the guard, so it can be removed again.
  transformTagName: (name) => (/^(?:__proto__|constructor|prototype)\/?$/.test(name) ? guard + name : name),
  onDangerousProperty: (name) => name,
  entityDecoder: {
    // A DOCTYPE can define entity bombs and external references, and no answer of the source needs one.
    addInputEntities: () => refuse('has a DOCTYPE'),
    // The parser's own decoder silently drops &#0;, &#1; and lone surrogates (tested). This one keeps them, so that they are replaced and
    // noted as in JSON.
    decode: (text) =>
      text.includes('&') ? text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(\w+));/gi, toCharacter) : text,
    setExternalEntities: () => undefined,
    setXmlVersion: () => undefined,
    reset: () => undefined,
  },
});

/** Parses a complete, well-formed document; anything else throws Trouble malformed. */
export function parseXml(text: string): XmlElement {
  if (text.length > longestXml) refuse(`is longer than ${longestXml} characters, which only JSON may be`);
  // A value takes four characters at least, as in <a/>.
  if (text.length > 4 * mostValues && countValues(text) > mostValues) refuse(`has more than ${mostValues} values`);
  // The validator accepts <a/>text.
  if (!text.trimEnd().endsWith('>') || XMLValidator.validate(text) !== true) refuse('is not whole, valid XML');
  const roots = parseNodes(text).filter((node) => !(textKey in node));
  const root = roots[0];
  // The validator accepts <a/><b/>.
  if (root === undefined || roots.length > 1) refuse('has no root element, or more than one');
  return toElement(root);
}

/** True for an empty element with a true `nil` attribute, with any prefix. */
function isNil({ attributes, children, text }: XmlElement): boolean {
  return /^(?:true|1)$/.test(attributes.get('nil') ?? '') && children.length === 0 && text.trim() === '';
}

/** JSON form without a known shape: attributes as `@name`, text as `#text` or alone, repeated children as arrays, `nil` as null. */
export function toJsonShape(element: XmlElement): unknown {
  if (isNil(element) && element.attributes.size === 1) return null;
  if (element.children.length === 0 && element.attributes.size === 0) return element.text;
  const members: [string, unknown][] = Array.from(element.attributes, ([name, value]) => [`@${name}`, value]);
  for (const child of element.children) members.push([child.name, toJsonShape(child)]);
  if (element.text !== '') members.push([textKey, element.text]);
  return toObject(members);
}

/** Builds an object from members; values with the same name become an array. */
function toObject(members: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const grouped = Map.groupBy(members, ([name]) => name);
  const toValue = (named: typeof members) => (named.length === 1 ? named[0]?.[1] : named.map(([, value]) => value));
  // fromEntries defines properties: one called __proto__ becomes a property, not the prototype.
  return Object.fromEntries(Array.from(grouped, ([name, named]) => [name, toValue(named)]));
}

const texts = [['<![CDATA[', ']]>'] as const, ['<!--', '-->'] as const];

/** Counts tags and attributes; text that looks like them, in CDATA or a comment, does not count. */
function countValues(text: string): number {
  let values = 0;
  for (let at = text.indexOf('<'), to = 0; at >= 0; at = text.indexOf('<', to)) {
    const [, end = '>'] = texts.find(([start]) => text.startsWith(start, at)) ?? [];
    const found = text.indexOf(end, at);
    to = found < 0 ? text.length : found;
    if (end === '>' && text[at + 1] !== '/') values += text.slice(at, to).split('=').length;
  }
  return values;
}

function parseNodes(text: string): OrderedNode[] {
  try {
    return parser.parse(text) as OrderedNode[];
  } catch (error) {
    if (error instanceof Trouble) throw error;
    // The parser's message is dropped, since it may quote the document.
    return refuse('cannot be read as XML, or nests too deeply');
  }
}

// Recursion is bounded: the parser rejects more than 100 nested elements.
function toElement(node: OrderedNode): XmlElement {
  const name = Object.keys(node)[0] as string;
  const children: XmlElement[] = [];
  let text = '';
  for (const child of node[name] as OrderedNode[]) {
    if (textKey in child) text += String(child[textKey]);
    else children.push(toElement(child));
  }
  return {
    name: toLocalName(name.startsWith(guard) ? name.slice(guard.length) : name),
    attributes: attributesKey in node ? toAttributes(node[attributesKey] as Record<string, string>) : noAttributes,
    children,
    text: children.length > 0 && text.trim() === '' ? '' : text,
  };
}

// Prefixes are removed here because the parser's own option lets xsi:type overwrite type, or the reverse, depending on their order.
function toAttributes(written: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  const attributes = new Map<string, string>();
  const names = Object.keys(written).map((key) => key.slice(1));
  for (const name of names.sort((a, b) => Number(a.includes(':')) - Number(b.includes(':')))) {
    if (name === 'xmlns' || name.startsWith('xmlns:')) continue;
    const local = toLocalName(name);
    attributes.set(attributes.has(local) ? name : local, written[`@${name}`] ?? '');
  }
  return attributes;
}

function toLocalName(name: string): string {
  return name.slice(name.indexOf(':') + 1);
}

function toCharacter(reference: string, hex?: string, decimal?: string, name?: string): string {
  if (name !== undefined) return entities.get(name) ?? reference;
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  return code > 0x10ffff ? reference : String.fromCodePoint(code);
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

function toScalar(text: string, type: Extract<MemberType, string>): unknown {
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

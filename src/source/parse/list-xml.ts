// The list in XML to the JSON shape of the spec, typed by what we know of its members, so that one parser serves both.
// A text that is not of its member's type stays text: judging it is that parser's work.

import { Trouble } from '../../domain/trouble.ts';
import { parseDate, toDateText } from './dates.ts';
import { isNil, parseXml, toJsonShape, toObject, type XmlElement } from './xml.ts';

type ElementShape =
  | 'text'
  | 'integer'
  | 'boolean'
  | 'date'
  | { readonly list: ElementShape }
  | { readonly object: Shapes };
type Shapes = ReadonlyMap<string, ElementShape>;

const attachment = shapes({
  DateUploaded: 'date',
  HasVirus: 'boolean',
  Hash: 'text',
  Href: 'text',
  Size: 'integer',
  Type: 'text',
});

const jobSeekingInfo = shapes({
  JobTitle: 'text',
  CompanyName: 'text',
  TimeInRole: 'integer',
  IsNewToWorkForce: 'boolean',
});

const application = shapes({
  ID: 'integer',
  DateSubmitted: 'date',
  Email: 'text',
  FirstName: 'text',
  LastName: 'text',
  Phone: 'text',
  JobSeekerID: 'text',
  JobReference: 'text',
  Attachments: { list: { object: attachment } },
  PrimaryJobSeekingInfo: { object: jobSeekingInfo },
});

const list: ElementShape = { list: { object: application } };

const envelope = shapes({
  AdvertiserID: 'integer',
  AgentID: 'text',
  AfterID: 'text',
  BeforeID: 'text',
  AfterDate: 'date',
  BeforeDate: 'date',
  JobApplicationsList: list,
});

/** Reads a list document to the value that its JSON twin would have. */
export function parseListXml(text: string): unknown {
  const root = parseXml(text);
  const name = root.name.toLowerCase();
  if (name === 'jobapplications') return toShape(root, { object: envelope });
  if (name === 'jobapplicationslist' || name === 'arrayofjobapplication') return toShape(root, list);
  throw new Trouble('malformed', 'The answer is XML, but not a list of applications.');
}

function toShape(element: XmlElement, shape: ElementShape | undefined): unknown {
  if (isNil(element)) return null;
  if (shape === undefined) return toJsonShape(element);
  if (typeof shape === 'object')
    return 'list' in shape ? toList(element, shape.list) : toMembers(element, shape.object);
  // Elements where a scalar was to be: kept as they are, the parser will note it.
  return element.children.length > 0 ? toJsonShape(element) : toScalar(element.text, shape);
}

function toList(element: XmlElement, shape: ElementShape): unknown[] {
  const values = element.children.map((child) => toShape(child, shape));
  return element.text.trim() === '' ? values : [...values, element.text];
}

function toMembers(element: XmlElement, known: Shapes): unknown {
  if (element.children.length === 0 && element.text.trim() !== '') return element.text;
  return toObject(element.children.map((child) => [child.name, toShape(child, known.get(child.name.toLowerCase()))]));
}

function toScalar(text: string, shape: 'text' | 'integer' | 'boolean' | 'date'): unknown {
  const word = text.trim();
  if (shape === 'text') return text;
  if (word === '') return null;
  if (shape === 'boolean') return word === 'true' ? true : word === 'false' ? false : text;
  if (shape === 'integer') {
    if (!/^(?:0|-?[1-9]\d{0,39})$/.test(word)) return text;
    return Number.isSafeInteger(Number(word)) ? Number(word) : JSON.rawJSON(word);
  }
  const { at, offset, problem } = parseDate(word);
  return at === null || problem !== null ? text : toDateText(at, offset);
}

function shapes(byName: Readonly<Record<string, ElementShape>>): Shapes {
  return new Map(Object.entries(byName).map(([name, shape]) => [name.toLowerCase(), shape]));
}

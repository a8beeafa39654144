// Renders wire values as escaped XML elements; namespaces, prefixes, null and order are the account's choices.

import type { Choices } from '../behaviour/choices.ts';
import { renderOffset, toWallClock } from './dates.ts';
import { renderMsDate, toOffsetMinutes } from './render-json.ts';
import type { Member, Wire } from './wire.ts';

/** One element with everything inside it. */
export function renderXml(name: string, value: Wire, choices: Choices): string {
  if (value === null) return renderNull(name, choices);
  const tag = toTag(name, choices);
  return `<${tag}>${renderContent(value, choices)}</${tag}>`;
}

/** The members in the account's order. */
export function toXmlOrder(members: readonly Member[], choices: Choices): readonly Member[] {
  if (choices.xmlOrder === 'reversed') return members.toReversed();
  return choices.xmlOrder === 'sorted' ? members.toSorted(([a], [b]) => (a < b ? -1 : 1)) : members;
}

/** An element's name with the account's prefix. */
export function toTag(name: string, choices: Choices): string {
  return choices.xmlNamespace === 'prefixed' ? `a:${name}` : name;
}

/** The namespace declarations of the root element. */
export function renderNamespaces(choices: Choices): string {
  const instance = `xmlns:${choices.xmlNull === 'xsiNil' ? 'xsi' : 'i'}="http://www.w3.org/2001/XMLSchema-instance"`;
  const own = 'http://schemas.example.com/advertiser/applications';
  if (choices.xmlNamespace === 'default') return ` xmlns="${own}" ${instance}`;
  return choices.xmlNamespace === 'prefixed' ? ` xmlns:a="${own}" ${instance}` : ` ${instance}`;
}

/** Escapes text for an element or a quoted attribute; characters that XML 1.0 cannot contain become U+FFFD. */
export function escapeXml(text: string): string {
  if (!unsafe.test(text)) return text;
  return text
    .toWellFormed()
    .replace(unsafeAll, (character) => entities[character] ?? (isXmlCharacter(character) ? character : '\uFFFD'));
}

function isXmlCharacter(character: string): boolean {
  return character >= ' ' && character < '\uFFFE';
}

const unsafe = /[&<>"\p{Cc}\p{Cs}\uFFFE\uFFFF]/u;
const unsafeAll = /[&<>"\r\n\t]|[\p{Cc}\p{Cs}\uFFFE\uFFFF]/gu;
const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\r': '&#xD;',
  '\n': '&#xA;',
  '\t': '&#x9;',
};

function renderContent(value: Exclude<Wire, null>, choices: Choices): string {
  if (typeof value === 'string') return escapeXml(value);
  if (typeof value !== 'object') return String(value);
  if ('xml' in value) return value.xml;
  if ('moment' in value) return renderXmlMoment(value.moment, choices);
  if ('members' in value) {
    return toXmlOrder(value.members, choices)
      .map(([name, member]) => renderXml(name, member, choices))
      .join('');
  }
  return Array.from(value.list, (element) => renderXml(value.of, element, choices)).join('');
}

function renderXmlMoment(at: number, choices: Choices): string {
  const offsetMinutes = toOffsetMinutes(at, choices);
  if (choices.xmlDates === 'milliseconds') return renderMsDate(at, offsetMinutes, choices);
  const zone = choices.dateOffset === 'absent' ? '' : renderOffset(offsetMinutes, ':');
  return `${toWallClock(at, offsetMinutes)}${zone}`;
}

function renderNull(name: string, choices: Choices): string {
  const tag = toTag(name, choices);
  switch (choices.xmlNull) {
    case 'absent':
      return '';
    case 'emptyElement':
      return `<${tag}/>`;
    case 'xsiNil':
      return `<${tag} xsi:nil="true"/>`;
    default:
      return `<${tag} i:nil="true"/>`;
  }
}

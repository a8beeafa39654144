// Renders wire values as JSON. Ids keep all their digits.

import type { Choices } from '../behaviour/choices.ts';
import { renderOffset, toWallClock, zoneOffsetMinutes } from './dates.ts';
import type { Wire } from './wire.ts';

/** The JSON of one value, including its lists. */
export function renderJson(value: Wire, choices: Choices): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object') return String(value);
  if ('json' in value) return value.json;
  if ('moment' in value) return renderJsonMoment(value.moment, choices);
  if ('members' in value) {
    const members = value.members.map(
      ([name, member]) => `${JSON.stringify(toKey(name, choices))}:${renderJson(member, choices)}`,
    );
    return `{${members.join(',')}}`;
  }
  const elements = Array.from(value.list, (element) => renderJson(element, choices));
  return choices.single === 'object' && elements.length === 1 ? (elements[0] as string) : `[${elements.join(',')}]`;
}

/** A member's name in the letter case of the account. */
export function toKey(name: string, choices: Choices): string {
  if (choices.keyCase === 'pascal' || name.startsWith('__')) return name;
  if (choices.keyCase === 'camel')
    return name.replace(/^[A-Z]+(?=[A-Z][a-z]|$)|^[A-Z]/, (start) => start.toLowerCase());
  return choices.keyCase === 'lower' ? name.toLowerCase() : name.toUpperCase();
}

/** Spec: datetime values in JSON are `/Date(ms+hhmm)/`. */
function renderJsonMoment(at: number, choices: Choices): string {
  const offsetMinutes = toOffsetMinutes(at, choices);
  const shown = choices.dateShift === 'shifted' ? at + offsetMinutes * 60_000 : at;
  switch (choices.dateShape) {
    case 'iso':
      return `"${toWallClock(at, offsetMinutes)}${renderOffset(offsetMinutes, ':')}"`;
    case 'isoWithoutZone':
      return `"${toWallClock(at, offsetMinutes)}"`;
    case 'isoSevenDigits':
      return `"${toWallClock(at, offsetMinutes)}0000${renderOffset(offsetMinutes, ':')}"`;
    case 'escapedSlashes':
      return `"\\/Date(${shown}${renderMsOffset(offsetMinutes, choices)})\\/"`;
    default:
      return `"${renderMsDate(shown, offsetMinutes, choices)}"`;
  }
}

/** `/Date(ms+hhmm)/`, with the offset as the account writes it. */
export function renderMsDate(at: number, offsetMinutes: number, choices: Choices): string {
  return `/Date(${at}${renderMsOffset(offsetMinutes, choices)})/`;
}

/** The offset, in minutes, that the account writes with an instant. */
export function toOffsetMinutes(at: number, choices: Choices): number {
  switch (choices.dateOffset) {
    case 'melbourne':
    case 'utc':
      return zoneOffsetMinutes(at, choices.dateOffset);
    case 'odd':
      return -210;
    default:
      return zoneOffsetMinutes(at, 'standard');
  }
}

function renderMsOffset(offsetMinutes: number, choices: Choices): string {
  if (choices.dateOffset === 'absent') return '';
  if (choices.dateOffset === 'impossible') return '+9900';
  return renderOffset(offsetMinutes, choices.dateOffset === 'colon' ? ':' : '');
}

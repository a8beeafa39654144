// Parses arguments the same way for every command: ids, kinds, counts, times. A wrong value throws Misuse before anything starts.

import { attachmentKinds } from '../domain/application.ts';
import { lastPosition } from '../domain/coverage/position.ts';
import { Misuse } from './failure.ts';

/** Parses an application id. `what` is the subject of the error message. */
export function toId(text: string, what = 'An application id'): bigint {
  const id = /^\d{1,19}$/.test(text) ? BigInt(text) : null;
  if (id === null || id > lastPosition) throw new Misuse(`${what} must be a whole number up to ${lastPosition}.`);
  return id;
}

export function toKind(text: string): string {
  const kind = attachmentKinds.find((known) => known.toLowerCase() === text.toLowerCase());
  if (kind === undefined) throw new Misuse(`The kind must be one of ${attachmentKinds.join(', ')}.`);
  return kind;
}

export function toCount(option: string, text: string, most = 999_999_999): number {
  if (/^\d{1,9}$/.test(text) && Number(text) <= most) return Number(text);
  throw new Misuse(`${option} must be a whole number from 0 to ${most}, not "${text.slice(0, 40)}".`);
}

/** Parses a time. A day alone stands for its first or last second at +10:00, the source's standard time. */
export function toSeconds(option: string, text: string, edge: 'start' | 'end'): bigint {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text);
  const hasZone = /^\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$/.test(text);
  const at = Date.parse(isDay ? `${text}T${edge === 'start' ? '00:00:00' : '23:59:59'}+10:00` : text);
  // Date.parse turns 30 February into a day of March.
  const day = text.slice(0, 10);
  const isOnCalendar = new Date(Date.parse(day) || 0).toISOString().startsWith(day);
  if (Number.isNaN(at) || !isOnCalendar || !(isDay || hasZone)) {
    throw new Misuse(`${option} must be a day (2026-07-01) or a time with its zone (2026-07-01T09:00:00+10:00).`);
  }
  return BigInt(Math.floor(at / 1_000));
}

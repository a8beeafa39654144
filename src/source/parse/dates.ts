// Parses the source's dates, `/Date(ms+hhmm)/` and ISO text, into instants. In `/Date()/` the milliseconds are the instant and the offset
// is for display only. Does not compare with the clock: a future date is valid.

/** The problem of a date in year 1, which means "no date". */
export const noDate = 'lies in year 1 or before, which stands for no date';

const slashDate = /^\\?\/Date\((-?\d{1,20})([+-]\d\d:?\d\d)?\)\\?\/$/i;
const isoDate = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?:(:\d\d)(?:[.,](\d{1,12}))?)?\s?(Z|[+-]\d\d:?\d\d)?)?$/i;

// Years 2 to 9999: year 1 usually means "no date", and every database and format supports these years.
const earliestMs = Date.parse('0002-01-01T00:00:00Z');
const latestMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const standardOffsetMs = 10 * 3_600_000;

/**
 * Parses a date member. `at`: milliseconds since the epoch; null when there is no usable date. `offset`: as written, in the form `+11:00`; null
 * when there is none, or `Z`. `problem`: why an invalid date could not be kept unchanged; null for an absent or null member.
 */
export function parseDate(value: unknown) {
  if (value === null || value === undefined) return broken(null);
  if (typeof value !== 'string') return broken('is not a date text');
  const text = value.trim();
  const slash = slashDate.exec(text);
  if (slash) return bounded(Number(slash[1]), slash[2], null);
  const iso = isoDate.exec(text);
  return iso ? parseIso(iso) : broken('is not a date');
}

export function toDateText(at: number, offset: string | null): string {
  return `/Date(${at}${offset === null ? '' : offset.replace(':', '')})/`;
}

/** A date as a list filter, in +10:00: the text has no zone, so callers add a margin. No application lies beyond the supported years. */
export function toFilterDate(at: number): string {
  const wallMs = Math.min(latestMs, Math.max(earliestMs, at + standardOffsetMs));
  return new Date(wallMs).toISOString().slice(0, 19);
}

function parseIso([, day = '', minute = '00:00', second = ':00', fraction = '', zone]: RegExpExecArray) {
  const wallMs = Date.parse(`${day}T${minute}${second}.${fraction.padEnd(3, '0').slice(0, 3)}Z`);
  // Date.parse turns 31 April into 1 May, and 24:00 into the next day: a date that changes is invalid.
  if (Number.isNaN(wallMs) || !new Date(wallMs).toISOString().startsWith(day)) return broken('is not a date');
  // Spec: DateSubmitted is in Australian Eastern Standard time. Spec silent: text without a zone.
  if (zone === undefined) return bounded(wallMs - standardOffsetMs, undefined, 'has no zone, read as +10:00');
  // Z is treated like no offset, since JSON serializers write a UTC date without one.
  if (zone.toUpperCase() === 'Z') return bounded(wallMs, undefined, null);
  const offsetMs = toOffsetMs(zone);
  return offsetMs === null ? broken('has an impossible offset') : bounded(wallMs - offsetMs, zone, null);
}

function bounded(at: number, zone: string | undefined, problem: string | null) {
  if (at < earliestMs) return broken(noDate);
  if (at > latestMs) return broken('lies after year 9999');
  if (zone === undefined) return { at, offset: null, problem };
  if (toOffsetMs(zone) === null) return { at, offset: null, problem: 'has an impossible offset' };
  return { at, offset: zone.includes(':') ? zone : `${zone.slice(0, 3)}:${zone.slice(3)}`, problem };
}

function toOffsetMs(zone: string): number | null {
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(-2));
  if (hours > 14 || minutes > 59) return null;
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

function broken(problem: string | null) {
  return { at: null, offset: null, problem };
}

// The source's moments: `/Date(ms+hhmm)/`, ISO text and what else was seen in their place, read to an instant.
// The milliseconds are the instant, an offset is only how the source shows it. Knows no clock: a future date is a date.

/** A moment as the source wrote it; `problem` says why it could not be kept as it came, else null. */
export interface SourceDate {
  /** Milliseconds since the epoch, null when there is no usable moment. */
  readonly at: number | null;
  /** The offset written beside it, as `+11:00`; null when none (or `Z`) was written. */
  readonly offset: string | null;
  readonly problem: string | null;
}

/** The problem of a moment in year 1, which stands for no date. */
export const noDate = 'lies in year 1 or before, which stands for no date';

const slashDate = /^\\?\/Date\((-?\d{1,20})([+-]\d\d:?\d\d)?\)\\?\/$/i;
const isoDate = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,12}))?)?\s?(Z|[+-]\d\d:?\d\d)?)?$/i;

// Years 2 to 9999: year 1 is the usual stand-in for "no date", and within these bounds every store and format agrees.
const earliestMs = Date.parse('0002-01-01T00:00:00Z');
const latestMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const standardOffsetMs = 10 * 3_600_000;
const none: SourceDate = { at: null, offset: null, problem: null };

/** Reads a date member; null and absent are no problem, anything unreadable is. */
export function parseDate(value: unknown): SourceDate {
  if (value === null || value === undefined) return none;
  if (typeof value !== 'string') return broken('is not a date text');
  const text = value.trim();
  const slash = slashDate.exec(text);
  if (slash) return bounded(Number(slash[1]), slash[2], null);
  const iso = isoDate.exec(text);
  return iso ? parseIso(iso) : broken('is not a date');
}

/** The JSON form of a moment, as the spec draws it. */
export function toDateText(at: number, offset: string | null): string {
  return `/Date(${at}${offset === null ? '' : offset.replace(':', '')})/`;
}

/**
 * A moment as a list filter: the text has no zone, so it is written in fixed +10:00; callers leave room for other interpretations. That room
 * may reach into years that have no such text: nothing lies there.
 */
export function toFilterDate(at: number): string {
  const wallMs = Math.min(latestMs, Math.max(earliestMs, at + standardOffsetMs));
  return new Date(wallMs).toISOString().slice(0, 19);
}

function parseIso(parts: RegExpExecArray): SourceDate {
  const part = (group: number): number => Number(parts[group] ?? 0);
  const [month, day] = [part(2), part(3)];
  const [hour, minute, second] = [part(4), part(5), part(6)];
  const wall = new Date(0);
  wall.setUTCFullYear(part(1), month - 1, day);
  // setUTCFullYear rolls 31 April over into May: what rolled over was no date.
  if (wall.getUTCMonth() !== month - 1 || wall.getUTCDate() !== day) return broken('is not a date');
  if (hour > 23 || minute > 59 || second > 59) return broken('is not a time of day');
  const millisecond = Number((parts[7] ?? '').padEnd(3, '0').slice(0, 3));
  const wallMs = wall.getTime() + ((hour * 60 + minute) * 60 + second) * 1000 + millisecond;
  const zone = parts[8];
  if (zone === undefined) {
    // Spec: DateSubmitted is in Australian Eastern Standard time. Spec silent: text without a zone.
    return bounded(wallMs - standardOffsetMs, undefined, 'has no zone, read as +10:00');
  }
  // Z names an instant and no way to show it: JSON writers give such a moment no offset at all.
  if (zone.toUpperCase() === 'Z') return bounded(wallMs, undefined, null);
  const offsetMs = toOffsetMs(zone);
  return offsetMs === null ? broken('has an impossible offset') : bounded(wallMs - offsetMs, zone, null);
}

function bounded(at: number, zone: string | undefined, problem: string | null): SourceDate {
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

function broken(problem: string): SourceDate {
  return { at: null, offset: null, problem };
}

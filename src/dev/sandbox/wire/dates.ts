// Converts instants to text and back, in the ways that a server in eastern Australia might use.
// Does not know applications; a choice decides which way is used.

export type Zone = 'standard' | 'melbourne' | 'utc';

const minuteMs = 60_000;

/** Minutes that this zone is ahead of UTC at an instant. */
export function zoneOffsetMinutes(at: number, zone: Zone): number {
  if (zone === 'utc') return 0;
  return zone === 'melbourne' && isDaylightSaving(at) ? 660 : 600;
}

/** Parses `YYYY-MM-DDTHH:MM:SS` in a zone; null when the text is invalid. */
export function readLocal(text: string, zone: Zone): number | null {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(text)) return null;
  const asUtc = Date.parse(`${text}Z`);
  // Date.parse turns 30 February into 1 or 2 March; the sandbox rejects it.
  if (Number.isNaN(asUtc) || new Date(asUtc).toISOString().slice(0, 19) !== text) return null;
  if (zone === 'utc') return asUtc;
  const summer = asUtc - 660 * minuteMs;
  // In the hour that occurs twice, this takes the first one; in the hour that is skipped, it uses the old offset.
  return zone === 'melbourne' && isDaylightSaving(summer) ? summer : asUtc - 600 * minuteMs;
}

/** The wall clock of an offset, `YYYY-MM-DDTHH:MM:SS.mmm`. */
export function toWallClock(at: number, offsetMinutes: number): string {
  return new Date(at + offsetMinutes * minuteMs).toISOString().slice(0, -1);
}

/** `+1000`, or `+10:00` with a colon. */
export function renderOffset(offsetMinutes: number, colon = ''): string {
  const size = Math.abs(offsetMinutes);
  const hours = String(Math.floor(size / 60)).padStart(2, '0');
  return `${offsetMinutes < 0 ? '-' : '+'}${hours}${colon}${String(size % 60).padStart(2, '0')}`;
}

/** Victoria's rule since 2008: from the first Sunday of October, 2:00, to the first Sunday of April, 3:00 summer time. */
function isDaylightSaving(at: number): boolean {
  const year = new Date(at).getUTCFullYear();
  return at < firstSunday(year, 3) - 8 * 60 * minuteMs || at >= firstSunday(year, 9) - 8 * 60 * minuteMs;
}

/** Midnight UTC of the first Sunday; both changes happen at 16:00 UTC the day before. */
function firstSunday(year: number, month: number): number {
  const first = new Date(Date.UTC(year, month, 1));
  return Date.UTC(year, month, 1 + ((7 - first.getUTCDay()) % 7));
}

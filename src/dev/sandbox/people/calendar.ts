// When people apply: mostly in the evening and on Mondays. Turns "the ith of n" into a time that rises with i.
// Does not know applications.

/** The times of n applications over the weeks before an end, rising, in the weekly rhythm of eastern Australia. */
export function* spreadOverWeeks(
  count: number,
  { weeks, endsAt }: { readonly weeks: number; readonly endsAt: number },
  jitter: (ordinal: number) => number,
): Generator<number> {
  const from = toWeight(endsAt - weeks * weekMs);
  const span = toWeight(endsAt) - from;
  for (let ordinal = 0; ordinal < count; ordinal += 1) {
    yield Math.floor(toMoment(from + (span * (ordinal + jitter(ordinal))) / count));
  }
}

const hourMs = 3_600_000;
const weekMs = 7 * 24 * hourMs;
// A Monday, 0:00 at +10:00.
const origin = Date.UTC(2024, 0, 1) - 10 * hourMs;

// Weights of the hours of a day and of the days of a week, Monday first: quiet nights, lunch breaks, busy evenings, slow weekends.
const byHour = [2, 1, 1, 1, 1, 2, 5, 9, 12, 14, 15, 15, 18, 15, 13, 12, 12, 12, 14, 18, 20, 18, 11, 5];
const byDay = [12, 11, 11, 10, 8, 5, 8];
const cumulative = [0];
for (const day of byDay) {
  for (const hour of byHour) cumulative.push((cumulative.at(-1) as number) + day * hour);
}
const weekWeight = cumulative.at(-1) as number;

function toWeight(at: number): number {
  const week = Math.floor((at - origin) / weekMs);
  const hours = (at - origin - week * weekMs) / hourMs;
  const hour = Math.floor(hours);
  const start = cumulative[hour] as number;
  return week * weekWeight + start + (hours - hour) * ((cumulative[hour + 1] as number) - start);
}

function toMoment(weight: number): number {
  const week = Math.floor(weight / weekWeight);
  const rest = weight - week * weekWeight;
  const hour = cumulative.findIndex((start) => start > rest) - 1;
  const start = cumulative[hour] as number;
  const share = (rest - start) / ((cumulative[hour + 1] as number) - start);
  return origin + week * weekMs + (hour + share) * hourMs;
}

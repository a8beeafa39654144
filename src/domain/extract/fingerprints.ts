// Finds the applications in which a copy differs from Intake, by fingerprints of ranges of ids. A fingerprint is the sum of a hash of every
// application in a range, so it depends on no order, and any engine with md5 computes it. Three steps narrow down from 65,536 ids to 256
// and to one, whatever the number of applications. Knows no database.

/** The width of the ranges of each step. */
export const widths = [65_536n, 256n, 1n] as const;
export type Step = 1 | 2 | 3;

export interface Fingerprint {
  readonly advertiserId: bigint;
  readonly fromId: bigint;
  readonly width: bigint;
  readonly applications: bigint;
  /** Digits. */
  readonly fingerprint: string;
}

/** What the copy answered: the step, and the fingerprint of every range of its width that is not empty. */
export interface CopyAnswer {
  readonly step: Step;
  /** The ranges that were asked about; null: all ids. */
  readonly asked: readonly Range[] | null;
  readonly ranges: readonly Fingerprint[];
}

export interface Range {
  readonly advertiserId: bigint;
  readonly fromId: bigint;
  readonly width: bigint;
}

export interface Difference extends Range {
  /** How many applications Intake has in the range, and how many the copy has. */
  readonly intake: bigint;
  readonly copy: bigint;
}

const toKey = ({ advertiserId, fromId, width }: Range) => `${advertiserId} ${fromId} ${width}`;

/** The ranges in which the two sides differ. */
export function findDifferences(own: readonly Fingerprint[], copy: readonly Fingerprint[]): Difference[] {
  const [ours, theirs] = [own, copy].map((ranges) => new Map(ranges.map((range) => [toKey(range), range])));
  const all = new Map([...(theirs ?? []), ...(ours ?? [])]);
  return [...all]
    .filter(([key]) => {
      const [one, other] = [ours?.get(key), theirs?.get(key)];
      return one?.applications !== other?.applications || one?.fingerprint !== other?.fingerprint;
    })
    .map(([key, { advertiserId, fromId, width }]) => {
      const [intake, there] = [ours?.get(key)?.applications ?? 0n, theirs?.get(key)?.applications ?? 0n];
      return { advertiserId, fromId, width, intake, copy: there };
    })
    .sort((a, b) => Number(a.advertiserId - b.advertiserId) || Number(a.fromId - b.fromId));
}

/** The rows of a copy's answer: JSON (a list or lines), or CSV with a header. Null if it is neither. */
export function parseAnswer(text: string): CopyAnswer | null {
  const rows = parseRows(text.trim());
  const read = rows?.map(toRow);
  if (!read || read.includes(null)) return null;
  const ranges = read.filter((row) => row !== null);
  const step = ranges[0]?.step ?? 1;
  if (ranges.some((one) => one.step !== step)) return null;
  const width = widths[step - 1];
  const asked = ranges.filter((range) => range.width !== width);
  return { step, asked: step === 1 ? null : asked, ranges: ranges.filter((range) => range.width === width) };
}

type Cells = Readonly<Record<string, unknown>>;

function parseRows(text: string): readonly Cells[] | null {
  try {
    if (text.startsWith('[')) return JSON.parse(text) as Cells[];
    const lines = text.split(/\r?\n/).filter((line) => line !== '');
    if (text.startsWith('{')) return lines.map((line) => JSON.parse(line) as Cells);
    const [header = '', ...rest] = lines.map((line) => line.replaceAll('"', ''));
    const names = header.split(',').map((name) => name.trim());
    // An engine's error message is no empty copy.
    if (text !== '' && !/,fingerprint/i.test(header)) return null;
    return rest.map((line) => Object.fromEntries(line.split(',').map((cell, at) => [names[at] ?? '', cell.trim()])));
  } catch {
    return null;
  }
}

function toRow(cells: Cells | null): (Fingerprint & { readonly step: Step }) | null {
  // Engines differ in the case of names.
  const lower = Object.fromEntries(Object.entries(cells ?? {}).map(([name, value]) => [name.toLowerCase(), value]));
  const names = ['step', 'width', 'advertiser_id', 'from_id', 'applications', 'fingerprint'];
  const texts = names.map((name) => String(lower[name] ?? ''));
  if (!texts.every((text) => /^\d+$/.test(text))) return null;
  const [step = '', width = '', advertiserId = '', fromId = '', applications = '', fingerprint = ''] = texts;
  if (step !== '1' && step !== '2' && step !== '3') return null;
  return {
    step: Number(step) as Step,
    ...{ width: BigInt(width), advertiserId: BigInt(advertiserId), fromId: BigInt(fromId) },
    ...{ applications: BigInt(applications), fingerprint: fingerprint.replace(/^0+(?=\d)/, '') },
  };
}

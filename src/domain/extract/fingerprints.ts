// Finds the applications in which a copy differs from Intake, by fingerprints of ranges of ids. A fingerprint is the sum of a hash of every
// application in a range, so it depends on no order, and any engine with md5 computes it. Three steps narrow down from 65,536 ids to 256
// and to one, whatever the number of applications.

/** The width of the ranges of each step. */
const widths = [65_536n, 256n, 1n] as const;
export type Step = 1 | 2 | 3;

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

export interface Fingerprint extends Range {
  readonly applications: bigint;
  /** Digits. */
  readonly fingerprint: string;
}

export interface Difference extends Range {
  /** How many applications Intake has in the range, and how many the copy has. */
  readonly intake: bigint;
  readonly copy: bigint;
}

const toKey = ({ advertiserId, fromId, width }: Range) => `${advertiserId} ${fromId} ${width}`;

/** The ranges in which the two sides differ. */
export function findDifferences(own: readonly Fingerprint[], copy: readonly Fingerprint[]): Difference[] {
  const byKey = (ranges: readonly Fingerprint[]) => new Map(ranges.map((range) => [toKey(range), range]));
  const [ours, theirs] = [byKey(own), byKey(copy)];
  const differences = [...new Map([...theirs, ...ours])].flatMap(([key, { advertiserId, fromId, width }]) => {
    const [one, other] = [ours.get(key), theirs.get(key)];
    if (one?.applications === other?.applications && one?.fingerprint === other?.fingerprint) return [];
    return { advertiserId, fromId, width, intake: one?.applications ?? 0n, copy: other?.applications ?? 0n };
  });
  return differences.sort((a, b) => Number(a.advertiserId - b.advertiserId) || Number(a.fromId - b.fromId));
}

/** The rows of a copy's answer, CSV with a header; null if it is something else. */
export function parseAnswer(text: string): CopyAnswer | null {
  const [header = '', ...lines] = text.replaceAll(/["\r]/g, '').trim().split('\n');
  // Engines differ in the case of names. An engine's error message is no empty copy.
  const names = header.split(',').map((name) => name.trim().toLowerCase());
  if (header !== '' && !names.includes('fingerprint')) return null;
  const read = lines.filter(Boolean).map((line) => {
    const cells = line.split(',').map((cell) => cell.trim());
    return toRow(Object.fromEntries(names.map((name, at) => [name, cells[at] ?? ''])));
  });
  const ranges = read.filter((row) => row !== null);
  const step = ranges[0]?.step ?? 1;
  if (ranges.length < read.length || ranges.some((one) => one.step !== step)) return null;
  const width = widths[step - 1];
  const asked = ranges.filter((range) => range.width !== width);
  return { step, asked: step === 1 ? null : asked, ranges: ranges.filter((range) => range.width === width) };
}

function toRow(cells: Readonly<Record<string, string>>): (Fingerprint & { readonly step: Step }) | null {
  const names = ['step', 'width', 'advertiser_id', 'from_id', 'applications', 'fingerprint'];
  const texts = names.map((name) => cells[name] ?? '');
  if (!texts.every((text) => /^\d+$/.test(text))) return null;
  const [step = '', width = '', advertiserId = '', fromId = '', applications = '', fingerprint = ''] = texts;
  if (step !== '1' && step !== '2' && step !== '3') return null;
  return {
    step: Number(step) as Step,
    ...{ width: BigInt(width), advertiserId: BigInt(advertiserId), fromId: BigInt(fromId) },
    ...{ applications: BigInt(applications), fingerprint: fingerprint.replace(/^0+(?=\d)/, '') },
  };
}

/** How an engine writes the microseconds of a time, the first 15 hex digits of md5 as a number, a text, and a number that holds the sum. */
const dialects = {
  duckdb: ['epoch_us(?)', "CAST('0x' || substr(md5(?), 1, 15) AS BIGINT)", 'VARCHAR', 'HUGEINT'],
  postgres: [
    'floor(extract(epoch FROM ?) * 1000000)::bigint',
    "('x' || substr(md5(?), 1, 15))::bit(60)::bigint",
    'text',
    'numeric',
  ],
  spark: ['unix_micros(?)', 'CAST(conv(substr(md5(?), 1, 15), 16, 10) AS BIGINT)', 'STRING', 'DECIMAL(38, 0)'],
  snowflake: [
    'date_part(epoch_microsecond, ?)',
    "to_number(substr(md5(?), 1, 15), 'XXXXXXXXXXXXXXX')",
    'VARCHAR',
    'NUMBER(38, 0)',
  ],
} as const;

export type Engine = keyof typeof dialects;
export const engines = Object.keys(dialects) as Engine[];

/**
 * The statement that computes the fingerprints of a step over `table`. From the second step on it asks about the ranges that differ, and
 * tells also which are empty. It hashes the same text as the view intake_analytics.fingerprints. Every number is returned as text: a sum
 * exceeds 2^53, and JSON would round it.
 */
export function renderFingerprintSql(engine: Engine, table: string, step: Step, asked: readonly Range[]): string {
  const [micros, hash, text, sum] = dialects[engine];
  const width = widths[step - 1] ?? 1n;
  const toText = (value: string) => `CAST(${value} AS ${text})`;
  const times = ['submitted_at', 'changed_at'].map((column) => toText(micros.replace('?', column)));
  const parts = [...times, 'screening_outcome', 'job_reference'].map((value) => `coalesce(${value}, '')`);
  const hashed = hash.replace('?', [toText('application_id'), ...parts].join(" || '|' || "));
  const ofAll = `hashed AS (SELECT advertiser_id, application_id, CAST(${hashed} AS ${sum}) AS hash FROM ${table})`;
  const start = width === 1n ? 'c.application_id' : `c.application_id - mod(c.application_id, ${width})`;
  const row = (wide: bigint, from: string) =>
    `SELECT '${step}' AS step, '${wide}' AS width, ${toText('advertiser_id')} AS advertiser_id, ${toText(from)} AS from_id,
  ${toText('count(hash)')} AS applications, ${toText('coalesce(sum(hash), 0)')} AS fingerprint`;
  if (step === 1) {
    return `WITH ${ofAll},
ranges AS (SELECT c.advertiser_id, ${start} AS from_id, c.hash FROM hashed c)
${row(width, 'from_id')}
FROM ranges GROUP BY advertiser_id, from_id;
`;
  }
  const wider = widths[step - 2] ?? 1n;
  const list = asked.map(({ advertiserId, fromId }) => `SELECT ${advertiserId} AS advertiser_id, ${fromId} AS from_id`);
  return `WITH asked AS (
  ${list.join('\n  UNION ALL ')}
),
${ofAll},
found AS (
  SELECT a.advertiser_id, a.from_id AS asked_id, c.application_id, c.hash FROM asked a
  LEFT JOIN hashed c ON c.advertiser_id = a.advertiser_id AND c.application_id BETWEEN a.from_id AND a.from_id + ${wider - 1n}
)
${row(wider, 'asked_id')}
FROM found GROUP BY advertiser_id, asked_id
UNION ALL
${row(width, 'from_id')}
FROM (SELECT c.advertiser_id, ${start} AS from_id, c.hash FROM found c WHERE c.application_id IS NOT NULL) ranges
GROUP BY advertiser_id, from_id;
`;
}

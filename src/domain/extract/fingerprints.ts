// Finds the applications in which a copy differs from Intake, by fingerprints of ranges of ids. A fingerprint is the sum of a hash of every
// application in a range, so it depends on no order, and any engine with md5 computes it. Three steps narrow down from 65,536 ids to 256
// and to one, whatever the number of applications.

/** The width of the ranges of each step. */
const widths = [65_536n, 256n, 1n] as const;
export type Step = 1 | 2 | 3;

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

const columns = ['step', 'width', 'advertiser_id', 'from_id', 'applications', 'fingerprint'];

export type CopyAnswer = NonNullable<ReturnType<typeof parseAnswer>>;

/**
 * What the copy answered, CSV with a header: the step, the ranges that were asked about (null: all ids), and the fingerprint of every range of
 * the step's width that is not empty. Null if it is something else.
 */
export function parseAnswer(text: string) {
  const plain = text.replaceAll(/["\r ]/g, '').trim();
  const [header = [], ...rows] = plain.split(/\n+/).map((line) => line.split(','));
  // Engines differ in the case of names. An engine's error message is no empty copy.
  const places = columns.map((column) => header.findIndex((name) => name.toLowerCase() === column));
  if (plain !== '' && places.includes(-1)) return null;
  const cells = rows.map((row) => places.map((place) => row[place] ?? ''));
  if (!cells.flat().every((cell) => /^\d+$/.test(cell))) return null;
  const read = cells.map((row) => {
    const [step, width = 0n, advertiserId = 0n, fromId = 0n, applications = 0n, sum] = row.map(BigInt);
    return { step: Number(step), width, advertiserId, fromId, applications, fingerprint: String(sum) };
  });
  const step = read[0]?.step ?? 1;
  const width = widths[step - 1];
  if (width === undefined || read.some((one) => one.step !== step)) return null;
  const asked = step === 1 ? null : read.filter((range) => range.width !== width);
  return { step: step as Step, asked, ranges: read.filter((range) => range.width === width) };
}

/** How an engine writes the microseconds of a time, hex digits as a number, a text, and a number that holds the sum. */
const dialects = {
  duckdb: ['epoch_us(?)', "CAST('0x' || ? AS BIGINT)", 'VARCHAR', 'HUGEINT'],
  postgres: ['floor(extract(epoch FROM ?) * 1000000)::bigint', "('x' || ?)::bit(60)::bigint", 'text', 'numeric'],
  spark: ['unix_micros(?)', 'CAST(conv(?, 16, 10) AS BIGINT)', 'STRING', 'DECIMAL(38, 0)'],
  snowflake: ['date_part(epoch_microsecond, ?)', "to_number(?, 'XXXXXXXXXXXXXXX')", 'VARCHAR', 'NUMBER(38, 0)'],
} as const;

export type Engine = keyof typeof dialects;
export const engines = Object.keys(dialects) as Engine[];

/**
 * The statement that computes the fingerprints of a step over `table`. From the second step on it asks about the ranges that differ, and
 * tells also which are empty. It hashes the same text as the view intake_analytics.fingerprints. Every number is returned as text: a sum
 * exceeds 2^53, and JSON would round it.
 */
export function renderFingerprintSql(engine: Engine, table: string, step: Step, asked: readonly Range[]): string {
  const [micros, number, text, sum] = dialects[engine];
  const width = widths[step - 1] ?? 1n;
  const toText = (value: string) => `CAST(${value} AS ${text})`;
  const times = ['submitted_at', 'changed_at'].map((column) => toText(micros.replace('?', column)));
  const parts = [...times, 'screening_outcome', 'job_reference'].map((value) => `coalesce(${value}, '')`);
  const digits = `substr(md5(${[toText('application_id'), ...parts].join(" || '|' || ")}), 1, 15)`;
  const ofAll = `hashed AS (SELECT advertiser_id, application_id, CAST(${number.replace('?', digits)} AS ${sum}) AS hash FROM ${table})`;
  const start = width === 1n ? 'c.application_id' : `c.application_id - mod(c.application_id, ${width})`;
  const row = (wide: bigint, from: string) =>
    `SELECT '${step}' AS step, '${wide}' AS width, ${toText('advertiser_id')} AS advertiser_id, ${toText(from)} AS from_id,
  ${toText('count(hash)')} AS applications, ${toText('coalesce(sum(hash), 0)')} AS fingerprint`;
  const narrowed = (rows: string) => `${row(width, 'from_id')}
FROM (SELECT c.advertiser_id, ${start} AS from_id, c.hash FROM ${rows} c WHERE c.application_id IS NOT NULL) ranges
GROUP BY advertiser_id, from_id;
`;
  if (step === 1) return `WITH ${ofAll}\n${narrowed('hashed')}`;
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
${narrowed('found')}`;
}

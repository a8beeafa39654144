// The statement that computes fingerprints over a copy, in the dialect of its engine. It hashes the same text as the view
// intake_analytics.fingerprints. Every number is returned as text: a sum exceeds 2^53, and JSON would round it.

import { type Range, type Step, widths } from './fingerprints.ts';

export const engines = ['duckdb', 'postgres', 'spark', 'snowflake'] as const;
export type Engine = (typeof engines)[number];

interface Dialect {
  readonly micros: (time: string) => string;
  /** The first 15 hex digits of md5 as a number. */
  readonly hash: (text: string) => string;
  readonly text: string;
  readonly sum: string;
}

const dialects: Readonly<Record<Engine, Dialect>> = {
  duckdb: {
    micros: (time) => `epoch_us(${time})`,
    hash: (text) => `CAST('0x' || substr(md5(${text}), 1, 15) AS BIGINT)`,
    text: 'VARCHAR',
    sum: 'HUGEINT',
  },
  postgres: {
    micros: (time) => `floor(extract(epoch FROM ${time}) * 1000000)::bigint`,
    hash: (text) => `('x' || substr(md5(${text}), 1, 15))::bit(60)::bigint`,
    text: 'text',
    sum: 'numeric',
  },
  spark: {
    micros: (time) => `unix_micros(${time})`,
    hash: (text) => `CAST(conv(substr(md5(${text}), 1, 15), 16, 10) AS BIGINT)`,
    text: 'STRING',
    sum: 'DECIMAL(38, 0)',
  },
  snowflake: {
    micros: (time) => `date_part(epoch_microsecond, ${time})`,
    hash: (text) => `to_number(substr(md5(${text}), 1, 15), 'XXXXXXXXXXXXXXX')`,
    text: 'VARCHAR',
    sum: 'NUMBER(38, 0)',
  },
};

/** The statement of a step over `table`. From the second step on it asks about the ranges that differ, and tells also which are empty. */
export function renderFingerprintSql(engine: Engine, table: string, step: Step, asked: readonly Range[]): string {
  const { micros, hash, text, sum } = dialects[engine];
  const width = widths[step - 1] ?? 1n;
  const toText = (value: string) => `CAST(${value} AS ${text})`;
  const orEmpty = (value: string) => `coalesce(${value}, '')`;
  const parts = [
    toText('application_id'),
    orEmpty(toText(micros('submitted_at'))),
    orEmpty(toText(micros('changed_at'))),
    orEmpty('screening_outcome'),
    orEmpty('job_reference'),
  ];
  const hashed = `SELECT advertiser_id, application_id, CAST(${hash(parts.join(" || '|' || "))} AS ${sum}) AS hash FROM ${table}`;
  const start = width === 1n ? 'c.application_id' : `c.application_id - mod(c.application_id, ${width})`;
  const row = (wide: bigint, from: string) =>
    [
      `SELECT '${step}' AS step, '${wide}' AS width, ${toText('advertiser_id')} AS advertiser_id, ${toText(from)} AS from_id,`,
      `  ${toText('count(hash)')} AS applications, ${toText('coalesce(sum(hash), 0)')} AS fingerprint`,
    ].join('\n');
  if (step === 1) {
    return [
      `WITH hashed AS (${hashed}),`,
      `ranges AS (SELECT c.advertiser_id, ${start} AS from_id, c.hash FROM hashed c)`,
      row(width, 'from_id'),
      'FROM ranges GROUP BY advertiser_id, from_id;\n',
    ].join('\n');
  }
  const wider = widths[step - 2] ?? 1n;
  const list = asked.map(({ advertiserId, fromId }) => `SELECT ${advertiserId} AS advertiser_id, ${fromId} AS from_id`);
  return [
    `WITH asked AS (\n  ${list.join('\n  UNION ALL ')}\n),`,
    `hashed AS (${hashed}),`,
    'found AS (',
    '  SELECT a.advertiser_id, a.from_id AS asked_id, c.application_id, c.hash FROM asked a',
    `  LEFT JOIN hashed c ON c.advertiser_id = a.advertiser_id AND c.application_id BETWEEN a.from_id AND a.from_id + ${wider - 1n}`,
    ')',
    row(wider, 'asked_id'),
    'FROM found GROUP BY advertiser_id, asked_id',
    'UNION ALL',
    row(width, 'from_id'),
    `FROM (SELECT c.advertiser_id, ${start} AS from_id, c.hash FROM found c WHERE c.application_id IS NOT NULL) ranges`,
    'GROUP BY advertiser_id, from_id;\n',
  ].join('\n');
}

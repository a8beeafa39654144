// What an extract reads: one snapshot of the views of intake_analytics, row by row. Also the record of the places that were written to.
import type { Fingerprint, Range, Step } from '../domain/extract/fingerprints.ts';
import { parseAnswer, renderFingerprintSql } from '../domain/extract/fingerprints.ts';
import type { Changed, ColumnType, ExtractColumn, ExtractedAdvertiser } from '../domain/extract/manifest.ts';
import { columnsOf, type Database, type Queryable, type Row, type Transaction } from './postgres/database.ts';
import type { Columns } from './schema/rows.ts';

/** `event_position`: the last event in the snapshot; 0 where there is none. */
export type SnapshotAdvertiser = ExtractedAdvertiser & { readonly event_position: string };

/** The rows of one view and advertiser: of a month, of these buckets (null: all of them), or all rows. */
export type RowChoice =
  | { readonly by: 'month'; readonly month: string }
  | { readonly by: 'bucket'; readonly buckets: readonly string[] | null }
  | { readonly by: 'none' };

export interface Snapshot {
  readonly at: Date;
  readonly advertisers: readonly SnapshotAdvertiser[];
  /** By view. */
  readonly columns: ReadonlyMap<string, readonly ExtractColumn[]>;
  loadMonths(advertiserId: bigint): Promise<string[]>;
  loadChanged(advertiserId: bigint, since: SinceEvent): Promise<Changed | null>;
  /** Rows in batches. `bucket` is a member of each row that was chosen by bucket; rows come bucket by bucket. */
  loadRows(view: string, advertiserId: bigint, choice: RowChoice): AsyncIterable<readonly Row[]>;
}

export interface SinceEvent {
  readonly position: bigint;
  /** When the snapshot before was taken. */
  readonly time: string;
  readonly ranges: readonly { readonly month: string; readonly low: bigint; readonly high: bigint }[];
}

/** A batch becomes a row group. Ten thousand rows took 30 MB more for 4 % smaller files (measured), and a text may have megabytes. */
const batchSize = { rows: 2_000, bytes: 4 * 1024 * 1024 };

const monthOf = (at: string) => `coalesce(to_char(${at} AT TIME ZONE 'UTC', 'YYYY-MM'), 'none')`;
const bucketOf = (id: string) => `lpad((get_byte(decode(md5(${id}::text), 'hex'), 0) & 63)::text, 2, '0')`;

/**
 * Runs `work` on one snapshot of the database. The transaction stays open for as long as the extract takes, so it only reads. A pause for the
 * target after the last row of a view counts as idle, hence the long limit. Parallel plans cost the server 8 % more CPU per row (measured).
 */
export async function withSnapshot<T>(db: Database, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  return await db.transaction(async (tx) => {
    await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const [{ at } = { at: new Date() }] = await tx.query<{ at: Date }>(
      `SELECT clock_timestamp() AS at, set_config('idle_in_transaction_session_timeout', '30min', true),
         set_config('max_parallel_workers_per_gather', '0', true)`,
    );
    const columns = await loadColumns(tx);
    return await work({
      at,
      advertisers: await loadAdvertisers(tx),
      columns,
      loadMonths: (advertiserId) => loadMonths(tx, advertiserId),
      loadChanged: (advertiserId, since) => loadChanged(tx, advertiserId, since),
      loadRows: (view, advertiserId, choice) => loadRows(tx, view, columns.get(view) ?? [], advertiserId, choice),
    });
  });
}

const isoOf = (at: string) => `to_char(${at} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

async function loadAdvertisers(tx: Queryable): Promise<SnapshotAdvertiser[]> {
  return await tx.query<SnapshotAdvertiser & Row>(
    `SELECT k.advertiser AS name, k.advertiser_id::text, k.certificate, k.risk, k.reason, k.assumptions,
       ${isoOf('k.as_of')} AS as_of, ${isoOf('k.complete_through')} AS complete_through,
       (SELECT coalesce(json_agg(json_build_object('from', o.low::text, 'to', o.high::text) ORDER BY o.low), '[]')
        FROM intake.open_ranges o WHERE o.advertiser_id = k.advertiser_id) AS open_ranges, coalesce(k.evidence, '{}') AS evidence,
       (SELECT coalesce(max(e.event_id), 0)::text FROM intake.events e WHERE e.advertiser_id = k.advertiser_id) AS event_position
     FROM intake_analytics.completeness k WHERE k.advertiser_id IS NOT NULL ORDER BY k.advertiser_id`,
  );
}

/** The Parquet type of a column, by its type in Postgres. Rates become doubles, ids and JSON texts. */
const typeNames: Readonly<Record<string, ColumnType>> = {
  int8: 'bigint',
  int4: 'integer',
  bool: 'boolean',
  numeric: 'double',
  date: 'date',
  timestamp: 'timestamp',
  timestamptz: 'timestamptz',
  _text: 'text[]',
};

async function loadColumns(tx: Queryable): Promise<ReadonlyMap<string, readonly ExtractColumn[]>> {
  const rows = await tx.query<{ view: string; name: string; type: string; position: number }>(
    `SELECT c.relname AS view, a.attname AS name, t.typname AS type, a.attnum::int AS position
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
     WHERE c.relnamespace = 'intake_analytics'::regnamespace AND c.relkind = 'v' ORDER BY c.relname, a.attnum`,
  );
  const toColumn = ({ name, type, position }: (typeof rows)[number]): ExtractColumn => {
    return { name, type: typeNames[type] ?? 'text', field_id: position };
  };
  return new Map([...Map.groupBy(rows, ({ view }) => view)].map(([view, columns]) => [view, columns.map(toColumn)]));
}

async function loadMonths(tx: Queryable, advertiserId: bigint): Promise<string[]> {
  const rows = await tx.query<{ month: string }>(
    `SELECT DISTINCT ${monthOf('submitted_at')} AS month FROM intake.applications
     WHERE advertiser_id = $1 AND erased_at IS NULL ORDER BY month`,
    [advertiserId],
  );
  return rows.map(({ month }) => month);
}

/**
 * The partitions that have changed since this event. An application that waits for its files changes without events, so it counts. Null if
 * events may have been pruned since, or if the event is later than the snapshot before: a restored database gives numbers again.
 */
async function loadChanged(tx: Queryable, advertiserId: bigint, since: SinceEvent): Promise<Changed | null> {
  const [known] = await tx.query(
    `SELECT 1 FROM intake.events WHERE advertiser_id = $1 AND event_id = $2 AND at <= $3::timestamptz`,
    [advertiserId, since.position, since.time],
  );
  if (!known) return null;
  const changed = `WITH changed AS MATERIALIZED (
       SELECT application_id FROM intake.events WHERE advertiser_id = $1 AND event_id > $2
       UNION SELECT application_id FROM intake.applications WHERE advertiser_id = $1 AND ready_at IS NULL AND erased_at IS NULL)`;
  const months = await tx.query<{ month: string }>(
    `${changed} SELECT ${monthOf('a.submitted_at')} AS month FROM changed c
       JOIN intake.applications a ON a.advertiser_id = $1 AND a.application_id = c.application_id AND a.erased_at IS NULL
     UNION SELECT r.month FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS r (month, low, high)
     WHERE EXISTS (SELECT 1 FROM changed c WHERE c.application_id BETWEEN r.low AND r.high) ORDER BY month`,
    [advertiserId, since.position, ...columnsOf(since.ranges, 'month', 'low', 'high')],
  );
  const buckets = await tx.query<{ bucket: string }>(
    `${changed} SELECT DISTINCT ${bucketOf('application_id')} AS bucket FROM changed ORDER BY bucket`,
    [advertiserId, since.position],
  );
  return { month: months.map(({ month }) => month), bucket: buckets.map(({ bucket }) => bucket) };
}

const toMicroseconds = (column: string) => `(extract(epoch FROM ${column}) * 1000000)::bigint`;

/** How a column is read whose value Parquet holds in another form than the driver returns: microseconds, days, doubles. */
const readers: Partial<Record<ColumnType, (column: string) => string>> = {
  double: (column) => `${column}::float8`,
  date: (column) => `${column} - DATE '1970-01-01'`,
  timestamp: toMicroseconds,
  timestamptz: toMicroseconds,
  text: (column) => `${column}::text`,
};

/** Enough columns to give the rows of every large view one order. */
const orderedBy = 5;

function loadRows(
  tx: Transaction,
  view: string,
  columns: readonly ExtractColumn[],
  advertiserId: bigint,
  choice: RowChoice,
): AsyncIterable<readonly Row[]> {
  const quoted = (name: string) => `v."${name}"`;
  const read = columns.map(({ name, type }) => `${readers[type]?.(quoted(name)) ?? quoted(name)} AS "${name}"`);
  const order = columns.slice(0, orderedBy).map(({ name }) => quoted(name));
  const isBucketed = choice.by === 'bucket';
  const bucket = bucketOf('v.application_id');
  const [condition, ...values] = toCondition(choice, bucket);
  return tx.read(
    `SELECT ${[...read, ...(isBucketed ? [`${bucket} AS bucket`] : [])].join(', ')}
     FROM intake_analytics."${view}" v WHERE v.advertiser_id = $1 AND ${condition}
     ORDER BY ${[...(isBucketed ? [bucket] : []), ...order].join(', ')}`,
    [advertiserId, ...values],
    batchSize,
  );
}

/** A condition, and the values of its parameters from $2 on. */
function toCondition(choice: RowChoice, bucket: string): [string, ...unknown[]] {
  if (choice.by === 'none') return ['true'];
  if (choice.by === 'bucket') return choice.buckets === null ? ['true'] : [`${bucket} = ANY ($2)`, choice.buckets];
  if (choice.month === 'none') return ['v.submitted_at IS NULL'];
  const first = `$2::timestamp`;
  const after = `(${first} + interval '1 month')`;
  return [
    `v.submitted_at >= ${first} AT TIME ZONE 'UTC' AND v.submitted_at < ${after} AT TIME ZONE 'UTC'`,
    `${choice.month}-01`,
  ];
}

/** The buckets of these applications. */
export async function loadBuckets(db: Queryable, applicationIds: readonly bigint[]): Promise<string[]> {
  const rows = await db.query<{ bucket: string }>(
    `SELECT DISTINCT ${bucketOf('id')} AS bucket FROM unnest($1::bigint[]) AS given (id) ORDER BY bucket`,
    [applicationIds],
  );
  return rows.map(({ bucket }) => bucket);
}

/** The fingerprints of Intake itself, by the statement that a copy in Postgres runs. */
export async function loadFingerprints(db: Database, step: Step, asked: readonly Range[]): Promise<Fingerprint[]> {
  const sql = renderFingerprintSql('postgres', 'intake_analytics.applications_anonymous', step, asked);
  const rows = await db.transaction((tx) => tx.query(sql));
  const csv = [Object.keys(rows[0] ?? {}), ...rows.map(Object.values)].join('\n');
  return parseAnswer(csv)?.ranges ?? [];
}

/** Records a place before anything is written there, so that an erasure finds it even if the extract is killed. */
export async function recordExtract(db: Queryable, location: string, withPeople: boolean, snapshotId: string) {
  await db.query(
    `INSERT INTO intake.extracts AS x (location, with_people, snapshot_id) VALUES ($1, $2, $3)
     ON CONFLICT (location) DO UPDATE SET with_people = x.with_people OR excluded.with_people, snapshot_id = excluded.snapshot_id`,
    [location, withPeople, snapshotId],
  );
}

export async function recordPublished(db: Queryable, location: string): Promise<void> {
  await db.query(`UPDATE intake.extracts SET published_at = now() WHERE location = $1`, [location]);
}

/** The snapshot that was begun last at a place, and when one was last published; undefined where none was begun. */
export async function findExtract(db: Queryable, location: string) {
  const [row] = await db.query<Columns<'extracts', 'snapshot_id' | 'published_at'>>(
    `SELECT snapshot_id, published_at FROM intake.extracts WHERE location = $1`,
    [location],
  );
  return row;
}

/** The places that may hold people's columns. */
export async function loadPeoplePlaces(db: Queryable): Promise<string[]> {
  const rows = await db.query<Columns<'extracts', 'location'>>(
    `SELECT location FROM intake.extracts WHERE with_people ORDER BY location`,
  );
  return rows.map(({ location }) => location);
}

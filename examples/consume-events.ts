// A complete consumer of Intake's events: DATABASE_URL=postgres://... npx node examples/consume-events.ts (Node 24)
// Every event reaches `apply` once and in order, even if this process is killed: the writes of `apply` and the position are committed in
// one transaction. It prints what it takes and its position, ids and counts only. Stop it with Ctrl-C at any time.
// Copy it, and put your own work into `apply` and `applySnapshot`.

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

interface IntakeEvent {
  readonly advertiser_id: string;
  readonly event_id: string;
  readonly application_id: string;
  readonly type: string;
}

/** Your work. This example writes the events into an inbox of the ATS. Only writes in this transaction happen exactly once. */
async function apply(tx: pg.Client, events: readonly IntakeEvent[]): Promise<void> {
  await tx.query(
    `INSERT INTO ats.inbox (advertiser_id, event_id, application_id, type)
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])`,
    [
      events.map((event) => event.advertiser_id),
      events.map((event) => event.event_id),
      events.map((event) => event.application_id),
      events.map((event) => event.type),
    ],
  );
}

/**
 * Your work at the start, or after an absence so long that events were pruned: take a snapshot of all applications. If you have an
 * application that is not in the snapshot, it was erased or is gone at the source and you missed the event: erase your copy.
 */
async function applySnapshot(tx: pg.Client, advertiserId: string): Promise<number> {
  const { rowCount } = await tx.query(
    `INSERT INTO ats.inbox (advertiser_id, event_id, application_id, type)
     SELECT advertiser_id, NULL, application_id, 'snapshot' FROM intake.applications
     WHERE advertiser_id = $1 AND erased_at IS NULL AND missing_since IS NULL`,
    [advertiserId],
  );
  return rowCount ?? 0;
}

const consumer = 'ats';
const batchSize = 500;
const pollMs = 5_000;

// CREATE SCHEMA IF NOT EXISTS needs the CREATE privilege even when the schema exists, so this checks first.
const tables = `
  DO $$ BEGIN IF to_regnamespace('ats') IS NULL THEN CREATE SCHEMA ats; END IF; END $$;
  CREATE TABLE IF NOT EXISTS ats.inbox (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, advertiser_id bigint, event_id bigint, application_id bigint, type text,
    UNIQUE (advertiser_id, event_id));
  CREATE TABLE IF NOT EXISTS ats.intake_positions (
    consumer text, advertiser_id bigint, event_id bigint NOT NULL DEFAULT 0, at timestamptz, PRIMARY KEY (consumer, advertiser_id))`;

/** Reads events until the process is stopped. */
async function consume(db: pg.Client): Promise<never> {
  await db.query(tables);
  await db.query('LISTEN intake_events');
  console.log(
    `connected to ${db.database} at ${db.host}: events go into ats.inbox, positions into ats.intake_positions`,
  );
  for (;;) {
    // A notification is only a hint. Listening starts before the read, so that none is missed; the poll covers poolers that drop them.
    const woken = new AbortController();
    const news = once(db, 'notification', { signal: woken.signal }).catch(() => undefined);
    const { rows } = await db.query<{ advertiser_id: string }>(
      `SELECT advertiser_id FROM intake.advertisers WHERE advertiser_id IS NOT NULL`,
    );
    for (const { advertiser_id } of rows) {
      while (await takeBatch(db, advertiser_id)) {}
    }
    await Promise.race([news, sleep(pollMs, undefined, { signal: woken.signal }).catch(() => undefined)]);
    woken.abort();
  }
}

/** Takes one batch in one transaction; returns true when there may be more. */
async function takeBatch(db: pg.Client, advertiserId: string): Promise<boolean> {
  // Repeatable read makes the applications and the newest event of a snapshot consistent.
  await db.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  try {
    const step = await advance(db, advertiserId);
    await db.query('COMMIT');
    if (step) console.log(`advertiser ${advertiserId}: ${step.message}`);
    return step?.more ?? false;
  } catch (error) {
    await db.query('ROLLBACK');
    // Another instance of this consumer was faster: try again.
    if ((error as { code?: string }).code === '40001') return true;
    throw error;
  }
}

/** Returns a message about what was done and whether there may be more; null when there was nothing to do. */
async function advance(db: pg.Client, advertiserId: string): Promise<{ message: string; more: boolean } | null> {
  const key = [consumer, advertiserId];
  await db.query(
    `INSERT INTO ats.intake_positions (consumer, advertiser_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
    key,
  );
  const { rows: places } = await db.query<{ event_id: string; known: boolean }>(
    `SELECT event_id, EXISTS (
       SELECT 1 FROM intake.events e
       WHERE e.advertiser_id = p.advertiser_id AND e.event_id = p.event_id AND e.at = p.at) AS known
     FROM ats.intake_positions p WHERE consumer = $1 AND advertiser_id = $2 FOR UPDATE`,
    key,
  );
  const place = places[0] ?? { event_id: '0', known: false };
  const move = (to: string) =>
    db.query(
      `UPDATE ats.intake_positions p SET event_id = e.event_id, at = e.at FROM intake.events e
       WHERE p.consumer = $1 AND p.advertiser_id = $2 AND e.advertiser_id = $2 AND e.event_id = $3`,
      [...key, to],
    );

  // Pruning keeps the newest event. When the event at the position is gone, later ones may be gone too. When it has another time, the
  // database was restored from a backup and has assigned the numbers since then again.
  if (!place.known) {
    const { rows } = await db.query<{ newest: string | null }>(
      `SELECT max(event_id) AS newest FROM intake.events WHERE advertiser_id = $1`,
      [advertiserId],
    );
    const newest = rows[0]?.newest;
    if (!newest) return null;
    const taken = await applySnapshot(db, advertiserId);
    await move(newest);
    const why = place.event_id === '0' ? 'first start' : `event ${place.event_id} is no longer there`;
    return { message: `${why}; took ${taken} applications as they stand, now at event ${newest}`, more: true };
  }

  const { rows: events } = await db.query<IntakeEvent>(
    `SELECT advertiser_id, event_id, application_id, type FROM intake.events
     WHERE advertiser_id = $1 AND event_id > $2 ORDER BY event_id LIMIT ${batchSize}`,
    [advertiserId, place.event_id],
  );
  const last = events.at(-1);
  if (!last) return null;
  await apply(db, events);
  await move(last.event_id);
  const types = Object.entries(Object.groupBy(events, ({ type }) => type));
  const counts = types.map(([type, some]) => `${some?.length} ${type}`).join(', ');
  return { message: `took ${counts}, now at event ${last.event_id}`, more: events.length === batchSize };
}

if (!process.env.DATABASE_URL && !process.env.PGHOST) {
  console.error(
    'Set DATABASE_URL, as in DATABASE_URL=postgres://ats:...@host/database npx node examples/consume-events.ts',
  );
  process.exit(2);
}

for (;;) {
  const db = new pg.Client({
    connectionString: process.env.DATABASE_URL,
    application_name: 'ats consumer',
    keepAlive: true,
  });
  // A lost connection fails the running query, and the catch below handles that.
  db.on('error', () => {});
  try {
    await db.connect();
    await consume(db);
  } catch (error) {
    console.error(`${(error as Error).message}; trying again in a second`);
    await db.end().catch(() => {});
    await sleep(1_000);
  }
}

// The outbox of application events, for integrators. Within an advertiser, event ids rise in commit order: the last statement before
// COMMIT assigns them under a lock per advertiser, so no event ever appears behind a reader's position.
import type { EventType } from '../domain/webhook.ts';
import { isAhead, type Queryable } from './postgres/database.ts';
import type { Columns } from './schema/rows.ts';

export interface ApplicationEvent {
  readonly applicationId: bigint;
  readonly type: EventType;
}

/** A row that a statement returns for each application that it changed. */
export type ChangedRow = Readonly<Columns<'applications', 'application_id'> & { missing: boolean }>;

/** One event for each application. A missing application also gets `missing` again, so that its last event agrees with its state (P26). */
export function toEvents(type: EventType, rows: readonly ChangedRow[]): ApplicationEvent[] {
  const byId = new Map(rows.map((row) => [row.application_id, row.missing]));
  return [...byId].flatMap(([applicationId, missing]): ApplicationEvent[] => [
    { applicationId, type },
    ...(missing ? [{ applicationId, type: 'application.missing' } as const] : []),
  ]);
}

/** Appends events. Must be the last statement of its transaction, because it takes the lock that orders events. */
export async function appendEvents(tx: Queryable, advertiserId: bigint, events: readonly ApplicationEvent[]) {
  if (events.length === 0) return;
  await tx.query(
    `WITH ordered AS MATERIALIZED (
       SELECT pg_advisory_xact_lock(2, hashint8($1::bigint)), pg_notify('intake_events', $1::bigint::text)
     )
     INSERT INTO intake.events (advertiser_id, event_id, application_id, type, at)
     SELECT $1::bigint, nextval('intake.event_seq'), e.application_id, e.type, clock_timestamp()
     FROM ordered, unnest($2::bigint[], $3::text[]) AS e (application_id, type)`,
    [advertiserId, events.map((e) => e.applicationId), events.map((e) => e.type)],
  );
}

/** How long events are kept. A consumer that was offline for longer starts over from the applications. */
const keptMs = 30 * 86_400_000;

/**
 * Deletes old events, lowest ids first, at most `limit` per call; returns how many. An advertiser's newest event always stays: a reader
 * whose last event still exists has missed nothing, however long ago that was. An event with a time in the future, from a wrong clock,
 * counts as old once an event with a higher id is old. A webhook's endpoint that had not taken a deleted event is stopped: it missed it.
 */
export async function pruneEvents(db: Queryable, limit = 10_000): Promise<number> {
  const cutoff = `now() - $1 * interval '1 millisecond'`;
  const [row] = await db.query<{ pruned: number }>(
    `WITH newest AS MATERIALIZED (
       SELECT v.advertiser_id, (SELECT max(e.event_id) FROM intake.events e WHERE e.advertiser_id = v.advertiser_id) AS event_id
       FROM intake.advertisers v WHERE v.advertiser_id IS NOT NULL
     ), horizon AS (
       SELECT n.advertiser_id, least(n.event_id, coalesce(
         (SELECT e.event_id + 1 FROM intake.events e
          WHERE e.advertiser_id = n.advertiser_id AND e.at < ${cutoff} AND e.event_id < coalesce(
            (SELECT f.event_id FROM intake.events f
             WHERE f.advertiser_id = n.advertiser_id AND f.at >= ${cutoff} AND NOT ${isAhead('f.at')}
             ORDER BY f.event_id LIMIT 1), n.event_id + 1)
          ORDER BY e.event_id DESC LIMIT 1), 0)) AS kept_from
       FROM newest n
     ), deleted AS (
       DELETE FROM intake.events WHERE ctid = ANY (ARRAY(
         SELECT e.ctid FROM horizon h
         JOIN intake.events e ON e.advertiser_id = h.advertiser_id AND e.event_id < h.kept_from
         ORDER BY e.advertiser_id, e.event_id LIMIT $2)) RETURNING advertiser_id, event_id
     ), stopped AS (
       UPDATE intake.webhooks h SET stop = 'lost'
       FROM (SELECT advertiser_id, max(event_id) AS event_id FROM deleted GROUP BY advertiser_id) AS d
       -- Also one that is removed from the settings: it may come back.
       WHERE h.advertiser_id = d.advertiser_id AND h.position < d.event_id
     )
     SELECT count(*)::int AS pruned FROM deleted`,
    [keptMs, limit],
  );
  return row?.pruned ?? 0;
}

// The outbox: what happened to an application, for integrators. Within an advertiser ids rise in commit order:
// they are given in the last statement before COMMIT under a lock per advertiser, so nothing ever appears behind a reader.
import type { Queryable } from './database.ts';

export type EventType =
  | 'application.received'
  | 'application.changed'
  | 'application.ready'
  | 'application.missing'
  | 'application.erased';

export interface ApplicationEvent {
  readonly applicationId: bigint;
  readonly type: EventType;
}

/** Must be the last statement of its transaction: it takes the lock that orders events. */
export async function appendEvents(
  tx: Queryable,
  advertiserId: bigint,
  events: readonly ApplicationEvent[],
): Promise<void> {
  if (events.length === 0) return;
  await tx.query(
    `WITH turn AS MATERIALIZED (
       SELECT pg_advisory_xact_lock(2, hashint8($1::bigint)), pg_notify('intake_events', $1::bigint::text)
     )
     INSERT INTO intake.events (advertiser_id, event_id, application_id, type, at)
     SELECT $1::bigint, nextval('intake.event_seq'), e.application_id, e.type, clock_timestamp()
     FROM turn, unnest($2::bigint[], $3::text[]) AS e (application_id, type)`,
    [advertiserId, events.map((e) => e.applicationId), events.map((e) => e.type)],
  );
}

// How far each endpoint has taken an advertiser's events, and why it waits. Written under its lease: no paused worker moves its position.
import { LeaseLost } from '../../domain/trouble.ts';
import type { Detail, Failing, WebhookEvent } from '../../domain/webhook.ts';
import { mostCounted, type WebhookStatus } from '../../domain/webhook.ts';
import { columnsOf, isAhead, type Queryable } from '../postgres/database.ts';
import type { Lease } from './leases.ts';

/** A configured endpoint: the name of its account, and its own, which is unique in the configuration. */
export interface WebhookName {
  readonly account: string;
  readonly name: string;
}

export interface WebhookKey {
  readonly advertiserId: bigint;
  readonly name: string;
}

/** An answer in the future came before the clock was set back: the time of the next try means nothing then. */
const isDue = (h: string) =>
  `${h}.stop IS NULL AND (${h}.next_at IS NULL OR ${h}.next_at <= now() OR ${isAhead(`${h}.answered_at`)}) IS TRUE`;

/**
 * Makes the rows of these endpoints, and marks those that are configured no more: an older worker may still deliver to them. A new one
 * begins four weeks back: one that began with the oldest events would miss those that are deleted, after thirty days, meanwhile.
 */
export async function declareWebhooks(db: Queryable, accounts: readonly string[], configured: readonly WebhookName[]) {
  await db.query(
    `WITH named AS (
       SELECT v.advertiser_id, w.name FROM unnest($1::text[], $2::text[]) AS w (account, name)
       JOIN intake.advertisers v ON v.name = w.account WHERE v.advertiser_id IS NOT NULL
     ), removed AS (
       UPDATE intake.webhooks h SET removed_at = now() FROM intake.advertisers v
       WHERE v.advertiser_id = h.advertiser_id AND v.name = ANY ($3::text[]) AND h.removed_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM named n WHERE n.advertiser_id = h.advertiser_id AND n.name = h.name)
     )
     INSERT INTO intake.webhooks AS h (advertiser_id, name, position)
     SELECT n.advertiser_id, n.name, coalesce(
       (SELECT max(e.event_id) FROM intake.events e WHERE e.advertiser_id = n.advertiser_id AND e.event_id < coalesce(
         (SELECT min(f.event_id) FROM intake.events f
          WHERE f.advertiser_id = n.advertiser_id AND f.at >= now() - interval '28 days'), 9223372036854775807)), 0)
     FROM named n
     ON CONFLICT (advertiser_id, name) DO UPDATE SET removed_at = NULL WHERE h.removed_at IS NOT NULL`,
    [...columnsOf(configured, 'account', 'name'), accounts],
  );
}

/** Those of the endpoints that have an event to take and need not wait. */
export async function findDueWebhooks(db: Queryable, names: readonly WebhookName[]): Promise<WebhookKey[]> {
  return await db.query<WebhookKey>(
    `SELECT v.advertiser_id AS "advertiserId", w.name FROM unnest($1::text[], $2::text[]) AS w (account, name)
     JOIN intake.advertisers v ON v.name = w.account
     LEFT JOIN intake.webhooks h ON h.advertiser_id = v.advertiser_id AND h.name = w.name
     WHERE ${isDue('h')} AND EXISTS (
       SELECT 1 FROM intake.events e WHERE e.advertiser_id = v.advertiser_id AND e.event_id > coalesce(h.position, 0))`,
    columnsOf(names, 'account', 'name'),
  );
}

/** Where an endpoint stands. */
export interface WebhookPlace extends Failing {
  readonly position: bigint;
  /** False while it waits, or is stopped until a person continues. */
  readonly isDue: boolean;
}

export async function loadWebhookPlace(db: Queryable, { advertiserId, name }: WebhookKey): Promise<WebhookPlace> {
  const [row] = await db.query<WebhookPlace>(
    `SELECT h.position, h.failures, ${isDue('h')} AS "isDue",
       coalesce(greatest(0, extract(epoch FROM now() - h.failing_since)::float8 * 1000), 0) AS "forMs"
     FROM intake.webhooks h WHERE h.advertiser_id = $1 AND h.name = $2`,
    [advertiserId, name],
  );
  return row ?? { position: 0n, failures: 0, forMs: 0, isDue: true };
}

/** A longer row would be refused by many a receiver for ever, and hold back the events behind it. Standard Webhooks advises 20 kB. */
const longestRow = 20_000;

/** The events after a position, each with its application as it is now: of an erased one, only that it is. */
export async function loadWebhookEvents(
  db: Queryable,
  advertiserId: bigint,
  after: bigint,
  limit: number,
  detail: Detail | null,
): Promise<WebhookEvent[]> {
  return await db.query<WebhookEvent>(
    `SELECT e.event_id AS "eventId", e.advertiser_id AS "advertiserId", e.application_id AS "applicationId", e.type, e.at, now() AS "readAt",
       CASE WHEN a.erased_at IS NOT NULL THEN 'erased' WHEN a.missing_since IS NOT NULL THEN 'missing'
         WHEN a.ready_at IS NOT NULL THEN 'ready' WHEN a.application_id IS NOT NULL THEN 'stored' END AS state,
       d.text AS application
     FROM intake.events e
     LEFT JOIN intake.applications a ON a.advertiser_id = e.advertiser_id AND a.application_id = e.application_id
     LEFT JOIN LATERAL (
       SELECT to_jsonb(x)::text AS text FROM intake_analytics.applications_anonymous x
       WHERE $4::text = 'anonymous' AND x.advertiser_id = e.advertiser_id AND x.application_id = e.application_id
       UNION ALL
       SELECT to_jsonb(x)::text FROM intake_analytics.applications x
       WHERE $4::text = 'personal' AND x.advertiser_id = e.advertiser_id AND x.application_id = e.application_id
     ) AS d ON length(d.text) <= ${longestRow}
     WHERE e.advertiser_id = $1 AND e.event_id > $2
     ORDER BY e.event_id LIMIT $3`,
    [advertiserId, after, limit, detail],
  );
}

/** How far an endpoint is, and its answer in words; null before it has answered. */
export interface DeliveryRecord {
  readonly position: bigint;
  readonly answer: string | null;
  /** Attempts at the next event that it did not take, and how long it waits; null where it took the last one. */
  readonly failure: { readonly failures: number; readonly waitMs: number; readonly stop: 'gone' | null } | null;
}

/** Writes how far an endpoint is. Throws LeaseLost if another process delivers to it by now. */
export async function recordDelivery(db: Queryable, lease: Lease, key: WebhookKey, record: DeliveryRecord) {
  const { position, answer, failure } = record;
  const rows = await db.query(
    `WITH held AS (
       SELECT 1 FROM intake.leases WHERE name = $1 AND lane = $2 AND epoch = $3 AND owner = $4 FOR SHARE
     )
     INSERT INTO intake.webhooks AS h (advertiser_id, name, position, failures, failing_since, next_at, stop, last_answer, answered_at)
     SELECT $5::bigint, $6::text, $7::bigint, $8::int, CASE WHEN $8::int > 0 AND $11::text IS NOT NULL THEN now() END,
       now() + $9::float8 * interval '1 millisecond', $10::text, $11::text, CASE WHEN $11::text IS NOT NULL THEN now() END
     FROM held
     ON CONFLICT (advertiser_id, name) DO UPDATE SET
       position = excluded.position,
       failures = excluded.failures,
       failing_since = CASE WHEN excluded.failures > 0 THEN coalesce(h.failing_since, excluded.failing_since) END,
       next_at = excluded.next_at,
       stop = coalesce(excluded.stop, h.stop),
       last_answer = coalesce(excluded.last_answer, h.last_answer),
       answered_at = coalesce(excluded.answered_at, h.answered_at)
     RETURNING 1`,
    [
      ...[lease.name, lease.lane, lease.epoch, lease.owner, key.advertiserId, key.name, position],
      ...[failure?.failures ?? 0, failure?.waitMs ?? null, failure?.stop ?? null, answer],
    ],
  );
  if (rows.length === 0) throw new LeaseLost(lease.name, lease.lane);
}

/** Makes an endpoint due now, whatever kept it; false where it has no row yet, so nothing can keep it. */
export async function resumeWebhook(db: Queryable, { advertiserId, name }: WebhookKey): Promise<boolean> {
  const rows = await db.query(
    `UPDATE intake.webhooks SET stop = NULL, next_at = NULL, failing_since = NULL, failures = 0
     WHERE advertiser_id = $1 AND name = $2 RETURNING 1`,
    [advertiserId, name],
  );
  return rows.length > 0;
}

export async function loadWebhooks(db: Queryable): Promise<WebhookStatus[]> {
  return await db.query<WebhookStatus>(
    // Counted in the index alone: the rows of many endpoints that are behind lie far apart.
    `SELECT v.name AS advertiser, h.name, h.position, h.failures, h.failing_since AS "failingSince",
       (SELECT count(*)::int FROM (
          SELECT FROM intake.events e WHERE e.advertiser_id = h.advertiser_id AND e.event_id > h.position LIMIT ${mostCounted}) AS n) AS behind,
       (SELECT e.at FROM intake.events e WHERE e.advertiser_id = h.advertiser_id AND e.event_id > h.position
        ORDER BY e.event_id LIMIT 1) AS "behindSince",
       CASE WHEN h.failing_since IS NOT NULL THEN h.next_at END AS "nextAt", h.stop, h.last_answer AS "lastAnswer", h.answered_at AS "answeredAt"
     FROM intake.webhooks h JOIN intake.advertisers v ON v.advertiser_id = h.advertiser_id
     WHERE h.removed_at IS NULL ORDER BY v.name, h.name`,
  );
}

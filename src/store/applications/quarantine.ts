// Quarantine: elements of a page that cannot be parsed as applications are stored whole. They are listed by reason and id, and their text
// is shown only on request. An element is resolved when it could be parsed after all, and deleted 30 days later.
import { hash, type KeyObject } from 'node:crypto';
import type { Reject } from '../../domain/application.ts';
import type { Queryable } from '../postgres/database.ts';
import type { Columns, NotNull } from '../schema/rows.ts';
import { findErased } from '../tombstones.ts';

/** Stores rejected elements, unless they were erased. A repeated element raises its count, at most once per sweep. */
export async function quarantine(
  tx: Queryable,
  key: KeyObject,
  page: { readonly advertiserId: bigint; readonly rejects: readonly Reject[] },
  sweepId: bigint,
): Promise<number> {
  if (page.rejects.length === 0) return 0;
  const { advertiserId } = page;
  const elements = toElements(page.rejects);
  const fingerprints = elements.map((one) => one.fingerprint);
  const erased = await findErased(tx, key, advertiserId, 'quarantine', fingerprints);
  // Elements with the same identity are numbered by their order, which may change: if one was erased, none of them is stored.
  const gone = new Set(elements.filter((_, at) => erased.has(at)).map((one) => one.reject.identity));
  const kept = elements.filter((one) => !gone.has(one.reject.identity));
  await tx.query(
    `INSERT INTO intake.quarantine AS q (advertiser_id, fingerprint, reason, raw, raw_text, sweep_id)
     SELECT $1, decode(r.fingerprint, 'hex'), r.reason, r.raw::jsonb, r.raw_text, $2
     FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) AS r (fingerprint, reason, raw, raw_text)
     ON CONFLICT (advertiser_id, fingerprint) DO UPDATE
       SET seen = q.seen + 1, last_seen_at = now(), sweep_id = excluded.sweep_id, reason = excluded.reason
       WHERE q.sweep_id <> excluded.sweep_id`,
    [
      advertiserId,
      sweepId,
      kept.map((one) => one.fingerprint),
      kept.map((one) => one.reject.reason),
      kept.map((one) => one.reject.raw),
      kept.map((one) => one.reject.rawText),
    ],
  );
  return kept.length;
}

interface Element {
  readonly reject: Reject;
  readonly fingerprint: string;
}

/** The distinct elements of a page. Elements with the same identity but different content are numbered, so that all are stored. */
function toElements(rejects: readonly Reject[]): Element[] {
  const elements = new Map<string, Element>();
  const counts = new Map<string, number>();
  for (const reject of rejects) {
    const content = reject.rawText ?? reject.raw;
    if (elements.has(content)) continue;
    const nth = counts.get(reject.identity) ?? 0;
    counts.set(reject.identity, nth + 1);
    elements.set(content, { reject, fingerprint: hash('sha256', `${nth} ${reject.identity}`) });
  }
  return [...elements.values()];
}

/** A quarantined element without its content. */
export interface Quarantined {
  readonly advertiserId: bigint;
  /** The first digits of its fingerprint, enough to identify it. */
  readonly id: string;
  readonly reason: string;
  readonly seen: number;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
  readonly resolvedAt: Date | null;
}

/** A quarantined element with the source's text. */
export interface QuarantinedText extends Quarantined {
  readonly text: string;
}

type QuarantineRow = { id: string } & Columns<
  'quarantine',
  'advertiser_id' | 'reason' | 'seen' | 'first_seen_at' | 'last_seen_at' | 'resolved_at'
>;

const idDigits = 12;
const columns = `advertiser_id, left(encode(fingerprint, 'hex'), ${idDigits}) AS id, reason, seen, first_seen_at, last_seen_at, resolved_at`;

/** Unresolved elements, newest first; with `resolved`, also resolved ones. */
export async function loadQuarantine(
  db: Queryable,
  advertiserId: bigint,
  { resolved, limit }: { readonly resolved: boolean; readonly limit: number },
): Promise<Quarantined[]> {
  const rows = await db.query<QuarantineRow>(
    `SELECT ${columns} FROM intake.quarantine WHERE advertiser_id = $1 AND ($2 OR resolved_at IS NULL)
     ORDER BY last_seen_at DESC, fingerprint LIMIT $3`,
    [advertiserId, resolved, limit],
  );
  return rows.map(toQuarantined);
}

/** Elements with their texts: the unresolved ones after the id `after`, or the ones whose fingerprint begins with `id`. */
export async function loadQuarantineTexts(
  db: Queryable,
  advertiserId: bigint,
  choice: { readonly id: string | null; readonly after: string; readonly limit: number },
): Promise<QuarantinedText[]> {
  const rows = await db.query<QuarantineRow & { text: string }>(
    `SELECT ${columns}, coalesce(raw_text, raw::text) AS text FROM intake.quarantine
     WHERE advertiser_id = $1 AND CASE WHEN $2::text IS NULL THEN resolved_at IS NULL ELSE encode(fingerprint, 'hex') LIKE $2 || '%' END
       AND left(encode(fingerprint, 'hex'), ${idDigits}) > $3
     ORDER BY fingerprint LIMIT $4`,
    [advertiserId, choice.id, choice.after, choice.limit],
  );
  return rows.map((row) => ({ ...toQuarantined(row), text: row.text }));
}

/** An element that could be parsed after all, and its application. */
export interface Replayed {
  readonly id: string;
  readonly applicationId: bigint;
}

/**
 * Records which applications these elements became, so that an erasure finds them. Returns the applications whose elements still exist.
 * Deletes an element whose application has been erased.
 */
export async function resolveQuarantine(
  db: Queryable,
  advertiserId: bigint,
  replayed: readonly Replayed[],
): Promise<ReadonlySet<bigint>> {
  const ids = replayed.map((one) => one.applicationId);
  const rows = await db.query<NotNull<Columns<'quarantine', 'application_id'>>>(
    `UPDATE intake.quarantine q SET application_id = r.application_id, resolved_at = coalesce(q.resolved_at, now())
     FROM unnest($2::text[], $3::bigint[]) AS r (id, application_id)
     WHERE q.advertiser_id = $1 AND left(encode(q.fingerprint, 'hex'), ${idDigits}) = r.id RETURNING q.application_id`,
    [advertiserId, replayed.map((one) => one.id), ids],
  );
  await db.query(
    `DELETE FROM intake.quarantine q USING intake.applications a
     WHERE q.advertiser_id = $1 AND q.application_id = ANY ($2::bigint[])
       AND a.advertiser_id = $1 AND a.application_id = q.application_id AND a.erased_at IS NOT NULL`,
    [advertiserId, ids],
  );
  return new Set(rows.map((row) => row.application_id));
}

/** How long a resolved element is kept: long enough to compare it with its application. */
const keptMs = 30 * 86_400_000;

/** The most rows in one statement. */
const prunedAtOnce = 10_000;

/** Deletes elements that were resolved long ago; returns how many. Unresolved elements are never deleted. */
export async function pruneQuarantine(db: Queryable): Promise<number> {
  const rows = await db.query(
    `DELETE FROM intake.quarantine WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM intake.quarantine WHERE resolved_at < now() - $1 * interval '1 millisecond' LIMIT $2)) RETURNING 1`,
    [keptMs, prunedAtOnce],
  );
  return rows.length;
}

function toQuarantined(row: QuarantineRow): Quarantined {
  return {
    advertiserId: row.advertiser_id,
    id: row.id,
    reason: row.reason,
    seen: row.seen,
    firstSeenAt: row.first_seen_at,
    lastSeenAt: row.last_seen_at,
    resolvedAt: row.resolved_at,
  };
}

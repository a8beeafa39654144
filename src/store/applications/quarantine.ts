// Quarantine: elements of a page that cannot be parsed as applications are stored whole. They are listed by reason and id, and their text
// is shown only on request. An element is resolved when it could be parsed after all, and deleted 30 days later.
import { hash } from 'node:crypto';
import { type MemberHashes, mostQuarantined, type Reject } from '../../domain/application.ts';
import { findAccounts, findAddresses } from '../../domain/person.ts';
import { type Account, mayStore, noteKeptOut, type Person, toClaimant } from '../gate.ts';
import { columnsOf, type Queryable } from '../postgres/database.ts';
import type { Columns, NotNull } from '../schema/rows.ts';
import { learnVolatile, toContent, toDiffering } from './volatile.ts';

/** Stores rejected elements, unless they were erased or name an erased person. A repeated one counts up, at most once per sweep. */
export async function quarantine(account: Account, rejected: readonly Reject[], sweepId: bigint): Promise<number> {
  if (rejected.length === 0) return 0;
  const { db: tx, advertiserId } = account;
  const may = await mayStore(account, rejected.map(toPersonWithoutId));
  const kept = rejected.filter((_, at) => may[at]);
  await noteKeptOut(account, rejected.length - kept.length);
  // What was stored of the others before goes.
  const stopped = rejected.filter((_, at) => !may[at]).map((one) => one.identity);
  if (stopped.length > 0)
    await tx.query(
      `DELETE FROM intake.quarantine
       WHERE advertiser_id = $1 AND coalesce(identity, fingerprint) IN (SELECT decode(i, 'hex') FROM unnest($2::text[]) AS i)`,
      [advertiserId, stopped],
    );
  const elements = await nameElements(account, sweepId, kept);
  const rows = elements.map((one) => ({ ...one, members: JSON.stringify(one.members) }));
  const stored = await tx.query(
    `INSERT INTO intake.quarantine AS q (advertiser_id, fingerprint, reason, raw, raw_text, members, person, identity, sweep_id)
     SELECT $1, decode(r.fingerprint, 'hex'), r.reason, r.raw::jsonb, r.raw_text, r.members::jsonb, decode(r.person, 'hex'),
       decode(r.identity, 'hex'), $2
     FROM (
       SELECT r.*, known.fingerprint IS NULL AS is_new, row_number() OVER (PARTITION BY known.fingerprint IS NULL ORDER BY r.at) AS nth
       FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])
         WITH ORDINALITY AS r (fingerprint, reason, raw, raw_text, members, person, identity, at)
       LEFT JOIN intake.quarantine known ON known.advertiser_id = $1 AND known.fingerprint = decode(r.fingerprint, 'hex')
     ) AS r
     WHERE NOT r.is_new OR r.nth <= $10 - (
       SELECT count(*) FROM intake.quarantine o WHERE o.advertiser_id = $1 AND o.resolved_at IS NULL)
     ON CONFLICT (advertiser_id, fingerprint) DO UPDATE SET last_seen_at = now(), reason = excluded.reason,
       seen = q.seen + (q.sweep_id <> excluded.sweep_id)::int, sweep_id = excluded.sweep_id, members = excluded.members
     RETURNING 1`,
    [
      ...[advertiserId, sweepId],
      ...columnsOf(rows, 'fingerprint', 'reason', 'raw', 'rawText', 'members', 'applicant', 'identity'),
      mostQuarantined,
    ],
  );
  const unkept = elements.length - stored.length;
  if (unkept > 0) {
    // Every sweep shows the same elements again: only those of one page are certainly different ones.
    const sql = `UPDATE intake.advertisers SET unkept = $2 WHERE advertiser_id = $1 AND coalesce(unkept, 0) < $2`;
    await tx.query(sql, [advertiserId, unkept]);
  }
  return stored.length;
}

/** An element without a usable id of its own is the person's whom it names. Its text is searched where the gate asks for them. */
function toPersonWithoutId({ raw, rawText, identity, application }: Reject): Person {
  const json = `${rawText ?? ''} ${raw}`;
  const claimant = application && toClaimant(application);
  return {
    identity,
    holder: claimant?.holder,
    get accounts() {
      return [...findAccounts(json), ...(claimant?.accounts ?? [])];
    },
    get addresses() {
      return [...findAddresses(json), ...(claimant?.addresses ?? [])];
    },
  };
}

/** Members that may be volatile. Elements that differ in another one, which says who applied for what, are different. */
const others = ['DateSubmitted', 'Attachments', 'PrimaryJobSeekingInfo'];

/**
 * The distinct elements of a page, each with a fingerprint; twins are numbered. Of an element that says who applied for what, members that
 * differ from a stored one of the same person may be volatile: once one is, it is no content, and the rows that it told apart become one.
 */
async function nameElements({ db: tx, advertiserId }: Account, sweepId: bigint, rejected: readonly Reject[]) {
  const toText = (one: Reject) => JSON.stringify({ ...one, application: undefined });
  const distinct = [...new Map(rejected.map((one) => [toText(one), one])).values()];
  const rows = await tx.query<{ fingerprint: string; person: string; members: MemberHashes }>(
    `SELECT encode(fingerprint, 'hex') AS fingerprint, encode(person, 'hex') AS person, members FROM intake.quarantine
     WHERE advertiser_id = $1 AND resolved_at IS NULL AND sweep_id <> $3 AND members IS NOT NULL
       AND person = ANY (SELECT decode(p, 'hex') FROM unnest($2::text[]) AS p)
     ORDER BY first_seen_at, fingerprint LIMIT 1000`,
    [advertiserId, distinct.flatMap(({ applicant }) => applicant ?? []), sweepId],
  );
  const stored = new Set(rows.map(({ members }) => toContent(members)));
  const latest = new Map(rows.map((row) => [row.person, row]));
  const differences = distinct.flatMap(({ applicant, members }) => {
    const kin = latest.get(applicant ?? '');
    if (kin === undefined || stored.has(toContent(members))) return [];
    const apart = toDiffering(kin.members, members).filter((member) => others.includes(member));
    return apart.map((member) => ({ member, who: kin.fingerprint }));
  });
  const volatile = await learnVolatile(tx, advertiserId, differences);
  const alike = Map.groupBy(distinct, ({ applicant, members }) =>
    toContent(members, applicant === null ? null : volatile),
  );
  const twins = Map.groupBy(rows, ({ members }) => toContent(members, volatile));
  const elements = [];
  for (const [content, group] of alike) {
    const named = group.map((one, nth) => ({ ...one, fingerprint: hash('sha256', `${nth} ${content}`) }));
    elements.push(named);
    const before = twins.get(content)?.map((row) => row.fingerprint) ?? [];
    await joinTwins(tx, advertiserId, new Set(named.map((one) => one.fingerprint)), new Set(before));
  }
  return elements.flat();
}

/** Of the rows that differ in volatile members alone, as many as the page has elements stay, the oldest first; the others go. */
async function joinTwins(tx: Queryable, advertiserId: bigint, prints: ReadonlySet<string>, twins: ReadonlySet<string>) {
  const renamed = [...twins.difference(prints)];
  if (renamed.length === 0) return;
  // Rows of this sweep and resolved ones are no twins, but have their fingerprints.
  const taken = await tx.query<{ fingerprint: string }>(
    `SELECT encode(fingerprint, 'hex') AS fingerprint FROM intake.quarantine
     WHERE advertiser_id = $1 AND fingerprint IN (SELECT decode(f, 'hex') FROM unnest($2::text[]) AS f)`,
    [advertiserId, [...prints]],
  );
  const free = [...prints.difference(new Set(taken.map((row) => row.fingerprint)))];
  const gone = renamed.splice(free.length);
  await tx.query(
    `WITH gone AS (DELETE FROM intake.quarantine WHERE advertiser_id = $1 AND fingerprint IN (SELECT decode(f, 'hex') FROM unnest($2::text[]) AS f))
     UPDATE intake.quarantine q SET fingerprint = decode(r.fingerprint, 'hex')
     FROM unnest($3::text[], $4::text[]) AS r (twin, fingerprint) WHERE q.advertiser_id = $1 AND q.fingerprint = decode(r.twin, 'hex')`,
    [advertiserId, gone, renamed, free.slice(0, renamed.length)],
  );
}

/** A quarantined element without its content. Its id is the whole fingerprint: the source can make two with the same first digits. */
export interface Quarantined {
  readonly advertiserId: bigint;
  readonly id: string;
  readonly reason: string;
  readonly seen: number;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
  readonly resolvedAt: Date | null;
}

const columns = `advertiser_id AS "advertiserId", encode(fingerprint, 'hex') AS id, reason, seen,
  first_seen_at AS "firstSeenAt", last_seen_at AS "lastSeenAt", resolved_at AS "resolvedAt"`;

/** A quarantined element with the source's text. */
export interface QuarantinedText extends Quarantined {
  readonly text: string;
}

/** Unresolved elements, newest first. */
export async function loadQuarantine(db: Queryable, advertiserId: bigint, limit: number): Promise<Quarantined[]> {
  return await db.query<Quarantined>(
    `SELECT ${columns} FROM intake.quarantine WHERE advertiser_id = $1 AND resolved_at IS NULL
     ORDER BY last_seen_at DESC, fingerprint LIMIT $2`,
    [advertiserId, limit],
  );
}

/** Elements with their texts: the unresolved ones after the id `after`, or the ones whose fingerprint begins with `id`. */
export async function loadQuarantineTexts(
  db: Queryable,
  advertiserId: bigint,
  choice: { readonly id: string | null; readonly after: string; readonly limit: number },
): Promise<QuarantinedText[]> {
  return await db.query<QuarantinedText>(
    `SELECT ${columns}, coalesce(raw_text, raw::text) AS text FROM intake.quarantine
     WHERE advertiser_id = $1 AND CASE WHEN $2::text IS NULL THEN resolved_at IS NULL ELSE encode(fingerprint, 'hex') LIKE $2 || '%' END
       AND fingerprint > decode($3, 'hex')
     ORDER BY fingerprint LIMIT $4`,
    [advertiserId, choice.id, choice.after, choice.limit],
  );
}

/** An element that could be parsed after all, and its application. */
export interface Replayed {
  readonly id: string;
  readonly applicationId: bigint;
}

/** Records what these elements became, so that an erasure finds them. Returns the applications whose elements still exist. */
export async function resolveQuarantine(db: Queryable, advertiserId: bigint, replayed: readonly Replayed[]) {
  const ids = replayed.map((one) => one.applicationId);
  const rows = await db.query<NotNull<Columns<'quarantine', 'application_id'>>>(
    `UPDATE intake.quarantine q SET application_id = r.application_id, resolved_at = coalesce(q.resolved_at, now())
     FROM unnest($2::text[], $3::bigint[]) AS r (id, application_id)
     WHERE q.advertiser_id = $1 AND q.fingerprint = decode(r.id, 'hex') RETURNING q.application_id`,
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

/** Deletes elements that were resolved 30 days ago, time enough to compare them with their applications; returns how many. */
export async function pruneQuarantine(db: Queryable, limit = 10_000): Promise<number> {
  const rows = await db.query(
    `DELETE FROM intake.quarantine WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM intake.quarantine WHERE resolved_at < now() - interval '30 days' LIMIT $1)) RETURNING 1`,
    [limit],
  );
  return rows.length;
}

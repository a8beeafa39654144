// Compares a page with the stored rows: which of its applications are new, changed or shown again, and which stored ones are not on it.
// Reads only, so that an unchanged page costs no transaction id. commit-page.ts writes the difference.
import type { Application, Reject } from '../../domain/application.ts';
import type { UnshownId } from '../../domain/coverage/question.ts';
import type { ExpectedIds } from '../../domain/coverage/unshown.ts';
import type { Queryable } from '../postgres/database.ts';
import type { WriteContext } from '../sweeps/leases.ts';
import type { Sweep } from '../sweeps/sweeps.ts';
import type { Replayed } from './quarantine.ts';
import { isHashSignal } from './update.ts';

/** One list answer, ready to be compared and committed. */
export interface ReadPage extends WriteContext {
  /** The sweep that requested the page. Its row is inserted with the first page that is recorded. */
  readonly sweep: Sweep;
  readonly applications: readonly Application[];
  readonly rejects: readonly Reject[];
  /** The quarantined elements that the applications were parsed from. If one is erased meanwhile, its application is not stored. */
  readonly replayed?: readonly Replayed[] | undefined;
  /** When the request was sent, by the database's clock. */
  readonly askedAt: Date;
  /** The requested ids. Applications among them that were stored before the request and are not on the page are reported as unshown. */
  readonly asked: ExpectedIds | null;
}

/** The page compared with what was stored before it. */
export interface Seen {
  /** Ids on the page that were not stored. */
  readonly unheld: readonly bigint[];
  /** By the rule of domain/coverage/unshown.ts; a test compares the statements below with a plain function. */
  readonly unshown: readonly UnshownId[];
}

/** The difference between a page and what is stored. */
export interface PageDiff {
  readonly fresh: readonly Application[];
  readonly changed: readonly Application[];
  /** Unchanged applications that were marked absent and are shown again. */
  readonly returned: readonly bigint[];
  readonly writes: number;
  readonly seen: Seen;
  /** The other lane of this advertiser has not released its lease, so its requests may be running. */
  readonly otherLane: boolean;
}

/** Compares the page with the stored rows. Most polls return an empty page; `loadAround` may handle many of those in one statement. */
export async function diffPage(
  db: Queryable,
  page: ReadPage,
  loadAround: (page: ReadPage) => Promise<Surroundings | undefined> = async (one) =>
    (await loadSurroundings(db, [one]))[0],
): Promise<PageDiff> {
  if (page.applications.length + page.rejects.length > 0) return await comparePage(db, page);
  const { otherLane = false, unshown = [] } = (await loadAround(page)) ?? {};
  return { fresh: [], changed: [], returned: [], writes: 0, seen: { unheld: [], unshown }, otherLane };
}

/** True when both diffs of a page are equal. */
export function isSameDiff(one: PageDiff, other: PageDiff): boolean {
  const toText = ({ fresh, changed, returned, seen }: PageDiff) =>
    [fresh.map((a) => a.id), changed.map((a) => a.id), returned, seen.unshown.map(({ id, old }) => `${id}${old}`)].join(
      ';',
    );
  return toText(one) === toText(other);
}

async function comparePage(db: Queryable, page: ReadPage): Promise<PageDiff> {
  const [{ verdicts, otherLane }, unshown] = await Promise.all([loadVerdicts(db, page), loadUnshown(db, page)]);
  const pick = (verdict: 'fresh' | 'changed' | 'returned') =>
    page.applications.filter((_, at) => verdicts[at] === letters[verdict]);
  const fresh = pick('fresh');
  const changed = pick('changed');
  // Elements in quarantine were received earlier: they do not show that the source still has the application.
  const returned = page.replayed === undefined ? pick('returned').map((a) => a.id) : [];
  const writes = fresh.length + changed.length + returned.length + page.rejects.length;
  const seen = { unheld: fresh.map((a) => a.id), unshown };
  return { fresh, changed, returned, writes, seen, otherLane };
}

/** Each verdict is one letter, and a page's verdicts are one string: a row for each would cost more than the comparison. */
const letters = { fresh: 'f', changed: 'c', returned: 'r', erased: 'e', unchanged: '.' };

/**
 * One index lookup per id, and only one in all where nothing is stored between the page's lowest and highest id, as in a first load. LIMIT
 * keeps this plan: a plain join was planned as a hash of all rows of the advertiser (measured at 20,000 applications: 12.8 ms a page
 * instead of 1.7 ms).
 */
async function loadVerdicts(db: Queryable, page: ReadPage): Promise<{ verdicts: string; otherLane: boolean }> {
  const ids = page.applications.map((a) => a.id);
  const [row] = await db.query<{ verdicts: string | null; other_lane: boolean }>(
    `SELECT EXISTS (SELECT 1 FROM intake.leases WHERE name = $4 AND lane <> $5 AND expires_at > '-infinity') AS other_lane,
       string_agg(CASE WHEN a.application_id IS NULL THEN '${letters.fresh}'
                       WHEN a.erased_at IS NOT NULL THEN '${letters.erased}'
                       WHEN a.content_hash <> decode(p.hash, 'hex') AND (a.facts_hash IS DISTINCT FROM decode(p.facts, 'hex') OR ${isHashSignal})
                         THEN '${letters.changed}'
                       WHEN a.absent_since IS NOT NULL THEN '${letters.returned}'
                       ELSE '${letters.unchanged}' END, '' ORDER BY p.at) AS verdicts
     FROM unnest($2::bigint[], $3::text[], $8::text[]) WITH ORDINALITY AS p (id, hash, facts, at)
     LEFT JOIN LATERAL (
       SELECT application_id, content_hash, facts_hash, erased_at, absent_since FROM intake.applications
       WHERE advertiser_id = $1 AND application_id = p.id AND (
         SELECT application_id FROM intake.applications WHERE advertiser_id = $1 AND application_id >= $6
         ORDER BY application_id LIMIT 1) <= $7
       LIMIT 1) AS a ON true`,
    [
      page.advertiserId,
      ids,
      page.applications.map((a) => a.contentHash),
      page.lease.name,
      page.lease.lane,
      ids.reduce((low, id) => (id < low ? id : low), ids[0] ?? 0n),
      ids.reduce((high, id) => (id > high ? id : high), ids[0] ?? 0n),
      page.applications.map((a) => a.factsHash),
    ],
  );
  return { verdicts: row?.verdicts ?? '', otherLane: row?.other_lane ?? false };
}

/** What the diff of an empty page needs. */
export interface Surroundings {
  readonly otherLane: boolean;
  readonly unshown: readonly UnshownId[];
}

/**
 * When application `a` was stored. A time in the future came from a wrong clock and counts as long ago. It is compared with
 * `clock_timestamp()` and not with `now()`, because another lane may have stored the row since this transaction began.
 */
const storedAt = `(CASE WHEN a.first_seen_at > clock_timestamp() THEN '-infinity' ELSE a.first_seen_at END)`;

/** Stored ids in the requested range as text, with the suffix ` old` where they were stored before the sweep began. */
const heldSql = `SELECT a.application_id::text || CASE WHEN ${storedAt} < q.started_at THEN ' old' ELSE '' END
  FROM intake.applications a
  WHERE a.advertiser_id = q.advertiser_id AND a.application_id >= q.low AND (q.high IS NULL OR a.application_id <= q.high)
    AND ${storedAt} <= q.asked_at AND (a.missing_since IS NULL OR a.missing_since >= q.started_at) AND a.erased_at IS NULL`;

function toUnshown(text: string): UnshownId {
  const [id = '', mark] = text.split(' ');
  return { id: BigInt(id), old: mark === 'old' };
}

/** Loads the stored ids in the requested ranges of many empty pages in one statement: most polls of most advertisers return nothing. */
export async function loadSurroundings(db: Queryable, pages: readonly ReadPage[]): Promise<Surroundings[]> {
  const rows = await db.query<{ other_lane: boolean; unshown: string[] }>(
    `SELECT EXISTS (SELECT 1 FROM intake.leases l WHERE l.name = q.name AND l.lane <> q.lane AND l.expires_at > '-infinity') AS other_lane,
       CASE WHEN q.from_top THEN ARRAY(${heldSql} ORDER BY a.application_id DESC LIMIT q.most)
         ELSE ARRAY(${heldSql} ORDER BY a.application_id LIMIT q.most) END AS unshown
     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::bigint[], $8::boolean[],
         $9::timestamptz[])
       WITH ORDINALITY AS q (name, lane, advertiser_id, low, high, started_at, most, from_top, asked_at, nth) ORDER BY q.nth`,
    [
      pages.map((page) => page.lease.name),
      pages.map((page) => page.lease.lane),
      pages.map((page) => page.advertiserId),
      pages.map((page) => page.asked?.low ?? null),
      pages.map((page) => page.asked?.high ?? null),
      pages.map((page) => page.sweep.startedAt),
      pages.map((page) => page.asked?.limit ?? 0),
      pages.map((page) => page.asked?.fromTop ?? false),
      pages.map((page) => page.askedAt),
    ],
  );
  return rows.map((row) => ({ otherLane: row.other_lane, unshown: row.unshown.map(toUnshown) }));
}

async function loadUnshown(db: Queryable, page: ReadPage): Promise<UnshownId[]> {
  if (page.asked === null) return [];
  return await db.query<{ id: bigint; old: boolean }>(
    `SELECT application_id AS id, ${storedAt} < $4 AS old FROM intake.applications a
     WHERE advertiser_id = $1 AND application_id >= $2 AND ($3::bigint IS NULL OR application_id <= $3)
       AND ${storedAt} <= $7 AND (missing_since IS NULL OR missing_since >= $4) AND erased_at IS NULL
       AND application_id NOT IN (SELECT unnest($5::bigint[]))
     ORDER BY application_id ${page.asked.fromTop ? 'DESC' : 'ASC'} LIMIT $6`,
    [
      page.advertiserId,
      page.asked.low,
      page.asked.high,
      page.sweep.startedAt,
      page.applications.map((a) => a.id),
      page.asked.limit,
      page.askedAt,
    ],
  );
}

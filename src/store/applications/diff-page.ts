// A page against what is held: which of its applications are new, changed or back, and which held ones did not come. Reads only, so
// that an unchanged page costs no transaction id. commit-page.ts writes what follows from it.
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
  /** The sweep for which it was asked; its row appears with the first page that is worth one. */
  readonly sweep: Sweep;
  readonly applications: readonly Application[];
  readonly rejects: readonly Reject[];
  /** The elements of quarantine that applications were read from: one that was erased meanwhile takes its application along. */
  readonly replayed?: readonly Replayed[] | undefined;
  /** When the question was sent, by the database's clock. */
  readonly askedAt: Date;
  /** The ids that the question was about: what was stored there before it was sent and did not come is reported. */
  readonly asked: ExpectedIds | null;
}

/** The page against what was held before it. */
export interface Seen {
  /** Ids on the page that were not held. */
  readonly unheld: readonly bigint[];
  /** What `findUnshown` (domain/coverage/unshown.ts) finds; a test checks that the statements below give the same. */
  readonly unshown: readonly UnshownId[];
}

/** The difference between a page and what is stored. */
export interface PageDiff {
  readonly fresh: readonly Application[];
  readonly changed: readonly Application[];
  /** Unchanged, but marked absent earlier: here they are again. */
  readonly returned: readonly bigint[];
  readonly writes: number;
  readonly seen: Seen;
  /** Another lane of this advertiser has not given its lease back, so its requests may be under way. */
  readonly otherLane: boolean;
}

/** Compares the page with what is stored. Many empty pages, as most polls bring, may share one statement by `loadAround`. */
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

/** True when both say the same of a page. */
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
  // What was read from quarantine was shown long ago: it says nothing of what the source shows now.
  const returned = page.replayed === undefined ? pick('returned').map((a) => a.id) : [];
  const writes = fresh.length + changed.length + returned.length + page.rejects.length;
  const seen = { unheld: fresh.map((a) => a.id), unshown };
  return { fresh, changed, returned, writes, seen, otherLane };
}

/** A verdict is a letter, and a page's are a text: rows of their own would cost more than the comparison. */
const letters = { fresh: 'f', changed: 'c', returned: 'r', erased: 'e', unchanged: '.' };

/**
 * One probe of an index per id, and a single one where nothing at all is held between the page's ends, as in a first load. LIMIT keeps it
 * so: a plain join was planned as a hash of all the advertiser's rows, 12.8 ms a page at 20,000 applications instead of 1.7 (measured).
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

/** What stands around an answer that brought nothing. */
export interface Surroundings {
  readonly otherLane: boolean;
  readonly unshown: readonly UnshownId[];
}

/**
 * When application `a` was stored. A time in the future came from a wrong clock and counts as long ago. Compared with the clock and not
 * with `now()`: another lane may have stored it since this transaction began.
 */
const storedAt = `(CASE WHEN a.first_seen_at > clock_timestamp() THEN '-infinity' ELSE a.first_seen_at END)`;

/** An id as text, marked where it was stored before the sweep began. */
const heldSql = `SELECT a.application_id::text || CASE WHEN ${storedAt} < q.started_at THEN ' old' ELSE '' END
  FROM intake.applications a
  WHERE a.advertiser_id = q.advertiser_id AND a.application_id >= q.low AND (q.high IS NULL OR a.application_id <= q.high)
    AND ${storedAt} <= q.asked_at AND a.missing_since IS NULL AND a.erased_at IS NULL`;

function toUnshown(text: string): UnshownId {
  const [id = '', mark] = text.split(' ');
  return { id: BigInt(id), old: mark === 'old' };
}

/** The surroundings of many empty answers in one statement: most polls of most advertisers bring nothing. */
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
       AND ${storedAt} <= $7 AND missing_since IS NULL AND erased_at IS NULL AND application_id NOT IN (SELECT unnest($5::bigint[]))
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

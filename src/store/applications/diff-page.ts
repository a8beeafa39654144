// Compares a page with the stored rows: which of its applications are new, changed or shown again, and which stored ones are not on it.
// Reads only, so that an unchanged page costs no transaction id. commit-page.ts writes the difference.
import type { KeyObject } from 'node:crypto';
import type { Application, Reject } from '../../domain/application.ts';
import { type Applicant, chooseCopy, isNewcomer } from '../../domain/copies.ts';
import { type Covered, lastPosition } from '../../domain/coverage/position.ts';
import { type LackingId, mostLacking } from '../../domain/coverage/question.ts';
import type { WriteContext } from '../accounts/leases.ts';
import { type Account, isOwnKey, mayStore, toClaimant, toPersonKeys } from '../gate.ts';
import { columnsOf, type Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import type { Sweep } from '../sweeps/sweeps.ts';
import { toMembersColumn } from './insert.ts';
import type { Replayed } from './quarantine.ts';
import { hasSameFacts, isHashSignal, volatileNames } from './volatile.ts';

/** One list answer, ready to be compared and committed. */
export interface ReadPage extends WriteContext {
  /** The sweep that requested the page. Its row is inserted with the first page that is recorded. Null for a page outside of sweeps. */
  readonly sweep: Sweep | null;
  readonly applications: readonly Application[];
  readonly rejects: readonly Reject[];
  /** All copies of the ids that name several people. */
  readonly shared: readonly Application[];
  /** The quarantined elements that the applications were parsed from. If one is erased meanwhile, its application is not stored. */
  readonly replayed?: readonly Replayed[] | undefined;
  /** When the request was sent, by the database's clock. */
  readonly askedAt: Date;
  /** The requested ids. Applications among them that were stored before the request and are not on the page are lacking. */
  readonly asked: Covered | null;
}

export interface PageDiff {
  readonly fresh: readonly Application[];
  readonly changed: readonly Application[];
  /** Unchanged applications that were marked absent and are shown again. */
  readonly returned: readonly bigint[];
  /** Applications whose id is another person's. */
  readonly strangers: readonly Application[];
  readonly writes: number;
  /** The first stored ids of the requested range that the page does not show; a test compares the statements with a plain function. */
  readonly lacking: readonly LackingId[];
  /** The other lane of this advertiser has not released its lease, so its requests may be running. */
  readonly otherLane: boolean;
}

export function isSameDiff(one: PageDiff, other: PageDiff): boolean {
  const toText = ({ fresh, changed, returned, strangers, lacking }: PageDiff) =>
    [
      fresh.map((a) => a.id),
      changed.map((a) => a.id),
      returned,
      strangers.map((a) => a.contentHash),
      lacking.map(({ id, old }) => `${id}${old}`),
    ].join(';');
  return toText(one) === toText(other);
}

/** A poll without news shows a few ids. */
const mostOfPoll = 20;

/** Compares the page with the stored rows. `loadAround` may handle many polls in one statement. */
export async function diffPage(
  db: Queryable,
  privacyKey: KeyObject,
  page: ReadPage,
  loadAround?: (page: ReadPage) => Promise<Surroundings>,
): Promise<PageDiff> {
  const account = { db, privacyKey, advertiserId: page.advertiserId };
  const { applications, others: copies } = await chooseCopies(account, page);
  const [verdicts, around] = await Promise.all([
    loadVerdicts(db, page.advertiserId, applications),
    loadAround && applications.length <= mostOfPoll
      ? loadAround(page)
      : loadSurroundings(db, [page]).then(([one]) => one),
  ]);
  const { otherLane = false, lacking = [] } = around ?? {};
  const pick = (verdict: Verdict) => applications.filter((_, at) => verdicts[at] === verdict);
  const fresh = pick('fresh');
  const rows = await loadApplicants(account, pick('changed'));
  // A row does not pass to another person than the one it names.
  const isNew = (one: Application) => {
    const row = rows.get(one.id);
    return row !== undefined && isNewcomer(row, one);
  };
  const newcomers = new Set(pick('changed').filter(isNew));
  const changed = pick('changed').filter((one) => !newcomers.has(one));
  const claimants = await findClaimants(account, pick('erased'), copies);
  // Elements in quarantine stay there, and were received earlier: they do not show that the source still has the application.
  const isReplay = page.replayed !== undefined;
  const strangers = isReplay ? [] : [...newcomers, ...claimants];
  const returned = isReplay ? [] : pick('returned').map((a) => a.id);
  const writes = fresh.length + changed.length + returned.length + page.rejects.length + strangers.length;
  return { fresh, changed, returned, strangers, writes, lacking, otherLane };
}

/** The other copies of the ids, and who is shown under an erased one's id: its row names nobody, but the gate knows who it was not. */
async function findClaimants(account: Account, erased: readonly Application[], copies: readonly Application[]) {
  const gone = new Set(erased.map(({ id }) => id));
  const all = [...erased, ...copies];
  const may = await mayStore(account, all.map(toClaimant));
  return all.filter(({ id }, at) => may[at] || !gone.has(id));
}

/** Those of these applications whose id an erased one had that was another person's, as far as the gate knows. */
export async function findErasedOthers(account: Account, applications: readonly Application[]) {
  const rows = await account.db.query<Columns<'applications', 'application_id'>>(
    `SELECT application_id FROM intake.applications
     WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[]) AND erased_at IS NOT NULL`,
    [account.advertiserId, applications.map(({ id }) => id)],
  );
  const gone = new Set(rows.map((row) => row.application_id));
  const claimants = applications.filter(({ id }) => gone.has(id));
  return new Set(await findClaimants(account, claimants, []));
}

/** Where an id names several people, its application is the copy of the person whose row it is. */
async function chooseCopies(account: Account, { applications: first, shared }: ReadPage) {
  if (shared.length === 0) return { applications: first, others: [] };
  const rows = await loadApplicants(account, shared);
  const copies = [...Map.groupBy(shared, ({ id }) => id)];
  const chosen = new Map(copies.map(([id, group]) => [id, chooseCopy(group, rows.get(id))]));
  const applications = first.map((one) => chosen.get(one.id)?.application ?? one);
  return { applications, others: [...chosen.values()].flatMap(({ others }) => others) };
}

/**
 * Whose the stored rows are. A row that an answer has emptied of account and address is told by its key: one of these applications has it, or
 * the key stands for an account, which is nobody else's. Of a text of 16 MB only what may name somebody is read: a page has many ids.
 */
export async function loadApplicants(account: Account, applications: readonly Application[]) {
  if (applications.length === 0) return new Map<bigint, Applicant>();
  const rows = await account.db.query<Applicant & { readonly id: bigint; readonly personKey: string | null }>(
    `SELECT application_id AS id, person_key AS "personKey", job_seeker_id AS "jobSeekerId", email, phone, first_name AS "firstName", last_name AS "lastName",
       CASE WHEN num_nulls(job_seeker_id, email, phone, first_name, last_name) > 0 THEN (
         SELECT jsonb_object_agg(key, value)::text FROM jsonb_each(raw) WHERE pg_column_size(value) < 100000
           AND ltrim(lower(key), '@') IN ('jobseekerid', 'email', 'phone', 'firstname', 'lastname')) END AS raw
     FROM intake.applications WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[])`,
    [account.advertiserId, applications.map(({ id }) => id)],
  );
  const toKeys = ({ jobSeekerId, email }: Applicant) =>
    toPersonKeys(account, { accountIds: [jobSeekerId ?? ''], emails: [email ?? ''] });
  const sameId = Map.groupBy(applications, ({ id }) => id);
  const toApplicant = (row: (typeof rows)[number]): Applicant => {
    const { id, personKey } = row;
    if (personKey === null || isOwnKey(account, row)) return row;
    const shown = sameId.get(id)?.find((one) => toKeys(one).includes(personKey));
    return { ...row, jobSeekerId: shown ? shown.jobSeekerId : personKey, email: shown ? shown.email : row.email };
  };
  return new Map(rows.map((row) => [row.id, toApplicant(row)]));
}

type Verdict = 'fresh' | 'erased' | 'changed' | 'returned' | 'unchanged';

/**
 * One index lookup per id, and one in all where nothing is stored between the page's ends, as in a first load. LIMIT keeps this plan: a plain
 * join was planned as a hash of the advertiser's rows (measured at 20,000: 12.8 ms a page, not 1.7). One value: rows would cost more.
 */
async function loadVerdicts(db: Queryable, advertiserId: bigint, applications: readonly Application[]) {
  if (applications.length === 0) return [];
  const [row] = await db.query<{ verdicts: Verdict[] }>(
    `SELECT json_agg(CASE WHEN a.application_id IS NULL THEN 'fresh'
                          WHEN a.erased_at IS NOT NULL THEN 'erased'
                          WHEN a.content_hash <> decode(p.hash, 'hex') AND NOT (${hasSameFacts}
                            AND coalesce(a.members, '{}') - ${volatileNames('$1')} = coalesce(p.members::jsonb, '{}') - ${volatileNames('$1')}
                            AND (a.facts_hash = decode(p.facts, 'hex') AND octet_length(a.facts_hash) = 32 OR NOT ${isHashSignal})) THEN 'changed'
                          WHEN a.absent_since IS NOT NULL THEN 'returned'
                          ELSE 'unchanged' END ORDER BY p.at) AS verdicts
     FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS p (id, hash, facts, members, at)
     LEFT JOIN LATERAL (
       SELECT application_id, content_hash, facts_hash, members, erased_at, absent_since FROM intake.applications
       WHERE advertiser_id = $1 AND application_id = p.id AND (
         SELECT application_id FROM intake.applications
         WHERE advertiser_id = $1 AND application_id >= (SELECT min(id) FROM unnest($2::bigint[]) AS id)
         ORDER BY application_id LIMIT 1) <= (SELECT max(id) FROM unnest($2::bigint[]) AS id)
       LIMIT 1) AS a ON true`,
    [advertiserId, ...columnsOf(applications, 'id', 'contentHash', 'factsHash'), applications.map(toMembersColumn)],
  );
  return row?.verdicts ?? [];
}

/** What surrounds the applications of a page. */
export type Surroundings = Pick<PageDiff, 'otherLane' | 'lacking'>;

/** When `a` was stored; in the future: long ago. By the clock, not now(): another lane may have stored it since this transaction began. */
const storedAt = `(CASE WHEN a.first_seen_at > clock_timestamp() THEN '-infinity' ELSE a.first_seen_at END)`;

/**
 * The stored ids that these pages should show and do not, in one statement; not those that were missing before the sweep, or that two of its
 * answers have lacked. Those that another sweep marked since are among them: the proof has to mention all that was stored when it began.
 */
export async function loadSurroundings(db: Queryable, pages: readonly ReadPage[]): Promise<Surroundings[]> {
  const shown = pages.flatMap(({ applications }, at) => applications.map(({ id }) => ({ nth: at + 1, id })));
  const asked = pages.map(({ lease, advertiserId, asked: range, sweep, askedAt }) => {
    const { low = null, high = null } = range ?? {};
    const { startedAt = askedAt, sweepId = null } = sweep ?? {};
    return { ...lease, advertiserId, low, high: high ?? lastPosition, startedAt, sweepId, askedAt };
  });
  const rows = await db.query<{ otherLane: boolean; lacking: [id: string, old: boolean, again: boolean][] }>(
    `SELECT EXISTS (SELECT 1 FROM intake.leases l WHERE l.name = q.name AND l.lane <> q.lane AND l.expires_at > '-infinity') AS "otherLane",
       coalesce((SELECT json_agg(json_build_array(e.id::text, e.old, e.again)) FROM (
         SELECT a.application_id AS id, ${storedAt} < q.started_at AS old, l.gone IS NOT NULL AS again
         FROM intake.applications a
         LEFT JOIN intake.lacked l ON l.advertiser_id = a.advertiser_id AND l.sweep_id = q.sweep_id AND l.application_id = a.application_id
         WHERE a.advertiser_id = q.advertiser_id AND a.application_id >= q.low AND a.application_id <= q.high
           AND ${storedAt} <= q.asked_at AND (a.missing_since IS NULL OR a.missing_since >= q.started_at) AND a.erased_at IS NULL
           AND l.gone IS NOT TRUE AND (q.nth, a.application_id) NOT IN (SELECT * FROM unnest($9::bigint[], $10::bigint[]))
         ORDER BY a.application_id LIMIT ${mostLacking}) AS e), '[]') AS lacking
     FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::bigint[], $8::timestamptz[])
       WITH ORDINALITY AS q (name, lane, advertiser_id, low, high, started_at, sweep_id, asked_at, nth) ORDER BY q.nth`,
    [
      ...columnsOf(asked, 'name', 'lane', 'advertiserId', 'low', 'high', 'startedAt', 'sweepId', 'askedAt'),
      ...columnsOf(shown, 'nth', 'id'),
    ],
  );
  const toLacking = ([id, old, again]: (typeof rows)[number]['lacking'][number]) => ({ id: BigInt(id), old, again });
  return rows.map(({ otherLane, lacking }) => ({ otherLane, lacking: lacking.map(toLacking) }));
}

// The gate and its tombstones, keyed hashes of erased data that must not return. A writer asks it inside its transaction; the lane lock keeps
// an erasure and a page's commit apart. Also the person key, a keyed hash that stands for a person where names are not allowed.
import { createHmac, type KeyObject } from 'node:crypto';
import type { Application } from '../domain/application.ts';
import { toSoughtText } from '../domain/erasure.ts';
import {
  findAddresses,
  listTexts,
  mostNamed,
  parseAddress,
  readMembers,
  toAccountId,
  toBareAddress,
} from '../domain/person.ts';
import { columnsOf, isAhead, type Queryable } from './postgres/database.ts';
import type { Columns } from './schema/rows.ts';

/** An advertiser's rows, and the key of its person keys and tombstones. */
export interface Account {
  readonly db: Queryable;
  readonly privacyKey: KeyObject;
  readonly advertiserId: bigint;
}

export type Keyed = Omit<Account, 'db'>;

type Named = Pick<Application, 'jobSeekerId' | 'email'>;

/** By the account, or else by the address; null without both. A Buffer as key takes ten times as long as a KeyObject. */
export function toPersonKey(of: Keyed, { jobSeekerId, email }: Named) {
  // Placeholder ids name no account; otherwise all applications with one would be the same person.
  return toKey(of, toAccountId(jobSeekerId) ?? parseAddress(email ?? ''));
}

/** Earlier versions made keys of placeholders, too. A row of which an answer has taken account and address keeps its person's key. */
export function isOwnKey(of: Keyed, row: Named & { readonly personKey: string | null }): boolean {
  const before = row.jobSeekerId?.trim() ? row.jobSeekerId : row.email?.trim().toLowerCase();
  return [toPersonKey(of, row), toKey(of, before)].includes(row.personKey);
}

function toKey({ privacyKey, advertiserId }: Keyed, person: string | null | undefined): string | null {
  if (!person) return null;
  return createHmac('sha256', privacyKey).update(`${advertiserId}:${person}`).digest('hex').slice(0, 32);
}

/** One key for each address and each account id of a profile. */
export function toPersonKeys(of: Keyed, { emails, accountIds }: Record<'emails' | 'accountIds', readonly string[]>) {
  const keys = [
    ...emails.map((email) => toAddressKey(of, email)),
    ...accountIds.map((jobSeekerId) => toPersonKey(of, { jobSeekerId, email: null })),
  ];
  return [...new Set(keys.filter((one) => one !== null))];
}

/** The key of a person who is known by an address alone, such as a prefill's candidate. */
export function toAddressKey(of: Keyed, email: string | null): string | null {
  return toKey(of, email && toBareAddress(email).toLowerCase());
}

/** What a tombstone stands for; `account` and `address`: by its id, that an application had one, which has a tombstone too. */
export type Remembered = 'application' | 'quarantine' | 'request' | 'account' | 'address';

/** The keyed hash of an erased id; without the key it does not reveal the id. */
export function toTombstone({ privacyKey, advertiserId }: Keyed, what: Remembered, id: string): Buffer {
  return createHmac('sha256', privacyKey).update(`erased ${what}:${advertiserId}:${id}`).digest();
}

/** Whom a writer is about to store: an application, an element without a usable id, or a prefill. */
export interface Person {
  /** Of an application. Without it, an erased account or address is enough to keep the person out. */
  readonly applicationId?: bigint;
  /** Of an element in quarantine. */
  readonly identity?: string;
  /** Of an element whose id another person's application has: whom it would be as an application. */
  readonly holder?: Person | undefined;
  readonly accounts: readonly string[];
  readonly addresses: readonly string[];
  /** When a prefill began: an erasure before that does not concern it. A time in the future came from a wrong clock and counts as old. */
  readonly begunAt?: Date;
}

/** Lists and objects are only in the JSON. Members of other names may name other people, such as referees. */
export function toPerson({ id, jobSeekerId, email, raw }: PersonFacts): Person {
  return {
    applicationId: id,
    // Both are seldom asked for, and then only is the JSON parsed.
    get accounts() {
      if (jobSeekerId !== null) return [jobSeekerId];
      return listTexts(readMembers(raw, ['jobseekerid'])).slice(0, mostNamed + 1);
    },
    get addresses() {
      return email === null
        ? findAddresses(readMembers(raw, ['email']))
        : [email, ...findAddresses(JSON.stringify(email))];
    },
  };
}

/** The same person where the id is another person's. */
export function toClaimant(application: PersonFacts): Person {
  const holder = toPerson(application);
  return { holder, accounts: holder.accounts, addresses: holder.addresses };
}

export type PersonFacts = Pick<Application, 'id' | 'jobSeekerId' | 'email' | 'raw'>;

/** By what a person is told from another, and found again. */
export type Names = Pick<Person, 'accounts' | 'addresses'>;

export function toNames({ accounts, addresses }: Names) {
  return {
    account: new Set(accounts.flatMap((id) => toAccountId(id) ?? [])),
    address: new Set(addresses.flatMap((text) => parseAddress(text) ?? [])),
  };
}

export function listKinds(person: Names) {
  const names = toNames(person);
  return (['account', 'address'] as const).filter((kind) => names[kind].size > 0);
}

/** What stands in the place of an address may be any word, which names nobody. */
export function joinNames(people: readonly Names[]) {
  const addresses = people.flatMap((person) => person.addresses).filter((text) => parseAddress(text) !== null);
  return { accounts: people.flatMap((person) => person.accounts), addresses };
}

/** The texts of the requests that would erase this person. */
function toRequests({ accounts, addresses }: Names): string[] {
  const requests = [
    ...addresses.map((email) => toSoughtText({ by: 'address', email })),
    ...accounts.flatMap((id) => (toAccountId(id) === null ? [] : toSoughtText({ by: 'jobseeker', jobSeekerId: id }))),
  ];
  return [...new Set(requests)];
}

/**
 * The gate: may these people be stored? Not an application whose id was erased, nor an erased element; nor anybody whose account or address
 * was erased with `--and-future`; nor, where there is no application id, anybody whose account or address was erased, or a text that names
 * too many people to ask for all; nor anybody with the id of an erased application, where neither an account nor an address shows that it
 * was somebody else's. A page above all erased ids, such as new arrivals, costs one index lookup and no hash.
 */
export async function mayStore(account: Account, people: readonly Person[]): Promise<boolean[]> {
  if (people.length === 0) return [];
  const [known] = await account.db.query<Columns<'advertisers', 'erased_through'> & { any: boolean; future: boolean }>(
    `SELECT (SELECT erased_through FROM intake.advertisers WHERE advertiser_id = $1) AS erased_through,
       EXISTS (SELECT 1 FROM intake.erasures WHERE advertiser_id = $1) AS any,
       EXISTS (SELECT 1 FROM intake.erasures WHERE advertiser_id = $1 AND future) AS future`,
    [account.advertiserId],
  );
  const { erased_through: through = null, any = false, future = false } = known ?? {};
  if (!any) return people.map(() => true);
  const stopped = people.map((): Remembered[] => []);
  let asked: Asked[] = [];
  for (const [at, person] of people.entries()) {
    const { applicationId, identity, holder, begunAt = null } = person;
    const id = applicationId ?? holder?.applicationId;
    const lacksId = applicationId === undefined;
    const ask = (what: Remembered, text: string) => asked.push({ at, what, text, lacksId, begunAt });
    if (id !== undefined && through !== null && id <= through)
      for (const what of ['application', ...(holder ? listKinds(holder) : [])] as const) ask(what, String(id));
    if (identity !== undefined) ask('quarantine', identity);
    if (future || lacksId) {
      // Read once: it may take a search of the person's text.
      const named = { accounts: person.accounts, addresses: person.addresses };
      const isCrowd = lacksId && Math.max(named.accounts.length, named.addresses.length) > mostNamed;
      if (isCrowd) stopped[at]?.push('request');
      else for (const text of toRequests(named)) ask('request', text);
    }
    if (asked.length < mostAsked && at < people.length - 1) continue;
    for (const found of await findTombstones(account, asked)) stopped[found.at]?.push(found.what);
    asked = [];
  }
  return stopped.map((found) => !isStopped(found));
}

interface Asked {
  readonly at: number;
  readonly what: Remembered;
  readonly text: string;
  readonly lacksId: boolean;
  readonly begunAt: Date | null;
}

/** A page may name millions of people. So many hashes take a tenth of a second, and then the event loop turns. */
const mostAsked = 10_000;

async function findTombstones(account: Account, asked: readonly Asked[]) {
  if (asked.length === 0) return [];
  return await account.db.query<Pick<Asked, 'at' | 'what'>>(
    `SELECT a.at, a.what
     FROM unnest($2::bytea[], $3::int[], $4::text[], $5::bool[], $6::timestamptz[]) AS a (tombstone, at, what, lacks_id, begun_at)
     JOIN intake.erasures e ON e.advertiser_id = $1 AND e.tombstone = a.tombstone
     WHERE a.what <> 'request' OR e.future
       OR (a.lacks_id AND (a.begun_at IS NULL OR e.erased_at >= a.begun_at OR ${isAhead('a.begun_at')}))`,
    [
      account.advertiserId,
      asked.map(({ what, text }) => toTombstone(account, what, text)),
      ...columnsOf(asked, 'at', 'what', 'lacksId', 'begunAt'),
    ],
  );
}

function isStopped(found: readonly Remembered[]): boolean {
  const isTold = found.includes('account') || found.includes('address');
  return found.some((what) => what === 'quarantine' || what === 'request' || (what === 'application' && !isTold));
}

/** Counts people whom the gate kept out. Nothing else of them is kept. */
export async function noteKeptOut({ db, advertiserId }: Account, people: number): Promise<void> {
  if (people === 0) return;
  const sql = `UPDATE intake.advertisers SET kept_out = kept_out + $2 WHERE advertiser_id = $1`;
  await db.query(sql, [advertiserId, people]);
}

/** The applications that may be stored; the others are counted. One that was erased since the diff stays erased. */
export async function withoutErased(account: Account, applications: readonly Application[]) {
  const may = await mayStore(account, applications.map(toPerson));
  const kept = applications.filter((_, at) => may[at]);
  await noteKeptOut(account, applications.length - kept.length);
  return kept;
}

/** Adds or renews tombstones. The time of a request's matters: a prefill that began before it is kept out. */
export async function setTombstones(account: Account, jobId: string, tombstones: readonly Buffer[], future = false) {
  if (tombstones.length === 0) return;
  await account.db.query(
    `INSERT INTO intake.erasures AS e (advertiser_id, tombstone, job_id, future)
     SELECT DISTINCT $1::bigint, t, $2::uuid, $4::bool FROM unnest($3::bytea[]) AS t
     ON CONFLICT (advertiser_id, tombstone) DO UPDATE
       SET job_id = excluded.job_id, erased_at = excluded.erased_at, future = e.future OR excluded.future`,
    [account.advertiserId, jobId, tombstones, future],
  );
}

/** Whom a job erases. */
export interface ErasedPeople {
  readonly applicationIds: readonly bigint[];
  /** Identities of quarantined elements, in hex. */
  readonly identities: readonly string[];
  /** Of the applications and of the request. What else names one of them goes too, and is kept out. */
  readonly names: Names;
  /** The applications whose accounts and addresses are among the names. */
  readonly people: readonly Person[];
}

/** Writes the tombstones that keep them out. */
export async function rememberErased(account: Account, jobId: string, erased: ErasedPeople): Promise<void> {
  const { applicationIds, identities, people, names } = erased;
  await account.db.query(
    `UPDATE intake.advertisers SET erased_through = greatest(erased_through, (SELECT max(id) FROM unnest($2::bigint[]) AS id))
     WHERE advertiser_id = $1`,
    [account.advertiserId, applicationIds],
  );
  const toTombstones = (what: Remembered, ids: readonly string[]) => ids.map((id) => toTombstone(account, what, id));
  await setTombstones(account, jobId, [
    ...toTombstones('application', applicationIds.map(String)),
    ...toTombstones('quarantine', identities),
    ...people.flatMap((one) => listKinds(one).flatMap((kind) => toTombstones(kind, [String(one.applicationId)]))),
    // The source may send the same application again without a usable id.
    ...toTombstones('request', toRequests(names)),
  ]);
}

/** Remembers new applications that the gate has stopped, as if each had been stored and then erased by the request that stopped it. */
export async function rememberStopped(account: Account, stopped: readonly Application[]): Promise<void> {
  for (const application of stopped) {
    const person = toPerson(application);
    const requests = toRequests(person).map((text) => toTombstone(account, 'request', text));
    const [job] = await account.db.query<Columns<'erasures', 'job_id'>>(
      `SELECT job_id FROM intake.erasures WHERE advertiser_id = $1 AND tombstone = ANY ($2::bytea[]) AND future LIMIT 1`,
      [account.advertiserId, requests],
    );
    if (job === undefined) continue;
    const erased = { applicationIds: [application.id], identities: [], people: [person], names: joinNames([person]) };
    await rememberErased(account, job.job_id, erased);
  }
}

/** Renews the tombstones of earlier jobs of this request, so that they also keep out a prefill that began since. */
export async function renewTombstones({ db, advertiserId }: Account, sought: Buffer): Promise<void> {
  await db.query(
    `UPDATE intake.erasures SET erased_at = now() WHERE advertiser_id = $1
       AND job_id IN (SELECT job_id FROM intake.erasure_jobs WHERE advertiser_id = $1 AND sought = $2)`,
    [advertiserId, sought],
  );
}

/** Whether PRIVACY_KEY is the key that produced the stored person keys and tombstones. `untried`: none are stored. */
export type KeyState = 'matches' | 'differs' | 'untried';

/** Recomputes person keys of the oldest and newest applications that name somebody, and the tombstones of the highest erased ids. */
export async function loadKeyState(db: Queryable, privacyKey: KeyObject): Promise<KeyState> {
  // At each end only so many are searched: a start costs the same however many rows retention has emptied.
  const ends = (order: string) => `(SELECT e.job_seeker_id AS "jobSeekerId", e.email, e.person_key AS "personKey" FROM (
      SELECT * FROM intake.applications a WHERE a.advertiser_id = v.advertiser_id
      ORDER BY a.application_id ${order} LIMIT 100) AS e
    WHERE e.person_key IS NOT NULL AND num_nonnulls(e.job_seeker_id, e.email) > 0 LIMIT 5)`;
  const people = await db.query<Parameters<typeof isOwnKey>[1] & { advertiserId: bigint }>(
    `SELECT v.advertiser_id AS "advertiserId", a.* FROM intake.advertisers v
     CROSS JOIN LATERAL (${ends('ASC')} UNION ALL ${ends('DESC')}) AS a LIMIT 500`,
  );
  const named = people.filter((one) => toPersonKey({ privacyKey, ...one }, one) !== null);
  if (named.some((one) => !isOwnKey({ privacyKey, ...one }, one))) return 'differs';
  const state = await loadTombstoneState(db, privacyKey);
  return state === 'untried' && named.length > 0 ? 'matches' : state;
}

/** Recomputes the tombstones of the highest erased ids. */
export async function loadTombstoneState(db: Queryable, privacyKey: KeyObject): Promise<KeyState> {
  const erased = await db.query<{ advertiserId: bigint; through: string }>(
    `SELECT advertiser_id AS "advertiserId", erased_through::text AS through FROM intake.advertisers WHERE erased_through IS NOT NULL`,
  );
  if (erased.length === 0) return 'untried';
  const tombstones = erased.map((row) => toTombstone({ privacyKey, ...row }, 'application', row.through));
  const remembered = await db.query(
    `SELECT 1 FROM unnest($1::bigint[], $2::bytea[]) AS t (advertiser_id, tombstone)
     JOIN intake.erasures e USING (advertiser_id, tombstone)`,
    [erased.map((row) => row.advertiserId), tombstones],
  );
  return remembered.length === erased.length ? 'matches' : 'differs';
}

// Finds a person by an application, a jobseeker account, an e-mail address or an age, and erases their rows in one transaction. Of an
// application, the advertiser, the id and the date of the erasure stay. The caller deletes the files that this file lists.
import { sharedId } from '../../domain/application.ts';
import type { ErasureCounts, Sought } from '../../domain/erasure.ts';
import { toAccountId } from '../../domain/person.ts';
import type { Account, ErasedPeople, Names, Person, PersonFacts } from '../gate.ts';
import { joinNames, listKinds, rememberErased, toNames, toPerson, toPersonKeys } from '../gate.ts';
import {
  accountIn,
  isAccountInJson,
  isAddressIn,
  isAddressInJson,
  toAccountPattern,
  toAddressPattern,
} from '../person-search.ts';
import { emptied as emptiedPrefill } from '../prefill/prefills.ts';
import type { Columns } from '../schema/rows.ts';

/** Everything that one advertiser's tables hold about a person. */
export interface FoundPerson extends ErasedPeople {
  /** Fingerprints of quarantined elements, in hex. */
  readonly fingerprints: readonly string[];
  readonly prefillIds: readonly string[];
  /** sha256 of files that are stored or in transfer. */
  readonly hashes: readonly string[];
  readonly counts: ErasureCounts;
}

/**
 * True of a row that was stored before the time $2. By the source's own date, say a wrong one of 1970, an application would be erased on its
 * arrival, and kept out by its tombstone once the source has corrected the date. A date in the future is ignored.
 */
export const isAged = {
  applications: `first_seen_at < $2::timestamptz AND (submitted_at IS NULL OR submitted_at < $2::timestamptz OR submitted_at > now())`,
  quarantine: `first_seen_at < $2::timestamptz`,
  prefills: `outcome = 'redeemed' AND redeemed_at < $2::timestamptz`,
};

const json = `concat(raw_text, ' ', raw)`;

/** Arguments that find a member of an application's JSON, in any letter case. Other members may name other people, such as referees. */
const inMember = (name: string, parts = '') =>
  `raw, 'strict $.keyvalue() ? (@.key like_regex "^@?${name}$" flag "i").value${parts}', silent => true`;

/** $2 is the searched value, $3 the limit, $4 the person's keys: a row keeps its key when the source has removed account and address. */
const isSought: Record<Sought['by'], string> = {
  application: `application_id = $2::bigint`,
  // What the source sent as a list or an object is only in the JSON, not in the column.
  jobseeker: `(${accountIn('job_seeker_id')} = $2::text OR (job_seeker_id IS NULL AND EXISTS (
    SELECT 1 FROM jsonb_path_query(${inMember('jobseekerid', '.** ? (@.type() == "string" || @.type() == "number")')}) AS id
    WHERE ${accountIn(`(id #>> '{}')`)} = $2::text)) OR person_key = ANY ($4::text[]))`,
  address: `(${isAddressIn('email', '$2')}
    OR (email IS NULL AND ${isAddressInJson(`jsonb_path_query_array(${inMember('email')})::text`, '$2')}) OR person_key = ANY ($4::text[]))`,
  retention: isAged.applications,
};

function toSoughtColumn(sought: Sought): unknown {
  if (sought.by === 'jobseeker') return toAccountId(sought.jobSeekerId);
  if (sought.by === 'address') return [toAddressPattern(sought.email)];
  return sought.by === 'retention' ? sought.before : sought.applicationId;
}

/** `lock`: the applications, until COMMIT. `alone`, as for their age: nothing goes along that only names an application's person. */
export async function findPerson(
  account: Account,
  sought: Sought,
  { lock = false, alone = sought.by === 'retention' } = {},
): Promise<FoundPerson> {
  const { db, advertiserId } = account;
  const limit = sought.by === 'retention' ? sought.limit : null;
  const asked = listNames([], sought);
  const isPerson = sought.by === 'jobseeker' || sought.by === 'address';
  const applications = await db.query<Columns<'applications', 'application_id'>>(
    `SELECT application_id FROM intake.applications WHERE advertiser_id = $1 AND ${isSought[sought.by]} AND erased_at IS NULL
     ORDER BY application_id LIMIT $3::bigint ${lock ? 'FOR UPDATE' : ''}`,
    [advertiserId, toSoughtColumn(sought), limit, ...(isPerson ? [toKeys(account, asked)] : [])],
  );
  const applicationIds = applications.map((row) => row.application_id);
  const loaded = await loadPeople(account, alone ? [] : applicationIds);
  const people = loaded.map((one) => (listKinds(one).length > 0 ? one : { ...one, ...asked }));
  const names = listNames(people, sought);
  const named = await findQuarantined(account, sought, names, applicationIds);
  const quarantined = [...named, ...(await findShared(account, people, named))];
  const prefillIds = await findPrefills(account, sought, names);
  const files = await loadFiles(account, applicationIds, prefillIds);
  return {
    applicationIds,
    fingerprints: quarantined.map((row) => row.fingerprint),
    identities: quarantined.map((row) => row.identity),
    prefillIds,
    names,
    people,
    hashes: files.map((file) => file.sha256),
    counts: {
      applications: applicationIds.length,
      quarantined: quarantined.length,
      prefills: prefillIds.length,
      files: files.length,
      shared: files.filter((file) => file.shared).length,
      keptVersions: 0,
    },
  };
}

async function loadPeople({ db, advertiserId }: Account, ids: readonly bigint[]): Promise<Person[]> {
  const rows = await db.query<PersonFacts>(
    `SELECT application_id AS id, email, job_seeker_id AS "jobSeekerId",
       coalesce(CASE WHEN email IS NULL OR job_seeker_id IS NULL THEN raw::text END, '{}') AS raw
     FROM intake.applications WHERE ${ofThese}`,
    [advertiserId, ids],
  );
  return rows.map(toPerson);
}

function toKeys(account: Account, { accounts, addresses }: Names): string[] {
  return toPersonKeys(account, { accountIds: accounts, emails: addresses });
}

function listNames(people: readonly Person[], sought: Sought): Names {
  const { accounts, addresses } = joinNames(people);
  if (sought.by === 'jobseeker') accounts.push(sought.jobSeekerId);
  if (sought.by === 'address') addresses.push(sought.email);
  return { accounts: [...new Set(accounts)], addresses: [...new Set(addresses)] };
}

/** True of a text that contains one of the names in `toPatterns`. */
const isNamedIn = (text: string) =>
  `(cardinality($2::text[] || $3::text[]) > 0 AND (${isAccountInJson(text, '$2')} OR ${isAddressInJson(text, '$3')}))`;

function toPatterns({ accounts, addresses }: Names): string[][] {
  return [accounts.flatMap((id) => toAccountId(id) ?? []).map(toAccountPattern), addresses.map(toAddressPattern)];
}

type Element = Readonly<Record<'fingerprint' | 'identity', string>>;

const elementColumns = `encode(fingerprint, 'hex') AS fingerprint, encode(coalesce(identity, fingerprint), 'hex') AS identity`;

/** Elements that name the person, or that became one of these applications: the source may have changed the address since. */
async function findQuarantined({ db, advertiserId }: Account, sought: Sought, names: Names, ids: readonly bigint[]) {
  const isAge = sought.by === 'retention';
  const isTheirs = isAge
    ? `${isAged.quarantine} OR application_id = ANY ($3::bigint[])`
    : `${isNamedIn(json)} OR application_id = ANY ($4::bigint[])`;
  return await db.query<Element>(
    `SELECT ${elementColumns} FROM intake.quarantine
     WHERE advertiser_id = $1 AND (${isTheirs}) ORDER BY fingerprint LIMIT ${isAge ? sought.limit : 'ALL'}`,
    [advertiserId, ...(isAge ? [sought.before] : toPatterns(names)), ids],
  );
}

/** Further elements that have the id of one of these people, and neither another account nor another address. */
async function findShared({ db, advertiserId }: Account, people: readonly Person[], found: readonly Element[]) {
  if (people.length === 0) return [];
  const holders = new Map(people.map((person) => [String(person.applicationId), toNames(person)]));
  const rows = await db.query<Element & { id: string; raw: string }>(
    `SELECT ${elementColumns}, btrim(own.id #>> '{}') AS id, raw::text AS raw
     FROM intake.quarantine CROSS JOIN LATERAL jsonb_path_query(${inMember('id')}) AS own (id)
     WHERE advertiser_id = $1 AND reason = $2 AND btrim(own.id #>> '{}') = ANY ($3::text[]) AND encode(fingerprint, 'hex') <> ALL ($4::text[])
     ORDER BY fingerprint`,
    [advertiserId, sharedId, [...holders.keys()], found.map((one) => one.fingerprint)],
  );
  return rows.filter(({ id, raw }) => {
    const names = toNames(toPerson({ id: BigInt(id), jobSeekerId: null, email: null, raw }));
    const holder = holders.get(id);
    const isOther = (kind: 'account' | 'address') =>
      names[kind].size > 0 && holder !== undefined && holder[kind].size > 0 && names[kind].isDisjointFrom(holder[kind]);
    return !isOther('account') && !isOther('address');
  });
}

/** Prefills that name the person anywhere, for example as a referee. They have no application id. */
async function findPrefills(account: Account, sought: Sought, names: Names): Promise<string[]> {
  const isAge = sought.by === 'retention';
  const isNamed = `(${isOfPerson('intake.prefills', '$4')} OR ${isNamedIn(`concat(profile_text, ' ', profile)`)})`;
  const rows = await account.db.query<Columns<'prefills', 'prefill_id'>>(
    `SELECT prefill_id FROM intake.prefills WHERE advertiser_id = $1 AND ${isAge ? isAged.prefills : `profile IS NOT NULL AND ${isNamed}`}
     ORDER BY prefill_id LIMIT ${isAge ? sought.limit : 'ALL'}`,
    [account.advertiserId, ...(isAge ? [sought.before] : [...toPatterns(names), toKeys(account, names)])],
  );
  return rows.map((row) => row.prefill_id);
}

/** True of a prefill that names one of these people. */
function isOfPerson(prefill: string, keys: string): string {
  return `${prefill}.person_keys && ${keys}::text[]`;
}

const ofThese = `advertiser_id = $1 AND application_id = ANY ($2::bigint[])`;
const hashesSql = `SELECT sha256 FROM intake.attachments WHERE ${ofThese}
  UNION SELECT sha256 FROM intake.attachment_versions WHERE ${ofThese}
  UNION SELECT sha256 FROM intake.downloads WHERE ${ofThese}
  UNION SELECT resume_sha256 FROM intake.prefills WHERE advertiser_id = $1 AND prefill_id = ANY ($3::uuid[])`;

async function loadFiles({ db, advertiserId }: Account, ids: readonly bigint[], prefillIds: readonly string[]) {
  return await db.query<{ sha256: string; shared: boolean }>(
    `SELECT f.sha256,
       EXISTS (SELECT 1 FROM intake.attachments a
         WHERE a.advertiser_id = $1 AND a.sha256 = f.sha256 AND a.application_id <> ALL ($2::bigint[]))
       OR EXISTS (SELECT 1 FROM intake.attachment_versions v
         WHERE v.advertiser_id = $1 AND v.sha256 = f.sha256 AND v.application_id <> ALL ($2::bigint[]))
       OR EXISTS (SELECT 1 FROM intake.prefills p
         WHERE p.advertiser_id = $1 AND p.resume_sha256 = f.sha256 AND p.prefill_id <> ALL ($3::uuid[])) AS shared
     FROM (${hashesSql}) AS f WHERE f.sha256 IS NOT NULL`,
    [advertiserId, ids, prefillIds],
  );
}

/** Erases a person from every table and adds the tombstones, inside the caller's transaction. The applications must be locked. */
export async function erasePerson(account: Account, jobId: string, person: FoundPerson): Promise<void> {
  const { db, advertiserId } = account;
  await eraseApplications(account, person.applicationIds);
  await db.query(
    `DELETE FROM intake.quarantine WHERE advertiser_id = $1
     AND fingerprint IN (SELECT decode(f, 'hex') FROM unnest($2::text[]) AS f)`,
    [advertiserId, person.fingerprints],
  );
  await db.query(
    `UPDATE intake.prefills SET outcome = 'erased', ended_at = now(), ${emptiedPrefill}
     WHERE advertiser_id = $1 AND prefill_id = ANY ($2::uuid[])`,
    [advertiserId, person.prefillIds],
  );
  await rememberErased(account, jobId, person);
}

/** The tables of an application's child rows, in the order of deletion. Deleting screens also deletes their questions and answers. */
const childTables = ['screens', 'downloads', 'attachment_versions', 'attachments', 'primary_job_seeking_info'];

/** The columns of an application without personal data. All other columns are emptied, also columns that later migrations add. */
const kept = ['advertiser_id', 'application_id', 'erased_at'];
/** NOT NULL columns and their values after the erasure: its time, the request number, and nothing of the content. */
const replaced: Readonly<Record<string, string>> = {
  content_hash: `''`,
  observed_seq: 'observed_seq',
  first_seen_at: 'now()',
  changed_at: 'now()',
};

/** Erases these applications with their child rows. They must be locked. Evidence names their ids and nothing else of them. */
async function eraseApplications({ db, advertiserId }: Account, ids: readonly bigint[]): Promise<void> {
  if (ids.length === 0) return;
  for (const table of childTables) await db.query(`DELETE FROM intake.${table} WHERE ${ofThese}`, [advertiserId, ids]);
  const columns = await db.query<{ name: string }>(
    `SELECT quote_ident(attname) AS name FROM pg_attribute
     WHERE attrelid = 'intake.applications'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> ALL ($1::text[])`,
    [kept],
  );
  const emptied = columns.map(({ name }) => `${name} = ${replaced[name] ?? 'NULL'}`).join(', ');
  const values = [advertiserId, ids];
  await db.query(
    `UPDATE intake.applications SET ${emptied}, erased_at = coalesce(erased_at, now()) WHERE ${ofThese}`,
    values,
  );
}

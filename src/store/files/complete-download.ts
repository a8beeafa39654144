// Completes downloads in one fenced transaction: blobs, attachments, screen rows, `ready_at` and events. Downloads of one advertiser that
// end at about the same time share it. It checks each claim's token, so a download that another worker has taken over writes nothing.
import type { Note, ParsedScreens } from '../../domain/application.ts';
import { type BlobFacts, type FileDescription, toBlobKey } from '../../domain/blob.ts';
import { type FinalState, mostUnchanged } from '../../domain/download-verdict.ts';
import { appendEvents } from '../events.ts';
import { columnsOf, type Database, pipeline, type Queryable, type Transaction } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import type { Claim } from './download-queue.ts';
import { reopenAttachments, replaceBytes, sameBytes, updateReady } from './file-states.ts';

export type Completion = StoredFile | { readonly kind: 'final'; readonly state: FinalState; readonly reason: string };

export interface StoredFile extends FileDescription {
  readonly kind: 'stored';
  readonly blob: BlobFacts;
  readonly notes: readonly Note[];
  /** Which trust in Hash replaced the download by a link: earned from the source, or given by the operator. Null where it was fetched. */
  readonly linkedBy: 'earned' | 'given' | null;
  /** The result of the comparison with the twin; null where there was none. */
  readonly compared: 'agreed' | 'contradicted' | null;
  /** Null for other kinds of files, and for a screen that cannot be parsed. */
  readonly screens: ParsedScreens | null;
}

/** `unchanged`: not fetched again to compare. Nothing was written if `lost` to another worker, or `unlinkable`: blob or trust is gone. */
export type CompletedState = 'stored' | FinalState | 'unchanged' | 'lost' | 'unlinkable';

export interface CompletedClaim {
  readonly claim: Claim;
  readonly completion: Completion;
}

export async function completeDownloads(db: Database, downloads: readonly CompletedClaim[]): Promise<CompletedState[]> {
  try {
    return await db.repeatTransaction((tx) => write(tx, downloads));
  } catch (error) {
    if (downloads.length === 1 && error instanceof Unlinkable) return ['unlinkable'];
    throw error;
  }
}

/** Rolls back: none of the downloads is completed. The caller completes each alone. */
class Unlinkable extends Error {}

/** Uses few round trips: completions of one advertiser are serialised, so each round trip delays the next completion. */
async function write(tx: Transaction, downloads: readonly CompletedClaim[]): Promise<CompletedState[]> {
  const advertiserId = downloads[0]?.claim.advertiserId ?? 0n;
  const claimed = await deleteClaimed(tx, advertiserId, downloads);
  const won = downloads.filter((_, at) => claimed.has(at));
  const files = won.map(({ completion }) => completion).filter(isStored);
  // The first two lock the rows of the blobs until COMMIT.
  const [put, linked, checks] = await pipeline([
    upsertPut(tx, advertiserId, files),
    lockLinked(tx, advertiserId, files),
    loadHashChecks(tx, advertiserId, won),
  ]);
  const infected = new Set([...put, ...linked].flatMap(({ sha256, state }) => (state === 'infected' ? sha256 : [])));
  const ended = won.map((download, at) => toEnd(download, infected, checks.get(at)));
  const pick = (wanted: Ended['follows']) => ended.filter(({ follows }) => follows === wanted);
  const replaced = pick('replace');
  const replacedClaims = replaced.map(({ claim }) => claim);
  await replaceBytes(tx, advertiserId, replacedClaims);
  const changed = await updateReady(tx, advertiserId, toIds(replaced));
  await noteUnconfirmed(tx, advertiserId, pick('note'));
  const written = [...pick('write'), ...replaced];
  const stored = written.filter(isKept);
  const same = pick('nothing').filter(isKept);
  const screens = stored
    .filter(({ claim }) => claim.kind === 'screen')
    .map(({ claim, completion }) => ({ ...claim, sha256: completion.blob.sha256, parsed: completion.screens }));
  const isContradicted = stored.some(isContradiction);
  const markReady = () => updateReady(tx, advertiserId, toIds(won));
  // `updateReady` reads what the others wrote.
  const [unchanged, , ready] = await pipeline([
    writeFiles(tx, advertiserId, written),
    replaceScreens(tx, advertiserId, screens),
    // A contradiction reopens linked files below, and their applications are then no longer ready: `ready_at` is updated after that.
    isContradicted ? null : markReady(),
  ]);
  const opened = await recordHashTrust(tx, advertiserId, stored, unchanged + same.length);
  await appendEvents(tx, advertiserId, [...changed, ...opened, ...(ready ?? (await markReady()))]);
  const states = new Map(ended.map(({ claim, state }) => [claim, state]));
  return downloads.map(({ claim }) => states.get(claim) ?? 'lost');
}

interface Ended extends CompletedClaim {
  readonly state: Exclude<CompletedState, 'lost' | 'unlinkable'>;
  /** What happens to the attachment: written as usual, reopened and replaced, only annotated, or left as it is. */
  readonly follows: 'write' | 'replace' | 'note' | 'nothing';
}

function toEnd(download: CompletedClaim, infected: ReadonlySet<string>, check: HashCheck | undefined): Ended {
  const { completion } = download;
  if (!isStored(completion) && check) return { ...download, state: 'unchanged', follows: 'note' };
  if (!isStored(completion)) return { ...download, state: completion.state, follows: 'write' };
  const state = infected.has(completion.blob.sha256) ? 'infected' : 'stored';
  if (!check) return { ...download, state, follows: 'write' };
  const isSame = check.state === state && check.sha256 === completion.blob.sha256;
  return { ...download, state, follows: isSame ? 'nothing' : 'replace' };
}

/** An attachment that is not pending: it was fetched only because its Hash, and nothing else, had changed. */
type HashCheck = Columns<'attachments', 'state' | 'sha256'>;

/** The attachments among these that are not pending, by position. Their states cannot change: every writer locks the application first. */
async function loadHashChecks(tx: Queryable, advertiserId: bigint, won: readonly CompletedClaim[]) {
  const rows = await tx.query<HashCheck & { readonly at: number }>(
    `SELECT c.at::int - 1 AS at, a.state, a.sha256
     FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS c (application_id, kind, at) JOIN intake.attachments a
       ON a.advertiser_id = $1 AND a.application_id = c.application_id AND a.kind = c.kind
     WHERE a.application_id = ANY ($2::bigint[]) AND a.state <> 'pending'`,
    toKeys(advertiserId, won),
  );
  return new Map(rows.map((row) => [row.at, row]));
}

function toKeys(advertiserId: bigint, downloads: readonly CompletedClaim[]): unknown[] {
  return [advertiserId, toIds(downloads), downloads.map(({ claim }) => claim.kind)];
}

const toIds = (downloads: readonly CompletedClaim[]) => downloads.map(({ claim }) => claim.applicationId);

/** The bytes could not be fetched again: the stored file stays, with a note that its Hash has changed. */
async function noteUnconfirmed(tx: Queryable, advertiserId: bigint, downloads: readonly CompletedClaim[]) {
  if (downloads.length === 0) return;
  const note = { field: 'Hash', reason: 'changed, and the bytes could not be fetched again to compare them' };
  await tx.query(
    `UPDATE intake.attachments a SET
       notes = coalesce(jsonb_path_query_array(a.notes, '$[*] ? (@.field != "Hash")'), '[]') || $4::jsonb
     FROM unnest($2::bigint[], $3::text[]) AS c (application_id, kind)
     WHERE a.advertiser_id = $1 AND a.application_id = c.application_id AND a.kind = c.kind AND a.state = 'stored'`,
    [...toKeys(advertiserId, downloads), JSON.stringify([note])],
  );
}

type Kept = Ended & { readonly completion: StoredFile };

const isStored = (completion: Completion): completion is StoredFile => completion.kind === 'stored';
const isKept = (ended: Ended): ended is Kept => ended.state === 'stored' && isStored(ended.completion);
const isContradiction = ({ completion }: Kept) => completion.compared === 'contradicted';

/** The fence: deletes the rows that still have this worker's token. Applications are locked first, in the order of ids, as by pages. */
async function deleteClaimed(tx: Queryable, advertiserId: bigint, downloads: readonly CompletedClaim[]) {
  const rows = await tx.query<{ at: number }>(
    `WITH ended AS MATERIALIZED (
       SELECT * FROM unnest($2::bigint[], $3::text[], $4::uuid[]) WITH ORDINALITY AS e (application_id, kind, token, at)
     ), held AS MATERIALIZED (
       SELECT application_id FROM intake.applications WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[])
       ORDER BY application_id FOR NO KEY UPDATE
     )
     DELETE FROM intake.downloads d USING ended JOIN held USING (application_id)
     WHERE d.advertiser_id = $1 AND d.application_id = ANY ($2::bigint[]) AND d.application_id = ended.application_id AND d.kind = ended.kind AND d.lease_token = ended.token
     RETURNING ended.at::int - 1 AS at`,
    [...toKeys(advertiserId, downloads), downloads.map(({ claim }) => claim.token)],
  );
  return new Set(rows.map((row) => row.at));
}

type BlobStateRow = Columns<'blobs', 'sha256' | 'state'>;

/** Updates the size too, 0 or wrong in a row without bytes, and clears `deleted_at`: the object of infected ones must be deleted. */
async function upsertPut(tx: Queryable, advertiserId: bigint, files: readonly StoredFile[]): Promise<BlobStateRow[]> {
  const blobs = files
    .filter(({ linkedBy }) => linkedBy === null)
    .map(({ blob }) => ({ ...blob, key: toBlobKey(advertiserId, blob.sha256) }));
  if (blobs.length === 0) return [];
  return await tx.query<BlobStateRow>(
    `INSERT INTO intake.blobs AS b (advertiser_id, sha256, size_bytes, key, state, verified_at)
     SELECT DISTINCT ON (sha256) $1, sha256, size_bytes, key, 'stored', now()
     FROM unnest($2::text[], $3::bigint[], $4::text[]) AS f (sha256, size_bytes, key) ORDER BY sha256
     ON CONFLICT (advertiser_id, sha256) DO UPDATE SET
       state = CASE WHEN b.state = 'infected' THEN b.state ELSE 'stored' END, size_bytes = excluded.size_bytes, verified_at = now(),
       deleted_at = NULL, delete_token = NULL, delete_until = NULL
     RETURNING sha256, state`,
    [advertiserId, ...columnsOf(blobs, 'sha256', 'sizeBytes', 'key')],
  );
}

/** Locks hash_trust: no contradiction is recorded while a file is linked. A linked blob counts as announced. */
async function lockLinked(tx: Queryable, advertiserId: bigint, files: readonly StoredFile[]): Promise<BlobStateRow[]> {
  const linked = files.filter(({ linkedBy }) => linkedBy !== null);
  if (linked.length === 0) return [];
  const hashes = [...new Set(linked.map((file) => file.blob.sha256))];
  const [rows, [trust]] = await pipeline([
    tx.query<BlobStateRow>(
      `UPDATE intake.blobs SET intended_at = now()
       WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[]) AND state IN ('stored', 'infected') RETURNING sha256, state`,
      [advertiserId, hashes],
    ),
    tx.query<{ lost: boolean }>(
      `SELECT contradicted_at IS NOT NULL AS lost FROM intake.hash_trust WHERE advertiser_id = $1 FOR NO KEY UPDATE`,
      [advertiserId],
    ),
  ]);
  const isLost = trust?.lost && linked.some(({ linkedBy }) => linkedBy === 'earned');
  if (isLost || rows.length < hashes.length) throw new Unlinkable();
  return rows;
}

/** If the bytes equal those of the previous version, its row is deleted: no new version. Returns for how many of these Hash had changed. */
async function writeFiles(tx: Queryable, advertiserId: bigint, written: readonly Ended[]): Promise<number> {
  if (written.length === 0) return 0;
  const files = written.map(({ claim, completion, state }) => ({
    application_id: String(claim.applicationId),
    kind: claim.kind,
    state,
    reason: !isStored(completion) ? completion.reason : state === 'infected' ? sameBytes : null,
    sha256: isStored(completion) ? completion.blob.sha256 : null,
    ...(state === 'stored' && isStored(completion) && toDescription(completion)),
  }));
  const rows = await tx.query<{ unchanged: boolean }>(writeSql, [advertiserId, JSON.stringify(files), toIds(written)]);
  return rows.filter((row) => row.unchanged).length;
}

function toDescription({ contentType, detectedType, fileName, notes, linkedBy, screens }: StoredFile) {
  return {
    content_type: contentType,
    detected_type: detectedType,
    file_name: fileName,
    notes: notes.length > 0 ? notes : null,
    linked: linkedBy !== null,
    parser_version: screens?.parserVersion,
  };
}

// The ids are a parameter of their own ($3), so that no plan starts from all attachments of the advertiser.
const writeSql = `
  WITH file AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset($2::jsonb) AS f (application_id bigint, kind text, state text, reason text, sha256 text,
      content_type text, detected_type text, file_name text, notes jsonb, linked boolean, parser_version int)
  ), same AS (
    DELETE FROM intake.attachment_versions v USING file f, intake.attachments a
    WHERE a.advertiser_id = $1 AND a.application_id = f.application_id AND a.kind = f.kind
      AND v.advertiser_id = $1 AND v.application_id = f.application_id AND v.kind = f.kind
      AND v.version = a.version - 1 AND v.sha256 = f.sha256 AND v.state = 'stored' AND f.state = 'stored'
    RETURNING v.application_id, v.kind, v.version, v.source_hash IS DISTINCT FROM a.source_hash AS by_hash
  )
  UPDATE intake.attachments a SET state = f.state, reason = f.reason, sha256 = coalesce(f.sha256, a.sha256),
    content_type = f.content_type, detected_type = f.detected_type, file_name = f.file_name, notes = f.notes,
    linked = coalesce(f.linked, false), parser_version = f.parser_version,
    stored_at = CASE WHEN f.state = 'stored' THEN now() END, version = coalesce(same.version, a.version)
  FROM file f LEFT JOIN same USING (application_id, kind)
  WHERE a.advertiser_id = $1 AND a.application_id = ANY ($3::bigint[]) AND a.application_id = f.application_id AND a.kind = f.kind
  RETURNING coalesce(same.by_hash, false) AS unchanged`;

/** Records what downloads showed about the source's Hash. A contradiction ends all trust, and files linked by Hash are fetched. */
async function recordHashTrust(tx: Transaction, advertiserId: bigint, stored: readonly Kept[], unchanged: number) {
  const isContradicted = stored.some(isContradiction);
  const agreed = stored.filter(({ completion }) => completion.compared === 'agreed').length;
  if (agreed === 0 && !isContradicted && unchanged === 0) return [];
  const [trust] = await tx.query<Columns<'hash_trust', 'unchanged'>>(
    `INSERT INTO intake.hash_trust AS h (advertiser_id, agreed, contradicted_at, unchanged)
     VALUES ($1, $2, CASE WHEN $3 THEN now() END, $4)
     ON CONFLICT (advertiser_id) DO UPDATE SET agreed = h.agreed + $2,
       contradicted_at = coalesce(h.contradicted_at, excluded.contradicted_at), unchanged = h.unchanged + $4
     RETURNING unchanged`,
    [advertiserId, agreed, isContradicted, unchanged],
  );
  // Hash no longer signals changes: queued downloads that would only check a changed Hash go.
  if (unchanged > 0 && trust && trust.unchanged >= mostUnchanged)
    await tx.query(
      `DELETE FROM intake.downloads WHERE ctid = ANY (ARRAY(
         SELECT d.ctid FROM intake.downloads d JOIN intake.attachments a USING (advertiser_id, application_id, kind)
         WHERE d.advertiser_id = $1 AND d.lease_token IS NULL AND a.state <> 'pending' FOR UPDATE OF d SKIP LOCKED))`,
      [advertiserId],
    );
  if (!isContradicted) return [];
  const linked = await tx.query<Columns<'attachments', 'application_id' | 'kind' | 'sha256'>>(
    `SELECT application_id, kind, sha256 FROM intake.attachments WHERE advertiser_id = $1 AND linked AND state = 'stored'`,
    [advertiserId],
  );
  const opened = await reopenAttachments(tx, advertiserId, linked, ['stored']);
  // Perhaps nothing refers to their bytes now. They are kept for a day from here on, as if announced: no others may ever come.
  const keepSql = `UPDATE intake.blobs SET intended_at = now() WHERE advertiser_id = $1 AND sha256 = ANY ($2::text[])`;
  await tx.query(keepSql, [advertiserId, linked.map((row) => row.sha256)]);
  return opened;
}

/** `parsed` is null where the bytes cannot be parsed: the application then has no screens. */
type Screen = Pick<Claim, 'applicationId'> & { readonly sha256: string; readonly parsed: ParsedScreens | null };

/** The screens of an application are parsed from stored bytes, so they are never merged: new ones replace all old ones. */
export async function replaceScreens(tx: Queryable, advertiserId: bigint, replacements: readonly Screen[]) {
  if (replacements.length === 0) return;
  const ids = replacements.map(({ applicationId }) => applicationId);
  const files = replacements.map(({ applicationId, sha256, parsed }) => ({
    application_id: String(applicationId),
    sha256,
    parser_version: parsed?.parserVersion,
    screens: parsed?.screens ?? [],
  }));
  await pipeline([
    // The foreign keys delete questions and answers with their screen.
    tx.query(deleteScreensSql, [advertiserId, ids]),
    tx.query(insertScreensSql, [advertiserId, JSON.stringify(files)]),
  ]);
}

const deleteScreensSql = `DELETE FROM intake.screens WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[])`;

/** All screens are one jsonb parameter; screens, questions and answers are numbered by their position in it. */
const insertScreensSql = `
  WITH screen AS MATERIALIZED (
    SELECT f.application_id, f.sha256, f.parser_version, s.no, s.value
    FROM jsonb_to_recordset($2::jsonb) AS f (application_id bigint, sha256 text, parser_version int, screens jsonb),
      jsonb_array_elements(f.screens) WITH ORDINALITY AS s (value, no)
  ), question AS MATERIALIZED (
    SELECT screen.application_id, screen.no AS screen_no, q.no, q.value
    FROM screen, jsonb_array_elements(screen.value->'questions') WITH ORDINALITY AS q (value, no)
  ), new_screens AS (
    INSERT INTO intake.screens
      (advertiser_id, application_id, screen_no, screen_id, name, outcome, notes, sha256, parser_version)
    SELECT $1, application_id, no, value->>'id', value->>'name', value->>'outcome', nullif(value->'notes', '[]'), sha256, parser_version
    FROM screen
  ), new_questions AS (
    INSERT INTO intake.screen_questions (advertiser_id, application_id, screen_no, question_no, question_id, type, text)
    SELECT $1, application_id, screen_no, no, value->>'id', value->>'type', value->>'text'
    FROM question
  )
  INSERT INTO intake.screen_answers
    (advertiser_id, application_id, screen_no, question_no, answer_no, answer_id, text, selected)
  SELECT $1, question.application_id, question.screen_no, question.no, a.no, a.value->>'id', a.value->>'text',
    (a.value->>'selected')::boolean
  FROM question, jsonb_array_elements(question.value->'answers') WITH ORDINALITY AS a (value, no)`;

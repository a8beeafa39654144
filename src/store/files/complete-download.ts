// The fenced transaction that ends downloads: blobs, attachments, screen rows, ready and events together, or nothing. Those of one
// advertiser that end at about the same time share it. Each token is checked inside, so a claim that changed hands writes nothing.
import type { Note } from '../../domain/application.ts';
import type { BlobFacts } from '../../domain/blob.ts';
import type { FinalState } from '../../domain/download-verdict.ts';
import { mostUnchanged } from '../../domain/hash-trust.ts';
import type { ParsedScreens } from '../../domain/screen.ts';
import { Trouble } from '../../domain/trouble.ts';
import { type ApplicationEvent, appendEvents } from '../events.ts';
import { type Database, type Queryable, type Row, retryOnConflict } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import type { DeclaredFile } from './claim-facts.ts';
import type { Claim } from './download-queue.ts';
import { sameBytes } from './mark-infected.ts';
import { reopenAttachments, updateReady } from './ready.ts';
import { replaceScreens } from './screens.ts';

/** How a download ended. */
export type Completion = StoredFile | { readonly kind: 'final'; readonly state: FinalState; readonly reason: string };

export interface StoredFile extends DeclaredFile {
  readonly kind: 'stored';
  readonly blob: BlobFacts & { readonly key: string };
  readonly notes: readonly Note[];
  /** By which trust in Hash the download was spared: earned from the source, or given by the operator. Null where it was fetched. */
  readonly linkedBy: 'earned' | 'given' | null;
  /** What a comparison with the twin showed, where there was one. */
  readonly compared: 'agreed' | 'contradicted' | null;
  /** Null for a file, and for a screen that cannot be read. */
  readonly screens: ParsedScreens | null;
}

/** `lost`: the claim changed hands, nothing was written. `unlinkable`: the blob to link to is no longer held, or Hash no longer trusted; nothing was written. */
export type CompletedState = 'stored' | FinalState | 'lost' | 'unlinkable';

export interface CompletedClaim {
  readonly claim: Claim;
  readonly completion: Completion;
}

/** Ends downloads of one advertiser and writes everything that follows from it, in one transaction. One that cannot be written costs no other. */
export async function completeDownloads(
  db: Database,
  downloads: readonly CompletedClaim[],
): Promise<readonly PromiseSettledResult<CompletedState>[]> {
  try {
    const completed = await retryOnConflict(() => db.transaction((tx) => write(tx, downloads)));
    return completed.map((value) => ({ status: 'fulfilled', value }));
  } catch (error) {
    if (downloads.length === 1 && error instanceof Unlinkable) return [{ status: 'fulfilled', value: 'unlinkable' }];
    // A database that takes no work takes none of them one by one either.
    if (downloads.length === 1 || error instanceof Trouble)
      return downloads.map(() => ({ status: 'rejected', reason: error }));
    return (await Promise.all(downloads.map((download) => completeDownloads(db, [download])))).flat();
  }
}

class Unlinkable extends Error {}

/** In few round trips: completions of one advertiser are serialised, so that each round trip delays the next. */
async function write(tx: Queryable, downloads: readonly CompletedClaim[]): Promise<CompletedState[]> {
  const advertiserId = downloads[0]?.claim.advertiserId ?? 0n;
  const held = await deleteClaimed(tx, advertiserId, downloads);
  const won = downloads.filter((_, at) => held.has(at));
  const [infected, confirmations] = await Promise.all([
    lockBlobs(tx, advertiserId, won.map(({ completion }) => completion).filter(isStored)),
    loadHashChecks(tx, advertiserId, won),
  ]);
  const toWrite = ({ claim, completion }: CompletedClaim): AttachmentWrite => {
    const state = !isStored(completion)
      ? completion.state
      : infected.has(completion.blob.sha256)
        ? 'infected'
        : 'stored';
    const confirmed = confirmations.get(toName(claim));
    if (!confirmed) return { state, follows: 'write' };
    if (!isStored(completion)) return { state: confirmed.state, follows: 'note' };
    const isSame = confirmed.state === state && confirmed.sha256 === completion.blob.sha256;
    return { state, follows: isSame ? 'nothing' : 'replace' };
  };
  const writes = new Map(won.map((download) => [download, toWrite(download)]));
  const pick = (...wanted: readonly AttachmentWrite['follows'][]) =>
    won.filter((download) => wanted.includes(writes.get(download)?.follows ?? 'nothing'));
  const replaced = pick('replace');
  const changed = await openReplaced(tx, advertiserId, replaced);
  await noteUnconfirmed(tx, advertiserId, pick('note'));
  const written = pick('write', 'replace');
  const isKept = (download: CompletedClaim): download is Kept =>
    writes.get(download)?.state === 'stored' && isStored(download.completion);
  const stored = written.filter(isKept);
  const ended = written.filter((download) => !isKept(download));
  const same = pick('nothing').filter(isKept);
  const screens = stored.filter(({ claim }) => claim.kind === 'screen').map(toReplacement);
  const isContradicted = stored.some(({ completion }) => completion.compared === 'contradicted');
  const markReady = () => updateReady(tx, advertiserId, [...new Set(won.map(({ claim }) => claim.applicationId))]);
  // The statements are pipelined on one connection and run in this order: `updateReady` reads what the others wrote.
  const [unchanged, , , ready] = await Promise.all([
    writeStored(tx, advertiserId, stored),
    writeEnded(tx, advertiserId, ended),
    replaceScreens(tx, advertiserId, screens),
    // A contradiction opens what was linked, and who waits for that again is not ready.
    isContradicted ? null : markReady(),
  ]);
  const opened = await learnOfHash(tx, advertiserId, [...stored, ...same], {
    unchanged: unchanged + same.length,
    isContradicted,
  });
  await appendEvents(tx, advertiserId, [...changed, ...opened, ...(ready ?? (await markReady()))]);
  return downloads.map((download) => writes.get(download)?.state ?? 'lost');
}

/** What becomes of an attachment: written as usual, opened and written, only noted, or left as it is. */
interface AttachmentWrite {
  readonly state: Exclude<CompletedState, 'lost' | 'unlinkable'>;
  readonly follows: 'write' | 'replace' | 'note' | 'nothing';
}

/** An attachment that was not pending while it was fetched: its Hash had changed, and nothing else. */
interface HashCheck {
  readonly state: AttachmentWrite['state'];
  readonly sha256: string | null;
}

const toName = ({ applicationId, kind }: Claim) => `${applicationId} ${kind}`;

/** The attachments among these that are not pending. Their applications are locked, and every writer of an attachment locks its application first. */
async function loadHashChecks(
  tx: Queryable,
  advertiserId: bigint,
  won: readonly CompletedClaim[],
): Promise<Map<string, HashCheck>> {
  const rows = await tx.query<Columns<'attachments', 'application_id' | 'kind'> & HashCheck & Row>(
    `SELECT a.application_id, a.kind, a.state, a.sha256
     FROM unnest($2::bigint[], $3::text[]) AS c (application_id, kind) JOIN intake.attachments a
       ON a.advertiser_id = $1 AND a.application_id = c.application_id AND a.kind = c.kind
     WHERE a.application_id = ANY ($2::bigint[]) AND a.state <> 'pending'`,
    toKeys(advertiserId, won),
  );
  return new Map(rows.map((row) => [`${row.application_id} ${row.kind}`, row]));
}

function toKeys(advertiserId: bigint, downloads: readonly CompletedClaim[]): unknown[] {
  return [advertiserId, downloads.map(({ claim }) => claim.applicationId), downloads.map(({ claim }) => claim.kind)];
}

/**
 * The bytes did change with Hash: what was held becomes a version, and the attachment and its application are opened for the rest of
 * the transaction. Which Hash the earlier bytes had is not known any more.
 */
async function openReplaced(
  tx: Queryable,
  advertiserId: bigint,
  replaced: readonly CompletedClaim[],
): Promise<ApplicationEvent[]> {
  if (replaced.length === 0) return [];
  const keys = toKeys(advertiserId, replaced);
  await tx.query(
    `WITH kept AS (
       INSERT INTO intake.attachment_versions (advertiser_id, application_id, kind, version, state, reason, size_bytes, has_virus,
         uploaded_at, sha256, content_type, detected_type, file_name, stored_at)
       SELECT a.advertiser_id, a.application_id, a.kind, a.version, a.state, a.reason, a.size_bytes, a.has_virus,
         a.uploaded_at, a.sha256, a.content_type, a.detected_type, a.file_name, a.stored_at
       FROM unnest($2::bigint[], $3::text[]) AS c (application_id, kind) JOIN intake.attachments a
         ON a.advertiser_id = $1 AND a.application_id = c.application_id AND a.kind = c.kind AND a.sha256 IS NOT NULL
     )
     UPDATE intake.attachments a SET state = 'pending', version = a.version + (a.sha256 IS NOT NULL)::int, sha256 = NULL, stored_at = NULL
     FROM unnest($2::bigint[], $3::text[]) AS c (application_id, kind)
     WHERE a.advertiser_id = $1 AND a.application_id = c.application_id AND a.kind = c.kind`,
    keys,
  );
  return await updateReady(tx, advertiserId, [...new Set(replaced.map(({ claim }) => claim.applicationId))]);
}

/** The bytes could not be had once more: what is held stays, and a note says that Hash speaks of others. */
async function noteUnconfirmed(
  tx: Queryable,
  advertiserId: bigint,
  downloads: readonly CompletedClaim[],
): Promise<void> {
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

type Kept = CompletedClaim & { readonly completion: StoredFile };

function isStored(completion: Completion): completion is StoredFile {
  return completion.kind === 'stored';
}

function toReplacement({ claim: { applicationId }, completion: { blob, screens } }: Kept) {
  return { applicationId, sha256: blob.sha256, parsed: screens ?? { screens: [], parserVersion: 0 } };
}

/** The fence: deletes the queue rows that still carry our token; the others were claimed by another worker. Applications are locked first and in order, as pages lock them. */
async function deleteClaimed(
  tx: Queryable,
  advertiserId: bigint,
  downloads: readonly CompletedClaim[],
): Promise<Set<number>> {
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
    [
      advertiserId,
      downloads.map(({ claim }) => claim.applicationId),
      downloads.map(({ claim }) => claim.kind),
      downloads.map(({ claim }) => claim.token),
    ],
  );
  return new Set(rows.map((row) => row.at));
}

/** Locks the rows of the blobs until COMMIT. Returns the hashes that are infected: an object that was put for them must be deleted again. */
async function lockBlobs(tx: Queryable, advertiserId: bigint, files: readonly StoredFile[]): Promise<Set<string>> {
  const put = files.filter(({ linkedBy }) => linkedBy === null).map((file) => file.blob);
  const linked = files.filter(({ linkedBy }) => linkedBy !== null);
  const rows = await Promise.all([upsertPut(tx, advertiserId, put), lockLinked(tx, advertiserId, linked)]);
  return new Set(
    rows
      .flat()
      .filter((row) => row.state === 'infected')
      .map((row) => row.sha256),
  );
}

type BlobStateRow = Columns<'blobs', 'sha256' | 'state'>;

/** The size is written anew: a row that was made without the bytes (a delete, a flag, an object that verify found) has 0 or a wrong one. */
async function upsertPut(
  tx: Queryable,
  advertiserId: bigint,
  put: readonly StoredFile['blob'][],
): Promise<BlobStateRow[]> {
  if (put.length === 0) return [];
  return await tx.query<BlobStateRow>(
    `INSERT INTO intake.blobs AS b (advertiser_id, sha256, size_bytes, key, state, verified_at)
     SELECT DISTINCT ON (sha256) $1, sha256, size_bytes, key, 'stored', now()
     FROM unnest($2::text[], $3::bigint[], $4::text[]) AS f (sha256, size_bytes, key) ORDER BY sha256
     ON CONFLICT (advertiser_id, sha256) DO UPDATE SET
       state = CASE WHEN b.state = 'infected' THEN b.state ELSE 'stored' END, size_bytes = excluded.size_bytes, verified_at = now(), orphaned_at = NULL,
       deleted_at = CASE WHEN b.state <> 'infected' THEN b.deleted_at END, delete_token = NULL, delete_until = NULL
     RETURNING sha256, state`,
    [advertiserId, put.map((blob) => blob.sha256), put.map((blob) => blob.sizeBytes), put.map((blob) => blob.key)],
  );
}

/** Locks the row of the trust in Hash, so that linking a file and recording a contradiction cannot run at the same time. */
async function lockLinked(tx: Queryable, advertiserId: bigint, linked: readonly StoredFile[]): Promise<BlobStateRow[]> {
  if (linked.length === 0) return [];
  const hashes = [...new Set(linked.map((file) => file.blob.sha256))];
  const [rows, [trust]] = await Promise.all([
    tx.query<BlobStateRow>(
      `UPDATE intake.blobs SET orphaned_at = NULL
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

/** The same bytes as before are no new version: the earlier row is taken back. Returns how many differ from it in Hash alone. */
async function writeStored(tx: Queryable, advertiserId: bigint, stored: readonly Kept[]): Promise<number> {
  if (stored.length === 0) return 0;
  const files = stored.map(({ claim, completion }) => ({
    application_id: String(claim.applicationId),
    kind: claim.kind,
    sha256: completion.blob.sha256,
    content_type: completion.contentType,
    detected_type: completion.detectedType,
    file_name: completion.fileName,
    notes: completion.notes.length > 0 ? completion.notes : null,
    linked: completion.linkedBy !== null,
    parser_version: completion.screens?.parserVersion ?? null,
  }));
  const ids = stored.map(({ claim }) => claim.applicationId);
  const rows = await tx.query<{ unchanged: boolean }>(storeSql, [advertiserId, JSON.stringify(files), ids]);
  return rows.filter((row) => row.unchanged).length;
}

// The ids stand beside the files, so that no plan begins with all attachments of the advertiser.
const storeSql = `
  WITH file AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset($2::jsonb) AS f (application_id bigint, kind text, sha256 text, content_type text,
      detected_type text, file_name text, notes jsonb, linked boolean, parser_version int)
  ), same AS (
    DELETE FROM intake.attachment_versions v USING file f, intake.attachments a
    WHERE a.advertiser_id = $1 AND a.application_id = f.application_id AND a.kind = f.kind
      AND v.advertiser_id = $1 AND v.application_id = f.application_id AND v.kind = f.kind
      AND v.version = a.version - 1 AND v.sha256 = f.sha256 AND v.state = 'stored'
    RETURNING v.application_id, v.kind, v.version, v.source_hash IS DISTINCT FROM a.source_hash AS by_hash
  )
  UPDATE intake.attachments a SET state = 'stored', reason = NULL, sha256 = f.sha256, content_type = f.content_type,
    detected_type = f.detected_type, file_name = f.file_name, notes = f.notes, linked = f.linked, parser_version = f.parser_version,
    stored_at = now(), version = coalesce(same.version, a.version)
  FROM file f LEFT JOIN same USING (application_id, kind)
  WHERE a.advertiser_id = $1 AND a.application_id = ANY ($3::bigint[]) AND a.application_id = f.application_id AND a.kind = f.kind
  RETURNING coalesce(same.by_hash, false) AS unchanged`;

/** Ended without bytes to keep: final by verdict, or because its bytes are infected. */
async function writeEnded(tx: Queryable, advertiserId: bigint, ended: readonly CompletedClaim[]): Promise<void> {
  if (ended.length === 0) return;
  const rows = ended.map(({ completion }) =>
    isStored(completion)
      ? { state: 'infected', reason: sameBytes, sha256: completion.blob.sha256 }
      : { state: completion.state, reason: completion.reason, sha256: null },
  );
  await tx.query(
    `UPDATE intake.attachments a SET state = f.state, reason = f.reason, sha256 = coalesce(f.sha256, a.sha256)
     FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[]) AS f (application_id, kind, state, reason, sha256)
     WHERE a.advertiser_id = $1 AND a.application_id = f.application_id AND a.kind = f.kind`,
    [
      advertiserId,
      ended.map(({ claim }) => claim.applicationId),
      ended.map(({ claim }) => claim.kind),
      rows.map((row) => row.state),
      rows.map((row) => row.reason),
      rows.map((row) => row.sha256),
    ],
  );
}

/** Records what downloads showed of the source's Hash. A contradiction ends all trust, and what was linked by Hash alone is fetched. */
async function learnOfHash(
  tx: Queryable,
  advertiserId: bigint,
  stored: readonly Kept[],
  { unchanged, isContradicted }: { readonly unchanged: number; readonly isContradicted: boolean },
): Promise<ApplicationEvent[]> {
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
  if (unchanged > 0 && trust && trust.unchanged >= mostUnchanged) await dropHashChecks(tx, advertiserId);
  if (!isContradicted) return [];
  const linked = await tx.query<Columns<'attachments', 'application_id' | 'kind'>>(
    `SELECT application_id, kind FROM intake.attachments WHERE advertiser_id = $1 AND linked AND state = 'stored'`,
    [advertiserId],
  );
  return await reopenAttachments(
    tx,
    advertiserId,
    linked.map((row) => ({ applicationId: row.application_id, kind: row.kind })),
    ['stored'],
  );
}

/** Hash is no sign of change any more: what waits to be fetched once more because of it is left as it is. */
async function dropHashChecks(tx: Queryable, advertiserId: bigint): Promise<void> {
  await tx.query(
    `DELETE FROM intake.downloads WHERE ctid = ANY (ARRAY(
       SELECT d.ctid FROM intake.downloads d JOIN intake.attachments a USING (advertiser_id, application_id, kind)
       WHERE d.advertiser_id = $1 AND d.lease_token IS NULL AND a.state <> 'pending' FOR UPDATE OF d SKIP LOCKED))`,
    [advertiserId],
  );
}

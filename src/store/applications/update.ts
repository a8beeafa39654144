// Merges applications that have changed at the source. Changes are rare, so this is written for clarity: lock, judge, then a statement for
// each step. Nothing is deleted that has vanished at the source: child rows get `gone_at`, replaced files move to attachment_versions.
import { type Application, type MemberHashes, sharedId, unreadableFlag } from '../../domain/application.ts';
import type { WriteContext } from '../accounts/leases.ts';
import type { ApplicationEvent } from '../events.ts';
import { notifyQueued } from '../files/download-queue.ts';
import type { ReplacedBytes } from '../files/file-states.ts';
import { loadFlagged, lockApplications, markFlagged, replaceBytes, updateReady } from '../files/file-states.ts';
import { type Account, withoutErased } from '../gate.ts';
import { columnsOf, type Queryable, type Transaction } from '../postgres/database.ts';
import { eraseStopped } from '../privacy/erasure-jobs.ts';
import type { ReadPage } from './diff-page.ts';
import { toJson, toPriority } from './insert.ts';
import { hasSameFacts, isHashSignal, learnVolatile, toContent, toDiffering } from './volatile.ts';

/** The transaction of one page. */
export interface PageWrite extends Account {
  readonly db: Transaction;
  readonly page: ReadPage;
  /** Appended at the end of the transaction. */
  readonly events: ApplicationEvent[];
}

/** Writes changes, and erases what the gate stops by now. `stale`: not written, because a newer request has seen these ids (P5). */
export async function applyChanges(open: PageWrite, changed: readonly Application[]) {
  if (changed.length === 0) return { changed: 0, stale: [] };
  const { db: tx, advertiserId, page, events } = open;
  const { stale, silent } = await lockAndJudge(tx, page, changed);
  const newer = changed.filter(({ id }) => !stale.has(id));
  const current = await withoutErased(open, newer);
  await eraseStopped(open, new Set(newer).difference(new Set(current)));
  if (current.length === 0) return { changed: 0, stale: [...stale] };

  const rows = toJson(open, page, current);
  const ids = current.map((a) => a.id);
  const announced = ids.filter((id) => !silent.has(id));
  await tx.query(updateApplicationsSql, [advertiserId, rows, page.seq, announced]);
  await tx.query(mergeJobSeekingInfoSql, [advertiserId, rows]);
  const flagged = await loadFlagged(tx, advertiserId, ids);
  const signalSql = `SELECT ${isHashSignal} AS "hashSignals"`;
  const [{ hashSignals } = { hashSignals: true }] = await tx.query<{ hashSignals: boolean }>(signalSql, [advertiserId]);
  const priority = toPriority(page.lease);
  await tx.query(keepVersionsSql, [advertiserId, rows, hashSignals]);
  await tx.query(dropReplacedSql, [advertiserId, rows]);
  await tx.query(takeBackDoubtfulSql, [advertiserId, rows, hashSignals]);
  const inTransfer = await tx.query<ReplacedBytes>(loadAnnouncedSql, [advertiserId, rows]);
  await replaceBytes(tx, advertiserId, inTransfer);
  await tx.query(queueConfirmationsSql, [advertiserId, rows, hashSignals, priority]);
  await tx.query(mergeAttachmentsSql, [advertiserId, rows, hashSignals]);
  await tx.query(queueDownloadsSql, [advertiserId, rows, priority]);
  const recalled = await markFlagged(tx, advertiserId, ids, flagged);
  await notifyQueued(tx, advertiserId);
  const followed = [...recalled, ...(await updateReady(tx, advertiserId, ids))];
  events.push(...announced.map((id): ApplicationEvent => ({ applicationId: id, type: 'application.changed' })));
  const said = new Set(announced);
  events.push(...followed.filter((event) => event.type !== 'application.changed' || !said.has(event.applicationId)));
  return { changed: announced.length, stale: [...stale] };
}

/** The files of an id are other people's by now: what waits is not fetched. A flag of the same upload counts: it may be one person. */
export async function withholdFiles(open: PageWrite, strangers: readonly Application[]): Promise<void> {
  const { db: tx, advertiserId, page, events } = open;
  const ids = [...new Set(strangers.map(({ id }) => id))];
  const flagged = strangers.flatMap(({ id, attachments }) =>
    attachments.flatMap(({ kind, hasVirus, uploadedAt }) =>
      hasVirus === true && uploadedAt !== null ? [{ id, kind, at: new Date(uploadedAt) }] : [],
    ),
  );
  await lockApplications(tx, advertiserId, ids);
  const before = await loadFlagged(tx, advertiserId, ids);
  await tx.query(
    `WITH shared AS (
       SELECT application_id FROM intake.applications a
       WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[]) AND erased_at IS NULL AND NOT ${isOvertaken}
     ), dropped AS (
       DELETE FROM intake.downloads d USING shared s WHERE d.advertiser_id = $1 AND d.application_id = s.application_id
     )
     UPDATE intake.attachments a SET has_virus = f.kind IS NOT NULL OR a.has_virus, reason = '${sharedId}',
       state = CASE WHEN a.state <> 'pending' THEN a.state WHEN f.kind IS NULL THEN 'rejected' ELSE 'infected' END
     FROM shared s JOIN intake.attachments b ON b.advertiser_id = $1 AND b.application_id = s.application_id
     LEFT JOIN unnest($5::bigint[], $6::text[], $7::timestamptz[]) AS f (id, kind, at)
       ON f.id = b.application_id AND f.kind = b.kind AND f.at = b.uploaded_at
     WHERE a.advertiser_id = $1 AND a.application_id = b.application_id AND a.kind = b.kind
       AND (a.state = 'pending' OR a.state = 'stored' AND f.kind IS NOT NULL)`,
    [advertiserId, ids, page.seq, page.lease.lane, ...columnsOf(flagged, 'id', 'kind', 'at')],
  );
  events.push(...(await markFlagged(tx, advertiserId, ids, before)), ...(await updateReady(tx, advertiserId, ids)));
}

/** True where a newer request than $3 has seen the application: the row tells of this lane ($4), recent pages of the other. */
const isOvertaken = `(a.observed_seq > $3 OR EXISTS (
         SELECT 1 FROM intake.recent_pages r
         WHERE r.advertiser_id = $1 AND r.seq > $3 AND r.lane <> $4
           AND a.application_id BETWEEN r.lowest_id AND r.highest_id))`;

/** `stale`: a newer request has seen the id. `silent`: nothing differs but Hash and Href, and members that are volatile by now. */
async function lockAndJudge(tx: Queryable, context: WriteContext, changed: readonly Application[]) {
  const ids = changed.map((a) => a.id);
  await lockApplications(tx, context.advertiserId, ids);
  const rows = await tx.query<{ id: bigint; stale: boolean; same: boolean; members: MemberHashes | null }>(
    `SELECT a.application_id AS id, ${isOvertaken} AS stale,
       missing_since IS NULL AND ${hasSameFacts} AS same, members
     FROM unnest($2::bigint[], $5::text[]) AS p (id, facts)
     JOIN intake.applications a ON a.advertiser_id = $1 AND a.application_id = p.id`,
    [context.advertiserId, ids, context.seq, context.lease.lane, changed.map((a) => a.factsHash)],
  );
  const came = new Map(changed.map((a) => [a.id, a.members]));
  const same = rows
    .filter((row) => row.same && !row.stale)
    .map(({ id, members }) => ({ id, before: members ?? {}, after: came.get(id) ?? {} }));
  const volatile = await learnVolatile(
    tx,
    context.advertiserId,
    same.flatMap(({ id, before, after }) => toDiffering(before, after).map((member) => ({ member, who: String(id) }))),
  );
  const isSilent = ({ before, after }: (typeof same)[number]) =>
    toContent(before, volatile) === toContent(after, volatile);
  return {
    stale: new Set(rows.filter((row) => row.stale).map(({ id }) => id)),
    silent: new Set(same.filter(isSilent).map(({ id }) => id)),
  };
}

/** The rows of the page, as `toJson` sends them. */
const pageRows = `jsonb_populate_recordset(NULL::intake.applications, $2::jsonb -> 'applications') AS p`;

/** Only false lifts a flag. Where the source no longer says anything readable, the flag of the same file stays; Size is 0 without bytes. */
const pageFiles = `(SELECT f.application_id, f.kind, CASE WHEN flagged.has_virus THEN 'infected' ELSE f.state END AS state,
    CASE WHEN flagged.has_virus THEN NULL ELSE f.reason END AS reason, f.source_hash, f.size_bytes,
    coalesce(f.has_virus, flagged.has_virus) AS has_virus, f.uploaded_at, f.uploaded_offset, f.href
  FROM jsonb_populate_recordset(NULL::intake.attachments, $2::jsonb -> 'files') AS f
  LEFT JOIN intake.attachments flagged ON flagged.advertiser_id = $1 AND flagged.application_id = f.application_id AND flagged.kind = f.kind
    AND flagged.has_virus AND f.has_virus IS NULL AND flagged.uploaded_at IS NOT DISTINCT FROM f.uploaded_at
    AND coalesce(nullif(flagged.size_bytes, 0) = nullif(f.size_bytes, 0), true)) AS f`;

/** The files of the page that are stored already, beside their attachments. */
const storedFiles = `${pageFiles}
  JOIN intake.attachments old ON old.advertiser_id = $1 AND old.application_id = f.application_id AND old.kind = f.kind`;

/** True where a name or a phone is there. */
const isNamed = (row: string) =>
  `(regexp_replace(concat_ws(' ', ${row}.first_name, ${row}.last_name, ${row}.phone), 'redacted', '', 'gi') ~ '[[:alnum:]\\u0080-\\uffff]')`;

/** An answer that names nobody shows nobody else: the row keeps its person, of whom only that may be known. */
const updateApplicationsSql = `
  UPDATE intake.applications a SET
    submitted_at = p.submitted_at, source_offset = p.source_offset, email = p.email, first_name = p.first_name,
    last_name = p.last_name, phone = p.phone, job_seeker_id = p.job_seeker_id, job_reference = p.job_reference, raw = p.raw,
    raw_text = p.raw_text, notes = p.notes, content_hash = p.content_hash,
    person_key = coalesce(p.person_key, a.person_key, CASE WHEN ${isNamed('a')} AND NOT ${isNamed('p')} THEN gen_random_uuid()::text END),
    facts_hash = p.facts_hash, members = p.members, observed_seq = $3,
    changed_at = CASE WHEN p.application_id = ANY ($4::bigint[]) THEN now() ELSE a.changed_at END, absent_since = NULL, missing_since = NULL
  FROM ${pageRows}
  WHERE a.advertiser_id = $1 AND a.application_id = p.application_id`;

const mergeJobSeekingInfoSql = `
  WITH page AS MATERIALIZED (
    SELECT * FROM jsonb_populate_recordset(NULL::intake.primary_job_seeking_info, $2::jsonb -> 'infos')
  ), gone AS (
    -- Without its values: a query on this table alone would take them for valid.
    UPDATE intake.primary_job_seeking_info i
    SET gone_at = now(), job_title = NULL, company_name = NULL, time_in_role_months = NULL, is_new_to_workforce = NULL
    FROM ${pageRows}
    WHERE i.advertiser_id = $1 AND i.application_id = p.application_id AND i.gone_at IS NULL
      AND p.application_id NOT IN (SELECT application_id FROM page)
  )
  INSERT INTO intake.primary_job_seeking_info
    (advertiser_id, application_id, job_title, company_name, time_in_role_months, is_new_to_workforce)
  SELECT $1, application_id, job_title, company_name, time_in_role_months, is_new_to_workforce FROM page
  ON CONFLICT (advertiser_id, application_id) DO UPDATE SET
    job_title = excluded.job_title, company_name = excluded.company_name, time_in_role_months = excluded.time_in_role_months,
    is_new_to_workforce = excluded.is_new_to_workforce, gone_at = NULL`;

/** True where the virus flag of the same upload changed. Its Size and Hash may change too: Size is 0 while the source shows no bytes. */
const isFlagOnly = (f: string) => `((old.has_virus IS TRUE) <> (${f}.has_virus IS TRUE)
    AND old.uploaded_at IS NOT DISTINCT FROM ${f}.uploaded_at)`;

/** $3 says whether Hash signals changes. */
const hasOtherHash = (f: string) => `($3::boolean AND old.source_hash IS DISTINCT FROM ${f}.source_hash)`;

/** True where the source has another file than the stored one: its Size or upload time differs, whatever Hash says. */
const isReplaced = (f: string) => `(old.uploaded_at IS DISTINCT FROM ${f}.uploaded_at
    OR NOT ${isFlagOnly(f)} AND old.size_bytes IS DISTINCT FROM ${f}.size_bytes)`;

/** A changed Hash alone shows another file only where there is no upload time to show that it is the same upload. */
const isOtherFile = (f: string) => `(${isReplaced(f)}
    OR NOT ${isFlagOnly(f)} AND ${f}.uploaded_at IS NULL AND ${hasOtherHash(f)})`;

/** True where Hash differs, but not upload time and Size: the bytes are fetched again to decide whether it is another file. */
const isDoubtful = (f: string) => `(${hasOtherHash(f)} AND NOT ${isFlagOnly(f)} AND NOT ${isOtherFile(f)})`;

/** True where a file is not fetched until its flag can be read, or the row changes. Bytes that are stored already stay. */
const isWithheld = (a: string) => `(coalesce(${a}.reason IN ('${unreadableFlag}', '${sharedId}'), false))`;

const keepVersionsSql = `
  INSERT INTO intake.attachment_versions (advertiser_id, application_id, kind, version, state, reason, source_hash, size_bytes,
    has_virus, uploaded_at, sha256, content_type, detected_type, file_name, stored_at)
  SELECT old.advertiser_id, old.application_id, old.kind, old.version, old.state, old.reason, old.source_hash, old.size_bytes,
    old.has_virus, old.uploaded_at, old.sha256, old.content_type, old.detected_type, old.file_name, old.stored_at
  FROM ${storedFiles}
  WHERE old.state <> 'pending' AND old.state <> 'erased' AND ${isOtherFile('f')}`;

/**
 * Another file, or one whose flag was lifted or can be read again, starts over. A new flag ends the attachment as infected. Others keep their
 * state, also infected ones because of the same bytes elsewhere. A flag on another upload does not apply to the stored bytes.
 */
const mergeAttachmentsSql = `
  WITH page AS MATERIALIZED (SELECT * FROM ${pageFiles}), gone AS (
    UPDATE intake.attachments a SET gone_at = now()
    FROM ${pageRows}
    WHERE a.advertiser_id = $1 AND a.application_id = p.application_id AND a.gone_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM page f WHERE f.application_id = p.application_id AND f.kind = a.kind)
  )
  INSERT INTO intake.attachments AS old
    (advertiser_id, application_id, kind, state, reason, source_hash, size_bytes, has_virus, uploaded_at, uploaded_offset, href)
  SELECT $1, f.application_id, f.kind, f.state, f.reason, f.source_hash, f.size_bytes, f.has_virus, f.uploaded_at, f.uploaded_offset, f.href
  FROM page f
  ON CONFLICT (advertiser_id, application_id, kind) DO UPDATE SET
    (version, state, reason, sha256, content_type, detected_type, file_name, stored_at, notes, linked, parser_version) = (
      SELECT CASE WHEN other.file AND old.state NOT IN ('pending', 'erased') THEN old.version + 1 ELSE old.version END,
        CASE WHEN keep THEN old.state ELSE excluded.state END,
        CASE WHEN keep AND excluded.has_virus IS NOT TRUE THEN old.reason ELSE excluded.reason END,
        CASE WHEN keep OR (excluded.state = 'infected' AND NOT newer) THEN old.sha256 END, CASE WHEN keep THEN old.content_type END, CASE WHEN keep THEN old.detected_type END,
        CASE WHEN keep THEN old.file_name END, CASE WHEN keep THEN old.stored_at END, CASE WHEN keep THEN old.notes END,
        keep AND old.linked, CASE WHEN keep THEN old.parser_version END
      FROM (SELECT ${isOtherFile('excluded')} AS file) AS other,
        LATERAL (SELECT old.state = 'erased' OR NOT (other.file
            OR (excluded.state = 'infected' AND old.state <> 'infected')
            OR (${isWithheld('excluded')} AND old.state = 'pending')
            OR (${isWithheld('old')} AND NOT ${isWithheld('excluded')})
            OR (old.state = 'infected' AND old.has_virus AND excluded.state <> 'infected')) AS keep,
          other.file AND old.uploaded_at IS DISTINCT FROM excluded.uploaded_at AS newer) AS verdict
    ),
    source_hash = excluded.source_hash, size_bytes = excluded.size_bytes, has_virus = excluded.has_virus,
    uploaded_at = excluded.uploaded_at, uploaded_offset = excluded.uploaded_offset, href = excluded.href, gone_at = NULL`;

/** The download of a replaced file leaves the queue, with its attempts, its lapses and its trouble. The new file is queued as any other. */
const dropReplacedSql = `
  DELETE FROM intake.downloads d USING ${storedFiles}
  WHERE d.advertiser_id = $1 AND d.application_id = f.application_id AND d.kind = f.kind AND ${isReplaced('f')}`;

/** The bytes in transfer may be an earlier file's. Attempts stay: Hash may change with every page, and no missing file would ever end. */
const takeBackDoubtfulSql = `
  UPDATE intake.downloads d SET lease_token = NULL, leased_until = NULL, sha256 = NULL,
    attempts = d.attempts - (d.lease_token IS NOT NULL)::int
  FROM ${storedFiles}
  WHERE d.advertiser_id = $1 AND d.application_id = f.application_id AND d.kind = f.kind
    AND ${hasOtherHash('f')} AND NOT ${isFlagOnly('f')}`;

/** A flag on a file whose bytes were announced but not completed applies to these bytes: they may be in the blob store. */
const loadAnnouncedSql = `
  SELECT f.application_id AS "applicationId", f.kind, d.sha256
  FROM ${storedFiles} JOIN intake.downloads d ON d.advertiser_id = $1 AND d.application_id = f.application_id AND d.kind = f.kind
  WHERE f.has_virus AND d.sha256 IS NOT NULL AND d.sha256 IS DISTINCT FROM old.sha256
    AND old.uploaded_at IS NOT DISTINCT FROM f.uploaded_at`;

/** Of these only Hash changed: complete-download.ts compares the bytes. No other queue row has an attachment that is not pending. */
const queueConfirmationsSql = `
  INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority)
  SELECT $1, f.application_id, f.kind, $4 FROM ${storedFiles}
  WHERE f.state = 'pending' AND old.state NOT IN ('pending', 'erased') AND ${isDoubtful('f')}
  ON CONFLICT (advertiser_id, application_id, kind) DO NOTHING`;

/** Queues every file that is pending after the merge, and removes flagged, withheld and erased ones from the queue. */
const queueDownloadsSql = `
  WITH page AS MATERIALIZED (SELECT p.application_id FROM ${pageRows}), done AS (
    DELETE FROM intake.downloads d USING page, intake.attachments a
    WHERE d.advertiser_id = $1 AND d.application_id = page.application_id
      AND a.advertiser_id = $1 AND a.application_id = d.application_id AND a.kind = d.kind
      AND (a.state = 'erased' OR a.state = 'infected' AND a.has_virus OR ${isWithheld('a')})
  )
  INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority)
  SELECT $1, a.application_id, a.kind, $3 FROM page
  JOIN intake.attachments a ON a.advertiser_id = $1 AND a.application_id = page.application_id AND a.state = 'pending'
  ON CONFLICT (advertiser_id, application_id, kind) DO NOTHING`;

// Commands on stored files: find a file, download files again, and parse stored screens again.
import type { KeyObject } from 'node:crypto';
import {
  type AttachmentState,
  attachmentKinds,
  type Note,
  type ParsedScreens,
  unreadableFlag,
} from '../../domain/application.ts';
import { appendEvents, type ChangedRow, toEvents } from '../events.ts';
import { mayStore } from '../gate.ts';
import type { Database, Queryable } from '../postgres/database.ts';
import type { Columns } from '../schema/rows.ts';
import { replaceScreens } from './complete-download.ts';
import { reopenAttachments } from './file-states.ts';
import { inPages } from './verify-blobs.ts';

/** Where a file of an application lies, for each advertiser that has stored one; none where it is not stored. */
export async function findStoredFile(db: Queryable, advertisers: readonly bigint[], id: bigint, kind: string) {
  return await db.query<{ advertiserId: bigint; key: string; fileName: string | null; contentType: string | null }>(
    `SELECT advertiser_id AS "advertiserId", b.key, a.file_name AS "fileName", a.content_type AS "contentType"
     FROM intake.attachments a JOIN intake.blobs b USING (advertiser_id, sha256)
     WHERE advertiser_id = ANY ($1::bigint[]) AND a.application_id = $2 AND a.kind = $3 AND a.state = 'stored' AND b.state = 'stored'
     ORDER BY advertiser_id`,
    [advertisers, id, kind],
  );
}

export interface RetryChoice {
  readonly applicationId: bigint | null;
  readonly kind: string | null;
  /** Null: all files that wait or ended without bytes. */
  readonly state: 'waiting' | 'missing' | 'rejected' | 'given_up' | null;
}

/** Makes waiting downloads due and reopens ended ones. Returns how many. */
export async function retryDownloads(db: Database, advertiserId: bigint, choice: RetryChoice): Promise<number> {
  const states: AttachmentState[] =
    choice.state === null
      ? ['pending', 'missing', 'rejected', 'given_up']
      : [choice.state === 'waiting' ? 'pending' : choice.state];
  return await db.transaction(async (tx) => {
    const chosen = await tx.query<Columns<'attachments', 'application_id' | 'kind'>>(
      `SELECT application_id, kind FROM intake.attachments
       WHERE advertiser_id = $1 AND state = ANY ($2::text[]) AND ($3::bigint IS NULL OR application_id = $3)
         AND ($4::text IS NULL OR kind = $4) AND kind = ANY ($5::text[]) AND reason IS DISTINCT FROM $6`,
      [advertiserId, states, choice.applicationId, choice.kind, attachmentKinds, unreadableFlag],
    );
    await appendEvents(tx, advertiserId, await reopenAttachments(tx, advertiserId, chosen, states));
    return chosen.length;
  });
}

const pageSize = 500;

export interface StoredScreen {
  readonly advertiserId: bigint;
  readonly applicationId: bigint;
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly contentType: string | null;
}

/** Stored screens that another parser version parsed or that no parser could read; all stored screens where `parserVersion` is null. */
export function loadStoredScreens(db: Queryable, advertiserId: bigint, parserVersion: number | null) {
  return inPages<StoredScreen>(pageSize, (after) =>
    db.query(
      `SELECT a.advertiser_id AS "advertiserId", a.application_id AS "applicationId", a.sha256,
         b.size_bytes::float8 AS "sizeBytes", a.content_type AS "contentType"
       FROM intake.attachments a JOIN intake.blobs b USING (advertiser_id, sha256)
       WHERE a.advertiser_id = $1 AND a.kind = 'screen' AND a.state = 'stored' AND b.state = 'stored'
         AND ($2::bigint IS NULL OR a.application_id > $2) AND ($3::int IS NULL OR a.parser_version IS DISTINCT FROM $3)
       ORDER BY a.application_id LIMIT ${pageSize}`,
      [advertiserId, after?.applicationId ?? null, parserVersion],
    ),
  );
}

/** Replaces the parsed screens of a file and its note about them. False when the attachment has other bytes by now, or was erased. */
export async function replaceParsedScreens(
  db: Database,
  privacyKey: KeyObject,
  { advertiserId, applicationId, sha256 }: StoredScreen,
  parsed: ParsedScreens | null,
  note: Note | null,
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [may] = await mayStore({ db: tx, privacyKey, advertiserId }, [
      { applicationId, accounts: [], addresses: [] },
    ]);
    if (!may) return false;
    const rows = await tx.query<ChangedRow>(
      `WITH held AS MATERIALIZED (
         SELECT missing_since IS NOT NULL AS missing FROM intake.applications
         WHERE advertiser_id = $1 AND application_id = $2 FOR NO KEY UPDATE
       )
       UPDATE intake.attachments a SET parser_version = $4,
         notes = nullif(coalesce(jsonb_path_query_array(notes, '$[*] ? (@.field != "screen")'), '[]') || $5::jsonb, '[]')
       FROM held
       WHERE a.advertiser_id = $1 AND a.application_id = $2 AND a.kind = 'screen' AND a.state = 'stored' AND a.sha256 = $3
       RETURNING a.application_id, held.missing`,
      [advertiserId, applicationId, sha256, parsed?.parserVersion ?? null, JSON.stringify(note ? [note] : [])],
    );
    if (rows.length === 0) return false;
    const before = await loadScreenText(tx, advertiserId, applicationId);
    await replaceScreens(tx, advertiserId, [{ applicationId, sha256, parsed }]);
    const isOther = (await loadScreenText(tx, advertiserId, applicationId)) !== before;
    await appendEvents(tx, advertiserId, isOther ? toEvents('application.changed', rows) : []);
    return true;
  });
}

async function loadScreenText(tx: Queryable, advertiserId: bigint, applicationId: bigint): Promise<string | null> {
  const of = (table: string) =>
    `(SELECT jsonb_agg(to_jsonb(s) - 'parser_version' ORDER BY to_jsonb(s)) FROM intake.${table} s WHERE advertiser_id = $1 AND application_id = $2)`;
  const [row] = await tx.query<{ text: string | null }>(
    `SELECT jsonb_build_array(${of('screens')}, ${of('screen_questions')}, ${of('screen_answers')})::text AS text`,
    [advertiserId, applicationId],
  );
  return row?.text ?? null;
}

// What is known of a file before its download starts: what the source said of it, and whether an equal one is held already.
import type { BlobFacts } from '../../domain/blob.ts';
import type { HashSetting, HashTrust } from '../../domain/hash-trust.ts';
import { isAccount } from '../person-search.ts';
import type { Queryable } from '../postgres/database.ts';
import type { Columns, OrNull } from '../schema/rows.ts';
import type { Claim } from './download-queue.ts';

/** What the source said of a claimed file. */
export interface FileFacts {
  readonly claim: Claim;
  readonly sizeBytes: number | null;
  readonly uploadedAt: Date | null;
  /** A stored file of equal Hash and Size that this one may be the same as; none where the bytes are fetched to confirm them. */
  readonly twin: Twin | null;
  readonly trust: HashTrust;
}

/** The twin's file name is left out: it belongs to the other person, and would survive their erasure here. */
export interface Twin extends BlobFacts, Omit<DeclaredFile, 'fileName'> {}

/** What an answer says of the file beside its bytes. */
export interface DeclaredFile {
  readonly contentType: string | null;
  readonly detectedType: string | null;
  readonly fileName: string | null;
}

/**
 * Of one jobseeker and kind where trust is earned, of the whole advertiser where it is given. A screen is never linked: it is small, and
 * read. The limits keep a constant id or Hash from costing more than a few rows, and the planner, whose statistics lag behind a queue
 * that fills, from walking through an advertiser's whole index for each file (measured: 4,000 pages for 32 claims among 500 applications).
 */
const twinSql: Record<Exclude<HashSetting, 'never'>, string> = {
  learn: `SELECT o.* FROM (
      SELECT q.application_id FROM intake.applications q
      WHERE q.advertiser_id = a.advertiser_id AND q.job_seeker_id = p.job_seeker_id AND q.application_id <> a.application_id
        AND ${isAccount('p.job_seeker_id')} LIMIT 50
    ) AS q CROSS JOIN LATERAL (
      SELECT * FROM intake.attachments o
      WHERE o.advertiser_id = a.advertiser_id AND o.application_id = q.application_id AND o.kind = a.kind OFFSET 0
    ) AS o`,
  always: `SELECT o.* FROM intake.attachments o
    WHERE o.advertiser_id = a.advertiser_id AND o.kind <> 'screen' AND left(o.source_hash, 100) = left(a.source_hash, 100)`,
};

/** Loads the facts of a batch of claims; those whose attachment is gone meanwhile are left out. */
export async function loadFileFacts(
  db: Queryable,
  claims: readonly Claim[],
  setting: HashSetting,
): Promise<FileFacts[]> {
  const candidates = setting === 'never' ? `SELECT * FROM intake.attachments WHERE false` : twinSql[setting];
  const rows = await db.query<FactsRow>(
    `SELECT c.at::int, a.size_bytes, a.uploaded_at, h.agreed, h.contradicted_at, h.unchanged,
       t.sha256, t.true_size_bytes, t.content_type, t.detected_type
     FROM unnest($1::bigint[], $2::bigint[], $3::text[]) WITH ORDINALITY AS c (advertiser_id, application_id, kind, at)
     JOIN intake.attachments a USING (advertiser_id, application_id, kind)
     JOIN intake.applications p USING (advertiser_id, application_id)
     LEFT JOIN intake.hash_trust h USING (advertiser_id)
     LEFT JOIN LATERAL (
       SELECT o.sha256, rtrim(split_part(o.content_type, ';', 1)) AS content_type, o.detected_type, b.size_bytes AS true_size_bytes
       FROM (${candidates}) AS o JOIN intake.blobs b ON b.advertiser_id = o.advertiser_id AND b.sha256 = o.sha256
       WHERE a.state = 'pending' AND a.kind <> 'screen' AND a.source_hash <> '' AND o.state = 'stored' AND b.state = 'stored'
         AND o.source_hash = a.source_hash AND o.size_bytes = a.size_bytes
       ORDER BY o.linked LIMIT 1
     ) AS t ON true`,
    [claims.map((c) => c.advertiserId), claims.map((c) => c.applicationId), claims.map((c) => c.kind)],
  );
  return rows.flatMap((row) => {
    const claim = claims[row.at - 1];
    return claim ? [toFacts(claim, row)] : [];
  });
}

/** What a source can be asked to show that it serves an account. */
export interface ProbeFacts {
  /** The largest id that is held: a list after it is short. */
  readonly newestId: bigint | null;
  /** A file that the source has served before: a small one where there is one, and not always the same. */
  readonly stored: { readonly applicationId: bigint; readonly kind: string; readonly sizeBytes: number | null } | null;
}

/** A stored file is looked for among the newest only, so that a queue of a million files costs nothing here. */
const newestFiles = 10_000;

export async function loadProbe(db: Queryable, advertiserId: bigint): Promise<ProbeFacts> {
  const [row] = await db.query<
    { newest_id: bigint | null } & OrNull<Columns<'attachments', 'application_id' | 'kind' | 'size_bytes'>>
  >(
    `SELECT (SELECT max(application_id) FROM intake.applications WHERE advertiser_id = $1) AS newest_id, f.*
     FROM (VALUES (1)) AS one LEFT JOIN (
       SELECT application_id, kind, size_bytes FROM (
         SELECT * FROM intake.attachments WHERE advertiser_id = $1 ORDER BY application_id DESC LIMIT ${newestFiles}
       ) AS newest WHERE state = 'stored' AND gone_at IS NULL AND NOT linked
       ORDER BY size_bytes > 1000000, random() LIMIT 1
     ) AS f ON true`,
    [advertiserId],
  );
  const {
    newest_id: newestId = null,
    application_id: applicationId = null,
    kind = null,
    size_bytes: size = null,
  } = row ?? {};
  const sizeBytes = size === null ? null : Number(size);
  return { newestId, stored: applicationId === null || kind === null ? null : { applicationId, kind, sizeBytes } };
}

type FactsRow = { at: number; true_size_bytes: bigint | null } & Columns<
  'attachments',
  'size_bytes' | 'uploaded_at' | 'sha256' | 'content_type' | 'detected_type'
> &
  OrNull<Columns<'hash_trust', 'agreed' | 'contradicted_at' | 'unchanged'>>;

function toFacts(claim: Claim, row: FactsRow): FileFacts {
  return {
    claim,
    sizeBytes: row.size_bytes === null ? null : Number(row.size_bytes),
    uploadedAt: row.uploaded_at,
    twin:
      row.sha256 === null
        ? null
        : {
            sha256: row.sha256,
            sizeBytes: Number(row.true_size_bytes),
            contentType: row.content_type,
            detectedType: row.detected_type,
          },
    trust: { agreed: row.agreed ?? 0, contradicted: row.contradicted_at !== null, unchanged: row.unchanged ?? 0 },
  };
}

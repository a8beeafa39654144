// What is known about a file before its download starts: the source's description, and a stored file that may have the same bytes.
import type { BlobFacts, FileDescription } from '../../domain/blob.ts';
import type { HashSetting, HashTrust } from '../../domain/hash-trust.ts';
import { isAccount } from '../person-search.ts';
import { columnsOf, type Queryable } from '../postgres/database.ts';
import type { Claim } from './download-queue.ts';

export interface FileFacts {
  readonly claim: Claim;
  /** Size in the list; it may be wrong. */
  readonly listedBytes: number | null;
  readonly uploadedAt: Date | null;
  /** A stored file with equal Hash and Size, which may have the same bytes. Null where the download only checks a changed Hash. */
  readonly twin: Twin | null;
  readonly trust: HashTrust;
}

/** Without the twin's file name, which a parameter of its type may repeat: it may be another person's, and would survive their erasure. */
export interface Twin extends BlobFacts, Omit<FileDescription, 'fileName'> {}

/**
 * Candidates for a twin: files of the same jobseeker and kind where trust is earned (`learn`), files of the whole advertiser where it is
 * given (`always`). A screen is never linked: it is small, and it has to be parsed. In `learn`, LIMIT 50 bounds the cost of a jobseeker id
 * that many applications share. LIMIT and OFFSET 0 also keep the planner, whose statistics lag behind a growing queue, from reading an
 * advertiser's whole index for each file (measured: 4,000 pages for 32 claims among 500 applications).
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

/** Loads the facts of a batch of claims. A claim whose attachment no longer exists is left out. */
export async function loadFileFacts(db: Queryable, claims: readonly Claim[], setting: HashSetting) {
  const candidates = setting === 'never' ? `SELECT * FROM intake.attachments WHERE false` : twinSql[setting];
  const rows = await db.query<Omit<FileFacts, 'claim'> & { at: number }>(
    `SELECT c.at::int, a.size_bytes::float8 AS "listedBytes", a.uploaded_at AS "uploadedAt", to_jsonb(t) AS twin,
       jsonb_build_object('agreed', coalesce(h.agreed, 0), 'contradicted', h.contradicted_at IS NOT NULL) AS trust
     FROM unnest($1::bigint[], $2::bigint[], $3::text[]) WITH ORDINALITY AS c (advertiser_id, application_id, kind, at)
     JOIN intake.attachments a USING (advertiser_id, application_id, kind)
     JOIN intake.applications p USING (advertiser_id, application_id)
     LEFT JOIN intake.hash_trust h USING (advertiser_id)
     LEFT JOIN LATERAL (
       SELECT o.sha256, b.size_bytes AS "sizeBytes", rtrim(split_part(o.content_type, ';', 1)) AS "contentType", o.detected_type AS "detectedType"
       FROM (${candidates}) AS o JOIN intake.blobs b ON b.advertiser_id = o.advertiser_id AND b.sha256 = o.sha256
       WHERE a.state = 'pending' AND a.kind <> 'screen' AND a.source_hash <> '' AND o.state = 'stored' AND b.state = 'stored'
         AND o.source_hash = a.source_hash AND o.size_bytes = a.size_bytes
       ORDER BY o.linked LIMIT 1
     ) AS t ON true`,
    columnsOf(claims, 'advertiserId', 'applicationId', 'kind'),
  );
  return rows.flatMap(({ at, ...facts }) => claims.slice(at - 1, at).map((claim) => ({ ...facts, claim })));
}

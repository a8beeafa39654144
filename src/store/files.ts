// Files as rows: what is known of a download before it starts, and the one fenced transaction that ends it: blob, attachment, screen
// rows, ready and events together, or nothing. The token is checked inside it, so a claim that changed hands writes nothing.
import type { Note } from '../domain/application.ts';
import type { FinalState } from '../domain/attempts.ts';
import type { BlobFacts } from '../domain/blob.ts';
import type { HashSetting, HashTrust } from '../domain/hash-trust.ts';
import type { ScreenReading } from '../domain/screen.ts';
import { sameBytes } from './condemned.ts';
import { type Database, type Queryable, untilSettled } from './database.ts';
import type { Claim } from './downloads.ts';
import { appendEvents } from './events.ts';
import { reopenAttachments, settleReady } from './ready.ts';
import { replaceScreens } from './screens.ts';

/** What the source said of a claimed file. */
export interface FileFacts {
  readonly claim: Claim;
  readonly sizeBytes: number | null;
  /** A stored file of equal Hash and Size that this one may be the same as. */
  readonly twin: Twin | null;
  readonly trust: HashTrust;
}

export interface Twin extends BlobFacts, FileDescription {}

/** What an answer says of the file beside its bytes. */
export interface FileDescription {
  readonly contentType: string | null;
  readonly detectedType: string | null;
  readonly fileName: string | null;
}

/** Of one jobseeker and kind where trust is earned, of the whole advertiser where it is given. A screen is never linked: it is small, and read. */
const twinSql: Record<Exclude<HashSetting, 'never'>, string> = {
  learn: `SELECT o.* FROM intake.applications q
    JOIN intake.attachments o ON o.advertiser_id = q.advertiser_id AND o.application_id = q.application_id AND o.kind = a.kind
    WHERE q.advertiser_id = a.advertiser_id AND q.job_seeker_id = p.job_seeker_id AND q.application_id <> a.application_id`,
  always: `SELECT o.* FROM intake.attachments o WHERE o.advertiser_id = a.advertiser_id AND o.kind <> 'screen'`,
};

/** Loads the facts of a batch of claims; those whose attachment is gone meanwhile are left out. */
export async function loadFileFacts(
  db: Queryable,
  claims: readonly Claim[],
  setting: HashSetting,
): Promise<FileFacts[]> {
  const candidates = setting === 'never' ? `SELECT * FROM intake.attachments WHERE false` : twinSql[setting];
  const rows = await db.query<FactsRow>(
    `SELECT c.at::int, a.size_bytes, h.agreed, h.contradicted_at, h.unchanged,
       t.sha256, t.true_size_bytes, t.content_type, t.detected_type, t.file_name
     FROM unnest($1::bigint[], $2::bigint[], $3::text[]) WITH ORDINALITY AS c (advertiser_id, application_id, kind, at)
     JOIN intake.attachments a USING (advertiser_id, application_id, kind)
     JOIN intake.applications p USING (advertiser_id, application_id)
     LEFT JOIN intake.hash_trust h USING (advertiser_id)
     LEFT JOIN LATERAL (
       SELECT o.sha256, o.content_type, o.detected_type, o.file_name, b.size_bytes AS true_size_bytes
       FROM (${candidates}) AS o JOIN intake.blobs b ON b.advertiser_id = o.advertiser_id AND b.sha256 = o.sha256
       WHERE a.kind <> 'screen' AND a.source_hash <> '' AND o.state = 'stored' AND b.state = 'stored'
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

interface FactsRow extends Record<string, unknown> {
  at: number;
  size_bytes: bigint | null;
  agreed: number | null;
  contradicted_at: Date | null;
  unchanged: number | null;
  sha256: string | null;
  true_size_bytes: bigint | null;
  content_type: string | null;
  detected_type: string | null;
  file_name: string | null;
}

function toFacts(claim: Claim, row: FactsRow): FileFacts {
  return {
    claim,
    sizeBytes: row.size_bytes === null ? null : Number(row.size_bytes),
    twin:
      row.sha256 === null
        ? null
        : {
            sha256: row.sha256,
            sizeBytes: Number(row.true_size_bytes),
            contentType: row.content_type,
            detectedType: row.detected_type,
            fileName: row.file_name,
          },
    trust: { agreed: row.agreed ?? 0, contradicted: row.contradicted_at !== null, unchanged: row.unchanged ?? 0 },
  };
}

/** How a download ended. */
export type Settlement =
  | ({
      readonly kind: 'stored';
      readonly blob: BlobFacts & { readonly key: string };
      readonly notes: readonly Note[];
      /** True when Hash spared the download. */
      readonly linked: boolean;
      /** What a comparison with the twin showed, where there was one. */
      readonly compared: 'agreed' | 'contradicted' | null;
      /** Null for a file, and for a screen that cannot be read. */
      readonly screens: ScreenReading | null;
    } & FileDescription)
  | { readonly kind: 'final'; readonly state: FinalState; readonly reason: string };

/** `lost`: the claim changed hands, nothing was written. `unlinkable`: the blob to link to is no longer held, nothing was written. */
export type Settled = 'stored' | FinalState | 'lost' | 'unlinkable';

/** Ends a download: everything it means for the database, in one transaction fenced by the claim's token. */
export async function settleDownload(db: Database, claim: Claim, settlement: Settlement): Promise<Settled> {
  return await untilSettled(async () => {
    try {
      return await db.transaction(async (tx) => {
        await takeOut(tx, claim);
        const settled = await write(tx, claim, settlement);
        const events = await settleReady(tx, claim.advertiserId, [claim.applicationId]);
        await appendEvents(tx, claim.advertiserId, events);
        return settled;
      });
    } catch (error) {
      if (error instanceof Undone) return error.why;
      throw error;
    }
  });
}

class Undone extends Error {
  readonly why: 'lost' | 'unlinkable';
  constructor(why: 'lost' | 'unlinkable') {
    super(why);
    this.why = why;
  }
}

/** The fence: without our token on the row there is nothing for us to end. The application is locked first, as pages lock it. */
async function takeOut(tx: Queryable, { advertiserId, applicationId, kind, token }: Claim): Promise<void> {
  const rows = await tx.query(
    `WITH held AS MATERIALIZED (
       SELECT advertiser_id, application_id FROM intake.applications
       WHERE advertiser_id = $1 AND application_id = $2 FOR NO KEY UPDATE
     )
     DELETE FROM intake.downloads d USING held
     WHERE d.advertiser_id = held.advertiser_id AND d.application_id = held.application_id AND d.kind = $3 AND d.lease_token = $4
     RETURNING 1`,
    [advertiserId, applicationId, kind, token],
  );
  if (rows.length === 0) throw new Undone('lost');
}

async function write(tx: Queryable, claim: Claim, settlement: Settlement): Promise<Settled> {
  const key = [claim.advertiserId, claim.applicationId, claim.kind];
  if (settlement.kind === 'final') {
    await tx.query(
      `UPDATE intake.attachments SET state = $4, reason = $5
       WHERE advertiser_id = $1 AND application_id = $2 AND kind = $3`,
      [...key, settlement.state, settlement.reason],
    );
    return settlement.state;
  }
  const { blob } = settlement;
  if (!(await takeBlob(tx, claim.advertiserId, settlement))) {
    await tx.query(
      `UPDATE intake.attachments SET state = 'infected', reason = $4, sha256 = $5
       WHERE advertiser_id = $1 AND application_id = $2 AND kind = $3`,
      [...key, sameBytes, blob.sha256],
    );
    return 'infected';
  }
  const [written] = await tx.query<{ unchanged: boolean }>(storeSql, [
    ...key,
    blob.sha256,
    settlement.contentType,
    settlement.detectedType,
    settlement.fileName,
    settlement.notes.length > 0 ? JSON.stringify(settlement.notes) : null,
    settlement.linked,
    settlement.screens?.parserVersion ?? null,
  ]);
  if (claim.kind === 'screen') {
    const reading = settlement.screens ?? { screens: [], parserVersion: 0 };
    await replaceScreens(tx, { ...claim, sha256: blob.sha256, reading });
  }
  await learnOfHash(tx, claim.advertiserId, settlement.compared, written?.unchanged ?? false);
  return 'stored';
}

/** The blob's row, locked until COMMIT; false when it is condemned: what was put meanwhile must go again. */
async function takeBlob(tx: Queryable, advertiserId: bigint, { blob, linked }: Settlement & { kind: 'stored' }) {
  const rows = linked
    ? await tx.query<{ state: string }>(
        `UPDATE intake.blobs SET orphaned_at = NULL WHERE advertiser_id = $1 AND sha256 = $2 RETURNING state`,
        [advertiserId, blob.sha256],
      )
    : await tx.query<{ state: string }>(
        `INSERT INTO intake.blobs AS b (advertiser_id, sha256, size_bytes, key, state, verified_at)
         VALUES ($1, $2, $3, $4, 'stored', now())
         ON CONFLICT (advertiser_id, sha256) DO UPDATE SET
           state = CASE WHEN b.state = 'condemned' THEN b.state ELSE 'stored' END, verified_at = now(), orphaned_at = NULL,
           emptied_at = CASE WHEN b.state <> 'condemned' THEN b.emptied_at END
         RETURNING state`,
        [advertiserId, blob.sha256, blob.sizeBytes, blob.key],
      );
  const state = rows[0]?.state;
  if (linked && state !== 'stored' && state !== 'condemned') throw new Undone('unlinkable');
  return state !== 'condemned';
}

/** The same bytes as before are no new version: the earlier row is taken back. */
const storeSql = `
  WITH same AS (
    DELETE FROM intake.attachment_versions v USING intake.attachments a
    WHERE a.advertiser_id = $1 AND a.application_id = $2 AND a.kind = $3
      AND v.advertiser_id = $1 AND v.application_id = $2 AND v.kind = $3
      AND v.version = a.version - 1 AND v.sha256 = $4 AND v.state = 'stored'
    RETURNING v.version, v.source_hash IS DISTINCT FROM a.source_hash AS by_hash
  )
  UPDATE intake.attachments SET state = 'stored', reason = NULL, sha256 = $4, content_type = $5, detected_type = $6, file_name = $7,
    notes = $8::jsonb, linked = $9, parser_version = $10, stored_at = now(), version = coalesce((SELECT version FROM same), version)
  WHERE advertiser_id = $1 AND application_id = $2 AND kind = $3
  RETURNING coalesce((SELECT by_hash FROM same), false) AS unchanged`;

/** Books what a download showed of the source's Hash. A contradiction ends all trust, and what was linked by Hash alone is fetched. */
async function learnOfHash(
  tx: Queryable,
  advertiserId: bigint,
  compared: 'agreed' | 'contradicted' | null,
  unchanged: boolean,
): Promise<void> {
  if (compared === null && !unchanged) return;
  await tx.query(
    `INSERT INTO intake.hash_trust AS h (advertiser_id, agreed, contradicted_at, unchanged)
     VALUES ($1, $2, CASE WHEN $3 THEN now() END, $4)
     ON CONFLICT (advertiser_id) DO UPDATE SET agreed = h.agreed + $2,
       contradicted_at = coalesce(h.contradicted_at, excluded.contradicted_at), unchanged = h.unchanged + $4`,
    [advertiserId, compared === 'agreed' ? 1 : 0, compared === 'contradicted', unchanged ? 1 : 0],
  );
  if (compared !== 'contradicted') return;
  const linked = await tx.query<{ application_id: bigint; kind: string }>(
    `SELECT application_id, kind FROM intake.attachments WHERE advertiser_id = $1 AND linked AND state = 'stored'`,
    [advertiserId],
  );
  await reopenAttachments(
    tx,
    advertiserId,
    linked.map((row) => ({ applicationId: row.application_id, kind: row.kind })),
  );
}

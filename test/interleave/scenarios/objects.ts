// Files for the scenarios: an in-memory object store in which every call is a step of its client, and the product's download of a file.
import { createHash } from 'node:crypto';
import type { BlobStore, Spool } from '../../../src/domain/blob.ts';
import { toBlobKey } from '../../../src/domain/blob.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import type { Source } from '../../../src/source/client.ts';
import type { Claim } from '../../../src/store/files/download-queue.ts';
import type { Store } from '../../../src/store/store.ts';
import { type DownloadEnd, download } from '../../../src/sync/files/download.ts';
import type { Actor } from '../schedule.ts';
import type { Stage } from '../stage.ts';

export const content = Buffer.from('the bytes of two people');
export const sha256 = createHash('sha256').update(content).digest('hex');
export const never = new AbortController().signal;

/** The keys of the objects that exist in one schedule. */
export type Objects = Set<string>;

/** A delete that takes longer fails and deletes nothing. */
const longestDeleteMs = 20_000;

/** The object store as one client sees it. Without a clock, a delete takes effect however late its step comes. */
export function toBlobs(actor: Actor, objects: Objects, now?: () => number): BlobStore {
  const blobs: Pick<BlobStore, 'location' | 'put' | 'delete' | 'verify'> = {
    location: 'memory',
    put: (key) =>
      actor.act(`put ${toShort(key)}`, () => {
        const before = objects.has(key);
        objects.add(key);
        return before ? 'present' : 'stored';
      }),
    delete: (keys) => {
      const askedAt = now?.() ?? 0;
      return actor.act(`delete ${keys.map(toShort).join()}`, () => {
        if ((now?.() ?? 0) - askedAt > longestDeleteMs) throw new Trouble('local', 'The store did not answer.');
        for (const key of keys) objects.delete(key);
        return { kept: [], refused: [] };
      });
    },
    verify: (key) => actor.act(`look for ${toShort(key)}`, () => (objects.has(key) ? 'intact' : 'missing')),
  };
  return blobs as BlobStore;
}

function toShort(key: string): string {
  return key.slice(0, 12);
}

/** Keeps the bytes of a download in memory. */
export const spool: Spool = {
  location: 'memory',
  freeBytes: async () => null,
  open() {
    const chunks: Uint8Array[] = [];
    return {
      sizeBytes: 0,
      async write(chunk) {
        chunks.push(chunk);
      },
      async finish() {
        const body = Buffer.concat(chunks);
        const hash = createHash('sha256').update(body).digest('hex');
        return { body, facts: { sizeBytes: body.length, sha256: hash }, head: body };
      },
      async [Symbol.asyncDispose]() {},
    };
  },
};

const description = {
  contentType: 'text/plain',
  detectedType: null,
  fileName: 'cv.txt',
  looksLikePage: false,
  encoding: null,
};

export interface FilesOf {
  readonly stage: Stage;
  readonly advertiserId: bigint;
  readonly objects: Objects;
  /** The bytes of a file of this kind. */
  readonly bytes?: (kind: string) => Buffer;
}

/** Claims the due downloads of the advertiser. */
export async function claim(
  { stage, advertiserId }: FilesOf,
  actor: Actor,
  leaseMs: number,
  tier: 'usual' | 'suspects' = 'usual',
): Promise<Claim[]> {
  const { claims } = await stage.store(actor.name).downloads.claim({
    ...{ advertisers: [advertiserId], tier, limit: 10, token: crypto.randomUUID(), leaseMs },
  });
  return claims.toSorted((a, b) => Number(a.applicationId - b.applicationId) || (a.kind < b.kind ? -1 : 1));
}

/** Runs the product's download for claimed files. If another run is deleting the same bytes, the client skips the file (see `Busy`). */
export async function fetchClaimed(of: FilesOf, actor: Actor, claims: readonly Claim[]): Promise<DownloadEnd[]> {
  const store = stopWhenBusy(of.stage.store(actor.name));
  const source: Pick<Source, 'openAttachment'> = {
    async openAttachment(kind) {
      const body = of.bytes?.(kind) ?? content;
      return {
        ...{ status: 200, headers: { 'content-length': String(body.length) }, isFramed: true },
        body: (async function* () {
          yield body;
        })(),
        async [Symbol.asyncDispose]() {},
      };
    },
  };
  const deps = {
    ...{ store, blobs: toBlobs(actor, of.objects), spool, source: source as Source },
    describeFile: async () => description,
    parseScreens: () => ({ screens: [], parserVersion: 1 }),
  };
  const ends: DownloadEnd[] = [];
  for (const file of await store.downloads.loadFacts(claims, 'never')) {
    try {
      ends.push(await download(deps, { file, hash: 'never', maxBytes: 1_000_000, signal: never }));
    } catch (error) {
      if (!(error instanceof Busy || error instanceof Trouble)) throw error;
    }
  }
  return ends;
}

/** Another run is deleting the same bytes. The product checks again every second; here the client stops instead. */
export class Busy extends Error {}

export function stopWhenBusy(store: Store): Store {
  return {
    ...store,
    deletions: {
      ...store.deletions,
      async beginDrop(advertiserId, hashes) {
        const begun = await store.deletions.beginDrop(advertiserId, hashes);
        if (begun.busy.length > 0) throw new Busy();
        return begun;
      },
    },
  };
}

/** Adds applications with pending, queued files. */
export async function addFiles(
  { stage, advertiserId }: FilesOf,
  ids: readonly number[],
  kinds: readonly string[] = ['resume'],
): Promise<void> {
  await stage.query(
    `WITH a AS (INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq)
       SELECT $1, id, '', 1 FROM unnest($2::bigint[]) AS id RETURNING application_id),
     f AS (INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, size_bytes, uploaded_at)
       SELECT $1, application_id, kind, 'pending', $4, '2026-01-01Z' FROM a, unnest($3::text[]) AS kind RETURNING application_id, kind)
     INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority) SELECT $1, application_id, kind, 0 FROM f`,
    [advertiserId, ids, kinds, content.length],
  );
}

/** Adds a stored blob with its object, and then sets these columns of its row. */
export async function addBlob({ stage, advertiserId, objects }: FilesOf, set: string): Promise<void> {
  const key = toBlobKey(advertiserId, sha256);
  objects.add(key);
  await stage.query(
    `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, verified_at) VALUES ($1, $2, $3, $4, 'stored', now())`,
    [advertiserId, sha256, content.length, key],
  );
  await stage.query(`UPDATE intake.blobs SET ${set} WHERE advertiser_id = $1`, [advertiserId]);
}

/** Checks that every stored file has a stored blob and an object (P6). */
export async function checkObjects({ stage, advertiserId, objects }: FilesOf): Promise<void> {
  const rows = await stage.query<{ kind: string; application_id: string; state: string; key: string; blob: string }>(
    `SELECT a.application_id, a.kind, a.state, b.key, b.state AS blob
     FROM intake.attachments a LEFT JOIN intake.blobs b USING (advertiser_id, sha256) WHERE a.advertiser_id = $1`,
    [advertiserId],
  );
  for (const { application_id: id, kind, state, key, blob } of rows) {
    if (state !== 'stored') continue;
    if (blob !== 'stored')
      throw new Error(`P6: ${kind} of ${id} is called stored, and its blob is ${blob ?? 'not there'}.`);
    if (!objects.has(key)) throw new Error(`P6: ${kind} of ${id} is called stored, and its object is not there.`);
  }
}

/** Deletes the advertiser's blob rows, so that the next schedule does not find them due for deletion. */
export async function dropBlobs({ stage, advertiserId }: FilesOf): Promise<void> {
  await stage.query(`DELETE FROM intake.blobs WHERE advertiser_id = $1`, [advertiserId]);
}

/** Marks applications without pending files as ready and adds their events, as the completing transaction would have done. */
export async function makeReady({ stage, advertiserId }: FilesOf): Promise<void> {
  await stage.query(
    `WITH ready AS (
       UPDATE intake.applications a SET ready_at = now() WHERE advertiser_id = $1 AND ready_at IS NULL AND NOT EXISTS (
         SELECT 1 FROM intake.attachments f WHERE f.advertiser_id = $1 AND f.application_id = a.application_id AND f.state = 'pending')
       RETURNING application_id)
     INSERT INTO intake.events (advertiser_id, event_id, application_id, type, at)
     SELECT $1, nextval('intake.event_seq'), application_id, 'application.ready', now() FROM ready`,
    [advertiserId],
  );
}

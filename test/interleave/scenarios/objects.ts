// An in-memory object store in which every call is a step of its client, and the product's download and delete of a file on it.
import { createHash } from 'node:crypto';
import type { BlobStore, Spool } from '../../../src/domain/blob.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import type { Source } from '../../../src/source/client.ts';
import type { Claim } from '../../../src/store/files/download-queue.ts';
import type { Store } from '../../../src/store/store.ts';
import { type DownloadEnd, download } from '../../../src/sync/files/download.ts';
import type { Actor } from '../schedule.ts';
import type { Stage } from '../stage.ts';
import { leaseMs } from './lanes.ts';

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
    delete: (key) => {
      const askedAt = now?.() ?? 0;
      return actor.act(`delete ${toShort(key)}`, () => {
        if ((now?.() ?? 0) - askedAt > longestDeleteMs) throw new Trouble('local', 'The store did not answer.');
        objects.delete(key);
        return { keptVersions: 0, refusal: null };
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

/** The account of a schedule. */
export interface Account {
  readonly stage: Stage;
  readonly advertiserId: bigint;
}

export interface FilesOf extends Account {
  readonly objects: Objects;
  /** The bytes of a file of this kind. */
  readonly bytes: (kind: string) => Buffer;
}

/** An account without objects, whose files all have the same bytes. */
export function toFiles({ stage, advertiserId }: Account): FilesOf {
  return { stage, advertiserId, objects: new Set(), bytes: () => content };
}

/** A client outside of the schedule. */
export const alone: Actor = { name: 'alone', act: async (_, work) => work() };

/** Claims the due downloads of the advertiser. */
export async function claim(
  { stage, advertiserId }: FilesOf,
  actor: Actor,
  tier: 'usual' | 'suspects' = 'usual',
): Promise<Claim[]> {
  const { claims } = await stage.store(actor.name).downloads.claimDownloads({
    ...{ advertisers: [advertiserId], tier, limit: 10, token: crypto.randomUUID(), leaseMs },
  });
  return claims.toSorted((a, b) => Number(a.applicationId - b.applicationId) || (a.kind < b.kind ? -1 : 1));
}

/** Runs the product's download for claimed files. If another run is deleting the same bytes, the client skips the file (see `Busy`). */
export async function fetchClaimed(of: FilesOf, actor: Actor, claims: readonly Claim[]): Promise<DownloadEnd[]> {
  const store = stopWhenBusy(of.stage.store(actor.name));
  const source: Pick<Source, 'openAttachment'> = {
    async openAttachment(kind) {
      const body = of.bytes(kind);
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
  for (const file of await store.downloads.loadFileFacts(claims, 'never')) {
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
      async loadLeft(advertiserId, hashes) {
        const found = await store.deletions.loadLeft(advertiserId, hashes);
        if (found.left > 0) throw new Busy();
        return found;
      },
    },
  };
}

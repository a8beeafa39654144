// Where bytes rest: the port that both stores answer to, how a key is made, and when a disk counts as full.
// A key is made of the advertiser and the bytes themselves: it tells nothing of a person, a file name or a source's hash.
// Knows no file system and no S3.

import { Trouble } from './trouble.ts';

/** Keeps bytes under keys. Every method throws Trouble, or the signal's reason when it was aborted. */
export interface BlobStore extends AsyncDisposable {
  /** Where it lies, for people: `file:///folder` or `s3://bucket/prefix`. */
  readonly location: string;
  /**
   * Resolves only when the key is proven to hold exactly these bytes: `present` when it did before, `stored` when they were written,
   * also over damaged ones. Safe to repeat, and safe when several do it at once. Trouble `mismatch`: the body is not what its facts say.
   */
  put(key: string, body: BlobBody, facts: BlobFacts, signal: AbortSignal): Promise<'stored' | 'present'>;
  /** Compares what lies under the key with the facts. `record` asks the store, which is cheap; `bytes` reads and hashes everything. */
  verify(key: string, facts: BlobFacts, proof: 'record' | 'bytes', signal: AbortSignal): Promise<BlobCondition>;
  /** The bytes. Nothing is opened before the first chunk is asked for; Trouble `missing` comes there. */
  get(key: string, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /**
   * After this none of the keys holds anything, except those that the store refused to delete; those that held nothing are fine. Trouble
   * without a status: it may still be carried out.
   */
  delete(keys: readonly string[], signal: AbortSignal): Promise<Deleted>;
  /** All blobs below a folder (`''`, or a prefix with a final `/`) in the order of their keys, so that a reader can walk beside sorted rows. */
  list(folder: string, signal: AbortSignal): AsyncIterable<ListedBlob>;
  /** An address that a person's browser or viewer opens: signed and short-lived for S3, a `file:` URL on disk. */
  url(key: string, options: BlobUrlOptions): Promise<string>;
  /** What the store keeps of objects that are deleted. */
  loadKeeping(signal: AbortSignal): Promise<Keeping>;
  /** What can still be written, or null where there is no such limit. */
  freeBytes(): Promise<number | null>;
  /** The id that marks this store, null when it carries none. The database remembers it: another id, or none, is the wrong bucket. */
  loadIdentity(signal: AbortSignal): Promise<string | null>;
  /** The same at first use: where there is none, a new one is written. Of several who do it at once, all get the same. */
  openIdentity(signal: AbortSignal): Promise<string>;
}

/** Bytes in memory, or a file on our own disk; both can be read again for another try. */
export type BlobBody = Uint8Array | { readonly path: string };

export interface BlobFacts {
  readonly sizeBytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

export interface Deleted {
  /** Versions that the store keeps although their objects are deleted: it does not let us delete them, or does not show them. */
  readonly keptVersions: number;
  /** Objects that the store did not delete, and why. The others are gone. */
  readonly refused: readonly RefusedDelete[];
}

export interface RefusedDelete {
  readonly key: string;
  readonly trouble: Trouble;
}

export interface Keeping {
  /** Deleted objects stay as versions. Null: the store does not say. */
  readonly versions: boolean | null;
  /** Objects can be locked against deletion for a time. */
  readonly locks: boolean | null;
}

export type BlobCondition = 'intact' | 'missing' | 'damaged';

export interface ListedBlob {
  readonly key: string;
  readonly sizeBytes: number;
  readonly modifiedAt: Date;
}

export interface BlobUrlOptions {
  /** What the file is saved as. */
  readonly fileName: string;
  readonly contentType: string;
  readonly expiresInMs: number;
}

/** The key of an advertiser's bytes, relative to the store. The middle part keeps folders small: a million files make 256 of 4,000. */
export function toBlobKey(advertiserId: bigint, sha256: string): string {
  if (!/^[0-9a-f]{64}$/.test(sha256)) throw new Trouble('local', 'A blob key needs a sha256 in lower-case hex.');
  return `${advertiserId}/${sha256.slice(0, 2)}/${sha256}`;
}

/** The sha256 that such a key names; null for a name that is not ours. */
export function toSha256(key: string): string | null {
  return /^\d+\/([0-9a-f]{2})\/(\1[0-9a-f]{62})$/.exec(key)?.[2] ?? null;
}

/** The folder that holds all of an advertiser's blobs, as `list` takes it. */
export function toBlobFolder(advertiserId: bigint): string {
  return `${advertiserId}/`;
}

/** A text that may serve as a key. No key leaves its store: no `..`, no empty part, nothing absolute. Dot names are the store's own. */
export function parseBlobKey(text: string): string {
  if (text.length > maxKeyLength || !keyPattern.test(text)) throw new Trouble('local', 'This is no blob key.');
  return text;
}

/** A text that may serve as a folder of keys: empty, or a key and a slash. */
export function parseBlobFolder(text: string): string {
  if (text !== '' && !(text.endsWith('/') && parseBlobKey(text.slice(0, -1)))) {
    throw new Trouble('local', 'This is no folder of blob keys.');
  }
  return text;
}

const maxKeyLength = 255;
const keyPattern = /^[0-9A-Za-z_-][0-9A-Za-z._-]*(?:\/[0-9A-Za-z_-][0-9A-Za-z._-]*)*$/;

/** The name under which a store keeps its id. No key can be spelled like it. */
export const identityName = '.intake-store';

/** True while a disk takes what is still ahead (bytes claimed but not yet written) and keeps a reserve for everything else on it. */
export function hasRoom(freeBytes: number | null, aheadBytes: number): boolean {
  return freeBytes === null || freeBytes - aheadBytes >= reserveBytes;
}

/** Enough for logs, for the database's WAL segments beside the blobs, and for a person to act in. */
const reserveBytes = 256 * 1024 * 1024;

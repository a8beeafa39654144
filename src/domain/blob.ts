// The port that both blob stores implement, the format of keys, and the rule for a full disk.
// A key consists of the advertiser and the sha256 of the bytes: it reveals no person, no file name and no hash of the source.

import { Trouble } from './trouble.ts';

/** Stores bytes under keys. Every method throws Trouble, or the signal's reason when it was aborted. */
export interface BlobStore extends AsyncDisposable {
  /** The store's location, for display: `file:///folder` or `s3://bucket/prefix`. */
  readonly location: string;
  // Resolves only when the key is proven to hold exactly these bytes: `present` if it already did, `stored` if this call wrote them, over
  // damaged ones after `beforeOver`. Can be repeated and run concurrently. Trouble `mismatch`: the body does not match its facts.
  put(
    key: string,
    body: BlobBody,
    facts: BlobFacts,
    signal: AbortSignal,
    beforeOver?: () => Promise<void>,
  ): Promise<'stored' | 'present'>;
  /** Compares the object with the facts. `metadata` compares the store's metadata, which is cheap; `bytes` reads and hashes the object. */
  verify(key: string, facts: BlobFacts, proof: 'metadata' | 'bytes', signal: AbortSignal): Promise<BlobCondition>;
  /** The bytes. The object is opened when the first chunk is requested; Trouble `missing` is thrown there. */
  get(key: string, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** A key without an object is not an error. After a Trouble without a status, the store may still carry out the deletion later. */
  delete(key: string, signal: AbortSignal): Promise<Deleted>;
  /** All blobs below a folder (`''`, or a prefix with a final `/`), ordered by key so that a caller can merge them with sorted rows. */
  list(folder: string, signal: AbortSignal): AsyncIterable<ListedBlob>;
  /** An address that a person's browser or viewer opens: signed and short-lived for S3, a `file:` URL on disk. */
  url(key: string, options: { fileName: string; contentType: string; expiresInMs: number }): Promise<string>;
  /** Whether the store keeps deleted objects as versions, and can lock them for a time. False also where it does not report it. */
  loadDeletePolicy(signal: AbortSignal): Promise<{ readonly versions: boolean; readonly locks: boolean }>;
  /** A short text that is replaced as a whole, under a name that is no blob's; null if it is not there. */
  loadText(name: string, signal: AbortSignal): Promise<string | null>;
  /** Writes that text in place of `before`; false if another one is there. Callers exclude each other by a lease. */
  replaceText(name: string, before: string | null, text: string, signal: AbortSignal): Promise<boolean>;
  /** Bytes that can still be written; null where there is no such limit. */
  freeBytes(): Promise<number | null>;
  /** The text that says whose store this is (store-owner.ts); null if it has none. */
  loadIdentity(signal: AbortSignal): Promise<string | null>;
  /** Writes that text in place of `before`. False if the store has another one by now; of concurrent callers one gets true. */
  replaceIdentity(before: string | null, identity: string, signal: AbortSignal): Promise<boolean>;
}

/** Bytes in memory, or in a file. Both can be read again for another attempt. */
export type BlobBody = Uint8Array | BlobFile;

export interface BlobFile {
  /** Reads from this position on. Returns the number of bytes; 0 at the end. */
  read(into: Uint8Array, at: number): Promise<number>;
}

export interface BlobFacts {
  readonly sizeBytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** What a download showed of a file besides its bytes: what its headers declare, and the type that its first bytes show. */
export interface FileDescription {
  readonly contentType: string | null;
  readonly detectedType: string | null;
  readonly fileName: string | null;
}

/** The bytes of one file on its way to the store. Disposing it frees the memory or the file. */
export interface Spooled extends AsyncDisposable {
  write(chunk: Uint8Array): Promise<void>;
  finish(): Promise<{ readonly body: BlobBody; readonly facts: BlobFacts; readonly head: Uint8Array }>;
  readonly sizeBytes: number;
}

export interface Spool extends Pick<BlobStore, 'location' | 'freeBytes'> {
  open(): Spooled;
}

export interface Deleted {
  /** Versions of the object that the store keeps, because it does not let Intake delete them or does not list them. */
  readonly keptVersions: number;
  /** Why the store does not delete the object: it is locked, or the credentials may not. Null if it is deleted. */
  readonly refusal: Trouble | null;
}

export type BlobCondition = 'intact' | 'missing' | 'damaged';

export interface ListedBlob {
  readonly key: string;
  readonly sizeBytes: number;
}

/** The key of an advertiser's bytes, relative to the store. The middle part keeps folders small: 256 of 4,000 for a million files. */
export function toBlobKey(advertiserId: bigint, sha256: string): string {
  if (!/^[0-9a-f]{64}$/.test(sha256)) throw new Trouble('local', 'A blob key needs a sha256 in lower-case hex.');
  return `${advertiserId}/${sha256.slice(0, 2)}/${sha256}`;
}

/** The sha256 in such a key; null for any other name. */
export function toSha256(key: string): string | null {
  const [, folder = '', sha256 = ''] = /^\d+\/([0-9a-f]{2})\/([0-9a-f]{64})$/.exec(key) ?? [];
  return sha256 !== '' && sha256.startsWith(folder) ? sha256 : null;
}

/** No key can leave its store: no `..`, no empty part, nothing absolute. Names that begin with a dot are reserved. */
export function isBlobKey(text: string): boolean {
  return text.length <= 255 && /^[0-9A-Za-z_-][0-9A-Za-z._-]*(?:\/[0-9A-Za-z_-][0-9A-Za-z._-]*)*$/.test(text);
}

export function parseBlobKey(text: string): string {
  if (!isBlobKey(text)) throw new Trouble('local', 'This is not a blob key.');
  return text;
}

/** A folder of keys is empty, or a key and a slash. */
export function parseBlobFolder(text: string): string {
  if (text !== '' && !(text.endsWith('/') && isBlobKey(text.slice(0, -1))))
    throw new Trouble('local', 'This is not a folder of blob keys.');
  return text;
}

/** The name under which a store keeps its identity. It is not a valid key, so it cannot collide with a blob. */
export const identityName = '.intake-store';

/** Enough for logs, for the database's WAL segments on the same disk, and for an operator to work with. */
const reserveBytes = 256 * 1024 * 1024;

/** True while a disk has room for `aheadBytes` (bytes claimed but not yet written) and a reserve for everything else on it. */
export function hasRoom(freeBytes: number | null, aheadBytes: number): boolean {
  return freeBytes === null || freeBytes - aheadBytes >= reserveBytes;
}

// Deletes objects, each with a request of its own: bulk deletes differ from store to store. A versioned bucket keeps the bytes of a deleted
// object, so its versions are deleted as well.

import {
  DeleteObjectCommand,
  ListObjectVersionsCommand,
  type ObjectIdentifier,
  type S3Client,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from '@aws-sdk/client-s3';
import type { BlobStore, Deleted } from '../domain/blob.ts';
import { Trouble } from '../domain/trouble.ts';
import { isMissing } from './s3-trouble.ts';

/** Sends one request to the store. Throws Trouble, or the signal's reason. */
export type Ask = <I extends ServiceInputTypes, O extends ServiceOutputTypes>(
  signal: AbortSignal,
  command: Parameters<typeof S3Client.prototype.send<I, O>>[0],
  sender?: S3Client,
) => Promise<O>;

export interface S3DeleteOptions {
  /** Sends a request once, without retries: a delete whose answer was lost may still take effect after a second one. */
  readonly deleter: S3Client;
  readonly bucket: string;
  /** The name of a key's object in the bucket. Throws for a text that is not a key. */
  readonly toName: (key: string) => string;
  readonly ask: Ask;
  /** Whether the bucket keeps versions of deleted objects; null where it does not reveal this. */
  readonly loadVersioning: (signal: AbortSignal) => Promise<boolean | null>;
  readonly parallel: number;
}

/** Returns a function that deletes the objects of keys, and their versions. */
export function createDelete(options: S3DeleteOptions): BlobStore['delete'] {
  const { deleter, bucket, toName, ask, loadVersioning, parallel } = options;
  /**
   * A bucket that does not reveal it counts as unversioned, and any bucket may be versioned later. A delete marker in an answer then shows
   * that it is versioned.
   */
  let keepsVersions: boolean | undefined;

  /** Deletes an object or a version. Returns the trouble if it is locked, or if the credentials may not delete it. */
  async function deleteOne(object: ObjectIdentifier, signal: AbortSignal): Promise<Trouble | null> {
    try {
      const { DeleteMarker } = await ask(signal, new DeleteObjectCommand({ Bucket: bucket, ...object }), deleter);
      if (DeleteMarker) keepsVersions = true;
      return null;
    } catch (error) {
      // For a missing object S3 itself reports success; some compatible stores answer 404.
      if (isMissing(error)) return null;
      if (isDenied(error)) return error;
      throw error;
    }
  }

  /** Deletes all versions and delete markers of an object. Returns how many remain: at least one if they cannot be listed. */
  async function deleteVersions(name: string, signal: AbortSignal): Promise<number> {
    try {
      let kept = 0;
      for (const version of await loadVersions(name, signal)) if (await deleteOne(version, signal)) kept += 1;
      return kept;
    } catch (error) {
      if (isDenied(error)) return 1;
      throw error;
    }
  }

  async function loadVersions(name: string, signal: AbortSignal): Promise<ObjectIdentifier[]> {
    const found: ObjectIdentifier[] = [];
    let marker: { KeyMarker?: string | undefined; VersionIdMarker?: string | undefined } = {};
    for (;;) {
      const page = await ask(signal, new ListObjectVersionsCommand({ Bucket: bucket, Prefix: name, ...marker }));
      const all = [...(page.Versions ?? []), ...(page.DeleteMarkers ?? [])];
      found.push(...all.filter(({ Key }) => Key === name).map(({ Key, VersionId }) => ({ Key, VersionId })));
      if (!page.IsTruncated || page.NextKeyMarker !== name) return found;
      marker = { KeyMarker: page.NextKeyMarker, VersionIdMarker: page.NextVersionIdMarker };
    }
  }

  return async (keys, signal) => {
    const objects = keys.map((key) => ({ key, name: toName(key) }));
    keepsVersions ??= (await loadVersioning(signal)) ?? false;
    const deleted = { kept: [] as Deleted['kept'][number][], refused: [] as Deleted['refused'][number][] };
    await inParallel(objects, parallel, async ({ key, name }) => {
      const trouble = await deleteOne({ Key: name }, signal);
      if (trouble !== null) return void deleted.refused.push({ key, trouble });
      const versions = keepsVersions ? await deleteVersions(name, signal) : 0;
      if (versions > 0) deleted.kept.push({ key, versions });
    });
    return deleted;
  };
}

function isDenied(error: unknown): error is Trouble {
  return error instanceof Trouble && error.status === 403;
}

/**
 * Runs `work` for each item, `parallel` at a time. After an error no further item is begun, and the error is thrown when all have ended. An
 * error without an answer of the store comes first, because the caller may repeat the others at once.
 */
async function inParallel<T>(items: readonly T[], parallel: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const errors: unknown[] = [];
  const running = Array.from({ length: parallel }, async () => {
    for (let item = left.shift(); item !== undefined && errors.length === 0; item = left.shift()) {
      await work(item).catch((error: unknown) => errors.push(error));
    }
  });
  await Promise.all(running);
  const isUnanswered = (error: unknown) => !(error instanceof Trouble) || error.status === undefined;
  if (errors.length > 0) throw errors.find(isUnanswered) ?? errors[0];
}

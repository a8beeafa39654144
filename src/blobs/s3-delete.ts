// Deletes objects in a way that the store supports. One request deletes many keys and has a Content-MD5, which every store accepts. A store
// that rejects it gets one request per key. A versioned bucket keeps the bytes of a deleted object, so its versions are deleted as well.

import { createHash } from 'node:crypto';
import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  ListObjectVersionsCommand,
  type ObjectIdentifier,
  type S3Client,
} from '@aws-sdk/client-s3';
import type { BlobStore } from '../domain/blob.ts';
import { Trouble } from '../domain/trouble.ts';
import { isMissing, toTrouble } from './s3-trouble.ts';

/** Sends one request to the store. Throws Trouble, or the signal's reason. */
export type Ask = <T>(
  signal: AbortSignal,
  question: (options: { abortSignal: AbortSignal }) => Promise<T>,
) => Promise<T>;

export interface S3DeleteOptions {
  /** For requests that change nothing. */
  readonly client: S3Client;
  /** Sends a request once, without retries: a delete whose answer was lost may still take effect after a second one. */
  readonly deleter: S3Client;
  readonly bucket: string;
  /** Host and port of the store, for messages. */
  readonly address: string;
  /** The name of a key's object in the bucket. Throws for a text that is not a key. */
  readonly toName: (key: string) => string;
  readonly ask: Ask;
  /** Whether the bucket keeps versions of deleted objects; null where it does not reveal this. */
  readonly loadVersioning: (signal: AbortSignal) => Promise<boolean | null>;
  /** False for a store that accepts no checksums, since a delete of many keys requires one. */
  readonly inBulk: boolean;
  readonly parallel: number;
}

/** An object or version that the store did not delete, and the store's error code. */
interface Refusal {
  readonly object: ObjectIdentifier;
  readonly code: string;
}

/** S3 allows 1,000 keys per request. A store that deletes them one after another (Swift) would exceed the request's timeout. */
const mostAtOnce = 100;
/** Statuses of a store that does not support a delete of many keys, or not in this form. */
const refusals = new Set([400, 405, 501]);

/** Returns a function that deletes the objects of keys, and their versions. */
export function createDelete(options: S3DeleteOptions): BlobStore['delete'] {
  const { client, deleter, bucket, address, toName, ask, loadVersioning, parallel } = options;
  let { inBulk } = options;
  /**
   * A bucket that does not reveal it counts as unversioned, and any bucket may be versioned later. A delete marker in an answer then shows
   * that it is versioned.
   */
  let keepsVersions: boolean | undefined;

  /** Deletes the objects; returns those that the store refused to delete. */
  async function deleteEach(objects: readonly ObjectIdentifier[], signal: AbortSignal): Promise<Refusal[]> {
    const refused: Refusal[] = [];
    if (inBulk) {
      try {
        for (let from = 0; from < objects.length; from += mostAtOnce) {
          const Objects = objects.slice(from, from + mostAtOnce);
          const command = new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects } });
          sumByMd5(command);
          const { Errors = [], Deleted = [] } = await ask(signal, (asked) => deleter.send(command, asked));
          if (Deleted.some(({ DeleteMarker }) => DeleteMarker)) keepsVersions = true;
          refused.push(
            ...Errors.map(({ Key, VersionId, Code = 'no code' }) => ({ object: { Key, VersionId }, code: Code })),
          );
        }
        return refused.filter(({ code }) => code !== 'NoSuchKey' && code !== 'NoSuchVersion');
      } catch (error) {
        if (!(error instanceof Trouble) || !refusals.has(error.status ?? 0)) throw error;
        inBulk = false;
      }
    }
    await inParallel(objects, parallel, async ({ Key, VersionId }) => {
      const command = new DeleteObjectCommand({ Bucket: bucket, Key, VersionId });
      const asking = ask(signal, (asked) => deleter.send(command, asked)).then(({ DeleteMarker }) => {
        if (DeleteMarker) keepsVersions = true;
      });
      await asking.catch((reason: unknown) => {
        // For a missing object S3 itself reports success; some compatible stores answer 404.
        if (isMissing(reason)) return;
        // The object is locked, or the credentials may not delete it. Other objects may still be deleted.
        if (!(reason instanceof Trouble) || reason.status !== 403) throw reason;
        refused.push({ object: { Key, VersionId }, code: 'AccessDenied' });
      });
    });
    return refused;
  }

  /** All versions and delete markers of one object. */
  async function loadVersions(name: string, signal: AbortSignal): Promise<ObjectIdentifier[]> {
    const found: ObjectIdentifier[] = [];
    let marker: { KeyMarker?: string | undefined; VersionIdMarker?: string | undefined } = {};
    for (;;) {
      const command = new ListObjectVersionsCommand({ Bucket: bucket, Prefix: name, ...marker });
      const page = await ask(signal, (asked) => client.send(command, asked));
      const all = [...(page.Versions ?? []), ...(page.DeleteMarkers ?? [])];
      found.push(...all.filter(({ Key }) => Key === name).map(({ Key, VersionId }) => ({ Key, VersionId })));
      if (!page.IsTruncated || page.NextKeyMarker !== name) return found;
      marker = { KeyMarker: page.NextKeyMarker, VersionIdMarker: page.NextVersionIdMarker };
    }
  }

  return async (keys, signal) => {
    if (keys.length === 0) return { kept: [], refused: [] };
    const objects = keys.map((key) => ({ key, Key: toName(key) }));
    keepsVersions ??= (await loadVersioning(signal)) ?? false;
    const names = objects.map(({ Key }) => ({ Key }));
    const codes = new Map((await deleteEach(names, signal)).map(({ object, code }) => [object.Key, code]));
    const refused = objects.flatMap(({ key, Key }) => {
      const code = codes.get(Key);
      if (code === undefined) return [];
      return [{ key, trouble: toTrouble({ name: code, $metadata: { httpStatusCode: 200 } }, bucket, address) }];
    });
    if (!keepsVersions) return { kept: [], refused };
    const versions: ObjectIdentifier[] = [];
    const unlisted: ObjectIdentifier[] = [];
    const deleted = objects.filter(({ Key }) => !codes.has(Key));
    await inParallel(deleted, parallel, async ({ Key }) => {
      try {
        versions.push(...(await loadVersions(Key, signal)));
      } catch (error) {
        if (!(error instanceof Trouble && error.status === 403)) throw error;
        unlisted.push({ Key });
      }
    });
    const undeleted = versions.length === 0 ? [] : (await deleteEach(versions, signal)).map(({ object }) => object);
    const byName = Map.groupBy([...undeleted, ...unlisted], ({ Key }) => Key);
    const kept = deleted.map(({ key, Key }) => ({ key, versions: byName.get(Key)?.length ?? 0 }));
    return { kept: kept.filter((one) => one.versions > 0), refused };
  };
}

/** Replaces the SDK's checksums by Content-MD5: older stores do not accept the newer ones, and answer that none was sent. */
function sumByMd5(command: DeleteObjectsCommand): void {
  command.middlewareStack.add(
    (next) => (args) => {
      const request = args.request as { headers: Record<string, string>; body: string | Uint8Array };
      for (const name of Object.keys(request.headers)) {
        if (/^x-amz-(?:checksum-|sdk-checksum-algorithm)/i.test(name)) delete request.headers[name];
      }
      request.headers['content-md5'] = createHash('md5').update(request.body).digest('base64');
      return next(args);
    },
    { step: 'build', priority: 'low', name: 'sumByMd5' },
  );
}

/** Runs `work` for each item, `parallel` at a time. The first error rejects. */
async function inParallel<T>(items: readonly T[], parallel: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const running = Array.from({ length: Math.min(parallel, items.length) }, async () => {
    for (const item of left) await work(item);
  });
  await Promise.all(running);
}

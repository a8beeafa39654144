// Stores blobs in a bucket of any S3-compatible store. A put succeeds only when the checksum in the store's metadata, or the bytes read
// back, prove it. Each object is deleted with a request of its own, since bulk deletes differ from store to store, and with its versions,
// which a versioned bucket keeps. The SDK retries for seconds and reads the credentials from the usual AWS_* environment; this file never
// sees them.
import { createHash, hash } from 'node:crypto';
import {
  DeleteObjectCommand,
  GetBucketVersioningCommand,
  GetObjectCommand,
  GetObjectLockConfigurationCommand,
  HeadObjectCommand,
  ListObjectVersionsCommand,
  type ObjectIdentifier,
  paginateListObjectsV2,
  S3Client,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { create as toContentDisposition } from 'content-disposition';
import {
  type BlobBody,
  type BlobCondition,
  type BlobFacts,
  type BlobStore,
  identityName,
  type ListedBlob,
  parseBlobFolder,
  parseBlobKey,
} from '../domain/blob.ts';
import { isMissing, Trouble, toHostAndPort } from '../domain/trouble.ts';
import { buildPut } from './s3-put.ts';
import { isUnsupported, toTrouble } from './s3-trouble.ts';

export interface S3Settings {
  readonly bucket: string;
  /** Of every key; empty for the whole bucket. */
  readonly prefix: string;
  readonly endpoint?: string | undefined;
  /** Undefined: the SDK takes it from AWS_REGION or the shared config files. */
  readonly region?: string | undefined;
  readonly forcePathStyle: boolean;
  readonly checksums: S3Checksums;
  /** The value of x-amz-server-side-encryption; undefined: the bucket's default. */
  readonly sse?: 'AES256' | 'aws:kms' | undefined;
  /** The number of keep-alive connections: as many as there are concurrent puts. */
  readonly connections: number;
  /** An attempt fails after this long without a byte. */
  readonly timeoutMs: number;
}

/**
 * WHEN_REQUIRED: a put sends its sha256; other requests send a checksum only where S3 requires one. WHEN_SUPPORTED: the SDK adds and
 * verifies checksums wherever S3 supports them. OFF: for stores that reject the header; the signature of a put still covers its sha256, and
 * reading the bytes back proves it.
 */
export type S3Checksums = 'WHEN_REQUIRED' | 'WHEN_SUPPORTED' | 'OFF';

export function openS3Blobs(settings: S3Settings): BlobStore {
  const { bucket, checksums } = settings;
  const address = settings.endpoint === undefined ? 'AWS' : toHostAndPort(new URL(settings.endpoint));
  const client = createClient(settings, 3);
  /** Sends a delete once, without retries: a delete whose answer was lost may still take effect after a second one. */
  const deleter = createClient(settings, 1);
  const prefix = settings.prefix.replace(/^\/+|\/+$/g, '');
  const toName = (path: string) => (prefix ? `${prefix}/${path}` : path);
  const toTarget = (path: string) => ({ Bucket: bucket, Key: toName(path) });
  /** False once the store has answered that it does not support conditions. A put then overwrites equal bytes, which is harmless. */
  let conditional = true;
  /** A bucket that does not reveal it counts as unversioned, and any may become versioned: a delete marker in an answer shows that. */
  let keepsVersions: boolean | undefined;

  /** Throws Trouble, or the signal's reason. */
  async function guard<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw toTrouble(error, bucket, address);
    }
  }

  const ask = <I extends ServiceInputTypes, O extends ServiceOutputTypes>(
    signal: AbortSignal,
    command: Parameters<typeof client.send<I, O>>[0],
    sender = client,
  ): Promise<O> => guard(signal, () => sender.send(command, { abortSignal: signal }));

  /**
   * Sends a put and returns the proof that it still needs. A store that answers without a checksum has none in its metadata either, so
   * the bytes must be read back. `occupied`: the store rejected a conditional put, because the name exists or was just being written or
   * deleted.
   */
  async function send(
    path: string,
    body: BlobBody,
    facts: BlobFacts,
    condition: { readonly IfNoneMatch: '*' } | { readonly IfMatch: string } | null,
    signal: AbortSignal,
  ): Promise<'sha256' | 'bytes' | 'occupied'> {
    const asked = conditional ? condition : null;
    const input = {
      ...toTarget(path),
      ...asked,
      ...(settings.sse ? { ServerSideEncryption: settings.sse } : {}),
    };
    try {
      const written = await ask(signal, buildPut(input, body, facts, checksums !== 'OFF'));
      return toWholeSha256(written.ChecksumSHA256) === undefined ? 'bytes' : 'sha256';
    } catch (error) {
      if (asked === null || !(error instanceof Trouble)) throw error;
      if (error.status === 501) {
        conditional = false;
        return send(path, body, facts, null, signal);
      }
      // 412: the object exists, or has changed. 409 and NoSuchKey: another put or a delete of the same name was in progress.
      if (error.status === 412 || error.status === 409 || error.kind === 'missing') return 'occupied';
      throw error;
    }
  }

  /** For where the store does not support or permit this request. */
  const ignoreUnsupported = (error: unknown): undefined => {
    if (!isUnsupported(error)) throw error;
  };
  const ignoreMissing = (error: unknown): undefined => {
    if (!isMissing(error)) throw error;
  };

  async function loadVersioning(signal: AbortSignal): Promise<boolean> {
    const found = await ask(signal, new GetBucketVersioningCommand({ Bucket: bucket })).catch(ignoreUnsupported);
    return found?.Status !== undefined;
  }

  async function* read(path: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { Body } = await ask(signal, new GetObjectCommand(toTarget(path)));
    try {
      yield* Body as AsyncIterable<Uint8Array>;
    } catch (error) {
      signal.throwIfAborted();
      throw toTrouble(error, bucket, address);
    }
  }

  async function verify(
    key: string,
    facts: BlobFacts,
    proof: 'metadata' | 'sha256' | 'bytes',
    signal: AbortSignal,
  ): Promise<BlobCondition> {
    const path = parseBlobKey(key);
    try {
      if (proof !== 'bytes') {
        const mode = checksums === 'OFF' ? {} : ({ ChecksumMode: 'ENABLED' } as const);
        const found = await ask(signal, new HeadObjectCommand({ ...toTarget(path), ...mode }));
        const sha256 = toWholeSha256(found.ChecksumSHA256);
        if ((found.ContentLength ?? 0) !== facts.sizeBytes) return 'damaged';
        if (sha256 !== undefined && sha256 !== facts.sha256) return 'damaged';
        if (proof === 'metadata' || sha256 !== undefined) return 'intact';
      }
      // The bytes prove more than any metadata.
      const hash = createHash('sha256');
      for await (const chunk of read(path, signal)) hash.update(chunk);
      return hash.digest('hex') === facts.sha256 ? 'intact' : 'damaged';
    } catch (error) {
      if (isMissing(error)) return 'missing';
      throw error;
    }
  }

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

  /** Deleting what is gone would only add a delete marker to those that are kept. */
  const isThere = (name: string, signal: AbortSignal): Promise<boolean> =>
    ask(signal, new HeadObjectCommand({ Bucket: bucket, Key: name })).then(
      () => true,
      (error: unknown) => {
        if (!isDenied(error)) ignoreMissing(error);
        return isDenied(error);
      },
    );

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

  async function readText(name: string, signal: AbortSignal) {
    const found = await ask(signal, new GetObjectCommand(toTarget(name))).catch(ignoreMissing);
    if (found === undefined) return null;
    const text = (await guard(signal, async () => found.Body?.transformToString()))?.trim() ?? '';
    if (text !== '') return { text, tag: found.ETag };
    throw new Trouble('local', `${name} is empty in the bucket ${bucket}: delete it.`, { at: 'storage' });
  }

  async function replaceText(name: string, before: string | null, text: string, signal: AbortSignal): Promise<boolean> {
    const found = await readText(name, signal);
    if ((found?.text ?? null) !== before) return false;
    const body = Buffer.from(`${text}\n`);
    const facts = { sizeBytes: body.length, sha256: hash('sha256', body) };
    const condition = found === null ? ({ IfNoneMatch: '*' } as const) : found.tag ? { IfMatch: found.tag } : null;
    // A store without conditions keeps the last of several concurrent puts. Reading it back shows whether it was this one.
    return (
      (await send(name, body, facts, condition, signal)) !== 'occupied' && (await readText(name, signal))?.text === text
    );
  }

  return {
    location: `s3://${bucket}${prefix && `/${prefix}`}`,

    async put(key, body, facts, signal, beforeOver) {
      let sent = await send(parseBlobKey(key), body, facts, { IfNoneMatch: '*' }, signal);
      if (sent === 'occupied') {
        // Reads the bytes: metadata stay intact when bytes are damaged, so trusting them would make damaged blobs impossible to repair.
        if ((await verify(key, facts, 'bytes', signal)) === 'intact') return 'present';
        await beforeOver?.();
        sent = await send(key, body, facts, null, signal);
      }
      const condition = await verify(key, facts, sent === 'sha256' ? 'sha256' : 'bytes', signal);
      if (condition === 'intact') return 'stored';
      throw new Trouble('local', `The store accepted a blob, but its copy is ${condition}.`, { at: 'storage' });
    },

    verify,

    async *get(key, signal) {
      yield* read(parseBlobKey(key), signal);
    },

    async delete(key, signal) {
      const name = toName(parseBlobKey(key));
      keepsVersions ??= await loadVersioning(signal);
      const isGone = keepsVersions && !(await isThere(name, signal));
      const refusal = isGone ? null : await deleteOne({ Key: name }, signal);
      const keptVersions = refusal === null && keepsVersions ? await deleteVersions(name, signal) : 0;
      return { keptVersions, refusal };
    },

    async loadDeletePolicy(signal) {
      const versions = await loadVersioning(signal);
      // S3 answers 404 for a bucket without Object Lock.
      const found = await ask(signal, new GetObjectLockConfigurationCommand({ Bucket: bucket })).catch(
        ignoreUnsupported,
      );
      return { versions, locks: found?.ObjectLockConfiguration?.ObjectLockEnabled === 'Enabled' };
    },

    async *list(folder, signal): AsyncGenerator<ListedBlob> {
      const asked = { Bucket: bucket, Prefix: toName(parseBlobFolder(folder)) };
      const pages = paginateListObjectsV2({ client }, asked, { abortSignal: signal });
      for (;;) {
        const { done, value: page } = await guard(signal, () => pages.next());
        if (done) return;
        for (const { Key, Size } of page.Contents ?? []) {
          const key = Key?.slice(toName('').length);
          if (!key || key.startsWith('.') || key.includes('/.')) continue;
          yield { key, sizeBytes: Size ?? 0 };
        }
      }
    },

    async url(key, { fileName, contentType, expiresInMs }) {
      const command = new GetObjectCommand({
        ...toTarget(parseBlobKey(key)),
        ResponseContentDisposition: toContentDisposition(fileName),
        ResponseContentType: contentType,
      });
      try {
        return await getSignedUrl(client, command, { expiresIn: Math.ceil(expiresInMs / 1000) });
      } catch (error) {
        throw toTrouble(error, bucket, address);
      }
    },

    freeBytes: async () => null,

    loadText: async (name, signal) => (await readText(parseBlobKey(name), signal))?.text ?? null,
    replaceText: async (name, before, text, signal) => replaceText(parseBlobKey(name), before, text, signal),
    loadIdentity: async (signal) => (await readText(identityName, signal))?.text ?? null,
    replaceIdentity: (before, identity, signal) => replaceText(identityName, before, identity, signal),

    async [Symbol.asyncDispose]() {
      client.destroy();
      deleter.destroy();
    },
  };
}

function createClient(settings: S3Settings, maxAttempts: number): S3Client {
  const { endpoint, region, forcePathStyle, checksums, connections, timeoutMs } = settings;
  const agent = { keepAlive: true, maxSockets: connections };
  const sums = checksums === 'WHEN_SUPPORTED' ? 'WHEN_SUPPORTED' : 'WHEN_REQUIRED';
  return new S3Client({
    ...(endpoint ? { endpoint } : {}),
    ...(region ? { region } : {}),
    forcePathStyle,
    requestChecksumCalculation: sums,
    responseChecksumValidation: sums,
    // The SDK retries for seconds only; the queue retries over minutes and hours.
    retryMode: 'standard',
    maxAttempts,
    // With this header the SDK opens a new connection for each body over 2 MB, and waits six seconds if the store does not support it.
    expectContinueHeader: false,
    requestHandler: { httpAgent: agent, httpsAgent: agent, connectionTimeout: 5000, socketTimeout: timeoutMs },
  });
}

/** The checksum of a multipart object (`…-3`) covers its parts' checksums, not its bytes, so it is ignored. */
function toWholeSha256(base64: string | undefined): string | undefined {
  return base64 === undefined || base64.includes('-') ? undefined : Buffer.from(base64, 'base64').toString('hex');
}

function isDenied(error: unknown): error is Trouble {
  return error instanceof Trouble && error.status === 403;
}

// Blobs in a bucket of any store that speaks S3. A put counts only when the store's own record, or the bytes read back, prove it.
// The SDK finds credentials in the usual AWS_* environment and retries for seconds; this file never sees them.

import { createHash, randomUUID } from 'node:crypto';
import {
  GetBucketVersioningCommand,
  GetObjectCommand,
  GetObjectLockConfigurationCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  S3Client,
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
import { Trouble } from '../domain/trouble.ts';
import { createDelete } from './s3-delete.ts';
import { buildPut } from './s3-put.ts';
import { isMissing, isUnknownQuestion, toTrouble } from './s3-trouble.ts';

export interface S3Settings {
  readonly bucket: string;
  /** Put before every key with a slash; empty for the whole bucket. */
  readonly prefix: string;
  readonly endpoint?: string | undefined;
  /** Undefined: as AWS_REGION and the shared files say. */
  readonly region?: string | undefined;
  readonly forcePathStyle: boolean;
  readonly checksums: S3Checksums;
  /** As the store's x-amz-server-side-encryption takes it; undefined leaves it to the bucket. */
  readonly sse?: 'AES256' | 'aws:kms' | undefined;
  /** The key of `aws:kms`; undefined: the account's default. */
  readonly kmsKeyId?: string | undefined;
  /** Kept open and used again: as many as there are puts at once. */
  readonly connections: number;
  /** No byte for this long ends a try. */
  readonly timeoutMs: number;
}

/**
 * WHEN_REQUIRED: a put carries its sha256, nothing else carries what it need not. WHEN_SUPPORTED: the SDK adds and checks sums wherever
 * S3 knows them. OFF: for stores that refuse the header; puts are still signed over their sha256, and proven by reading back.
 */
export type S3Checksums = 'WHEN_REQUIRED' | 'WHEN_SUPPORTED' | 'OFF';

/** Makes the client; nothing is asked of the store yet. */
export function openS3Blobs(settings: S3Settings): BlobStore {
  const { bucket, checksums } = settings;
  const address = settings.endpoint === undefined ? 'AWS' : toAddress(settings.endpoint);
  const client = createClient(settings, 3);
  /** A delete is asked for once: one that was not answered may still be carried out after a second one was. */
  const deleter = createClient(settings, 1);
  const prefix = settings.prefix.replace(/^\/+|\/+$/g, '');
  const toName = (path: string) => (prefix ? `${prefix}/${path}` : path);
  const deleteObjects = createDelete({
    client,
    deleter,
    bucket,
    address,
    toName,
    ask,
    inBulk: checksums !== 'OFF',
    parallel: settings.connections,
  });
  const toTarget = (path: string) => ({ Bucket: bucket, Key: toName(path) });
  /** False once the store has said that it knows no If-None-Match. Then a put writes over equal bytes, which harms nothing. */
  let conditional = true;

  /** One question to the store; whatever goes wrong comes out as Trouble, or as the signal's reason. */
  async function ask<T>(
    signal: AbortSignal,
    question: (options: { abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    try {
      return await question({ abortSignal: signal });
    } catch (error) {
      signal.throwIfAborted();
      throw toTrouble(error, bucket, address);
    }
  }

  /**
   * Gives the proof that the put still needs: a store that answers without a sum has none in its record either, so the bytes are read.
   * `occupied`: the store will not say yes while something is, or just was, under this name.
   */
  async function send(
    path: string,
    body: BlobBody,
    facts: BlobFacts,
    mode: 'ifAbsent' | 'always',
    signal: AbortSignal,
  ): Promise<'sha256' | 'bytes' | 'occupied'> {
    const input = {
      ...toTarget(path),
      ...(mode === 'ifAbsent' && conditional ? { IfNoneMatch: '*' } : {}),
      ...(settings.sse ? { ServerSideEncryption: settings.sse } : {}),
      ...(settings.kmsKeyId ? { SSEKMSKeyId: settings.kmsKeyId } : {}),
    };
    try {
      const written = await ask(signal, (options) =>
        client.send(buildPut(input, body, facts, checksums !== 'OFF'), options),
      );
      return toWholeSha256(written.ChecksumSHA256) === undefined ? 'bytes' : 'sha256';
    } catch (error) {
      if (!input.IfNoneMatch || !(error instanceof Trouble)) throw error;
      if (error.status === 501) {
        conditional = false;
        return send(path, body, facts, 'always', signal);
      }
      // 412: it is there. 409 and NoSuchKey: another put or a delete of the same name was under way.
      if (error.status === 412 || error.status === 409 || error.kind === 'missing') return 'occupied';
      throw error;
    }
  }

  /** A question that a store need not know, nor answer to us; null where it does not. */
  async function look<T>(
    signal: AbortSignal,
    question: (options: { abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T | null> {
    try {
      return await ask(signal, question);
    } catch (error) {
      if (isUnknownQuestion(error)) return null;
      throw error;
    }
  }

  async function head(path: string, signal: AbortSignal) {
    try {
      const found = await ask(signal, (options) =>
        client.send(
          new HeadObjectCommand({ ...toTarget(path), ...(checksums === 'OFF' ? {} : { ChecksumMode: 'ENABLED' }) }),
          options,
        ),
      );
      return { sizeBytes: found.ContentLength ?? 0, sha256: toWholeSha256(found.ChecksumSHA256) };
    } catch (error) {
      if (!isMissing(error)) throw error;
      // An answer to HEAD has no body to say which of the two is missing. A bucket that is gone must not read as a million lost files.
      await ask(signal, (options) => client.send(new HeadBucketCommand({ Bucket: bucket }), options)).catch(
        (reason) => {
          if (reason instanceof Trouble && reason.status === 404)
            throw toTrouble({ name: 'NoSuchBucket' }, bucket, address);
          // A policy may refuse this question; without the bucket, the answer would not have been a missing blob.
          if (!(reason instanceof Trouble && reason.status === 403)) throw reason;
        },
      );
      return null;
    }
  }

  async function* read(path: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { Body } = await ask(signal, (options) => client.send(new GetObjectCommand(toTarget(path)), options));
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
    proof: 'record' | 'sha256' | 'bytes',
    signal: AbortSignal,
  ): Promise<BlobCondition> {
    if (proof === 'bytes') return await verifyBytes(parseBlobKey(key), facts, signal);
    const found = await head(parseBlobKey(key), signal);
    if (!found) return 'missing';
    if (found.sizeBytes !== facts.sizeBytes) return 'damaged';
    if (found.sha256 !== undefined && found.sha256 !== facts.sha256) return 'damaged';
    if (proof === 'record' || found.sha256 !== undefined) return 'intact';
    return await verifyBytes(key, facts, signal);
  }

  /** One request: what the bytes are says more than any record of them. */
  async function verifyBytes(key: string, facts: BlobFacts, signal: AbortSignal): Promise<BlobCondition> {
    const hash = createHash('sha256');
    try {
      for await (const chunk of read(key, signal)) hash.update(chunk);
    } catch (error) {
      if (isMissing(error)) return 'missing';
      throw error;
    }
    return hash.digest('hex') === facts.sha256 ? 'intact' : 'damaged';
  }

  async function loadIdentity(signal: AbortSignal): Promise<string | null> {
    try {
      const chunks = await Array.fromAsync(read(identityName, signal));
      return Buffer.concat(chunks).toString('utf8').trim() || null;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  return {
    location: `s3://${bucket}${prefix && `/${prefix}`}`,

    async put(key, body, facts, signal) {
      let sent = await send(parseBlobKey(key), body, facts, 'ifAbsent', signal);
      if (sent === 'occupied') {
        // The record of an object outlives its bytes: believed, damage that was found by reading could never be repaired.
        if ((await verify(key, facts, 'bytes', signal)) === 'intact') return 'present';
        sent = await send(key, body, facts, 'always', signal);
      }
      const condition = await verify(key, facts, sent === 'sha256' ? 'sha256' : 'bytes', signal);
      if (condition === 'intact') return 'stored';
      throw new Trouble('local', `The store took a blob, and what it holds now is ${condition}.`, { at: 'storage' });
    },

    verify,

    async *get(key, signal) {
      yield* read(parseBlobKey(key), signal);
    },

    delete: async (keys, signal) =>
      await deleteObjects(
        keys.map((key) => parseBlobKey(key)),
        signal,
      ),

    async loadKeeping(signal) {
      const versioning = new GetBucketVersioningCommand({ Bucket: bucket });
      const lock = new GetObjectLockConfigurationCommand({ Bucket: bucket });
      const versions = await look(signal, (options) => client.send(versioning, options));
      const locks = await look(signal, (options) => client.send(lock, options));
      return {
        versions: versions === null ? null : versions.Status !== undefined,
        locks: locks === null ? null : locks.ObjectLockConfiguration?.ObjectLockEnabled === 'Enabled',
      };
    },

    async *list(folder, signal): AsyncGenerator<ListedBlob> {
      const Prefix = toName(parseBlobFolder(folder));
      let token: string | undefined;
      do {
        const page = await ask(signal, (options) =>
          client.send(
            new ListObjectsV2Command({ Bucket: bucket, Prefix, ...(token ? { ContinuationToken: token } : {}) }),
            options,
          ),
        );
        for (const { Key, Size, LastModified } of page.Contents ?? []) {
          const key = Key?.slice(toName('').length);
          if (!key || key.startsWith('.') || key.includes('/.')) continue;
          yield { key, sizeBytes: Size ?? 0, modifiedAt: LastModified ?? new Date(0) };
        }
        token = page.IsTruncated ? page.NextContinuationToken : undefined;
      } while (token);
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

    loadIdentity,

    async openIdentity(signal) {
      const known = await loadIdentity(signal);
      if (known !== null) return known;
      const id = randomUUID();
      const body = Buffer.from(`${id}\n`);
      const sha256 = createHash('sha256').update(body).digest('hex');
      // Without If-None-Match the last of several wins; reading once more keeps that to the moment of a first start.
      await send(identityName, body, { sizeBytes: body.length, sha256 }, 'ifAbsent', signal);
      return (await loadIdentity(signal)) ?? id;
    },

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
    // Seconds only: minutes and hours are the queue's.
    retryMode: 'standard',
    maxAttempts,
    // With it the SDK opens a new connection for each body over 2 MB, and waits six seconds where a store does not know it.
    expectContinueHeader: false,
    requestHandler: { httpAgent: agent, httpsAgent: agent, connectionTimeout: 5000, socketTimeout: timeoutMs },
  });
}

/** A sum over parts (`…-3`) says nothing about the whole. */
function toWholeSha256(base64: string | undefined): string | undefined {
  return base64 === undefined || base64.includes('-') ? undefined : Buffer.from(base64, 'base64').toString('hex');
}

/** Host and port of the endpoint, for messages. */
function toAddress(endpoint: string): string {
  const { hostname, port, protocol } = new URL(endpoint);
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
}

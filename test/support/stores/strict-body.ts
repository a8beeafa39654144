// The checks that S3 makes before it accepts a body: length, payload hash, checksums, and no aws-chunked framing.

import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { crc32 } from 'node:zlib';
import { Refusal } from './sigv4.ts';

/** Throws a Refusal unless every header that describes the body is true. */
export function checkBody(
  headers: IncomingMessage['headers'],
  body: Buffer,
  payloadHash: string,
  method: string,
  refusesSums: boolean,
): void {
  const carries = method === 'PUT' || method === 'POST';
  if (/aws-chunked/.test(headers['content-encoding'] ?? '') || payloadHash.startsWith('STREAMING-')) {
    throw new Refusal('NotImplemented', 501);
  }
  if (carries && headers['content-length'] === undefined) throw new Refusal('MissingContentLength', 411);
  if (headers['x-amz-acl'] !== undefined) throw new Refusal('AccessControlListNotSupported', 400);
  if (carries && payloadHash !== toSha256(body, 'hex')) throw new Refusal('XAmzContentSHA256Mismatch', 400);
  const sums = {
    'x-amz-checksum-sha256': () => toSha256(body, 'base64'),
    'x-amz-checksum-crc32': () => toCrc32(body),
    'content-md5': () => createHash('md5').update(body).digest('base64'),
  };
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith('x-amz-checksum-') && name !== 'content-md5') continue;
    if (name === 'x-amz-checksum-mode') continue;
    if (refusesSums) throw new Refusal('InvalidArgument', 400);
    const expected = sums[name as keyof typeof sums]?.();
    if (expected === undefined) throw new Refusal('InvalidRequest', 400);
    if (value !== expected) throw new Refusal('BadDigest', 400);
    const algorithm = headers['x-amz-sdk-checksum-algorithm'];
    if (name !== 'content-md5' && `x-amz-checksum-${String(algorithm).toLowerCase()}` !== name) {
      throw new Refusal('InvalidRequest', 400);
    }
  }
}

/** The checksum in the encoding of a header. */
export function toSha256(bytes: Buffer, encoding: 'hex' | 'base64'): string {
  return createHash('sha256').update(bytes).digest(encoding);
}

function toCrc32(bytes: Buffer): string {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return sum.toString('base64');
}

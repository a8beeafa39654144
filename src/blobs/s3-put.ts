// Builds the request that uploads bytes. The sha256 that the caller already knows serves three times: as the payload hash of the signature,
// as the checksum that the store verifies, and in the key. So nothing is hashed again, and the body is not sent in aws-chunked framing,
// which several stores reject.
import { Readable } from 'node:stream';
import { PutObjectCommand, type PutObjectCommandInput } from '@aws-sdk/client-s3';
import type { BlobBody, BlobFacts, BlobFile } from '../domain/blob.ts';
import { Trouble } from '../domain/trouble.ts';

/** Builds a put of a body in memory, or of a file, which is read again for each attempt. */
export function buildPut(
  target: PutObjectCommandInput,
  body: BlobBody,
  facts: BlobFacts,
  withChecksum: boolean,
): PutObjectCommand {
  if (body instanceof Uint8Array && body.length !== facts.sizeBytes) throw toMismatch();
  const command = new PutObjectCommand({
    ...target,
    ...(body instanceof Uint8Array ? { Body: body } : {}),
    ContentLength: facts.sizeBytes,
    ContentType: 'application/octet-stream',
    // Both are needed: with the value alone, one server accepted a wrong checksum.
    ...(withChecksum
      ? { ChecksumAlgorithm: 'SHA256', ChecksumSHA256: Buffer.from(facts.sha256, 'hex').toString('base64') }
      : {}),
  });
  command.middlewareStack.add(
    (next) => (args) => {
      toHttp(args.request).headers['x-amz-content-sha256'] = facts.sha256;
      return next(args);
    },
    { step: 'build', name: 'knownPayloadHash' },
  );
  if (!(body instanceof Uint8Array)) {
    // Runs inside the SDK's retry loop, which would not retry a stream, since it cannot rewind one.
    command.middlewareStack.add(
      (next) => async (args) => {
        const stream = Readable.from(readWhole(body, facts.sizeBytes), { objectMode: false });
        const { promise: broken, reject } = Promise.withResolvers<never>();
        stream.on('error', reject);
        try {
          return await Promise.race([next({ ...args, request: { ...toHttp(args.request), body: stream } }), broken]);
        } finally {
          stream.destroy();
        }
      },
      { step: 'finalizeRequest', priority: 'low', name: 'openBody' },
    );
  }
  return command;
}

/** For a shorter file, the store would wait for the missing bytes. */
async function* readWhole(file: BlobFile, sizeBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < sizeBytes; ) {
    const buffer = Buffer.allocUnsafe(chunkBytes);
    const bytes = await file.read(buffer, at);
    at += bytes;
    if (bytes === 0 || at > sizeBytes) throw toMismatch();
    yield buffer.subarray(0, bytes);
  }
}

function toMismatch(): Trouble {
  return new Trouble('mismatch', 'The number of bytes to store differs from the number that was hashed.');
}

const chunkBytes = 256 * 1024;

function toHttp(request: unknown): { headers: Record<string, string>; body?: unknown } {
  return request as { headers: Record<string, string>; body?: unknown };
}

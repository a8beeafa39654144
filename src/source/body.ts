// Reads a response body into memory, up to a limit. Intake requests uncompressed bytes; a body that is compressed nevertheless is
// inflated here. The limit counts inflated bytes, so a decompression bomb cannot exceed it.

import { pipeline } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { refuse } from './parse/values.ts';

const inflaters = { gzip: createGunzip, 'x-gzip': createGunzip, deflate: createInflate, br: createBrotliDecompress };

/** Reads a body up to `maxBytes`. A larger body ends the connection; the first `maxBytes` are returned, and `whole` is false. */
export async function readBody(
  body: AsyncIterable<Uint8Array>,
  contentEncoding: string | undefined,
  maxBytes: number,
  onBytes?: (() => void) | undefined,
): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of inflate(body, contentEncoding)) {
    onBytes?.();
    chunks.push(chunk);
    size += chunk.length;
    // Leaving the loop destroys the stream and its connection.
    if (size > maxBytes) return { bytes: Buffer.concat(chunks, maxBytes), whole: false };
  }
  return { bytes: Buffer.concat(chunks, size), whole: true };
}

export async function* inflate(body: AsyncIterable<Uint8Array>, contentEncoding = 'identity') {
  const encoding = contentEncoding.trim().toLowerCase();
  if (encoding === 'identity' || encoding === '') return yield* body;
  if (!Object.hasOwn(inflaters, encoding)) refuse('has an unsupported Content-Encoding');
  const inflater = inflaters[encoding as keyof typeof inflaters]();
  try {
    // The iteration throws the errors; pipeline requires a callback all the same.
    yield* pipeline(body, inflater, () => undefined) as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (typeof (error as { errno?: unknown }).errno !== 'number') throw error;
    refuse('is compressed, and truncated or damaged');
  }
}

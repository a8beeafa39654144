// A body read into memory within a limit. We ask for plain bytes; what comes compressed all the same is inflated here, and
// the limit counts what comes out, so that a small bomb is worth no more than a large body.

import { pipeline } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { Trouble } from '../domain/trouble.ts';

/** Bytes of a body; `whole` is false when it was abandoned at the limit. */
export interface ReadBody {
  readonly bytes: Buffer;
  readonly whole: boolean;
}

const inflaters = { gzip: createGunzip, 'x-gzip': createGunzip, deflate: createInflate, br: createBrotliDecompress };

/** Reads a body up to `maxBytes`; beyond that the connection is dropped and the beginning returned. */
export async function readBody(
  body: AsyncIterable<Uint8Array>,
  contentEncoding: string | undefined,
  maxBytes: number,
  onBytes?: (() => void) | undefined,
): Promise<ReadBody> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of toPlain(body, contentEncoding?.trim().toLowerCase() ?? 'identity')) {
    onBytes?.();
    chunks.push(chunk);
    size += chunk.length;
    // Leaving the loop ends the stream and its connection.
    if (size > maxBytes) return { bytes: Buffer.concat(chunks, maxBytes), whole: false };
  }
  return { bytes: Buffer.concat(chunks, size), whole: true };
}

async function* toPlain(body: AsyncIterable<Uint8Array>, encoding: string): AsyncGenerator<Uint8Array> {
  if (encoding === 'identity' || encoding === '') return yield* body;
  if (!Object.hasOwn(inflaters, encoding)) throw new Trouble('malformed', 'The answer has an encoding we do not read.');
  const inflate = inflaters[encoding as keyof typeof inflaters]();
  try {
    // Errors reach us through the iteration; the callback is there because pipeline wants one.
    yield* pipeline(body, inflate, () => undefined) as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (typeof (error as { errno?: unknown }).errno !== 'number') throw error;
    throw new Trouble('malformed', 'The compressed answer is cut off or damaged.');
  }
}

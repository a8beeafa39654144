// Where bytes wait: small ones in memory within a budget over all, larger ones in a file that leaves nothing behind.
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { openSpool, type Spool } from '../../src/sync/spool.ts';
import { openScratch } from '../support/blob-stores.ts';

const MiB = 1024 * 1024;

async function write(spool: Spool, bytes: Buffer, expectedBytes: number | null = null) {
  const spooled = spool.open(expectedBytes);
  for (let at = 0; at < bytes.length; at += 300_000) await spooled.write(bytes.subarray(at, at + 300_000));
  const { body, facts, head } = await spooled.finish();
  const kept = body instanceof Uint8Array ? body : readFileSync(body.path);
  expect(facts).toEqual({ sizeBytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') });
  expect(bytes.equals(kept)).toBe(true);
  expect(bytes.subarray(0, head.length).equals(head)).toBe(true);
  return { place: body instanceof Uint8Array ? 'memory' : 'file', [Symbol.asyncDispose]: spooled[Symbol.asyncDispose] };
}

describe('a spool', () => {
  test('keeps up to 8 MB in memory and more than that in a file, whatever was expected', async () => {
    await using scratch = await openScratch();
    const spool = await openSpool(scratch.path, 64 * MiB);
    const places: string[] = [];
    for (const [sizeBytes, expectedBytes] of [
      [8 * MiB, null],
      [8 * MiB + 1, null],
      [8 * MiB + 1, 10],
      [10, 8 * MiB + 1],
    ] as const) {
      await using written = await write(spool, randomBytes(sizeBytes), expectedBytes);
      places.push(written.place);
      expect(readdirSync(scratch.path)).toEqual([]);
    }
    expect(places).toEqual(['memory', 'file', 'file', 'file']);
  });

  test('holds no more in memory than its budget over all, and uses again what was freed', async () => {
    await using scratch = await openScratch();
    const spool = await openSpool(scratch.path, 2 * MiB);
    const bytes = randomBytes(1.5 * MiB);
    for (let round = 0; round < 3; round++) {
      await using first = await write(spool, bytes);
      await using second = await write(spool, bytes);
      expect([first.place, second.place]).toEqual(['memory', 'file']);
    }
  });
});

// Where bytes wait: small ones in memory, larger ones in a file that leaves nothing behind.
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { Spool } from '../../../src/domain/blob.ts';
import { openSpool } from '../../../src/sync/files/spool.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';

const MiB = 1024 * 1024;

async function write(spool: Spool, bytes: Buffer) {
  const spooled = spool.open();
  // The first chunk of a body is often small: headers took most of its packet.
  await spooled.write(bytes.subarray(0, 300));
  for (let at = 300; at < bytes.length; at += 300_000) await spooled.write(bytes.subarray(at, at + 300_000));
  const { body, facts, head } = await spooled.finish();
  expect(facts).toEqual({ sizeBytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') });
  // Twice, as for another attempt of a put.
  for (let times = 0; times < 2; times++) {
    const kept = body instanceof Uint8Array ? body : Buffer.alloc(bytes.length);
    if (!(body instanceof Uint8Array)) {
      for (let at = 0; at < bytes.length; ) at += await body.read(kept.subarray(at, at + 100_000), at);
      expect(await body.read(Buffer.alloc(1), bytes.length)).toBe(0);
    }
    expect(bytes.equals(kept)).toBe(true);
  }
  expect(bytes.subarray(0, 65_536).equals(head)).toBe(true);
  return { place: body instanceof Uint8Array ? 'memory' : 'file', [Symbol.asyncDispose]: spooled[Symbol.asyncDispose] };
}

describe('a spool', () => {
  test('keeps up to 1 MB of a file in memory, and a larger one in a file without a name', async () => {
    await using scratch = await openScratch();
    const spool = openSpool(scratch.path);
    const places: string[] = [];
    for (const sizeBytes of [MiB, MiB + 1, 9 * MiB]) {
      await using written = await write(spool, randomBytes(sizeBytes));
      places.push(written.place);
      expect(readdirSync(scratch.path)).toEqual([]);
    }
    expect(places).toEqual(['memory', 'file', 'file']);
  });

  test('whose folder cannot be used names it, with the setting that moves it', async () => {
    await using scratch = await openScratch();
    const folder = join(scratch.path, 'absent');
    await expect(
      openSpool(folder)
        .open()
        .write(randomBytes(2 * MiB)),
    ).rejects.toThrow(
      `The spool folder ${folder} cannot be used (ENOENT): check its disk, or set TMPDIR to another folder.`,
    );
  });

  test('whose file cannot be unlinked closes it', async () => {
    await using scratch = await openScratch();
    const { open } = fs;
    let handle: fs.FileHandle | undefined;
    vi.spyOn(fs, 'open').mockImplementationOnce(async (...args) => {
      handle = await open(...args);
      return handle;
    });
    const refused = Object.assign(new Error('refused'), { code: 'EBUSY', syscall: 'unlink' });
    vi.spyOn(fs, 'rm').mockRejectedValueOnce(refused);
    syncBuiltinESMExports();
    try {
      const written = openSpool(scratch.path)
        .open()
        .write(randomBytes(2 * MiB));
      await expect(written).rejects.toThrow('cannot be used (EBUSY)');
      expect(handle?.fd).toBe(-1);
    } finally {
      vi.restoreAllMocks();
      syncBuiltinESMExports();
    }
  });
});

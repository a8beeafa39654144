// Where bytes wait: small ones in memory within a budget over all, larger ones in a file that leaves nothing behind.
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Spool } from '../../src/domain/blob.ts';
import { openSpool } from '../../src/sync/files/spool.ts';
import { openScratch } from '../support/blob-stores.ts';

const MiB = 1024 * 1024;

async function write(spool: Spool, bytes: Buffer) {
  const spooled = spool.open();
  // The first chunk of a body is often small: headers took most of its packet.
  await spooled.write(bytes.subarray(0, 300));
  for (let at = 300; at < bytes.length; at += 300_000) await spooled.write(bytes.subarray(at, at + 300_000));
  const { body, facts, head } = await spooled.finish();
  const kept = body instanceof Uint8Array ? body : readFileSync(body.path);
  expect(facts).toEqual({ sizeBytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') });
  expect(bytes.equals(kept)).toBe(true);
  expect(bytes.subarray(0, 65_536).equals(head)).toBe(true);
  return { place: body instanceof Uint8Array ? 'memory' : 'file', [Symbol.asyncDispose]: spooled[Symbol.asyncDispose] };
}

describe('a spool', () => {
  test('keeps up to 8 MB in memory and more than that in a file', async () => {
    await using scratch = await openScratch();
    const spool = await openSpool(scratch.path, 64 * MiB);
    const places: string[] = [];
    for (const sizeBytes of [8 * MiB, 8 * MiB + 1]) {
      await using written = await write(spool, randomBytes(sizeBytes));
      places.push(written.place);
      expect(readdirSync(scratch.path)).toEqual([]);
    }
    expect(places).toEqual(['memory', 'file']);
  });

  test('holds no more in memory than its budget over all, and uses again what was freed', async () => {
    await using scratch = await openScratch();
    const spool = await openSpool(scratch.path, 2 * MiB);
    const bytes = randomBytes(1.5 * MiB);
    for (let nth = 0; nth < 3; nth++) {
      await using first = await write(spool, bytes);
      await using second = await write(spool, bytes);
      expect([first.place, second.place]).toEqual(['memory', 'file']);
    }
  });
});

describe('the folder of a spool', () => {
  const longAgo = new Date(Date.now() - 7_200_000);

  test('that cannot be used is named, with the setting that moves it', async () => {
    await using scratch = await openScratch();
    const folder = join(scratch.path, 'absent');
    await expect(openSpool(folder, MiB)).rejects.toThrow(
      `The spool folder ${folder} cannot be used (ENOENT): check its disk, or set TMPDIR to another folder.`,
    );
  });

  test('loses only old files of a spool; a link in it takes nothing elsewhere with it', async () => {
    await using scratch = await openScratch();
    const kept = join(scratch.path, 'kept.txt');
    writeFileSync(kept, 'kept');
    symlinkSync(kept, join(scratch.path, 'intake-spool-link'));
    for (const name of ['intake-spool-leftover', 'payroll.txt']) writeFileSync(join(scratch.path, name), 'x');
    for (const name of readdirSync(scratch.path)) utimesSync(join(scratch.path, name), longAgo, longAgo);
    writeFileSync(join(scratch.path, 'intake-spool-new'), 'x');
    await openSpool(scratch.path, MiB);
    expect(readdirSync(scratch.path)).toEqual(['intake-spool-link', 'intake-spool-new', 'kept.txt', 'payroll.txt']);
    expect(readFileSync(kept, 'utf8')).toBe('kept');
  });
});

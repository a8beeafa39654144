// Where bytes wait: small ones in memory within a budget over all, larger ones in a file that leaves nothing behind.
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Spool } from '../../src/domain/blob.ts';
import { openSpool } from '../../src/sync/files/spool.ts';
import { openScratch } from '../support/blob-stores.ts';

const MiB = 1024 * 1024;

async function write(spool: Spool, bytes: Buffer, expectedBytes: number | null = null) {
  const spooled = spool.open(expectedBytes);
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
    for (let nth = 0; nth < 3; nth++) {
      await using first = await write(spool, bytes);
      await using second = await write(spool, bytes);
      expect([first.place, second.place]).toEqual(['memory', 'file']);
    }
  });
});

describe('a spool folder', () => {
  const longAgo = new Date(Date.now() - 7_200_000);

  test('that is a link to elsewhere is refused, and nothing there is deleted', async () => {
    await using scratch = await openScratch();
    const elsewhere = join(scratch.path, 'elsewhere');
    mkdirSync(elsewhere, { mode: 0o700 });
    writeFileSync(join(elsewhere, 'payroll.txt'), 'kept');
    utimesSync(join(elsewhere, 'payroll.txt'), longAgo, longAgo);
    const folder = join(scratch.path, 'spool');
    symlinkSync(elsewhere, folder);
    await expect(openSpool(folder, MiB)).rejects.toThrow(`The spool folder ${folder} is a link`);
    expect(existsSync(join(elsewhere, 'payroll.txt'))).toBe(true);
  });

  test('that cannot be made is named, with the setting that moves it', async () => {
    await using scratch = await openScratch();
    const folder = join(scratch.path, 'absent', 'spool');
    await expect(openSpool(folder, MiB)).rejects.toThrow(
      `The spool folder ${folder} cannot be used (ENOENT): check its disk, or set TMPDIR to another folder.`,
    );
  });

  test('that others may write to is refused', async () => {
    await using scratch = await openScratch();
    const folder = join(scratch.path, 'spool');
    mkdirSync(folder);
    chmodSync(folder, 0o777);
    await expect(openSpool(folder, MiB)).rejects.toThrow('open to other users');
  });

  test.runIf(process.getuid?.() === 0)(
    'that another user made is refused (only root makes files of another user: sudo npm test -- test/integration/spool.test.ts)',
    async () => {
      await using scratch = await openScratch();
      const folder = join(scratch.path, 'spool');
      mkdirSync(folder, { mode: 0o700 });
      chownSync(folder, 65_534, 65_534);
      await expect(openSpool(folder, MiB)).rejects.toThrow('belongs to another user');
    },
  );

  test('of our own is made where it is missing, and used again; a link left in it takes nothing elsewhere with it', async () => {
    await using scratch = await openScratch();
    const kept = join(scratch.path, 'kept.txt');
    writeFileSync(kept, 'kept');
    utimesSync(kept, longAgo, longAgo);
    const folder = join(scratch.path, 'spool');
    await openSpool(folder, MiB);
    symlinkSync(kept, join(folder, 'link'));
    writeFileSync(join(folder, 'leftover'), 'x');
    utimesSync(join(folder, 'leftover'), longAgo, longAgo);
    await openSpool(folder, MiB);
    expect(readdirSync(folder)).toEqual(['link']);
    expect(readFileSync(kept, 'utf8')).toBe('kept');
  });
});

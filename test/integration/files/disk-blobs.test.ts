// What a folder may go through: kill -9 in the middle of a put, leftovers, another process beside us, a file where a folder should be.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs, { type FileHandle, mkdir, open, readdir, rm, stat, statfs, utimes, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import { openDiskBlobs } from '../../../src/blobs/disk.ts';
import { toBlobKey } from '../../../src/domain/blob.ts';
import { createBytes, guardByIdentity, openScratch } from '../../support/stores/blob-stores.ts';

const signal = AbortSignal.timeout(600_000);

/** Refuses hard links with this code, as a file system that has none. */
function refuseLinks(code: string): Disposable {
  const { link } = fs;
  const restore = (to: typeof link) => {
    fs.link = to;
    syncBuiltinESMExports();
  };
  restore(() => Promise.reject(Object.assign(new Error('refused'), { code, syscall: 'link' })));
  return { [Symbol.dispose]: () => restore(link) };
}

describe('a folder of blobs', () => {
  test('lets nobody else read', async () => {
    await using scratch = await openScratch();
    await using store = await openDiskBlobs(join(scratch.path, 'new', 'blobs'));
    const { bytes, facts } = createBytes(10);
    const key = toBlobKey(5n, facts.sha256);
    await store.put(key, bytes, facts, signal);
    await store.replaceIdentity(null, 'whose', signal);
    const path = fileURLToPath(await store.url(key, { fileName: 'x', contentType: 'x', expiresInMs: 1 }));
    const mode = async (each: string) => ((await stat(each)).mode & 0o777).toString(8);
    expect(await mode(path)).toBe('600');
    expect(await mode(join(scratch.path, 'new/blobs/.intake-store'))).toBe('600');
    for (let each = dirname(path); each !== scratch.path; each = dirname(each)) expect(await mode(each)).toBe('700');
  });

  test('has a blob on the disk before its name, and its name before the put is over', async () => {
    await using scratch = await openScratch();
    await using store = await openDiskBlobs(scratch.path);
    await mkdir(join(scratch.path, '.aside'));
    const { bytes, facts } = createBytes(10);
    const key = toBlobKey(5n, facts.sha256);
    await using any = await open(scratch.path);
    const handles = Object.getPrototypeOf(any) as FileHandle;
    const moments: string[] = [];
    for (const name of ['datasync', 'sync'] as const) {
      const { [name]: sync } = handles;
      vi.spyOn(handles, name).mockImplementation(function (this: FileHandle) {
        moments.push(`${name} ${existsSync(join(scratch.path, key)) ? 'named' : 'unnamed'}`);
        return sync.call(this);
      });
    }
    await store.put(key, bytes, facts, signal);
    vi.restoreAllMocks();
    // The folders of the first blob are new: they are entries themselves.
    expect([...new Set(moments)]).toEqual(['datasync unnamed', 'sync unnamed', 'sync named']);
  });

  test('loses what killed puts left with its first put, not when it is opened, and nothing of a put under way elsewhere', async () => {
    await using scratch = await openScratch();
    const aside = join(scratch.path, '.aside');
    await mkdir(aside);
    for (const name of ['old', 'young']) await writeFile(join(aside, name), 'half');
    const twoHoursAgo = new Date(Date.now() - 2 * 60 * 60 * 1000);
    await utimes(join(aside, 'old'), twoHoursAgo, twoHoursAgo);
    await using store = await openDiskBlobs(scratch.path);
    // The folder may belong to another database: opening it deletes nothing.
    expect(await readdir(aside)).toEqual(['old', 'young']);
    const { bytes, facts } = createBytes(10);
    await store.put(toBlobKey(5n, facts.sha256), bytes, facts, signal);
    expect(await readdir(aside)).toEqual(['young']);
  });

  test('loses with a delete what killed puts have left since its first put', async () => {
    await using scratch = await openScratch();
    await using store = await openDiskBlobs(scratch.path);
    const { bytes, facts } = createBytes(10);
    const key = toBlobKey(5n, facts.sha256);
    await store.put(key, bytes, facts, signal);
    const left = join(scratch.path, '.aside', 'left');
    await writeFile(left, bytes);
    const twoHoursAgo = new Date(Date.now() - 2 * 60 * 60 * 1000);
    await utimes(left, twoHoursAgo, twoHoursAgo);
    await store.delete(key, signal);
    expect(await readdir(join(scratch.path, '.aside'))).toEqual([]);
  });

  test('after kill -9 in the middle of puts holds whole blobs only', async () => {
    await using scratch = await openScratch();
    const sizeBytes = 2_000_000;
    for (const afterMs of [5, 20, 60]) {
      const child = fork(new URL('../../support/stores/endless-puts.ts', import.meta.url), [
        scratch.path,
        String(sizeBytes),
      ]);
      await once(child, 'message');
      await sleep(afterMs);
      await kill(child);
    }
    await using store = await openDiskBlobs(scratch.path);
    const listed = await Array.fromAsync(store.list('', signal));
    expect(listed.length).toBeGreaterThan(2);
    for (const { key } of listed) {
      const sha256 = key.split('/').at(-1) ?? '';
      expect(await store.verify(key, { sizeBytes, sha256 }, 'bytes', signal)).toBe('intact');
    }
  });

  test('that cannot be one is our trouble, by its code', async () => {
    await using scratch = await openScratch();
    await writeFile(join(scratch.path, 'file'), '');
    await expect(openDiskBlobs(join(scratch.path, 'file'))).rejects.toMatchObject({
      kind: 'local',
      message: expect.stringMatching(/EEXIST|ENOTDIR/),
    });
  });

  test('that vanished, or is not mounted, takes nothing and is never read as missing blobs', async () => {
    await using scratch = await openScratch();
    const root = join(scratch.path, 'blobs');
    await using store = await openDiskBlobs(root);
    const { bytes, facts } = createBytes(10);
    const key = toBlobKey(5n, facts.sha256);
    expect(existsSync(root)).toBe(false);
    await store.put(key, bytes, facts, signal);
    await rm(root, { recursive: true });
    for (const becomes of ['nothing', 'an empty mount point']) {
      if (becomes !== 'nothing') await mkdir(root);
      const gone = { kind: 'local', message: expect.stringContaining('ENOENT') };
      await expect(store.put(key, bytes, facts, signal)).rejects.toMatchObject(gone);
      await expect(guardByIdentity(store).verify(key, facts, 'metadata', signal)).rejects.toMatchObject(gone);
      await expect(Array.fromAsync(store.get(key, signal))).rejects.toMatchObject(gone);
      await expect(Array.fromAsync(store.list('', signal))).rejects.toMatchObject(gone);
      await expect(store.delete(key, signal)).rejects.toMatchObject(gone);
      await expect(store.loadIdentity(signal)).rejects.toMatchObject(gone);
      await expect(store.replaceIdentity(null, 'whose', signal)).rejects.toMatchObject(gone);
    }
  });

  test('whose mount is gone takes no bytes, also where the folder below it looks like a store', async () => {
    await using scratch = await openScratch();
    const root = join(scratch.path, 'blobs');
    await using first = await openDiskBlobs(root);
    await first.replaceIdentity(null, 'whose', signal);
    await using store = await openDiskBlobs(root);
    expect(await store.loadIdentity(signal)).toBe('whose');
    await rm(root, { recursive: true });
    await mkdir(join(root, '.aside'), { recursive: true });
    const { bytes, facts } = createBytes(10);
    const gone = { kind: 'local', message: expect.stringContaining('ENOENT') };
    for (const each of [first, store])
      await expect(each.put(toBlobKey(5n, facts.sha256), bytes, facts, signal)).rejects.toMatchObject(gone);
    expect(await readdir(root)).toEqual(['.aside']);
  });

  test('is not changed by being opened', async () => {
    await using scratch = await openScratch();
    await using store = await openDiskBlobs(scratch.path);
    expect(await store.loadIdentity(signal)).toBe(null);
    expect(await Array.fromAsync(store.list('', signal))).toEqual([]);
    expect(await readdir(scratch.path)).toEqual([]);
  });

  test('has the owner of the highest number, also where an earlier one was lost', async () => {
    await using scratch = await openScratch();
    await using store = await openDiskBlobs(scratch.path);
    for (let nth = 0; nth <= 10; nth++)
      await store.replaceIdentity(nth === 0 ? null : `owner ${nth - 1}`, `owner ${nth}`, signal);
    await rm(join(scratch.path, '.intake-store'));
    await rm(join(scratch.path, '.intake-store.3'));
    expect(await store.loadIdentity(signal)).toBe('owner 10');
    expect(await store.replaceIdentity('owner 10', 'owner 11', signal)).toBe(true);
    expect(await store.loadIdentity(signal)).toBe('owner 11');
  });

  test.for([null, 'EPERM', 'ENOTSUP', 'ENOSYS'])('has one owner, also where links are refused: %s', async (code) => {
    using _links = code === null ? null : refuseLinks(code);
    await using scratch = await openScratch();
    await using store = await openDiskBlobs(scratch.path);
    expect(await store.replaceIdentity(null, 'first', signal)).toBe(true);
    // What a process of an earlier release has left that died in between.
    await writeFile(join(scratch.path, '.intake-store.next'), '');
    expect(await store.replaceIdentity('first', 'second', signal)).toBe(true);
    expect(await store.replaceIdentity('first', 'too late', signal)).toBe(false);
    expect(await store.replaceIdentity('second', 'third', signal)).toBe(true);
    expect(await store.loadIdentity(signal)).toBe('third');
    expect(await readdir(join(scratch.path, '.aside'))).toEqual([]);
  });

  test('at the root of a volume is listed without lost+found, which only root may read', async () => {
    await using scratch = await openScratch();
    await using store = await openDiskBlobs(scratch.path);
    await mkdir(join(scratch.path, 'lost+found'));
    await writeFile(join(scratch.path, 'lost+found', 'x'), 'x');
    expect(await Array.fromAsync(store.list('', signal))).toEqual([]);
  });

  test('whose next owner is being written, or died before it was, is nobody’s to use', async () => {
    await using scratch = await openScratch();
    await using store = await openDiskBlobs(scratch.path);
    await store.replaceIdentity(null, 'first', signal);
    await writeFile(join(scratch.path, '.intake-store.1'), '');
    const trouble = { kind: 'local', message: expect.stringContaining('.intake-store.1 is empty') };
    await expect(store.loadIdentity(signal)).rejects.toMatchObject(trouble);
    await expect(store.replaceIdentity('first', 'next', signal)).rejects.toMatchObject(trouble);
  });

  test.skipIf(process.getuid?.() === 0)(
    'that may not be written is our trouble (root may write everywhere; as another user: npm test -- test/integration/files/disk-blobs.test.ts)',
    async () => {
      await using scratch = await openScratch();
      await using store = await openDiskBlobs(scratch.path);
      await mkdir(join(scratch.path, '.aside'), { mode: 0o500 });
      const { bytes, facts } = createBytes(10);
      const attempt = store.put(toBlobKey(5n, facts.sha256), bytes, facts, signal);
      await expect(attempt).rejects.toMatchObject({ kind: 'local', message: expect.stringContaining('EACCES') });
    },
  );

  test('knows how much its disk still takes', async () => {
    await using scratch = await openScratch();
    await using store = await openDiskBlobs(scratch.path);
    expect(await store.freeBytes()).toBe(null);
    await store.replaceIdentity(null, 'whose', signal);
    const { bavail, bsize } = await statfs(scratch.path);
    expect(Math.abs(((await store.freeBytes()) ?? 0) - bavail * bsize)).toBeLessThan(1_000_000_000);
    expect(store.location).toBe(new URL(`file://${scratch.path}`).href);
  });
});

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

// Holds the bytes of a download until they are stored: small files in memory, larger ones in a disk file that is unlinked as soon as it is
// open, so that no personal data stays on the disk when the process dies.
import { createHash, randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Spool, Spooled } from '../../domain/blob.ts';
import { Trouble } from '../../domain/trouble.ts';

/** Most bytes of one file in memory. The caller limits how many files there are at once. */
const inMemoryBytes = 1024 * 1024;
const headBytes = 65_536;
const bufferBytes = 512 * 1024;

/** Other users may share the folder: only this user can read a file in it, and it is never opened by a name that existed before. */
export function openSpool(folder: string, freeBytes: Spool['freeBytes'] = async () => null): Spool {
  return { location: `the spool ${folder} (TMPDIR)`, freeBytes, open: () => openSpooled(folder) };
}

function openSpooled(folder: string): Spooled {
  const hash = createHash('sha256');
  let chunks: Uint8Array[] = [];
  let head = Buffer.alloc(0);
  let sizeBytes = 0;
  let file: Awaited<ReturnType<typeof openSpoolFile>> | null = null;
  return {
    get sizeBytes() {
      return sizeBytes;
    },
    async write(chunk) {
      hash.update(chunk);
      sizeBytes += chunk.length;
      if (file) return await file.write(chunk);
      chunks.push(chunk);
      if (sizeBytes <= inMemoryBytes) return;
      file = await openSpoolFile(folder);
      head = Buffer.from(Buffer.concat(chunks).subarray(0, headBytes));
      for (const held of chunks) await file.write(held);
      chunks = [];
    },
    async finish() {
      await file?.flush();
      const facts = { sizeBytes, sha256: hash.digest('hex') };
      const bytes = Buffer.concat(chunks);
      return file ? { body: file, facts, head } : { body: bytes, facts, head: bytes.subarray(0, headBytes) };
    },
    async [Symbol.asyncDispose]() {
      chunks = [];
      await file?.[Symbol.asyncDispose]();
    },
  };
}

/** Chunks are copied into one reused buffer. Without it, those that survived a slow write held 96 MB for four files at once (measured). */
async function openSpoolFile(folder: string) {
  const path = join(folder, `intake-spool-${randomUUID()}`);
  await using stack = new AsyncDisposableStack();
  const handle = stack.use(await guard(folder, () => open(path, 'wx+', 0o600)));
  await guard(folder, () => rm(path));
  const buffer = Buffer.allocUnsafeSlow(bufferBytes);
  let filled = 0;

  const flush = () =>
    guard(folder, async () => {
      for (let at = 0; at < filled; ) at += (await handle.write(buffer, at, filled - at)).bytesWritten;
      filled = 0;
    });

  const owned = stack.move();
  return {
    read: (into: Uint8Array, at: number) =>
      guard(folder, async () => (await handle.read(into, 0, into.length, at)).bytesRead),
    async write(chunk: Uint8Array): Promise<void> {
      for (let at = 0; at < chunk.length; ) {
        if (filled === bufferBytes) await flush();
        const end = Math.min(chunk.length, at + bufferBytes - filled);
        buffer.set(chunk.subarray(at, end), filled);
        filled += end - at;
        at = end;
      }
    },
    flush,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function guard<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    const happened = `The spool folder ${folder} cannot be used (${error.code}): check its disk, or set TMPDIR to another folder.`;
    throw new Trouble('local', happened, { at: 'storage', cause: error });
  }
}

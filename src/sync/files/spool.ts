// Holds the bytes of a download until they are stored: small files in memory, within a budget for all downloads, and larger ones in a disk
// file that is unlinked as soon as it is open, so that no personal data stays on the disk when the process dies.
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Spool, Spooled } from '../../domain/blob.ts';
import { Trouble } from '../../domain/trouble.ts';

const prefix = 'intake-spool-';
const inMemoryBytes = 8 * 1024 * 1024;
const headBytes = 65_536;
const bufferBytes = 512 * 1024;
/** Where open files cannot be unlinked, a file of this age was left over by a process that died. No download lasts this long. */
const leftoverAgeMs = 3_600_000;

/**
 * `budgetBytes` limits what all downloads together hold in memory; bytes beyond it go to files in the folder, which other users may share:
 * only this user can read a file, and it is never opened by a name that existed before.
 */
export async function openSpool(folder: string, budgetBytes: number): Promise<Spool> {
  await guard(folder, () => removeLeftovers(folder));
  let usedBytes = 0;

  function openOne(): Spooled {
    const hash = createHash('sha256');
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    let heldBytes = 0;
    let file: SpoolFile | null = null;
    /** The first bytes of a file on disk: its content type is detected from them. */
    let head = Buffer.alloc(0);

    const keepHead = (chunk: Uint8Array) => {
      if (head.length < headBytes) head = Buffer.concat([head, chunk.subarray(0, headBytes - head.length)]);
    };
    const release = () => {
      usedBytes -= heldBytes;
      heldBytes = 0;
    };

    return {
      get sizeBytes() {
        return sizeBytes;
      },
      async write(chunk) {
        hash.update(chunk);
        sizeBytes += chunk.length;
        if (!file && sizeBytes <= inMemoryBytes && usedBytes + chunk.length <= budgetBytes) {
          chunks.push(chunk);
          heldBytes += chunk.length;
          usedBytes += chunk.length;
          return;
        }
        if (!file) {
          file = await guard(folder, () => openSpoolFile(folder));
          for (const held of chunks) {
            keepHead(held);
            await file.write(held);
          }
          chunks.length = 0;
          release();
        }
        keepHead(chunk);
        await file.write(chunk);
      },
      async finish() {
        await file?.flush();
        const facts = { sizeBytes, sha256: hash.digest('hex') };
        const bytes = file ? head : Buffer.concat(chunks);
        return { body: file ? { path: file.path } : bytes, facts, head: bytes.subarray(0, headBytes) };
      },
      async [Symbol.asyncDispose]() {
        release();
        chunks.length = 0;
        await file?.[Symbol.asyncDispose]();
      },
    };
  }

  return { open: openOne, folder };
}

interface SpoolFile extends AsyncDisposable {
  readonly path: string;
  write(chunk: Uint8Array): Promise<void>;
  flush(): Promise<void>;
}

/**
 * On Linux an unlinked file can still be opened again by its descriptor in /proc. Elsewhere the file keeps its name until it is disposed.
 * Chunks are copied into one reused buffer. Without it, chunks that survived a slow write reached the old generation and were collected
 * late: four files of 200 MB at once held 96 MB of them (measured).
 */
async function openSpoolFile(folder: string): Promise<SpoolFile> {
  const named = join(folder, `${prefix}${randomUUID()}`);
  const handle = await open(named, 'wx+', 0o600);
  const unnamed = `/proc/self/fd/${handle.fd}`;
  const canUnlink = existsSync(unnamed);
  if (canUnlink) await rm(named);
  const buffer = Buffer.allocUnsafeSlow(bufferBytes);
  let filled = 0;

  const flush = () =>
    guard(folder, async () => {
      for (let at = 0; at < filled; ) at += (await handle.write(buffer, at, filled - at)).bytesWritten;
      filled = 0;
    });

  return {
    path: canUnlink ? unnamed : named,
    async write(chunk) {
      for (let at = 0; at < chunk.length; ) {
        if (filled === bufferBytes) await flush();
        const end = Math.min(chunk.length, at + bufferBytes - filled);
        buffer.set(chunk.subarray(at, end), filled);
        filled += end - at;
        at = end;
      }
    },
    flush,
    async [Symbol.asyncDispose]() {
      await handle.close();
      if (!canUnlink) await rm(named, { force: true });
    },
  };
}

async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = name.startsWith(prefix) ? await lstat(path).catch(() => null) : null;
    // A file of another user stays.
    if (found?.isFile() && Date.now() - found.mtimeMs > leftoverAgeMs) await rm(path, { force: true }).catch(() => {});
  }
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

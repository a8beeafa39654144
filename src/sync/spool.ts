// Where the bytes of a download wait until they are stored: small ones in memory within a budget over all downloads, larger ones in a
// file that is unlinked as soon as it is open, so that nothing of a person stays on the disk when the process dies.
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlobBody, BlobFacts } from '../domain/blob.ts';
import { Trouble } from '../domain/trouble.ts';

/** Takes one download's bytes after the other. Disposing it frees the memory, or the file. */
export interface Spooled extends AsyncDisposable {
  write(chunk: Uint8Array): Promise<void>;
  /** What was written, once it is whole. */
  finish(): { readonly body: BlobBody; readonly facts: BlobFacts; readonly head: Uint8Array };
  readonly sizeBytes: number;
}

export interface Spool {
  /** One that is expected to be large goes to its file at once; the expectation may be wrong. */
  open(expectedBytes: number | null): Spooled;
  readonly folder: string;
}

const inMemoryBytes = 8 * 1024 * 1024;
const headBytes = 65_536;
/** A file that its process did not unlink at once, where that is not possible; no download lasts that long. */
const leftoverAgeMs = 3_600_000;

/** Prepares the folder. `budgetBytes` bounds what all downloads together hold in memory; what exceeds it goes to files. */
export async function openSpool(folder: string, budgetBytes: number): Promise<Spool> {
  await guard(() => mkdir(folder, { recursive: true, mode: 0o700 }));
  await guard(() => removeLeftovers(folder));
  let usedBytes = 0;

  function openOne(expectedBytes: number | null): Spooled {
    const inMemory = (expectedBytes ?? 0) <= inMemoryBytes;
    const hash = createHash('sha256');
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    let heldBytes = 0;
    let file: { handle: FileHandle; path: string; remove: () => Promise<void> } | null = null;

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
        if (inMemory && !file && sizeBytes <= inMemoryBytes && usedBytes + chunk.length <= budgetBytes) {
          chunks.push(chunk);
          heldBytes += chunk.length;
          usedBytes += chunk.length;
          return;
        }
        await guard(async () => {
          if (!file) {
            file = await openUnlinked(folder);
            for (const held of chunks) await writeWhole(file.handle, held);
            // The first piece stays for whoever looks at the type.
            chunks.length = Math.min(chunks.length, 1);
            release();
          }
          if (chunks.length === 0) chunks.push(chunk);
          await writeWhole(file.handle, chunk);
        });
      },
      finish() {
        const facts = { sizeBytes, sha256: hash.digest('hex') };
        const bytes = Buffer.concat(chunks);
        return { body: file ? { path: file.path } : bytes, facts, head: bytes.subarray(0, headBytes) };
      },
      async [Symbol.asyncDispose]() {
        release();
        chunks.length = 0;
        await file?.handle.close();
        await file?.remove();
      },
    };
  }

  return { open: openOne, folder };
}

/** On Linux a file without a name can still be opened again, by its number in /proc. Elsewhere the name stays until the end. */
async function openUnlinked(folder: string) {
  const named = join(folder, randomUUID());
  const handle = await open(named, 'wx+', 0o600);
  const path = `/proc/self/fd/${handle.fd}`;
  if (!existsSync(path)) return { handle, path: named, remove: () => rm(named, { force: true }) };
  await rm(named);
  return { handle, path, remove: async () => {} };
}

async function writeWhole(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await handle.write(chunk, at)).bytesWritten;
}

async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => null);
    if (found?.isFile() && Date.now() - found.mtimeMs > leftoverAgeMs) await rm(path, { force: true });
  }
}

async function guard<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    throw new Trouble('ours', `The spool folder cannot be used (${error.code}).`, { cause: error });
  }
}

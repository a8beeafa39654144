// Where the bytes of a download wait until they are stored: small ones in memory within a budget over all downloads, larger ones in a
// file that is unlinked as soon as it is open, so that nothing of a person stays on the disk when the process dies.
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlobBody, BlobFacts } from '../../domain/blob.ts';
import { SettingTrouble, Trouble } from '../../domain/trouble.ts';

/** Takes one download's bytes after the other. Disposing it frees the memory, or the file. */
export interface Spooled extends AsyncDisposable {
  write(chunk: Uint8Array): Promise<void>;
  /** What was written, once it is whole. */
  finish(): Promise<{ readonly body: BlobBody; readonly facts: BlobFacts; readonly head: Uint8Array }>;
  readonly sizeBytes: number;
}

export interface Spool {
  /** One that is expected to be large goes to its file at once; the expectation may be wrong. */
  open(expectedBytes: number | null): Spooled;
  readonly folder: string;
}

const inMemoryBytes = 8 * 1024 * 1024;
const headBytes = 65_536;
const bufferBytes = 512 * 1024;
/** A file that its process did not unlink at once, where that is not possible; no download lasts that long. */
const leftoverAgeMs = 3_600_000;

/** Prepares the folder. `budgetBytes` bounds what all downloads together hold in memory; what exceeds it goes to files. */
export async function openSpool(folder: string, budgetBytes: number): Promise<Spool> {
  await guard(folder, () => openFolder(folder));
  await guard(folder, () => removeLeftovers(folder));
  let usedBytes = 0;

  function openOne(expectedBytes: number | null): Spooled {
    const inMemory = (expectedBytes ?? 0) <= inMemoryBytes;
    const hash = createHash('sha256');
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    let heldBytes = 0;
    let file: SpoolFile | null = null;

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
        if (!file) {
          file = await guard(folder, () => openSpoolFile(folder));
          for (const held of chunks) await file.write(held);
          // The first piece stays: the type is detected from it.
          chunks.length = Math.min(chunks.length, 1);
          release();
        }
        if (chunks.length === 0) chunks.push(Buffer.from(chunk.subarray(0, headBytes)));
        await file.write(chunk);
      },
      async finish() {
        await file?.flush();
        const facts = { sizeBytes, sha256: hash.digest('hex') };
        const bytes = Buffer.concat(chunks);
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
 * On Linux a file without a name can still be opened again, by its number in /proc. Elsewhere the name stays until the end.
 * Chunks are copied into one buffer that is used again. Those that lived through a slow write grew old, and old ones are
 * collected late: four files of 200 MB at once held 96 MB of them (measured).
 */
async function openSpoolFile(folder: string): Promise<SpoolFile> {
  const named = join(folder, randomUUID());
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

/**
 * Makes the folder, or uses one that this user made. It lies where every user may write: another's folder could be read, and a link would
 * lead the removal of leftovers elsewhere.
 */
async function openFolder(folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const found = await lstat(folder);
  const uid = process.getuid?.();
  const wrong = found.isSymbolicLink()
    ? 'is a link'
    : !found.isDirectory()
      ? 'is not a folder'
      : uid !== undefined && found.uid !== uid
        ? 'belongs to another user'
        : (found.mode & 0o077) !== 0
          ? 'is open to other users'
          : null;
  if (wrong === null) return;
  const message = `The spool folder ${folder} ${wrong}: remove it, or set TMPDIR to a folder of your own.`;
  throw new SettingTrouble(message, undefined, 'storage');
}

async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await lstat(path).catch(() => null);
    if (found?.isFile() && Date.now() - found.mtimeMs > leftoverAgeMs) await rm(path, { force: true });
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

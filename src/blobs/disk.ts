// Stores blobs in a local folder. A blob appears under its key complete and synced to disk, or not at all: it is written to a temporary
// file, synced and renamed, then its folder is synced. Several processes may share the folder.
import { createHash, hash, randomUUID } from 'node:crypto';
import { type FileHandle, link, mkdir, open, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type BlobBody,
  type BlobCondition,
  type BlobFacts,
  type BlobFile,
  type BlobStore,
  identityName,
  isBlobKey,
  type ListedBlob,
  parseBlobFolder,
  parseBlobKey,
} from '../domain/blob.ts';
import { Trouble } from '../domain/trouble.ts';

/** Opening creates nothing; the first put or identity does. The first put and every delete remove temporary files that are an hour old. */
export async function openDiskBlobs(folder: string): Promise<BlobStore> {
  const root = resolve(folder);
  const aside = join(root, asideName);
  const toPath = (key: string) => join(root, parseBlobKey(key));
  /** What a put requires: the identity that was found, since the folder below a lost mount takes bytes too. Null before the first use. */
  let proof = (await guard('opened', () => stat(aside).then(() => aside, ignore('ENOENT')))) ?? null;
  /** A folder that is not mounted must not look like missing blobs (guardStore checks it as well), nor a delete in it like a success. */
  const requireFolder = async () => proof !== null && (await stat(aside));
  const inFolder = <T>(verb: string, work: () => Promise<T>) => guard(verb, () => requireFolder().then(work));

  let leftovers: Promise<void> | null = null;

  return {
    location: pathToFileURL(root).href,

    put: (key, body, facts, signal, beforeOver) =>
      guard('written', async () => {
        const path = toPath(key);
        await (proof === null ? makeFolder(aside) : stat(proof));
        proof ??= aside;
        leftovers ??= removeLeftovers(aside);
        await leftovers;
        // The process that renamed the blob may not have synced the folder. Unsynced, a power cut could leave a row without its blob.
        const condition = await verifyFile(path, facts, 'bytes', signal);
        if (condition === 'intact') {
          await syncFolder(dirname(path));
          return 'present';
        }
        if (condition === 'damaged') await beforeOver?.();
        await using fresh = await writeAside(aside, body, facts, signal);
        await makeFolder(dirname(path));
        await rename(fresh.path, path);
        await syncFolder(dirname(path));
        return 'stored';
      }),

    verify: (key, facts, proof, signal) => guard('read', () => verifyFile(toPath(key), facts, proof, signal)),

    async *get(key, signal) {
      await using file = await guard('read', () => openFile(toPath(key)));
      if (!file) {
        await guard('read', requireFolder);
        throw new Trouble('missing', 'This blob is not in the store.');
      }
      try {
        yield* file.createReadStream({ highWaterMark: chunkBytes, signal });
      } catch (error) {
        signal.throwIfAborted();
        throw toTrouble('read', error);
      }
    },

    delete: (key, signal) =>
      inFolder('deleted', async () => {
        const path = toPath(key);
        await removeLeftovers(aside);
        signal.throwIfAborted();
        const refusal = await guard('deleted', () => rm(path, { force: true })).then(() => null, onlyTrouble);
        if (refusal !== null) return { keptVersions: 0, refusal };
        // A deleted blob must stay deleted after a power cut.
        await syncFolder(dirname(path)).catch(ignore('ENOENT'));
        return { keptVersions: 0, refusal: null };
      }),

    loadDeletePolicy: async () => ({ versions: false, locks: false }),

    async *list(prefix, signal) {
      const below = join(root, parseBlobFolder(prefix));
      await guard('read', requireFolder);
      yield* listFiles(below, prefix, signal);
    },

    url: async (key) => pathToFileURL(toPath(key)).href,

    freeBytes: async () => (proof === null ? null : await loadFreeBytes(root)),

    loadText: (name) => inFolder('read', () => loadText(toPath(name))),

    // The rename does not compare: callers exclude each other (a lease), and the comparison finds one whose lease has ended.
    replaceText: (name, before, text, signal) =>
      inFolder('written', async () => {
        const path = toPath(name);
        await using fresh = await writeTextAside(aside, text, signal);
        if ((await loadText(path)) !== before) return false;
        await rename(fresh.path, path);
        await syncFolder(root);
        return true;
      }),

    loadIdentity: () =>
      inFolder('read', async () => {
        const { text, path } = await loadIdentity(root);
        if (text !== null) proof = path;
        return text;
      }),

    replaceIdentity: (before, identity, signal) =>
      inFolder('written', async () => {
        const { text, next } = await loadIdentity(root);
        if (text !== before) return false;
        await makeFolder(aside);
        await using fresh = await writeTextAside(aside, identity, signal);
        const isFirst = await nameOnce(fresh.path, next);
        await syncFolder(root);
        proof = next;
        return isFirst;
      }),

    async [Symbol.asyncDispose]() {},
  };
}

export async function loadFreeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder).catch((cause: NodeJS.ErrnoException) => {
    const what = `The free space of ${folder} could not be measured (${cause.code}).`;
    throw new Trouble('local', what, { at: 'storage', cause });
  });
  return bavail * bsize;
}

const asideName = '.aside';
const fileMode = 0o600;
/** Longer than any put takes, so an older temporary file belongs to a killed process. */
const leftoverAgeMs = 60 * 60 * 1000;
const chunkBytes = 256 * 1024;

/** Writes a temporary file. Disposing removes it, unless it was renamed. */
async function writeAside(aside: string, body: BlobBody, facts: BlobFacts, signal: AbortSignal) {
  const path = join(aside, randomUUID());
  const remove = () => rm(path, { force: true });
  try {
    await using file = await open(path, 'wx', fileMode);
    const hash = createHash('sha256');
    let sizeBytes = 0;
    for await (const chunk of body instanceof Uint8Array ? [body] : readInPlace(body)) {
      signal.throwIfAborted();
      hash.update(chunk);
      sizeBytes += chunk.length;
      await file.writeFile(chunk);
    }
    if (sizeBytes !== facts.sizeBytes || hash.digest('hex') !== facts.sha256) {
      throw new Trouble('mismatch', 'The bytes to store differ from those that were hashed.');
    }
    await file.datasync();
  } catch (error) {
    await remove();
    throw error;
  }
  return { path, [Symbol.asyncDispose]: remove };
}

async function writeTextAside(aside: string, text: string, signal: AbortSignal) {
  const body = Buffer.from(`${text}\n`);
  return writeAside(aside, body, { sizeBytes: body.length, sha256: hash('sha256', body) }, signal);
}

/**
 * Creates a folder and its missing parents, and syncs each parent, which has a new entry. Node's `recursive` option never returns for a
 * folder that cannot be created, as in /proc, and keeps the process from exiting.
 */
async function makeFolder(path: string): Promise<void> {
  if (await stat(path).catch(ignore('ENOENT'))) return;
  await makeFolder(dirname(path));
  // Another process may create it at the same time.
  await mkdir(path, { mode: 0o700 }).catch(ignore('EEXIST'));
  await syncFolder(dirname(path));
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}

async function verifyFile(
  path: string,
  facts: BlobFacts,
  proof: 'metadata' | 'bytes',
  signal: AbortSignal,
): Promise<BlobCondition> {
  await using file = await openFile(path);
  if (!file) return 'missing';
  const found = await file.stat();
  if (!found.isFile() || found.size !== facts.sizeBytes) return 'damaged';
  if (proof === 'metadata') return 'intact';
  const hash = createHash('sha256');
  const read = async (into: Uint8Array, at: number) => (await file.read(into, 0, into.length, at)).bytesRead;
  for await (const chunk of readInPlace({ read })) {
    signal.throwIfAborted();
    hash.update(chunk);
  }
  return hash.digest('hex') === facts.sha256 ? 'intact' : 'damaged';
}

async function openFile(path: string): Promise<FileHandle | undefined> {
  return open(path, 'r').catch(ignore('ENOENT', 'ENOTDIR'));
}

/** Reads into one buffer; a chunk is valid until the next one. New buffers would accumulate faster than they are garbage-collected. */
async function* readInPlace(file: BlobFile): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes);
  for (let at = 0, bytes = 0; ; at += bytes) {
    bytes = await file.read(buffer, at);
    if (bytes === 0) return;
    yield buffer.subarray(0, bytes);
  }
}

async function* listFiles(folder: string, prefix: string, signal: AbortSignal): AsyncGenerator<ListedBlob> {
  const found = await guard('read', () => readdir(folder, { withFileTypes: true }).catch(ignore('ENOENT', 'ENOTDIR')));
  // Only root reads lost+found, a name that no key has. Sorting folders with their slash gives the order of the keys below them.
  const names = (found ?? [])
    .filter((entry) => (entry.isDirectory() ? isBlobKey(entry.name) : entry.isFile() && !entry.name.startsWith('.')))
    .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    .sort((a, b) => (a < b ? -1 : 1));
  for (const name of names) {
    signal.throwIfAborted();
    const path = join(folder, name);
    const file = name.endsWith('/') ? null : await guard('read', () => stat(path).catch(ignore('ENOENT')));
    if (file === null) yield* listFiles(path, `${prefix}${name}`, signal);
    else if (file) yield { key: `${prefix}${name}`, sizeBytes: file.size };
  }
}

async function loadText(path: string): Promise<string | null> {
  const text = await readFile(path, 'utf8').catch(ignore('ENOENT'));
  return text?.trim() || null;
}

/**
 * The identity in force, its path and that of the next one. Each has a file that never changes: `.intake-store`, `.intake-store.1` and so on;
 * the highest number is in force. So of several processes that have read the same identity, one creates the next.
 */
async function loadIdentity(root: string) {
  const names = (await readdir(root).catch(ignore('ENOENT'))) ?? [];
  const toName = (number: number) => (number === 0 ? identityName : `${identityName}.${number}`);
  const numbers = names.map((name) => Number(name.slice(identityName.length + 1)));
  const isOne = (number: number, at: number) => Number.isSafeInteger(number) && names[at] === toName(number);
  const last = Math.max(-1, ...numbers.filter(isOne));
  const path = join(root, toName(Math.max(last, 0)));
  const next = join(root, toName(last + 1));
  if (last < 0) return { text: null, path, next };
  const text = (await readFile(path, 'utf8')).trim();
  const happened = `${path} is empty: it is being written. If that lasts, delete it.`;
  if (text === '') throw new Trouble('local', happened, { at: 'storage' });
  return { text, path, next };
}

/** Gives a file a second name; false if that name exists. Without hard links it is a copy, which is empty until it is written. */
async function nameOnce(path: string, name: string): Promise<boolean> {
  const copy = async (error: unknown) => {
    if (!isCode(error, 'EPERM', 'ENOTSUP', 'ENOSYS')) throw error;
    await using file = await open(name, 'wx', fileMode);
    await file.writeFile(await readFile(path));
    await file.datasync();
  };
  const named = link(path, name).catch(copy);
  return (await named.then(() => true, ignore('EEXIST'))) ?? false;
}

/** They hold bytes of people. One that cannot be removed keeps nothing else from being put or deleted. */
async function removeLeftovers(aside: string): Promise<void> {
  for (const name of await readdir(aside).catch(() => [])) {
    const path = join(aside, name);
    const found = await stat(path).catch(() => null);
    if (found && Date.now() - found.mtimeMs > leftoverAgeMs) await rm(path, { force: true }).catch(() => {});
  }
}

async function guard<T>(verb: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toTrouble(verb, error);
  }
}

function toTrouble(verb: string, error: unknown): unknown {
  if (!isSystemError(error)) return error;
  const full = isCode(error, 'ENOSPC', 'EDQUOT') ? ' The disk is full.' : '';
  const where = error.path === undefined ? '' : ` at ${error.path}`;
  const what = `The folder of BLOBS_URL could not be ${verb}${where} (${error.code}).${full}`;
  return new Trouble('local', what, { at: 'storage', cause: error });
}

function onlyTrouble(error: unknown): Trouble {
  if (error instanceof Trouble) return error;
  throw error;
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

function isCode(error: unknown, ...codes: string[]): boolean {
  return isSystemError(error) && codes.includes(error.code ?? '');
}

function ignore(...codes: string[]) {
  return (error: unknown): undefined => {
    if (!isCode(error, ...codes)) throw error;
  };
}

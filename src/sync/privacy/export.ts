// Writes all stored data of one person into a folder: export.json with every row, and the files beside it. The data goes nowhere else, only
// the user who runs the command can read the folder, and an incomplete export is removed.
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlobStore } from '../../domain/blob.ts';
import { SettingTrouble, Trouble } from '../../domain/trouble.ts';
import type { ExportedFile, PersonExport } from '../../store/privacy/export.ts';
import type { Store } from '../../store/store.ts';
import { isLost, readStored, type StoredBytesDeps } from '../stored-bytes.ts';
import { requireKey } from './erase.ts';

export interface ExportRequest {
  readonly advertiserId: bigint;
  readonly applicationId: bigint;
  /** Must not exist yet. */
  readonly folder: string;
  readonly by: string;
  readonly signal: AbortSignal;
}

export interface ExportSummary
  extends Pick<PersonExport, 'applicationIds' | 'leftOut' | 'prefills' | 'prefillsLeftOut'> {
  readonly folder: string;
  readonly files: number;
  /** Files whose bytes are missing from the blob store or differ from those that were stored. */
  readonly missing: number;
}

/** Writes the folder; null if there is no such application. */
export async function exportPerson(
  { store, blobs }: { readonly store: Pick<Store, 'blobs' | 'privacy'>; readonly blobs: BlobStore },
  request: ExportRequest,
): Promise<ExportSummary | null> {
  const { advertiserId, applicationId, folder, by } = request;
  await requireKey(store);
  const person = await store.privacy.loadExport(advertiserId, applicationId);
  if (person === null) return null;
  const { applicationIds, prefills } = person;
  const facts = { applications: applicationIds.length, files: person.files.length, prefills };
  await store.privacy.recordAudit({ advertiserId, action: 'export', applicationId, by, facts });
  await makeFolder(folder);
  try {
    return await fillFolder({ store, blobs }, person, request);
  } catch (error) {
    // This run has just created the folder, so it can be removed. An incomplete one would be useless and block the next try.
    await rm(folder, { recursive: true, force: true });
    if (!(error instanceof Error && 'syscall' in error && 'code' in error)) throw error;
    const happened = `${folder} could not be written (${error.code}) and was removed.`;
    throw new Trouble('local', happened, { cause: error });
  }
}

async function fillFolder(
  deps: StoredBytesDeps,
  person: PersonExport,
  { advertiserId, folder, signal }: ExportRequest,
): Promise<ExportSummary> {
  const { applicationIds, leftOut, prefills, prefillsLeftOut } = person;
  const files = [];
  for (const file of person.files) {
    const { of, kind, version, sha256 } = file;
    const path = join('files', of, toName(file));
    await mkdir(join(folder, 'files', of), { recursive: true, mode: 0o700 });
    const isThere = await copy(join(folder, path), readStored(deps, advertiserId, file, signal));
    files.push({ path: isThere ? path : null, of, kind, version, sha256 });
  }
  const head = JSON.stringify({ advertiser_id: String(advertiserId), exported_at: new Date(), files }, null, 2);
  await writeFile(join(folder, 'export.json'), `${head.slice(0, -2)},\n  "rows": ${person.rows}\n}\n`, { mode: 0o600 });
  const missing = files.filter(({ path }) => path === null).length;
  return { folder, applicationIds, leftOut, prefills, prefillsLeftOut, files: files.length - missing, missing };
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    const code = (error as { code?: string }).code ?? 'unknown';
    const why = code === 'EEXIST' ? 'already exists' : `cannot be created (${code})`;
    throw new SettingTrouble(`The folder ${folder} ${why}: name another one with --to.`, error);
  }
}

/** Longest part of a name in bytes. File systems allow 255 bytes, and kind and version come before this part. */
const longestName = 200;

/** The file name from the source, made safe: never a path, never hidden. Kind and version distinguish files of the same name. */
function toName({ kind, version, fileName }: ExportedFile): string {
  const safe = (text: string) => text.replace(/[^\p{L}\p{N}._-]+/gu, '_');
  // Drops a character that the cut has split.
  const end = Buffer.from(safe(fileName ?? 'file'))
    .subarray(-longestName)
    .toString()
    .replace(/^\ufffd+/, '');
  return `${safe(kind)}-${version}-${end}`;
}

/** False if the bytes are missing or differ from those that were stored. */
async function copy(path: string, chunks: AsyncIterable<Uint8Array>): Promise<boolean> {
  await using handle = await open(path, 'wx', 0o600);
  try {
    for await (const chunk of chunks) await handle.writeFile(chunk);
    return true;
  } catch (error) {
    if (!isLost(error)) throw error;
  }
  await rm(path);
  return false;
}

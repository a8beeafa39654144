// Writes what is held of one person into a folder: export.json with every row, and the files beside it. Nothing leaves by another way,
// only the user who runs it can read the folder, and what could not be written whole does not stay.
import { createHash } from 'node:crypto';
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlobStore } from '../../domain/blob.ts';
import { SettingTrouble, Trouble } from '../../domain/trouble.ts';
import type { ExportedFile, PersonExport } from '../../store/privacy/export.ts';
import type { Store } from '../../store/store.ts';

export interface ExportRequest {
  readonly advertiserId: bigint;
  readonly applicationId: bigint;
  /** Must not exist yet. */
  readonly folder: string;
  readonly by: string;
  readonly signal: AbortSignal;
}

export interface ExportSummary {
  readonly folder: string;
  readonly applicationIds: readonly bigint[];
  /** Applications of the same jobseeker account that carry another address, or none: they may be somebody else's. */
  readonly leftOut: number;
  readonly prefills: number;
  readonly files: number;
  /** Files whose bytes are not in the store, or not the ones that were stored. */
  readonly missing: number;
}

/** Writes the folder; null when there is no such application. */
export async function exportPerson(
  { store, blobs }: { readonly store: Pick<Store, 'privacy'>; readonly blobs: BlobStore },
  request: ExportRequest,
): Promise<ExportSummary | null> {
  const { advertiserId, applicationId, folder, by } = request;
  const person = await store.privacy.loadExport(advertiserId, applicationId);
  if (person === null) return null;
  const { applicationIds, prefills } = person;
  const facts = { applications: applicationIds.length, files: person.files.length, prefills };
  await store.privacy.recordAudit({ advertiserId, action: 'export', applicationId, by, facts });
  await makeFolder(folder);
  try {
    return await fillFolder(blobs, person, request);
  } catch (error) {
    // Ours alone, since it was just made: half of it would help nobody, and stand in the way of the next try.
    await rm(folder, { recursive: true, force: true });
    if (!(error instanceof Error && 'syscall' in error && 'code' in error)) throw error;
    throw new Trouble('local', `${folder} could not be written (${error.code}), and is removed again.`, {
      cause: error,
    });
  }
}

async function fillFolder(
  blobs: BlobStore,
  person: PersonExport,
  { advertiserId, folder, signal }: ExportRequest,
): Promise<ExportSummary> {
  const { applicationIds, leftOut, prefills } = person;
  const files = [];
  for (const file of person.files) {
    const path = join('files', file.of, toName(file));
    await mkdir(join(folder, 'files', file.of), { recursive: true, mode: 0o700 });
    const isThere = await copy(blobs, file, join(folder, path), signal);
    files.push({
      path: isThere ? path : null,
      of: file.of,
      kind: file.kind,
      version: file.version,
      sha256: file.sha256,
    });
  }
  const head = JSON.stringify({ advertiser_id: String(advertiserId), exported_at: new Date(), files }, null, 2);
  await writeFile(join(folder, 'export.json'), `${head.slice(0, -2)},\n  "rows": ${person.rows}\n}\n`, { mode: 0o600 });
  const missing = files.filter(({ path }) => path === null).length;
  return { folder, applicationIds, leftOut, prefills, files: files.length - missing, missing };
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    const code = (error as { code?: string }).code ?? 'unknown';
    const why = code === 'EEXIST' ? 'is there already' : `cannot be made (${code})`;
    throw new SettingTrouble(`The folder ${folder} ${why}: name another one with --to.`, error);
  }
}

/** File systems take names of 255 bytes; kind and version come before this. */
const longestName = 200;

/** The source's name of a file, as far as it is harmless: never a path, never hidden. Kind and version keep apart what has the same name. */
function toName({ kind, version, fileName }: ExportedFile): string {
  const safe = (text: string) => text.replace(/[^\p{L}\p{N}._-]+/gu, '_');
  // A letter that the cut goes through is left out whole.
  const end = Buffer.from(safe(fileName ?? 'file'))
    .subarray(-longestName)
    .toString()
    .replace(/^\ufffd+/, '');
  return `${safe(kind)}-${version}-${end}`;
}

/** False when the bytes are not there, or are others than those that were stored. */
async function copy(blobs: BlobStore, file: ExportedFile, path: string, signal: AbortSignal): Promise<boolean> {
  const hash = createHash('sha256');
  await using handle = await open(path, 'wx', 0o600);
  try {
    for await (const chunk of blobs.get(file.key, signal)) {
      hash.update(chunk);
      await handle.writeFile(chunk);
    }
    if (hash.digest('hex') === file.sha256) return true;
  } catch (error) {
    if (!(error instanceof Trouble) || error.kind !== 'missing') throw error;
  }
  await rm(path);
  return false;
}

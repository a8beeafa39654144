// Deletes what prefills leave behind: profiles that were not redeemed in time, and the resumes of lapsed and erased prefills. Workers do
// this; the process that serves the candidates deletes nothing.
import type { BlobStore } from '../domain/blob.ts';
import { toResumeKey } from '../domain/prefill.ts';
import type { Trouble } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';

/** Deletes prefills that were not redeemed in time, with their resumes. Opens the blob store only if there are resumes to delete. */
export async function lapsePrefills(
  { store, openBlobs }: { readonly store: Pick<Store, 'prefills'>; readonly openBlobs: () => Promise<BlobStore> },
  signal: AbortSignal,
): Promise<void> {
  await store.prefills.lapse();
  if ((await store.prefills.loadLeavingResumes(1)).length === 0) return;
  await using blobs = await openBlobs();
  const { refused } = await deleteLeavingResumes({ store, blobs }, signal);
  if (refused[0]) throw refused[0].trouble;
}

const deletedAtOnce = 500;

/** The result of `deleteLeavingResumes`. */
export interface LeftResumes {
  /** Object versions that the blob store keeps in spite of the delete. */
  readonly keptVersions: number;
  /** Resumes that the blob store refused to delete. */
  readonly refused: readonly { readonly advertiserId: bigint; readonly trouble: Trouble }[];
}

/** Deletes the resumes of lapsed and erased prefills. If the blob store refuses one, the others are still deleted. */
export async function deleteLeavingResumes(
  { store, blobs }: { readonly store: Pick<Store, 'prefills'>; readonly blobs: BlobStore },
  signal: AbortSignal,
): Promise<LeftResumes> {
  for (let keptVersions = 0; ; ) {
    const resumes = (await store.prefills.loadLeavingResumes(deletedAtOnce)).map((one) => ({
      ...one,
      key: toResumeKey(one.advertiserId, one.prefillId),
    }));
    if (resumes.length === 0) return { keptVersions, refused: [] };
    const deleted = await blobs.delete(
      resumes.map(({ key }) => key),
      signal,
    );
    keptVersions += deleted.keptVersions;
    const troubles = new Map(deleted.refused.map(({ key, trouble }) => [key, trouble]));
    await store.prefills.forgetResumes(resumes.filter(({ key }) => !troubles.has(key)));
    // Refused resumes are loaded again first. Stop if none of this batch was deleted, or if no others wait behind it.
    if (troubles.size > 0 && (troubles.size === resumes.length || resumes.length < deletedAtOnce)) {
      const refused = resumes.flatMap(({ advertiserId, key }) => {
        const trouble = troubles.get(key);
        return trouble === undefined ? [] : [{ advertiserId, trouble }];
      });
      return { keptVersions, refused };
    }
  }
}

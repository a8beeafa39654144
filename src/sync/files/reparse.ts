// Parses the stored screens again without requests to the source, so that an improved parser also applies to screens stored before.
import { hash } from 'node:crypto';
import { type BlobStore, toBlobKey } from '../../domain/blob.ts';
import { largestScreenBytes } from '../../domain/screen.ts';
import { isMissing } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import { type FetchDeps, readScreens } from './fetch.ts';

export interface ReparseDeps extends Pick<FetchDeps, 'parseScreens'> {
  readonly store: Pick<Store, 'blobs' | 'files'>;
  readonly blobs: BlobStore;
}

export interface ReparseRequest {
  readonly advertisers: readonly bigint[];
  /** Only screens that another parser version parsed, or that no version could parse. Null: all screens. */
  readonly parserVersion: number | null;
  readonly signal: AbortSignal;
}

const nothingRead = {
  read: 0,
  /** Screens that cannot be parsed; their bytes stay, without rows. */
  unreadable: 0,
  /** Screens whose object is not in the blob store, or damaged. The next verify reads them first. */
  missing: 0,
};

export async function reparse(deps: ReparseDeps, request: ReparseRequest): Promise<typeof nothingRead> {
  const { store, blobs } = deps;
  const counts = { ...nothingRead };
  for (const advertiserId of request.advertisers) {
    for await (const file of store.files.loadScreens(advertiserId, request.parserVersion)) {
      request.signal.throwIfAborted();
      // Its bytes are not read: no parser takes them.
      if (file.sizeBytes > largestScreenBytes) {
        counts.unreadable += 1;
        continue;
      }
      const chunks = await Array.fromAsync(blobs.get(toBlobKey(advertiserId, file.sha256), request.signal)).catch(
        (error: unknown) => {
          if (isMissing(error)) return null;
          throw error;
        },
      );
      const bytes = Buffer.concat(chunks ?? []);
      if (chunks === null || hash('sha256', bytes) !== file.sha256) {
        await store.blobs.markSuspect(advertiserId, file.sha256);
        counts.missing += 1;
        continue;
      }
      const { screens, note } = await readScreens(deps, bytes, bytes.length, file.contentType);
      if (await store.files.replaceParsedScreens(file, screens, note)) counts[screens ? 'read' : 'unreadable'] += 1;
    }
  }
  return counts;
}

// Parses the stored screens again without requests to the source, so that an improved parser also applies to screens stored before.
import type { BlobStore } from '../../domain/blob.ts';
import { largestScreenBytes } from '../../domain/screen.ts';
import type { Store } from '../../store/store.ts';
import { isLost, readStored } from '../stored-bytes.ts';
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
  const { store } = deps;
  const counts = { ...nothingRead };
  for (const advertiserId of request.advertisers) {
    for await (const file of store.files.loadScreens(advertiserId, request.parserVersion)) {
      request.signal.throwIfAborted();
      // Its bytes are not read: no parser takes them.
      if (file.sizeBytes > largestScreenBytes) {
        counts.unreadable += 1;
        continue;
      }
      const chunks = await Array.fromAsync(readStored(deps, advertiserId, file, request.signal)).catch(
        (error: unknown) => {
          if (isLost(error)) return null;
          throw error;
        },
      );
      if (chunks === null) {
        counts.missing += 1;
        continue;
      }
      const bytes = Buffer.concat(chunks);
      const { screens, note } = await readScreens(deps, bytes, bytes.length, file.contentType);
      if (await store.files.replaceParsedScreens(file, screens, note)) counts[screens ? 'read' : 'unreadable'] += 1;
    }
  }
  return counts;
}

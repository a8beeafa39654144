// Parses the stored screens again without requests to the source, so that an improved parser also applies to screens stored before.
import { largestScreenBytes } from '../../domain/application.ts';
import type { Store } from '../../store/store.ts';
import { isLost, readStored } from '../stored-bytes.ts';
import { type DownloadDeps, readScreens } from './download.ts';

export interface ReparseRequest {
  readonly advertisers: readonly bigint[];
  /** Only screens that another parser version parsed, or that no version could parse. Null: all screens. */
  readonly parserVersion: number | null;
  readonly signal: AbortSignal;
}

/** Unreadable screens keep their bytes, without rows. Those without an intact object are what the next verify reads first. */
export async function reparse(
  deps: { readonly store: Pick<Store, 'blobs' | 'files'> } & Pick<DownloadDeps, 'blobs' | 'parseScreens'>,
  request: ReparseRequest,
) {
  const { store } = deps;
  const counts = { read: 0, unreadable: 0, missing: 0 };
  for (const advertiserId of request.advertisers) {
    for await (const file of store.files.loadStoredScreens(advertiserId, request.parserVersion)) {
      request.signal.throwIfAborted();
      // Its bytes are not read: no parser takes them.
      if (file.sizeBytes > largestScreenBytes) {
        counts.unreadable += 1;
        continue;
      }
      try {
        const bytes = Buffer.concat(await Array.fromAsync(readStored(deps, advertiserId, file, request.signal)));
        const { screens, note } = await readScreens(deps, bytes, bytes.length, file.contentType);
        if (await store.files.replaceParsedScreens(file, screens, note)) counts[screens ? 'read' : 'unreadable'] += 1;
      } catch (error) {
        if (!isLost(error)) throw error;
        counts.missing += 1;
      }
    }
  }
  return counts;
}

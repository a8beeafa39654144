// Decides whether a failed put is the storage's fault or that of these bytes: it is the bytes if others were put since they last failed.
// Kept from one download run to the next.
import type { DownloadKey } from '../../store/files/download-queue.ts';

export interface Puts {
  /** The bytes of this download were put. */
  succeed(key: DownloadKey): void;
  /** They were not. True where those of others were, since these failed last. */
  fail(key: DownloadKey): boolean;
}

/** A long outage meets many files. Forgotten ones are judged from the beginning. */
const mostKept = 10_000;

export function createPuts(): Puts {
  let succeeded = 0;
  /** How many had succeeded when this one failed last. */
  const failures = new Map<string, number>();
  const toName = ({ advertiserId, applicationId, kind }: DownloadKey) => `${advertiserId} ${applicationId} ${kind}`;
  return {
    succeed(key) {
      succeeded += 1;
      failures.delete(toName(key));
    },
    fail(key) {
      const before = failures.get(toName(key));
      if (failures.size >= mostKept) failures.clear();
      failures.set(toName(key), succeeded);
      return before !== undefined && before < succeeded;
    },
  };
}

// Decides whether a failed put is caused by the storage or by these bytes. It is the bytes if other puts have succeeded since these bytes
// last failed. Carried over from one download run to the next.
import type { DownloadKey } from '../../store/files/download-queue.ts';

export type Puts = ReturnType<typeof createPuts>;

/** Most failures kept during a long outage. After that all are forgotten, and each download is judged afresh. */
const mostKept = 10_000;

export function createPuts() {
  let succeeded = 0;
  /** By download, the number of puts that had succeeded when it last failed. */
  const failures = new Map<string, number>();
  const toName = ({ advertiserId, applicationId, kind }: DownloadKey) => `${advertiserId} ${applicationId} ${kind}`;
  return {
    /** The bytes of this download were put. */
    succeed(key: DownloadKey): void {
      succeeded += 1;
      failures.delete(toName(key));
    },
    /** The put failed. True if other puts have succeeded since the last failure of this download. */
    fail(key: DownloadKey): boolean {
      const before = failures.get(toName(key));
      if (failures.size >= mostKept) failures.clear();
      failures.set(toName(key), succeeded);
      return before !== undefined && before < succeeded;
    },
  };
}

// An advertiser of whom there is nothing to report, for tests of the status and of what shows it.
import type { AdvertiserStatus } from '../../src/domain/status/advertiser-status.ts';

/** All is well, and everything happened at this moment. */
export function anAdvertiserStatus(at: Date, facts: Partial<AdvertiserStatus> = {}): AdvertiserStatus {
  return {
    ...{ name: 'north', advertiserId: 1n, halt: null, applications: 1, newestSubmittedAt: at, submittedAt: [] },
    ...{ cursor: { afterId: 1n, asOf: at }, readAt: at, lastSweep: null, coverage: null, openRanges: 0 },
    ...{ waiting: 0, due: 0, oldestDueAt: null, notThere: 0, suspects: 0, withheld: 0, attachments: {} },
    ...{ blobs: { count: 0, bytes: 0 }, damagedBlobs: 0, keptDeleted: 0, verifiedSince: null },
    ...{ unfinished: [], unreadable: [], unreadableScreens: 0, quarantined: 0, unkept: 0, volatile: [], keptOut: 0 },
    ...{ retentionDue: null, erasingSince: null, erasingTrouble: null, latenessMs: null },
    ...facts,
  };
}

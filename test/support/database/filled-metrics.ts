// Metrics of a worker for whom everything has happened once, so that every name is there.

import type { AdvertiserStatus } from '../../../src/domain/status/advertiser-status.ts';
import { toStatus } from '../../../src/domain/status/status.ts';
import { createMetrics } from '../../../src/web/admin/metrics.ts';

const at = new Date('2026-11-15T10:00:00Z');
const advertiser = anAdvertiserStatus(at, {
  applications: 7,
  waiting: 3,
  due: 2,
  oldestDueAt: at,
  verifiedSince: new Date(at.getTime() - 86_400_000),
  attachments: { stored: 5, infected: 1 },
  coverage: {
    ...{ certificate: 'assumed', risk: 'harmless', reason: 'a reason', completeThrough: at },
    asOf: new Date(at.getTime() - 90_000),
  },
  latenessMs: 1_500,
});

export function createFilled() {
  const metrics = createMetrics();
  metrics.observePass({ pass: 'poll', outcome: 'done', durationMs: 1_200 });
  metrics.observePass({ pass: 'downloads', outcome: 'done', durationMs: 9, files: { stored: 4, failed: 1 } });
  metrics.observePass({ pass: 'poll', outcome: 'failed', durationMs: 5, kind: 'refused' });
  for (let n = 0; n < 6; n++) metrics.observeDelivered();
  const status = toStatus(at, [advertiser], {
    staleAfterMs: 1_200_000,
    proofLimitMs: 173_400_000,
    verifyWithinMs: 30 * 86_400_000,
    extract: {
      location: 's3://analytics/intake',
      publishedAt: new Date(at.getTime() - 3_600_000),
      withinMs: 172_800_000,
    },
    webhooks: [
      {
        ...{ advertiser: 'north', name: 'ats', position: 3n, behind: 2, behindSince: new Date(at.getTime() - 40_000) },
        ...{ failures: 1, failingSince: at, nextAt: at, stop: null, lastAnswer: 'it answered 500', answeredAt: at },
      },
    ],
  });
  return { metrics, status, advertiser, at };
}

/** An advertiser of whom there is nothing to report: all is well, and everything happened at this moment. */
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

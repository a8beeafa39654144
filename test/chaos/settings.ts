// The settings of every process of a plan, except the addresses. Leases are short and sweeps are frequent, so that half a minute is enough.

import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StrictS3 } from '../support/stores/strict-s3.ts';

export const leaseMs = 2_000;

/** Scales a time limit by the load per core. The promised times hold on a machine whose load does not exceed its cores. */
export function withSlack(ms: number): number {
  return ms * Math.max(1, (loadavg()[0] ?? 1) / availableParallelism());
}

/** Whether the condition becomes true in time, with slack. A condition that throws is not true yet: the database may be down. */
export async function within(ms: number, holds: () => Promise<boolean>): Promise<boolean> {
  for (const untilAt = performance.now() + withSlack(ms); performance.now() < untilAt; await sleep(100)) {
    if (await holds().catch(() => false)) return true;
  }
  return false;
}

export function toSettings(
  { format, rate }: { readonly format: 'json' | 'xml'; readonly rate: string },
  { settings: { S3_ENDPOINT: _, ...storage } }: StrictS3,
): Record<string, string> {
  return {
    SOURCE_FORMAT: format,
    SOURCE_RATE: rate,
    SOURCE_TIMEOUT: '3s',
    SYNC_SCHEDULE: '*/9 * * * * *',
    RECHECK_SCHEDULE: '*/2 * * * * *',
    LEASE: `${leaseMs}ms`,
    // More than the 1 MiB that a download may hold in memory, so that a file can reach the spool's disk.
    ATTACHMENT_MAX_BYTES: '10MB',
    ...storage,
    PRIVACY_KEY: 'a privacy key for tests, long enough',
    ADMIN_PORT: '0',
    LOG_LEVEL: 'trace',
    LOG_FORMAT: 'json',
  };
}

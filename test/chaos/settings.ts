// What every process of a plan is set to, beside the addresses: short leases and frequent sweeps, so that half a minute meets everything.

import { availableParallelism, loadavg } from 'node:os';
import type { StrictS3 } from '../support/strict-s3.ts';

export const leaseMs = 2_000;

/** The promised times hold on a machine that has a core for every process; elsewhere everything takes as much longer. */
export function withSlack(ms: number): number {
  return ms * Math.max(1, (loadavg()[0] ?? 1) / availableParallelism());
}

/** The settings, for a plan and a store. */
export function toSettings(
  { format, rate }: { readonly format: 'json' | 'xml'; readonly rate: string },
  { bucket, region, credentials }: StrictS3,
): Record<string, string> {
  return {
    SOURCE_FORMAT: format,
    SOURCE_RATE: rate,
    SOURCE_TIMEOUT: '3s',
    SYNC_SCHEDULE: '*/9 * * * * *',
    RECHECK_SCHEDULE: '*/2 * * * * *',
    LEASE: `${leaseMs}ms`,
    // More than memory takes, so that a file can reach the spool.
    ATTACHMENT_MAX_BYTES: '10MB',
    BLOBS_URL: `s3://${bucket}/intake`,
    S3_REGION: region,
    S3_FORCE_PATH_STYLE: 'true',
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    PRIVACY_KEY: 'a privacy key for tests, long enough',
    ADMIN_PORT: '0',
    LOG_LEVEL: 'trace',
    LOG_FORMAT: 'json',
  };
}

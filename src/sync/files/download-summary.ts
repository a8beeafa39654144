// The counts of a download run, while it runs and at its end.
import type { Trouble } from '../../domain/trouble.ts';

/** Files by what became of them. */
export interface DownloadTotals {
  readonly stored: number;
  readonly bytes: number;
  /** Stored without a request, because Hash said so. */
  readonly linked: number;
  readonly infected: number;
  /** Ended as missing, rejected or given_up. */
  readonly missing: number;
  readonly rejected: number;
  readonly givenUp: number;
  readonly failures: number;
}

export interface DownloadSummary extends DownloadTotals {
  /** Still in the queue, and how many of those because the source does not have the file yet. */
  readonly waiting: number;
  readonly notThere: number;
  /** Accounts that were halted on the way, with their trouble. */
  readonly halted: readonly { readonly name: string; readonly trouble: Trouble }[];
}

/** The beginning. */
export const nothingDownloaded: DownloadTotals = {
  stored: 0,
  bytes: 0,
  linked: 0,
  infected: 0,
  missing: 0,
  rejected: 0,
  givenUp: 0,
  failures: 0,
};

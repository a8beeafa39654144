// The counts of a download run, while it runs and at its end.
import type { Trouble } from '../../domain/trouble.ts';

/** Files by result. */
export interface DownloadTotals {
  readonly stored: number;
  readonly bytes: number;
  /** Stored without a request: Hash and Size equal those of a stored file. */
  readonly linked: number;
  readonly infected: number;
  readonly missing: number;
  readonly rejected: number;
  readonly givenUp: number;
  readonly failures: number;
}

export interface DownloadSummary extends DownloadTotals {
  /** Downloads still in the queue. */
  readonly waiting: number;
  /** Those of them whose file the source does not have yet. */
  readonly notThere: number;
  /** Accounts that this run halted, with the reason. */
  readonly halted: readonly { readonly name: string; readonly trouble: Trouble }[];
}

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

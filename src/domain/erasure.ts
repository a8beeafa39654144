// An erasure: whom it concerns, what it deleted, and the receipt. The only fact about a person is the id or address in the request.
import { toAccountId, toBareAddress } from './person.ts';

export type Sought =
  | { readonly by: 'application'; readonly applicationId: bigint }
  | { readonly by: 'jobseeker'; readonly jobSeekerId: string }
  | { readonly by: 'address'; readonly email: string }
  /** Everything stored before this moment: at most `limit` each of applications, quarantined elements and prefills. */
  | { readonly by: 'retention'; readonly before: Date; readonly limit: number };

/** The request as normalized text, the same however it was typed. The keyed hash of this text finds a request again. */
export function toSoughtText(sought: Sought): string {
  if (sought.by === 'address') return `address:${toBareAddress(sought.email).toLowerCase()}`;
  if (sought.by === 'jobseeker') return `jobseeker:${toAccountId(sought.jobSeekerId) ?? ''}`;
  return sought.by === 'retention' ? `retention:${sought.before.toISOString()}` : `application:${sought.applicationId}`;
}

export interface ErasureCounts {
  readonly applications: number;
  readonly quarantined: number;
  readonly prefills: number;
  /** Distinct files that were stored for them. */
  readonly files: number;
  /** Of these, files that stay because other applications refer to them as well. */
  readonly shared: number;
  /** Versions of deleted files that the blob store keeps, because it does not let Intake delete them or does not list them. */
  readonly keptVersions: number;
}

export interface ErasedCounts extends ErasureCounts {
  /** Files of extracts that were deleted because they held them; not in receipts of earlier releases. */
  readonly extractFiles?: readonly string[];
  /** Targets that this database extracted people's columns to, and that now belong to another one: nothing was erased there. */
  readonly extractsOfOthers?: readonly string[];
}

/** The current state of an erasure; a receipt once `closedAt` is set. */
export interface ErasureJob {
  readonly advertiserId: bigint;
  readonly jobId: string;
  readonly soughtBy: Sought['by'];
  readonly requestedAt: Date;
  readonly requestedBy: string;
  /** Null once closed. */
  readonly applicationIds: readonly bigint[] | null;
  readonly hashes: readonly string[] | null;
  readonly counts: ErasedCounts;
  readonly closedAt: Date | null;
}

/** Retention that would erase so much at once waits for an operator: the setting is mistyped, the clock has jumped, or it is the first run. */
export function isBraked({ due, stored }: { readonly due: number; readonly stored: number }): boolean {
  return due > Math.max(100, stored / 10);
}

export function isNothing(counts: ErasureCounts): boolean {
  return counts.applications + counts.quarantined + counts.prefills === 0;
}

// The words of erasing: whom it is about, what went, and the receipt. And the brake of retention, which is a pure rule.
// Knows no table and no clock; nothing here can hold a fact about a person except what a person was asked for by.
import { toAccountId, toBareAddress } from './person.ts';

/** Whom an erasure is about, in the words of the request. */
export type Sought =
  | { readonly by: 'application'; readonly applicationId: bigint }
  | { readonly by: 'jobseeker'; readonly jobSeekerId: string }
  | { readonly by: 'address'; readonly email: string }
  /** At most `limit` applications, elements in quarantine and prefills each that are here since before this moment. */
  | { readonly by: 'retention'; readonly before: Date; readonly limit: number };

/** The id, the address or the time that was asked for. */
export function toSoughtValue(sought: Sought): bigint | string | Date {
  if (sought.by === 'application') return sought.applicationId;
  if (sought.by === 'jobseeker') return sought.jobSeekerId;
  return sought.by === 'address' ? sought.email : sought.before;
}

/** What was sought in one text, the same however it was typed: a request is found again by the keyed hash of it. */
export function toSoughtText(sought: Sought): string {
  if (sought.by === 'address') return `address:${toBareAddress(sought.email).toLowerCase()}`;
  if (sought.by === 'jobseeker') return `jobseeker:${toAccountId(sought.jobSeekerId) ?? ''}`;
  const value = toSoughtValue(sought);
  return `${sought.by}:${value instanceof Date ? value.toISOString() : value}`;
}

/** Rows and files by kind. */
export interface ErasureCounts {
  readonly applications: number;
  readonly attachments: number;
  /** Earlier versions of attachments. */
  readonly versions: number;
  readonly screens: number;
  readonly answers: number;
  readonly downloads: number;
  readonly quarantined: number;
  readonly prefills: number;
  /** Different files that were held for them. */
  readonly files: number;
  /** Of these, files that others hold as well and that stay for them. */
  readonly shared: number;
  /** Versions that the blob store keeps of deleted files, since it does not let us delete them. */
  readonly keptVersions: number;
}

/** An erasure as it stands; a receipt once `closedAt` is set. */
export interface ErasureJob {
  readonly advertiserId: bigint;
  readonly jobId: string;
  readonly soughtBy: Sought['by'];
  readonly requestedAt: Date;
  readonly requestedBy: string;
  readonly step: 'bytes' | 'waiting' | 'closed';
  /** How long until everything that ran at the time has lapsed; 0 or less when it has. */
  readonly quietInMs: number;
  /** Null once closed. */
  readonly applicationIds: readonly bigint[] | null;
  readonly hashes: readonly string[] | null;
  readonly counts: ErasureCounts;
  readonly checks: number;
  readonly closedAt: Date | null;
}

/** Retention lets through this many in one run, or this share of what is held; beyond that a person has to say so. */
const retentionBrake = { applications: 100, share: 0.1 };

/** True when so many at once do not come about by the days passing: a setting mistyped, a clock that jumped, a first run. */
export function isBraked({ due, held }: { readonly due: number; readonly held: number }): boolean {
  return due > Math.max(retentionBrake.applications, retentionBrake.share * held);
}

/** Nobody and nothing. */
export function isNothing(counts: ErasureCounts): boolean {
  return counts.applications + counts.quarantined + counts.prefills === 0;
}

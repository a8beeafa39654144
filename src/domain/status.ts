// Status is one value, rendered by the CLI, the page, the metrics and the probes. This file holds its shape and the rules that turn
// facts into problems; it loads nothing and knows no clock.

import { toUnusualSilence } from './silence.ts';

/** What is known of one advertiser, as the database shows it at one moment. */
export interface AdvertiserStatus {
  readonly name: string;
  /** Null until the first answer. */
  readonly advertiserId: bigint | null;
  readonly halt: { readonly kind: 'refused' | 'mismatch'; readonly reason: string; readonly since: Date } | null;
  readonly applications: number;
  readonly newestSubmittedAt: Date | null;
  readonly cursor: { readonly afterId: bigint; readonly asOf: Date } | null;
  /** Downloads in the queue. */
  readonly waiting: number;
  /** Of these, files that the source does not have yet. */
  readonly notThere: number;
  /** Claims that lapsed: files during whose download a process ended. */
  readonly suspects: number;
  /** Attachments by state. */
  readonly attachments: Readonly<Record<string, number>>;
  /** Distinct contents held, and their bytes. */
  readonly blobs: { readonly count: number; readonly bytes: number };
  /** Screens that are stored and cannot be read. */
  readonly unreadableScreens: number;
  /** Blobs that verify found damaged and that were not fetched again yet. */
  readonly damagedBlobs: number;
  readonly quarantined: number;
  readonly lastSweep: SweepStatus | null;
  /** Readings that stopped before their end and go on by themselves. */
  readonly unfinished: readonly { readonly purpose: string; readonly startedAt: Date; readonly reason: string }[];
  /** What all readings together vouch for. */
  readonly coverage: CoverageStatus | null;
  /** Ranges that are open: never read, or left as gaps by a reading that ended. */
  readonly openRanges: number;
  /** Ids whose application alone is larger than an answer may be. */
  readonly unreadable: readonly bigint[];
  /** How late applications were met by live polls, at most, in milliseconds; null when none was. */
  readonly latenessMs: number | null;
  /** When the newest few hundred applications were submitted, in milliseconds since the epoch. */
  readonly submittedAt: readonly number[];
}

export interface SweepStatus {
  readonly purpose: string;
  readonly state: string;
  readonly certificate: 'proven' | 'assumed' | 'unproven' | null;
  readonly reason: string | null;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  readonly requests: number;
  readonly added: number;
  readonly changed: number;
  readonly openGaps: number;
}

/** The weakest certificate over all ids, and the oldest of its readings. */
export interface CoverageStatus {
  readonly certificate: 'proven' | 'assumed' | 'unproven';
  readonly reason: string;
  readonly asOf: Date;
  /** Null while nothing is complete. */
  readonly completeThrough: Date | null;
}

/** Something a person should look at, and what to run. */
export interface Problem {
  readonly advertiser: string;
  readonly what: string;
  readonly command: string;
}

export interface Status {
  readonly at: Date;
  /** One sentence: is all well? */
  readonly headline: string;
  readonly problems: readonly Problem[];
  readonly advertisers: readonly AdvertiserStatus[];
}

/** Puts facts and the problems that follow from them into one value. */
export function toStatus(at: Date, advertisers: readonly AdvertiserStatus[]): Status {
  const problems = advertisers.flatMap((advertiser) => toProblems(advertiser, at));
  return { at, headline: toHeadline(advertisers, problems), problems, advertisers };
}

function toProblems(a: AdvertiserStatus, now: Date): Problem[] {
  const problems: Problem[] = [];
  const add = (what: string, command: string) => problems.push({ advertiser: a.name, what, command });
  if (a.halt?.kind === 'mismatch') add(`Halted: ${a.halt.reason}`, `intake unhalt --advertiser ${a.name}`);
  if (a.halt?.kind === 'refused') add(`Halted: ${a.halt.reason} It is tried again every few minutes.`, 'intake doctor');
  if (a.cursor === null && a.halt === null) add('Nothing was read yet.', 'intake sync');
  if (a.coverage?.certificate === 'unproven') {
    add(`Nothing is proven: ${a.coverage.reason}.`, 'intake doctor');
  }
  if (a.lastSweep?.certificate === 'unproven' && a.coverage?.certificate !== 'unproven') {
    add(`The last reading proves nothing: ${a.lastSweep.reason}.`, 'intake sync --recheck');
  }
  if (a.cursor !== null && a.openRanges > 0) {
    add(
      `${a.openRanges} ${a.openRanges === 1 ? 'range of ids is' : 'ranges of ids are'} still open.`,
      'intake backfill --gaps',
    );
  }
  for (const id of a.unreadable) {
    add(`Application ${id} is not stored: alone it is larger than an answer may be.`, 'intake backfill --gaps');
  }
  const silence = toUnusualSilence(a.submittedAt, now.getTime());
  if (silence) {
    const days = (ms: number) => `${Math.floor(ms / 86_400_000)} days`;
    add(
      `No application for ${days(silence.silentForMs)}, where the longest pause was ${days(silence.longestUsualMs)}: look at the source.`,
      'intake sync --recheck',
    );
  }
  if (a.quarantined > 0) {
    add(`${a.quarantined} elements of the list have no usable id and wait in quarantine.`, 'intake quarantine list');
  }
  if (a.unreadableScreens > 0) {
    add(`${a.unreadableScreens} screens are stored and cannot be read.`, 'intake reparse');
  }
  if (a.damagedBlobs > 0) add(`${a.damagedBlobs} stored files are damaged or gone.`, 'intake sync');
  for (const state of ['given_up', 'rejected'] as const) {
    const count = a.attachments[state] ?? 0;
    if (count > 0) add(`${count} files are ${state.replace('_', ' ')}.`, `intake retry --state ${state}`);
  }
  return problems;
}

function toHeadline(advertisers: readonly AdvertiserStatus[], problems: readonly Problem[]): string {
  const total = advertisers.reduce((sum, a) => sum + a.applications, 0);
  const held = `${total} ${total === 1 ? 'application' : 'applications'} of ${advertisers.length} ${advertisers.length === 1 ? 'advertiser' : 'advertisers'}`;
  if (advertisers.length === 0) return 'No advertiser has been read yet.';
  if (problems.length === 0) return `All is well: ${held} stored.`;
  return `${problems.length === 1 ? 'One problem needs' : `${problems.length} problems need`} a look; ${held} stored.`;
}

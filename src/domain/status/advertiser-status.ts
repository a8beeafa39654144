// What is known about an advertiser, and the problems that follow from it.

import { type Conclusion, tooManyAbsent } from '../coverage/certificate.ts';
import { formatCount, formatMoment, formatSpan } from '../format.ts';
import { toUnusualSilence } from './silence.ts';

export interface AdvertiserFacts {
  readonly name: string;
  /** Null until the first answer. */
  readonly advertiserId: bigint | null;
  readonly newestSubmittedAt: Date | null;
  /** When the last poll reached the end of the list; null before the first one. */
  readonly readAt: Date | null;
  /** Queued downloads that could be fetched now, and since when the oldest of them could. */
  readonly due: number;
  readonly oldestDueAt: Date | null;
  /** Blobs that verify found damaged and that have not been fetched again yet. */
  readonly damagedBlobs: number;
  /** Infected files that are deleted, and of which the blob store keeps versions that it does not let Intake delete. */
  readonly keptInfected: number;
  /** The same, of other deleted files. */
  readonly keptDeleted: number;
  /** Every stored byte has been verified at or after this time; storing counts. Null while nothing is stored. */
  readonly verifiedSince: Date | null;
  readonly quarantined: number;
  /** The most elements of one page that were not kept, because the quarantine is full. */
  readonly unkept: number;
  /** How often an application, an element or a prefill of an erased person was kept out. */
  readonly keptOut: number;
  /** Records due for RETENTION that its limit holds back; null when none. */
  readonly retentionDue: number | null;
  /** When the oldest unfinished erasure was requested; null when all are finished. */
  readonly erasingSince: Date | null;
  /** Why the files of an erasure cannot be deleted; null where they can. */
  readonly erasingTrouble: string | null;
  /** Id ranges that are open: never read, or left as gaps by a sweep that ended. */
  readonly openRanges: number;
  /** The greatest delay in milliseconds at which a poll found an application that the source showed late; null when there was none. */
  readonly latenessMs: number | null;
}

export interface AdvertiserStatus extends AdvertiserFacts {
  readonly halt: { readonly kind: 'refused' | 'mismatch'; readonly reason: string; readonly since: Date } | null;
  readonly applications: number;
  readonly cursor: { readonly afterId: bigint; readonly asOf: Date } | null;
  readonly waiting: number;
  /** Queued downloads of files that the source does not have yet. */
  readonly notThere: number;
  /** Queued downloads whose claim has expired: a process ended while it fetched them. */
  readonly suspects: number;
  readonly attachments: Readonly<Record<string, number>>;
  /** Rejected attachments that wait for a virus flag that can be read. */
  readonly withheld: number;
  readonly blobs: { readonly count: number; readonly bytes: number };
  readonly unreadableScreens: number;
  /** Members that differ in every answer and therefore are no change. At most 20 are listed. */
  readonly volatile: readonly string[];
  readonly lastSweep: SweepStatus | null;
  /** Sweeps that were interrupted and will continue automatically. */
  readonly unfinished: readonly { readonly purpose: string; readonly startedAt: Date; readonly reason: string }[];
  readonly coverage: CoverageStatus | null;
  /** Ids for which the source fails while it serves others, and that no operator has accepted. */
  readonly unreadable: readonly UnreadableId[];
  /** Submission times in milliseconds since the epoch: the sample that silence.ts needs. */
  readonly submittedAt: readonly number[];
}

export interface SweepFacts {
  readonly purpose: string;
  readonly state: string;
  readonly certificate: Conclusion['certificate'] | null;
  readonly risk: Conclusion['risk'] | null;
  readonly reason: string | null;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  readonly requests: number;
  readonly added: number;
  readonly changed: number;
}

export interface SweepStatus extends SweepFacts {
  readonly openGaps: number;
}

/** A sweep's result in a word or two, its severity, and the reason. */
export interface SweepResult {
  readonly word: string;
  readonly mood: 'good' | 'plain' | 'fair' | 'bad';
  readonly note: string | null;
}

const sweepNames: Readonly<Record<string, string>> = { live: 'poll', witness: 'cross-check' };

export function toSweepName({ purpose }: Pick<SweepFacts, 'purpose'>): string {
  return sweepNames[purpose] ?? purpose;
}

/** A poll finds new applications and proves nothing, so its result is "up to date". Certificates are for rechecks and backfills. */
export function toSweepResult({ purpose, state, certificate, risk, reason }: SweepFacts): SweepResult {
  if (certificate === null) return { word: state, mood: 'plain', note: reason };
  const isPoll = purpose === 'live';
  if (certificate === 'unproven') return { word: isPoll ? 'incomplete' : certificate, mood: 'bad', note: reason };
  if (risk === 'doubt') return { word: isPoll ? 'in doubt' : `${certificate}, in doubt`, mood: 'fair', note: reason };
  return isPoll ? { word: 'up to date', mood: 'good', note: null } : { word: certificate, mood: 'good', note: reason };
}

export interface UnreadableId {
  readonly id: bigint;
  readonly reason: string;
  readonly since: Date;
  readonly tries: number;
}

export interface CoverageStatus extends Conclusion {
  /** When the oldest part of it was proven: the age of the proof counts from here. */
  readonly asOf: Date;
  readonly completeThrough: Date | null;
}

export interface Problem {
  /** Null where it concerns all advertisers. */
  readonly advertiser: string | null;
  readonly what: string;
  readonly command: string;
  /** Polls or downloads have stopped, or completeness is not proven: applications may be delayed or missing. Other problems can wait. */
  readonly urgent: boolean;
}

export interface ProofLimit {
  readonly ms: number;
  /** False: scheduled rechecks are off, and only an operator starts one. */
  readonly isScheduled: boolean;
}

/** What the facts are held against; null is no limit. */
export interface AdvertiserLimits {
  readonly staleAfterMs: number | null;
  readonly proofLimit: ProofLimit | null;
  readonly verifyWithinMs: number | null;
  /** Its reading waits for a dependency, which is a problem of its own. */
  readonly isWaiting: boolean;
}

const overdueMs = 3_600_000;

/** An erasure that is open for longer than this is a problem: with a worker running, it finishes within minutes. */
const erasingMs = 3_600_000;

export function toAdvertiserProblems(a: AdvertiserStatus, now: Date, limits: AdvertiserLimits): Problem[] {
  const { staleAfterMs, verifyWithinMs, isWaiting } = limits;
  const problems: Problem[] = [];
  const add = (what: string, command: string, urgent = false) =>
    problems.push({ advertiser: a.name, what, command, urgent });
  const since = (at: Date) => now.getTime() - at.getTime();
  if (a.halt?.kind === 'mismatch') add(`Halted: ${a.halt.reason}`, `intake unhalt --advertiser ${a.name}`, true);
  if (a.halt?.kind === 'refused') {
    add(`Halted: ${a.halt.reason} It is tried again every few minutes.`, 'intake doctor', true);
  }
  if (a.readAt === null && a.halt === null && !isWaiting) {
    const isBegun = a.lastSweep?.state === 'running';
    add(isBegun ? 'The first sweep has not finished.' : 'Nothing has been read yet.', 'intake sync', true);
  }
  if (a.readAt !== null && a.halt === null && !isWaiting && staleAfterMs !== null && since(a.readAt) > staleAfterMs) {
    add(`Nothing has been read for ${formatSpan(since(a.readAt))}: is a worker running?`, 'intake doctor', true);
  }
  if (a.oldestDueAt !== null && a.halt === null && since(a.oldestDueAt) > overdueMs) {
    add(
      `${formatCount(a.due, 'file')} could be fetched, the oldest for ${formatSpan(since(a.oldestDueAt))}.`,
      'intake sync',
      true,
    );
  }
  for (const { id, reason, since, tries } of a.unreadable) {
    add(
      `Id ${id} could not be read since ${since.toISOString()} (${tries} tries): ${reason.replace(/\.$/, '')}.`,
      `intake accept-unreadable ${id}`,
    );
  }
  const silence = toUnusualSilence(a.submittedAt, now.getTime());
  if (silence) {
    add(
      `No application for ${formatSpan(silence.silentForMs)}, where the longest pause was ${formatSpan(silence.longestUsualMs)}: look at the source.`,
      'intake sync --recheck',
    );
  }
  if (a.quarantined > 0) {
    const wait = a.quarantined === 1 ? 'has no usable id and waits' : 'have no usable id and wait';
    add(`${formatCount(a.quarantined, 'element')} of the list ${wait} in quarantine.`, 'intake quarantine list');
  }
  if (a.unkept > 0) {
    add(
      `The quarantine is full; at least ${formatCount(a.unkept, 'element')} of the list could not be kept: ask the source why they have no id.`,
      'intake quarantine list',
      true,
    );
  }
  if (a.retentionDue !== null) {
    add(
      `RETENTION would erase ${formatCount(a.retentionDue, 'record')} at once; nothing was erased.`,
      `intake erase --retention --dry-run --advertiser ${a.name}`,
    );
  }
  if (a.erasingSince !== null && a.erasingTrouble !== null) {
    const when = formatMoment(a.erasingSince.getTime());
    add(`An erasure of ${when} is not complete, its files are not deleted: ${a.erasingTrouble}`, 'intake doctor');
  } else if (a.erasingSince !== null && since(a.erasingSince) > erasingMs) {
    add(
      `An erasure has been unfinished for ${formatSpan(since(a.erasingSince))}: is a worker running?`,
      'intake doctor',
    );
  }
  if (a.unreadableScreens > 0) {
    const screens = formatCount(a.unreadableScreens, 'screen is', 'screens are');
    add(`${screens} stored and cannot be read.`, 'intake reparse');
  }
  if (a.damagedBlobs > 0) {
    const [which, have] =
      a.damagedBlobs === 1
        ? ['One stored file was', 'has']
        : [`${formatCount(a.damagedBlobs, 'stored file')} were`, 'have'];
    add(
      `${which} found damaged or gone and ${have} not been fetched again yet; files that were given up need intake retry first.`,
      'intake sync',
    );
  }
  for (const files of [
    a.keptInfected > 0 && formatCount(a.keptInfected, 'infected file is', 'infected files are'),
    a.keptDeleted > 0 && formatCount(a.keptDeleted, 'file is', 'files are'),
  ]) {
    const kept = `${files} deleted, but the storage keeps versions and does not let Intake delete them.`;
    if (files) add(kept, 'intake doctor');
  }
  if (a.withheld > 0) {
    const files = formatCount(a.withheld, 'file is', 'files are');
    add(`${files} not fetched until the virus flag (HasVirus) can be read: ask the source.`, 'intake sync --recheck');
  }
  for (const state of ['given_up', 'rejected'] as const) {
    const count = (a.attachments[state] ?? 0) - (state === 'rejected' ? a.withheld : 0);
    const files = formatCount(count, 'file is', 'files are');
    if (count > 0) add(`${files} ${state.replace('_', ' ')}.`, `intake retry --state ${state}`);
  }
  problems.push(...toCoverageProblems(a, now, limits.proofLimit));
  // Otherwise the user who opens a damaged file would be the first to notice.
  const unreadMs = a.verifiedSince === null ? 0 : since(a.verifiedSince);
  if (verifyWithinMs !== null && unreadMs > verifyWithinMs) {
    add(
      `Stored bytes have not been read again for ${formatSpan(unreadMs)}, the limit is ${formatSpan(verifyWithinMs)} (VERIFY_WITHIN).`,
      `intake verify --full --advertiser ${a.name}`,
    );
  }
  return problems;
}

/** The most serious problem with an account's completeness. None for an account that was never read: it already has a problem. */
function toCoverageProblems(a: AdvertiserStatus, now: Date, limit: ProofLimit | null): Problem[] {
  const problem = (what: string, command: string, urgent: boolean): Problem[] => [
    { advertiser: a.name, what, command, urgent },
  ];
  const { coverage, lastSweep, openRanges } = a;
  if (a.readAt === null) return [];
  if (coverage === null && lastSweep?.state === 'running') {
    return problem('The first sweep has not finished; nothing is proven yet.', 'intake status --watch', false);
  }
  if (coverage === null || coverage.certificate === 'unproven') {
    const open = openRanges > 0 ? ` (${formatCount(openRanges, 'range')} of ids open)` : '';
    const reason = coverage?.reason ?? 'nothing was read to its end yet';
    const command = reason === tooManyAbsent ? 'intake accept-deletions' : 'intake backfill --gaps';
    return problem(`Completeness is not proven: ${reason}${open}.`, command, true);
  }
  const ageMs = now.getTime() - coverage.asOf.getTime();
  if (limit !== null && a.halt === null && ageMs > limit.ms) {
    const why = limit.isScheduled ? 'no recheck has completed since' : 'rechecks are off (RECHECK_SCHEDULE)';
    return problem(
      `The last proof is ${formatSpan(ageMs)} old, the limit is ${formatSpan(limit.ms)}: ${why}.`,
      'intake sync --recheck',
      true,
    );
  }
  if (coverage.risk === 'doubt') {
    return problem(`Completeness is in doubt: ${coverage.reason}.`, 'intake sync --recheck', false);
  }
  // Dates cannot prove completeness, so a backfill by date always ends in doubt. That says nothing about the account.
  if (lastSweep?.certificate === 'unproven' || (lastSweep?.purpose === 'live' && lastSweep.risk === 'doubt')) {
    return problem(`The last sweep is in doubt: ${lastSweep.reason}.`, 'intake sync --recheck', false);
  }
  return [];
}

// What is known about an advertiser, and the problems that follow from it.

import type { AttachmentState } from '../application.ts';
import { type Conclusion, tooManyAbsent } from '../coverage/certificate.ts';
import { formatCount, formatMoment, formatSpan } from '../format.ts';

/** The facts that one statement gives as they are. */
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
  /** Deleted files of which the blob store keeps versions that it does not let Intake delete. */
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
  /** When the oldest unfinished erasure was requested, and why the files of one cannot be deleted; null when there is none. */
  readonly erasingSince: Date | null;
  readonly erasingTrouble: string | null;
  /** Id ranges that are open: never read, or left as gaps by a sweep that ended. */
  readonly openRanges: number;
  /** The greatest delay at which a poll found an application that the source showed late; null when there was none. */
  readonly latenessMs: number | null;
  /** Members that differ in every answer and therefore are no change. At most 20 are listed. */
  readonly volatile: readonly string[];
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
  readonly attachments: Readonly<Partial<Record<AttachmentState, number>>>;
  /** Rejected attachments that wait for a virus flag that can be read. */
  readonly withheld: number;
  readonly blobs: { readonly count: number; readonly bytes: number };
  readonly unreadableScreens: number;
  readonly lastSweep: SweepFacts | null;
  /** Sweeps that were interrupted and will continue automatically. */
  readonly unfinished: readonly { readonly purpose: string; readonly startedAt: Date; readonly reason: string }[];
  readonly coverage: CoverageStatus | null;
  /** Submission times in milliseconds since the epoch: the sample that toUnusualSilence needs. */
  readonly submittedAt: readonly number[];
  /** Ids for which the source fails while it serves others, and that no operator has accepted. */
  readonly unreadable: readonly {
    readonly id: bigint;
    readonly reason: string;
    readonly since: Date;
    readonly tries: number;
  }[];
}

export interface CoverageStatus extends Conclusion {
  /** When the oldest part of it was proven: the age of the proof counts from here. */
  readonly asOf: Date;
  readonly completeThrough: Date | null;
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

export const toSweepName = ({ purpose }: Pick<SweepFacts, 'purpose'>) => (purpose === 'live' ? 'poll' : purpose);

export interface SweepResult {
  readonly word: string;
  readonly mood: 'good' | 'plain' | 'fair' | 'bad';
  readonly note: string | null;
}

/** A poll finds new applications and proves nothing, so its result is "up to date". Certificates are for rechecks and backfills. */
export function toSweepResult({ purpose, state, certificate, risk, reason }: SweepFacts): SweepResult {
  if (certificate === null) return { word: state, mood: 'plain', note: reason };
  const isPoll = purpose === 'live';
  if (certificate === 'unproven') return { word: isPoll ? 'incomplete' : certificate, mood: 'bad', note: reason };
  if (risk === 'doubt') return { word: isPoll ? 'in doubt' : `${certificate}, in doubt`, mood: 'fair', note: reason };
  return isPoll ? { word: 'up to date', mood: 'good', note: null } : { word: certificate, mood: 'good', note: reason };
}

/** The last day, hour by hour, and the recent sweeps, of all advertisers. It is computed from existing rows and names no person. */
export interface History {
  /** The last 24 hours of UTC, the empty ones too; the last one is still running. */
  readonly hours: readonly Hour[];
  /** Newest first, a few of them: rechecks and backfills, and polls that left a doubt. */
  readonly recentSweeps: readonly (SweepFacts & { readonly advertiser: string })[];
}

export interface Hour {
  readonly startAt: Date;
  /** Applications submitted in this hour, by the source's clock. */
  readonly applications: number;
  /** After this time 95 % of them were stored, without those submitted before Intake knew their advertiser; null when none is left. */
  readonly delayMs: number | null;
}

export interface Problem {
  /** Null where it concerns all advertisers. */
  readonly advertiser: string | null;
  readonly what: string;
  readonly command: string;
  /** Polls or downloads have stopped, or completeness is not proven: applications may be delayed or missing. Other problems can wait. */
  readonly urgent: boolean;
}

/** What the facts are held against; null is no limit, also where nothing runs by schedule. */
export interface Limits {
  /** Polls must have reached the end of the list within this time. */
  readonly staleAfterMs: number | null;
  /** Every id must have been read again within this time. */
  readonly proofLimitMs: number | null;
  /** Every stored byte must have been read again within this time. */
  readonly verifyWithinMs: number | null;
}

/** A download that is due, or an erasure that is open, for longer is a problem: with a worker running, it takes minutes. */
const overdueMs = 3_600_000;

/** `isWaiting`: reading waits for a dependency, which is a problem of its own. */
export function toAdvertiserProblems(a: AdvertiserStatus, now: Date, limits: Limits, isWaiting: boolean): Problem[] {
  const problems: Problem[] = [];
  const add = (what: string, command: string, urgent = false) =>
    problems.push({ advertiser: a.name, what, command, urgent });
  const { halt, readAt, oldestDueAt, erasingSince, lastSweep } = a;
  const since = (at: Date | null) => (at === null ? 0 : now.getTime() - at.getTime());
  const isOver = (at: Date | null, limitMs: number | null) => limitMs !== null && since(at) > limitMs;
  const isRead = halt === null && !isWaiting;
  if (halt?.kind === 'mismatch') add(`Halted: ${halt.reason}`, `intake unhalt --advertiser ${a.name}`, true);
  if (halt?.kind === 'refused')
    add(`Halted: ${halt.reason} It is tried again every few minutes.`, 'intake doctor', true);
  if (isRead && readAt === null) {
    const isBegun = lastSweep?.state === 'running';
    add(isBegun ? 'The first sweep has not finished.' : 'Nothing has been read yet.', 'intake sync', true);
  }
  if (isRead && isOver(readAt, limits.staleAfterMs))
    add(`Nothing has been read for ${formatSpan(since(readAt))}: is a worker running?`, 'intake doctor', true);
  if (halt === null && isOver(oldestDueAt, overdueMs)) {
    const oldest = formatSpan(since(oldestDueAt));
    add(`${formatCount(a.due, 'file')} could be fetched, the oldest for ${oldest}.`, 'intake sync', true);
  }
  for (const { id, reason, since: from, tries } of a.unreadable) {
    const what = `Id ${id} could not be read since ${from.toISOString()} (${tries} tries)`;
    add(`${what}: ${reason.replace(/\.$/, '')}.`, `intake accept-unreadable ${id}`);
  }
  const silence = toUnusualSilence(a.submittedAt, now.getTime());
  if (silence) {
    const [silent, usual] = [silence.silentForMs, silence.longestUsualMs].map((ms) => formatSpan(ms));
    const what = `No application for ${silent}, where the longest pause was ${usual}: look at the source.`;
    add(what, 'intake sync --recheck');
  }
  if (a.unkept > 0) {
    const elements = formatCount(a.unkept, 'element');
    const what = `The quarantine is full; at least ${elements} of the list could not be kept: ask the source why they have no id.`;
    add(what, 'intake quarantine list', true);
  }
  if (a.retentionDue !== null) {
    const what = `RETENTION would erase ${formatCount(a.retentionDue, 'record')} at once; nothing was erased.`;
    add(what, `intake erase --retention --dry-run --advertiser ${a.name}`);
  }
  if (erasingSince !== null && a.erasingTrouble !== null) {
    const when = formatMoment(erasingSince.getTime());
    add(`An erasure of ${when} is not complete, its files are not deleted: ${a.erasingTrouble}`, 'intake doctor');
  } else if (isOver(erasingSince, overdueMs)) {
    const span = formatSpan(since(erasingSince));
    add(`An erasure has been unfinished for ${span}: is a worker running?`, 'intake doctor');
  }
  const addCount = (count: number, thing: string, what: string, command: string) =>
    count > 0 && add(`${formatCount(count, `${thing} is`, `${thing}s are`)} ${what}.`, command);
  const damaged = 'damaged or gone and not fetched again yet; files that were given up need intake retry first';
  const kept = 'deleted, but the storage keeps versions that Intake may not delete: infected, erased or unused ones';
  const withheld = 'not fetched until the virus flag (HasVirus) can be read: ask the source';
  addCount(a.quarantined, 'element', 'in quarantine, because the list names no usable id', 'intake quarantine list');
  addCount(a.unreadableScreens, 'screen', 'stored and cannot be read', 'intake reparse');
  addCount(a.damagedBlobs, 'file', damaged, 'intake sync');
  addCount(a.keptDeleted, 'file', kept, 'intake doctor');
  addCount(a.withheld, 'file', withheld, 'intake sync --recheck');
  addCount(a.attachments.given_up ?? 0, 'file', 'given up', 'intake retry --state given_up');
  addCount((a.attachments.rejected ?? 0) - a.withheld, 'file', 'rejected', 'intake retry --state rejected');
  const doubt = findCoverageProblem(a, now, limits.proofLimitMs);
  if (doubt !== null) add(...doubt);
  // Otherwise the user who opens a damaged file would be the first to notice.
  if (limits.verifyWithinMs !== null && isOver(a.verifiedSince, limits.verifyWithinMs)) {
    const [age, limit] = [since(a.verifiedSince), limits.verifyWithinMs].map((ms) => formatSpan(ms));
    const what = `Stored bytes have not been read again for ${age}, the limit is ${limit} (VERIFY_WITHIN).`;
    add(what, `intake verify --full --advertiser ${a.name}`);
  }
  return problems;
}

/** The most serious problem with an account's completeness. None for an account that was never read: it already has a problem. */
function findCoverageProblem(
  { halt, readAt, coverage, lastSweep, openRanges }: AdvertiserStatus,
  now: Date,
  limitMs: number | null,
): [what: string, command: string, urgent?: boolean] | null {
  if (readAt === null) return null;
  if (coverage === null && lastSweep?.state === 'running')
    return ['The first sweep has not finished; nothing is proven yet.', 'intake status --watch'];
  if (coverage === null || coverage.certificate === 'unproven') {
    const open = openRanges > 0 ? ` (${formatCount(openRanges, 'range')} of ids open)` : '';
    const reason = coverage?.reason ?? 'nothing was read to its end yet';
    const command = reason === tooManyAbsent ? 'intake accept-deletions' : 'intake backfill --gaps';
    return [`Completeness is not proven: ${reason}${open}.`, command, true];
  }
  const ageMs = now.getTime() - coverage.asOf.getTime();
  if (limitMs !== null && halt === null && ageMs > limitMs) {
    const what = `The last proof is ${formatSpan(ageMs)} old, the limit is ${formatSpan(limitMs)}`;
    return [`${what}: no recheck has completed since; is RECHECK_SCHEDULE off?`, 'intake sync --recheck', true];
  }
  if (coverage.risk === 'doubt') return [`Completeness is in doubt: ${coverage.reason}.`, 'intake sync --recheck'];
  // Dates cannot prove completeness, so a backfill by date always ends in doubt. That says nothing about the account.
  const isPollInDoubt = lastSweep?.purpose === 'live' && lastSweep.risk === 'doubt';
  if (lastSweep !== null && (lastSweep.certificate === 'unproven' || isPollInDoubt))
    return [`The last sweep is in doubt: ${lastSweep.reason}.`, 'intake sync --recheck'];
  return null;
}

// An account that unexpectedly stops receiving applications: a filter that hides its newest ones would look the same. Its arrival times are
// compared with its own history.

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** The newest arrivals within a year, so far apart that the sample of a busy account does not cover a few days without a weekend. */
export const arrivalSample = { apartMs: 12 * hourMs, count: 200, reachMs: 365 * dayMs } as const;

/** With fewer arrivals or a shorter history, an ordinary weekend would look like a fault. */
const fewestArrivals = 20;
const shortestHistoryMs = 14 * dayMs;
/** Longer than Easter: from the evening before Good Friday to the morning after Easter Monday it is four and a half days. */
const shortestSilenceMs = 5 * dayMs;

/** The silence since the last arrival if it is at least five days and more than twice as long as any before it; otherwise null. */
export function toUnusualSilence(arrivedAt: readonly number[], nowAt: number) {
  const times = arrivedAt.filter((at) => at <= nowAt).sort((a, b) => a - b);
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined || times.length < fewestArrivals) return null;
  if (last - first < shortestHistoryMs) return null;
  const longestUsualMs = Math.max(...times.slice(1).map((at, nth) => spanWithoutChristmas(times[nth] as number, at)));
  const countedMs = spanWithoutChristmas(last, nowAt);
  if (countedMs < shortestSilenceMs || countedMs <= 2 * longestUsualMs) return null;
  return { silentForMs: nowAt - last, longestUsualMs };
}

/** Milliseconds between two moments, not counting 20 December to 6 January. */
function spanWithoutChristmas(from: number, to: number): number {
  let ms = to - from;
  for (let year = new Date(from).getUTCFullYear() - 1; year <= new Date(to).getUTCFullYear(); year++) {
    const [start, end] = [Date.UTC(year, 11, 20), Date.UTC(year + 1, 0, 7)];
    ms -= Math.max(0, Math.min(to, end) - Math.max(from, start));
  }
  return ms;
}

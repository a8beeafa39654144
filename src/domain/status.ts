// Status is one value, rendered by the CLI, the page, the metrics and the probes. This file holds its shape and the rules that turn
// facts into problems; it loads nothing and knows no clock.

import type { CertificateLevel, Risk } from './coverage/certificate.ts';
import { formatCount, formatSpan } from './format.ts';
import { describeSchema, type Schema } from './schema.ts';
import { toUnusualSilence } from './silence.ts';
import type { Dependency } from './trouble.ts';
import { undeleted, type Wait } from './wait.ts';

/** What is known of one advertiser, as the database shows it at one moment. */
export interface AdvertiserStatus {
  readonly name: string;
  /** Null until the first answer. */
  readonly advertiserId: bigint | null;
  readonly halt: { readonly kind: 'refused' | 'mismatch'; readonly reason: string; readonly since: Date } | null;
  readonly applications: number;
  readonly newestSubmittedAt: Date | null;
  readonly cursor: { readonly afterId: bigint; readonly asOf: Date } | null;
  /** When what is new was last read to its end; null before the first time. */
  readonly readAt: Date | null;
  /** Downloads in the queue. */
  readonly waiting: number;
  /** Of these, how many could be fetched now, and since when the oldest could. */
  readonly due: number;
  readonly oldestDueAt: Date | null;
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
  /** Every stored byte was read, or stored and proven, since then; null while nothing is stored. */
  readonly verifiedSince: Date | null;
  readonly quarantined: number;
  /** Records that RETENTION would erase at once and that its brake holds back; null when none. */
  readonly retentionDue: number | null;
  /** Since when the oldest erasure waits for its receipt; null when none does. */
  readonly erasingSince: Date | null;
  /** What keeps the files of an erasure from being deleted; null where nothing does. */
  readonly erasingTrouble: string | null;
  readonly lastSweep: SweepStatus | null;
  /** Sweeps that stopped before their end and go on by themselves. */
  readonly unfinished: readonly { readonly purpose: string; readonly startedAt: Date; readonly reason: string }[];
  /** What all sweeps together vouch for. */
  readonly coverage: CoverageStatus | null;
  /** Ranges that are open: never read, or left as gaps by a sweep that ended. */
  readonly openRanges: number;
  /** Ids whose application alone is larger than an answer may be. */
  readonly unreadable: readonly bigint[];
  /** How late applications were met by live polls, at most, in milliseconds; null when none was. */
  readonly latenessMs: number | null;
  /** When applications were submitted, in milliseconds since the epoch: the sample of silence.ts. */
  readonly submittedAt: readonly number[];
}

/** What a sweep did, and what it was worth. */
export interface SweepFacts {
  readonly purpose: string;
  readonly state: string;
  readonly certificate: CertificateLevel | null;
  readonly risk: Risk | null;
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

/** A sweep's result in a word or two, how much it matters, and why it is so. */
export interface SweepResult {
  readonly word: string;
  readonly mood: 'good' | 'plain' | 'fair' | 'bad';
  readonly note: string | null;
}

const sweepNames: Readonly<Record<string, string>> = { live: 'poll', witness: 'cross-check' };

export function toSweepName({ purpose }: Pick<SweepFacts, 'purpose'>): string {
  return sweepNames[purpose] ?? purpose;
}

/** A poll brings what is new and proves nothing, so its result is "up to date"; certificates belong to rechecks and backfills. */
export function toSweepResult({ purpose, state, certificate, risk, reason }: SweepFacts): SweepResult {
  if (certificate === null) return { word: state, mood: 'plain', note: reason };
  const isPoll = purpose === 'live';
  if (certificate === 'unproven') return { word: isPoll ? 'incomplete' : certificate, mood: 'bad', note: reason };
  if (risk === 'doubt') return { word: isPoll ? 'in doubt' : `${certificate}, in doubt`, mood: 'fair', note: reason };
  return isPoll ? { word: 'up to date', mood: 'good', note: null } : { word: certificate, mood: 'good', note: reason };
}

/** What all sweeps together say of an account. */
export interface AccountVerdict {
  readonly certificate: CertificateLevel;
  readonly risk: Risk;
  readonly reason: string;
}

/** The same with the last hash of each sweep behind it, as SWEEP:HASH. */
export interface ProvenVerdict extends AccountVerdict {
  readonly evidence: readonly string[];
}

/** The weakest certificate over all ids. */
export interface CoverageStatus extends AccountVerdict {
  /** When the oldest part of it was proven: the age of the proof counts from here. */
  readonly asOf: Date;
  /** Null while nothing is complete. */
  readonly completeThrough: Date | null;
}

/** Something a person should look at, and what to run. */
export interface Problem {
  /** Null where it concerns all of them. */
  readonly advertiser: string | null;
  readonly what: string;
  readonly command: string;
  /** Reading or fetching has stopped, or completeness is not proven: people may be waiting or missing. Other problems can wait. */
  readonly urgent: boolean;
}

export interface Status {
  readonly at: Date;
  /** One sentence: is all well? */
  readonly headline: string;
  /** What is new must have been read within this time; null where nothing reads by schedule. */
  readonly staleAfterMs: number | null;
  /** Every id must have been read again within this time; null where nobody gave a limit. */
  readonly proofLimitMs: number | null;
  /** Every stored byte must have been read again within this time; null where nobody gave a limit. */
  readonly verifyWithinMs: number | null;
  readonly problems: readonly Problem[];
  /** What workers wait for now. */
  readonly waits: readonly Wait[];
  readonly advertisers: readonly AdvertiserStatus[];
}

/** Downloads that could be fetched and were not for this long are a problem. */
const overdueMs = 3_600_000;

/** An erasure is at its end within minutes, wherever a worker runs. */
const erasingMs = 3_600_000;

/** How old a proof may be. */
export interface ProofLimit {
  readonly ms: number;
  /** False: rechecks are off, and only a person starts one. */
  readonly isScheduled: boolean;
}

/** What concerns all advertisers. */
export interface CommonFacts {
  readonly schema: Schema;
  readonly waits: readonly Wait[];
  readonly proofLimit: ProofLimit;
  readonly verifyWithinMs: number;
}

/** Puts facts and the problems that follow from them into one value, urgent problems first. */
export function toStatus(
  at: Date,
  advertisers: readonly AdvertiserStatus[],
  staleAfterMs: number | null,
  { schema, waits = [], proofLimit, verifyWithinMs }: Partial<CommonFacts> = {},
): Status {
  const problems = [
    ...(schema === undefined ? [] : toSchemaProblems(schema)),
    ...toWaitProblems(waits, at),
    ...advertisers.flatMap((advertiser) => [
      ...toProblems(advertiser, at, staleAfterMs, isAwaited(advertiser, waits)),
      ...toCoverageProblems(advertiser, at, proofLimit ?? null),
      ...toVerifyProblems(advertiser, at, verifyWithinMs ?? null),
    ]),
  ].sort((a, b) => Number(b.urgent) - Number(a.urgent));
  return {
    at,
    headline: toHeadline(advertisers, problems),
    staleAfterMs,
    proofLimitMs: proofLimit?.ms ?? null,
    verifyWithinMs: verifyWithinMs ?? null,
    problems,
    waits,
    advertisers,
  };
}

function toSchemaProblems(schema: Schema): Problem[] {
  if (schema.state === 'current') return [];
  const what = `The schema is ${describeSchema(schema)}.`;
  const command = schema.state === 'ahead' ? 'intake --version' : 'intake migrate';
  // The workers of the version that migrated it work on: nobody waits.
  return [{ advertiser: null, what, command, urgent: false }];
}

/** A wait is told at once, and is urgent when it has lasted for this long: a restart of a server is no emergency. */
const urgentWaitMs = 60_000;

const waitWords: Record<Dependency, string> = {
  source: 'Reading has been waiting for the source',
  database: 'Work has been waiting for the database',
  storage: 'Downloads have been waiting for the storage',
};

/** Workers that met the same are one problem, an account's own where it alone waits. */
function toWaitProblems(waits: readonly Wait[], now: Date): Problem[] {
  const alike = Map.groupBy(waits, ({ dependency, reason }) => `${dependency} ${reason}`);
  return [...alike.values()].map((same) => {
    const [{ dependency, reason }] = same as [Wait, ...Wait[]];
    const since = Math.min(...same.map((wait) => wait.since.getTime()));
    const named = new Set(same.flatMap(({ advertisers }) => advertisers));
    const isAll = same.some(({ advertisers }) => advertisers.length === 0);
    const [only] = named;
    return {
      advertiser: !isAll && named.size === 1 && only !== undefined ? only : null,
      what: `${reason.startsWith(undeleted) ? 'Deletion has been waiting for the storage' : waitWords[dependency]} since ${toMoment(since)}${!isAll && named.size > 1 ? ` (${named.size} advertisers)` : ''}: ${reason}`,
      command: 'intake doctor',
      urgent: now.getTime() - since >= urgentWaitMs,
    };
  });
}

/** A worker runs and says why it does not read this advertiser. */
function isAwaited({ name }: AdvertiserStatus, waits: readonly Wait[]): boolean {
  return waits.some(
    ({ dependency, advertisers }) =>
      dependency !== 'storage' && (advertisers.length === 0 || advertisers.includes(name)),
  );
}

function toMoment(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** The status while the database is unavailable. */
export function toUnknownStatus(at: Date, since: Date, reason: string): Status {
  const what = `The database has been unreachable since ${toMoment(since.getTime())}: ${reason}`;
  const problem = { advertiser: null, what, command: 'intake doctor', urgent: true };
  const headline = `The database has been unreachable since ${toMoment(since.getTime())}.`;
  const limits = { staleAfterMs: null, proofLimitMs: null, verifyWithinMs: null };
  return { at, headline, ...limits, problems: [problem], waits: [], advertisers: [] };
}

/** True while something is read and nothing urgent stands against it. */
export function isHealthy({ advertisers, problems }: Status): boolean {
  return advertisers.length > 0 && !problems.some((problem) => problem.urgent);
}

/** True where what is new was read to its end within the time that the schedule allows. */
export function isUpToDate({ halt, readAt }: AdvertiserStatus, { at, staleAfterMs }: Status): boolean {
  if (halt !== null || readAt === null) return false;
  return staleAfterMs === null || at.getTime() - readAt.getTime() <= staleAfterMs;
}

/** The status for programs: ids as text, and without the arrival times, which only serve to find a silence. */
export function toReport(status: Status): object {
  const advertisers = status.advertisers.map(({ submittedAt: _, ...one }) => ({
    ...one,
    advertiserId: one.advertiserId?.toString() ?? null,
    cursor: one.cursor && { ...one.cursor, afterId: one.cursor.afterId.toString() },
  }));
  return { ...status, healthy: isHealthy(status), advertisers };
}

function toProblems(a: AdvertiserStatus, now: Date, staleAfterMs: number | null, isWaiting: boolean): Problem[] {
  const problems: Problem[] = [];
  const add = (what: string, command: string, urgent = false) =>
    problems.push({ advertiser: a.name, what, command, urgent });
  const since = (at: Date) => now.getTime() - at.getTime();
  if (a.halt?.kind === 'mismatch') add(`Halted: ${a.halt.reason}`, `intake unhalt --advertiser ${a.name}`, true);
  if (a.halt?.kind === 'refused') {
    add(`Halted: ${a.halt.reason} It is tried again every few minutes.`, 'intake doctor', true);
  }
  if (a.readAt === null && a.halt === null && !isWaiting) add('Nothing has been read yet.', 'intake sync', true);
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
  for (const id of a.unreadable) {
    add(`Application ${id} is not stored: alone it is larger than an answer may be.`, 'intake backfill --gaps');
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
  if (a.retentionDue !== null) {
    add(
      `RETENTION would erase ${formatCount(a.retentionDue, 'record')} at once; nothing was erased.`,
      `intake erase --retention --dry-run --advertiser ${a.name}`,
    );
  }
  if (a.erasingSince !== null && a.erasingTrouble !== null) {
    const when = toMoment(a.erasingSince.getTime());
    add(`An erasure of ${when} is not complete, its files are not deleted: ${a.erasingTrouble}`, 'intake doctor');
  } else if (a.erasingSince !== null && since(a.erasingSince) > erasingMs) {
    add(
      `An erasure has been unfinished for ${formatSpan(since(a.erasingSince))}: is a worker running?`,
      'intake doctor',
    );
  }
  if (a.unreadableScreens > 0) {
    const stand = a.unreadableScreens === 1 ? 'is' : 'are';
    add(`${formatCount(a.unreadableScreens, 'screen')} ${stand} stored and cannot be read.`, 'intake reparse');
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
  for (const state of ['given_up', 'rejected'] as const) {
    const count = a.attachments[state] ?? 0;
    if (count > 0)
      add(
        `${formatCount(count, 'file')} ${count === 1 ? 'is' : 'are'} ${state.replace('_', ' ')}.`,
        `intake retry --state ${state}`,
      );
  }
  return problems;
}

/** What stands against completeness: one problem per account, the gravest. An account that was never read has a problem already. */
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
    return problem(`Completeness is not proven: ${reason}${open}.`, 'intake backfill --gaps', true);
  }
  const ageMs = now.getTime() - coverage.asOf.getTime();
  if (limit !== null && a.halt === null && ageMs > limit.ms) {
    const why = limit.isScheduled ? 'no recheck has come to its end since' : 'rechecks are off (RECHECK_SCHEDULE)';
    return problem(
      `The last proof is ${formatSpan(ageMs)} old, the limit is ${formatSpan(limit.ms)}: ${why}.`,
      'intake sync --recheck',
      true,
    );
  }
  if (coverage.risk === 'doubt') {
    return problem(`Completeness is in doubt: ${coverage.reason}.`, 'intake sync --recheck', false);
  }
  // Dates cannot prove completeness, so a backfill by date always ends with a doubt, which is none of the account.
  if (lastSweep?.certificate === 'unproven' || (lastSweep?.purpose === 'live' && lastSweep.risk === 'doubt')) {
    return problem(`The last sweep is in doubt: ${lastSweep.reason}.`, 'intake sync --recheck', false);
  }
  return [];
}

/** Stored bytes that nobody has read for too long: damage would be met by the person who opens the file. */
function toVerifyProblems(
  { name, verifiedSince }: AdvertiserStatus,
  now: Date,
  verifyWithinMs: number | null,
): Problem[] {
  const unreadMs = verifiedSince === null ? 0 : now.getTime() - verifiedSince.getTime();
  if (verifyWithinMs === null || unreadMs <= verifyWithinMs) return [];
  const what = `Stored bytes have not been read again for ${formatSpan(unreadMs)}, the limit is ${formatSpan(verifyWithinMs)} (VERIFY_WITHIN).`;
  return [{ advertiser: name, what, command: `intake verify --full --advertiser ${name}`, urgent: false }];
}

function toHeadline(advertisers: readonly AdvertiserStatus[], problems: readonly Problem[]): string {
  if (advertisers.length === 0) return 'No advertiser has been read yet.';
  const total = advertisers.reduce((sum, a) => sum + a.applications, 0);
  // Files that the source lacks are not waited for. A one-shot sync may leave others in the queue, where nobody fetches them.
  const waiting = advertisers.reduce((sum, a) => sum + a.waiting - a.notThere, 0);
  const files = waiting > 0 ? `; ${formatCount(waiting, 'file waits', 'files wait')} to be fetched` : '';
  const held = `${formatCount(total, 'application')} of ${formatCount(advertisers.length, 'advertiser')} stored${files}.`;
  if (problems.length === 0) return `All is well: ${held}`;
  const urgent = problems.filter((problem) => problem.urgent).length;
  if (urgent > 0) return `${urgent === 1 ? 'One problem needs' : `${urgent} problems need`} you now; ${held}`;
  return `${problems.length === 1 ? 'One problem needs' : `${problems.length} problems need`} a look; ${held}`;
}

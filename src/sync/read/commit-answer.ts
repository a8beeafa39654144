// Commits an answer: compares its page with the stored rows (reads), learns from it (pure), and commits both together (writes). Also loads
// an interrupted sweep from its rows. account-identity.ts has already checked whose data the answer holds.
import type { Application } from '../../domain/application.ts';
import { ask, type KnownIds } from '../../domain/coverage/ask.ts';
import type { Done } from '../../domain/coverage/certificate.ts';
import { begin, renew } from '../../domain/coverage/coverage.ts';
import { coveredOf } from '../../domain/coverage/covered.ts';
import { learn } from '../../domain/coverage/learn.ts';
import { isSingle, lowerBound, wholeAxis } from '../../domain/coverage/position.ts';
import type { Question } from '../../domain/coverage/question.ts';
import {
  decode,
  encode,
  type Facts,
  type KnownPages,
  type OpenRange,
  type Plan,
  type State,
} from '../../domain/coverage/state.ts';
import { type ChainEnd, toAnswerBody, toEndBody, toSweepBody } from '../../domain/evidence/record.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { PageSummary } from '../../store/applications/commit-page.ts';
import type { PageDiff, ReadPage } from '../../store/applications/diff-page.ts';
import type { Store } from '../../store/store.ts';
import type { KnownAdvertiser } from '../../store/sweeps/advertisers.ts';
import type { Sweep, SweepProgress, SweepPurpose } from '../../store/sweeps/sweeps.ts';
import type { ReceivedAnswer } from './ask-source.ts';
import { chainLines } from './evidence.ts';
import type { HeldLane } from './held-lane.ts';

/** The parameters of a sweep. */
export interface SweepRequest {
  readonly lane: HeldLane;
  readonly advertiser: KnownAdvertiser;
  readonly purpose: SweepPurpose;
  readonly plan: Partial<Plan>;
  /** What earlier sweeps have learned about pages, for a poll. A proof measures them itself. */
  readonly pages?: KnownPages | undefined;
  /** The caller knows that there is no interrupted sweep of this range, so none is looked up. */
  readonly isNew?: boolean | undefined;
  /** Requests in flight at once. With 2, the next answer is fetched while one is committed. */
  readonly parallel: number;
  /** How long an application may take to appear in the source's list after its submission. */
  readonly lagMs: number;
  /** How long the source or the database may be unavailable. */
  readonly retryForMs: number;
  /** Checked between two answers. A paused sweep keeps its open ranges and continues when it is run again. */
  readonly shouldPause?: (() => boolean) | undefined;
  /** After this time no further request is sent; open ranges are read next time. */
  readonly timeLimitMs?: number | undefined;
}

/** A sweep with its state; `recorded` once it has a row. */
export interface SweepRun {
  readonly sweep: Sweep;
  readonly state: State;
  readonly recorded: boolean;
  /** The last line of its evidence; null before the first one. */
  readonly end: ChainEnd | null;
}

/** After this time without progress the source may have changed, so a continued sweep measures its pages again. */
const forgetAfterMs = 86_400_000;

/** Loads the interrupted sweep of the same range, or begins a new one. With `fallback`, returns that sweep instead of a new one. */
export async function loadOrBeginSweep(
  store: Pick<Store, 'sweeps'>,
  request: SweepRequest,
  { advertiserId }: KnownAdvertiser,
  fallback?: SweepRun,
): Promise<SweepRun> {
  const { purpose, plan, lane, pages } = request;
  const range = { ...coveredOf({ ...wholeAxis, ...plan }), axis: 'id' } as const;
  if (advertiserId !== null && !(request.isNew && fallback === undefined)) {
    const found = await store.sweeps.loadUnfinished({ advertiserId, lane: lane.lease.lane, purpose, ...range });
    if (found) {
      const state = { facts: decode<Facts>(found.facts), open: found.ranges.map((text) => decode<OpenRange>(text)) };
      return {
        sweep: found,
        state: found.idleMs > forgetAfterMs ? renew(state) : state,
        recorded: true,
        end: found.end,
      };
    }
  }
  if (fallback) return fallback;
  const { sweepId, startedAt } = await store.sweeps.begin();
  const recentFrom = BigInt(Math.floor((startedAt.getTime() - request.lagMs) / 1_000));
  const state = begin({ ...plan, recentFrom, seed: Number(sweepId % 4_294_967_296n) }, pages);
  return { sweep: { sweepId, purpose, ...range, startedAt }, state, recorded: false, end: null };
}

/**
 * Commits an answer together with what the sweep learns from it; `others` are the questions in flight. If the stored rows have changed
 * since the page was compared with them, it compares and learns again.
 */
export async function commitAnswer(
  store: Pick<Store, 'applications' | 'evidence' | 'sweeps'>,
  request: SweepRequest,
  { advertiserId }: KnownAdvertiser,
  run: SweepRun,
  answer: ReceivedAnswer,
  others: readonly Question[],
  known: KnownIds | undefined,
): Promise<{ readonly run: SweepRun; readonly summary: PageSummary }> {
  // Until the first page pins the advertiser's id, nothing can be recorded. What an answer without a page teaches stays in memory.
  if (advertiserId === null) {
    const { state } = learnFrom(request, run, answer, others, known, noDifference);
    return { run: { ...run, state }, summary: nothingWritten };
  }
  const isProof = run.state.facts.rigor === 'proof';
  const opening = isProof && run.end === null ? await loadOpening(store, advertiserId, run) : [];
  const page = toReadPage(request.lane, advertiserId, run.sweep, answer);
  return await untilCommitted(async () => {
    const diff = await store.applications.diffPage(page);
    const { state, progress, lines } = learnFrom(request, run, answer, others, known, diff);
    // A poll that found nothing new writes no row. Any other sweep does, even if one empty answer ends it.
    const isQuiet =
      run.sweep.purpose === 'live' && !run.recorded && progress.ended !== null && progress.ended.risk !== 'doubt';
    if (isQuiet && needsNoCommit(diff)) return { run: { ...run, state }, summary: nothingWritten };
    const evidence = isProof ? chainLines(run.end, [...opening, ...lines]) : [];
    const summary = await store.applications.commitPage(page, diff, { ...progress, evidence });
    if (summary === 'outdated') return summary;
    return { run: { ...run, state, recorded: true, end: evidence.at(-1) ?? run.end }, summary };
  });
}

/** The first line of a sweep's evidence. It names the certificates that were valid when the sweep began. */
async function loadOpening(store: Pick<Store, 'evidence'>, advertiserId: bigint, { sweep, state }: SweepRun) {
  const { sweepId, startedAt } = sweep;
  const purpose = sweep.purpose === 'backfill' ? 'backfill' : 'recheck';
  // A sweep of the other lane may have begun and ended since.
  const previous = (await store.evidence.loadLastHashes(advertiserId)).filter((one) => one.sweepId < sweepId);
  const { facts, open } = state;
  const { accepted } = facts;
  const unreadable = open.filter(isUnreadable).map(({ from }) => from);
  return [toSweepBody({ advertiserId, sweepId, purpose, startedAt, facts, unreadable, accepted, previous })];
}

/**
 * Finds the hidden applications among these (findHidden), ends the certificates that cover them, and returns their ids. Must be called before
 * the applications are stored: a stored application cannot be found hidden any more.
 */
export async function endContradictedCertificates(
  store: Pick<Store, 'coverage'>,
  advertiserId: bigint,
  applications: readonly Pick<Application, 'id' | 'submittedAt'>[],
  by: string,
): Promise<readonly bigint[]> {
  const submitted = applications.map(({ id, submittedAt }) => ({ id, submittedAt }));
  const hidden = await store.coverage.findHidden(advertiserId, submitted);
  if (hidden.length > 0) {
    const reason = `${by} found an application that the proof did not show`;
    await store.coverage.endCertificates(advertiserId, hidden, reason);
  }
  return hidden;
}

/** Commits the applications of an answer; no sweep learns from it. */
export async function commitApplications(
  store: Pick<Store, 'applications' | 'sweeps'>,
  page: ReadPage,
): Promise<PageSummary> {
  return await untilCommitted(async () => {
    const diff = await store.applications.diffPage(page);
    return needsNoCommit(diff) ? nothingWritten : await store.applications.commitPage(page, diff, null);
  });
}

export const nothingWritten: PageSummary = { added: 0, changed: 0, quarantined: 0, stale: [] };
const noDifference: Pick<PageDiff, 'fresh' | 'lacking'> = { fresh: [], lacking: [] };

/** So many tries fail only if another lane changes the same applications between every comparison and its commit. */
const mostTries = 20;

/** Compares a page and commits it, again and again until the stored rows have not changed in between. */
export async function untilCommitted<T extends object>(tryOnce: () => Promise<T | 'outdated'>): Promise<T> {
  for (let tries = 0; tries < mostTries; tries++) {
    const committed = await tryOnce();
    if (committed !== 'outdated') return committed;
  }
  throw new Trouble('local', 'Another process keeps changing the applications of this page.', { at: 'database' });
}

/** While another lane is active, a page without changes is committed too, so that its ids and its request number are recorded. */
function needsNoCommit({ writes, otherLane }: PageDiff): boolean {
  return writes === 0 && !otherLane;
}

export function toReadPage(
  { lease }: HeldLane,
  advertiserId: bigint,
  sweep: Sweep,
  { question, ticket, heard }: ReceivedAnswer,
): ReadPage {
  const { applications = [], rejects = [] } = heard.page ?? {};
  const asked = heard.page && question.covers && coveredOf(question.covers);
  return { lease, advertiserId, seq: ticket.seq, sweep, askedAt: ticket.at, asked, applications, rejects };
}

/** What the sweep learns from an answer, given what was stored before it. Pure. */
function learnFrom(
  { lane, lagMs }: SweepRequest,
  { sweep, state: before, recorded }: SweepRun,
  { question, heard, ticket, tookMs }: ReceivedAnswer,
  others: readonly Question[],
  known: KnownIds | undefined,
  { fresh, lacking }: Pick<PageDiff, 'fresh' | 'lacking'>,
) {
  const answer = heard.page ? { ...heard.answer, news: new Set(fresh.map(({ id }) => id)), lacking } : heard.answer;
  const learned = learn(before, question, answer);
  const { state } = learned;
  const next = ask(state, others, known);
  const done = 'kind' in next && next.kind === 'done' ? next : null;
  const old = toStored(recorded ? before.open : []);
  const now = toStored(state.open);
  const added = [...now.difference(old)];
  const progress: Omit<SweepProgress, 'evidence'> = {
    facts: encode(state.facts),
    dropped: [...old.difference(now)].map((range) => range.from),
    added: added.map((range) => ({
      ...coveredOf(range),
      state: range.stuck === null ? 'open' : 'stuck',
      evidence: encode(range),
    })),
    lacked: learned.lacked,
    unreadable: [...new Set(state.open).difference(new Set(before.open))]
      .filter(isUnreadable)
      .map(({ from, stuck }) => ({ id: from, reason: stuck ?? '' })),
    bytes: heard.page?.bytes ?? 0,
    cursor: lane.lease.lane === 'live' && sweep.high === null ? toReadThrough(state, done) : null,
    ended: done && {
      certificate: done.certificate,
      risk: done.risk,
      reason: done.reason,
      openRanges: countOpen(done),
      marksAbsent: done.absent > 0,
      lagMs: lagOf(sweep, state, lagMs),
      learned: state.facts.rigor === 'proof' ? JSON.stringify(done.pages) : null,
    },
  };
  const sent = { sentAt: ticket.at.getTime(), tookMs: Math.round(tookMs) };
  const lines = [toAnswerBody(sent, question, answer, learned), ...(done ? [toEndBody(done)] : [])];
  return { state, progress, lines };
}

/** The open ranges as rows, by their lowest id. Neighbours may share one id: of two ranges that begin with it, one is part of the other. */
function toStored(open: readonly OpenRange[]): Set<OpenRange> {
  const widest = new Map<bigint, OpenRange>();
  for (const range of open) if ((widest.get(range.from)?.to ?? 0n) < range.to) widest.set(range.from, range);
  return new Set(widest.values());
}

/** True for a single id for which the source fails. It is kept apart and is in nobody's way. */
function isUnreadable(range: OpenRange): boolean {
  return range.stuck !== null && isSingle(range);
}

/** The ranges that a sweep leaves open, without ids that cannot be read. */
export function countOpen({ open }: Done): number {
  return open.filter((range) => !isUnreadable(range)).length;
}

/** The lag with which the sweep began, by which its records separate recent applications from others. The setting may have changed. */
function lagOf({ startedAt }: Sweep, { facts: { recentFrom } }: State, lagMs: number): number {
  if (recentFrom === null) return lagMs;
  const begunMs = startedAt.getTime() - Number(recentFrom) * 1_000;
  // The records have a resolution of one second.
  return begunMs >= lagMs && begunMs < lagMs + 1_000 ? lagMs : begunMs;
}

/**
 * The id up to which everything was read: just below the lowest open range, or the highest id if none is open. In a walk it is known only at
 * the end, and only with a certificate.
 */
function toReadThrough({ facts, open }: State, done: Done | null): bigint | null {
  if (facts.walk !== null) return done && done.certificate !== 'unproven' ? facts.highest : null;
  const lowest = open.find((range) => !isUnreadable(range));
  return lowest === undefined ? facts.highest : lowerBound(lowest) || null;
}

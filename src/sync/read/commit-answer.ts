// Commits an answer: compares its page with the stored rows (reads), learns from it (pure), and commits both together (writes). Also loads
// an interrupted sweep from its rows. account-identity.ts has already checked whose data the answer holds.
import type { Application } from '../../domain/application.ts';
import { ask, begin, type Done, learn, type Plan, renew } from '../../domain/coverage/coverage.ts';
import type { SplitPoints } from '../../domain/coverage/next-question.ts';
import type { Question } from '../../domain/coverage/question.ts';
import { decodeFacts, decodeRange, encode, findChanges, type State } from '../../domain/coverage/sweep-state.ts';
import { type ExpectedIds, toExpectedIds } from '../../domain/coverage/unshown.ts';
import { type EndRecord, toBounds } from '../../domain/evidence/record.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { PageSummary } from '../../store/applications/commit-page.ts';
import type { PageDiff, ReadPage, Seen } from '../../store/applications/diff-page.ts';
import type { Store } from '../../store/store.ts';
import type { KnownAdvertiser } from '../../store/sweeps/advertisers.ts';
import type { Learned } from '../../store/sweeps/continue-sweep.ts';
import type { Sweep, SweepProgress, SweepPurpose } from '../../store/sweeps/sweeps.ts';
import type { HeldLane } from './held-lane.ts';
import {
  beginProof,
  type Exchange,
  type Proof,
  recordAudited,
  recordStep,
  type Step,
  toOpening,
} from './record-evidence.ts';
import type { Heard } from './request-page.ts';

/** The parameters of a sweep. */
export interface SweepRequest {
  readonly lane: HeldLane;
  readonly advertiser: KnownAdvertiser;
  readonly purpose: SweepPurpose;
  readonly plan: Plan;
  /** The caller knows that there is no interrupted sweep of this range, so none is looked up. */
  readonly isNew?: boolean | undefined;
  /** Stored ids at which the questions are split, for a range that was read before. */
  readonly splitPoints?: SplitPoints | undefined;
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

/** An answer with its question and the facts of its request. */
export interface ReceivedAnswer extends Exchange {
  readonly question: Question;
  readonly heard: Heard;
}

/** An answer that is a page. */
export type ReceivedPage = ReceivedAnswer & { readonly heard: { readonly kind: 'page' } };

/** A sweep with its state; `recorded` once it has a row. */
export interface SweepRun {
  readonly sweep: Sweep;
  readonly state: State;
  readonly recorded: boolean;
  /** Null where the sweep proves nothing: polls, sweeps by date, and sweeps of a version that kept no evidence. */
  readonly proof: Proof | null;
}

/** After this time without progress the source may have changed, so a continued sweep measures its limits again. */
const forgetAfterMs = 86_400_000;

/** Loads the interrupted sweep of the same range, or begins a new one. With `fallback`, returns that sweep instead of a new one. */
export async function loadOrBeginSweep(
  store: Pick<Store, 'applications' | 'sweeps'>,
  request: SweepRequest,
  advertiser: KnownAdvertiser,
  fallback?: SweepRun,
): Promise<SweepRun> {
  const { purpose, plan, lane } = request;
  const low = plan.from ?? 1n;
  const high = plan.to ?? null;
  const axis = plan.axis ?? 'id';
  const isNew = request.isNew && fallback === undefined;
  if (advertiser.advertiserId !== null && !isNew) {
    const { advertiserId } = advertiser;
    const found = await store.sweeps.loadUnfinished({ advertiserId, lane: lane.lease.lane, purpose, axis, low, high });
    if (found) {
      const state = { facts: decodeFacts(found.facts), ranges: found.ranges.map(decodeRange) };
      return {
        sweep: found,
        state: found.idleMs > forgetAfterMs ? renew(state) : state,
        recorded: true,
        proof: found.proof,
      };
    }
  }
  if (fallback) return fallback;
  const { sweepId, startedAt } = await store.sweeps.begin();
  const startedSeconds = BigInt(Math.floor((startedAt.getTime() - request.lagMs) / 1_000));
  const state = begin({ ...plan, recentFrom: startedSeconds, seed: Number(sweepId % 4_294_967_296n) });
  const proof = state.facts.rigor === 'proof' && axis === 'id' ? beginProof() : null;
  return { sweep: { sweepId, purpose, axis, low, high, startedAt }, state, recorded: false, proof };
}

/**
 * Commits an answer together with what the sweep learns from it; `others` are the questions in flight. If the stored rows have changed
 * since the page was compared with them, it compares and learns again.
 */
export async function commitAnswer(
  store: Pick<Store, 'applications' | 'evidence' | 'sweeps'>,
  request: SweepRequest,
  advertiser: KnownAdvertiser,
  run: SweepRun,
  answer: ReceivedAnswer,
  others: readonly Question[],
): Promise<{ readonly run: SweepRun; readonly summary: PageSummary }> {
  // Until the first page pins the advertiser's id, nothing can be recorded. What an answer without a page teaches stays in memory.
  if (advertiser.advertiserId === null) {
    const { state } = learnFrom(request, run, answer, others, { unheld: [], unshown: [] });
    return { run: { ...run, state }, summary: nothingWritten };
  }
  const { advertiserId } = advertiser;
  // The certificates that were valid when this sweep began. A sweep of the other lane may have begun and ended since.
  const isEarlier = ({ sweepId }: { readonly sweepId: bigint }) => sweepId < run.sweep.sweepId;
  const previous = run.proof?.end === null ? (await store.evidence.loadLastHashes(advertiserId)).filter(isEarlier) : [];
  const asked = answer.heard.kind === 'page' ? toExpectedIds(answer.question, run.state.facts.listedBefore) : null;
  const page = toReadPage(request.lane, advertiserId, run.sweep, answer, asked);
  return await untilCommitted(async () => {
    const diff = await store.applications.diffPage(page);
    const { state, progress, step } = learnFrom(request, run, answer, others, diff.seen);
    // A poll that found nothing new writes no row. Any other sweep does, even if one empty answer ends it.
    const isQuiet =
      run.sweep.purpose === 'live' && !run.recorded && progress.ended !== null && progress.ended.risk !== 'doubt';
    if (isQuiet && needsNoCommit(diff)) return { run: { ...run, state }, summary: nothingWritten };
    const opening = run.proof?.end === null ? toOpening(advertiserId, run.sweep, run.state, run.proof, previous) : null;
    const records = run.proof && recordStep(run.proof, opening, step);
    const evidence = run.proof && records && { records, bodyKey: run.proof.bodyKey };
    const summary = await store.applications.commitPage(page, diff, { ...progress, evidence });
    if (summary === 'outdated') return summary;
    const end = records?.at(-1) ?? null;
    const proof = run.proof && { ...run.proof, end: end && { n: end.n, hash: end.hash } };
    return { run: { ...run, state, recorded: true, proof }, summary };
  });
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

/** The lag with which the sweep began, by which its records separate recent applications from others. The setting may have changed. */
function lagOf({ startedAt }: Sweep, { facts: { recentFrom } }: State, lagMs: number): number {
  if (recentFrom === null) return lagMs;
  const begunMs = startedAt.getTime() - Number(recentFrom) * 1_000;
  // The records have a resolution of one second.
  return begunMs >= lagMs && begunMs < lagMs + 1_000 ? lagMs : begunMs;
}

function toEndRecord({ certificate, risk, reason, open, absent }: Done): EndRecord {
  return { type: 'end', certificate, risk, reason, open: open.map(toBounds), absent: absent.length };
}

/** Commits the applications of an answer to a request outside the sweep's own questions. The sweep learns nothing from it. */
export async function commitWithoutProgress(
  store: Pick<Store, 'applications' | 'sweeps'>,
  { lane }: SweepRequest,
  advertiserId: bigint,
  { sweep }: SweepRun,
  answer: ReceivedAnswer,
): Promise<PageSummary> {
  return await commitApplications(store, toReadPage(lane, advertiserId, sweep, answer, null));
}

/**
 * Most audits that the proof of a sweep records, about 0.4 kB each. Beyond these only audits that may contradict the proof are recorded;
 * without rechecks the records would grow without limit.
 */
export const mostAudits = 50;

/**
 * Commits the applications of an audit, and appends its record to the proof that covers the audited place. No sweep learns from an audit:
 * it can only contradict.
 */
export async function commitAudit(
  store: Pick<Store, 'applications' | 'evidence' | 'sweeps'>,
  lane: HeldLane,
  advertiserId: bigint,
  sweep: Sweep,
  answer: ReceivedPage,
): Promise<PageSummary> {
  const page = toReadPage(lane, advertiserId, sweep, answer, null);
  const { question, heard, ...exchange } = answer;
  const place = question.axis === 'id' ? question.from : null;
  return await untilCommitted(async () => {
    const proof = await store.evidence.loadAudited(advertiserId, place);
    if (proof === null) return await commitApplications(store, page);
    const diff = await store.applications.diffPage(page);
    const isQuiet = diff.seen.unheld.length === 0 && question.from !== question.to;
    if (isQuiet && proof.audits >= mostAudits) return await commitApplications(store, page);
    const shown = { ...heard.answer, ...diff.seen };
    const record = recordAudited(proof, question, shown, heard, { ...exchange, knew: proof.end.n });
    const audited = { sweepId: proof.sweepId, record };
    return await store.applications.commitPage(page, diff, { audited });
  });
}

/** Commits the applications of a page without progress of a sweep. */
export async function commitApplications(
  store: Pick<Store, 'applications' | 'sweeps'>,
  page: ReadPage,
): Promise<PageSummary> {
  return await untilCommitted(async () => {
    const diff = await store.applications.diffPage(page);
    return needsNoCommit(diff) ? nothingWritten : await store.applications.commitPage(page, diff, null);
  });
}

const nothingWritten: PageSummary = { added: 0, changed: 0, quarantined: 0, stale: [] };

/** So many tries fail only if another lane changes the same applications between every comparison and its commit. */
const mostTries = 20;

/** Compares a page and commits it, again and again until the stored rows have not changed in between. */
async function untilCommitted<T extends object>(tryOnce: () => Promise<T | 'outdated'>): Promise<T> {
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

function toReadPage(
  { lease }: HeldLane,
  advertiserId: bigint,
  sweep: Sweep,
  { ticket, heard }: ReceivedAnswer,
  asked: ExpectedIds | null,
): ReadPage {
  const { applications = [], rejects = [] } = heard.kind === 'page' ? heard.page : {};
  return { lease, advertiserId, seq: ticket.seq, sweep, askedAt: ticket.at, asked, applications, rejects };
}

/** What the sweep learns from an answer, given which ids were stored before it. Pure. */
function learnFrom(
  { lane, lagMs, splitPoints }: SweepRequest,
  { sweep, state: before, recorded }: SweepRun,
  { question, heard, ...exchange }: ReceivedAnswer,
  others: readonly Question[],
  seen: Seen,
): { readonly state: State; readonly progress: Omit<SweepProgress, 'evidence'>; readonly step: Step } {
  const answer = heard.kind === 'page' ? { ...heard.answer, ...seen } : heard.answer;
  const state = learn(before, question, answer);
  const next = ask(state, others, splitPoints);
  const done = next !== null && 'kind' in next ? next : null;
  const { dropped, added } = findChanges(recorded ? before : { ...before, ranges: [] }, state);
  const progress = {
    facts: encode(state.facts),
    dropped: dropped.map((range) => range.from),
    added: added.map((range) => ({ low: range.from, high: range.to, state: range.state, evidence: encode(range) })),
    bytes: heard.kind === 'page' ? heard.page.bytes : 0,
    cursor: lane.lease.lane === 'live' && sweep.high === null ? toReadThrough(state, done) : null,
    ended: done && {
      certificate: done.certificate,
      risk: done.risk,
      reason: done.reason,
      openRanges: done.open.length,
      absent: done.absent,
      lagMs: lagOf(sweep, state, lagMs),
      // Pages by date may have other sizes, and say nothing about the order of ids.
      learned:
        state.facts.rigor === 'proof' && state.facts.axis === 'id'
          ? JSON.stringify(toLearned(state, done, splitPoints))
          : null,
    },
  };
  return {
    state,
    progress,
    step: { question, answer, heard, exchange, before, after: state, end: done && toEndRecord(done) },
  };
}

/**
 * The id up to which everything was read: just below the lowest open range, or the highest id if no range is open. In a sweep by date and
 * in a walk it is known only at the end, and only with a certificate.
 */
function toReadThrough({ facts, ranges }: State, done: Done | null): bigint | null {
  if (facts.axis === 'date' || facts.walk !== null)
    return done && done.certificate !== 'unproven' ? facts.highest : null;
  const open = ranges.find((range) => range.state !== 'closed');
  if (open === undefined) return facts.highest;
  return open.from > 1n ? open.from - 1n : null;
}

function toLearned({ facts }: State, done: Done, splitPoints: SplitPoints | undefined): Learned {
  return {
    // Requests to a source that is known to be uneven are small, and small pages no longer show that. So the earlier finding is kept.
    capacity: { ...done.capacity, uneven: done.capacity.uneven || splitPoints?.uneven === true },
    together: facts.walk === null,
    inclusiveAfter: facts.inclusive.after.after || facts.inclusive.both.after,
    inclusiveBefore: facts.inclusive.before.before || facts.inclusive.both.before,
  };
}

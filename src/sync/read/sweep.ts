// A sweep: one pass over a range until it is read. It sends questions to the source and commits each answer together with what follows from
// it. What to ask and what an answer means is decided by ids (read-ids.ts) or by dates (read-dates.ts).
import { rangeOf } from '../../domain/coverage/covered.ts';
import { contains } from '../../domain/coverage/position.ts';
import type { Question } from '../../domain/coverage/question.ts';
import type { LineBody } from '../../domain/evidence/record.ts';
import type { Source } from '../../source/client.ts';
import type { KnownAdvertiser } from '../../store/accounts/advertisers.ts';
import type { PageSummary } from '../../store/applications/commit-page.ts';
import type { Store } from '../../store/store.ts';
import type { UnfinishedSweep } from '../../store/sweeps/continue-sweep.ts';
import type { Sweep, SweepEnd, SweepOutcome, SweepProgress, SweepPurpose } from '../../store/sweeps/sweeps.ts';
import type { HeldLane } from '../accounts/held-lane.ts';
import { isTemporary, type RetryOptions, retry } from '../retry.ts';
import { type Asker, createAsker, type KnownBefore, type ReceivedAnswer } from './ask-source.ts';
import {
  commitApplications,
  endContradictedCertificates,
  needsNoCommit,
  nothingWritten,
  toReadPage,
  untilCommitted,
} from './commit-answer.ts';

export interface SweepDeps {
  readonly store: Pick<Store, 'advertisers' | 'applications' | 'coverage' | 'evidence' | 'leases' | 'sweeps'>;
  readonly source: Source;
  /** Called after every answer. */
  readonly onStep?: ((totals: SweepTotals) => void) | undefined;
  readonly onWait?: RetryOptions['onWait'];
}

export interface SweepTotals {
  /** Applications found in the range so far. */
  readonly found: number;
  /** The share of the range that is read (0 to 1); null while it cannot be estimated. */
  readonly share: number | null;
  readonly requests: number;
  readonly received: number;
  readonly added: number;
  readonly changed: number;
  readonly quarantined: number;
  readonly bytes: number;
}

export interface SweepSummary extends SweepTotals, SweepOutcome {
  readonly advertiser: KnownAdvertiser;
  /** The id filters hide applications, or may do so. */
  readonly tryDates: boolean;
  /** Why the sweep stopped early: it was asked to pause, or it reached its time limit. */
  readonly stopped: 'paused' | 'outOfTime' | null;
}

/** True if the sweep has read its range to the end. A sweep that stopped early, or that left ranges open, has not. */
export function hasReachedEnd(sweep: SweepSummary | undefined): sweep is SweepSummary {
  return sweep !== undefined && sweep.stopped === null && sweep.openRanges === 0;
}

/** The account to read, its held lane, and how to read. */
export interface ReadContext {
  readonly lane: HeldLane;
  readonly advertiser: KnownAdvertiser;
  /** How long an application may take to appear in the source's list after its submission. */
  readonly lagMs: number;
  /** How long the source or the database may be unavailable. */
  readonly retryForMs: number;
  /** Checked between two answers. A paused sweep keeps its open ranges and continues when it is run again. */
  readonly shouldPause?: (() => boolean) | undefined;
  /** After this time no further request is sent; open ranges are read next time. */
  readonly timeLimitMs?: number | undefined;
  /** Submission date at which the first sweep begins, in milliseconds since the epoch; otherwise it reads everything. */
  readonly startAt?: number | null | undefined;
}

export interface SweepRequest extends ReadContext {
  readonly purpose: SweepPurpose;
  /** The caller knows that there is no interrupted sweep of this range, so none is looked up. */
  readonly isNew?: boolean | undefined;
  /** Requests in flight at once. With 2, the next answer is fetched while one is committed. */
  readonly parallel: number;
}

/** A sweep with its state; `recorded` once it has a row. */
interface SweepRun<State> {
  readonly sweep: Sweep;
  readonly state: State;
  readonly recorded: boolean;
  /** Set when the answer to the last commit of the sweep was lost, and the rows show that it succeeded. */
  readonly outcome: SweepOutcome | null;
  /** What the last answer has written. */
  readonly written: PageSummary;
}

export interface RangeReader<State> {
  readonly range: Pick<Sweep, 'axis' | 'low' | 'high'>;
  begin(sweepId: bigint, startedAt: Date): State;
  /** The state of an interrupted sweep. */
  decode(found: UnfinishedSweep): State;
  measure(state: State): { readonly requests: number; readonly found: number; readonly share: number | null };
  /** The next question. It may depend on stored ids. */
  ask(
    state: State,
    inFlight: readonly Question[],
    advertiserId: bigint | null,
  ): Promise<Question | { readonly kind: 'wait' } | ({ readonly kind: 'done' } & SweepEnd)>;
  open(advertiserId: bigint, run: SweepRun<State>): Promise<readonly LineBody[]>;
  /** Learns from an answer, given what was stored before it; `others` are the questions in flight. */
  learn(
    run: SweepRun<State>,
    answer: ReceivedAnswer,
    others: readonly Question[],
    diff: KnownBefore,
  ): Omit<SweepProgress, 'bytes'> & { readonly state: State };
}

interface SweepContext<State> {
  readonly deps: SweepDeps;
  readonly request: SweepRequest;
  readonly reader: RangeReader<State>;
  readonly asker: Asker;
  readonly retryOptions: RetryOptions;
}

/** Reads the range to its end. Continues an interrupted sweep of the same range. */
export async function sweep<State>(
  deps: SweepDeps,
  request: SweepRequest,
  reader: RangeReader<State>,
): Promise<SweepSummary> {
  const abort = new AbortController();
  const signal = AbortSignal.any([request.lane.signal, abort.signal]);
  const retryOptions: RetryOptions = { retryForMs: request.retryForMs, signal, onWait: deps.onWait };
  const asker = createAsker(deps, request.advertiser, retryOptions);
  const context = { deps, request, reader, asker, retryOptions };
  const isStopped = createStop(request);
  const inFlight = new Map<Question, Promise<ReceivedAnswer>>();
  let totals = nothingRead;
  let run = await retry(
    retryOptions,
    async () => (request.isNew ? null : await loadRun(context)) ?? (await beginRun(context)),
  );
  try {
    for (;;) {
      const stopped = isStopped();
      const ended = run.outcome ?? (await send(context, run.state, inFlight, stopped !== null));
      const { advertiser } = asker;
      if (ended !== null) return { ...totals, advertiser, stopped: null, ...notEnded, ...ended };
      if (stopped !== null && inFlight.size === 0) {
        const reason = reasons[stopped];
        const { sweep } = run;
        if (run.recorded)
          await retry(retryOptions, () => deps.store.sweeps.noteStop(advertiser.advertiserId, sweep.sweepId, reason));
        return { ...totals, advertiser, stopped, reason, ...notEnded };
      }
      const answer = await Promise.race(inFlight.values());
      inFlight.delete(answer.question);
      await checkOtherCertificates(context, answer);
      run = await commit(context, run, answer, [...inFlight.keys()]);
      const { page } = answer;
      const { found, share } = reader.measure(run.state);
      const counts = { found, requests: 1, received: page?.applications.length ?? 0, bytes: page?.bytes ?? 0 };
      totals = { ...addUp(totals, { ...counts, ...run.written }), found, share };
      deps.onStep?.(totals);
      if (run.written.stale.length > 0) await askAgain(context, run.sweep, answer);
    }
  } finally {
    abort.abort();
    await Promise.allSettled(inFlight.values());
  }
}

/** The interrupted sweep of this range; or `current`, as its rows show it. */
async function loadRun<State>(
  { deps, request, reader, asker }: SweepContext<State>,
  current?: SweepRun<State>,
): Promise<SweepRun<State> | null> {
  const { advertiserId } = asker.advertiser;
  if (advertiserId === null) return null;
  const key = { advertiserId, lane: request.lane.lease.lane, purpose: request.purpose, ...reader.range };
  const found = await deps.store.sweeps.loadUnfinished(key, current?.sweep.sweepId);
  if (found && found.outcome !== null && current)
    return { ...current, outcome: found.outcome, written: nothingWritten };
  return found && { sweep: found, state: reader.decode(found), recorded: true, outcome: null, written: nothingWritten };
}

async function beginRun<State>({ deps, request: { purpose }, reader }: SweepContext<State>): Promise<SweepRun<State>> {
  const { seq: sweepId, at: startedAt } = await deps.store.sweeps.begin();
  const sweep = { sweepId, purpose, ...reader.range, startedAt };
  return { sweep, state: reader.begin(sweepId, startedAt), recorded: false, outcome: null, written: nothingWritten };
}

/** Sends the next questions, unless the sweep has to stop. Returns how it ends, if nothing is left to ask. */
async function send<State>(
  { request, reader, asker, retryOptions }: SweepContext<State>,
  state: State,
  inFlight: Map<Question, Promise<ReceivedAnswer>>,
  hasToStop: boolean,
): Promise<SweepEnd | null> {
  while (inFlight.size < request.parallel) {
    const { advertiserId } = asker.advertiser;
    const next = await retry(retryOptions, () => reader.ask(state, [...inFlight.keys()], advertiserId));
    if ('kind' in next) return next.kind === 'done' ? next : null;
    if (hasToStop) return null;
    const sent = asker.send(next);
    // It may fail while another answer is being committed. The race handles the failure.
    sent.catch(() => {});
    inFlight.set(next, sent);
  }
  return null;
}

/** Commits an answer. After a failure only the rows show whether it was committed, so the run is loaded again from them. */
async function commit<State>(
  context: SweepContext<State>,
  before: SweepRun<State>,
  answer: ReceivedAnswer,
  others: readonly Question[],
): Promise<SweepRun<State>> {
  const { reader, retryOptions } = context;
  const { requests } = reader.measure(before.state);
  let run = before;
  return await retry(retryOptions, async () => {
    if (reader.measure(run.state).requests > requests || run.outcome !== null) return run;
    try {
      return await learnAndCommit(context, run, answer, others);
    } catch (error) {
      if (isTemporary(error)) run = (await retry(retryOptions, () => loadRun(context, run))) ?? run;
      throw error;
    }
  });
}

/**
 * Commits an answer together with what the sweep learns from it. If the stored rows have changed since the page was compared with them, it
 * compares and learns again.
 */
async function learnAndCommit<State>(
  { deps: { store }, request, reader, asker }: SweepContext<State>,
  run: SweepRun<State>,
  answer: ReceivedAnswer,
  others: readonly Question[],
): Promise<SweepRun<State>> {
  const { advertiserId } = asker.advertiser;
  // Until the first page pins the advertiser's id, nothing can be recorded. What an answer without a page teaches stays in memory.
  if (advertiserId === null)
    return { ...run, state: reader.learn(run, answer, others, { fresh: [], lacking: [] }).state };
  const opening = run.recorded ? [] : await reader.open(advertiserId, run);
  const page = toReadPage(request.lane, advertiserId, run.sweep, answer);
  return await untilCommitted(async () => {
    const diff = await store.applications.diffPage(page);
    const { state, ...progress } = reader.learn(run, answer, others, diff);
    const { ended } = progress;
    // A poll that found nothing new writes no row. Any other sweep does, even if one empty answer ends it.
    const isQuiet = request.purpose === 'live' && !run.recorded && ended !== null && ended.risk !== 'doubt';
    if (isQuiet && needsNoCommit(diff)) return { ...run, state, written: nothingWritten };
    const evidence = [...opening, ...progress.evidence];
    const bytes = answer.page?.bytes ?? 0;
    const written = await store.applications.commitPage(page, diff, { ...progress, bytes, evidence });
    return written === 'outdated' ? written : { ...run, state, recorded: true, written };
  });
}

/** Ends certificates of other sweeps that this page contradicts. */
async function checkOtherCertificates<State>(
  { deps: { store }, request, reader: { range }, asker, retryOptions }: SweepContext<State>,
  { page }: ReceivedAnswer,
): Promise<void> {
  const { advertiserId } = asker.advertiser;
  const isById = range.axis === 'id';
  // A recheck by date follows a sweep by ids that has already ended with a doubt.
  if (advertiserId === null || page === null || (!isById && request.purpose !== 'backfill')) return;
  const others = page.applications.filter(({ id }) => !isById || !contains(rangeOf(range), id));
  const by = isById ? 'a sweep of another id range' : 'a backfill by date';
  if (others.length > 0) await retry(retryOptions, () => endContradictedCertificates(store, advertiserId, others, by));
}

/** So often an overtaken answer is asked again; then its changes are left to the next recheck. */
const mostRepeats = 5;

/**
 * Asks the same question with a new request number, because changes were not written: a newer request has seen the same applications. The
 * sweep learns nothing from it.
 */
async function askAgain<State>(
  { deps: { store }, request, asker, retryOptions }: SweepContext<State>,
  sweep: Sweep,
  { question }: ReceivedAnswer,
): Promise<void> {
  const { advertiserId } = asker.advertiser;
  for (let tries = 0; tries < mostRepeats && advertiserId !== null; tries++) {
    const page = toReadPage(request.lane, advertiserId, sweep, await asker.send(question));
    const { stale } = await retry(retryOptions, () => commitApplications(store, page));
    if (stale.length === 0) return;
  }
}

/** Tells whether a sweep has to stop between two answers, and why. */
export function createStop({ shouldPause, timeLimitMs = Number.POSITIVE_INFINITY }: ReadContext) {
  const endsAt = performance.now() + timeLimitMs;
  return () => (shouldPause?.() ? 'paused' : performance.now() > endsAt ? 'outOfTime' : null);
}

const counts = { requests: 0, received: 0, added: 0, changed: 0, quarantined: 0, bytes: 0 };
const nothingRead: SweepTotals = { ...counts, found: 0, share: null };

/** Adds the counts of an answer, or of another sweep over the same applications. All other fields are those of the first. */
export function addUp<Totals extends SweepTotals>(first: Totals, second: Omit<SweepTotals, 'share'>): Totals {
  const sums = (Object.keys(counts) as (keyof typeof counts)[]).map((name) => [name, first[name] + second[name]]);
  return { ...first, ...Object.fromEntries(sums), found: Math.max(first.found, second.found) };
}

const reasons = {
  paused: 'paused for a more urgent task; continues by itself',
  outOfTime: 'stopped at its time limit; continues next time',
} as const;

/** The result of a sweep that has not ended. The open ranges are not counted: 1 stands for at least one. */
const notEnded = { certificate: 'unproven', risk: 'doubt', tryDates: false, openRanges: 1 } as const;

// A sweep: one pass over a range until it is read. It sends questions to the source and commits each answer together with what follows from
// it. What to ask and what an answer means is decided by ids (read-ids.ts) or by dates (read-dates.ts).
import { rangeOf } from '../../domain/coverage/covered.ts';
import { contains, isSingle } from '../../domain/coverage/position.ts';
import type { Question } from '../../domain/coverage/question.ts';
import type { OpenRange } from '../../domain/coverage/state.ts';
import type { LineBody } from '../../domain/evidence/record.ts';
import type { Source } from '../../source/client.ts';
import type { KnownAdvertiser } from '../../store/accounts/advertisers.ts';
import type { PageSummary } from '../../store/applications/commit-page.ts';
import type { PageDiff } from '../../store/applications/diff-page.ts';
import type { Store } from '../../store/store.ts';
import type { SweepOutcome, UnfinishedSweep } from '../../store/sweeps/continue-sweep.ts';
import type { Sweep, SweepEnd, SweepProgress, SweepPurpose } from '../../store/sweeps/sweeps.ts';
import type { HeldLane } from '../accounts/held-lane.ts';
import { isTemporary, type RetryOptions, retry } from '../retry.ts';
import { createAsker, type ReceivedAnswer } from './ask-source.ts';
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

export interface SweepSummary extends SweepTotals, Omit<SweepEnd, 'completeThrough' | 'learned'> {
  readonly advertiser: KnownAdvertiser;
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
}

/** The parameters of a sweep. */
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
}

/** What an answer changes: the state, its rows, and the lines of evidence. */
interface Step<State> extends Omit<SweepProgress, 'evidence' | 'bytes'> {
  readonly state: State;
  readonly lines: readonly LineBody[];
}

/** How a range is read. */
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
  /** The lines of evidence before the first answer. */
  open(advertiserId: bigint, run: SweepRun<State>): Promise<readonly LineBody[]>;
  /** Learns from an answer, given what was stored before it; `others` are the questions in flight. */
  learn(
    run: SweepRun<State>,
    answer: ReceivedAnswer,
    others: readonly Question[],
    diff: Pick<PageDiff, 'fresh' | 'lacking'>,
  ): Step<State>;
}

/** Reads the range to its end. Continues an interrupted sweep of the same range. */
export async function sweep<State>(
  deps: SweepDeps,
  request: SweepRequest,
  reader: RangeReader<State>,
): Promise<SweepSummary> {
  const { store } = deps;
  const { lane, purpose } = request;
  const { range } = reader;
  const abort = new AbortController();
  const signal = AbortSignal.any([lane.signal, abort.signal]);
  const retryOptions: RetryOptions = { retryForMs: request.retryForMs, signal, onWait: deps.onWait };
  const asker = createAsker(deps, request.advertiser, retryOptions);
  const isStopped = createStop(request);
  let run = await retry(retryOptions, async () => (request.isNew ? null : await loadUnfinished()) ?? (await begin()));
  let totals = nothingRead;
  const inFlight = new Map<Question, Promise<ReceivedAnswer>>();

  async function loadUnfinished(): Promise<SweepRun<State> | null> {
    const { advertiserId } = asker.advertiser;
    if (advertiserId === null) return null;
    const found = await store.sweeps.loadUnfinished({ advertiserId, lane: lane.lease.lane, purpose, ...range });
    return found && { sweep: found, state: reader.decode(found), recorded: true, outcome: null };
  }

  async function begin(): Promise<SweepRun<State>> {
    const { sweepId, startedAt } = await store.sweeps.begin();
    const state = reader.begin(sweepId, startedAt);
    return { sweep: { sweepId, purpose, ...range, startedAt }, state, recorded: false, outcome: null };
  }

  /** Sends the next questions, unless the sweep has to stop. Returns how it ends, if nothing is left to ask. */
  async function send(hasToStop: boolean): Promise<SweepEnd | null> {
    while (inFlight.size < request.parallel) {
      const { advertiserId } = asker.advertiser;
      const next = await retry(retryOptions, () => reader.ask(run.state, [...inFlight.keys()], advertiserId));
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
  async function commit(answer: ReceivedAnswer): Promise<void> {
    await checkOtherCertificates(answer);
    const { requests } = reader.measure(run.state);
    const summary = await retry(retryOptions, async () => {
      if (reader.measure(run.state).requests > requests || run.outcome !== null) return nothingWritten;
      try {
        return await learnAndCommit(answer);
      } catch (error) {
        if (isTemporary(error)) run = await retry(retryOptions, reload);
        throw error;
      }
    });
    const { page } = answer.heard;
    const { found, share } = reader.measure(run.state);
    const counts = { found, requests: 1, received: page?.applications.length ?? 0, bytes: page?.bytes ?? 0 };
    totals = { ...addUp(totals, { ...counts, ...summary }), found, share };
    deps.onStep?.(totals);
    if (summary.stale.length > 0) await askAgain(answer);
  }

  async function reload(): Promise<SweepRun<State>> {
    const { advertiserId } = asker.advertiser;
    if (advertiserId === null) return run;
    const outcome = await store.sweeps.loadOutcome(advertiserId, run.sweep.sweepId);
    return outcome === null ? ((await loadUnfinished()) ?? run) : { ...run, outcome };
  }

  /**
   * Commits an answer together with what the sweep learns from it. If the stored rows have changed since the page was compared with them, it
   * compares and learns again.
   */
  async function learnAndCommit(answer: ReceivedAnswer): Promise<PageSummary> {
    const { advertiserId } = asker.advertiser;
    const others = [...inFlight.keys()];
    // Until the first page pins the advertiser's id, nothing can be recorded. What an answer without a page teaches stays in memory.
    if (advertiserId === null) {
      run = { ...run, state: reader.learn(run, answer, others, { fresh: [], lacking: [] }).state };
      return nothingWritten;
    }
    const opening = run.recorded ? [] : await reader.open(advertiserId, run);
    const page = toReadPage(lane, advertiserId, run.sweep, answer);
    return await untilCommitted(async () => {
      const diff = await store.applications.diffPage(page);
      const { state, lines, ...progress } = reader.learn(run, answer, others, diff);
      // A poll that found nothing new writes no row. Any other sweep does, even if one empty answer ends it.
      const isQuiet = purpose === 'live' && !run.recorded && progress.ended !== null && progress.ended.risk !== 'doubt';
      if (isQuiet && needsNoCommit(diff)) {
        run = { ...run, state };
        return nothingWritten;
      }
      const bytes = answer.heard.page?.bytes ?? 0;
      const evidence = [...opening, ...lines];
      const summary = await store.applications.commitPage(page, diff, { ...progress, bytes, evidence });
      if (summary !== 'outdated') run = { ...run, state, recorded: true };
      return summary;
    });
  }

  /** Ends certificates of other sweeps that this page contradicts. */
  async function checkOtherCertificates({ heard }: ReceivedAnswer): Promise<void> {
    const { advertiserId } = asker.advertiser;
    const isById = range.axis === 'id';
    // A recheck by date follows a sweep by ids that has already ended with a doubt.
    if (advertiserId === null || heard.page === null || (!isById && purpose !== 'backfill')) return;
    const others = heard.page.applications.filter(({ id }) => !isById || !contains(rangeOf(range), id));
    const by = isById ? 'a sweep of another id range' : 'a backfill by date';
    if (others.length > 0)
      await retry(retryOptions, () => endContradictedCertificates(store, advertiserId, others, by));
  }

  /**
   * Asks the same question with a new request number, because changes were not written: a newer request has seen the same applications. The
   * sweep learns nothing from it.
   */
  async function askAgain({ question }: ReceivedAnswer): Promise<void> {
    const { advertiserId } = asker.advertiser;
    for (let tries = 0; tries < mostRepeats && advertiserId !== null; tries++) {
      const answer = await asker.send(question);
      const page = toReadPage(lane, advertiserId, run.sweep, answer);
      const { stale } = await retry(retryOptions, () => commitApplications(store, page));
      if (stale.length === 0) return;
    }
  }

  try {
    for (;;) {
      const stopped = isStopped();
      const ended = run.outcome ?? (await send(stopped !== null));
      const { advertiser } = asker;
      if (ended !== null) return { ...totals, advertiser, stopped: null, ...notEnded, ...ended };
      if (stopped !== null && inFlight.size === 0) {
        const reason = reasons[stopped];
        if (run.recorded)
          await retry(retryOptions, () => store.sweeps.noteStop(advertiser.advertiserId, run.sweep, reason));
        return { ...totals, advertiser, stopped, reason, ...notEnded };
      }
      const answer = await Promise.race(inFlight.values());
      inFlight.delete(answer.question);
      await commit(answer);
    }
  } finally {
    abort.abort();
    await Promise.allSettled(inFlight.values());
  }
}

/** Tells whether a sweep has to stop between two answers, and why. */
export function createStop({
  shouldPause,
  timeLimitMs = Number.POSITIVE_INFINITY,
}: Pick<SweepRequest, 'shouldPause' | 'timeLimitMs'>) {
  const startedAt = performance.now();
  const isOutOfTime = () => performance.now() - startedAt > timeLimitMs;
  return () => (shouldPause?.() ? 'paused' : isOutOfTime() ? 'outOfTime' : null);
}

const counts = { requests: 0, received: 0, added: 0, changed: 0, quarantined: 0, bytes: 0 };
const nothingRead: SweepTotals = { ...counts, found: 0, share: null };

/** Adds the counts of an answer, or of another sweep over the same applications. All other fields are those of the first. */
export function addUp<Totals extends SweepTotals>(first: Totals, second: Omit<SweepTotals, 'share'>): Totals {
  const sums = (Object.keys(counts) as (keyof typeof counts)[]).map((name) => [name, first[name] + second[name]]);
  return { ...first, ...Object.fromEntries(sums), found: Math.max(first.found, second.found) };
}

/** So often an overtaken answer is asked again; then its changes are left to the next recheck. */
const mostRepeats = 5;

/** True for a single id for which the source fails. It is kept apart and is in nobody's way. */
export function isUnreadable(range: OpenRange): boolean {
  return range.stuck !== null && isSingle(range);
}

const reasons = {
  paused: 'paused for a more urgent task; continues by itself',
  outOfTime: 'stopped at its time limit; continues next time',
} as const;

/** The result of a sweep that has not ended. The open ranges are not counted: 1 stands for at least one. */
const notEnded = { certificate: 'unproven', risk: 'doubt', tryDates: false, openRanges: 1, absent: 0 } as const;

// A sweep: one pass over a range of ids until it is closed. It sends questions to the source and commits the answers to the store.
// domain/coverage decides what to ask and what an answer proves. Each step is committed together with the page from which it follows.
import { ask, type KnownIds } from '../../domain/coverage/ask.ts';
import type { Done } from '../../domain/coverage/certificate.ts';
import { shareRead } from '../../domain/coverage/coverage.ts';
import { contains, firstPosition } from '../../domain/coverage/position.ts';
import type { Question } from '../../domain/coverage/question.ts';
import type { Source } from '../../source/client.ts';
import type { PageSummary } from '../../store/applications/commit-page.ts';
import type { Store } from '../../store/store.ts';
import type { KnownAdvertiser } from '../../store/sweeps/advertisers.ts';
import type { SweepOutcome } from '../../store/sweeps/continue-sweep.ts';
import { isTemporary, type RetryOptions, retry } from '../retry.ts';
import { type Asker, createAsker, type ReceivedAnswer } from './ask-source.ts';
import {
  commitAnswer,
  commitApplications,
  countOpen,
  endContradictedCertificates,
  loadOrBeginSweep,
  type SweepRequest,
  type SweepRun,
  toReadPage,
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

export interface SweepSummary extends SweepTotals {
  readonly advertiser: KnownAdvertiser;
  /** Why the sweep stopped early: it was asked to pause, or it reached its time limit. */
  readonly stopped: 'paused' | 'outOfTime' | null;
  readonly certificate: Done['certificate'];
  readonly risk: Done['risk'];
  readonly reason: string;
  /** The id filters hide applications, or may do so. */
  readonly tryDates: boolean;
  readonly openRanges: number;
  readonly absent: number;
}

/** True if the sweep has read its range to the end. A sweep that stopped early, or that left ranges open, has not. */
export function hasReachedEnd(sweep: SweepSummary | undefined): sweep is SweepSummary {
  return sweep !== undefined && sweep.stopped === null && sweep.openRanges === 0;
}

/** Reads the range to its end. Continues an interrupted sweep of the same range. */
export async function sweep(deps: SweepDeps, request: SweepRequest): Promise<SweepSummary> {
  const { store } = deps;
  const abort = new AbortController();
  const signal = AbortSignal.any([request.lane.signal, abort.signal]);
  const retryOptions: RetryOptions = { retryForMs: request.retryForMs, signal, onWait: deps.onWait };
  const asker = createAsker(deps, request.advertiser, retryOptions);
  const isStopped = createStop(request);

  let run = await retry(retryOptions, () => loadOrBeginSweep(store, request, asker.advertiser));
  let known: KnownIds | undefined;
  /** Set when the answer to the last commit of the sweep was lost, and the rows show that it succeeded. */
  let outcome: SweepOutcome | null = null;
  let totals = nothingRead;
  const inFlight = new Map<Question, Promise<ReceivedAnswer>>();

  /** The next question. Stored ids split what was read before; they are loaded as the sweep comes to them. */
  async function next() {
    for (;;) {
      const asked = ask(run.state, [...inFlight.keys()], known);
      if (!('kind' in asked) || asked.kind !== 'load') return asked;
      known = await retry(retryOptions, () =>
        store.applications.loadKnownIds(asker.advertiser.advertiserId, asked.from),
      );
    }
  }

  /** Commits an answer. After a failure only the rows show whether it was committed, so the state is loaded again from them. */
  async function commit(answer: ReceivedAnswer): Promise<void> {
    await asker.identify(answer);
    await checkOtherCertificates(deps, retryOptions, asker, run, answer);
    const stepsBefore = run.state.facts.requests;
    const summary = await retry(retryOptions, async () => {
      if (run.state.facts.requests > stepsBefore || outcome !== null) return null;
      try {
        const others = [...inFlight.keys()];
        const committed = await commitAnswer(store, request, asker.advertiser, run, answer, others, known);
        run = committed.run;
        return committed.summary;
      } catch (error) {
        if (isTemporary(error)) await reload();
        throw error;
      }
    });
    const share = shareRead(run.state);
    totals = { ...addPage(totals, answer, summary), found: run.state.facts.found, share };
    deps.onStep?.(totals);
    if (summary !== null && summary.stale.length > 0) await askAgain(deps, request, retryOptions, asker, run, answer);
  }

  async function reload(): Promise<void> {
    const { advertiserId } = asker.advertiser;
    if (advertiserId !== null)
      outcome = await retry(retryOptions, () => store.sweeps.loadOutcome(advertiserId, run.sweep.sweepId));
    if (outcome === null)
      run = await retry(retryOptions, () => loadOrBeginSweep(store, request, asker.advertiser, run));
  }

  if (run.state.facts.listedBefore > 0 && run.state.facts.rigor === 'proof')
    known = { from: firstPosition, ids: [], isAll: false };
  try {
    for (;;) {
      let done: Done | undefined;
      const stopped = isStopped();
      while (inFlight.size < request.parallel && !done) {
        const asked = await next();
        if ('kind' in asked) {
          if (asked.kind === 'done') done = asked;
          break;
        }
        if (stopped) break;
        const sent = asker.send(asked);
        // It may fail while another answer is being committed. The race below handles the failure.
        sent.catch(() => {});
        inFlight.set(asked, sent);
      }
      const { advertiser } = asker;
      if (done) return { ...totals, advertiser, stopped: null, ...toResult(done) };
      if (stopped && inFlight.size === 0) {
        const reason = reasons[stopped];
        if (run.recorded)
          await retry(retryOptions, () => store.sweeps.noteStop(advertiser.advertiserId, run.sweep, reason));
        return { ...totals, advertiser, stopped, reason, ...notEnded };
      }
      const answer = await Promise.race(inFlight.values());
      inFlight.delete(answer.question);
      await commit(answer);
      if (outcome)
        return { ...totals, advertiser: asker.advertiser, stopped: null, ...notEnded, ...(outcome as SweepOutcome) };
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

export const nothingRead: SweepTotals = {
  found: 0,
  share: null,
  requests: 0,
  received: 0,
  added: 0,
  changed: 0,
  quarantined: 0,
  bytes: 0,
};

/** The totals after one more answer. */
export function addPage(totals: SweepTotals, { heard }: ReceivedAnswer, summary: PageSummary | null): SweepTotals {
  return {
    ...totals,
    requests: totals.requests + 1,
    received: totals.received + (heard.page?.applications.length ?? 0),
    added: totals.added + (summary?.added ?? 0),
    changed: totals.changed + (summary?.changed ?? 0),
    quarantined: totals.quarantined + (summary?.quarantined ?? 0),
    bytes: totals.bytes + (heard.page?.bytes ?? 0),
  };
}

/** Ends certificates of other sweeps that this page contradicts, by applications outside the sweep's own range. */
async function checkOtherCertificates(
  { store }: SweepDeps,
  retryOptions: RetryOptions,
  { advertiser: { advertiserId } }: Asker,
  { state }: SweepRun,
  { heard }: ReceivedAnswer,
): Promise<void> {
  const others = heard.page?.applications.filter(({ id }) => !contains(state.facts, id)) ?? [];
  if (advertiserId === null || others.length === 0) return;
  const by = 'a sweep of another id range';
  await retry(retryOptions, () => endContradictedCertificates(store, advertiserId, others, by));
}

/** So often an overtaken answer is asked again; then its changes are left to the next recheck. */
const mostRepeats = 5;

/**
 * Asks the same question with a new request number, because changes were not written: a newer request has seen the same applications. The
 * sweep learns nothing from it.
 */
export async function askAgain(
  { store }: Pick<SweepDeps, 'store'>,
  { lane }: Pick<SweepRequest, 'lane'>,
  retryOptions: RetryOptions,
  asker: Asker,
  { sweep: own }: Pick<SweepRun, 'sweep'>,
  { question }: ReceivedAnswer,
): Promise<void> {
  const { advertiserId } = asker.advertiser;
  for (let tries = 0; tries < mostRepeats && advertiserId !== null; tries++) {
    const answer = await asker.send(question);
    await asker.identify(answer);
    const page = toReadPage(lane, advertiserId, own, answer);
    const { stale } = await retry(retryOptions, () => commitApplications(store, page));
    if (stale.length === 0) return;
  }
}

function toResult(done: Done) {
  const { certificate, risk, reason, absent, tryDates } = done;
  return { certificate, risk, reason, tryDates, openRanges: countOpen(done), absent };
}

export const reasons = {
  paused: 'paused for a more urgent task; continues by itself',
  outOfTime: 'stopped at its time limit; continues next time',
} as const;

/** The result of a sweep that has not ended. The open ranges are not counted: 1 stands for at least one. */
export const notEnded = { certificate: 'unproven', risk: 'doubt', tryDates: false, openRanges: 1, absent: 0 } as const;

// A sweep: one pass over a range of the list until it is closed. It sends questions to the source and commits the answers to the store.
// domain/coverage decides what to ask and what an answer proves. Each step is committed together with the page from which it follows.
import type { Page } from '../../domain/application.ts';
import { ask, type Done } from '../../domain/coverage/coverage.ts';
import { aloneQuestion } from '../../domain/coverage/next-question.ts';
import type { Question } from '../../domain/coverage/question.ts';
import { shareRead } from '../../domain/coverage/sweep-state.ts';
import type { Source } from '../../source/client.ts';
import type { Store } from '../../store/store.ts';
import type { KnownAdvertiser } from '../../store/sweeps/advertisers.ts';
import type { SweepOutcome } from '../../store/sweeps/continue-sweep.ts';
import { isTemporary, type RetryOptions, retry } from '../retry.ts';
import { checkIdentity } from './account-identity.ts';
import {
  commitAnswer,
  commitWithoutProgress,
  endContradictedCertificates,
  loadOrBeginSweep,
  type ReceivedAnswer,
  type SweepRequest,
} from './commit-answer.ts';
import { requestPage } from './request-page.ts';

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
  const abort = new AbortController();
  const signal = AbortSignal.any([request.lane.signal, abort.signal]);
  const retryOptions: RetryOptions = { retryForMs: request.retryForMs, signal, onWait: deps.onWait };
  const { store } = deps;

  const startedAt = performance.now();
  const isOutOfTime = () => performance.now() - startedAt > (request.timeLimitMs ?? Number.POSITIVE_INFINITY);

  let { advertiser } = request;
  let run = await retry(retryOptions, () => loadOrBeginSweep(store, request, advertiser));
  /** Set when the answer to the last commit of the sweep was lost, and the rows show that it succeeded. */
  let outcome: SweepOutcome | null = null;
  let totals: SweepTotals = {
    found: 0,
    share: null,
    requests: 0,
    received: 0,
    added: 0,
    changed: 0,
    quarantined: 0,
    bytes: 0,
  };
  const inFlight = new Map<Question, Promise<ReceivedAnswer>>();

  async function send(question: Question): Promise<ReceivedAnswer> {
    return await retry(retryOptions, async () => {
      const knew = run.proof?.end?.n ?? 0;
      const ticket = await store.sweeps.takeTicket();
      const sentAt = performance.now();
      const heard = await requestPage(deps.source, question, signal);
      return { question, ticket, heard, tookMs: performance.now() - sentAt, knew };
    });
  }

  /** Checks whose data a page holds, before any of it is stored. */
  async function checkWhose(page: Page | null): Promise<void> {
    if (page) advertiser = await retry(retryOptions, () => checkIdentity(store, advertiser, page));
  }

  /**
   * Ends certificates of other sweeps that this page contradicts. It checks the applications about which this sweep's own certificate says
   * nothing: those outside its id range, and all of a backfill by date. A recheck by date is not checked, because the sweep by ids before it
   * has already ended with a doubt.
   */
  async function checkOtherCertificates(page: Page | null): Promise<void> {
    const { advertiserId } = advertiser;
    const { axis, purpose, low, high } = run.sweep;
    const isByDate = axis === 'date' && purpose === 'backfill';
    const isOutside = (id: bigint) => axis === 'id' && (id < low || (high !== null && id > high));
    const others = page?.applications.filter(({ id }) => isByDate || isOutside(id)) ?? [];
    if (advertiserId === null || others.length === 0) return;
    const by = isByDate ? 'a backfill by date' : 'a sweep of another id range';
    await retry(retryOptions, () => endContradictedCertificates(store, advertiserId, others, by));
  }

  /** Commits an answer. After a failure only the rows show whether it was committed, so the state is loaded again from them. */
  async function commit(answer: ReceivedAnswer): Promise<void> {
    const page = answer.heard.kind === 'page' ? answer.heard.page : null;
    await checkWhose(page);
    await checkOtherCertificates(page);
    const stepsBefore = run.state.facts.requests;
    const summary = await retry(retryOptions, async () => {
      if (run.state.facts.requests > stepsBefore || outcome !== null) return null;
      try {
        const committed = await commitAnswer(store, request, advertiser, run, answer, [...inFlight.keys()]);
        run = committed.run;
        return committed.summary;
      } catch (error) {
        if (isTemporary(error)) await reload();
        throw error;
      }
    });
    totals = {
      found: run.state.facts.found,
      share: shareRead(run.state),
      requests: totals.requests + 1,
      received: totals.received + (page?.applications.length ?? 0),
      added: totals.added + (summary?.added ?? 0),
      changed: totals.changed + (summary?.changed ?? 0),
      quarantined: totals.quarantined + (summary?.quarantined ?? 0),
      bytes: totals.bytes + (page?.bytes ?? 0),
    };
    deps.onStep?.(totals);
    for (const id of summary?.stale ?? []) await askAgain(id);
  }

  async function reload(): Promise<void> {
    const { advertiserId } = advertiser;
    const { sweepId } = run.sweep;
    if (advertiserId !== null)
      outcome = await retry(retryOptions, () => store.sweeps.loadOutcome(advertiserId, sweepId));
    if (outcome === null) run = await retry(retryOptions, () => loadOrBeginSweep(store, request, advertiser, run));
  }

  /**
   * Requests one application alone, with a new request number, because its change was not written: a newer request of the other lane has
   * seen it. After five tries it is left to the next recheck.
   */
  async function askAgain(id: bigint): Promise<void> {
    const { advertiserId } = advertiser;
    if (advertiserId === null) return;
    for (let tries = 0; tries < 5; tries++) {
      const answer = await send(aloneQuestion(id));
      await checkWhose(answer.heard.kind === 'page' ? answer.heard.page : null);
      const { stale } = await retry(retryOptions, () =>
        commitWithoutProgress(store, request, advertiserId, run, answer),
      );
      if (stale.length === 0) return;
    }
  }

  try {
    for (;;) {
      let done: Done | undefined;
      const stopped = request.shouldPause?.() ? 'paused' : isOutOfTime() ? 'outOfTime' : null;
      while (inFlight.size < request.parallel && !done) {
        const next = ask(run.state, [...inFlight.keys()], request.splitPoints);
        if (next === null) break;
        if ('kind' in next) done = next;
        else if (stopped) break;
        else {
          const sent = send(next);
          // It may fail while another answer is being committed. The race below handles the failure.
          sent.catch(() => {});
          inFlight.set(next, sent);
        }
      }
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
      if (outcome) return { ...totals, advertiser, stopped: null, ...notEnded, ...(outcome as SweepOutcome) };
    }
  } finally {
    abort.abort();
    await Promise.allSettled(inFlight.values());
  }
}

function toResult({ certificate, risk, reason, open, absent, tryDates }: Done) {
  return { certificate, risk, reason, tryDates, openRanges: open.length, absent: absent.length };
}

const reasons = {
  paused: 'paused for a more urgent task; continues by itself',
  outOfTime: 'stopped at its time limit; continues next time',
} as const;

/** The result of a sweep that has not ended. The open ranges are not counted: 1 stands for at least one. */
const notEnded = { certificate: 'unproven', risk: 'doubt', tryDates: false, openRanges: 1, absent: 0 } as const;

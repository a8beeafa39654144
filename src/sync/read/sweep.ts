// A sweep: one pass over a range until it is read. It sends questions to the source and commits each answer with what follows from it.
// read-range.ts turns rows into the state of domain/coverage and back, which decides what to ask and what an answer means.
import type { Conclusion, SweepEnd } from '../../domain/coverage/certificate.ts';
import type { Question } from '../../domain/coverage/question.ts';
import type { LineBody } from '../../domain/evidence/record.ts';
import type { Source } from '../../source/client.ts';
import type { KnownAdvertiser } from '../../store/accounts/advertisers.ts';
import type { PageSummary } from '../../store/applications/commit-page.ts';
import type { Store } from '../../store/store.ts';
import type { UnfinishedSweep } from '../../store/sweeps/continue-sweep.ts';
import type { ReadRange, Sweep, SweepProgress, SweepPurpose } from '../../store/sweeps/sweeps.ts';
import type { HeldLane } from '../accounts/held-lane.ts';
import {
  type Asker,
  commitAnswer,
  compared,
  createAsker,
  needsNoCommit,
  nothingWritten,
  type ReceivedAnswer,
  toReadPage,
} from './answers.ts';

export interface SweepDeps {
  readonly store: Pick<Store, 'advertisers' | 'applications' | 'evidence' | 'leases' | 'sweeps'>;
  readonly source: Source;
  /** Called after each answer that is committed, with the counts of that answer. */
  readonly onStep?: ((step: SweepCounts) => void) | undefined;
}

const counted = ['requests', 'received', 'added', 'changed', 'quarantined', 'bytes'] as const;

export interface SweepCounts extends Readonly<Record<(typeof counted)[number], number>> {
  /** Applications that the sweep has found in its range so far. */
  readonly found: number;
  /** The share of the range that is read (0 to 1); null while it cannot be estimated. */
  readonly share: number | null;
}

const noCounts = { requests: 0, received: 0, added: 0, changed: 0, quarantined: 0, bytes: 0 };
export const nothingCounted: SweepCounts = { ...noCounts, found: 0, share: null };

/** The sums of two counts. How far the sweep has come is told by the later one. */
export function addUp(earlier: SweepCounts, later: SweepCounts): SweepCounts {
  return { ...later, ...Object.fromEntries(counted.map((name) => [name, earlier[name] + later[name]])) };
}

export interface SweepSummary extends Conclusion {
  readonly openRanges: number;
  readonly tryDates: boolean;
  /** When it began, by the database's clock. */
  readonly startedAt: Date;
  /** It stopped early, for more urgent work or at its time limit. */
  readonly stopped: boolean;
}

export interface ReadContext {
  readonly lane: HeldLane;
  readonly advertiser: KnownAdvertiser;
  /** How long an application may take to appear in the source's list after its submission. */
  readonly lagMs: number;
  /** Checked between two answers. A sweep that stops keeps its open ranges and continues when it is run again. */
  readonly hasToStop?: (() => boolean) | undefined;
  /** Submission date at which the first sweep begins, in milliseconds since the epoch; otherwise it reads everything. */
  readonly startAt?: number | null | undefined;
}

export async function loadState({ store }: Pick<SweepDeps, 'store'>, { advertiser, lagMs }: ReadContext) {
  return await store.sweeps.loadSyncState({ advertiserId: advertiser.advertiserId, lagMs });
}

export interface SweepRequest extends ReadContext {
  readonly purpose: SweepPurpose;
  /** The caller knows that there is no interrupted sweep of this range, so none is looked up. */
  readonly isNew?: boolean | undefined;
  /** Requests in flight at once. With 2, the next answer is fetched while one is committed. */
  readonly parallel: number;
}

export interface RangeReader {
  readonly range: ReadRange;
  readonly asker: Asker;
  begin(sweepId: bigint, startedAt: Date): RangeState;
  decode(found: UnfinishedSweep): RangeState;
}

/** How far a sweep has come. It never changes: an answer leads to the next one. */
export interface RangeState {
  readonly found: number;
  readonly share: number | null;
  /** The next question. It may depend on stored ids. */
  ask(
    inFlight: readonly Question[],
  ): Promise<Question | { readonly kind: 'wait' } | ({ readonly kind: 'done' } & SweepEnd)>;
  /** The first lines of evidence, for a sweep that has no row yet. */
  open(advertiserId: bigint, sweep: Sweep): Promise<readonly LineBody[]>;
  /**
   * Learns from an answer and asks ahead: if nothing is left, `ended` is the certificate, committed with this page. `others` are the
   * questions in flight.
   */
  learn(
    answer: ReceivedAnswer,
    others: readonly Question[],
    isRecorded: boolean,
  ): Omit<SweepProgress, 'bytes'> & { readonly next: RangeState };
}

interface SweepRun {
  readonly sweep: Sweep;
  readonly state: RangeState;
  /** Whether it has a row. */
  readonly isRecorded: boolean;
}

/** Reads the range to its end. Continues an interrupted sweep of the same range, so after a failure the caller runs it again. */
export async function sweep(deps: SweepDeps, request: SweepRequest, reader: RangeReader): Promise<SweepSummary> {
  const { store } = deps;
  const { advertiser, lane, purpose } = request;
  const { range } = reader;
  const abort = new AbortController();
  const signal = AbortSignal.any([lane.signal, abort.signal]);
  const askSource = createAsker(deps, advertiser, signal);
  const inFlight = new Map<Question, Promise<ReceivedAnswer>>();

  async function continueOrBegin(): Promise<SweepRun> {
    if (advertiser.advertiserId !== null && !request.isNew) {
      const { advertiserId } = advertiser;
      const found = await store.sweeps.loadUnfinished({ advertiserId, lane: lane.lease.lane, purpose, ...range });
      if (found) return { sweep: found, state: reader.decode(found), isRecorded: true };
    }
    const { seq: sweepId, at: startedAt } = await store.sweeps.begin();
    const begun = { sweepId, purpose, ...range, startedAt };
    return { sweep: begun, state: reader.begin(sweepId, startedAt), isRecorded: false };
  }

  /** Sends the next questions, unless the sweep has to stop. Returns how it ends, if nothing is left to ask. */
  async function send(state: RangeState, hasToStop: boolean): Promise<SweepEnd | null> {
    while (inFlight.size < request.parallel) {
      const next = await state.ask([...inFlight.keys()]);
      if ('kind' in next) return next.kind === 'done' ? next : null;
      if (hasToStop) return null;
      const sent = askSource(next);
      // It may fail while another answer is being committed. The race handles the failure.
      sent.catch(() => {});
      inFlight.set(next, sent);
    }
    return null;
  }

  /** Commits an answer with what the sweep learns from it; compares and learns again if the stored rows have changed meanwhile. */
  async function commit(received: ReceivedAnswer): Promise<PageSummary> {
    const others = [...inFlight.keys()];
    const { sweep, state, isRecorded } = run;
    const { advertiserId } = advertiser;
    // Until the first page pins the advertiser's id, nothing can be recorded. What an answer without a page teaches stays in memory.
    if (advertiserId === null) {
      run = { ...run, state: state.learn(received, others, isRecorded).next };
      return nothingWritten;
    }
    const page = toReadPage(lane, advertiserId, sweep, received);
    return await commitAnswer(deps, page, reader.asker, async (diff) => {
      const answer = compared(received, diff);
      const { next, ...progress } = state.learn({ ...received, answer }, others, isRecorded);
      const { ended } = progress;
      // A poll that found nothing new writes no row. Any other sweep does, even if one empty answer ends it.
      const isQuiet = purpose === 'live' && !isRecorded && ended !== null && ended.risk !== 'doubt';
      const isToRecord = !(isQuiet && needsNoCommit(diff));
      run = { sweep, state: next, isRecorded: isToRecord };
      if (!isToRecord) return null;
      const opening = isRecorded ? [] : await state.open(advertiserId, sweep);
      return { ...progress, bytes: received.page?.bytes ?? 0, evidence: [...opening, ...progress.evidence] };
    });
  }

  /** A newer request has seen the same applications, so changes were not written: asks again. The sweep learns nothing from it. */
  async function askAgain({ question }: ReceivedAnswer): Promise<void> {
    const { advertiserId } = advertiser;
    for (let tries = 0; tries < mostRepeats && advertiserId !== null; tries++) {
      const page = toReadPage(lane, advertiserId, run.sweep, await askSource(question));
      const { stale } = await commitAnswer(deps, page, reader.asker);
      if (stale.length === 0) return;
    }
  }

  let run = await continueOrBegin();
  try {
    for (;;) {
      const stopped = request.hasToStop?.() ?? false;
      const ended = await send(run.state, stopped);
      const { startedAt } = run.sweep;
      if (ended !== null) return { ...ended, startedAt, stopped: false };
      if (stopped && inFlight.size === 0) {
        await store.sweeps.noteStop(advertiser.advertiserId, run.sweep.sweepId, notEnded.reason);
        return { ...notEnded, startedAt, stopped };
      }
      const answer = await Promise.race(inFlight.values());
      inFlight.delete(answer.question);
      const { added, changed, quarantined, stale } = await commit(answer);
      const { page } = answer;
      const { found, share } = run.state;
      const received = page?.applications.length ?? 0;
      deps.onStep?.({ found, share, requests: 1, received, added, changed, quarantined, bytes: page?.bytes ?? 0 });
      if (stale.length > 0) await askAgain(answer);
    }
  } finally {
    abort.abort();
    await Promise.allSettled(inFlight.values());
  }
}

const mostRepeats = 5;

/** The result of a sweep that has not ended. The open ranges are not counted: 1 stands for at least one. */
const notEnded = {
  certificate: 'unproven',
  risk: 'doubt',
  reason: 'paused for other work; continues by itself',
  tryDates: false,
  openRanges: 1,
} as const;

// Reads a range of submission dates, window by window, and stores what it is shown. It proves nothing and can contradict a certificate.
// An interrupted one continues with the windows that are left.

import { decode, encode } from '../../domain/coverage/state.ts';
import { askDates, beginDates, type DateProgress, learnDates } from '../../domain/dates.ts';
import type { PageSummary } from '../../store/applications/commit-page.ts';
import type { Sweep, SweepProgress } from '../../store/sweeps/sweeps.ts';
import { type RetryOptions, retry } from '../retry.ts';
import { createAsker, type ReceivedAnswer } from './ask-source.ts';
import {
  endContradictedCertificates,
  nothingWritten,
  type SweepRequest,
  toReadPage,
  untilCommitted,
} from './commit-answer.ts';
import {
  addPage,
  askAgain,
  createStop,
  notEnded,
  nothingRead,
  reasons,
  type SweepDeps,
  type SweepSummary,
} from './sweep.ts';

/** Seconds since 1970, both included; `to` null is up to the newest. */
export interface DateRange {
  readonly from: bigint;
  readonly to: bigint | null;
}

export type DateRequest = Omit<SweepRequest, 'plan' | 'pages' | 'isNew' | 'parallel'> & { readonly dates: DateRange };

const certificate = {
  certificate: 'assumed',
  risk: 'harmless',
  reason: 'read by date; only a sweep by ids can prove that nothing is missing',
} as const;

/** Reads the dates to their end. */
export async function readDates(deps: SweepDeps, request: DateRequest): Promise<SweepSummary> {
  const { store } = deps;
  const { lane, purpose, dates } = request;
  const retryOptions: RetryOptions = { retryForMs: request.retryForMs, signal: lane.signal, onWait: deps.onWait };
  const asker = createAsker(deps, request.advertiser, retryOptions);
  const isStopped = createStop(request);
  let { sweep, state } = await retry(retryOptions, load);
  let totals = nothingRead;

  async function load(): Promise<{ sweep: Sweep; state: DateProgress }> {
    const key = { axis: 'date', low: dates.from, high: dates.to, purpose } as const;
    const { advertiserId } = asker.advertiser;
    const found = advertiserId && (await store.sweeps.loadUnfinished({ advertiserId, lane: lane.lease.lane, ...key }));
    if (found) return { sweep: found, state: decode<DateProgress>(found.facts) };
    const { sweepId, startedAt } = await store.sweeps.begin();
    const now = BigInt(Math.floor(startedAt.getTime() / 1_000));
    return { sweep: { ...key, sweepId, startedAt }, state: beginDates(dates.from, dates.to, now) };
  }

  async function commit(answer: ReceivedAnswer): Promise<void> {
    await asker.identify(answer);
    const { heard } = answer;
    state = learnDates(state, heard.page ? { ...heard.answer, news: new Set(), lacking: [] } : heard.answer);
    const { advertiserId } = asker.advertiser;
    if (advertiserId === null) return;
    // A recheck by date follows a sweep by ids that has already ended with a doubt.
    const applications = purpose === 'backfill' ? (heard.page?.applications ?? []) : [];
    if (applications.length > 0)
      await retry(retryOptions, () =>
        endContradictedCertificates(store, advertiserId, applications, 'a backfill by date'),
      );
    let tries = 0;
    const summary = await retry(retryOptions, async () => {
      // The answer to the last commit may have been lost.
      const isEnded = tries++ > 0 && (await store.sweeps.loadOutcome(advertiserId, sweep.sweepId)) !== null;
      return isEnded ? nothingWritten : await save(advertiserId, answer);
    });
    totals = { ...addPage(totals, answer, summary), found: state.found };
    deps.onStep?.(totals);
    if (summary.stale.length > 0) await askAgain(deps, request, retryOptions, asker, { sweep }, answer);
  }

  async function save(advertiserId: bigint, answer: ReceivedAnswer): Promise<PageSummary> {
    const page = toReadPage(lane, advertiserId, sweep, answer);
    const isEnd = askDates(state) === null;
    const progress: SweepProgress = {
      ...{ facts: encode(state), dropped: [], added: [], lacked: [], unreadable: [], evidence: [] },
      bytes: answer.heard.page?.bytes ?? 0,
      cursor: isEnd && state.trouble === null && lane.lease.lane === 'live' && dates.to === null ? state.highest : null,
      ended: isEnd
        ? { ...conclude(state), openRanges: 0, marksAbsent: false, learned: null, lagMs: request.lagMs }
        : null,
    };
    return await untilCommitted(async () =>
      store.applications.commitPage(page, await store.applications.diffPage(page), progress),
    );
  }

  for (;;) {
    const { advertiser } = asker;
    const question = askDates(state);
    if (question === null)
      return { ...totals, advertiser, stopped: null, tryDates: false, openRanges: 0, absent: 0, ...conclude(state) };
    const stopped = isStopped();
    if (stopped) {
      const reason = reasons[stopped];
      await retry(retryOptions, () => store.sweeps.noteStop(advertiser.advertiserId, sweep, reason));
      return { ...totals, advertiser, stopped, reason, ...notEnded };
    }
    await commit(await asker.send(question));
  }
}

function conclude({ trouble }: DateProgress) {
  return trouble === null ? certificate : ({ certificate: 'unproven', risk: 'doubt', reason: trouble } as const);
}

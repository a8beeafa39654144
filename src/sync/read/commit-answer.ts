// Commits a page together with the sweep state derived from it in one transaction, and loads a sweep again from its rows. Whose answer it
// is has been asked before (account-identity.ts).
import { ask, begin, type Done, learn, renew } from '../../domain/coverage/coverage.ts';
import type { Known } from '../../domain/coverage/next-question.ts';
import type { Question } from '../../domain/coverage/question.ts';
import { toAsked } from '../../domain/coverage/seen.ts';
import { decodeFacts, decodeRange, encode, findChanges, type State } from '../../domain/coverage/sweep-state.ts';
import type { PageSummary } from '../../store/applications/commit-page.ts';
import type { Seen } from '../../store/applications/diff-page.ts';
import type { Store } from '../../store/store.ts';
import type { Advertiser } from '../../store/sweeps/advertisers.ts';
import type { Learned } from '../../store/sweeps/continue-sweep.ts';
import type { Progress, Sweep, Ticket } from '../../store/sweeps/sweeps.ts';
import type { Heard } from './ask-list.ts';
import type { SweepRequest } from './sweep-request.ts';

/** An answer that came, with its question and its number. */
export interface ReceivedAnswer {
  readonly question: Question;
  readonly ticket: Ticket;
  readonly heard: Heard;
}

/** A sweep with its reasoning; `recorded` once it has a row. */
export interface Run {
  readonly sweep: Sweep;
  readonly state: State;
  readonly recorded: boolean;
}

/** A source may be another one after this long: what it can return has to be seen again. */
const dayMs = 86_400_000;

/** The interrupted sweep of the same range, or a new one; `fallback` stands in for one that has no row yet. */
export async function loadRun(
  store: Store,
  request: SweepRequest,
  advertiser: Advertiser,
  fallback?: Run,
): Promise<Run> {
  const { purpose, plan, lane } = request;
  const low = plan.from ?? 1n;
  const high = plan.to ?? null;
  const axis = plan.axis ?? 'id';
  const isNew = request.isNew && fallback === undefined;
  if (advertiser.advertiserId !== null && !isNew) {
    const { advertiserId } = advertiser;
    const found = await store.loadUnfinished({ advertiserId, lane: lane.lease.lane, purpose, axis, low, high });
    if (found) {
      const state = { facts: decodeFacts(found.facts), ranges: found.ranges.map(decodeRange) };
      return { sweep: found, state: found.idleMs > dayMs ? renew(state) : state, recorded: true };
    }
  }
  if (fallback) return fallback;
  const { sweepId, startedAt } = await store.beginSweep();
  const startedSeconds = BigInt(Math.floor((startedAt.getTime() - request.lagMs) / 1_000));
  const state = begin({ ...plan, recentFrom: startedSeconds, seed: Number(sweepId % 4_294_967_296n) });
  return { sweep: { sweepId, purpose, axis, low, high, startedAt }, state, recorded: false };
}

/** Where the reasoning stands when it is an answer's turn; `others` are under way. */
export interface Turn {
  readonly run: Run;
  readonly others: readonly Question[];
}

/** When an answer may be learned from, and whether its new rows may be written before. */
export interface Queueing {
  readonly turn: () => Promise<Turn>;
  readonly isApart: boolean;
  /** True: outside the sweep's reasoning, nothing is learned. */
  readonly isOutside: boolean;
}

/** Keeps an answer and what it teaches in one transaction. */
export async function commitAnswer(
  store: Store,
  request: SweepRequest,
  advertiser: Advertiser,
  { sweep, state: { facts } }: Run,
  { question, ticket, heard }: ReceivedAnswer,
  { turn, isApart, isOutside }: Queueing,
): Promise<{ run: Run; summary: PageSummary }> {
  const page = heard.kind === 'page' ? heard.page : null;
  let committed: Run | null = null;
  const toProgress = async (seen: Seen): Promise<Progress> => {
    const { run, others } = await turn();
    const state = isOutside
      ? run.state
      : learn(run.state, question, heard.kind === 'page' ? { ...heard.answer, ...seen } : heard.answer);
    committed = { ...run, state };
    const next = ask(state, others, request.known);
    const done = !isOutside && next !== null && 'kind' in next ? next : null;
    const before = run.recorded ? run.state : { ...run.state, ranges: [] };
    const { dropped, added } = findChanges(before, state);
    return {
      sweep: run.sweep,
      outside: isOutside,
      // A poll that brought nothing writes no row; any other sweep does, also when one empty answer ends it.
      quiet: isOutside || (run.sweep.purpose === 'live' && !run.recorded && done !== null && done.risk !== 'doubt'),
      facts: encode(state.facts),
      dropped: dropped.map((range) => range.from),
      added: added.map((range) => ({ low: range.from, high: range.to, state: range.state, evidence: encode(range) })),
      bytes: page?.bytes ?? 0,
      cursor: request.lane.lease.lane === 'live' && run.sweep.high === null ? toReadThrough(state, done) : null,
      ended: done && {
        certificate: done.certificate,
        risk: done.risk,
        reason: done.reason,
        absent: done.absent,
        lagMs: request.lagMs,
        learned: state.facts.rigor === 'proof' ? JSON.stringify(toLearned(state, done, request.known)) : null,
      },
    };
  };
  // Before the first answer tells whose data it is there is no account to record it for: an abandoned answer is learned from in memory.
  if (advertiser.advertiserId === null) {
    await toProgress({ unheld: [], missing: [] });
    return { run: toCommitted(), summary: { added: 0, changed: 0, quarantined: 0, recorded: false, stale: [] } };
  }
  const summary = await store.commitPage({
    lease: request.lane.lease,
    advertiserId: advertiser.advertiserId,
    seq: ticket.seq,
    applications: page?.applications ?? [],
    rejects: page?.rejects ?? [],
    startedAt: sweep.startedAt,
    askedAt: ticket.at,
    asked: page && !isOutside ? toAsked(question, facts.heldBefore) : null,
    learn: toProgress,
    isApart,
  });
  const run = toCommitted();
  return { run: { ...run, recorded: run.recorded || summary.recorded }, summary };

  function toCommitted(): Run {
    if (committed === null) throw new Error('A page was kept and nothing was learned from it.');
    return committed;
  }
}

/** For an answer that a sweep's reasoning has not asked for: it is kept at once, and nothing is learned from it. */
export function outside(run: Run): Queueing {
  return { turn: async () => ({ run, others: [] }), isApart: false, isOutside: true };
}

/** Up to where everything was read: below the lowest range that is still open, or all of it at the end. */
function toReadThrough({ facts, ranges }: State, done: Done | null): bigint | null {
  if (facts.axis === 'date' || facts.walk !== null)
    return done && done.certificate !== 'unproven' ? facts.highest : null;
  const open = ranges.find((range) => range.state !== 'closed');
  if (open === undefined) return facts.highest;
  return open.from > 1n ? open.from - 1n : null;
}

function toLearned({ facts }: State, done: Done, known: Known | undefined): Learned {
  return {
    order: done.capacity.order,
    // Questions that are small because of it show no more that pages end at different lengths.
    capacity: { ...done.capacity, uneven: done.capacity.uneven || known?.uneven === true },
    together: facts.walk === null,
    inclusiveAfter: facts.inclusive.after.after || facts.inclusive.both.after,
    inclusiveBefore: facts.inclusive.before.before || facts.inclusive.both.before,
  };
}

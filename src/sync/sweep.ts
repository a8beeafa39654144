// A sweep: one reading of a range of the list until it is closed. It carries questions to the source and answers to the store;
// what to ask and what an answer proves is decided in domain/coverage.ts, and every step is booked with the page it follows from.
import { toAbsentLimit } from '../domain/certificate.ts';
import { ask, begin, type Done, learn, type Plan, renew } from '../domain/coverage.ts';
import type { Known } from '../domain/next-question.ts';
import type { Question } from '../domain/question.ts';
import {
  decodeFacts,
  decodeRange,
  encode,
  type State,
  toChanges,
  toDirection,
  toShare,
} from '../domain/sweep-state.ts';
import { Trouble } from '../domain/trouble.ts';
import type { Source } from '../source/client.ts';
import type { Advertiser } from '../store/advertisers.ts';
import type { PageSummary, Seen } from '../store/pages.ts';
import type { Learned } from '../store/resume.ts';
import type { Store } from '../store/store.ts';
import type { Progress, Purpose, Sweep } from '../store/sweeps.ts';
import { type Heard, hear } from './asking.ts';
import type { HeldLane } from './lane.ts';
import { canPass, type Patience, patiently } from './patience.ts';

export interface SweepDeps {
  readonly store: Store;
  readonly source: Source;
  /** Told after every answer. */
  readonly onStep?: ((totals: SweepTotals) => void) | undefined;
  readonly onWait?: Patience['onWait'];
}

export interface SweepRequest {
  readonly lane: HeldLane;
  readonly advertiser: Advertiser;
  readonly purpose: Purpose;
  readonly plan: Plan;
  /** Held ids to cut the questions at, for a range that was read before. */
  readonly known?: Known | undefined;
  /** Questions under way at once: while one answer is committed, the next is fetched. */
  readonly parallel: number;
  /** How long an application may take to show at the source after its submission. */
  readonly lagMs: number;
  /** How long the source or the database may be gone. */
  readonly patienceMs: number;
}

export interface SweepTotals {
  /** Applications found in the range so far, and how much of it is read (0 to 1, null while nobody can tell). */
  readonly found: number;
  readonly share: number | null;
  readonly requests: number;
  readonly received: number;
  readonly added: number;
  readonly changed: number;
  readonly quarantined: number;
  readonly bytes: number;
}

export interface SweepSummary extends SweepTotals {
  readonly advertiser: Advertiser;
  readonly certificate: Done['certificate'];
  readonly reason: string;
  readonly openRanges: number;
  readonly absent: number;
  readonly capacity: Done['capacity'];
}

/** Reads the range to its end, going on where an interrupted sweep of the same range stopped. */
export async function sweep(deps: SweepDeps, request: SweepRequest): Promise<SweepSummary> {
  const abort = new AbortController();
  const signal = AbortSignal.any([request.lane.signal, abort.signal]);
  const patience: Patience = { patienceMs: request.patienceMs, signal, onWait: deps.onWait };
  const { store } = deps;

  let { advertiser } = request;
  let run = await patiently(patience, () => loadRun(store, request, advertiser));
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
  const flights = new Map<Question, Promise<Landing>>();

  async function fly(question: Question): Promise<Landing> {
    return await patiently(patience, async () => {
      const seq = await store.takeSeq();
      return { question, seq, heard: await hear(deps.source, question, signal) };
    });
  }

  /** Commits an answer. After a failure the rows say whether it was kept: what was in memory is dropped and read again. */
  async function land(landing: Landing): Promise<void> {
    const page = landing.heard.kind === 'page' ? landing.heard.page : null;
    if (page) advertiser = await patiently(patience, () => recogniseAdvertiser(store, advertiser, page));
    const stepsBefore = run.state.facts.requests;
    const summary = await patiently(patience, async () => {
      if (run.state.facts.requests > stepsBefore) return null;
      try {
        const landed = await commitLanding(store, request, advertiser, run, landing, [...flights.keys()]);
        run = landed.run;
        return landed.summary;
      } catch (error) {
        if (canPass(error)) run = await patiently(patience, () => loadRun(store, request, advertiser, run));
        throw error;
      }
    });
    totals = {
      found: run.state.facts.found,
      share: toShare(run.state),
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

  /** A change that came too late to be believed is asked for alone, with a number of its own. */
  async function askAgain(id: bigint): Promise<void> {
    for (let tries = 0; tries < 5; tries++) {
      const alone = {
        axis: 'id',
        purpose: 'alone',
        from: id,
        to: id,
        after: id - 1n,
        before: id + 1n,
        expects: id,
      } as const;
      const landing = await fly(alone);
      const { summary } = await commitLanding(store, request, advertiser, run, landing, null);
      if (summary.stale.length === 0) return;
    }
  }

  try {
    for (;;) {
      let done: Done | undefined;
      while (flights.size < request.parallel && !done) {
        const next = ask(run.state, [...flights.keys()], request.known);
        if (next === null) break;
        if ('kind' in next) done = next;
        else flights.set(next, fly(next));
      }
      if (done) return { ...totals, advertiser, ...toEnd(done) };
      const landing = await Promise.race(flights.values());
      flights.delete(landing.question);
      await land(landing);
    }
  } finally {
    abort.abort();
    await Promise.allSettled(flights.values());
  }
}

interface Landing {
  readonly question: Question;
  readonly seq: bigint;
  readonly heard: Heard;
}

/** A sweep with its reasoning; `booked` once it has a row. */
interface Run {
  readonly sweep: Sweep;
  readonly state: State;
  readonly booked: boolean;
}

/** A source may be another one after this long: what it can return has to be seen again. */
const dayMs = 86_400_000;

/** The interrupted sweep of the same range, or a new one; `fallback` stands in for one that has no row yet. */
async function loadRun(store: Store, request: SweepRequest, advertiser: Advertiser, fallback?: Run): Promise<Run> {
  const { purpose, plan, lane } = request;
  const low = plan.from ?? 1n;
  const high = plan.to ?? null;
  const axis = plan.axis ?? 'id';
  if (advertiser.advertiserId !== null) {
    const { advertiserId } = advertiser;
    const found = await store.loadUnfinished({ advertiserId, lane: lane.lease.lane, purpose, axis, low, high });
    if (found) {
      const state = { facts: decodeFacts(found.facts), ranges: found.ranges.map(decodeRange) };
      return { sweep: found, state: found.idleMs > dayMs ? renew(state) : state, booked: true };
    }
  }
  if (fallback) return fallback;
  const { sweepId, startedAt } = await store.beginSweep();
  return { sweep: { sweepId, purpose, axis, low, high, startedAt }, state: begin(plan), booked: false };
}

/** Whose data is it? The first answer pins the id; any other id afterwards halts the advertiser, and nothing of it is kept. */
async function recogniseAdvertiser(
  store: Store,
  advertiser: Advertiser,
  page: { readonly advertiserId: bigint | null; readonly agentId: string | null },
): Promise<Advertiser> {
  const { name, advertiserId } = advertiser;
  if (advertiserId === null && page.advertiserId === null) {
    throw new Trouble(
      'mismatch',
      'The answer does not say whose applications it lists; set ADVERTISER_ID. Nothing of it was kept.',
    );
  }
  if (advertiserId !== null && page.advertiserId !== null && page.advertiserId !== advertiserId) {
    const reason = `the source answered with data of advertiser ${page.advertiserId} instead of ${advertiserId}; nothing of it was kept.`;
    await store.haltAdvertiser(name, 'mismatch', reason);
    throw new Trouble('mismatch', `${name} is halted: ${reason}`);
  }
  let known = advertiser;
  if (advertiserId === null && page.advertiserId !== null) known = await store.pinAdvertiser(name, page.advertiserId);
  if (page.agentId !== known.agentId) {
    await store.noteAgent(name, page.agentId);
    known = { ...known, agentId: page.agentId };
  }
  return known;
}

/** Keeps an answer and what it teaches in one transaction. `others` null: outside the sweep's reasoning, nothing is learned. */
async function commitLanding(
  store: Store,
  request: SweepRequest,
  advertiser: Advertiser,
  run: Run,
  { question, seq, heard }: Landing,
  others: readonly Question[] | null,
): Promise<{ run: Run; summary: PageSummary }> {
  const page = heard.kind === 'page' ? heard.page : null;
  let state = run.state;
  const toProgress = (seen: Seen): Progress => {
    state =
      others === null
        ? run.state
        : learn(run.state, question, heard.kind === 'page' ? { ...heard.answer, ...seen } : heard.answer);
    const next = ask(state, others ?? [], request.known);
    const done = others !== null && next !== null && 'kind' in next ? next : null;
    const before = run.booked ? run.state : { ...run.state, ranges: [] };
    const { dropped, added } = toChanges(before, state);
    return {
      sweep: run.sweep,
      quiet: others === null || (!run.booked && done !== null && done.certificate !== 'unproven'),
      facts: encode(state.facts),
      dropped: dropped.map((range) => range.from),
      added: added.map((range) => ({ low: range.from, high: range.to, state: range.state, evidence: encode(range) })),
      bytes: page?.bytes ?? 0,
      cursor: request.lane.lease.lane === 'live' && run.sweep.high === null ? toCursor(state, done) : null,
      ended: done && {
        certificate: done.certificate,
        reason: done.reason,
        absent: done.absent,
        lagMs: request.lagMs,
        learned: state.facts.rigor === 'proof' ? JSON.stringify(toLearned(state, done)) : null,
      },
    };
  };
  const isRange = question.axis === 'id' && (question.purpose === 'range' || question.purpose === 'again');
  const summary = await store.commitPage({
    lease: request.lane.lease,
    advertiserId: advertiser.advertiserId ?? 0n,
    seq,
    applications: page?.applications ?? [],
    rejects: page?.rejects ?? [],
    startedAt: run.sweep.startedAt,
    // One more than the brake allows is enough to tell withdrawn applications from a source that answers wrongly.
    asked:
      isRange && page && question.from !== null
        ? { low: question.from, high: question.to, mostMissing: toAbsentLimit(run.state.facts.heldBefore) + 1 }
        : null,
    learn: toProgress,
  });
  return { run: { ...run, state, booked: run.booked || summary.booked }, summary };
}

/** Up to where everything was read: below the lowest range that is still open, or all of it at the end. */
function toCursor({ facts, ranges }: State, done: Done | null): bigint | null {
  if (facts.axis === 'date' || facts.walk !== null)
    return done && done.certificate !== 'unproven' ? facts.highest : null;
  const open = ranges.find((range) => range.state !== 'closed');
  if (open === undefined) return facts.highest;
  return open.from > 1n ? open.from - 1n : null;
}

function toLearned({ facts }: State, done: Done): Learned {
  return {
    order: toDirection(facts),
    capacity: done.capacity,
    together: facts.walk === null,
    inclusiveAfter: facts.inclusiveAfter,
    inclusiveBefore: facts.inclusiveBefore,
  };
}

function toEnd(done: Done) {
  const { certificate, reason, capacity, open, absent } = done;
  return { certificate, reason, capacity, openRanges: open.length, absent: absent.length };
}

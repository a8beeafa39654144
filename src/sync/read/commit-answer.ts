// Commits an answer: compares its page with what is stored (reads), learns from it (pure), and commits both together (writes). Loads an
// interrupted sweep again from its rows. account-identity.ts has checked before whose answer it is.
import { ask, begin, type Done, learn, renew } from '../../domain/coverage/coverage.ts';
import type { Known } from '../../domain/coverage/next-question.ts';
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
import type { Sweep, SweepProgress, Ticket } from '../../store/sweeps/sweeps.ts';
import { beginProof, type Proof, recordAudited, recordStep, type Step, toOpening } from './record-evidence.ts';
import type { Heard } from './request-page.ts';
import type { SweepRequest } from './sweep-request.ts';

/** An answer that came, with its question and its number. */
export interface ReceivedAnswer {
  readonly question: Question;
  readonly ticket: Ticket;
  readonly heard: Heard;
  readonly tookMs: number;
  /** The last record of the proof that was committed when the question was sent. */
  readonly knew: number;
}

/** A sweep with its reasoning; `recorded` once it has a row. */
export interface SweepRun {
  readonly sweep: Sweep;
  readonly state: State;
  readonly recorded: boolean;
  /** Null where the sweep proves nothing: polls, sweeps by date, and sweeps of a version that kept no evidence. */
  readonly proof: Proof | null;
}

/** After a day the source may have changed: its limits are measured again. */
const forgetAfterMs = 86_400_000;

/** The interrupted sweep of the same range, or a new one; `fallback` stands in for one that has no row yet. */
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
 * Commits an answer together with what the sweep learns from it; `others` are the questions in flight. If what is
 * stored has changed since the page was compared, it is compared and learned from again.
 */
export async function commitAnswer(
  store: Pick<Store, 'applications' | 'evidence' | 'sweeps'>,
  request: SweepRequest,
  advertiser: KnownAdvertiser,
  run: SweepRun,
  answer: ReceivedAnswer,
  others: readonly Question[],
): Promise<{ readonly run: SweepRun; readonly summary: PageSummary }> {
  // Before the first answer tells whose data it is there is no account to record it for: an abandoned answer is learned from in memory.
  if (advertiser.advertiserId === null) {
    const { state } = learnFrom(request, run, answer, others, { unheld: [], unshown: [] });
    return { run: { ...run, state }, summary: nothingWritten };
  }
  const { advertiserId } = advertiser;
  const previous = run.proof?.end === null ? await store.evidence.loadLastHashes(advertiserId) : [];
  const asked = answer.heard.kind === 'page' ? toExpectedIds(answer.question, run.state.facts.heldBefore) : null;
  const page = toReadPage(request, advertiser.advertiserId, run, answer, asked);
  for (let tries = 0; tries < mostTries; tries++) {
    const diff = await store.applications.diffPage(page);
    const { state, progress, step } = learnFrom(request, run, answer, others, diff.seen);
    // A poll that brought nothing writes no row; any other sweep does, also when one empty answer ends it.
    const isQuiet =
      run.sweep.purpose === 'live' && !run.recorded && progress.ended !== null && progress.ended.risk !== 'doubt';
    if (isQuiet && needsNoCommit(diff)) return { run: { ...run, state }, summary: nothingWritten };
    const opening = run.proof?.end === null ? toOpening(advertiserId, run.sweep, run.state, run.proof, previous) : null;
    const records = run.proof && recordStep(run.proof, opening, step);
    const evidence = run.proof && records && { records, bodyKey: run.proof.bodyKey };
    const summary = await store.applications.commitPage(page, diff, { ...progress, evidence });
    if (summary === 'outdated') continue;
    const end = records?.at(-1) ?? null;
    const proof = run.proof && { ...run.proof, end: end && { n: end.n, hash: end.hash } };
    return { run: { ...run, state, recorded: true, proof }, summary };
  }
  throw toContended();
}

/** The lag that the sweep began with, by which its records tell recent applications from others: the setting may have changed since. */
function lagOf({ startedAt }: Sweep, { facts: { recentFrom } }: State, lagMs: number): number {
  if (recentFrom === null) return lagMs;
  const begunMs = startedAt.getTime() - Number(recentFrom) * 1_000;
  // The records know whole seconds.
  return begunMs >= lagMs && begunMs < lagMs + 1_000 ? lagMs : begunMs;
}

function toEnd({ certificate, risk, reason, open, absent }: Done): EndRecord {
  return { type: 'end', certificate, risk, reason, open: open.map(toBounds), absent: absent.length };
}

/** Commits the applications of an answer that the sweep did not ask for, such as a cross-check. The sweep learns nothing from it. */
export async function commitWithoutProgress(
  store: Pick<Store, 'applications' | 'sweeps'>,
  request: SweepRequest,
  advertiserId: bigint,
  run: SweepRun,
  answer: ReceivedAnswer,
): Promise<PageSummary> {
  return await commitApplications(store, toReadPage(request, advertiserId, run, answer, null));
}

/** Audits that a sweep keeps, about 0.4 kB each. Beyond these only what may contradict it is recorded: without rechecks they would grow for ever. */
export const mostAudits = 50;

/**
 * Commits the applications of an audit, and its record at the end of the proof that covers what was asked. An audit teaches no sweep
 * anything: it can only contradict.
 */
export async function commitAudit(
  store: Pick<Store, 'applications' | 'evidence' | 'sweeps'>,
  request: SweepRequest,
  advertiserId: bigint,
  run: SweepRun,
  answer: ReceivedAnswer,
): Promise<PageSummary> {
  const page = toReadPage(request, advertiserId, run, answer, null);
  const { question, heard, ...exchange } = answer;
  const place = question.axis === 'id' ? question.from : null;
  for (let tries = 0; tries < mostTries; tries++) {
    const proof = await store.evidence.loadAudited(advertiserId, place);
    if (proof === null || heard.kind !== 'page') return await commitApplications(store, page);
    const diff = await store.applications.diffPage(page);
    const isQuiet = diff.seen.unheld.length === 0 && question.from !== question.to;
    if (isQuiet && proof.audits >= mostAudits) return await commitApplications(store, page);
    const shown = { ...heard.answer, ...diff.seen };
    const record = recordAudited(proof, question, shown, heard, { ...exchange, knew: proof.end.n });
    const audited = { sweepId: proof.sweepId, records: [record] };
    const summary = await store.applications.commitPage(page, diff, { audited });
    if (summary !== 'outdated') return summary;
  }
  throw toContended();
}

/** Commits the applications of a page, and no progress. */
export async function commitApplications(
  store: Pick<Store, 'applications' | 'sweeps'>,
  page: ReadPage,
): Promise<PageSummary> {
  for (let tries = 0; tries < mostTries; tries++) {
    const diff = await store.applications.diffPage(page);
    if (needsNoCommit(diff)) return nothingWritten;
    const summary = await store.applications.commitPage(page, diff, null);
    if (summary !== 'outdated') return summary;
  }
  throw toContended();
}

const nothingWritten: PageSummary = { added: 0, changed: 0, quarantined: 0, stale: [] };

/** More would mean that another lane changes the same applications between every comparison and its commit. */
const mostTries = 20;

function toContended(): Trouble {
  return new Trouble('local', 'Another process keeps changing the applications of this page.', { at: 'database' });
}

/** Beside another lane the page is committed all the same: its ids and its number are remembered. */
function needsNoCommit({ writes, otherLane }: PageDiff): boolean {
  return writes === 0 && !otherLane;
}

function toReadPage(
  { lane }: SweepRequest,
  advertiserId: bigint,
  { sweep }: SweepRun,
  { ticket, heard }: ReceivedAnswer,
  asked: ExpectedIds | null,
): ReadPage {
  const { applications = [], rejects = [] } = heard.kind === 'page' ? heard.page : {};
  return { lease: lane.lease, advertiserId, seq: ticket.seq, sweep, askedAt: ticket.at, asked, applications, rejects };
}

/** What the sweep learns from an answer, by what was held before it. Pure. */
function learnFrom(
  { lane, lagMs, known }: SweepRequest,
  { sweep, state: before, recorded }: SweepRun,
  { question, heard, ...exchange }: ReceivedAnswer,
  others: readonly Question[],
  seen: Seen,
): { readonly state: State; readonly progress: Omit<SweepProgress, 'evidence'>; readonly step: Step } {
  const answer = heard.kind === 'page' ? { ...heard.answer, ...seen } : heard.answer;
  const state = learn(before, question, answer);
  const next = ask(state, others, known);
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
      absent: done.absent,
      lagMs: lagOf(sweep, state, lagMs),
      learned: state.facts.rigor === 'proof' ? JSON.stringify(toLearned(state, done, known)) : null,
    },
  };
  return {
    state,
    progress,
    step: { question, answer, heard, exchange, before, after: state, end: done && toEnd(done) },
  };
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
    // A source known to be uneven is asked small questions, which no longer show it: so the earlier knowledge is kept.
    capacity: { ...done.capacity, uneven: done.capacity.uneven || known?.uneven === true },
    together: facts.walk === null,
    inclusiveAfter: facts.inclusive.after.after || facts.inclusive.both.after,
    inclusiveBefore: facts.inclusive.before.before || facts.inclusive.both.before,
  };
}

// One duty at one desk: the advertiser's lane is taken, its list is read, and a refused credential halts it until it is let in again.
// What is to be read is written in read-tasks.ts; when, and what follows a failure, is the worker's business.
import { Trouble } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import type { ReadingState } from '../../store/sweeps/continue-sweep.ts';
import { requireRecognised } from '../read/account-identity.ts';
import { audit } from '../read/audit.ts';
import { type HeldLane, tryHoldLane } from '../read/held-lease.ts';
import { type Duty, readAgain, readNew, readRound, witnessByDate } from '../read/read-tasks.ts';
import type { SweepDeps, SweepSummary } from '../read/sweep.ts';
import type { Desk, DutyName } from './account-queue.ts';

export interface AttendDeps extends Pick<SweepDeps, 'onStep' | 'onWait'> {
  readonly store: Store;
  readonly now: () => number;
  /** Puts another duty on the same desk. */
  readonly demand: (name: DutyName) => void;
}

export interface AttendRequest {
  readonly owner: string;
  readonly leaseMs: number;
  readonly lagMs: number;
  readonly startAt: number | null;
  /** A poll is left out when another worker's ended within this time: their clocks tick together. */
  readonly notWithinMs: number;
  readonly signal: AbortSignal;
}

/** What a duty brought. */
export interface Attended {
  /** Whose list was read up to its newest end. */
  readonly polled: bigint | null;
  readonly sweeps: readonly SweepSummary[];
  /** Applications that a date witness or a random audit shows and the id filters did not. */
  readonly hidden: number;
}

const longReadings = ['round', 'day', 'fortnight', 'everything'] as const;
const nothing: Attended = { polled: null, sweeps: [], hidden: 0 };

/** How long one answer may be waited for before the desk rests instead: a poll must not keep its place from others. */
const pollPatienceMs = 5_000;
const longPatienceMs = 30_000;
/** A reading that takes longer goes on at its next turn, so that none keeps an account's lane to itself. */
const readingLimitMs = 3_600_000;

/** Does the duty if its lane is free; what another process does already is left to it. */
export async function attend(
  deps: AttendDeps,
  request: AttendRequest,
  desk: Desk,
  name: DutyName,
): Promise<Attended | null> {
  const { store } = deps;
  const { account, due } = desk;
  const advertiser = await store.ensureAdvertiser(account.name, account.advertiserId);
  requireRecognised(advertiser);
  const isPoll = name === 'poll';
  const { owner, leaseMs, signal } = request;
  const claim = { name: account.name, lane: 'live', owner, leaseMs, signal } as const;
  await using lane = await tryHoldLane(store, { ...claim, notWithinMs: isPoll ? request.notWithinMs : 0 });
  if (lane === null) return null;
  const duty = {
    ...{ lane, advertiser, lagMs: request.lagMs, startAt: request.startAt },
    patienceMs: isPoll ? pollPatienceMs : longPatienceMs,
    shouldPause: () => !isPoll && due.has('poll'),
    timeLimitMs: readingLimitMs,
  };
  const sweepDeps = { ...deps, source: account.source };
  try {
    const attended = isPoll ? await poll(deps, sweepDeps, desk, duty) : await carryOut(deps, sweepDeps, duty, name);
    if (advertiser.halt !== null) await store.unhaltAdvertiser(account.name, 'refused');
    if (attended.sweeps.at(-1)?.stopped === 'paused') due.add(name);
    if (attended.polled !== null) lane.markDone();
    return attended;
  } catch (error) {
    if (error instanceof Trouble && error.kind === 'refused' && !lost(lane)) {
      await store.haltAdvertiser(account.name, 'refused', error.message);
    }
    throw error;
  }
}

/** Reads what is new. What nobody finishes is put on the desk, since the lane is ours; a first reading of everything is no poll. */
async function poll(deps: AttendDeps, sweepDeps: SweepDeps, desk: Desk, duty: Duty): Promise<Attended> {
  const { advertiserId } = duty.advertiser;
  const reading = await deps.store.loadReading({ advertiserId, lagMs: duty.lagMs });
  const isFirst = isFirstReading(reading);
  const isTakenUp = longReadings.some((name) => desk.due.has(name));
  if (isFirst || (reading.unfinished.length > 0 && !isTakenUp)) deps.demand('round');
  if (isFirst) return nothing;
  return { ...nothing, polled: advertiserId, sweeps: [await readNew(sweepDeps, duty, reading)] };
}

/** Nothing to go on from yet, or a reading of everything that was interrupted. */
function isFirstReading({ pollFrom, covered, unfinished }: ReadingState): boolean {
  return pollFrom === null || (!covered && unfinished.length > 0);
}

async function carryOut(deps: AttendDeps, sweepDeps: SweepDeps, duty: Duty, name: DutyName): Promise<Attended> {
  const { advertiserId } = duty.advertiser;
  if (name === 'round') {
    // A first reading goes on to its end: a poll in between would read the rest of it as if it were new.
    const isFirst = isFirstReading(await deps.store.loadReading({ advertiserId, lagMs: duty.lagMs }));
    const sweeps = isFirst
      ? await readRound(sweepDeps, { ...duty, shouldPause: undefined })
      : await readRound(sweepDeps, duty, { onlyUnfinished: true });
    return { ...nothing, polled: isFirst ? (sweeps.at(-1)?.advertiser.advertiserId ?? null) : null, sweeps };
  }
  if (name === 'witness') {
    const hidden = await witnessByDate(sweepDeps, duty, deps.now());
    if (hidden > 0) deps.demand('everything');
    return { ...nothing, hidden };
  }
  if (name === 'audit') {
    const { contradictions } = await audit(sweepDeps, duty, Math.random);
    if (contradictions > 0) deps.demand('everything');
    return { ...nothing, hidden: contradictions };
  }
  const days = name === 'day' ? 1 : name === 'fortnight' ? 14 : null;
  const from = days === null ? 1n : await deps.store.loadRecentFrom(advertiserId, days);
  return from === null ? nothing : { ...nothing, sweeps: [await readAgain(sweepDeps, duty, { from })] };
}

/** A credential that is refused to whoever lost the lane says nothing about the one who holds it now. */
function lost({ signal }: HeldLane): boolean {
  return signal.aborted;
}

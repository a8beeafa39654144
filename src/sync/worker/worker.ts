// The worker: schedules put duties on desks and chores on the list, a drain follows the queue, and trouble makes one of them rest.
// It only schedules; what a duty does is written in run-task.ts and drain.ts. Nothing here ever gives up, and nothing waits for another.
import { createTask } from 'node-cron';
import { LeaseLost, type Trouble } from '../../domain/trouble.ts';
import { undeleted, type Wait } from '../../domain/wait.ts';
import type { Store } from '../../store/store.ts';
import type { SweepSummary } from '../read/sweep.ts';
import { toBackoffMs, toTrouble } from '../retry.ts';
import { createDesks, type Desk, type DutyName, type WorkerAccount } from './account-queue.ts';
import { startSchedules, type Turn } from './cron.ts';
import { type DrainingDeps, startDraining } from './download-loop.ts';
import { type Chore, runChore } from './maintenance.ts';
import { createTeller, type Pass, type PassName, toKind } from './pass.ts';
import { type Attended, type AttendRequest, attend } from './run-task.ts';
import { createWaits, keepWaits, type Waiting } from './waits.ts';

export interface WorkerDeps extends DrainingDeps {
  readonly store: Store;
  readonly accounts: readonly WorkerAccount[];
  readonly chores: readonly Chore[];
  /** What keeps infected bytes from being deleted at this moment. */
  readonly loadRecallTrouble: () => Trouble | null;
  readonly now: () => number;
}

export interface WorkerRequest extends Omit<AttendRequest, 'notWithinMs'> {
  /** Cron text of live polls; null is off. */
  readonly schedule: string | null;
  /** Cron text of reading everything again; null is off. */
  readonly recheckSchedule: string | null;
  /** Cron text of random audits; null is off. */
  readonly auditSchedule: string | null;
  /** Advertisers read at once, and how many of these may be at something longer than a poll. */
  readonly desksAtOnce: number;
  readonly longAtOnce: number;
  /** How often a halted advertiser is looked at. */
  readonly probeEveryMs: number;
}

/** What makes a worker wait at this moment. */
export interface WorkerFacts {
  readonly accounts: number;
  /** Accounts that met trouble when they were last tried, and one of these troubles. */
  readonly troubled: number;
  readonly trouble: Trouble | null;
  /** What keeps files from being fetched or stored. */
  readonly filesTrouble: Trouble | null;
  readonly waits: readonly Wait[];
}

export interface Worker {
  facts(): WorkerFacts;
  /** Resolves when the signal has ended everything. */
  readonly ended: Promise<void>;
}

const longestBackoffMs = 300_000;
/** However many files fail, the list is asked so often at most. */
const askAgainMs = 10_000;
/** Quiet polls of many advertisers are booked together. */
const confirmEveryMs = 5_000;

const passNames: Record<DutyName, PassName> = {
  poll: 'live',
  round: 'recheck',
  witness: 'witness',
  audit: 'witness',
  day: 'recheck',
  fortnight: 'recheck',
  everything: 'recheck',
};

/** Starts the schedules and works until the signal. Every account is polled once at the start. */
export function startWorker(deps: WorkerDeps, request: WorkerRequest): Worker {
  const { store, log, now, pulse } = deps;
  const { signal } = request;
  const attending = { ...request, notWithinMs: toNotWithinMs(request.schedule) };
  const polled = new Set<bigint>();
  const desks = createDesks({
    accounts: deps.accounts,
    atOnce: request.desksAtOnce,
    longAtOnce: request.longAtOnce,
    work: workDesk,
    signal,
  });

  async function workDesk(desk: Desk, name: DutyName): Promise<void> {
    using beat = pulse.begin();
    desk.account.watch(beat);
    const tell = createTeller(deps, passNames[name]);
    const moves = {
      onStep() {
        beat.move();
        desk.trouble = null;
      },
      onWait(trouble: Trouble) {
        beat.move();
        desk.trouble = trouble;
      },
      demand: (duty: DutyName) => desks.demandOf(desk, duty),
    };
    try {
      const attended = await attend({ store, now, ...moves }, attending, desk, name);
      desk.failures = 0;
      desk.trouble = null;
      if (attended === null) return;
      if (attended.polled !== null) polled.add(attended.polled);
      tell('done', toCounts(attended));
      logAttended(desk.account.name, name, attended);
    } catch (error) {
      if (signal.aborted) return;
      tell('failed', { kind: toKind(error) });
      rest(desk, name, error);
    } finally {
      desk.account.watch(null);
    }
  }

  /** Carries out the verdict: halted accounts are probed, everything else is tried again with growing patience. */
  function rest(desk: Desk, name: DutyName, error: unknown): void {
    const facts = { advertiser: desk.account.name, duty: name };
    if (error instanceof LeaseLost) {
      // Whoever holds it now goes on with what this one began.
      log.warn(facts, 'the lane was taken over');
      return;
    }
    const trouble = toTrouble(error);
    const isHalted = trouble.kind === 'refused' || trouble.kind === 'mismatch';
    desk.trouble = trouble;
    desk.failures++;
    const waitMs = isHalted ? request.probeEveryMs : toBackoffMs(trouble, desk.failures, longestBackoffMs);
    desks.rest(desk, name, waitMs);
    log.warn(
      { ...facts, kind: toKind(error), attempt: desk.failures, waitMs: Math.round(waitMs), err: error },
      'a duty failed and is tried again',
    );
  }

  function logAttended(advertiser: string, duty: DutyName, { sweeps, hidden }: Attended): void {
    if (hidden > 0 && duty === 'audit') log.warn({ advertiser, hidden }, 'random audit contradicts the proof');
    else if (hidden > 0) {
      log.warn({ advertiser, hidden }, 'the date filter shows applications that the id filters did not');
    }
    for (const sweep of sweeps) {
      const isQuiet = duty === 'poll' && sweep.added + sweep.changed + sweep.quarantined === 0;
      log[isQuiet && sweep.certificate !== 'unproven' ? 'debug' : 'info'](
        { advertiser, duty, ...toLine(sweep) },
        'read',
      );
    }
  }

  /** A file met no source. The list is asked at once and not at the next poll, which may be minutes away: it tells whether the source is down. */
  const polledAt = new Map<string, number>();
  function pollUnreachable(name: string): void {
    const desk = desks.all.find(({ account }) => account.name === name);
    if (desk === undefined || performance.now() - (polledAt.get(name) ?? Number.NEGATIVE_INFINITY) < askAgainMs) return;
    polledAt.set(name, performance.now());
    desks.demandOf(desk, 'poll');
  }

  async function runByTheClock(chore: Chore): Promise<void> {
    using beat = pulse.begin();
    const tell = createTeller(deps, chore.name);
    try {
      if (await runChore(store, chore, { ...request, onStep: () => beat.move() })) tell('done');
    } catch (error) {
      if (signal.aborted) return;
      tell('failed', { kind: toKind(error) });
      log.warn({ chore: chore.name, err: error }, 'a chore failed; its next turn comes');
    }
  }

  async function confirm(): Promise<void> {
    const ids = [...polled];
    if (ids.length === 0) return;
    polled.clear();
    // A database that is away is met by the polls themselves; what was polled stays to be booked.
    await store.confirmCursors(ids).catch(() => {
      for (const id of ids) polled.add(id);
    });
  }

  const chores = new Set<Promise<void>>();
  async function startChore(chore: Chore): Promise<void> {
    const running = runByTheClock(chore).finally(() => chores.delete(running));
    chores.add(running);
    await running;
  }

  const schedules = startSchedules(
    [
      [request.schedule, () => desks.demand('poll')],
      ['7 * * * *', () => desks.demand('day', 'witness')],
      ['41 */6 * * *', () => desks.demand('fortnight')],
      [request.recheckSchedule, () => desks.demand('everything')],
      [request.auditSchedule, () => desks.demand('audit')],
      ...deps.chores.map((chore): Turn => [chore.schedule, () => startChore(chore)]),
    ],
    log,
  );
  const confirming = setInterval(() => void confirm(), confirmEveryMs);
  desks.demand('poll');
  const draining = startDraining({ ...deps, onUnreachable: pollUnreachable }, signal);
  const waits = createWaits({
    store,
    worker: request.owner,
    loadWaiting: () => toWaiting(desks.all, draining.trouble(), deps.loadRecallTrouble()),
    now: () => performance.now(),
  });
  const telling = keepWaits(waits, signal);

  async function end(): Promise<void> {
    clearInterval(confirming);
    await schedules.stop();
    await Promise.allSettled([draining.ended, desks.whenEmpty(), telling, ...chores]);
    await confirm();
  }
  const ended = new Promise<void>((resolve) => {
    if (signal.aborted) void end().then(resolve);
    else signal.addEventListener('abort', () => void end().then(resolve), { once: true });
  });
  return {
    ended,
    facts() {
      const troubled = desks.all.filter((desk) => desk.trouble !== null);
      return {
        accounts: desks.all.length,
        troubled: troubled.length,
        trouble: troubled[0]?.trouble ?? null,
        filesTrouble: draining.trouble(),
        waits: waits.current(),
      };
    },
  };
}

/** What cannot be used at this moment. A halt is in the status by itself; an error that nobody foresaw is no wait for anyone. */
function toWaiting(desks: readonly Desk[], filesTrouble: Trouble | null, recallTrouble: Trouble | null): Waiting[] {
  const reading = desks.flatMap(({ account, trouble }): Waiting[] => {
    if (trouble === null || trouble.kind === 'refused' || trouble.kind === 'mismatch') return [];
    const dependency = trouble.at ?? (trouble.kind === 'ours' ? null : 'source');
    return dependency === null ? [] : [{ advertiser: account.name, dependency, reason: trouble.message }];
  });
  const files: Waiting[] =
    filesTrouble?.at === undefined
      ? []
      : [{ advertiser: null, dependency: filesTrouble.at, reason: filesTrouble.message }];
  // A database that is away is told by the polls.
  const recall: Waiting[] =
    recallTrouble === null || recallTrouble.at === 'database'
      ? []
      : [{ advertiser: null, dependency: 'storage', reason: `${undeleted} ${recallTrouble.message}` }];
  return [...reading, ...files, ...recall];
}

/** Workers whose clocks tick together must not poll an account twice; half of the time between two polls is theirs. */
function toNotWithinMs(schedule: string | null): number {
  const [first, second] = schedule === null ? [] : createTask(schedule, () => {}).getNextRuns(2);
  return first && second ? Math.min(20_000, (second.getTime() - first.getTime()) / 2) : 20_000;
}

function toCounts({ sweeps }: Attended): Partial<Pass> {
  const sum = (name: 'requests' | 'added' | 'changed') => sweeps.reduce((total, sweep) => total + sweep[name], 0);
  return { requests: sum('requests'), added: sum('added'), changed: sum('changed') };
}

function toLine({ certificate, requests, received, added, changed, quarantined, stopped }: SweepSummary) {
  return { certificate, requests, received, added, changed, quarantined, stopped };
}

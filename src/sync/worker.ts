// The worker: a schedule that puts duties on desks, one desk per advertiser, and a pump that works them off. It only schedules;
// what a duty does is written in duties.ts and drain.ts. Trouble of one desk delays no other, and nothing here ever gives up.
import { setTimeout as sleep } from 'node:timers/promises';
import { schedule as cron, type ScheduledTask } from 'node-cron';
import { LeaseLost, Trouble } from '../domain/trouble.ts';
import type { Source } from '../source/client.ts';
import type { Store } from '../store/store.ts';
import { type Duty, readAgain, readNew, witnessByDate } from './duties.ts';
import { tryHoldLane } from './lane.ts';
import type { SweepSummary } from './sweep.ts';

/** An account to keep up with. */
export interface WorkerAccount {
  readonly name: string;
  readonly advertiserId: bigint | null;
  readonly source: Source;
}

export interface WorkerDeps {
  readonly store: Store;
  readonly accounts: readonly WorkerAccount[];
  /** One run through the due downloads; answers when nothing is due. */
  readonly drain: (signal: AbortSignal) => Promise<void>;
  /** Resolves when downloads were queued, or after the time given. */
  readonly untilQueued: (timeoutMs: number, signal: AbortSignal) => Promise<void>;
  /** Further things to do by the clock: pruning, verification. */
  readonly chores: readonly {
    readonly name: string;
    readonly schedule: string;
    readonly run: (signal: AbortSignal) => Promise<void>;
  }[];
  readonly log: WorkerLog;
  readonly now: () => number;
}

/** Lines an operator relies on; ids and counts only. */
export interface WorkerLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

export interface WorkerRequest {
  /** Cron text of live polls; null is off. */
  readonly schedule: string | null;
  /** Cron text of reading everything again; null is off. */
  readonly recheckSchedule: string | null;
  readonly owner: string;
  readonly leaseMs: number;
  readonly lagMs: number;
  readonly startAt: number | null;
  /** Advertisers read at once. */
  readonly desksAtOnce: number;
  readonly signal: AbortSignal;
}

/** What the probes look at. */
export interface WorkerFacts {
  /** Milliseconds since anything last came to an end or armed a timer. */
  readonly idleMs: number;
  readonly trouble: Trouble | null;
}

export interface Worker {
  facts(): WorkerFacts;
  /** Resolves when the signal has ended everything. */
  readonly ended: Promise<void>;
}

/** In the order in which they are done. */
const duties = ['poll', 'witness', 'day', 'fortnight', 'everything'] as const;
type DutyName = (typeof duties)[number];

interface Desk {
  readonly account: WorkerAccount;
  readonly due: Set<DutyName>;
  isBusy: boolean;
  /** Not before this time: a halted or failing account is tried again now and then. */
  restUntil: number;
  failures: number;
}

const probeEveryMs = 180_000;
const longestBackoffMs = 300_000;
const drainEveryMs = 2_000;
/** A reading that takes longer goes on at its next turn, so that none keeps an account's lane to itself. */
const sweepLimitMs = 3_600_000;
/** Two workers whose clocks tick together must not poll an account twice. */
const notWithinMs = 20_000;

/** Starts the schedules and works until the signal. Every account is polled once at the start. */
export function startWorker(deps: WorkerDeps, request: WorkerRequest): Worker {
  const { log, now } = deps;
  const { signal } = request;
  const desks: Desk[] = deps.accounts.map((account) => ({
    account,
    due: new Set(['poll']),
    isBusy: false,
    restUntil: 0,
    failures: 0,
  }));
  const running = new Set<Promise<void>>();
  let beatAt = now();
  let trouble: Trouble | null = null;
  const beat = () => {
    beatAt = now();
  };

  function demand(...names: DutyName[]): void {
    for (const desk of desks) for (const name of names) desk.due.add(name);
    pump();
  }

  function pump(): void {
    for (const desk of desks) {
      if (signal.aborted || running.size >= request.desksAtOnce) return;
      const duty = duties.find((name) => desk.due.has(name));
      if (duty === undefined || desk.isBusy || desk.restUntil > now()) continue;
      desk.isBusy = true;
      desk.due.delete(duty);
      const work = runDuty(desk, duty).finally(() => {
        desk.isBusy = false;
        running.delete(work);
        beat();
        pump();
      });
      running.add(work);
    }
  }

  async function runDuty(desk: Desk, name: DutyName): Promise<void> {
    try {
      await attend(desk, name);
      desk.failures = 0;
      trouble = null;
    } catch (error) {
      if (signal.aborted) return;
      rest(desk, name, error);
    }
  }

  /** Carries out the verdict: halted accounts are probed, everything else is tried again with growing patience. */
  function rest(desk: Desk, name: DutyName, error: unknown): void {
    const { name: advertiser } = desk.account;
    if (error instanceof LeaseLost) {
      log.warn({ advertiser, duty: name }, 'the lane was taken over');
      return;
    }
    const kind = error instanceof Trouble ? error.kind : 'unexpected';
    trouble = error instanceof Trouble ? error : new Trouble('ours', 'A duty failed unexpectedly.', { cause: error });
    desk.failures++;
    const halted = kind === 'refused' || kind === 'mismatch';
    const backoffMs = Math.random() * Math.min(longestBackoffMs, 1_000 * 2 ** desk.failures);
    const waitMs = halted ? probeEveryMs : (trouble.retryAfterMs ?? Math.max(1_000, backoffMs));
    desk.restUntil = now() + waitMs;
    desk.due.add(name);
    setTimeout(pump, waitMs + 10).unref();
    log.warn(
      { advertiser, duty: name, kind, waitMs: Math.round(waitMs), err: error },
      'a duty failed and is tried again',
    );
  }

  async function attend({ account, due }: Desk, name: DutyName): Promise<void> {
    const advertiser = await deps.store.ensureAdvertiser(account.name, account.advertiserId);
    if (advertiser.halt?.kind === 'mismatch') throw new Trouble('mismatch', advertiser.halt.reason);
    const claim = { name: account.name, lane: 'live', owner: request.owner, leaseMs: request.leaseMs, signal } as const;
    const isPoll = name === 'poll';
    await using lane = await tryHoldLane(deps.store, { ...claim, isPoll, notWithinMs: isPoll ? notWithinMs : 0 });
    if (lane === null) return;
    const duty: Duty = {
      lane,
      advertiser,
      lagMs: request.lagMs,
      startAt: request.startAt,
      patienceMs: 30_000,
      shouldPause: () => name !== 'poll' && due.has('poll'),
      timeLimitMs: sweepLimitMs,
    };
    try {
      const summary = await carryOut({ ...deps, source: account.source, onWait: beat }, duty, name);
      await deps.store.unhaltAdvertiser(account.name, 'refused');
      if (summary === null) return;
      if (summary.stopped === 'paused') due.add(name);
      log.info({ advertiser: account.name, duty: name, ...toLine(summary) }, 'read');
    } catch (error) {
      if (error instanceof Trouble && error.kind === 'refused') {
        await deps.store.haltAdvertiser(account.name, 'refused', error.message);
      }
      throw error;
    }
  }

  async function carryOut(
    sweepDeps: Parameters<typeof readNew>[0],
    duty: Duty,
    name: DutyName,
  ): Promise<SweepSummary | null> {
    if (name === 'poll') return await readNew(sweepDeps, duty);
    if (name === 'witness') {
      const hidden = await witnessByDate(sweepDeps, duty, now());
      if (hidden > 0) {
        log.warn(
          { advertiser: duty.advertiser.name, hidden },
          'the date filter shows applications that the id filters did not',
        );
        demandOf(duty.advertiser.name, 'everything');
      }
      return null;
    }
    const days = name === 'day' ? 1 : name === 'fortnight' ? 14 : null;
    const from = days === null ? 1n : await sweepDeps.store.loadRecentFrom(duty.advertiser.advertiserId, days);
    return from === null ? null : await readAgain(sweepDeps, duty, { from });
  }

  function demandOf(name: string, duty: DutyName): void {
    desks.find((desk) => desk.account.name === name)?.due.add(duty);
  }

  async function drainOn(): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        await deps.drain(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures++;
        log.warn({ err: error }, 'fetching files failed and is tried again');
        await sleep(Math.random() * Math.min(60_000, 1_000 * 2 ** failures), undefined, { signal }).catch(() => {});
      }
      beat();
      await deps.untilQueued(drainEveryMs, signal).catch(() => {});
    }
  }

  const tasks = [
    toTask(request.schedule, () => demand('poll')),
    toTask('7 * * * *', () => demand('day', 'witness')),
    toTask('41 */6 * * *', () => demand('fortnight')),
    toTask(request.recheckSchedule, () => demand('everything')),
    ...deps.chores.map((chore) =>
      toTask(chore.schedule, () =>
        chore.run(signal).then(beat, (error: unknown) => log.warn({ chore: chore.name, err: error }, 'a chore failed')),
      ),
    ),
  ];
  pump();
  const draining = drainOn();
  const ended = new Promise<void>((resolve) => {
    const end = async () => {
      for (const task of tasks) await task?.destroy();
      await Promise.allSettled([draining, ...running]);
      resolve();
    };
    if (signal.aborted) void end();
    else signal.addEventListener('abort', () => void end(), { once: true });
  });
  return { facts: () => ({ idleMs: now() - beatAt, trouble }), ended };
}

function toTask(text: string | null, run: () => unknown): ScheduledTask | null {
  return text === null ? null : cron(text, () => void run(), { noOverlap: true });
}

function toLine({ certificate, requests, received, added, changed, quarantined, stopped }: SweepSummary) {
  return { certificate, requests, received, added, changed, quarantined, stopped };
}

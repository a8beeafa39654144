// Desks, one per advertiser: what is due there, whether somebody sits at it, and until when it rests. Polls come before everything else,
// and long readings take a few places only, so that no advertiser waits for another's (P11). Knows nothing of what a duty does.
import type { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { Beat } from './watchdog.ts';

/** An account to keep up with. */
export interface WorkerAccount {
  readonly name: string;
  readonly advertiserId: bigint | null;
  readonly source: Source;
  /** Every request of the account moves this from now on; null is nothing. */
  readonly watch: (beat: Beat | null) => void;
}

/** In the order in which they are done at one desk. */
const duties = ['poll', 'round', 'witness', 'audit', 'day', 'fortnight', 'everything'] as const;
export type DutyName = (typeof duties)[number];

export interface Desk {
  readonly account: WorkerAccount;
  readonly due: Set<DutyName>;
  isBusy: boolean;
  /** Left alone after trouble. By a timer, not by the time of day: a clock that is set back must not prolong it. */
  isResting: boolean;
  failures: number;
  /** What it met last, while that lasts. */
  trouble: Trouble | null;
}

export interface DesksRequest {
  readonly accounts: readonly WorkerAccount[];
  /** Desks worked at once, and how many of these may be at something else than a poll. */
  readonly atOnce: number;
  readonly longAtOnce: number;
  /** Does one duty, whatever becomes of it; never throws. */
  readonly work: (desk: Desk, duty: DutyName) => Promise<void>;
  readonly signal: AbortSignal;
}

export interface Desks {
  readonly all: readonly Desk[];
  /** Puts duties on every desk. */
  demand(...names: DutyName[]): void;
  /** Puts a duty on one desk. */
  demandOf(desk: Desk, name: DutyName): void;
  /** Leaves a desk alone for a while, with the duty still on it. */
  rest(desk: Desk, name: DutyName, ms: number): void;
  /** Resolves when nobody sits at a desk any more. */
  whenEmpty(): Promise<void>;
}

/** Whatever a source asks for, it is looked at again the next day. */
const longestRestMs = 86_400_000;

/** Sets up the desks; work begins with the first demand. */
export function createDesks({ accounts, atOnce, longAtOnce, work, signal }: DesksRequest): Desks {
  const all = accounts.map((account): Desk => {
    const quiet = { isBusy: false, isResting: false, failures: 0, trouble: null };
    return { account, due: new Set(), ...quiet };
  });
  // Sets keep their order, so these are queues from which a desk can also leave.
  const polls = new Set<Desk>();
  const others = new Set<Desk>();
  const running = new Set<Promise<void>>();
  let long = 0;

  function queue(desk: Desk): void {
    if (desk.isBusy || desk.isResting || desk.due.size === 0) return;
    (desk.due.has('poll') ? polls : others).add(desk);
  }

  function pump(): void {
    while (!signal.aborted && running.size < atOnce) {
      const [desk] = polls.size > 0 ? polls : long < longAtOnce ? others : [];
      if (desk === undefined) return;
      polls.delete(desk);
      others.delete(desk);
      const duty = duties.find((name) => desk.due.has(name));
      if (duty === undefined || desk.isBusy || desk.isResting) continue;
      sit(desk, duty);
    }
  }

  function sit(desk: Desk, duty: DutyName): void {
    desk.isBusy = true;
    desk.due.delete(duty);
    if (duty !== 'poll') long++;
    const sitting = work(desk, duty).finally(() => {
      desk.isBusy = false;
      if (duty !== 'poll') long--;
      running.delete(sitting);
      queue(desk);
      pump();
    });
    running.add(sitting);
  }

  return {
    all,
    demand(...names) {
      for (const desk of all) {
        for (const name of names) desk.due.add(name);
        queue(desk);
      }
      pump();
    },
    demandOf(desk, name) {
      desk.due.add(name);
      queue(desk);
      pump();
    },
    rest(desk, name, ms) {
      desk.due.add(name);
      desk.isResting = true;
      const wake = () => {
        desk.isResting = false;
        queue(desk);
        pump();
      };
      setTimeout(wake, Math.min(ms, longestRestMs)).unref();
    },
    async whenEmpty() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}

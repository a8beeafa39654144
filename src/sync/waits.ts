// Reports what this process waits for: on a worker's own status page at once, and to all processes through the database. The process writes
// to the database when its waits change, and every 30 s while it waits for something. A process that waits for nothing writes nothing.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dependency, Trouble } from '../domain/trouble.ts';
import type { Wait } from '../domain/wait.ts';
import type { Store } from '../store/store.ts';

/** One task that waits. */
export interface Waiting {
  /** The account; null if the task serves all accounts. */
  readonly advertiser: string | null;
  readonly dependency: Dependency;
  readonly reason: string;
}

export interface WaitsDeps {
  readonly store: { readonly waits: Pick<Store['waits'], 'record'> };
  readonly worker: string;
  /** The tasks that wait at this moment. */
  readonly loadWaitingTasks: () => readonly Waiting[];
  readonly now: () => number;
}

export type Waits = ReturnType<typeof createWaits>;

const lookEveryMs = 1_000;
/** Readers ignore a row that is three times as old: its worker was killed (store/reports/waits.ts). */
const refreshEveryMs = 30_000;

export function createWaits({ store, worker, loadWaitingTasks, now }: WaitsDeps) {
  /** When each task began to wait. */
  let beganAt = new Map<string, number>();
  let recorded = '[]';
  let recordedAt = 0;

  /** Tasks that wait for the same dependency for the same reason form one wait. It began when the first of them did. */
  function group() {
    const waiting = loadWaitingTasks();
    beganAt = new Map(waiting.map(toKey).map((key) => [key, beganAt.get(key) ?? now()]));
    return [...Map.groupBy(waiting, ({ dependency, reason }) => `${dependency} ${reason}`).values()].map((tasks) => {
      const [{ dependency, reason }] = tasks as [Waiting, ...Waiting[]];
      const named = tasks.flatMap(({ advertiser }) => (advertiser === null ? [] : [advertiser])).sort();
      const began = Math.min(...tasks.map((task) => beganAt.get(toKey(task)) ?? now()));
      return { dependency, reason, advertisers: named.length < tasks.length ? [] : named, waitedMs: now() - began };
    });
  }

  return {
    current: (): Wait[] =>
      group().map(({ waitedMs, ...one }) => ({ ...one, worker, since: new Date(Date.now() - waitedMs) })),
    /** Checks once, and records the waits if they have changed. Throws if the database is unavailable; a later call records them. */
    async look(): Promise<void> {
      const waits = group();
      const text = JSON.stringify(waits.map(({ waitedMs: _, ...one }) => one));
      const isStale = waits.length > 0 && now() - recordedAt >= refreshEveryMs;
      if (text === recorded && !isStale) return;
      await store.waits.record(worker, waits);
      recorded = text;
      recordedAt = now();
    },
    /** Deletes the recorded waits of this process. */
    async forget(): Promise<void> {
      if (recorded !== '[]') await store.waits.record(worker, []);
      recorded = '[]';
    },
  };
}

/** Records waits until the signal aborts, then deletes them. */
export async function keepWaits(waits: Waits, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await waits.look().catch(() => {});
    await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
  }
  await waits.forget().catch(() => {});
}

/**
 * Why the read tasks of an account wait. Null if they do not: a halt has its own line in the status, and an unexpected error is not a wait.
 */
export function toSourceWait(advertiser: string, trouble: Trouble): Waiting | null {
  if (trouble.kind === 'refused' || trouble.kind === 'mismatch') return null;
  const dependency = trouble.at ?? (trouble.kind === 'local' ? null : 'source');
  return dependency === null ? null : { advertiser, dependency, reason: trouble.message };
}

/** Why downloads wait, for all accounts. */
export function toFilesWait({ at, message }: Trouble): Waiting | null {
  return at === undefined ? null : { advertiser: null, dependency: at, reason: message };
}

/** The reason is not part of the key: a wait keeps its start time when only the error changes. */
function toKey({ advertiser, dependency }: Waiting): string {
  return JSON.stringify([advertiser, dependency]);
}

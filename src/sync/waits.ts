// Tells what this process waits for: a worker to its own page at once, and every process to the others through the database. The database
// is written when something has changed, and every half minute while something is waited for; who waits for nothing writes nothing.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dependency, Trouble } from '../domain/trouble.ts';
import type { Wait } from '../domain/wait.ts';
import type { Store } from '../store/store.ts';

/** One task that waits. */
export interface Waiting {
  /** The account; null where the task serves all of them. */
  readonly advertiser: string | null;
  readonly dependency: Dependency;
  readonly reason: string;
}

export interface WaitsDeps {
  readonly store: { readonly waits: Pick<Store['waits'], 'record'> };
  readonly worker: string;
  /** The tasks that wait at this moment. */
  readonly loadWaiting: () => readonly Waiting[];
  readonly now: () => number;
}

export interface Waits {
  /** As of this moment. */
  current(): Wait[];
  /** Looks once, and records what has changed. A database that is away is told at a later look. */
  look(): Promise<void>;
  /** Takes back what was recorded. */
  forget(): Promise<void>;
}

const lookEveryMs = 1_000;
/** The database takes a row that is older than three of these for one of a killed worker. */
const refreshEveryMs = 30_000;

export function createWaits({ store, worker, loadWaiting, now }: WaitsDeps): Waits {
  const beganAt = new Map<string, number>();
  let recorded = '[]';
  let recordedAt = 0;

  /** Tasks that wait for the same thing, for the same reason, are one wait. It began when the first of them did. */
  function group() {
    const waiting = loadWaiting();
    const keys = new Set(waiting.map(toKey));
    for (const key of beganAt.keys()) if (!keys.has(key)) beganAt.delete(key);
    for (const key of keys) if (!beganAt.has(key)) beganAt.set(key, now());
    return [...Map.groupBy(waiting, ({ dependency, reason }) => `${dependency} ${reason}`).values()].map((tasks) => {
      const [{ dependency, reason }] = tasks as [Waiting, ...Waiting[]];
      const named = tasks.flatMap(({ advertiser }) => (advertiser === null ? [] : [advertiser])).sort();
      const began = Math.min(...tasks.map((task) => beganAt.get(toKey(task)) ?? now()));
      return {
        ...{ dependency, reason },
        advertisers: named.length < tasks.length ? [] : named,
        waitedMs: now() - began,
      };
    });
  }

  return {
    current: () => group().map(({ waitedMs, ...one }) => ({ ...one, worker, since: new Date(Date.now() - waitedMs) })),
    async look() {
      const waits = group();
      const text = JSON.stringify(waits.map(({ waitedMs: _, ...one }) => one));
      const isStale = waits.length > 0 && now() - recordedAt >= refreshEveryMs;
      if (text === recorded && !isStale) return;
      await store.waits.record(worker, waits);
      recorded = text;
      recordedAt = now();
    },
    async forget() {
      if (recorded !== '[]') await store.waits.record(worker, []);
      recorded = '[]';
    },
  };
}

/** Looks until the signal, then takes back what was recorded. */
export async function keepWaits(waits: Waits, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await waits.look().catch(() => {});
    await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
  }
  await waits.forget().catch(() => {});
}

/**
 * Why an account's reading waits, or null where it does not: a halt has its own line in the status, and an unexpected error is no wait.
 */
export function toSourceWait(advertiser: string, trouble: Trouble): Waiting | null {
  if (trouble.kind === 'refused' || trouble.kind === 'mismatch') return null;
  const dependency = trouble.at ?? (trouble.kind === 'local' ? null : 'source');
  return dependency === null ? null : { advertiser, dependency, reason: trouble.message };
}

/** Why files wait, whosever they are. */
export function toFilesWait({ at, message }: Trouble): Waiting | null {
  return at === undefined ? null : { advertiser: null, dependency: at, reason: message };
}

/** A task keeps its beginning while it waits for the same thing, also when the error changes. */
function toKey({ advertiser, dependency }: Waiting): string {
  return JSON.stringify([advertiser, dependency]);
}

// Retries work while a source or a database is unavailable, and tells the status why it waits. The source client retries one request for
// seconds (p-retry); what failed nevertheless is run again as a whole, and goes on from its rows.
import { setTimeout as sleep } from 'node:timers/promises';
import { type BackoffRange, backoff, LastingTrouble, Trouble, type WaitingTask } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';

export interface RetryOptions {
  /** How long failures may last before the last one is thrown. Infinity: retries without end. */
  readonly retryForMs: number;
  readonly signal: AbortSignal;
  /** A count of what the work has done: whenever it has risen, failures begin anew. */
  readonly progress?: (() => number) | undefined;
  /** Called before each wait, with the number of the failed attempt. */
  readonly onWait?: ((trouble: Trouble, waitMs: number, attempt: number) => void) | undefined;
}

/** Repeats the work until it succeeds, or until temporary failures have lasted for `retryForMs`. Other failures are thrown at once. */
export async function retry<T>(retryOptions: RetryOptions, work: () => Promise<T>): Promise<T> {
  const { retryForMs, signal, progress, onWait } = retryOptions;
  let failingSince: number | null = null;
  let done: number | undefined;
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!isTemporary(error)) throw error;
      if (failingSince === null || progress?.() !== done) {
        done = progress?.();
        failingSince = performance.now();
        attempt = 1;
      }
      const waitMs = backoffAfter(error, attempt, shortBackoff);
      if (performance.now() - failingSince + waitMs > retryForMs) throw error;
      onWait?.(error, waitMs, attempt);
      await pause(waitMs, signal);
    }
  }
}

/** Backoff for work that is retried inside the same call. */
const shortBackoff: BackoffRange = { baseMs: 500, maxMs: 15_000 };

/** Waits. If the signal aborts, throws the signal's reason, so that a lost lease does not look like an unexpected error. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** True for trouble that may soon be over by itself. */
export function isTemporary(error: unknown): error is Trouble {
  if (!(error instanceof Trouble) || error instanceof LastingTrouble) return false;
  return ['unreachable', 'throttled', 'malformed', 'local'].includes(error.kind);
}

/** The wait after a number of failures in a row: the Retry-After of the source, or a backoff. */
export function backoffAfter({ retryAfterMs }: Trouble, failures: number, range: BackoffRange): number {
  return retryAfterMs ?? backoff(failures, range, Math.random());
}

/** Turns any error into Trouble. An unexpected error becomes `local`. */
export function toTrouble(error: unknown): Trouble {
  return error instanceof Trouble ? error : new Trouble('local', 'Something failed unexpectedly.', { cause: error });
}

/** What a task waits for where its trouble does not say it. */
const usual = { reading: 'source', downloads: undefined, deletion: 'storage' } as const;

export function createTroubles({ advertisers }: Pick<Store, 'advertisers'>) {
  /** Tasks of accounts of which no trouble is noted. Empty at first: an earlier process may have left some. */
  const clear = new Set<string>();
  let written = Promise.resolve();
  /** In the order of the calls. What cannot be written is not written later: the next failure or success will be. */
  const write = (work: () => Promise<void>, onFailure = () => {}) => {
    written = written.then(work).catch(onFailure);
  };
  const toKey = (task: WaitingTask, name: string) => `${task} ${name}`;

  return {
    /** The task of these accounts failed, and is tried again after this time. */
    note(task: WaitingTask, names: readonly string[], trouble: Trouble, waitMs: number): void {
      const isUnexpected = task === 'reading' && trouble.kind === 'local';
      const dependency = trouble.at ?? (isUnexpected ? undefined : usual[task]);
      // A halt has its own line in the status, an unexpected error is not a wait, and a database that is away can be told nothing.
      const isHalt = task === 'reading' && (trouble.kind === 'refused' || trouble.kind === 'mismatch');
      if (dependency === undefined || dependency === 'database' || isHalt) this.clear(task, names);
      else {
        for (const name of names) clear.delete(toKey(task, name));
        write(() => advertisers.noteTrouble(names, { task, dependency, reason: trouble.message }, waitMs));
      }
    },
    /** The task of these accounts goes on. */
    clear(task: WaitingTask, names: readonly string[]): void {
      const noted = names.filter((name) => !clear.has(toKey(task, name)));
      if (noted.length === 0) return;
      for (const name of noted) clear.add(toKey(task, name));
      const onFailure = () => {
        for (const name of noted) clear.delete(toKey(task, name));
      };
      write(() => advertisers.clearTrouble(noted, task), onFailure);
    },
    /** Resolves when everything so far is written. */
    untilWritten: () => written,
  };
}

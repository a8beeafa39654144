// Writes why the work of an account waits to its row, where the status of every process finds it.
import type { Trouble, WaitingTask } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';

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

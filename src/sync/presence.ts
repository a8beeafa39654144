// Keeps this process on record, so that no breaking migration is applied under it, and ends its work where one was applied all the same.
import { SchemaTrouble } from '../domain/trouble.ts';
import type { Store } from '../store/store.ts';

export interface Presence extends AsyncDisposable {
  /** Aborts, with a SchemaTrouble, when this version may no longer use the database. */
  readonly outdated: AbortSignal;
}

/** A quarter of the time after which the process counts as ended. */
const renewEveryMs = 15_000;

/** Resolves when the process is on record. Throws SchemaTrouble if this version may not use the database. */
export async function startPresence(
  { processes }: Pick<Store, 'processes'>,
  process: string,
  everyMs = renewEveryMs,
): Promise<Presence> {
  await processes.renewProcess(process);
  const outdated = new AbortController();
  let renewing = Promise.resolve();
  const renewal = setInterval(() => {
    renewing = processes.renewProcess(process).catch((error: unknown) => {
      // Any other trouble passes, and the work itself meets and reports it.
      if (error instanceof SchemaTrouble) outdated.abort(error);
    });
  }, everyMs).unref();
  return {
    outdated: outdated.signal,
    async [Symbol.asyncDispose]() {
      clearInterval(renewal);
      await renewing;
      // Without a database the row stays. It counts for a minute.
      await processes.endProcess(process).catch(() => {});
    },
  };
}

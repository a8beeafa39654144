// The worker, wired: sources, store, blobs, the listener that wakes its drains, and its log. It lives until its signal.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import type { Log } from '../log.ts';
import { openQueueListener } from '../store/listening.ts';
import type { Store } from '../store/store.ts';
import { createPace, type TakeTurn } from '../sync/pace.ts';
import { startWorker, type Worker, type WorkerAccount } from '../sync/worker.ts';
import { drainFiles } from './files.ts';
import { openPlace, openSource, openStoreOf } from './opening.ts';

export type WorkerConfig = Config<'database' | 'source' | 'sync' | 'privacy' | 'blobs'>;

/** Advertisers read at once; each waits for its source most of the time. */
const desksAtOnce = 8;

/** Works until the signal; resolves when everything is given back. A database that is not there is waited for, however long. */
export async function runWorker(
  config: WorkerConfig,
  request: { readonly log: Log; readonly signal: AbortSignal; readonly onStart?: (worker: Worker) => void },
): Promise<void> {
  const { log, signal } = request;
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await openPlace(config));
  const { store } = stack.use(await openStoreOf(config, 'worker', signal, Number.POSITIVE_INFINITY));
  const paces = new Map<string, TakeTurn>();
  const accounts: WorkerAccount[] = config.source.advertisers.map((account) => {
    const pace = paces.get(account.url) ?? createPace(store, account.url, config.source.requestsPerSecond);
    paces.set(account.url, pace);
    return {
      name: account.name,
      advertiserId: account.advertiserId,
      source: stack.use(openSource(config, account, pace)),
    };
  });
  let wake = () => {};
  const listener = await openQueueListener({ url: place.directUrl, onQueued: () => wake() }).catch(() => null);
  if (listener) stack.use(listener);

  const worker = startWorker(
    {
      ...{ store, accounts, log },
      now: Date.now,
      drain: (until) => drainDue(config, store, accounts, until),
      untilQueued: (timeoutMs, until) => {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        return Promise.race([woken, sleep(timeoutMs, undefined, { signal: until })]);
      },
      chores: [],
    },
    {
      ...config.sync,
      owner: `worker on ${hostname()} (${process.pid}, ${randomUUID().slice(0, 8)})`,
      desksAtOnce,
      signal,
    },
  );
  request.onStart?.(worker);
  log.info({ advertisers: accounts.length }, 'the worker has started');
  await worker.ended;
  log.info({}, 'the worker has ended');
}

/** Fetches what is due of the accounts whose ids are known. Nothing is opened when nothing is due. */
async function drainDue(
  config: WorkerConfig,
  store: Store,
  accounts: readonly WorkerAccount[],
  signal: AbortSignal,
): Promise<void> {
  const known = await store.loadAdvertiserIds(accounts.map((account) => account.name));
  const ready = accounts.flatMap((account) => {
    const advertiserId = known.get(account.name);
    return advertiserId === undefined ? [] : [{ ...account, advertiserId }];
  });
  if (ready.length === 0 || !(await store.isDrainDue(ready.map((account) => account.advertiserId)))) return;
  await drainFiles(config, store, ready, { patienceMs: 0, signal });
}

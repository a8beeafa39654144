// Composes the worker. The admin port opens first, so that it can report what the rest waits for; then come database, sources, files and
// maintenance. The worker has no other port. It runs until its signal aborts, and needs no restart when a dependency comes back.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import type { PassCrashPoint } from '../domain/crash-point.ts';
import type { Log } from '../log.ts';
import type { Source } from '../source/client.ts';
import type { Store } from '../store/store.ts';
import { startDeletion } from '../sync/files/delete-objects.ts';
import { createDownloadMemory, type DownloadMemory } from '../sync/files/download-run.ts';
import { startPresence } from '../sync/presence.ts';
import { requireKey } from '../sync/privacy/erase.ts';
import { createTroubles, type RetryOptions, retry, toTrouble } from '../sync/retry.ts';
import type { WorkerAccount } from '../sync/worker/account-queue.ts';
import type { DownloadWatch } from '../sync/worker/download-loop.ts';
import { checkDatabase, checkWork } from '../sync/worker/health-checks.ts';
import type { Pass } from '../sync/worker/pass.ts';
import { createWatchdog, type Ending, type Heartbeat, type WatchdogOptions } from '../sync/worker/watchdog.ts';
import { startWorker, type Worker } from '../sync/worker/worker.ts';
import { createMetrics } from '../web/admin/metrics.ts';
import { openAdmin } from '../web/admin/routes.ts';
import { downloadFiles, type FilesRequest, openSources, openWebhooks, totalTimeoutMs } from './clients.ts';
import { loadStatus, openAnyStore, toOwner } from './database.ts';
import { createExtractTask } from './extract.ts';
import { createMaintenance } from './maintenance.ts';
import { openBlobsOf } from './storage.ts';

export type WorkerConfig = Config<
  'database' | 'source' | 'sync' | 'privacy' | 'blobs' | 'admin' | 'webhooks' | 'extract'
>;

export interface WorkerRun extends WatchdogOptions {
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly onOpen?: (adminUrl: string) => void;
  readonly onPass?: (pass: Pass) => void;
  readonly ending?: Ending;
  /** How often a halted advertiser is tried again. */
  readonly probeEveryMs?: number;
  /** How often the queue is checked for due downloads without a notification. */
  readonly lookEveryMs?: number;
  /** How often the process renews its row in `processes`. */
  readonly renewEveryMs?: number;
  readonly crashPoint?: PassCrashPoint | undefined;
}

/** Most accounts read at once; each waits for its source most of the time. */
const accountsAtOnce = 16;
/** Most of them that run long sweeps, so that slots stay free for polls. */
const longAtOnce = 4;
/** A request may last for its whole time without progress that shows; every other wait is shorter. Longer silence is stuck (P13). */
const stuckAfterMs = totalTimeoutMs + 300_000;

export async function runWorker(config: WorkerConfig, run: WorkerRun): Promise<void> {
  const { log, probeEveryMs = 180_000, crashPoint } = run;
  const { sync } = config;
  const { stuckMs = Math.max(stuckAfterMs, 2 * config.source.SOURCE_TIMEOUT) } = run;
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openAnyStore(config, 'worker', { crashPoint }));
  const watchdog = createWatchdog({ ...run, stuckMs });
  const metrics = createMetrics();
  const onPass = (pass: Pass) => {
    metrics.observePass(pass);
    run.onPass?.(pass);
  };
  let worker: Worker | null = null;
  const loadOwnWaits = () => worker?.facts().waits ?? [];
  const { ADMIN_HOST: host, ADMIN_PORT: port, ADMIN_USER: user, ADMIN_PASSWORD: password } = config.admin;

  const admin = stack.use(
    await openAdmin({
      ...{ host, port, store, metrics, now: Date.now, trustedProxies: config.trustedProxies },
      login: user !== null && password !== null ? { user, password: () => password.current() } : null,
      loadStatus: () => loadStatus(store, config, loadOwnWaits()),
      loadOwnWaits,
      onError: (route, err) => log.error({ route, err }, 'admin request failed'),
      loadLiveness: () => {
        const silentMs = watchdog.silentMs();
        const detail = `last progress ${Math.round(silentMs / 1_000)} s ago`;
        return [{ check: 'work', ok: silentMs < stuckMs, detail }];
      },
      loadReadiness: async () => [...(await checkDatabase(store, Date.now)), ...checkWork(worker?.facts() ?? null)],
    }),
  );
  log.info({ admin: admin.url }, 'the admin port answers');
  run.onOpen?.(admin.url);
  stack.use(watchdog.start(run.ending ?? null));

  const onWait: RetryOptions['onWait'] = (err, waitMs, attempt) =>
    log.warn({ attempt, waitMs: Math.round(waitMs), err }, 'waiting for the database');
  const owner = toOwner('worker');
  const opened = { signal: run.signal, onWait };
  const presence = await retry({ ...opened, retryForMs: Number.POSITIVE_INFINITY }, async () => {
    await store.schema.ensure(opened);
    await requireKey(store);
    return await startPresence(store, owner, run.renewEveryMs);
  });
  const { outdated } = stack.use(presence);
  const onOutdated = () => log.warn({ err: outdated.reason }, 'schema too new for this version; finishing');
  outdated.addEventListener('abort', onOutdated, { once: true });
  const signal = AbortSignal.any([run.signal, outdated]);
  const accounts = openAccounts(config, store, stack);
  const names = accounts.map(({ name }) => name);
  const troubles = createTroubles(store);
  const onTrouble = (err: unknown) => {
    if (err === null) return troubles.clear('deletion', names);
    log.warn({ err }, 'files not deleted; trying again');
    troubles.note('deletion', names, toTrouble(err), 0);
  };
  const openBlobs = (until: AbortSignal) => openBlobsOf(config, store, until);
  stack.use(startDeletion({ store, openBlobs, onTrouble }, signal));
  const stop = new AbortController();
  const taking = takeStore(config, store, log, AbortSignal.any([signal, stop.signal]));
  stack.defer(() => {
    stop.abort();
    return taking;
  });
  const memory = createDownloadMemory();
  const queued = createWaker(run.lookEveryMs);
  const events = createWaker(run.lookEveryMs);
  stack.use(await store.listen({ onQueued: queued.wake, onEvents: events.wake }));
  const webhooks = openWebhooks(config, stack);
  await retry({ retryForMs: Number.POSITIVE_INFINITY, signal, onWait }, () =>
    store.webhooks.declareWebhooks(config.webhooks.accounts, webhooks),
  );

  worker = startWorker(
    {
      ...{ store, accounts, log, watchdog, onPass },
      runDownloads: (watch) => downloadDue(config, store, accounts, { ...watch, memory, crashPoint }),
      untilQueued: queued.until,
      ...{ webhooks, untilEvents: events.until, onDelivered: metrics.observeDelivered, crashPoint },
      maintenance: [...createMaintenance(config, store, log), ...createExtractTask(config)],
    },
    {
      ...{ schedule: sync.SYNC_SCHEDULE, recheckSchedule: sync.RECHECK_SCHEDULE, auditSchedule: sync.AUDIT_SCHEDULE },
      ...{ leaseMs: sync.LEASE, lagMs: sync.SYNC_LAG, startAt: sync.SYNC_START },
      ...{ owner, accountsAtOnce, longAtOnce, signal, probeEveryMs },
    },
  );
  log.info({ advertisers: accounts.length }, 'the worker has started');
  await worker.ended;
  log.info({}, 'the worker has ended');
  outdated.throwIfAborted();
}

/** Takes the store of files, beside everything else: `intake prefill` needs it before the first file is due. */
async function takeStore(config: WorkerConfig, store: Store, log: Log, signal: AbortSignal): Promise<void> {
  const onWait: RetryOptions['onWait'] = (err, waitMs, attempt) =>
    log.warn({ attempt, waitMs: Math.round(waitMs), err }, 'waiting for the store of files');
  await retry({ retryForMs: Number.POSITIVE_INFINITY, signal, onWait }, async () => {
    await using _taken = await openBlobsOf(config, store, signal);
  }).catch((err: unknown) => {
    if (!signal.aborted) log.warn({ err }, 'the store of files was not taken');
  });
}

/** Waits for a notification, or for a time: notifications can be lost. */
function createWaker(everyMs: number | undefined) {
  let wake = () => {};
  return {
    wake: () => wake(),
    until(timeoutMs: number, signal: AbortSignal): Promise<void> {
      const woken = Promise.withResolvers<void>();
      wake = woken.resolve;
      return Promise.race([woken.promise, sleep(everyMs ?? timeoutMs, undefined, { signal })]);
    },
  };
}

function openAccounts(config: WorkerConfig, store: Store, stack: AsyncDisposableStack): WorkerAccount[] {
  // As many connections as there can be requests at once, so that a slow account delays no other.
  const requestsAtOnce = config.source.SOURCE_CONCURRENCY + 2 * accountsAtOnce;
  const sources = stack.use(openSources(config, store, { requestsAtOnce }));
  return config.source.advertisers.map((account) => {
    let heartbeat: Heartbeat | null = null;
    const onListBytes = () => heartbeat?.move();
    const whileWaiting = (waiting: Promise<void>) => heartbeat?.whileWaiting(waiting) ?? waiting;
    const watch = (next: Heartbeat | null) => {
      heartbeat = next;
    };
    const { name, advertiserId } = account;
    return { name, advertiserId, source: sources.open(account, { onListBytes, whileWaiting }), watch };
  });
}

/** Downloads the due files of the configured accounts. Opens nothing if nothing is due. */
async function downloadDue(
  config: WorkerConfig,
  store: Store,
  accounts: readonly WorkerAccount[],
  watch: DownloadWatch & Pick<FilesRequest, 'crashPoint'> & { readonly memory: DownloadMemory },
) {
  const { heartbeat } = watch;
  const paused = [...watch.memory.pauses].flatMap(([name, until]) => (until > performance.now() ? [name] : []));
  await store.downloads.bringForward();
  const due = await store.downloads.loadDueAdvertisers(paused);
  const ready = accounts.flatMap((account) => {
    const advertiserId = due.get(account.name);
    if (advertiserId === undefined) return [];
    const { source } = account;
    // These waits end by themselves: a slot comes at any rate, and opening an answer has a time limit.
    const watched = {
      ...source,
      list: (...args) => heartbeat.whileWaiting(source.list(...args)),
      openAttachment: (...args) => heartbeat.whileWaiting(source.openAttachment(...args)),
    } satisfies Source;
    return [{ ...account, advertiserId, source: watched }];
  });
  if (ready.length === 0) return null;
  return await downloadFiles(config, store, ready, {
    ...{ ...watch, retryForMs: 0, onFiles: () => heartbeat.move() },
    onBytes: (file) => heartbeat.move({ task: 'downloads', ...file }),
    whileWaiting: (waiting) => heartbeat.whileWaiting(waiting),
  });
}

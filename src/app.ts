// Composes the commands that read once: opens their resources, reads one advertiser after the other, then downloads the files of all of them.
import { downloadFiles, openSources } from './app/clients.ts';
import { openAnyStore, toOwner } from './app/database.ts';
import { openBlobsOf } from './app/storage.ts';
import type { Config } from './config.ts';
import type { PassCrashPoint } from './domain/crash-point.ts';
import type { Verdict } from './domain/evidence/record.ts';
import type { Trouble, WaitingTask } from './domain/trouble.ts';
import { startDeletion } from './sync/files/delete-objects.ts';
import type { DownloadAccount, DownloadSummary, DownloadTotals } from './sync/files/download-run.ts';
import { startPresence } from './sync/presence.ts';
import { requireKey } from './sync/privacy/erase.ts';
import { type BackfillRange, backfill, type ReadAccountRequest, syncAccount } from './sync/read/read-account.ts';
import { addUp, nothingCounted, type SweepCounts, type SweepDeps, type SweepSummary } from './sync/read/sweep.ts';
import { createTroubles, type RetryOptions, retry } from './sync/retry.ts';
import { createWatchdog, type Ending } from './sync/worker/watchdog.ts';

/** How a command that reads is stopped, and what it is told. */
export interface ReadEvents {
  readonly signal: AbortSignal;
  readonly onStep?: (name: string, counts: SweepCounts) => void;
  readonly onFiles?: (totals: DownloadTotals, queued: number) => void;
  /** `name` says what waits: an account, the database or the files. */
  readonly onWait?: (name: string, trouble: Trouble, waitMs: number, attempt: number) => void;
  readonly crashPoint?: PassCrashPoint | undefined;
  readonly ending?: Ending;
}

export interface ReadRequest extends ReadEvents {
  /** False leaves downloads in the queue. */
  readonly files: boolean;
}

/** The outcome of one advertiser. The trouble of one stops no other; it is null where the account was read. */
export interface Outcome {
  readonly name: string;
  readonly advertiserId: bigint | null;
  /** None where trouble ended the reading. */
  readonly sweeps: readonly SweepSummary[];
  /** What was read, also before trouble ended the reading. */
  readonly counts: SweepCounts;
  /** The verdict on the account after these and all earlier sweeps; null where trouble ended the reading. */
  readonly account: Verdict | null;
  readonly trouble: unknown;
}

/** `files` is the outcome of all downloads; null if none were requested, or trouble ended them. */
export interface ReadOutcome {
  readonly advertisers: readonly Outcome[];
  readonly files: DownloadSummary | null;
  readonly filesTrouble: unknown;
}

export type ReadConfig = Config<'database' | 'source' | 'sync' | 'privacy' | 'blobs'>;

/** How long one-shot commands wait for an unavailable database or source. */
const retryForMs = 120_000;

export async function syncOnce(config: ReadConfig, request: ReadRequest & { readonly recheck: boolean }) {
  const own = { startAt: config.sync.SYNC_START, recheck: request.recheck };
  return await overAdvertisers(config, 'sync', request, (deps, read) => syncAccount(deps, { ...read, ...own }));
}

export async function backfillOnce(
  config: ReadConfig,
  request: ReadRequest & { readonly range: BackfillRange; readonly restart: boolean },
) {
  const own = { range: request.range, restart: request.restart, parallel: backfillParallel };
  return await overAdvertisers(config, 'backfill', request, (deps, read) => backfill(deps, { ...read, ...own }));
}

/** List requests that a backfill has in flight at once. */
export const backfillParallel = 4;

async function overAdvertisers(
  config: ReadConfig,
  role: string,
  request: ReadRequest,
  work: (deps: SweepDeps, read: ReadAccountRequest) => Promise<readonly SweepSummary[]>,
): Promise<ReadOutcome> {
  const { crashPoint, onFiles } = request;
  const { LEASE: leaseMs, SYNC_LAG: lagMs } = config.sync;
  const watchdog = createWatchdog();
  await using _watch = watchdog.start(request.ending ?? null);
  using heartbeat = watchdog.begin({ task: role });
  await using store = await openAnyStore(config, role, { crashPoint });
  const owner = toOwner(role);
  const onWait: RetryOptions['onWait'] = (...wait) => request.onWait?.('database', ...wait);
  const opening = { retryForMs, signal: request.signal, onWait };
  await using presence = await retry(opening, async () => {
    await store.schema.ensure(opening);
    await requireKey(store);
    return await startPresence(store, owner);
  });
  const signal = AbortSignal.any([request.signal, presence.outdated]);
  await using sources = openSources(config, store);
  await using deletion = startDeletion({ store, openBlobs: (until) => openBlobsOf(config, store, until) }, signal);
  const troubles = createTroubles(store);
  const noteWaits =
    (task: WaitingTask, names: readonly string[], who: string): RetryOptions['onWait'] =>
    (trouble, waitMs, attempt) => {
      troubles.note(task, names, trouble, waitMs);
      request.onWait?.(who, trouble, waitMs, attempt);
    };
  const outcomes: Outcome[] = [];
  const accounts: DownloadAccount[] = [];
  for (const account of config.source.advertisers) {
    const { name } = account;
    const source = sources.open(account);
    let counts: SweepCounts = nothingCounted;
    const onStep = (step: SweepCounts) => {
      counts = addUp(counts, step);
      troubles.clear('reading', [name]);
      request.onStep?.(name, counts);
    };
    try {
      const waits = { signal, retryForMs, onWait: noteWaits('reading', [name], name) };
      const sweeps = await work({ store, source, onStep }, { ...account, ...waits, owner, leaseMs, lagMs });
      const { advertiserId, verdict } = await retry({ ...opening, signal }, async () => {
        const { advertiserId } = await store.advertisers.ensure(name, account.advertiserId);
        return { advertiserId, verdict: await store.reports.loadVerdict(advertiserId) };
      });
      outcomes.push({ name, advertiserId, sweeps, counts, account: verdict, trouble: null });
      if (advertiserId !== null) accounts.push({ name, advertiserId, source });
    } catch (trouble) {
      signal.throwIfAborted();
      outcomes.push({ name, advertiserId: null, sweeps: [], counts, account: null, trouble });
    }
  }
  const names = accounts.map((account) => account.name);
  let files: DownloadSummary | null = null;
  let filesTrouble: unknown = null;
  try {
    if (request.files && accounts.length > 0) {
      files = await downloadFiles(config, store, accounts, {
        ...{ signal, crashPoint, retryForMs, onFiles, onWait: noteWaits('downloads', names, 'files') },
        onStored: () => troubles.clear('downloads', names),
        onBytes: (file) => heartbeat.move({ task: role, ...file }),
      });
      troubles.clear('downloads', names);
    }
  } catch (trouble) {
    signal.throwIfAborted();
    filesTrouble = trouble;
  }
  await troubles.untilWritten();
  await deletion.finish().catch((trouble: unknown) => {
    signal.throwIfAborted();
    filesTrouble ??= trouble;
  });
  return { advertisers: outcomes, files, filesTrouble };
}

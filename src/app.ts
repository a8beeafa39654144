// The composition root: opens the resources of a command from its configuration, passes them to the work in sync/, and closes them. This
// file has the schema, doctor and read commands; app/ has all others. Only these files open resources, and they do not decide what is read
// or kept.
import { toOwner } from './app/actor.ts';
import { type DatabasePlace, openMigratedStoreOf, openPlace, toStoreOptions } from './app/database.ts';
import { downloadFiles, type FilesEvents } from './app/files.ts';
import {
  type Chosen,
  type ConfiguredAdvertiser,
  openBlobsOf,
  openConfiguredBlobs,
  openConnectionsOf,
  openSource,
  openSourceToLook,
  toChosen,
} from './app/resources.ts';
import type { Config } from './config.ts';
import type { ProvenVerdict } from './domain/status.ts';
import type { Trouble } from './domain/trouble.ts';
import { loadNewest, migrate, type PendingMigration, toPending } from './store/postgres/apply-migrations.ts';
import { currentUrl } from './store/postgres/connection.ts';
import { openDatabase } from './store/postgres/database.ts';
import { loadGrantsSql } from './store/postgres/grants.ts';
import { ensureSchema, requireSchema } from './store/postgres/migrations.ts';
import { openStore, type Store } from './store/store.ts';
import { startRecall } from './sync/files/delete-infected.ts';
import type { DownloadAccount, DownloadSummary } from './sync/files/download-run.ts';
import { requireKey } from './sync/privacy/privacy-key.ts';
import { createRateLimiter, type TakeSlot } from './sync/rate-limiter.ts';
import { type Estimate, estimate } from './sync/read/estimate.ts';
import { type BackfillRange, backfill, type ReadRange, syncAccount, toRanges } from './sync/read/read-account.ts';
import type { SweepDeps, SweepSummary, SweepTotals } from './sync/read/sweep.ts';
import { type RetryOptions, retry } from './sync/retry.ts';
import { createTroubles } from './sync/troubles.ts';
import { checkBlobs, checkDatabase, checkKey, checkSource, type Finding } from './sync/worker/health-checks.ts';
import { createWatchdog, type Ending } from './sync/worker/watchdog.ts';

export interface MigrateRequest {
  readonly signal: AbortSignal;
  /** Says which transaction keeps a migration from its lock. */
  readonly onWait: (message: string) => void;
}

/** Brings the schema up to date. */
export async function migrateDatabase(config: Config<'database'>, request: MigrateRequest): Promise<void> {
  await using place = await openPlace(config);
  await using db = openDatabase({ url: place.url, role: 'migrate' });
  const onWait = (trouble: Trouble) => request.onWait(trouble.message);
  await ensureSchema(db, { directUrl: place.directUrl, signal: request.signal, onWait, retryForMs: 0 });
}

/** The missing migrations with their SQL. */
export async function loadPendingMigrations(config: Config<'database'>): Promise<PendingMigration[]> {
  await using place = await openPlace(config);
  await using db = openDatabase({ url: place.url, role: 'migrate' });
  return toPending(await loadNewest(db));
}

/** Runs the missing migrations and rolls them back; returns their names. */
export async function tryMigrations(config: Config<'database'>, request: MigrateRequest): Promise<string[]> {
  await using place = await openPlace(config);
  const onWait = (trouble: Trouble) => request.onWait(trouble.message);
  return await migrate(place.directUrl, { dryRun: true, signal: request.signal, onWait });
}

/** The SQL that gives every role its least privileges; `apply` also runs it. */
export async function grantRoles(
  config: Config<'database'>,
  request: { readonly prefix: string; readonly apply: boolean },
): Promise<string> {
  await using place = await openPlace(config);
  await using db = openDatabase({ url: place.directUrl, role: 'grants', connections: 1 });
  await requireSchema(db);
  const sql = await loadGrantsSql(db, request.prefix);
  if (request.apply) await db.query(sql);
  return sql;
}

/** Runs the checks of `intake doctor`. They do not change the schema, and a failing check does not stop the others. */
export async function runChecks(config: ReadConfig, request: Chosen): Promise<Finding[]> {
  await using stack = new AsyncDisposableStack();
  const { findings, store } = await checkConfigured(config, stack);
  if (findings.every(({ check, ok }) => ok || check !== 'database')) findings.push(await checkKey(store));
  else findings.push({ check: 'PRIVACY_KEY', ok: false, detail: 'not compared: the database is unavailable' });
  // A schema of another version may not tell whose the storage is.
  const isCurrent = findings.every(({ check, ok }) => ok || check !== 'schema');
  findings.push(...(await checkBlobs(isCurrent ? store : null, () => openConfiguredBlobs(config), request.signal)));
  const connections = stack.use(openConnectionsOf(config));
  for (const account of toChosen(config, request.advertiser)) {
    const source = openSourceToLook(config, store, account, connections);
    findings.push(...(await checkSource(store, source, { ...account, signal: request.signal })));
  }
  return findings;
}

/** The findings about the database, and its store if it has a schema. */
async function checkConfigured(
  config: ReadConfig,
  stack: AsyncDisposableStack,
): Promise<{ readonly findings: Finding[]; readonly store: Store | null }> {
  let place: DatabasePlace;
  try {
    place = stack.use(await openPlace(config));
  } catch (trouble) {
    const detail = trouble instanceof Error ? trouble.message : 'cannot be opened';
    return { findings: [{ check: 'database', ok: false, detail, trouble }], store: null };
  }
  const store = stack.use(openStore(toStoreOptions(config, place, 'doctor')));
  const findings = await checkDatabase(store, Date.now);
  const schema = await store.schema.load().catch(() => null);
  return { findings, store: schema === null || schema.state === 'absent' ? null : store };
}

export type { BackfillRange } from './sync/read/read-account.ts';

/** Progress events of a long command. */
export interface ReadEvents extends FilesEvents {
  readonly onStep?: (name: string, totals: SweepTotals) => void;
  /** Ends the process when its event loop stands still. */
  readonly ending?: Ending;
}

export interface ReadRequest extends ReadEvents, Chosen {
  /** False leaves downloads in the queue. */
  readonly files: boolean;
}

/** The outcome of one advertiser: its sweeps, or the trouble that ended them. The trouble of one advertiser stops no other. */
export type Outcome = { readonly name: string } & (
  | {
      readonly advertiserId: bigint | null;
      readonly sweeps: readonly SweepSummary[];
      /** The verdict on the account after these and all earlier sweeps. */
      readonly account: ProvenVerdict;
      readonly trouble: null;
    }
  | { readonly advertiserId: null; readonly sweeps: null; readonly account: null; readonly trouble: unknown }
);

/** The outcome of all downloads; null if none were requested. */
export type FilesOutcome = { readonly summary: DownloadSummary } | { readonly trouble: unknown } | null;

/** The outcome of a command that reads. */
export interface ReadOutcome {
  readonly advertisers: readonly Outcome[];
  readonly files: FilesOutcome;
}

type ReadConfig = Config<'database' | 'source' | 'sync' | 'privacy' | 'blobs'>;

/** How long one-shot commands wait for an unavailable database or source. */
const retryForMs = 120_000;

/** One complete sync of the configured advertisers. */
export async function syncOnce(
  config: ReadConfig,
  request: ReadRequest & { readonly recheck: boolean },
): Promise<ReadOutcome> {
  return await overAdvertisers(config, 'sync', request, async (deps, account, owner) => {
    const { leaseMs, lagMs, startAt } = config.sync;
    const { recheck, signal } = request;
    return await syncAccount(deps, { ...account, owner, leaseMs, lagMs, startAt, recheck, retryForMs, signal });
  });
}

/** One backfill of a chosen range. */
export async function backfillOnce(
  config: ReadConfig,
  request: ReadRequest & { readonly range: BackfillRange; readonly restart: boolean },
): Promise<ReadOutcome> {
  return await overAdvertisers(config, 'backfill', request, async (deps, account, owner) => {
    const { range, restart, signal } = request;
    const { leaseMs, lagMs } = config.sync;
    return await backfill(deps, {
      ...account,
      owner,
      leaseMs,
      lagMs,
      range,
      restart,
      parallel: backfillParallel,
      retryForMs,
      signal,
    });
  });
}

/** List requests that a backfill has in flight at once. */
const backfillParallel = 4;

/** What a backfill would cost, per advertiser and range. Stores nothing of what it reads. */
export async function estimateBackfill(
  config: Omit<ReadConfig, 'blobs'>,
  request: Chosen & { readonly range: BackfillRange },
): Promise<{ readonly name: string; readonly range: ReadRange; readonly estimate: Estimate }[]> {
  // An estimate creates a missing schema but does not upgrade an existing one.
  await using app = await openMigratedStoreOf(config, 'backfill', request.signal, { upgrade: false });
  await using connections = openConnectionsOf(config);
  const estimates = [];
  for (const account of toChosen(config, request.advertiser)) {
    const source = openSourceToLook(config, app.store, account, connections);
    const advertiser = await app.store.advertisers.lookUp(account.name, account.advertiserId);
    const { advertiserId } = advertiser;
    for (const range of await toRanges(app, advertiserId, request.range)) {
      const isById = range.axis === 'id' && advertiserId !== null;
      const asked = {
        range,
        held: isById ? await app.store.applications.countListed(advertiserId, range) : 0,
        requestsPerSecond: config.source.requestsPerSecond,
        parallel: backfillParallel,
        now: Date.now(),
        signal: request.signal,
      };
      estimates.push({ name: account.name, range, estimate: await estimate(source, asked) });
    }
  }
  return estimates;
}

/** Does the work for each chosen advertiser in sequence, with its source and the shared store, then downloads the files of all of them. */
async function overAdvertisers(
  config: ReadConfig,
  role: string,
  request: ReadRequest,
  work: (deps: SweepDeps, account: ConfiguredAdvertiser, owner: string) => Promise<readonly SweepSummary[]>,
): Promise<ReadOutcome> {
  const { signal, crashPoint } = request;
  const onWait: RetryOptions['onWait'] = (trouble, waitMs, attempt) =>
    request.onWait?.('database', trouble, waitMs, attempt);
  const retryOptions = { retryForMs, signal, onWait };
  const watchdog = createWatchdog({ now: () => performance.now(), stuckMs: Number.POSITIVE_INFINITY });
  await using _watch = watchdog.start(request.ending ?? null);
  using heartbeat = watchdog.begin({ task: role });
  await using app = await openMigratedStoreOf(config, role, signal, { ...retryOptions, crashPoint });
  await retry(retryOptions, () => requireKey(app.store));
  await using connections = openConnectionsOf(config);
  await using recall = startRecall(
    { store: app.store, openBlobs: (until) => openBlobsOf(config, app.store, until) },
    signal,
  );
  const owner = toOwner(role);
  const troubles = createTroubles(app.store);
  const limiters = new Map<string, TakeSlot>();
  const outcomes: Outcome[] = [];
  const accounts: DownloadAccount[] = [];
  for (const account of toChosen(config, request.advertiser)) {
    const { name } = account;
    const limiter =
      limiters.get(account.url) ?? createRateLimiter(app.store, account.url, config.source.requestsPerSecond);
    limiters.set(account.url, limiter);
    const source = openSource(config, app.store, account, limiter, { connections });
    const deps: SweepDeps = {
      store: app.store,
      source,
      onStep(totals) {
        troubles.clear('reading', [name]);
        request.onStep?.(name, totals);
      },
      onWait(trouble, waitMs, attempt) {
        troubles.note('reading', [name], trouble, waitMs);
        request.onWait?.(name, trouble, waitMs, attempt);
      },
    };
    try {
      const sweeps = await work(deps, account, owner);
      const { advertiserId } = await retry(retryOptions, () =>
        app.store.advertisers.ensure(name, account.advertiserId),
      );
      const verdict = await retry(retryOptions, () => app.store.reports.loadVerdict(name));
      outcomes.push({ name, advertiserId, sweeps, account: verdict, trouble: null });
      if (advertiserId !== null) accounts.push({ name, advertiserId, source });
    } catch (trouble) {
      request.signal.throwIfAborted();
      outcomes.push({ name, advertiserId: null, sweeps: null, account: null, trouble });
    }
  }
  const names = accounts.map((account) => account.name);
  const files = await fetchFiles(config, app.store, accounts, {
    ...request,
    onStored: () => troubles.clear('downloads', names),
    onWait(name, trouble, waitMs, attempt) {
      troubles.note('downloads', names, trouble, waitMs);
      request.onWait?.(name, trouble, waitMs, attempt);
    },
    onBytes: (file) => heartbeat.move({ task: role, ...file }),
  });
  if (files !== null && !('trouble' in files)) troubles.clear('downloads', names);
  await troubles.untilWritten();
  try {
    await recall.finish();
    return { advertisers: outcomes, files };
  } catch (trouble) {
    request.signal.throwIfAborted();
    return { advertisers: outcomes, files: files !== null && 'trouble' in files ? files : { trouble } };
  }
}

async function fetchFiles(
  config: ReadConfig,
  store: Store,
  accounts: readonly DownloadAccount[],
  request: ReadRequest,
): Promise<FilesOutcome> {
  if (!request.files || accounts.length === 0) return null;
  try {
    return { summary: await downloadFiles(config, store, accounts, { ...request, retryForMs }) };
  } catch (trouble) {
    request.signal.throwIfAborted();
    return { trouble };
  }
}

/** The configured database, kept open while a command like the demo runs. */
export async function openLocalDatabase(
  config: Config<'database'>,
): Promise<{ readonly url: string } & AsyncDisposable> {
  const place = await openPlace(config);
  return { url: currentUrl(place.url), [Symbol.asyncDispose]: () => place[Symbol.asyncDispose]() };
}

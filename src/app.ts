// The composition root: opens what a command needs from its configuration, wires the edges into the passes, and closes it all again.
// The only opener of resources; it decides nothing about what is read or kept.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Config } from './config.ts';
import type { Plan } from './domain/coverage.ts';
import { type Status, toStatus } from './domain/status.ts';
import type { Trouble } from './domain/trouble.ts';
import { createSource, type Source } from './source/client.ts';
import { openDatabase } from './store/database.ts';
import { openEmbedded } from './store/embedded.ts';
import type { JobRow } from './store/jobs.ts';
import { ensureSchema } from './store/migrations.ts';
import { openStore, type Store, type StoreOptions } from './store/store.ts';
import { type BackfillRange, backfill, toPlans } from './sync/backfill.ts';
import { type Estimate, estimate } from './sync/estimate.ts';
import { examineDatabase, examineSource, type Finding } from './sync/examine.ts';
import { createPace } from './sync/pace.ts';
import { syncRound } from './sync/round.ts';
import type { SweepDeps, SweepSummary, SweepTotals } from './sync/sweep.ts';

const root = join(import.meta.dirname, '..');
const version = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version;

/** Lists are abandoned beyond this and asked for in smaller ranges, so that memory stays bounded whatever the source sends. */
const listMaxBytes = 8_000_000;
/** However steadily an answer drips, it ends after this. */
const totalTimeoutMs = 600_000;

/** Brings the schema up to date and says whether there was something to do. */
export async function migrateDatabase(config: Config<'database'>, signal: AbortSignal): Promise<void> {
  await using place = await openPlace(config);
  await using db = openDatabase({ url: place.url, role: 'migrate' });
  await ensureSchema(db, { directUrl: place.directUrl, signal, patienceMs: 0 });
}

/** What a person asks of `intake status`, once or again and again. */
export async function openStatus(
  config: Config<'database' | 'privacy' | 'sync'>,
  signal: AbortSignal,
): Promise<{ load(): Promise<Status> } & AsyncDisposable> {
  const app = await openStoreOf(config, 'status', signal);
  const staleAfterMs = config.sync.staleAfterMs();
  return {
    load: async () => toStatus(new Date(), await app.store.loadAdvertiserStatus(), staleAfterMs),
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  };
}

/** What `intake doctor` finds. The schema is looked at, not changed. */
export async function examine(config: ReadingConfig, request: ReadingRequest): Promise<Finding[]> {
  let place: Place;
  try {
    place = await openPlace(config);
  } catch (trouble) {
    return [
      {
        check: 'database',
        ok: false,
        detail: trouble instanceof Error ? trouble.message : 'cannot be opened',
        trouble,
      },
    ];
  }
  await using _place = place;
  await using store = openStore(toStoreOptions(config, place, 'doctor'));
  const findings = await examineDatabase(store, Date.now);
  if (findings.some((finding) => !finding.ok)) return findings;
  for (const account of toChosen(config, request.advertiser)) {
    await using source = openSource(config, account, createPace(config.source.requestsPerSecond));
    findings.push(...(await examineSource(store, source, { ...account, signal: request.signal })));
  }
  return findings;
}

/** The jobs with the most applications: a first look at what is stored. */
export async function loadBusiestJobs(config: Config<'database' | 'privacy'>, signal: AbortSignal): Promise<JobRow[]> {
  await using app = await openStoreOf(config, 'demo', signal);
  return await app.store.loadBusiestJobs(10);
}

export type { BackfillRange } from './sync/backfill.ts';

/** What a long command tells while it runs. */
export interface ReadingEvents {
  readonly onStep?: (name: string, totals: SweepTotals) => void;
  readonly onWait?: (name: string, trouble: Trouble, waitMs: number) => void;
}

export interface ReadingRequest extends ReadingEvents {
  /** Of several configured advertisers only this one. */
  readonly advertiser?: string | undefined;
  readonly signal: AbortSignal;
}

/** What became of one advertiser: its sweeps, or the trouble that ended them. One advertiser's trouble stops no other. */
export type Outcome = { readonly name: string } & (
  | { readonly advertiserId: bigint | null; readonly sweeps: readonly SweepSummary[]; readonly trouble: null }
  | { readonly advertiserId: null; readonly sweeps: null; readonly trouble: unknown }
);

type ReadingConfig = Config<'database' | 'source' | 'sync' | 'privacy'>;

/** How long one-shot commands wait for a database or source that is gone. */
const patienceMs = 120_000;

/** One complete round over the configured advertisers. */
export async function syncOnce(
  config: ReadingConfig,
  request: ReadingRequest & { readonly recheck: boolean },
): Promise<Outcome[]> {
  return await overAdvertisers(config, 'sync', request, async (deps, account, owner) => {
    const { leaseMs, lagMs, startAt } = config.sync;
    const { recheck, signal } = request;
    return await syncRound(deps, { ...account, owner, leaseMs, lagMs, startAt, recheck, patienceMs, signal });
  });
}

/** One reading of a chosen range. */
export async function backfillOnce(
  config: ReadingConfig,
  request: ReadingRequest & { readonly range: BackfillRange; readonly restart: boolean },
): Promise<Outcome[]> {
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
      patienceMs,
      signal,
    });
  });
}

/** Lists asked for at once by a backfill. */
const backfillParallel = 4;

/** What a backfill would ask, per advertiser and range; nothing is stored. */
export async function estimateBackfill(
  config: ReadingConfig,
  request: ReadingRequest & { readonly range: BackfillRange },
): Promise<{ readonly name: string; readonly plan: Plan; readonly estimate: Estimate }[]> {
  await using app = await openStoreOf(config, 'backfill', request.signal);
  const estimates = [];
  for (const account of toChosen(config, request.advertiser)) {
    await using source = openSource(config, account, createPace(config.source.requestsPerSecond));
    const { advertiserId } = await app.store.ensureAdvertiser(account.name, account.advertiserId);
    for (const plan of await toPlans(app, advertiserId, request.range)) {
      const held =
        advertiserId === null ? 0 : (await app.store.loadHeld(advertiserId, plan.from ?? 1n, plan.to ?? null)).held;
      const { requestsPerSecond } = config.source;
      const asked = {
        plan,
        held,
        requestsPerSecond,
        parallel: backfillParallel,
        now: Date.now(),
        signal: request.signal,
      };
      estimates.push({ name: account.name, plan, estimate: await estimate(source, asked) });
    }
  }
  return estimates;
}

/** Does the work for each chosen advertiser in turn, with its source and the shared store. */
async function overAdvertisers(
  config: ReadingConfig,
  role: string,
  request: ReadingRequest,
  work: (deps: SweepDeps, account: Account, owner: string) => Promise<readonly SweepSummary[]>,
): Promise<Outcome[]> {
  await using app = await openStoreOf(config, role, request.signal);
  const owner = `${role} on ${hostname()} (${process.pid}, ${randomUUID().slice(0, 8)})`;
  const paces = new Map<string, ReturnType<typeof createPace>>();
  const outcomes: Outcome[] = [];
  for (const account of toChosen(config, request.advertiser)) {
    const { name } = account;
    const pace = paces.get(account.url) ?? createPace(config.source.requestsPerSecond);
    paces.set(account.url, pace);
    await using source = openSource(config, account, pace);
    const deps: SweepDeps = {
      store: app.store,
      source,
      onStep: (totals) => request.onStep?.(name, totals),
      onWait: (trouble, waitMs) => request.onWait?.(name, trouble, waitMs),
    };
    try {
      const sweeps = await work(deps, account, owner);
      const advertiserId = sweeps.at(-1)?.advertiser.advertiserId ?? account.advertiserId;
      outcomes.push({ name, advertiserId, sweeps, trouble: null });
    } catch (trouble) {
      request.signal.throwIfAborted();
      outcomes.push({ name, advertiserId: null, sweeps: null, trouble });
    }
  }
  return outcomes;
}

type Account = Config<'source'>['source']['advertisers'][number];

function toChosen(config: Config<'source'>, name: string | undefined): readonly Account[] {
  const { advertisers } = config.source;
  return name === undefined ? advertisers : advertisers.filter((advertiser) => advertiser.name === name);
}

function openSource(
  config: Config<'source'>,
  { url, credential }: Account,
  takeTurn: (signal: AbortSignal) => Promise<void>,
): Source {
  return createSource({
    url,
    credential: () => credential.current(),
    format: config.source.format,
    idleTimeoutMs: config.source.idleTimeoutMs,
    totalTimeoutMs,
    connections: config.source.concurrency,
    listMaxBytes,
    userAgent: `intake/${version}`,
    takeTurn,
  });
}

/** The database of the configuration, held while a command like the demo runs. */
export async function openLocalDatabase(
  config: Config<'database'>,
): Promise<{ readonly url: string } & AsyncDisposable> {
  return await openPlace(config);
}

interface Place extends AsyncDisposable {
  readonly url: string;
  readonly directUrl: string;
}

/** The database of the configuration, started if it is the embedded one. */
async function openPlace({ database }: Config<'database'>): Promise<Place> {
  if (database.url === 'embedded') {
    const embedded = await openEmbedded({ root });
    return { url: embedded.url, directUrl: embedded.url, [Symbol.asyncDispose]: () => embedded[Symbol.asyncDispose]() };
  }
  const url = database.url.reveal();
  return { url, directUrl: database.directUrl?.reveal() ?? url, [Symbol.asyncDispose]: async () => {} };
}

/** The store on an up-to-date schema. */
async function openStoreOf(
  config: Config<'database' | 'privacy'>,
  role: string,
  signal: AbortSignal,
): Promise<{ readonly store: Store } & AsyncDisposable> {
  const stack = new AsyncDisposableStack();
  try {
    const place = stack.use(await openPlace(config));
    const store = stack.use(openStore(toStoreOptions(config, place, role)));
    await store.ensureSchema({ directUrl: place.directUrl, signal });
    return { store, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

function toStoreOptions(config: Config<'privacy'>, place: Place, role: string): StoreOptions {
  return { url: place.url, role, privacyKey: Buffer.from(config.privacy.key.reveal(), 'utf8') };
}

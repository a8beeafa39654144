// The composition root: opens what a command needs from its configuration, wires the edges into the passes, and closes it all again.
// The only opener of resources; it decides nothing about what is read or kept.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Config } from './config.ts';
import { type Status, toStatus } from './domain/status.ts';
import type { Trouble } from './domain/trouble.ts';
import { createSource, type Source } from './source/client.ts';
import { openDatabase } from './store/database.ts';
import { openEmbedded } from './store/embedded.ts';
import type { JobRow } from './store/jobs.ts';
import { ensureSchema } from './store/migrations.ts';
import { openStore, type Store } from './store/store.ts';
import { createPace } from './sync/pace.ts';
import { type RoundSummary, syncRound } from './sync/round.ts';
import type { SweepTotals } from './sync/sweep.ts';

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

/** What a person asks of `intake status`. */
export async function loadStatus(config: Config<'database' | 'privacy'>, signal: AbortSignal): Promise<Status> {
  await using app = await openStoreOf(config, 'status', signal);
  return toStatus(new Date(), await app.store.loadAdvertiserStatus());
}

/** The jobs with the most applications: a first look at what is stored. */
export async function loadBusiestJobs(config: Config<'database' | 'privacy'>, signal: AbortSignal): Promise<JobRow[]> {
  await using app = await openStoreOf(config, 'demo', signal);
  return await app.store.loadBusiestJobs(10);
}

export interface SyncEvents {
  readonly onStep?: (name: string, totals: SweepTotals) => void;
  readonly onWait?: (name: string, trouble: Trouble, waitMs: number) => void;
  readonly onRetry?: (name: string, trouble: Trouble) => void;
}

export interface SyncRequest extends SyncEvents {
  readonly recheck: boolean;
  /** Of several configured advertisers only this one. */
  readonly advertiser?: string | undefined;
  readonly signal: AbortSignal;
}

/** What became of one advertiser's round: its summary, or the trouble that ended it. One advertiser's trouble stops no other. */
export type RoundOutcome = { readonly name: string } & (
  | { readonly summary: RoundSummary; readonly trouble: null }
  | { readonly summary: null; readonly trouble: unknown }
);

/** One complete round over the configured advertisers. */
export async function syncOnce(
  config: Config<'database' | 'source' | 'sync' | 'privacy'>,
  request: SyncRequest,
): Promise<RoundOutcome[]> {
  await using app = await openStoreOf(config, 'sync', request.signal);
  const owner = `sync on ${hostname()} (${process.pid}, ${randomUUID().slice(0, 8)})`;
  const paces = new Map<string, ReturnType<typeof createPace>>();
  const outcomes: RoundOutcome[] = [];
  for (const advertiser of toChosen(config, request.advertiser)) {
    const { name } = advertiser;
    const pace = paces.get(advertiser.url) ?? createPace(config.source.requestsPerSecond);
    paces.set(advertiser.url, pace);
    await using source = openSource(config, advertiser, pace, (trouble) => request.onRetry?.(name, trouble));
    try {
      const summary = await syncRound(
        {
          store: app.store,
          source,
          onStep: (totals) => request.onStep?.(name, totals),
          onWait: (trouble, waitMs) => request.onWait?.(name, trouble, waitMs),
        },
        {
          name,
          advertiserId: advertiser.advertiserId,
          owner,
          leaseMs: config.sync.leaseMs,
          lagMs: config.sync.lagMs,
          startAt: config.sync.startAt,
          recheck: request.recheck,
          patienceMs: 120_000,
          signal: request.signal,
        },
      );
      outcomes.push({ name, summary, trouble: null });
    } catch (trouble) {
      request.signal.throwIfAborted();
      outcomes.push({ name, summary: null, trouble });
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
  onRetry: (trouble: Trouble) => void,
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
    onRetry: ({ trouble }) => onRetry(trouble),
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
    const store = stack.use(
      openStore({ url: place.url, role, privacyKey: Buffer.from(config.privacy.key.reveal(), 'utf8') }),
    );
    await store.ensureSchema({ directUrl: place.directUrl, signal });
    return { store, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

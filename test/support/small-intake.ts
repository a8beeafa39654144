// A small, complete Intake for tests of files: a sandbox, a database, a blob store, and download runs.
import { join } from 'node:path';
import { openDiskBlobs } from '../../src/blobs/disk.ts';
import { openSandbox, type Sandbox, type SandboxOptions } from '../../src/dev/sandbox/http/server.ts';
import type { ApplicationPlan } from '../../src/dev/sandbox/people/plan.ts';
import type { BlobStore } from '../../src/domain/blob.ts';
import type { Sought } from '../../src/domain/erasure.ts';
import { toStatus } from '../../src/domain/status/status.ts';
import type { Source } from '../../src/source/client.ts';
import { describeFile } from '../../src/source/parse/file-description.ts';
import { parseScreens } from '../../src/source/parse/screen.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { holdLane } from '../../src/sync/accounts/held-lane.ts';
import { deleteDue } from '../../src/sync/files/delete-objects.ts';
import {
  type DownloadRunDeps,
  type DownloadRunRequest,
  type DownloadSummary,
  runDownloads,
} from '../../src/sync/files/download-run.ts';
import { openSpool } from '../../src/sync/files/spool.ts';
import { type VerifyRequest, verify } from '../../src/sync/files/verify.ts';
import { erase } from '../../src/sync/privacy/erase.ts';
import { syncAccount } from '../../src/sync/read/read-account.ts';
import { readIds } from '../../src/sync/read/read-range.ts';
import { emptyDatabase, openTestDatabase, type TestDatabase } from './database/test-database.ts';
import { testPrivacyKey } from './processes/syncing.ts';
import { type OwnSourceOptions, openOwnSource } from './servers/own-source.ts';
import { openScratch } from './stores/blob-stores.ts';

/** The row of an attachment. */
export interface FileRow {
  readonly application_id: string;
  readonly kind: string;
  readonly version: number;
  readonly state: string;
  readonly reason: string | null;
  readonly sha256: string | null;
  readonly content_type: string | null;
  readonly detected_type: string | null;
  readonly file_name: string | null;
  readonly notes: readonly { field: string; reason: string }[] | null;
  readonly linked: boolean;
}

export interface SmallIntake extends AsyncDisposable {
  readonly board: Sandbox;
  readonly database: TestDatabase;
  readonly store: Store;
  readonly blobs: BlobStore;
  /** The folder of blobs and spool. */
  readonly folder: string;
  openSource(format: 'json' | 'xml'): Source & AsyncDisposable;
  /** Reads the list: new applications, or with `recheck` all of them. */
  sweep(recheck?: boolean): Promise<void>;
  /** Downloads the files that are due. */
  runDownloads(options?: RunOptions): Promise<DownloadSummary>;
  /** Reads the list and downloads the files that are due. */
  syncWithFiles(options?: RunOptions): Promise<DownloadSummary>;
  /** Adds applications to the board and reads the list. */
  receive(plans: number | readonly ApplicationPlan[]): Promise<bigint[]>;
  receiveWithFiles(plans: number | readonly ApplicationPlan[]): Promise<bigint[]>;
  /** Changes an application on the board and reads the list again. */
  change(id: bigint, plan: ApplicationPlan): Promise<void>;
  changeWithFiles(id: bigint, plan: ApplicationPlan): Promise<void>;
  /** Makes every waiting download due now. */
  hasten(): Promise<void>;
  files(): Promise<FileRow[]>;
  /** The row of the only file. */
  file(): Promise<FileRow>;
  /** Keys in the blob store. */
  keys(): Promise<string[]>;
}

export type RunOptions = Partial<DownloadRunRequest> & {
  readonly deps?: Partial<DownloadRunDeps>;
  readonly http?: Partial<OwnSourceOptions>;
  readonly format?: 'json' | 'xml';
};

export interface SmallIntakeOptions extends SandboxOptions {
  /** A folder by default. */
  readonly blobs?: BlobStore;
  /** A database that the tests of a file share; emptied first. They share its store too: sessions that know the tables save half the CPU. */
  readonly database?: TestDatabase;
  /** `poll` (default) reads one application with 2 requests. `proof` is for tests of certificates: it takes 20 requests, a recheck 30. */
  readonly rigor?: 'proof' | 'poll';
}

const openTestStore = ({ url }: TestDatabase) =>
  openStore({ url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });

const sharedStores = new WeakMap<TestDatabase, Store>();

/** The store of a database that the tests of a file share; it is closed with the database. */
export function openSharedStore(database: TestDatabase): Store {
  const store = sharedStores.get(database) ?? database.shared.use(openTestStore(database));
  sharedStores.set(database, store);
  return store;
}

export async function openSmallIntake(options: SmallIntakeOptions = {}): Promise<SmallIntake> {
  await using stack = new AsyncDisposableStack();
  const scratch = stack.use(await openScratch());
  const board = stack.use(await openSandbox({ applications: 0, ...options }));
  const database = options.database ?? stack.use(await openTestDatabase());
  if (options.database) await emptyDatabase(database);
  const blobs = options.blobs ?? stack.use(await openDiskBlobs(join(scratch.path, 'blobs')));
  const store = options.database ? openSharedStore(database) : stack.use(openTestStore(database));
  const spool = openSpool(scratch.path);

  const files = () =>
    database.query<FileRow>(
      `SELECT application_id, kind, version, state, reason, sha256, content_type, detected_type, file_name, notes, linked
       FROM intake.attachments ORDER BY application_id, kind`,
    );

  const openSource = (format: 'json' | 'xml', http: Partial<OwnSourceOptions> = {}) =>
    openOwnSource({
      url: board.url,
      credential: board.credential,
      format,
      connections: 8,
      listMaxBytes: 8_000_000,
      applicationMaxBytes: 8_000_000,
      retryDelayMs: 1,
      ...http,
    });

  async function sweep(recheck = false): Promise<void> {
    await using source = openSource('json');
    const whose = { name: 'default', advertiserId: null, owner: 'test' };
    const how = { leaseMs: 30_000, lagMs: 900_000, startAt: null, retryForMs: 0, signal: AbortSignal.timeout(600_000) };
    if (options.rigor === 'proof') return void (await syncAccount({ store, source }, { ...whose, ...how, recheck }));
    const advertiser = await store.advertisers.ensure(whose.name, null);
    await using lane = await holdLane(store, { ...whose, ...how, lane: 'live' });
    const plan = { rigor: 'poll' } as const;
    await readIds({ store, source }, { ...how, lane, advertiser, purpose: 'recheck', parallel: 1 }, plan);
  }

  async function run(settings: RunOptions = {}): Promise<DownloadSummary> {
    const { deps, http, format = 'json', ...request } = settings;
    await using source = openSource(format, http);
    const accounts = [{ name: 'default', advertiserId: board.advertiserId, source }];
    const summary = await runDownloads(
      {
        ...{ store, blobs, accounts, spool, describeFile, parseScreens },
        ...deps,
      },
      {
        concurrency: 8,
        leaseMs: 30_000,
        maxBytes: 50_000_000,
        hash: 'learn',
        retryForMs: 0,
        graceMs: 0,
        signal: AbortSignal.timeout(600_000),
        ...request,
      },
    );
    // A worker and the CLI also do this beside a download run.
    await deleteDue({ store, blobs }, AbortSignal.timeout(600_000));
    return summary;
  }

  async function syncWithFiles(settings?: RunOptions): Promise<DownloadSummary> {
    await sweep();
    return await run(settings);
  }

  async function receive(plans: number | readonly ApplicationPlan[]): Promise<bigint[]> {
    const ids = board.add(plans);
    await sweep();
    return ids;
  }

  async function change(id: bigint, plan: ApplicationPlan): Promise<void> {
    board.change(id, plan);
    await sweep(true);
  }

  const owned = stack.move();
  return {
    board,
    database,
    store,
    blobs,
    folder: scratch.path,
    openSource,
    sweep,
    runDownloads: run,
    syncWithFiles,
    receive,
    async receiveWithFiles(plans) {
      const ids = await receive(plans);
      await run();
      return ids;
    },
    change,
    async changeWithFiles(id, plan) {
      await change(id, plan);
      await run();
    },
    hasten: async () =>
      // Skips rows that a download run is completing: waiting for several of them could deadlock.
      void (await database.query(
        `UPDATE intake.downloads SET due_at = now() WHERE ctid = ANY (ARRAY(
           SELECT ctid FROM intake.downloads WHERE lease_token IS NULL AND due_at > now() FOR UPDATE SKIP LOCKED))`,
      )),
    files,
    async file() {
      const [only] = await files();
      if (!only) throw new Error('There is no file.');
      return only;
    },
    keys: () => Array.fromAsync(blobs.list('', AbortSignal.timeout(600_000)), ({ key }) => key),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Erases a person as `intake erase` does; the receipts. */
export const eraseAt = (
  { board, ...deps }: Pick<SmallIntake, 'store' | 'blobs' | 'board'>,
  sought: Sought,
  future = false,
) =>
  erase(deps, { advertiserId: board.advertiserId, sought, future, by: 'test', signal: AbortSignal.timeout(600_000) });

/** Verifies every file, and reads all of their bytes unless the request says otherwise. */
export const verifyAt = (
  { board, ...deps }: Pick<SmallIntake, 'store' | 'blobs' | 'board'>,
  request: Partial<VerifyRequest> = {},
) =>
  verify(deps, {
    advertisers: [board.advertiserId],
    amount: { share: 1 },
    signal: AbortSignal.timeout(600_000),
    ...request,
  });

/** The problems that the status tells. */
export const loadProblems = async ({ store }: Pick<SmallIntake, 'store'>, staleAfterMs: number | null = null) =>
  toStatus(new Date(), await store.reports.loadStatus(), { staleAfterMs }).problems;

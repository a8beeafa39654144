// A download run: one pass over the due downloads of some accounts, several at once and fair between accounts. It claims downloads, renews
// the claims, handles every failure, and releases the claims that it cannot finish. download.ts has the steps of one file.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasRoom } from '../../domain/blob.ts';
import { type HashSetting, isAmbiguous, toVerdict } from '../../domain/download-verdict.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { Claim, FileFacts } from '../../store/files/download-queue.ts';
import { createSlots } from '../limits.ts';
import { type RetryOptions, retry } from '../retry.ts';
import { type DownloadDeps, type DownloadEnd, download } from './download.ts';

export interface DownloadAccount {
  readonly name: string;
  readonly advertiserId: bigint;
  readonly source: Source;
}

export interface DownloadRunDeps extends Omit<DownloadDeps, 'source' | 'onBytes'> {
  readonly accounts: readonly DownloadAccount[];
  readonly memory?: DownloadMemory | undefined;
  /** Called after each file that ended or failed. */
  readonly onStep?: ((totals: DownloadTotals) => void) | undefined;
  /** Called with account and file as bytes arrive, and before they are parsed. */
  readonly onBytes?: ((work: Readonly<Record<string, string>>) => void) | undefined;
  readonly onWait?: RetryOptions['onWait'];
  /** Called with the account's name when its source could not be connected to. */
  readonly onUnreachable?: ((name: string) => void) | undefined;
}

/** Times on the `performance.now` clock. */
export interface DownloadMemory {
  /** When the pause of each account ends, by account name. */
  readonly pauses: Map<string, number>;
  /** The last put that succeeded. If it came after the last failure of a download whose put fails, its bytes are the cause. */
  putAt: number;
}

export const createDownloadMemory = (): DownloadMemory => ({ pauses: new Map(), putAt: Number.NEGATIVE_INFINITY });

export interface DownloadRunRequest {
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly maxBytes: number;
  readonly hash: HashSetting;
  /** How long the run waits for downloads that become due later, and for an unavailable storage or database. 0: it does not wait. */
  readonly retryForMs: number;
  /** How long downloads in flight may take to finish after the signal aborts. */
  readonly graceMs: number;
  readonly signal: AbortSignal;
}

/** `linked` files are stored without a request: Hash and Size equal those of a stored file. */
const noTotals = { stored: 0, bytes: 0, linked: 0, infected: 0, missing: 0, rejected: 0, givenUp: 0, failures: 0 };
type Totals = typeof noTotals;
export type DownloadTotals = Readonly<Totals>;

export interface DownloadSummary extends DownloadTotals {
  readonly waiting: number;
  /** Of these, files that the source does not have yet. */
  readonly notThere: number;
}

/** At this interval a long run claims no other downloads and fetches the due suspects, each alone. */
const suspectsEveryMs = 60_000;
/** After this many failures in a row an account rests: its source may be away. */
const outageStreak = 8;
const outagePauseMs = 5_000;
/** Added to a Retry-After, or an eighth of it, so that the list is read first. If it is served, the next one concerns this file alone. */
const listFirstMs = 1_000;
/** Most downloads that wait for their commit. With only twice the concurrency, commits of 14 files were the bottleneck (measured). */
const mostUncommitted = 64;

/** Tells the claims of this process from those of one that may have ended. */
const processDigits = randomUUID().slice(0, 8);

/** Downloads until nothing becomes due within `retryForMs`. Waits for a storage or database that is away, until that has lasted as long. */
export async function runDownloads(deps: DownloadRunDeps, request: DownloadRunRequest): Promise<DownloadSummary> {
  const { memory = createDownloadMemory(), accounts, store } = deps;
  const totals = { ...noTotals };
  return await retry({ ...request, progress: () => totals.stored, onWait: deps.onWait }, async () => {
    await runOnce(deps, memory, request, totals);
    const { waiting, notThere } = await store.downloads.loadWaiting(accounts.map((one) => one.advertiserId));
    return { ...totals, waiting, notThere };
  });
}

/** With the number of failures of its source in a row. */
type RunAccount = DownloadAccount & { streak: number };

async function runOnce(
  deps: DownloadRunDeps,
  memory: DownloadMemory,
  request: DownloadRunRequest,
  totals: Totals,
): Promise<void> {
  const { store } = deps;
  const { concurrency, signal } = request;
  const accounts = new Map<bigint, RunAccount>(deps.accounts.map((one) => [one.advertiserId, { ...one, streak: 0 }]));
  // Fetching, holding bytes in the spool and waiting for the commit have separate limits, so that source, blob store and database do not
  // wait for each other.
  const fetching = createSlots(concurrency);
  const holding = createSlots(2 * concurrency);
  const unfetched = new Set<Claim>();
  const inFlight = new Map<Claim, Promise<void>>();
  const abort = new AbortController();
  /** Ends the run: the storage or the database is unavailable, or the error is unexpected. Downloads in flight come to their end. */
  const failure = new AbortController();
  const ended = AbortSignal.any([signal, failure.signal]);
  /** Resolves when a download has its bytes, or has ended. */
  let moved = Promise.withResolvers<void>();
  let suspectsAt = performance.now() + suspectsEveryMs;
  let emptySince: number | null = null;

  const toPauseMs = ({ name }: RunAccount, now = performance.now()) => (memory.pauses.get(name) ?? 0) - now;
  const pause = ({ name }: RunAccount, ms: number) => memory.pauses.set(name, performance.now() + ms);
  /** Releases a claim without counting an attempt. A claim that cannot be released expires. */
  const release = (claim: Claim) => store.downloads.releaseDownloads([claim]).catch(() => {});
  const untilIdle = () => Promise.all(inFlight.values());

  function leave(stage: { delete(claim: Claim): boolean }, claim: Claim): void {
    stage.delete(claim);
    moved.resolve();
    moved = Promise.withResolvers();
  }

  async function claim(tier: 'usual' | 'suspects', limit: number): Promise<boolean> {
    const awake = [...accounts.values()].filter((one) => toPauseMs(one) <= 0);
    if (awake.length === 0) return false;
    await requireRoom(deps, 2 * concurrency * request.maxBytes);
    const token = `${processDigits}${randomUUID().slice(8)}`;
    const { leaseMs, hash } = request;
    const advertisers = awake.map((one) => one.advertiserId);
    const { claims, expired } = await store.downloads.claimDownloads({ advertisers, tier, limit, token, leaseMs });
    for (const file of claims.length > 0 ? await store.downloads.loadFileFacts(claims, hash) : []) {
      const account = accounts.get(file.claim.advertiserId);
      if (account) start(account, file);
    }
    return claims.length > 0 || expired > 0;
  }

  function start(account: RunAccount, file: FileFacts): void {
    unfetched.add(file.claim);
    const done = fetchOne(account, file)
      .then(() => deps.onStep?.({ ...totals }))
      .catch((error: unknown) => failure.abort(error))
      .finally(() => {
        unfetched.delete(file.claim);
        leave(inFlight, file.claim);
      });
    inFlight.set(file.claim, done);
  }

  async function fetchOne(account: RunAccount, file: FileFacts): Promise<void> {
    const inHand = { advertiser: account.name, application: String(file.claim.applicationId), kind: file.claim.kind };
    const fileDeps = { ...deps, source: account.source, onBytes: () => deps.onBytes?.(inHand) };
    using held = new DisposableStack();
    using asking = new DisposableStack();
    const onFetched = () => {
      account.streak = 0;
      asking.dispose();
      leave(unfetched, file.claim);
    };
    const onSpoolFree = () => held.dispose();
    try {
      held.use(await holding.take(abort.signal));
      asking.use(await fetching.take(abort.signal));
      if (ended.aborted || toPauseMs(account) > 0) return await release(file.claim);
      const end = await download(fileDeps, { ...request, file, signal: abort.signal, onFetched, onSpoolFree });
      count(end.state);
      if (end.state !== 'stored') return;
      totals.bytes += end.fetchedBytes;
      memory.putAt = performance.now();
    } catch (error) {
      if (abort.signal.aborted) return await release(file.claim);
      await fail(account, file.claim, error instanceof Trouble ? error : toUnexpected(error));
    }
  }

  function count(state: DownloadEnd['state']): void {
    if (state === 'stored' || state === 'linked') totals.stored += 1;
    if (state === 'given_up') totals.givenUp += 1;
    else if (state === 'linked' || state === 'infected' || state === 'missing' || state === 'rejected')
      totals[state] += 1;
    emptySince = null;
  }

  /** Commits a failure: gives the download back to the queue, or ends it. Pauses what the failure shows to be away. */
  async function fail(account: RunAccount, failed: Claim, found: Trouble): Promise<void> {
    totals.failures += 1;
    // A trouble of our storage, disk or database may come during a fetch.
    const at = found.kind === 'local' || found.at === 'storage' || found.at === 'database' ? 'storage' : 'source';
    // A trouble with a status is an answer of the source, which may be about this file alone.
    if (at === 'source' && found.kind === 'unreachable' && found.status === undefined)
      deps.onUnreachable?.(account.name);
    if (at === 'source' && isAmbiguous(found) && ++account.streak >= outageStreak) {
      pause(account, outagePauseMs);
      account.streak = 0;
    }
    // Others were served since the attempt before, so that this failure is the file's own.
    const isOwn = at === 'storage' ? memory.putAt > failed.failedAt : failed.isServed;
    const trouble = isOwn && at === 'source' ? toFileTrouble(found) : found;
    const verdict = toVerdict({ trouble, at, attempts: failed.attempts, isOwn, random: Math.random() });
    if (verdict.kind === 'complete')
      return count(await store.downloads.complete(failed, { ...verdict, kind: 'final' }));
    const isThrottled = verdict.kind === 'pause' && verdict.scope === 'account';
    if (isThrottled) pause(account, verdict.delayMs);
    else if (verdict.kind === 'pause') failure.abort(found);
    // A storage failure is recorded as `local`, whatever kind the storage reports.
    const kind = at === 'storage' && trouble.kind !== 'mismatch' ? 'local' : trouble.kind;
    const delayMs = verdict.delayMs + (isThrottled ? Math.max(listFirstMs, verdict.delayMs / 8) : 0);
    const countsAttempt = verdict.kind === 'retry' && verdict.countsAttempt;
    await store.downloads.postponeDownload(failed, {
      delayMs,
      countsAttempt,
      trouble: { kind, message: trouble.message },
    });
  }

  /** Nothing was due then. Waits for a download that becomes due within `retryForMs` of when the queue was first empty; false without one. */
  async function waitForDue(now: number): Promise<boolean> {
    emptySince ??= now;
    const leftMs = emptySince + request.retryForMs - now;
    if (leftMs <= 0) return false;
    const { nextInMs } = await store.downloads.loadWaiting([...accounts.keys()]);
    if (nextInMs === null) return false;
    const paused = [...accounts.values()].map((one) => toPauseMs(one, now)).filter((ms) => ms > 0);
    const waitMs = Math.max(50, nextInMs > 0 || paused.length === 0 ? nextInMs : Math.min(...paused));
    if (waitMs > leftMs) return false;
    await sleep(waitMs, undefined, { signal }).catch(() => {});
    return true;
  }

  using _renewal = setInterval(() => {
    const claims = [...inFlight.keys()];
    // On a database connection of its own. If the database does not answer, the downloads themselves fail and report it.
    if (claims.length > 0) store.downloads.renewDownloads(claims, request.leaseMs).catch(() => {});
  }, request.leaseMs / 3);
  const stop = () => void setTimeout(() => abort.abort(signal.reason), request.graceMs).unref();
  signal.addEventListener('abort', stop, { once: true });
  try {
    while (!ended.aborted) {
      const now = performance.now();
      const isTimeForSuspects = now > suspectsAt;
      const isFull = unfetched.size >= concurrency || inFlight.size >= 2 * concurrency + mostUncommitted;
      if (!isFull && !isTimeForSuspects && (await claim('usual', 2 * concurrency))) continue;
      if (inFlight.size > 0) await moved.promise;
      else if (await claim('suspects', 1)) await untilIdle();
      else {
        suspectsAt = performance.now() + suspectsEveryMs;
        if (!isTimeForSuspects && !(await waitForDue(now))) break;
      }
    }
  } catch (error) {
    failure.abort(error);
  }
  await untilIdle();
  signal.removeEventListener('abort', stop);
  ended.throwIfAborted();
}

/** A refusal usually concerns the credential, and a Retry-After all requests. If the list is served, both concern only this file. */
function toFileTrouble(trouble: Trouble): Trouble {
  const { kind, status, retryAfterMs } = trouble;
  if (status === undefined || (kind !== 'throttled' && kind !== 'refused')) return trouble;
  const message = `The source ${kind === 'refused' ? 'refuses' : 'throttles'} this file (${status}) and serves the list.`;
  return new Trouble(kind, message, { status, retryAfterMs });
}

/** An unexpected error counts against its file only. */
function toUnexpected(cause: unknown): Trouble {
  const name = cause instanceof Error ? cause.name : 'no error';
  return new Trouble('mismatch', `Unexpected error while fetching (${name}).`, { cause });
}

/** Throws while the disk of the blobs or of the spool has no room for `aheadBytes`: all files ahead, each of the largest allowed size. */
async function requireRoom({ blobs, spool }: DownloadRunDeps, aheadBytes: number): Promise<void> {
  for (const { location, freeBytes } of [blobs, spool]) {
    if (hasRoom(await freeBytes(), aheadBytes)) continue;
    const happened = `The disk of ${location} is nearly full: no file is fetched until there is room.`;
    throw new Trouble('local', happened, { at: 'storage' });
  }
}

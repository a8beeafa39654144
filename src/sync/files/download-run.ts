// A download run: one pass over the due downloads of some accounts, several at once and fair between accounts. It claims downloads, renews
// the claims, handles every failure, and releases the claims that it cannot finish. download.ts has the steps of one file.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasRoom } from '../../domain/blob.ts';
import { isAmbiguous } from '../../domain/download-verdict.ts';
import type { HashSetting } from '../../domain/hash-trust.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { FileFacts } from '../../store/files/claim-facts.ts';
import type { Claim } from '../../store/files/download-queue.ts';
import { backoffAfter, isTemporary, shortBackoff } from '../retry.ts';
import { type DownloadDeps, type DownloadEnd, download } from './download.ts';
import { failDownload, isOfStorage } from './handle-failure.ts';
import { createInFlight, type DownloadCallbacks } from './in-flight.ts';

export interface DownloadAccount {
  readonly name: string;
  readonly advertiserId: bigint;
  readonly source: Source;
}

export interface DownloadRunDeps extends Omit<DownloadDeps, 'source' | 'onBytes'> {
  readonly accounts: readonly DownloadAccount[];
  readonly loadSpoolBytes: () => Promise<number | null>;
  /** What a run leaves to the next. */
  readonly memory?: DownloadMemory | undefined;
  readonly onStep?: ((totals: DownloadTotals) => void) | undefined;
  /** Called with account and file as bytes arrive, and before they are parsed. */
  readonly onBytes?: ((work: Readonly<Record<string, string>>) => void) | undefined;
  /** Called with how long each claimed download had been due. */
  readonly onClaimed?: ((waitedMs: readonly number[]) => void) | undefined;
  readonly onWait?: ((trouble: Trouble, waitMs: number) => void) | undefined;
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
  /** How long the run waits for downloads that become due later, and for unavailable storage. 0: it ends as soon as nothing is due. */
  readonly retryForMs: number;
  /** How long downloads in flight may take to finish after the signal aborts. */
  readonly graceMs: number;
  readonly signal: AbortSignal;
}

export interface DownloadTotals {
  readonly stored: number;
  readonly bytes: number;
  /** Stored without a request: Hash and Size equal those of a stored file. */
  readonly linked: number;
  readonly infected: number;
  readonly missing: number;
  readonly rejected: number;
  readonly givenUp: number;
  readonly failures: number;
}

export interface DownloadSummary extends DownloadTotals {
  /** Downloads still in the queue. */
  readonly waiting: number;
  /** Those of them whose file the source does not have yet. */
  readonly notThere: number;
}

/** At this interval a long run claims no other downloads and fetches the due suspects, each alone. */
const suspectsEveryMs = 60_000;
/** After this many failures in a row an account rests: its source may be away. */
const outageStreak = 8;
const outagePauseMs = 5_000;

/** Tells the claims of this process from those of one that may have ended. */
const processDigits = randomUUID().slice(0, 8);

interface RunAccount extends DownloadAccount {
  /** Failures of its source in a row. */
  streak: number;
}

/** Downloads until nothing is due and nothing becomes due within `retryForMs`. */
export async function runDownloads(deps: DownloadRunDeps, request: DownloadRunRequest): Promise<DownloadSummary> {
  const { store, memory = createDownloadMemory() } = deps;
  const { concurrency, signal } = request;
  const accounts = new Map<bigint, RunAccount>(deps.accounts.map((one) => [one.advertiserId, { ...one, streak: 0 }]));
  const ids = [...accounts.keys()];
  const inFlight = createInFlight(concurrency);
  const totals = { stored: 0, bytes: 0, linked: 0, infected: 0, missing: 0, rejected: 0, givenUp: 0, failures: 0 };
  const outage = createOutage(request, deps.onWait);
  const abort = new AbortController();
  /** Claimed and not started yet. */
  let ready: { readonly account: RunAccount; readonly file: FileFacts }[] = [];
  /** An unexpected error, thrown at the next step. */
  let fatal: { readonly error: unknown } | null = null;
  let suspectsAt = performance.now() + suspectsEveryMs;
  /** When the queue was first empty. */
  let dryAt: number | null = null;

  const toPauseMs = ({ name }: RunAccount) => (memory.pauses.get(name) ?? 0) - performance.now();
  const pause = ({ name }: RunAccount, ms: number) => memory.pauses.set(name, performance.now() + ms);
  /** Releases claims without counting an attempt. Claims that cannot be released lapse. */
  const release = (claims: readonly Claim[]) => store.downloads.release(claims).catch(() => {});

  async function claim(tier: 'usual' | 'suspects', limit: number): Promise<boolean> {
    const awake = [...accounts.values()].filter((one) => toPauseMs(one) <= 0);
    if (awake.length === 0) return false;
    return await outage.during(false, async () => {
      await requireRoom(deps, 2 * concurrency * request.maxBytes);
      const token = `${processDigits}${randomUUID().slice(8)}`;
      const { leaseMs, hash } = request;
      const { onClaimed } = deps;
      const advertisers = awake.map((one) => one.advertiserId);
      const { claims, lapsed } = await store.downloads.claim({ advertisers, tier, limit, token, leaseMs, onClaimed });
      for (const file of claims.length > 0 ? await store.downloads.loadFacts(claims, hash) : []) {
        const account = accounts.get(file.claim.advertiserId);
        if (account) ready.push({ account, file });
      }
      outage.endDatabase();
      return claims.length > 0 || lapsed > 0;
    });
  }

  function start({ account, file }: (typeof ready)[number]): void {
    inFlight.start(file.claim, (callbacks) =>
      fetchOne(account, file, callbacks).catch((error: unknown) => {
        fatal ??= { error };
      }),
    );
  }

  async function fetchOne(account: RunAccount, file: FileFacts, callbacks: DownloadCallbacks): Promise<void> {
    const { hash, maxBytes } = request;
    const { kind, applicationId } = file.claim;
    const inHand = { advertiser: account.name, application: String(applicationId), kind };
    const whole = { ...deps, source: account.source, onBytes: () => deps.onBytes?.(inHand) };
    try {
      const ended = await download(whole, { file, hash, maxBytes, signal: abort.signal, ...callbacks });
      if (ended.kind === 'failed') await fail(account, file.claim, ended.trouble);
      else {
        count(ended);
        if (ended.state === 'stored' && ended.fetched) memory.putAt = performance.now();
        if (ended.fetched) account.streak = 0;
      }
    } catch (error) {
      if (abort.signal.aborted) return await release([file.claim]);
      // An unexpected error counts against this file only.
      const name = error instanceof Error ? error.name : 'no error';
      const trouble = new Trouble('mismatch', `Unexpected error while fetching (${name}).`, { cause: error });
      await fail(account, file.claim, trouble);
    }
    deps.onStep?.({ ...totals });
  }

  function count({ state, bytes, fetched }: Pick<DownloadEnd & { kind: 'completed' }, 'state' | 'bytes' | 'fetched'>) {
    if (state === 'stored') {
      totals.stored += 1;
      totals.bytes += bytes;
      if (!fetched) totals.linked += 1;
    } else if (state === 'given_up') totals.givenUp += 1;
    else if (state === 'infected' || state === 'missing' || state === 'rejected') totals[state] += 1;
    outage.end();
    dryAt = null;
  }

  /** Commits a failure, and pauses what it shows to be away: the account, or the storage and with it the whole run. */
  async function fail(account: RunAccount, failed: Claim, trouble: Trouble): Promise<void> {
    totals.failures += 1;
    const isOfSource = !isOfStorage(trouble) && isAmbiguous(trouble);
    // A trouble with a status is an answer of the source, which may be about this file alone.
    if (isOfSource && trouble.kind === 'unreachable' && trouble.status === undefined)
      deps.onUnreachable?.(account.name);
    if (isOfSource && ++account.streak >= outageStreak) {
      pause(account, outagePauseMs);
      account.streak = 0;
    }
    // If the database does not answer, the claim lapses by itself.
    await outage.during(null, async () => {
      const isOwn = isOfStorage(trouble) ? memory.putAt > failed.failedAt : failed.isServed;
      const { verdict, state } = await failDownload(store, failed, trouble, isOwn);
      if (verdict.kind === 'pause' && verdict.scope === 'account') pause(account, verdict.delayMs);
      if (verdict.kind === 'pause' && verdict.scope === 'all') outage.begin(trouble, true);
      // After a check that failed, the file stays stored as it was: nothing was stored, and no download was spared.
      if (state !== null && state !== 'stored') count({ state, bytes: 0, fetched: false });
      return null;
    });
  }

  /** Releases claimed downloads that have not started while their account, or the whole run, is paused. */
  async function returnPaused(): Promise<void> {
    const resting = ready.filter(({ account }) => outage.leftMs() > 0 || toPauseMs(account) > 0);
    if (resting.length === 0) return;
    ready = ready.filter((one) => !resting.includes(one));
    await release(resting.map(({ file }) => file.claim));
  }

  /** Nothing is due. Waits for a download that becomes due within `retryForMs` of when the queue was first empty; false without one. */
  async function waitForDue(): Promise<boolean> {
    const now = performance.now();
    dryAt ??= now;
    const leftMs = dryAt + request.retryForMs - now;
    if (leftMs <= 0) return false;
    const waiting = await outage.during(null, () => store.downloads.loadWaiting(ids));
    if (waiting === null) return true;
    if (waiting.nextInMs === null) return false;
    const paused = [...accounts.values()].map(toPauseMs).filter((ms) => ms > 0);
    const waitMs = Math.max(50, waiting.nextInMs, ...(waiting.nextInMs <= 0 ? paused : []));
    if (waitMs > leftMs) return false;
    await sleep(waitMs, undefined, { signal }).catch(() => {});
    return true;
  }

  /** One step: starts claimed downloads, claims more, or waits for a download or for time to pass. False at the end. */
  async function step(): Promise<boolean> {
    if (fatal) throw fatal.error;
    await returnPaused();
    while (ready.length > 0 && !inFlight.isFull()) for (const one of ready.splice(0, 1)) start(one);
    if (inFlight.isFull()) return await inFlight.nextChange();
    const isBusy = inFlight.size > 0;
    if (outage.leftMs() > 0) return isBusy ? await inFlight.nextChange() : await outage.wait();
    const isSuspectDue = performance.now() > suspectsAt;
    if (!isSuspectDue && (await claim('usual', 2 * concurrency))) return true;
    if (inFlight.size > 0) return await inFlight.nextChange();
    const found = await claim('suspects', 1);
    for (const one of ready.splice(0)) {
      start(one);
      await inFlight.untilIdle();
    }
    if (found || outage.leftMs() > 0) return true;
    suspectsAt = performance.now() + suspectsEveryMs;
    return isSuspectDue || (await waitForDue());
  }

  const renewal = setInterval(() => {
    const claims = [...inFlight.claims(), ...ready.map(({ file }) => file.claim)];
    // On a database connection of its own. If the database does not answer, the downloads themselves fail and report it.
    if (claims.length > 0) store.downloads.renew(claims, request.leaseMs).catch(() => {});
  }, request.leaseMs / 3);
  const stop = () => void setTimeout(() => abort.abort(signal.reason), request.graceMs).unref();
  signal.addEventListener('abort', stop, { once: true });
  try {
    while (!signal.aborted) if (!(await step())) break;
    await inFlight.untilIdle();
    signal.throwIfAborted();
    if (fatal) throw (fatal as { readonly error: unknown }).error;
    outage.throwIfAny();
    const { waiting, notThere } = await store.downloads.loadWaiting(ids);
    return { ...totals, waiting, notThere };
  } finally {
    signal.removeEventListener('abort', stop);
    abort.abort();
    await inFlight.untilIdle();
    await release(ready.map(({ file }) => file.claim));
    clearInterval(renewal);
  }
}

/** The storage or the database is unavailable: nothing is claimed for a while. Each pause is longer until a download completes. */
function createOutage({ retryForMs, signal }: DownloadRunRequest, onWait: DownloadRunDeps['onWait']) {
  let broken: { readonly trouble: Trouble; readonly since: number; readonly isStorage: boolean } | null = null;
  let pausedUntil = 0;
  let pauses = 0;
  const leftMs = () => pausedUntil - performance.now();
  const outage = {
    leftMs,
    begin(trouble: Trouble, isStorage = false): void {
      // Downloads that fail at the same time count as one failure.
      if (leftMs() > 0) return;
      const delayMs = backoffAfter(trouble, ++pauses, shortBackoff);
      broken ??= { trouble, since: performance.now(), isStorage };
      pausedUntil = performance.now() + delayMs;
      onWait?.(trouble, delayMs);
    },
    /** Runs statements; where the database does not answer, an outage begins and `instead` is returned. */
    async during<T>(instead: T, work: () => Promise<T>): Promise<T> {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof Trouble)) throw error;
        outage.begin(error);
        return instead;
      }
    },
    /** A claim shows that the database is back. It shows nothing about the storage. */
    endDatabase(): void {
      if (!broken?.isStorage) broken = null;
    },
    end(): void {
      broken = null;
      pauses = 0;
    },
    /** Waits for the end of the pause. Throws the trouble when it lasts for longer than `retryForMs`. */
    async wait(): Promise<true> {
      const brokenMs = broken ? pausedUntil - broken.since : 0;
      if (broken && (brokenMs > retryForMs || !isTemporary(broken.trouble))) throw broken.trouble;
      await sleep(Math.max(0, leftMs()), undefined, { signal }).catch(() => {});
      return true;
    },
    throwIfAny(): void {
      if (broken) throw broken.trouble;
    },
  };
  return outage;
}

/** Throws while the disk of the blobs or of the spool has no room for `aheadBytes`: all files ahead, each of the largest allowed size. */
async function requireRoom({ blobs, spool, loadSpoolBytes }: DownloadRunDeps, aheadBytes: number): Promise<void> {
  const disks: readonly (readonly [name: string, freeBytes: number | null])[] = [
    [blobs.location, await blobs.freeBytes()],
    [`the spool ${spool.folder} (TMPDIR)`, await loadSpoolBytes()],
  ];
  for (const [name, freeBytes] of disks) {
    if (hasRoom(freeBytes, aheadBytes)) continue;
    const happened = `The disk of ${name} is nearly full: no file is fetched until there is room.`;
    throw new Trouble('local', happened, { at: 'storage' });
  }
}

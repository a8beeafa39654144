// A download run: one pass over the due downloads of some accounts, several at once and fair between accounts. It claims downloads, renews
// the claims, handles every failure, and releases the claims that it cannot finish. download.ts has the steps of one file.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasRoom } from '../../domain/blob.ts';
import { dependsOnOthers, type Others } from '../../domain/download-verdict.ts';
import type { HashSetting } from '../../domain/hash-trust.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { FileFacts } from '../../store/files/claim-facts.ts';
import type { Claim } from '../../store/files/download-queue.ts';
import type { Store } from '../../store/store.ts';
import { backoffAfter, isTemporary, shortBackoff } from '../retry.ts';
import { type DownloadDeps, type DownloadEnd, download } from './download.ts';
import {
  type FailedDownload,
  failDownload,
  outagePauseMs,
  outageStreak,
  probeSource,
  type Standing,
} from './handle-failure.ts';
import { createInFlight, type DownloadCallbacks, type InFlight } from './in-flight.ts';
import { createPuts, type Puts } from './puts.ts';

/** An account whose files can be fetched. */
export interface DownloadAccount {
  readonly name: string;
  readonly advertiserId: bigint;
  readonly source: Source;
}

export interface DownloadRunDeps extends Omit<DownloadDeps, 'source' | 'onBytes'> {
  readonly store: DownloadDeps['store'] & Pick<Store, 'advertisers'>;
  readonly accounts: readonly DownloadAccount[];
  /** Free space of the spool's disk. */
  readonly loadSpoolBytes: () => Promise<number | null>;
  /** When the pause of each account ends, by account name, on the `performance.now` clock. Carried over from run to run. */
  readonly pauses?: Map<string, number> | undefined;
  /** Which puts succeeded and failed. Carried over in the same way. */
  readonly puts?: Puts | undefined;
  readonly onStep?: ((totals: DownloadTotals) => void) | undefined;
  /** Called with account and file as bytes arrive, and before they are parsed. */
  readonly onBytes?: ((work: Readonly<Record<string, string>>) => void) | undefined;
  /** Called with how long each claimed download had been due. */
  readonly onClaimed?: ((waitedMs: readonly number[]) => void) | undefined;
  readonly onWait?: ((trouble: Trouble, waitMs: number) => void) | undefined;
  /** Called with the account's name when its source could not be connected to. */
  readonly onUnreachable?: ((name: string) => void) | undefined;
}

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

/** Files by result. */
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
  /** Accounts that this run halted, with the reason. */
  readonly halted: readonly { readonly name: string; readonly trouble: Trouble }[];
}

/** At this interval a long run claims no other downloads and fetches the due suspects, each alone. */
const suspectsEveryMs = 60_000;

/** Tells the claims of this process from those of one that may have ended. */
const processDigits = randomUUID().slice(0, 8);

type Ended = Omit<DownloadEnd & { kind: 'completed' }, 'kind'>;
type RunAccount = DownloadAccount & Standing;

/** Downloads until nothing is due and nothing becomes due within `retryForMs`. */
export async function runDownloads(deps: DownloadRunDeps, request: DownloadRunRequest): Promise<DownloadSummary> {
  const run = new DownloadRun(deps, request);
  using _renewal = run.keepClaims();
  return await run.untilDry();
}

class DownloadRun {
  readonly #deps: DownloadRunDeps;
  readonly #request: DownloadRunRequest;
  readonly #accounts: Map<bigint, RunAccount>;
  readonly #inFlight: InFlight;
  readonly #puts: Puts;
  readonly #abort: AbortController = new AbortController();
  #ready: FileFacts[] = [];
  readonly #totals: { -readonly [Name in keyof DownloadTotals]: number } = {
    stored: 0,
    bytes: 0,
    linked: 0,
    infected: 0,
    missing: 0,
    rejected: 0,
    givenUp: 0,
    failures: 0,
  };
  readonly #halted: { name: string; trouble: Trouble }[] = [];
  #pausedUntil = 0;
  #pauses = 0;
  /** An unexpected error, thrown at the next step. */
  #fatal: { readonly error: unknown } | null = null;
  #broken: { trouble: Trouble; since: number; isStorage: boolean } | null = null;
  #suspectsAt = performance.now() + suspectsEveryMs;
  #dryAt: number | null = null;

  constructor(deps: DownloadRunDeps, request: DownloadRunRequest) {
    this.#deps = deps;
    this.#request = request;
    this.#inFlight = createInFlight(request.concurrency);
    this.#puts = deps.puts ?? createPuts();
    const begin = (name: string): Standing => ({
      ...{ pausedUntil: deps.pauses?.get(name) ?? 0, streak: 0, undecided: [], isAsking: false },
      ...{ isServed: false, line: Promise.resolve() },
    });
    this.#accounts = new Map(deps.accounts.map((one) => [one.advertiserId, { ...one, ...begin(one.name) }]));
  }

  /** Renews all claims that this run holds until disposed, on a database connection of its own. */
  keepClaims(): Disposable {
    const timer = setInterval(() => {
      const claims = [...this.#inFlight.claims(), ...[...this.#ready, ...this.#undecided()].map((one) => one.claim)];
      // If the database does not answer, the downloads themselves fail and report it.
      if (claims.length > 0) this.#deps.store.downloads.renew(claims, this.#request.leaseMs).catch(() => {});
    }, this.#request.leaseMs / 3);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  async untilDry(): Promise<DownloadSummary> {
    const { signal, graceMs } = this.#request;
    const { store } = this.#deps;
    const stop = () => void setTimeout(() => this.#abort.abort(signal.reason), graceMs).unref();
    signal.addEventListener('abort', stop, { once: true });
    try {
      while (!signal.aborted) if (!(await this.#step())) break;
      await this.#inFlight.untilIdle();
      signal.throwIfAborted();
      if (this.#fatal) throw this.#fatal.error;
      if (this.#broken) throw this.#broken.trouble;
      const { waiting, notThere } = await store.downloads.loadWaiting(this.#ids());
      return { ...this.#totals, waiting, notThere, halted: this.#halted };
    } finally {
      signal.removeEventListener('abort', stop);
      await this.#giveBack();
      // An infinite pause is a halt. The database stores and ends halts.
      for (const { name, pausedUntil } of this.#accounts.values())
        if (pausedUntil < Infinity) this.#deps.pauses?.set(name, pausedUntil);
    }
  }

  /** One step: starts claimed downloads, claims more, or waits for a download or for time to pass. False at the end. */
  async #step(): Promise<boolean> {
    if (this.#fatal) throw this.#fatal.error;
    await this.#returnPaused();
    while (this.#ready.length > 0 && !this.#inFlight.isFull()) this.#start(this.#ready.shift());
    if (this.#inFlight.isFull()) return await this.#inFlight.nextChange();
    const pauseMs = this.#pausedUntil - performance.now();
    if (pauseMs > 0) return this.#inFlight.size > 0 ? await this.#inFlight.nextChange() : await this.#wait(pauseMs);
    const isSuspectDue = performance.now() > this.#suspectsAt;
    if (isSuspectDue && this.#inFlight.size > 0) return await this.#inFlight.nextChange();
    if (!isSuspectDue && (await this.#claim('usual', 2 * this.#request.concurrency))) return true;
    this.#askAboutIdle();
    if (this.#inFlight.size > 0) return await this.#inFlight.nextChange();
    if (await this.#fetchSuspect()) return true;
    if (this.#pausedUntil > performance.now()) return true;
    this.#suspectsAt = performance.now() + suspectsEveryMs;
    return isSuspectDue || (await this.#waitForDue());
  }

  async #claim(tier: 'usual' | 'suspects', limit: number): Promise<boolean> {
    const advertisers = this.#ids().filter((id) => (this.#accounts.get(id)?.pausedUntil ?? 0) <= performance.now());
    if (advertisers.length === 0) return false;
    try {
      await requireRoom(this.#deps, 2 * this.#request.concurrency * this.#request.maxBytes);
      const { store, onClaimed } = this.#deps;
      const { leaseMs, hash } = this.#request;
      const token = `${processDigits}${randomUUID().slice(8)}`;
      const { claims, lapsed } = await store.downloads.claim({ advertisers, tier, limit, token, leaseMs, onClaimed });
      if (claims.length > 0) this.#ready.push(...(await store.downloads.loadFacts(claims, hash)));
      // A claim shows that the database is back. It shows nothing about the storage.
      if (!this.#broken?.isStorage) this.#broken = null;
      return claims.length > 0 || lapsed > 0;
    } catch (error) {
      if (!(error instanceof Trouble)) throw error;
      this.#pause(error);
      return false;
    }
  }

  async #fetchSuspect(): Promise<boolean> {
    const found = await this.#claim('suspects', 1);
    const file = this.#ready.shift();
    if (!file) return found;
    this.#start(file);
    await this.#inFlight.untilIdle();
    return true;
  }

  #start(file: FileFacts | undefined): void {
    if (!file) return;
    this.#track(file.claim, (callbacks) =>
      file.claim.wasThrottled ? this.#fetchThrottled(file, callbacks) : this.#fetch(file, callbacks),
    );
  }

  #track(claim: Claim, work: (callbacks: DownloadCallbacks) => Promise<void>): void {
    this.#inFlight.start(claim, (callbacks) =>
      work(callbacks).catch((error: unknown) => {
        this.#fatal ??= { error };
      }),
    );
  }

  /**
   * The source throttled an earlier request for this file, and the wait is over. First the run checks that the source serves other requests
   * of the account; if it does, being throttled again is about this file alone. Such files are fetched one after the other, so that a
   * source with a low limit can serve them.
   */
  async #fetchThrottled(file: FileFacts, callbacks: DownloadCallbacks): Promise<void> {
    const account = this.#accounts.get(file.claim.advertiserId);
    if (!account) return;
    const fetched = account.line.then(async () => {
      const isPaused = account.pausedUntil > performance.now();
      account.isServed = !isPaused && (account.isServed || (await this.#askSource(account)) === 'served');
      await (account.isServed ? this.#fetch(file, callbacks, true) : this.#release([file.claim]));
    });
    account.line = fetched.catch(() => {});
    await fetched;
  }

  async #fetch(file: FileFacts, callbacks: DownloadCallbacks, isKnownServed = false): Promise<void> {
    const account = this.#accounts.get(file.claim.advertiserId);
    if (!account) return;
    const { hash, maxBytes } = this.#request;
    const { signal } = this.#abort;
    try {
      const { kind, applicationId } = file.claim;
      const inHand = { advertiser: account.name, application: String(applicationId), kind };
      const deps = { ...this.#deps, source: account.source, onBytes: () => this.#deps.onBytes?.(inHand) };
      const ended = await download(deps, { file, hash, maxBytes, signal, isKnownServed, ...callbacks });
      if (ended.kind === 'completed') {
        this.#count(ended);
        if (ended.state === 'stored' && ended.fetched) this.#puts.succeed(file.claim);
        if (ended.fetched) await this.#decide(account, 'served');
      } else if (ended.at === 'source' && ended.trouble.kind === 'throttled') {
        await this.#noteThrottled({ ...ended, claim: file.claim }, account, isKnownServed);
      } else await this.#note({ ...ended, claim: file.claim }, account);
    } catch (error) {
      if (signal.aborted) return await this.#release([file.claim]);
      // An unexpected error counts against this file only.
      const name = error instanceof Error ? error.name : 'no error';
      const trouble = new Trouble('mismatch', `Unexpected error while fetching (${name}).`, { cause: error });
      await this.#note({ at: 'source', trouble, claim: file.claim }, account);
    }
    this.#deps.onStep?.({ ...this.#totals });
  }

  #count({ state, bytes, fetched }: Ended): void {
    const totals = this.#totals;
    if (state === 'stored') {
      totals.stored += 1;
      totals.bytes += bytes;
      if (!fetched) totals.linked += 1;
    } else if (state === 'given_up') totals.givenUp += 1;
    else if (state === 'infected' || state === 'missing' || state === 'rejected') totals[state] += 1;
    this.#broken = null;
    this.#pauses = 0;
    this.#dryAt = null;
  }

  /** Commits a failure, or keeps it undecided until the run knows whether the source serves the account's other files. */
  async #note(failed: FailedDownload, account: RunAccount): Promise<void> {
    this.#totals.failures += 1;
    const { at, trouble } = failed;
    // A trouble with a status is an answer of the source, which may be about this file alone.
    if (at === 'source' && trouble.kind === 'unreachable' && trouble.status === undefined) {
      this.#deps.onUnreachable?.(account.name);
    }
    if (at === 'storage')
      return await this.#fail(failed, this.#puts.fail(failed.claim) ? 'served' : 'failing', account);
    if (!dependsOnOthers(failed)) return await this.#fail(failed, 'served', account);
    account.undecided.push(failed);
    if (++account.streak >= outageStreak) await this.#ask(account);
  }

  /** A throttled trouble without a status means that no request was sent: an earlier Retry-After, received by any worker, still applies. */
  async #noteThrottled(failed: FailedDownload, account: RunAccount, isKnownServed: boolean): Promise<void> {
    this.#totals.failures += 1;
    account.isServed = false;
    const isItsOwn = isKnownServed && failed.trouble.status !== undefined;
    if (isItsOwn) account.streak += 1;
    await this.#fail(failed, isItsOwn ? 'served' : 'failing', account);
  }

  /** An account with undecided failures and nothing else to fetch gets no further evidence, so the run probes its source. */
  #askAboutIdle(): void {
    const busy = new Set(
      [...this.#inFlight.claims(), ...this.#ready.map((file) => file.claim)].map((one) => one.advertiserId),
    );
    for (const account of this.#accounts.values()) {
      const [failed] = account.undecided;
      if (failed === undefined || busy.has(account.advertiserId)) continue;
      this.#track(failed.claim, () => this.#ask(account));
    }
  }

  async #ask(account: RunAccount): Promise<void> {
    if (account.isAsking) return;
    account.isAsking = true;
    try {
      const isPaused = account.pausedUntil > performance.now();
      const others = isPaused ? 'failing' : await this.#askSource(account);
      // With null the failures stay undecided. Their claims are released at the end without counting an attempt, or lapse.
      if (others !== null) await this.#decide(account, others);
    } finally {
      account.isAsking = false;
    }
  }

  /** Whether the source serves the account; null when the run is stopped, or when the database does not answer. */
  async #askSource(account: RunAccount): Promise<Others | null> {
    const { maxBytes } = this.#request;
    const { signal } = this.#abort;
    try {
      const deps = {
        ...this.#deps,
        source: account.source,
        onBytes: () => this.#deps.onBytes?.({ advertiser: account.name }),
      };
      const probe = await probeSource(deps, account, { maxBytes, signal });
      if (probe.others === 'refused') await this.#halt(account, probe.trouble);
      if (probe.others === 'failing')
        account.pausedUntil = performance.now() + Math.max(outagePauseMs, probe.trouble?.retryAfterMs ?? 0);
      return probe.others;
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof Trouble)) throw error;
      this.#pause(error);
      return null;
    }
  }

  /** Commits the undecided failures, now that `others` is known. */
  async #decide(account: RunAccount, others: Others): Promise<void> {
    account.streak = 0;
    account.isServed = others === 'served';
    for (const failed of account.undecided.splice(0)) await this.#fail(failed, others, account);
  }

  async #fail(failed: FailedDownload, others: Others, account: RunAccount): Promise<void> {
    try {
      const consequence = await failDownload(this.#deps.store, failed, others, account);
      if (consequence === 'pause') this.#pause(failed.trouble, true);
      // After a check that failed, the file stays stored as it was: nothing was stored, and no download was spared.
      else if (consequence !== null && consequence !== 'stored')
        this.#count({ state: consequence, bytes: 0, fetched: false });
    } catch (error) {
      // If the database does not answer, the claim lapses by itself.
      if (!(error instanceof Trouble)) throw error;
      this.#pause(error);
    }
  }

  async #halt(account: RunAccount, trouble: Trouble): Promise<void> {
    account.pausedUntil = Number.POSITIVE_INFINITY;
    const { name } = account;
    if (this.#halted.some((one) => one.name === name)) return;
    this.#halted.push({ name, trouble });
    await this.#deps.store.advertisers.halt(name, 'refused', trouble.message);
  }

  /** Releases claimed downloads that have not started while their account, or the whole run, is paused. */
  async #returnPaused(): Promise<void> {
    const now = performance.now();
    const isPaused = ({ claim }: FileFacts) =>
      Math.max(this.#pausedUntil, this.#accounts.get(claim.advertiserId)?.pausedUntil ?? 0) > now;
    const paused = this.#ready.filter(isPaused);
    if (paused.length === 0) return;
    this.#ready = this.#ready.filter((file) => !paused.includes(file));
    await this.#release(paused.map((file) => file.claim));
  }

  /** Releases claims without counting an attempt. Claims that cannot be released lapse. */
  async #release(claims: readonly Claim[]): Promise<void> {
    await this.#deps.store.downloads.release(claims).catch(() => {});
  }

  /** The storage or the database is unavailable: nothing is claimed for a while. Each pause is longer until a download completes. */
  #pause(trouble: Trouble, isStorage = false): void {
    const now = performance.now();
    // Downloads that fail at the same time count as one failure.
    if (this.#pausedUntil > now) return;
    const delayMs = backoffAfter(trouble, ++this.#pauses, shortBackoff);
    this.#broken ??= { trouble, since: now, isStorage };
    this.#pausedUntil = now + delayMs;
    this.#deps.onWait?.(trouble, delayMs);
  }

  /** Waits for the storage or the database to come back. Throws its trouble when that takes longer than `retryForMs`. */
  async #wait(ms: number): Promise<boolean> {
    const { retryForMs, signal } = this.#request;
    const brokenMs = this.#broken ? performance.now() + ms - this.#broken.since : 0;
    if (this.#broken && (brokenMs > retryForMs || !isTemporary(this.#broken.trouble))) throw this.#broken.trouble;
    await sleep(ms, undefined, { signal }).catch(() => {});
    return true;
  }

  /** Nothing is due. Waits for a download that becomes due within `retryForMs` of when the queue was first empty; false without one. */
  async #waitForDue(): Promise<boolean> {
    const now = performance.now();
    this.#dryAt ??= now;
    const leftMs = this.#dryAt + this.#request.retryForMs - now;
    if (leftMs <= 0) return false;
    const waiting = await this.#deps.store.downloads.loadWaiting(this.#ids()).catch((error: unknown) => {
      if (!(error instanceof Trouble)) throw error;
      this.#pause(error);
      return null;
    });
    if (waiting === null) return true;
    const { nextInMs } = waiting;
    if (nextInMs === null) return false;
    const pauses = [...this.#accounts.values()]
      .map((one) => one.pausedUntil - now)
      .filter((ms) => ms > 0 && ms < Infinity);
    const waitMs = Math.max(50, nextInMs, ...(nextInMs <= 0 ? pauses : []));
    if (waitMs > leftMs) return false;
    await sleep(waitMs, undefined, { signal: this.#request.signal }).catch(() => {});
    return true;
  }

  async #giveBack(): Promise<void> {
    this.#abort.abort();
    await this.#inFlight.untilIdle();
    await this.#release([...this.#ready, ...this.#undecided()].map((one) => one.claim));
  }

  #undecided(): FailedDownload[] {
    return [...this.#accounts.values()].flatMap((account) => account.undecided);
  }

  #ids(): bigint[] {
    return [...this.#accounts.keys()];
  }
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

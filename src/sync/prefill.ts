// A prefill from the click to the filled form: begin it, finish it when the browser comes back, redeem it, hand over the resume. All state
// is in the store, so each step can run in any process. `binding` is an opaque text that identifies the browser.
import { hash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BlobStore, type Spool, toBlobKey } from '../domain/blob.ts';
import {
  CodeSpent,
  infectedResume,
  type PrefillError,
  type PrefillRequest,
  type Profile,
  parseTicket,
  type Resume,
  toReturnUrl,
  toTicket,
} from '../domain/prefill.ts';
import { isMissing, Trouble } from '../domain/trouble.ts';
import type { CandidateSession, PrefillSource } from '../source/prefill.ts';
import type { FoundState, PrefillKey, RedeemedPrefill, ResumeFacts } from '../store/prefill/prefills.ts';
import type { Store } from '../store/store.ts';
import type { Slots } from './limits.ts';
import { readStored } from './stored-bytes.ts';

export interface PrefillDeps {
  readonly store: Pick<Store, 'blobs' | 'prefills'>;
  readonly blobs: BlobStore;
  readonly spool: Spool;
  readonly slots: Slots;
  /** The configured accounts that offer prefill, by name. */
  readonly accounts: ReadonlyMap<string, PrefillAccount>;
  /** How long a profile can be redeemed. */
  readonly ttlMs: number;
  readonly onEnd: (end: PrefillEnd) => void;
}

/** An account with its careers site, which cannot begin, redeem or receive a prefill of another account. */
export interface PrefillAccount {
  readonly source: PrefillSource;
  /** Prefixes that return_url and form_url must begin with. */
  readonly returnUrls: readonly string[];
  /** With which the careers site's server redeems. */
  readonly bearerToken: () => string;
}

/** The account of an advertiser among `names`; null where none of them has its id. */
export async function findAccount(
  { store, accounts }: Pick<PrefillDeps, 'store' | 'accounts'>,
  advertiserId: bigint,
  names: readonly string[] = [...accounts.keys()],
): Promise<PrefillAccount | null> {
  const name = await store.prefills.findAdvertiserName(advertiserId, names);
  return (name !== null && accounts.get(name)) || null;
}

/** How a prefill ended. Holds ids and fixed words only, no personal data. */
export interface PrefillEnd extends PrefillKey {
  readonly outcome: 'prefilled' | PrefillError;
  /** Why the prefill failed, or why a part of it is missing. */
  readonly reason: string | null;
  readonly trouble: unknown;
}

export function createSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Starts a prefill for the browser that holds `binding`. Returns the URL to send it to. */
export async function beginPrefill(
  { store }: Pick<PrefillDeps, 'store'>,
  { source }: PrefillAccount,
  { request, binding }: { readonly request: PrefillRequest; readonly binding: string },
): Promise<string> {
  const { advertiserId } = request;
  const state = toTicket(advertiserId, createSecret());
  const hashes = { stateHash: toHash(state), bindingHash: toHash(binding) };
  await store.prefills.insertPrefill({ advertiserId, prefillId: crypto.randomUUID(), request, ...hashes });
  return source.toAuthorizeUrl(state, advertiserId);
}

export interface Callback {
  readonly state: string;
  readonly binding: string;
  /** The authorization code; `denied` by the candidate; or `failed` because of an error of the source. */
  readonly answer: { readonly code: string } | 'denied' | 'failed';
  readonly signal: AbortSignal;
}

/** Finishes a prefill. Returns the URL to send the browser to, or null if the state does not belong to this browser. */
export async function finishPrefill(deps: PrefillDeps, callback: Callback): Promise<string | null> {
  const { state, binding, answer } = callback;
  const advertiserId = parseTicket(state);
  if (advertiserId === null) return null;
  const hashes = { stateHash: toHash(state), bindingHash: toHash(binding) };
  const isAuthorized = typeof answer === 'object';
  const found = await deps.store.prefills.takeState({ advertiserId, ...hashes, isAuthorized });
  if (found === null) return null;
  const { prefillId, condition, returnUrl } = found;
  const key = { advertiserId, prefillId };
  const end = async (error: PrefillError, reason: string, trouble: unknown = null) => {
    await deps.store.prefills.endPrefill(key, error, reason);
    deps.onEnd({ ...key, outcome: error, reason, trouble });
    return toReturnUrl(returnUrl, { error });
  };
  if (condition === 'used') return toReturnUrl(returnUrl, { error: 'expired' });
  if (condition === 'expired') return await end('expired', 'came back too late');
  if (answer === 'denied') return await end('denied', 'the candidate declined');
  if (answer === 'failed') return await end('failed', 'the source refused to authorize');
  try {
    return toReturnUrl(returnUrl, { handle: await keep(deps, found, answer.code, callback.signal) });
  } catch (trouble) {
    if (trouble instanceof CodeSpent) return await end('expired', 'the code was not accepted', trouble);
    return await end('failed', trouble instanceof Trouble ? trouble.kind : 'unexpected', trouble);
  }
}

/** Uses the code to fetch the profile and the resume, and stores both. Without a resume the profile is stored all the same. */
async function keep(deps: PrefillDeps, request: FoundState, code: string, signal: AbortSignal) {
  using _slot = await deps.slots.take(signal);
  const { store } = deps;
  const { advertiserId, prefillId } = request;
  const key = { advertiserId, prefillId };
  const account = await findAccount(deps, advertiserId);
  if (account === null) throw new Trouble('local', 'The advertiser of this prefill is no longer configured.');
  const session = await account.source.openSession(code, signal);
  const profile = await session.loadProfile(request, signal);
  await using stack = new AsyncDisposableStack();
  const { resume, trouble: notFetched } = await fetchResume(deps, session, profile, signal);
  if ('body' in resume) stack.use(resume);
  const isKept = await store.prefills.keepProfile({ ...key, profile, resume, ttlMs: deps.ttlMs });
  if (!isKept) throw new Trouble('missing', 'The prefill ended, or its person was erased, during the fetch.');
  const handle = toTicket(advertiserId, createSecret());
  const notPut = 'body' in resume ? await putResume(deps, key, resume, signal).catch((error: unknown) => error) : null;
  const failed = notPut === null || notPut === infectedResume ? notPut : 'the blob store did not accept it';
  const reason = await store.prefills.offerPrefill(key, toHash(handle), failed);
  deps.onEnd({ ...key, outcome: 'prefilled', reason, trouble: notFetched ?? (notPut === failed ? null : notPut) });
  return handle;
}

async function fetchResume(
  { spool }: PrefillDeps,
  session: CandidateSession,
  { resumeId, notes }: Profile,
  signal: AbortSignal,
): Promise<{ readonly resume: Resume | { readonly reason: string }; readonly trouble: unknown }> {
  const named = notes.find(({ field }) => field === 'resume')?.reason ?? 'the profile names none';
  if (resumeId === null) return { resume: { reason: named }, trouble: null };
  try {
    return { resume: await session.loadResume(resumeId, spool, signal), trouble: null };
  } catch (trouble) {
    return { resume: { reason: trouble instanceof Trouble ? trouble.kind : 'not fetched in time' }, trouble };
  }
}

/** Bytes that are known to be infected are not put, nor those of a prefill that has ended. A put waits until equal bytes are deleted. */
async function putResume({ store, blobs }: PrefillDeps, key: PrefillKey, resume: Resume, signal: AbortSignal) {
  for (;;) {
    const answer = await store.prefills.announceResume(key, resume);
    if (answer === 'put') await blobs.put(toBlobKey(key.advertiserId, resume.sha256), resume.body, resume, signal);
    if (answer !== 'deleting') return answer === 'infected' ? infectedResume : null;
    await sleep(1_000, undefined, { signal });
  }
}

/** Returns the profile for a handle, once; null for a handle that is unknown, used, expired or of an account that is not in `names`. */
export async function redeemPrefill(
  deps: PrefillDeps,
  handle: string,
  names: readonly string[],
): Promise<RedeemedPrefill | null> {
  const advertiserId = parseTicket(handle);
  if (advertiserId === null || (await findAccount(deps, advertiserId, names)) === null) return null;
  return await deps.store.prefills.takeProfile({ advertiserId, handleHash: toHash(handle) });
}

/** The open resume of a redeemed prefill, or null. Reading throws before the last bytes if they are not those that were stored. */
export async function openResume(
  { store, blobs }: PrefillDeps,
  key: PrefillKey,
  signal: AbortSignal,
): Promise<(ResumeFacts & { readonly bytes: AsyncIterable<Uint8Array> }) | null> {
  const resume = await store.prefills.loadResume(key);
  if (resume === null) return null;
  const bytes = readStored({ store, blobs }, key.advertiserId, resume, signal);
  try {
    await bytes.next();
    return { ...resume, bytes };
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function toHash(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

// The words of the candidate side: what a careers site asks for, what came, and how it ended. Pure rules for addresses and
// tickets; knows no cookie, no table and no token.

import type { Note } from './application.ts';
import { Trouble } from './trouble.ts';

/** What a careers site wants filled in, for which advertiser and position, and where the browser goes afterwards. */
export interface PrefillRequest {
  readonly advertiserId: bigint;
  readonly formUrl: string;
  readonly returnUrl: string;
  readonly positionTitle: string | null;
  readonly positionUri: string | null;
  readonly countryCode: string | null;
  readonly postalCode: string | null;
}

/** A candidate's profile as it was read: whole, and the parts that nearly every profile has. */
export interface Profile {
  /** JSON text that jsonb accepts. */
  readonly raw: string;
  /** The same unaltered, where jsonb cannot hold it. */
  readonly rawText: string | null;
  readonly notes: readonly Note[];
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  /** Every address and account id by which the candidate can be found: of the profile itself and of the session that gave it. */
  readonly emails: readonly string[];
  readonly accountIds: readonly string[];
  /** Where its resume is; null when the profile names none that we may fetch. */
  readonly resumeId: string | null;
}

/** A resume with what its answer said about it. */
export interface Resume {
  readonly bytes: Uint8Array;
  readonly sizeBytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly fileName: string;
  readonly contentType: string;
}

/** How a prefill can end for the browser, in the words of the return address. */
export type PrefillError = 'denied' | 'expired' | 'failed';

/** The code was used before or came too late: the candidate has to begin again. */
export class CodeSpent extends Trouble {
  constructor() {
    super('missing', 'The source does not accept the code any more.');
    this.name = 'CodeSpent';
  }
}

/** How long the callback may take, the put of the resume included: a browser waits meanwhile. */
export const callbackTimeoutMs = 60_000;

/** How long a browser may take from start to callback. */
export const stateLifetimeMs = 600_000;

/** The address, when it begins with one of the prefixes; a prefix ends at the end of a path segment. */
export function toAllowedUrl(text: string, prefixes: readonly string[]): string | null {
  // URL takes tabs and line breaks out of the middle of an address: nobody means that.
  const url = /^[!-~]{1,2000}$/.test(text) ? URL.parse(text) : null;
  if (url === null || url.username !== '' || url.password !== '') return null;
  const isBelow = (prefix: string) =>
    url.href.startsWith(prefix) && (prefix.endsWith('/') || /^(?:$|[/?#])/.test(url.href.slice(prefix.length)));
  return prefixes.some(isBelow) ? url.href : null;
}

/** The return address with what the careers site is told. */
export function toReturnUrl(returnUrl: string, told: { readonly handle: string } | { readonly error: PrefillError }) {
  const url = new URL(returnUrl);
  url.searchParams.delete('prefill');
  url.searchParams.delete('prefill_error');
  if ('handle' in told) url.searchParams.set('prefill', told.handle);
  else url.searchParams.set('prefill_error', told.error);
  return url.href;
}

/** An unguessable text that names its advertiser, so that its row is found by a key that begins with it. */
export function toTicket(advertiserId: bigint, secret: string): string {
  return `${advertiserId}.${secret}`;
}

/** The advertiser of a ticket; null for what is no ticket of ours. */
export function parseTicket(ticket: string): bigint | null {
  const [, digits] = /^([1-9]\d{0,18})\.[\w-]{43}$/.exec(ticket) ?? [];
  return digits === undefined || BigInt(digits) >= 2n ** 63n ? null : BigInt(digits);
}

/** The folder of all resumes of prefills, as `list` takes it. */
export const resumeFolder = 'prefills/';

/** The prefill whose resume such a key names; null for a name that is not ours. */
export function parseResumeKey(key: string): { readonly advertiserId: bigint; readonly prefillId: string } | null {
  const [, digits = '', prefillId = ''] =
    /^prefills\/(\d{1,19})\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(key) ?? [];
  return digits === '' || BigInt(digits) >= 2n ** 63n ? null : { advertiserId: BigInt(digits), prefillId };
}

/** Where a prefill's resume rests. A key of its own, not of its bytes: it goes with its prefill, also when others hold the same bytes. */
export function toResumeKey(advertiserId: bigint, prefillId: string): string {
  return `${resumeFolder}${advertiserId}/${prefillId}`;
}

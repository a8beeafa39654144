// The candidate side: a careers site's request, the profile that came, how the prefill ended, and the rules for addresses and tickets.

import type { Application } from './application.ts';
import type { BlobBody, BlobFacts } from './blob.ts';
import { Trouble } from './trouble.ts';

export interface PrefillRequest {
  readonly advertiserId: bigint;
  readonly formUrl: string;
  readonly returnUrl: string;
  readonly positionTitle: string | null;
  readonly positionUri: string | null;
  readonly countryCode: string | null;
  readonly postalCode: string | null;
}

/** A candidate's profile: the whole of it, and the parts that nearly every profile has. */
export interface Profile
  extends Pick<Application, 'raw' | 'rawText' | 'notes' | 'firstName' | 'lastName' | 'email' | 'phone'> {
  /** Every address and account id that identifies the candidate, from the profile and from the session that returned it. */
  readonly emails: readonly string[];
  readonly accountIds: readonly string[];
  /** Every address and account id anywhere in the text, a referee's too. An erasure searches the whole text of stored profiles. */
  readonly named: { readonly emails: readonly string[]; readonly accountIds: readonly string[] };
  /** The id of the resume; null when the profile names none that Intake may fetch. */
  readonly resumeId: string | null;
}

/** A resume with the name and type from its answer. Disposing it frees its bytes. */
export interface Resume extends BlobFacts, AsyncDisposable {
  readonly body: BlobBody;
  readonly fileName: string;
  readonly contentType: string;
}

/** How a prefill can fail, as the return address tells the careers site. */
export type PrefillError = 'denied' | 'expired' | 'failed';

/** The code was used before or came too late. The candidate has to start again. */
export class CodeSpent extends Trouble {}

/** Why a prefill has no resume any more, or none that is handed out. */
export const infectedResume = 'the source has flagged the same bytes on an attachment';
export const lostResume = 'the stored bytes were lost';

/** For the callback, including the put of the resume; for a link to a resume since its profile was redeemed; from start to callback. */
export const callbackTimeoutMs = 60_000;
export const resumeLinkMs = 600_000;
export const stateLifetimeMs = 600_000;

/** The address if it begins with one of the prefixes, otherwise null. A prefix must end at the end of a path segment. */
export function toAllowedUrl(text: string, prefixes: readonly string[]): string | null {
  // URL silently removes tabs and line breaks from the middle of an address, so such an address is refused.
  const url = /^[!-~]{1,2000}$/.test(text) ? URL.parse(text) : null;
  if (url === null || url.username !== '' || url.password !== '') return null;
  const isBelow = (prefix: string) =>
    url.href.startsWith(prefix) && (prefix.endsWith('/') || /^(?:$|[/?#])/.test(url.href.slice(prefix.length)));
  return prefixes.some(isBelow) ? url.href : null;
}

export function toReturnUrl(returnUrl: string, result: { readonly handle: string } | { readonly error: PrefillError }) {
  const url = new URL(returnUrl);
  url.searchParams.delete('prefill');
  url.searchParams.delete('prefill_error');
  if ('handle' in result) url.searchParams.set('prefill', result.handle);
  else url.searchParams.set('prefill_error', result.error);
  return url.href;
}

/** An unguessable text that includes its advertiser, because the key of its row begins with the advertiser. */
export const toTicket = (advertiserId: bigint, secret: string): string => `${advertiserId}.${secret}`;

export function parseTicket(ticket: string): bigint | null {
  const [, digits] = /^([1-9]\d{0,18})\.[\w-]{43}$/.exec(ticket) ?? [];
  return digits === undefined || BigInt(digits) >= 2n ** 63n ? null : BigInt(digits);
}

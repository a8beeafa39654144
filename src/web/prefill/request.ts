// Parses what comes to the prefill routes: what the careers site requests at start, what the source answers at callback, and links to a resume,
// which work for ten minutes without another credential. All of it is untrusted: nothing is used unchecked, or repeated on a page.

import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { type PrefillRequest, resumeLinkMs, toAllowedUrl } from '../../domain/prefill.ts';
import type { PrefillKey } from '../../store/prefill/prefills.ts';
import type { Callback } from '../../sync/prefill.ts';
import { isEqualSecret } from '../limits.ts';

/** The advertiser of a start; null where there is none, or more than one. */
export function parseAdvertiserId(query: URLSearchParams): bigint | null {
  const [text = '', ...others] = query.getAll('advertiser_id');
  const id = /^[1-9]\d{0,18}$/.test(text) && others.length === 0 ? BigInt(text) : null;
  return id === null || id >= 2n ** 63n ? null : id;
}

/** The request, or the names of the parameters that cannot be used. Addresses must begin with one of `returnUrls`. */
export function parseStart(
  query: URLSearchParams,
  advertiserId: bigint,
  returnUrls: readonly string[],
): PrefillRequest | { readonly wrong: readonly string[] } {
  const form = startForm(returnUrls);
  const names = [...query.keys()];
  const doubled = Object.keys(form.shape).filter((name) => names.indexOf(name) !== names.lastIndexOf(name));
  const { data, error } = form.safeParse(Object.fromEntries(query));
  const wrong = [...doubled, ...(error?.issues.map(({ path }) => String(path[0])) ?? [])];
  if (data === undefined || wrong.length > 0) return { wrong: [...new Set(wrong)] };
  return {
    advertiserId,
    formUrl: data.form_url,
    returnUrl: data.return_url,
    positionTitle: data.position_title,
    positionUri: data.position_uri,
    countryCode: data.country_code,
    postalCode: data.postal_code,
  };
}

function startForm(returnUrls: readonly string[]) {
  const allowed = z.string().transform((text, context) => {
    const url = toAllowedUrl(text, returnUrls);
    if (url !== null) return url;
    context.addIssue('not an address of the careers site');
    return z.NEVER;
  });
  return z.object({
    form_url: allowed,
    return_url: allowed,
    position_title: optionalText(/^[^\p{Cc}\p{Cs}]{1,300}$/u),
    position_uri: optionalText(/^[!-~]{1,2000}$/),
    // Spec: two letters.
    country_code: optionalText(/^[A-Za-z]{2}$/).transform((code) => code?.toUpperCase() ?? null),
    postal_code: optionalText(/^[\w -]{1,20}$/),
  });
}

/** An empty parameter counts as absent. */
function optionalText(form: RegExp) {
  return z
    .string()
    .trim()
    .refine((text) => text === '' || form.test(text))
    .transform((text) => text || null)
    .default(null);
}

/** The state and the answer; null when there is no single usable state. */
export function parseCallback(search: string): Pick<Callback, 'state' | 'answer'> | null {
  // Spec silent: which characters a code has. A bare `+` stays a plus: codes in base64 are common, codes with spaces are not.
  const query = new URLSearchParams(search.replaceAll('+', '%2B'));
  const [state, ...others] = query.getAll('state');
  if (state === undefined || others.length > 0) return null;
  return { state, answer: toAnswer(query.getAll('code'), query.getAll('error')) };
}

// Spec silent: how a denial comes back. RFC 6749 says `error=access_denied`; with neither code nor error the candidate returned
// without consenting. A code beside an error is not used.
function toAnswer(codes: readonly string[], errors: readonly string[]): Callback['answer'] {
  const [code, ...moreCodes] = codes;
  if (errors.length > 0) return errors.includes('access_denied') ? 'denied' : 'failed';
  if (code === undefined || code === '') return 'denied';
  return moreCodes.length === 0 && code.length <= 4000 ? { code } : 'failed';
}

/** Clocks of two processes differ by less. */
const skewMs = 60_000;

/** The last part of a link's path. */
export function toResumeToken({ advertiserId, prefillId }: PrefillKey, secret: string, nowMs: number): string {
  const claim = `${advertiserId}.${prefillId}.${nowMs + resumeLinkMs}`;
  return `${claim}.${sign(claim, secret)}`;
}

/** The prefill whose resume a token opens; null when the token is forged, altered, expired or good for longer than a link is. */
export function parseResumeToken(token: string, secret: string, nowMs: number): PrefillKey | null {
  const [claim, advertiserId, prefillId, endsAt] =
    /^(\d{1,19})\.([0-9a-f-]{36})\.(\d{1,16})(?=\.)/.exec(token) ?? ([] as string[]);
  if (claim === undefined || advertiserId === undefined || prefillId === undefined) return null;
  if (!isEqualSecret(token.slice(claim.length + 1), sign(claim, secret))) return null;
  const leftMs = Number(endsAt) - nowMs;
  return leftMs > 0 && leftMs <= resumeLinkMs + skewMs ? { advertiserId: BigInt(advertiserId), prefillId } : null;
}

function sign(claim: string, secret: string): string {
  return createHmac('sha256', secret).update(`resume link ${claim}`).digest('base64url');
}

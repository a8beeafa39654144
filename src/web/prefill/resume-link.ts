// Links to a resume that work for ten minutes and need no other credential: the key of the prefill and an expiry time, signed.

import { createHmac } from 'node:crypto';
import { resumeLinkMs } from '../../domain/prefill.ts';
import type { PrefillKey } from '../../store/prefill/prefills.ts';
import { isEqualSecret } from '../limits.ts';

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

// Carries out the verdict on a failed download: it waits, ends, or shows that its account or our storage needs a rest.
// What counts against a file is decided here by what else was heard of its source.
import { toVerdict } from '../domain/attempts.ts';
import type { Trouble } from '../domain/trouble.ts';
import type { Claim } from '../store/downloads.ts';
import type { Settled } from '../store/settling.ts';
import type { Store } from '../store/store.ts';

/** How an account has fared in this run. */
export interface Standing {
  /** It has served a file. */
  isAlive: boolean;
  /** Failures in a row. */
  streak: number;
  /** Nothing is claimed of it before this, on the process's own clock. */
  restsUntil: number;
}

/** What follows for the run. */
export type Consequence =
  | { readonly kind: 'none' }
  | { readonly kind: 'settled'; readonly state: Settled }
  | { readonly kind: 'rest' }
  | { readonly kind: 'halt' };

/** So many failures in a row, and no success between: it is the source that is down, not the files. */
const outageStreak = 8;
const outageRestMs = 5_000;

/** Books the failure of one download. */
export async function failDownload(
  store: Store,
  claim: Claim,
  { at, trouble }: { readonly at: 'source' | 'storage'; readonly trouble: Trouble },
  standing: Standing,
): Promise<Consequence> {
  const { kind, message, status } = trouble;
  const isUseless = kind === 'unreachable' || kind === 'malformed';
  const isOutage = at === 'source' && isUseless && ++standing.streak >= outageStreak;
  // An answer, even a useless one, shows that the source lives; many useless ones in a row show that it does not.
  const hasAnswered = kind === 'malformed' || (kind !== 'refused' && status !== undefined);
  const sourceAlive = !isOutage && (standing.isAlive || hasAnswered);
  const verdict = toVerdict({ trouble, at, attempts: claim.attempts, sourceAlive, random: Math.random() });
  if (isOutage) standing.restsUntil = performance.now() + outageRestMs;
  switch (verdict.kind) {
    case 'settle': {
      const { state, reason } = verdict;
      return { kind: 'settled', state: await store.settleDownload(claim, { kind: 'final', state, reason }) };
    }
    case 'retry':
      await store.postponeDownload(claim, { ...verdict, trouble: { kind, message } });
      return { kind: 'none' };
    case 'rest':
      await store.postponeDownload(claim, { delayMs: verdict.delayMs, spend: false, trouble: { kind, message } });
      if (verdict.scope === 'all') return { kind: 'rest' };
      standing.restsUntil = performance.now() + verdict.delayMs;
      return { kind: 'none' };
    case 'halt':
      await store.postponeDownload(claim, { delayMs: 0, spend: false, trouble: { kind, message } });
      return { kind: 'halt' };
  }
}

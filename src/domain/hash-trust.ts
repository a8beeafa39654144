// How far the source's Hash is believed. Spec: Attachment.Hash is a fingerprint; its algorithm is not shown, and nothing says that it is
// one. So it is an opaque hint: it may spare a download after it has earned that, and one contradiction ends it. Pure.

/** What SOURCE_HASH says: earn trust, take it for granted, or never. */
export type HashSetting = 'learn' | 'always' | 'never';

export interface HashTrust {
  /** Pairs of equal Hash and Size whose bytes were compared and equal. */
  readonly agreed: number;
  readonly contradicted: boolean;
  /** How often Hash changed while the bytes did not. */
  readonly unchanged: number;
}

/** Pairs that are fetched anyway before the first download is spared. */
const pairsToTrust = 20;
/** From then on one pair in so many is still compared. */
const comparedOneIn = 20;
/** Changes of Hash without a change of bytes that end it as a sign of change. */
export const mostUnchanged = 3;

/** What to do with a file whose Hash and Size equal those of one that is held: fetch and compare, or link without a request. */
export function toHashUse(setting: HashSetting, trust: HashTrust, random: number): 'fetch' | 'compare' | 'link' {
  if (setting === 'never') return 'fetch';
  if (setting === 'always') return 'link';
  if (trust.contradicted) return 'fetch';
  return trust.agreed < pairsToTrust || random < 1 / comparedOneIn ? 'compare' : 'link';
}

// How far Intake trusts the source's Hash. The spec names no algorithm, and nothing guarantees that equal hashes mean equal bytes. So Hash
// is an opaque hint: it saves downloads once it has earned trust, and one contradiction ends the trust.

/** The setting SOURCE_HASH: trust is earned, always given, or never given. */
export type HashSetting = 'learn' | 'always' | 'never';

export interface HashTrust {
  /** Pairs of files with equal Hash and Size whose bytes were compared and are equal. */
  readonly agreed: number;
  readonly contradicted: boolean;
}

/** Pairs that are downloaded and compared before the first download is skipped. */
const pairsToTrust = 20;
/** After that, one pair in this many is still compared. */
const comparedOneIn = 20;
/** After this many changes of Hash without a change of bytes, a new Hash no longer counts as a changed file. */
export const mostUnchanged = 3;

/** What to do with a file whose Hash and Size equal those of a stored file: fetch, fetch and compare, or link without a request. */
export function toHashUse(setting: HashSetting, trust: HashTrust, random: number): 'fetch' | 'compare' | 'link' {
  if (setting === 'never') return 'fetch';
  if (setting === 'always') return 'link';
  if (trust.contradicted) return 'fetch';
  return trust.agreed < pairsToTrust || random < 1 / comparedOneIn ? 'compare' : 'link';
}

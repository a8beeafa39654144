// The peers that some figures are measured against. They live in bench/package.json, apart from the product's lock; one that is not
// installed makes its figure say so.

import { createRequire } from 'node:module';

/** Loads a peer by require, or gives null where `npm --prefix bench ci` was not run. */
export function loadPeer<Peer>(name: string): Peer | null {
  try {
    return createRequire(import.meta.url)(name) as Peer;
  } catch (error) {
    if ((error as { code?: unknown }).code === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
}

/** What a row says where its peer is missing. */
export const notInstalled = (name: string) => `${name} is not installed: npm --prefix bench ci`;

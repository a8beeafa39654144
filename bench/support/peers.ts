// The peers that some figures are measured against. bench/package.json lists them, separate from the product's lock file. If a peer is not
// installed, its figure says so.

import { createRequire } from 'node:module';

/** Loads a peer with require; null if `npm --prefix bench ci` was not run. */
export function loadPeer<Peer>(name: string): Peer | null {
  try {
    return createRequire(import.meta.url)(name) as Peer;
  } catch (error) {
    if ((error as { code?: unknown }).code === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
}

/** The note of a figure whose peer is not installed. */
export const notInstalled = (name: string) => `${name} is not installed: npm --prefix bench ci`;

// Checks where the processes send requests (P19): reads what watched-network.ts records inside them, and finds requests at the source for
// ids that it never listed. Every request carries a credential, so a single wrong destination is a finding.

import { existsSync, readFileSync } from 'node:fs';
import type { Sandbox } from '../../../src/dev/sandbox/http/server.ts';

/** The returned function checks the requests since its last call. */
export function createStrangerWatch(file: string, board: Sandbox): () => string[] {
  const known = new Set<string>();
  // Other checks read the same request log, so this one does not clear it.
  let lastSeen = 0;
  const isKnown = (id: string) => {
    if (!known.has(id))
      for (const account of board.advertisers) for (const one of account.truth()) known.add(`${one.id}`);
    return known.has(id);
  };
  return () => {
    const noted = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').slice(0, 1) : [];
    const asked = board.requests().filter(({ number }) => number > lastSeen);
    lastSeen = asked.at(-1)?.number ?? lastSeen;
    const astray = asked.filter(({ path }) => {
      const [id] = path.startsWith('/v1/') ? (/-?\d+$/.exec(path) ?? []) : [];
      return id !== undefined && !isKnown(id);
    });
    return [
      ...noted.map((what) => `P19: ${what}`),
      ...astray.slice(0, 1).map(({ path }) => `P19: ${path} was asked for, and the source shows no such application`),
    ];
  };
}

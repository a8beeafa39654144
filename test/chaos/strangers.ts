// Whom the processes talk to (P19): what watched-network.ts notes inside them, and what arrives at the source under an id that it never
// showed. Credentials go along with every request, so one that goes astray is a finding at once.

import { existsSync, readFileSync } from 'node:fs';
import type { Sandbox } from '../../src/dev/sandbox/http/server.ts';

/** Looks at what was asked for since it was last called. */
export function createStrangerWatch(file: string, board: Sandbox): () => string[] {
  const known = new Set<string>();
  // Others count the same requests, so the log is left as it is.
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

// What an opener and the keeper of the embedded Postgres say to each other, and the notice in .intake/ by which they meet.
// The notice names a port and a token; only one who may read it (mode 0600) is told the server's URL.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What an opener asks a new keeper to keep; its only argument. */
export interface KeeperOrder {
  /** Where notice, lock and, if the server can reach it, the data lie: `.intake/postgres` or `.intake/scratch`, as a real path. */
  readonly folder: string;
  readonly scratch: boolean;
  /** The `native` folder of the package that holds this platform's binaries. */
  readonly binaries: string;
}

/** The keeper's one answer to a user who showed the token. */
export type KeeperAnswer = { readonly url: string } | { readonly trouble: string };

/** Exit code of a keeper that found another one at work. */
export const keeperBusy = 75;

export interface KeeperNotice {
  /** A checkout copied with its .intake/ must not follow the original's notice. */
  readonly folder: string;
  readonly keeperPort: number;
  readonly token: string;
  /** The server's own port: tried first by the next keeper, so that a URL that someone noted goes on working. */
  readonly port: number | null;
}

/** The last keeper's notice, whether or not that keeper still lives. */
export function loadNotice(folder: string): KeeperNotice | undefined {
  try {
    const notice = JSON.parse(readFileSync(join(folder, 'keeper.json'), 'utf8')) as KeeperNotice;
    return notice.folder === folder ? notice : undefined;
  } catch {
    return undefined;
  }
}

/** Replaces the notice whole: a reader sees the old or the new one. */
export function saveNotice(notice: KeeperNotice): void {
  const path = join(notice.folder, 'keeper.json');
  writeFileSync(`${path}.new`, `${JSON.stringify(notice)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

// The protocol between the users of the embedded Postgres and its keeper, and the notice in .intake/ by which users find the keeper.
// The notice contains a port and a token. Only a process that can read it (mode 0600) gets the server's URL.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The only argument of a new keeper. */
export interface KeeperOrder {
  /**
   * The folder of notice, lock and, if the server can reach it, data: `.intake/postgres`, `.intake/demo/postgres` or `.intake/scratch`, as
   * a real path.
   */
  readonly folder: string;
  readonly scratch: boolean;
  /** The `native` folder of the package with this platform's binaries. */
  readonly binaries: string;
}

/** The keeper's only answer to a user that sent the token. */
export type KeeperAnswer = { readonly url: string } | { readonly trouble: string };

/** Exit code of a keeper that found another one running. */
export const keeperBusy = 75;

export interface KeeperNotice {
  /** The folder that the notice belongs to: a copied checkout must not use the notice of the original. */
  readonly folder: string;
  readonly keeperPort: number;
  readonly token: string;
  /** The server's port. The next keeper tries it first, so that a saved URL keeps working. */
  readonly port: number | null;
}

/** The last keeper's notice, even if that keeper has exited. */
export function loadNotice(folder: string): KeeperNotice | undefined {
  try {
    const notice = JSON.parse(readFileSync(join(folder, 'keeper.json'), 'utf8')) as KeeperNotice;
    return notice.folder === folder ? notice : undefined;
  } catch {
    return undefined;
  }
}

/** Replaces the notice atomically: a reader sees the old or the new one. */
export function saveNotice(notice: KeeperNotice): void {
  const path = join(notice.folder, 'keeper.json');
  writeFileSync(`${path}.new`, `${JSON.stringify(notice)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

// A disk of its own that can run full at once: a tmpfs whose size is set anew. Null where mounting is not allowed (not root, or a
// container without the right).

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

export interface SmallDisk extends Disposable {
  readonly folder: string;
  /** Leaves no room, or gives it back. */
  fill(full: boolean): void;
}

const roomyMb = 600;
/** What is on it already cannot be taken away: the first of these that holds it. */
const tightMb = [1, 8, 32, 128];

/** Mounts one at a folder that is made for it. */
export function openSmallDisk(folder: string): SmallDisk | null {
  const mount = (options: string) =>
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stdio: 'ignore' });
  try {
    mkdirSync(folder);
    mount(`size=${roomyMb}m,mode=0700`);
  } catch {
    return null;
  }
  return {
    folder,
    fill(full) {
      for (const mb of full ? tightMb : [roomyMb]) {
        try {
          return void mount(`remount,size=${mb}m`);
        } catch {
          // More lies on it.
        }
      }
    },
    [Symbol.dispose]() {
      execFileSync('umount', ['-l', folder], { stdio: 'ignore' });
    },
  };
}

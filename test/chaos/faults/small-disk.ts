// A separate small disk that can become full at once: a tmpfs that is remounted with a smaller size. Null where mounting is not allowed
// (not root, or a container without the privilege).

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

export interface SmallDisk extends Disposable {
  readonly folder: string;
  /** Removes the free space, or restores it. */
  fill(full: boolean): void;
}

const roomyMb = 600;
/** A remount fails if the content does not fit, so `fill` takes the first of these sizes that works. */
const tightMb = [1, 8, 32, 128];

/** Creates the folder and mounts the disk there. */
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
          // The content is larger than this size.
        }
      }
    },
    [Symbol.dispose]() {
      execFileSync('umount', ['-l', folder], { stdio: 'ignore' });
    },
  };
}

// Every command of the CLI, in the order of the help.

import { backfill } from './backfill.ts';
import type { Definition } from './command.ts';
import { demo } from './demo.ts';
import { migrate } from './migrate.ts';
import { reparse } from './reparse.ts';
import { retry } from './retry.ts';
import { sandbox } from './sandbox.ts';
import { status } from './status.ts';
import { sync } from './sync.ts';
import { url } from './url.ts';
import { verify } from './verify.ts';

export const commands: readonly Definition<never>[] = [
  sync,
  backfill,
  status,
  verify,
  retry,
  url,
  reparse,
  migrate,
  sandbox,
  demo,
];

// Every command of the CLI, in the order of the help.

import { backfill } from './backfill.ts';
import type { Definition } from './command.ts';
import { demo } from './demo.ts';
import { doctor } from './doctor.ts';
import { healthcheck } from './healthcheck.ts';
import { migrate } from './migrate.ts';
import { sandbox } from './sandbox.ts';
import { status } from './status.ts';
import { sync } from './sync.ts';

export const commands: readonly Definition<never>[] = [
  sync,
  backfill,
  status,
  doctor,
  healthcheck,
  migrate,
  sandbox,
  demo,
];

// Every command of the CLI, in the order of the help.

import { backfill } from './backfill.ts';
import type { Definition } from './command.ts';
import { demo } from './demo.ts';
import { doctor } from './doctor.ts';
import { migrate } from './migrate.ts';
import { sandbox } from './sandbox.ts';
import { status } from './status.ts';
import { sync } from './sync.ts';
import { unhalt } from './unhalt.ts';

export const commands: readonly Definition<never>[] = [sync, backfill, status, doctor, unhalt, migrate, sandbox, demo];

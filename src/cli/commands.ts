// Every command of the CLI, in the order in which the help lists them.

import type { Definition } from './command.ts';
import { acceptDeletions, acceptUnreadable, adoptStore, unhalt } from './commands/decisions.ts';
import { demo } from './commands/demo.ts';
import { doctor } from './commands/doctor.ts';
import { compare, extract } from './commands/extract.ts';
import { url, verify } from './commands/files.ts';
import { quarantine, reparse } from './commands/parse-again.ts';
import { erase, exportCommand } from './commands/person.ts';
import { prove } from './commands/prove.ts';
import { retry, webhook } from './commands/retry.ts';
import { sandbox } from './commands/sandbox.ts';
import { grants, migrate } from './commands/schema.ts';
import { prefill, worker } from './commands/serve.ts';
import { healthcheck, status } from './commands/status.ts';
import { backfill, sync } from './commands/sync.ts';

export const commands: readonly Definition<never>[] = [
  ...[worker, prefill, sync, backfill, status, doctor, prove],
  ...[acceptDeletions, acceptUnreadable, adoptStore, verify, retry, webhook, unhalt],
  ...[url, quarantine, reparse, extract, compare, exportCommand, erase],
  ...[migrate, grants, healthcheck, sandbox, demo],
];

// Every command of the CLI, in the order in which the help lists them.

import type { Definition } from './command.ts';
import { acceptDeletions, acceptUnreadable } from './commands/accept.ts';
import { adoptStore } from './commands/adopt-store.ts';
import { backfill } from './commands/backfill.ts';
import { compare } from './commands/compare.ts';
import { demo } from './commands/demo.ts';
import { doctor } from './commands/doctor.ts';
import { erase } from './commands/erase.ts';
import { exportCommand } from './commands/export.ts';
import { extract } from './commands/extract.ts';
import { grants } from './commands/grants.ts';
import { healthcheck } from './commands/healthcheck.ts';
import { migrate } from './commands/migrate.ts';
import { prefill } from './commands/prefill.ts';
import { prove } from './commands/prove.ts';
import { quarantine } from './commands/quarantine.ts';
import { reparse } from './commands/reparse.ts';
import { retry } from './commands/retry.ts';
import { sandbox } from './commands/sandbox.ts';
import { status } from './commands/status.ts';
import { sync } from './commands/sync.ts';
import { unhalt } from './commands/unhalt.ts';
import { url } from './commands/url.ts';
import { verify } from './commands/verify.ts';
import { webhook } from './commands/webhook.ts';
import { worker } from './commands/worker.ts';

export const commands: readonly Definition<never>[] = [
  worker,
  prefill,
  sync,
  backfill,
  status,
  doctor,
  prove,
  acceptDeletions,
  acceptUnreadable,
  adoptStore,
  verify,
  retry,
  webhook,
  unhalt,
  url,
  quarantine,
  reparse,
  extract,
  compare,
  exportCommand,
  erase,
  migrate,
  grants,
  healthcheck,
  sandbox,
  demo,
];

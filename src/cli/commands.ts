// Every command of the CLI, in the order in which the help lists them.

import { acceptDeletions, acceptUnreadable } from './accept.ts';
import { adoptStore } from './adopt-store.ts';
import { backfill } from './backfill.ts';
import type { Definition } from './command.ts';
import { compare } from './compare.ts';
import { demo } from './demo.ts';
import { doctor } from './doctor.ts';
import { erase } from './erase.ts';
import { exportCommand } from './export.ts';
import { extract } from './extract.ts';
import { grants } from './grants.ts';
import { healthcheck } from './healthcheck.ts';
import { migrate } from './migrate.ts';
import { prefill } from './prefill.ts';
import { prove } from './prove.ts';
import { quarantine } from './quarantine.ts';
import { reparse } from './reparse.ts';
import { retry } from './retry.ts';
import { sandbox } from './sandbox.ts';
import { status } from './status.ts';
import { sync } from './sync.ts';
import { unhalt } from './unhalt.ts';
import { url } from './url.ts';
import { verify } from './verify.ts';
import { webhook } from './webhook.ts';
import { worker } from './worker.ts';

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

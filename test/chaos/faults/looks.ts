// Commands that only read: they do not change the schema, and a watching command survives every database fault.

import type { Cluster } from '../cluster.ts';
import type { Fleet } from '../fleet.ts';

/** Runs `intake status` before the schema exists. It must not create the schema, and must report that there is none (exit code 7). */
export async function lookAtBareDatabase({ query }: Cluster, fleet: Fleet): Promise<string[]> {
  const { code } = await fleet.run(['status']);
  const [row] = await query<{ schema: string | null }>(`SELECT to_regnamespace('intake')::text AS schema`);
  if (row?.schema !== null) return ['P22: intake status migrated the database'];
  return code === 7 ? [] : [`P22: intake status ended with code ${code} on a database without a schema`];
}

/**
 * Runs `intake status --watch` until the signal; returns a finding if the command ends earlier. If the first connection fails with a wrong
 * password, the command reports a wrong setting (code 2), even while the password is being changed. Then it is started once more.
 */
export async function watchStatus(fleet: Fleet, signal: AbortSignal): Promise<string[]> {
  const watch = () => fleet.runUntil(signal, ['status', '--watch', '--json']);
  const first = await watch();
  const { code } = first.code === 2 && first.output === '' && !signal.aborted ? await watch() : first;
  return signal.aborted ? [] : [`P12: intake status --watch ended with code ${code} amid faults`];
}

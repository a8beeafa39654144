// Commands that only look: they change no schema, and one that goes on looking outlasts whatever happens to the database.

import type { Cluster } from './cluster.ts';
import type { Fleet } from './fleet.ts';

/** Asks for a status before there is a schema; a finding when it made one, or did not say that there is none. */
export async function lookAtBareDatabase({ query }: Cluster, fleet: Fleet): Promise<string[]> {
  const { code } = await fleet.run(['status']);
  const [row] = await query<{ schema: string | null }>(`SELECT to_regnamespace('intake')::text AS schema`);
  if (row?.schema !== null) return ['P22: intake status migrated the database'];
  return code === 7 ? [] : [`P22: intake status ended with code ${code} on a database without a schema`];
}

/**
 * Watches the status until the signal; what it answers is a finding when it ended before. A password that is refused at the first look is
 * a wrong setting (code 2), also where it is being changed at that moment: a person starts the command again.
 */
export async function watchStatus(fleet: Fleet, signal: AbortSignal): Promise<string[]> {
  const watch = () => fleet.runUntil(signal, ['status', '--watch', '--json']);
  const first = await watch();
  const { code } = first.code === 2 && first.output === '' && !signal.aborted ? await watch() : first;
  return signal.aborted ? [] : [`P12: intake status --watch ended with code ${code} amid faults`];
}

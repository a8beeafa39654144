// Waits before a plan's faults begin, for the schema and for work that the faults can disturb; and commands that only read, before and amid
// them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import type { Fleet } from './fleet.ts';
import { within, withSlack } from './settings.ts';

/** Waits for the schema of a checkout. If no worker creates it, that is a finding. */
export async function untilMigrated({ query }: Cluster, { odd }: Pick<Fleet, 'odd'>, checkout: string): Promise<void> {
  const untilAt = performance.now() + withSlack(60_000);
  const { entries } = JSON.parse(readFileSync(join(checkout, 'migrations/meta/_journal.json'), 'utf8')) as {
    entries: readonly { readonly when: number }[];
  };
  const newest = Math.max(...entries.map(({ when }) => when));
  for (;;) {
    const rows = await query(`SELECT 1 FROM intake.migrations WHERE created_at = ${newest}`).catch(() => []);
    if (rows.length > 0) return;
    if (odd[0]) throw new Error(`P22: ${odd[0]}`);
    if (performance.now() > untilAt) throw new Error('P22: no worker created the schema');
    await sleep(100);
  }
}

/** Waits for the first stored file. On a busy machine the plan would otherwise end before its faults could disturb any work. */
export async function untilWorking({ query }: Cluster): Promise<void> {
  const isStored = () => query(`SELECT 1 FROM intake.attachments WHERE state = 'stored' LIMIT 1`);
  await within(20_000, async () => (await isStored()).length > 0);
}

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

// Waits before a plan's faults begin: for the schema, and for work that the faults can disturb.

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

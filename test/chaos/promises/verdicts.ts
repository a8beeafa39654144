// Checks that the exit codes about completeness agree with the tables (P10). Runs after all workers have stopped.

import type { Stage } from '../stage.ts';

type VerdictStage = Pick<Stage, 'cluster' | 'fleet' | 'runCommand'>;

/** The tables unchanged, with a proof from three months ago, and with a sweep that contradicted itself. */
const cases = [
  { name: 'as it stands', sql: null },
  {
    name: 'with a proof of three months ago',
    sql: `UPDATE intake.coverage SET certificate = 'proven', risk = 'none', as_of = as_of - interval '90 days'`,
  },
  { name: 'unproven', sql: `UPDATE intake.coverage SET certificate = 'unproven', risk = 'doubt'` },
] as const;

/** Runs `sync` and `status --check` in each case. An exit code that hides a doubt is a finding. */
export async function findFalseVerdicts({ cluster, fleet, runCommand }: VerdictStage): Promise<string[]> {
  const found: string[] = [];
  for (const { name, sql } of cases) {
    if (sql !== null) await cluster.query(sql);
    const synced = await runCommand(['sync', '--no-files', '--json']);
    const doubts = await cluster.query<{ advertiser: string }>(
      `SELECT advertiser FROM intake_analytics.completeness WHERE risk = 'doubt'`,
    );
    if (synced.code === 0 && doubts.length > 0) {
      found.push(`P10: intake sync ends with 0 while the account ${doubts[0]?.advertiser} is in doubt (${name})`);
    }
    const bad = await cluster.query<{ advertiser: string }>(
      `SELECT advertiser FROM intake_analytics.completeness WHERE certificate = 'unproven' OR as_of < now() - interval '30 days'`,
    );
    const checked = await fleet.run(['status', '--check', '--json']);
    if (checked.code === 0 && bad.length > 0) {
      found.push(`P10: intake status --check ends with 0 while ${bad[0]?.advertiser} has no recent proof (${name})`);
    }
  }
  return found;
}

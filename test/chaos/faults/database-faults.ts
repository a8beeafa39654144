// Building blocks of database faults: settings for new connections of the workers, table locks, and repeated work.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from '../stage.ts';

/** Ends a fault. */
export type End = () => Promise<unknown> | unknown;

/** Repeats the work until the returned function is called. */
export async function during(work: () => Promise<unknown>): Promise<End> {
  let isOver = false;
  const repeated = (async () => {
    while (!isOver) await work().catch(() => sleep(50));
  })();
  return () => {
    isOver = true;
    return repeated;
  };
}

/** Applies a setting to every new connection of the workers. Existing connections are terminated, now and when the fault ends. */
export async function withSetting({ cluster, name }: Stage, setting: string, value: string): Promise<End> {
  await cluster.query(`ALTER ROLE chaos_worker IN DATABASE ${name} SET ${setting} = '${value}'`);
  await renew(cluster);
  return async () => {
    await cluster.query(`ALTER ROLE chaos_worker IN DATABASE ${name} RESET ${setting}`);
    await renew(cluster);
  };
}

function renew({ query }: Stage['cluster']): Promise<unknown> {
  return query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'worker%'`);
}

export async function lockTable(
  { cluster }: Stage,
  table: string,
  forMs: number,
  mode = 'ACCESS EXCLUSIVE',
): Promise<End> {
  const held = cluster
    .query(
      `DO $$ BEGIN IF to_regclass('intake.${table}') IS NOT NULL THEN
         LOCK TABLE intake.${table} IN ${mode} MODE; PERFORM pg_sleep(${forMs / 1_000}); END IF; END $$`,
    )
    .catch(() => {});
  return () => held;
}

/** The index in the fleet of a worker whose page waits for the ranges table; null if there is none in time. */
export async function findWriter({ cluster }: Stage, retryForMs: number): Promise<number | null> {
  for (const untilAt = performance.now() + retryForMs; performance.now() < untilAt; await sleep(30)) {
    const [writer] = await cluster.query<{ nth: number }>(
      `SELECT substring(a.application_name FROM '^worker-([0-9]+)$')::int - 1 AS nth FROM pg_locks l JOIN pg_stat_activity a USING (pid)
       WHERE l.relation = 'intake.ranges'::regclass AND NOT l.granted AND a.application_name ~ '^worker-[0-9]+$' LIMIT 1`,
    );
    if (writer) return writer.nth;
  }
  return null;
}

/** Reverts the settings that a fault could not revert because the server was down. */
export async function resetDatabase({ cluster, name }: Stage): Promise<void> {
  await cluster.query(`ALTER DATABASE ${name} CONNECTION LIMIT -1`);
  await cluster.query(`ALTER ROLE chaos_worker IN DATABASE ${name} RESET ALL`);
  await cluster.query(`ALTER SYSTEM RESET synchronous_standby_names`);
  await cluster.query(`SELECT pg_reload_conf()`);
  await renew(cluster);
}

// Phase B, faults off: runs each command that an operator would run once, concurrently. Then everything must become equal without help.
// Returns what is still wrong at the deadline.

import { setTimeout as sleep } from 'node:timers/promises';
import { untilAnswering } from '../cluster.ts';
import { resetDatabase } from '../faults/database-faults.ts';
import { collectAll } from '../orphans.ts';
import type { Stage } from '../stage.ts';
import { untilEqual } from './truth.ts';

export interface Recovered {
  /** From the last fault until everything was equal. */
  readonly tookMs: number;
  readonly broken: readonly string[];
}

/** Ends every fault that is still on. */
export async function endFaults(stage: Stage): Promise<void> {
  const { accounts, proxies, cluster, pooler, spool, s3, workload, endpoints } = stage;
  for (const account of accounts) account.clearFaults();
  for (const proxy of Object.values(proxies)) proxy.mode = 'open';
  s3.clearFaults();
  endpoints.mode = 'open';
  spool?.fill(false);
  await cluster.start();
  await untilAnswering(cluster);
  await resetDatabase(stage);
  await pooler?.start();
  workload.finish();
}

/** Ends halts, finishes erasures, verifies and retries. Then it waits until everything is equal, and deletes orphans. */
export async function recover(stage: Stage, isHalted: boolean, retryForMs: number): Promise<Recovered> {
  const { fleet, erasing, candidates, endpoints, workload, runCommand, stopWell } = stage;
  const quietAt = performance.now();
  const renew = async () => {
    await runCommand(['unhalt']);
    // A worker tries a halted account every three minutes, but at once after a restart. Workers with a crash point or a shifted clock
    // are replaced too.
    const unfit = Array.from({ length: fleet.size }, (_, nth) => nth).filter(
      (nth) => isHalted || nth === 0 || fleet.isSpecial(nth),
    );
    await Promise.all(unfit.map((nth) => stopWell(nth)));
  };
  await Promise.all([renew(), erasing.finish(), runCommand(['verify', '--full'])]);
  workload.changeAround(erasing.ids());
  await runCommand(['retry']);
  const { differences } = await untilEqual(stage, retryForMs - (performance.now() - quietAt));
  const tookMs = performance.now() - quietAt;
  if (differences.length > 0) return { tookMs, broken: differences.map((line) => `P1, P3, P6: ${line}`) };
  return {
    tookMs,
    broken: [
      ...(await erasing.findBroken()),
      ...(await candidates.findBroken()),
      ...(await endpoints.findBroken(stage)),
      ...(await collectAll(stage)),
      ...(await findKeptVersions(stage)),
    ],
  };
}

/**
 * Finds versions of deleted objects, whose bytes are still in the storage. Objects that the objectLost fault removed are excluded. A delete
 * may be between an object and its versions, so a version that is gone a minute later was not kept.
 */
async function findKeptVersions({ s3, lostKeys }: Stage): Promise<string[]> {
  for (let second = 0; ; second++) {
    const kept = [...s3.versions.values()].filter(({ key }) => !s3.objects.has(key) && !lostKeys.has(key));
    if (kept.length === 0 || second === 60)
      return kept.slice(0, 3).map(({ key }) => `P17: ${key} is deleted, and a version of it is kept`);
    await sleep(1_000);
  }
}

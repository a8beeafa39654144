// An outage of the source or of the storage lasts until `intake status`, run as a separate process, names it. An outage that is not named
// in time is a finding: the worker knows what it waits for, so the operator must be able to see it.

import { setTimeout as sleep } from 'node:timers/promises';
import { withSlack } from '../settings.ts';
import type { Stage } from '../stage.ts';
import type { End } from './database-faults.ts';

/** Workers poll every nine seconds, and other faults stop workers and the database meanwhile. */
const namedWithinMs = 20_000;

interface Told {
  readonly waits?: readonly { readonly dependency: string }[];
  readonly advertisers?: readonly { readonly halt: object | null; readonly due: number }[];
}

/** Cuts the connections to one side. The returned function waits until the outage is named, and ends it. */
export async function beginOutage(stage: Stage, side: 'source' | 'storage'): Promise<End> {
  const { proxies, workload } = stage;
  // Other faults of the same side may end during this one and open the proxy again.
  const cutting = setInterval(() => {
    if (proxies[side].mode === 'cut') return;
    proxies[side].mode = 'cut';
    proxies[side].cut();
  }, 50);
  // Gives the workers something to store.
  if (side === 'storage') workload.changeFiles();
  const named = untilNamed(stage, side);
  return async () => {
    await named;
    clearInterval(cutting);
    proxies[side].mode = 'open';
  };
}

async function untilNamed(stage: Stage, side: 'source' | 'storage'): Promise<void> {
  let dueSince: number | null = null;
  const retryForMs = withSlack(namedWithinMs);
  const giveUpAt = performance.now() + 2 * retryForMs;
  while (performance.now() < giveUpAt) {
    const told = toTold((await stage.runCommand(['status', '--json'])).output);
    if (told?.waits?.some(({ dependency }) => dependency === side)) return stage.count(`${side} outages named`);
    // A halted account sends no requests to the source, and without due files the worker does not use the storage.
    const isMet = told?.advertisers?.some(({ halt, due }) => halt === null && (side === 'source' || due > 0));
    dueSince = isMet ? (dueSince ?? performance.now()) : null;
    if (dueSince !== null && performance.now() - dueSince > retryForMs) {
      stage.report(
        `P13: intake status does not name an outage of the ${side} after ${Math.round(retryForMs / 1_000)} s`,
      );
      return;
    }
    await sleep(200);
  }
}

/** Null if the command printed no status, because the database is unavailable too. */
function toTold(output: string): Told | null {
  const line = output.split('\n').findLast((one) => one.startsWith('{"at"'));
  return line === undefined ? null : (JSON.parse(line) as Told);
}

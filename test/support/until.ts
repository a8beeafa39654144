// How a test waits: for the event itself. The limit only ends a test that would hang; no test is about it.
import { setTimeout as sleep } from 'node:timers/promises';

/** Shorter than the limit of a test, so that the failure names the condition. */
const limitMs = 480_000;
const leastPauseMs = 10;
const mostPauseMs = 250;

/**
 * Waits until it holds; throws with the condition when it never does. Looks less often the longer it lasts and the more a look costs: a status
 * asked for a hundred times a second keeps a core busy that the worker needs.
 */
export async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineAt = performance.now() + limitMs;
  for (let looks = 1; ; looks++) {
    const startedAt = performance.now();
    if (await holds()) return;
    if (performance.now() > deadlineAt) throw new Error(`It does not hold after ${limitMs} ms: ${holds}`);
    const cost = 3 * (performance.now() - startedAt);
    await sleep(Math.min(mostPauseMs, Math.max(leastPauseMs, looks, cost)));
  }
}

// Tests wait for an event, never for a length of time. The limit only ends a test that would hang.
import { setTimeout as sleep } from 'node:timers/promises';

/** Shorter than the timeout of a test, so that the failure names the condition. */
const limitMs = 480_000;
const leastPauseMs = 10;
const mostPauseMs = 250;

/**
 * Waits until the condition holds; throws an error that names it when it never does. The pause between checks grows with their number and
 * with the cost of a check: a status requested a hundred times a second would occupy a core that the worker needs.
 */
export async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineAt = performance.now() + limitMs;
  for (let looks = 1; ; looks++) {
    const startedAt = performance.now();
    if (await holds()) return;
    if (performance.now() > deadlineAt) throw new Error(`The condition does not hold after ${limitMs} ms: ${holds}`);
    const cost = 3 * (performance.now() - startedAt);
    await sleep(Math.min(mostPauseMs, Math.max(leastPauseMs, looks, cost)));
  }
}

// How a test waits: for the event itself. The limit only ends a test that would hang; no test is about it.
import { setTimeout as sleep } from 'node:timers/promises';

/** Shorter than the limit of a test, so that the failure names the condition. */
const limitMs = 480_000;

/** Waits until it holds; throws with the condition when it never does. */
export async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineAt = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > deadlineAt) throw new Error(`It does not hold after ${limitMs} ms: ${holds}`);
    await sleep(10);
  }
}

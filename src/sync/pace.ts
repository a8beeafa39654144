// Pace: requests of one source evenly spaced, so that no burst ever exceeds the configured rate.
import { setTimeout as sleep } from 'node:timers/promises';

/** Awaited before each request; null is no limit. */
export function createPace(requestsPerSecond: number | null): (signal: AbortSignal) => Promise<void> {
  if (requestsPerSecond === null) return async () => {};
  const spacingMs = 1_000 / requestsPerSecond;
  let nextAt = 0;
  return async (signal) => {
    const now = performance.now();
    const turnAt = Math.max(now, nextAt);
    nextAt = turnAt + spacingMs;
    if (turnAt > now) await sleep(turnAt - now, undefined, { signal });
  };
}

// Ends the process at a named moment, as a power cut would, or stops it there: for tests of what survives. Inert unless a variable
// names the moment.
import type { PassCrashPoint } from '../domain/crash-point.ts';

/** From `name`, `name:count` or `name:count:stop`: acts when the moment comes for the countth time. Undefined: nothing ever happens. */
export function createCrashPoint(spec: string | undefined): PassCrashPoint | undefined {
  if (!spec) return undefined;
  const [wanted, count = '1', manner] = spec.split(':');
  let left = Number(count);
  return (name) => {
    if (name === wanted && --left === 0) process.kill(process.pid, manner === 'stop' ? 'SIGSTOP' : 'SIGKILL');
  };
}

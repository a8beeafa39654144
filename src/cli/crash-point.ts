// Kills the process at a named point, as a power cut would, or suspends it there, or keeps its event loop busy for ever, for crash tests.
// Does nothing unless INTAKE_CRASH_AT names the point.
import type { PassCrashPoint } from '../domain/crash-point.ts';

/** Parses `name`, `name:count`, `name:count:stop` or `name:count:hang`: acts when the point is reached for the count-th time. Undefined: never. */
export function createCrashPoint(spec: string | undefined): PassCrashPoint | undefined {
  if (!spec) return undefined;
  const [wanted, count = '1', manner] = spec.split(':');
  let left = Number(count);
  return (name) => {
    if (name !== wanted || --left !== 0) return;
    while (manner === 'hang');
    process.kill(process.pid, manner === 'stop' ? 'SIGSTOP' : 'SIGKILL');
  };
}

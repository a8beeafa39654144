// Ends the process at a named moment, as a power cut would: for tests of what survives. Inert unless a variable names the moment.

/** From `name` or `name:count`: kills the process when the moment comes for the countth time. Undefined: nothing ever happens. */
export function createCrashPoint(spec: string | undefined): ((name: string) => void) | undefined {
  if (!spec) return undefined;
  const [wanted, count = '1'] = spec.split(':');
  let left = Number(count);
  return (name) => {
    if (name === wanted && --left === 0) process.kill(process.pid, 'SIGKILL');
  };
}

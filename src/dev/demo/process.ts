// The processes beside the demo's worker: each runs on its own, as in production, and ends with the demo.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');

/** Starts a script of the checkout; disposing stops it. */
export function openProcess(
  [file = '', ...args]: string[],
  env: NodeJS.ProcessEnv,
  stderr: 'inherit' | 'ignore' = 'ignore',
): AsyncDisposable {
  // The IPC channel closes when this process ends for any reason, and the child then exits. A Ctrl-C reaches this process alone.
  const options = { env, detached: true, stdio: ['ignore', 'ignore', stderr, 'ipc'] } satisfies SpawnOptions;
  const child: ChildProcess = spawn(process.execPath, [join(root, file), ...args], options);
  return {
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    },
  };
}

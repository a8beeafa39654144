// Fails a test file that leaves a server, a socket (thus also a database pool or an HTTP client) or a child process open, and a file during
// which Node prints a warning. The guard records every resource when Node opens it, with the line that opened it, and checks the records
// after the file's last hook.

import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { flushCompileCache } from 'node:module';
import type { Server, Socket } from 'node:net';
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises';
import { aroundAll } from 'vitest';

interface Opened {
  readonly isOpen: () => boolean;
  readonly name: () => string;
  readonly trace: Error;
}

interface LeakGuard extends Disposable {
  /** Names the resources that are still open after a grace period for those that are closing. */
  findOpen(): Promise<string[]>;
}

/** Records resources until it is disposed: one process runs many files, and each file answers only for its own resources. */
function openLeakGuard(): LeakGuard {
  const opened: Opened[] = [];
  const note = (isOpen: () => boolean, name: () => string) => {
    opened.push({ isOpen, name, trace: takeTrace() });
  };
  const noters = {
    'tracing:net.server.listen:asyncStart': (message: unknown) => {
      const { server } = message as { server: Server };
      // A server counts as open from the call of listen until its last connection is closed.
      let open = true;
      const close = () => {
        open = false;
      };
      server.once('close', close).once('error', close);
      note(
        () => open,
        () => `server on ${JSON.stringify(server.address())}`,
      );
    },
    'net.client.socket': (message: unknown) => {
      const { socket } = message as { socket: Socket };
      note(
        () => !socket.destroyed,
        () => `socket to ${socket.remoteAddress}:${socket.remotePort}`,
      );
    },
    child_process: (message: unknown) => {
      const { process: child } = message as { process: ChildProcess };
      note(
        () => child.exitCode === null && child.signalCode === null,
        () => `process ${child.pid} (${child.spawnfile})`,
      );
    },
  };
  for (const [channel, noter] of Object.entries(noters)) subscribe(channel, noter);
  return {
    async findOpen() {
      const deadlineAt = performance.now() + graceMs;
      for (;;) {
        const open = opened.filter(({ isOpen, trace }) => isOpen() && findCaller(trace) !== undefined);
        if (open.length === 0) return [];
        if (performance.now() > deadlineAt) {
          // After a stall of the event loop, handles that have closed are marked so only in its next ticks.
          for (let nth = 0; nth < 3; nth++) await nextTick();
          return open
            .filter(({ isOpen }) => isOpen())
            .map(({ name, trace }) => `${name()}, opened ${findCaller(trace)}`);
        }
        await sleep(10);
      }
    },
    [Symbol.dispose]() {
      for (const [channel, noter] of Object.entries(noters)) unsubscribe(channel, noter);
    },
  };
}

/** Long enough for a close to finish on a busy machine. */
const graceMs = 5_000;

/** Notes the frames. Only reading `stack` makes a text of them, which would take 3% of a file's CPU. */
function takeTrace(): Error {
  const usual = Error.stackTraceLimit;
  // The frames of a pool alone fill the default limit of ten.
  Error.stackTraceLimit = 50;
  const noted = new Error();
  Error.stackTraceLimit = usual;
  return noted;
}

/** The nearest line of the project's code. Undefined for the built-in fetch: it shares idle sockets, and no caller can close them. */
function findCaller({ stack }: Error): string | undefined {
  const lines = stack?.split('\n').slice(4) ?? [];
  if (lines.some((line) => line.includes('node:internal/deps/undici'))) return undefined;
  const ours = lines.find((line) => !line.includes('node:') && !line.includes('/node_modules/'));
  return (ours ?? lines.at(-1) ?? '').trim();
}

// A file whose tests are all left out is loaded, but runs no hook. The next file of the process ends its guard.
const shared = globalThis as { endGuard?: () => void };
shared.endGuard?.();

// Starts here because a file may open something while it is loaded.
const guard = openLeakGuard();
const warnings: string[] = [];
const onWarning = (warning: Error) => void warnings.push(`${warning.name}: ${warning.message}`);
process.on('warning', onWarning);
shared.endGuard = () => {
  guard[Symbol.dispose]();
  process.off('warning', onWarning);
};

// Runs around everything else in the file, including its hooks and fixtures.
aroundAll(async (runFile) => {
  using _guard = guard;
  // Vitest ends its processes by a signal, and Node then does not write its compile cache.
  flushCompileCache();
  await runFile();
  // Node emits a warning in the tick after its cause.
  await nextTick();
  const open = await guard.findOpen();
  process.off('warning', onWarning);
  if (open.length > 0) throw new Error(`Left open:\n${open.map((line) => `- ${line}`).join('\n')}`);
  if (warnings.length > 0) throw new Error(`Node warned:\n${warnings.map((line) => `- ${line}`).join('\n')}`);
});

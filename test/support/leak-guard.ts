// Fails a test file that leaves something open (a listening server, a socket, so also a database pool or an HTTP client, a child process),
// and one during which Node warned of something. What is open is noted when Node opens it, with the line that did it, and looked at again
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
  readonly from: string;
}

interface LeakGuard extends Disposable {
  /** Names what is still open, after a moment's grace for what is just closing. */
  findOpen(): Promise<string[]>;
}

/** Begins to note, until it is disposed: one process serves many files, and each is to blame for its own alone. */
function openLeakGuard(): LeakGuard {
  const opened: Opened[] = [];
  const note = (isOpen: () => boolean, name: () => string) => {
    const from = loadCaller();
    if (from !== undefined) opened.push({ isOpen, name, from });
  };
  const noters = {
    'tracing:net.server.listen:asyncStart': (message: unknown) => {
      const { server } = message as { server: Server };
      // Open from here on, also while it is still about to listen, and until its last connection is gone.
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
        const open = opened.filter(({ isOpen }) => isOpen());
        if (open.length === 0 || performance.now() > deadlineAt)
          return open.map(({ name, from }) => `${name()}, opened ${from}`);
        await sleep(10);
      }
    },
    [Symbol.dispose]() {
      for (const [channel, noter] of Object.entries(noters)) unsubscribe(channel, noter);
    },
  };
}

/** What was closed is closed within it on a busy machine too. */
const graceMs = 5_000;

/** The nearest line of ours. Undefined for the built-in fetch, which keeps idle sockets for all callers and lets nobody close them. */
function loadCaller(): string | undefined {
  const usual = Error.stackTraceLimit;
  // A pool's frames alone fill the usual ten.
  Error.stackTraceLimit = 50;
  const lines = new Error().stack?.split('\n').slice(4) ?? [];
  Error.stackTraceLimit = usual;
  if (lines.some((line) => line.includes('node:internal/deps/undici'))) return undefined;
  const ours = lines.find((line) => !line.includes('node:') && !line.includes('/node_modules/'));
  return (ours ?? lines.at(-1) ?? '').trim();
}

// While the file is loaded it may open something too.
const guard = openLeakGuard();
const warnings: string[] = [];
const onWarning = (warning: Error) => void warnings.push(`${warning.name}: ${warning.message}`);
process.on('warning', onWarning);

// Around everything else in the file, its hooks and fixtures included.
aroundAll(async (runFile) => {
  using _guard = guard;
  // Vitest ends its processes by a signal, and then Node would not keep what it has compiled.
  flushCompileCache();
  await runFile();
  // A warning is told in the tick after its cause.
  await nextTick();
  const open = await guard.findOpen();
  process.off('warning', onWarning);
  if (open.length > 0) throw new Error(`Left open:\n${open.map((line) => `- ${line}`).join('\n')}`);
  if (warnings.length > 0) throw new Error(`Node warned:\n${warnings.map((line) => `- ${line}`).join('\n')}`);
});

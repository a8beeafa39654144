// Fails a test file that leaves something open: a listening server, a socket (so also a database pool or an HTTP client), a child process.
// Each is noted when Node opens it, with the line that did it, and looked at again after the file's last hook.

import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { flushCompileCache } from 'node:module';
import type { Server, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { aroundAll } from 'vitest';

interface Opened {
  readonly isOpen: () => boolean;
  readonly name: () => string;
  readonly from: string;
}

/** Begins to note; the result names what is still open, after a moment's grace for what is just closing. */
export function createLeakGuard(): () => Promise<string[]> {
  const opened: Opened[] = [];
  const note = (isOpen: () => boolean, name: () => string) => {
    const from = loadCaller();
    if (from !== undefined) opened.push({ isOpen, name, from });
  };
  subscribe('tracing:net.server.listen:asyncStart', (message) => {
    const { server } = message as { server: Server };
    // Open from here on, also while it is still about to listen, and until its last connection is gone.
    let open = true;
    const settle = () => {
      open = false;
    };
    server.once('close', settle).once('error', settle);
    note(
      () => open,
      () => `server on ${JSON.stringify(server.address())}`,
    );
  });
  subscribe('net.client.socket', (message) => {
    const { socket } = message as { socket: Socket };
    note(
      () => !socket.destroyed,
      () => `socket to ${socket.remoteAddress}:${socket.remotePort}`,
    );
  });
  subscribe('child_process', (message) => {
    const { process: child } = message as { process: ChildProcess };
    note(
      () => child.exitCode === null && child.signalCode === null,
      () => `process ${child.pid} (${child.spawnfile})`,
    );
  });
  return async () => {
    const deadlineAt = performance.now() + graceMs;
    for (;;) {
      const open = opened.filter(({ isOpen }) => isOpen());
      if (open.length === 0 || performance.now() > deadlineAt)
        return open.map(({ name, from }) => `${name()}, opened ${from}`);
      await sleep(10);
    }
  };
}

const graceMs = 500;

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

const findOpen = createLeakGuard();

// Around everything else in the file, its hooks and fixtures included.
aroundAll(async (runFile) => {
  // Vitest ends its processes by a signal, and then Node would not keep what it has compiled.
  flushCompileCache();
  await runFile();
  const open = await findOpen();
  if (open.length > 0) throw new Error(`Left open:\n${open.map((line) => `- ${line}`).join('\n')}`);
});

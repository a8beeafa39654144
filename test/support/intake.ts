// Runs the real CLI with nothing of this process's environment: as a process of its own, or as a function where the process is not the subject.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { commands } from '../../src/cli/commands.ts';
import { runCli } from '../../src/cli/run.ts';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running command; `ended` resolves with all it said. */
export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

const compileCache = resolve('node_modules/.cache/intake');

/** Starts `intake <args>` in a folder (the checkout by default). */
export function startIntake(args: readonly string[], env: Record<string, string>, cwd = resolve('.')): Running {
  const main = resolve('src/cli/main.ts');
  const child = spawn(process.execPath, [main, ...args], {
    cwd,
    // The entry enables this cache too, but only after it was itself stripped and compiled: 70 ms of 510 at every start.
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', NODE_COMPILE_CACHE: compileCache, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  const ended = said.then(([stdout, stderr, [code]]) => {
    const warning = /^\(node:\d+\) .*Warning: .*/m.exec(stderr)?.[0];
    if (warning) throw new Error(`Node warned: ${warning}`);
    return { code: code as number | null, stdout, stderr };
  });
  return { child, ended };
}

/** Runs `intake <args>` to its end. */
export async function runIntake(args: readonly string[], env: Record<string, string>, cwd?: string): Promise<Ended> {
  return await startIntake(args, env, cwd).ended;
}

/** Runs `intake <args>` to its end in this process: the same words and exit codes, without half a second of CPU for a start of Node. */
export async function callIntake(args: readonly string[], env: Record<string, string>): Promise<Ended> {
  const said = { stdout: '', stderr: '' };
  const listen = (stream: keyof typeof said) => ({
    write: (piece: string) => {
      said[stream] += piece;
    },
    isTTY: false,
    columns: 100,
  });
  const host = { env, stdout: listen('stdout'), stderr: listen('stderr'), signal: AbortSignal.timeout(600_000) };
  return { code: await runCli(args, commands, host), ...said };
}

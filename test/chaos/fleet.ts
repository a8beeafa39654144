// The workers under test. The fleet starts real processes, arms crash points, kills, pauses and resumes them, and restarts them when they
// exit, as a supervisor would. An exit that the harness did not cause, and that no crash point explains, is a broken promise.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CrashPoint } from '../../src/domain/crash-point.ts';
import { withSlack } from './settings.ts';

export interface FleetOptions {
  /** Holds the logs; also the working directory of every process. */
  readonly folder: string;
  readonly env: (member: string, checkout: string) => Record<string, string>;
  /** The checkout whose code the next process runs. */
  readonly toCheckout: (args: readonly string[]) => string;
  /** Chooses the crash point for a restarted worker. */
  readonly toArming: () => Arming | null;
  /** A process reached its crash point, and died or stopped there. */
  readonly onFired: (point: CrashPoint) => void;
  /** A process has stopped at its crash point; it continues when this resolves. */
  readonly onStopped: (point: CrashPoint) => Promise<void>;
}

/** How a command ended, and its output. The code is null if it was killed. */
export interface Ended {
  readonly code: number | null;
  /** The process died at its crash point. */
  readonly fired: boolean;
  readonly output: string;
}

export interface Arming {
  readonly point: CrashPoint;
  readonly count: number;
  readonly stop: boolean;
}

interface Member {
  readonly name: string;
  readonly command: 'worker' | 'prefill';
  child: ChildProcess;
  arming: Arming | null;
  isRetired: boolean;
  startedAt: number;
  /** Started with a crash point or with extra settings. */
  isSpecial: boolean;
}

export interface Fleet {
  readonly size: number;
  /** Descriptions of exits that the harness did not cause. */
  readonly odd: string[];
  starts: number;
  /** Counts kill -9, from outside or at a crash point. */
  kills: number;
  launch(arming?: Arming | null, extra?: Record<string, string>): void;
  /** Starts the process of the public port, which the harness kills, pauses and restarts as it does workers. */
  launchPrefill(): void;
  /** Sends kill -9 and starts a replacement, with a crash point if one is given. */
  kill(nth: number, arming?: Arming | null, extra?: Record<string, string>): void;
  /** Sends SIGSTOP, and SIGCONT after `forMs`. */
  pause(nth: number, forMs: number): Promise<void>;
  /** Sends SIGTERM; returns the exit code and the time it took. The fleet starts a replacement unless `retire` is set. */
  stop(nth: number, retire?: boolean): Promise<{ code: number | null; tookMs: number }>;
  /** Whether the worker was started with a crash point or with extra settings, such as a shifted clock. */
  isSpecial(nth: number): boolean;
  /** Resolves when the worker has exited, or after the given time. */
  untilEnded(nth: number, retryForMs: number): Promise<void>;
  /** Runs a one-shot command beside the workers; it dies at `point`. */
  run(args: readonly string[], point?: CrashPoint | null, env?: Record<string, string>): Promise<Ended>;
  /** Runs a command until the signal aborts. */
  runUntil(signal: AbortSignal, args: readonly string[]): Promise<Ended>;
}

const watched = new URL('./watched-network.ts', import.meta.url).href;
/** Node needs some time before the worker's first line runs, and more on a busy machine. */
const youngMs = 10_000;

export function createFleet({ folder, env, toCheckout, toArming, onFired, onStopped }: FleetOptions): Fleet {
  const members: Member[] = [];
  /** Processes that the harness ended, paused from outside, or killed. */
  const stopped = new WeakSet<ChildProcess>();
  const paused = new WeakSet<ChildProcess>();
  const killed = new WeakSet<ChildProcess>();
  /** Processes stopped at a crash point. `kill` chooses others, so that the harness can see what these do when they continue. */
  const resting = new WeakSet<ChildProcess>();
  /** When a stopped process last continued. It handles no signal before that. */
  const wokenAt = new WeakMap<ChildProcess, number>();
  const wake = (child: ChildProcess) => {
    child.kill('SIGCONT');
    wokenAt.set(child, performance.now());
  };
  // Compiling is half the cost of a start, and a plan has dozens of starts.
  const compiled = join(folder, '../compiled');
  const pick = (nth: number): Member => members[nth % members.length] as Member;

  function start(name: string, args: readonly string[], extra: Record<string, string>): ChildProcess {
    const [out, err] = [`${name}.out.log`, `${name}.log`].map((file) => openSync(join(folder, file), 'a'));
    const { imported, ...given } = extra;
    const imports = [watched, imported].flatMap((one) => (one ? ['--import', one] : []));
    const checkout = toCheckout(args);
    const child = spawn(process.execPath, [...imports, join(checkout, 'src/cli/main.ts'), ...args], {
      cwd: folder,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: folder,
        TMPDIR: folder,
        NODE_COMPILE_CACHE: compiled,
        ...env(name, checkout),
        ...given,
      },
      stdio: ['ignore', out, err],
    });
    for (const file of [out, err]) if (file !== undefined) closeSync(file);
    fleet.starts++;
    return child;
  }

  function launchMember(member: Member, extra: Record<string, string> = {}): void {
    const { arming } = member;
    const at = arming ? { INTAKE_CRASH_AT: `${arming.point}:${arming.count}${arming.stop ? ':stop' : ''}` } : {};
    const child = start(member.name, [member.command], { ...at, ...extra });
    member.startedAt = performance.now();
    member.isSpecial = arming !== null || Object.keys(extra).length > 0;
    member.child = child;
    if (arming?.stop) void watchForStop(child, arming.point);
    child.once('exit', (code, signal) => {
      if (signal === 'SIGKILL' && arming && !arming.stop && !killed.has(child)) {
        fleet.kills++;
        onFired(arming.point);
      } else if (!stopped.has(child)) {
        fleet.odd.push(`${member.name} ended by itself with ${code ?? signal}: ${lastLines(member.name)}`);
      }
      if (member.isRetired) return;
      setTimeout(() => {
        if (member.isRetired || member.child !== child) return;
        member.arming = toArming();
        launchMember(member);
      }, 250);
    });
  }

  /** Watches for state T in /proc, the only sign that a process stopped itself. */
  async function watchForStop(child: ChildProcess, point: CrashPoint): Promise<void> {
    while (child.exitCode === null && child.signalCode === null) {
      await sleep(60);
      if (paused.has(child) || !isStopped(child.pid)) continue;
      onFired(point);
      resting.add(child);
      await onStopped(point);
      resting.delete(child);
      wake(child);
      return;
    }
  }

  const lastLines = (name: string) =>
    ['.out.log', '.log']
      .map((end) => readFileSync(join(folder, `${name}${end}`), 'utf8'))
      .join('')
      .trim()
      .split('\n')
      .slice(-4);

  const fleet: Fleet = {
    odd: [],
    starts: 0,
    kills: 0,
    get size() {
      return members.length;
    },
    launch(arming = null, extra = {}) {
      const name = `worker-${members.length + 1}`;
      const member = { name, command: 'worker', arming, isRetired: false } as Member;
      members.push(member);
      launchMember(member, extra);
    },
    launchPrefill() {
      const member = { name: 'prefill', command: 'prefill', arming: null, isRetired: false } as Member;
      members.push(member);
      launchMember(member);
    },
    kill(nth, arming = null, extra = {}) {
      const awake = members.filter(({ child }) => !resting.has(child));
      const member = awake[nth % awake.length] ?? pick(nth);
      stopped.add(member.child);
      killed.add(member.child);
      member.child.kill('SIGKILL');
      fleet.kills++;
      member.arming = arming;
      launchMember(member, extra);
    },
    async pause(nth, forMs) {
      const { child } = pick(nth);
      paused.add(child);
      child.kill('SIGSTOP');
      await sleep(forMs);
      wake(child);
      paused.delete(child);
    },
    async stop(nth, retire = false) {
      const member = pick(nth);
      member.isRetired = retire;
      const { child } = member;
      const isStopped = stopped.has(child);
      stopped.add(child);
      const startedAt = performance.now();
      const isYoung = startedAt - member.startedAt < withSlack(youngMs);
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit');
        // A second SIGTERM would make the worker exit at once.
        if (!isStopped) child.kill('SIGTERM');
        await Promise.race([ended, sleep(300_000, undefined, { ref: false })]);
      }
      const tookMs = performance.now() - Math.max(startedAt, wokenAt.get(child) ?? 0);
      // Before its signal handlers exist, a worker has nothing to release, and SIGTERM ends it. During shutdown it may still reach its
      // crash point, or another fault may kill it.
      const isFine = (isYoung && child.signalCode === 'SIGTERM') || child.signalCode === 'SIGKILL';
      if (child.exitCode === null && child.signalCode === null) {
        killed.add(child);
        child.kill('SIGKILL');
      }
      return { code: isFine ? 0 : child.exitCode, tookMs };
    },
    isSpecial: (nth) => pick(nth).isSpecial,
    async untilEnded(nth, retryForMs) {
      await Promise.race([once(pick(nth).child, 'exit'), sleep(retryForMs)]);
    },
    async run(args, point = null, env = {}) {
      const name = `command-${args[0]}-${fleet.starts}`;
      const child = start(name, args, point === null ? env : { ...env, INTAKE_CRASH_AT: point });
      // A command waits minutes for an unavailable dependency, which is too long here.
      const interrupt = setTimeout(() => child.kill('SIGTERM'), withSlack(60_000));
      const end = setTimeout(() => child.kill('SIGKILL'), withSlack(240_000));
      const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
      clearTimeout(interrupt);
      clearTimeout(end);
      const fired = point !== null && signal === 'SIGKILL';
      if (fired) {
        fleet.kills++;
        onFired(point);
      }
      return { code, fired, output: readFileSync(join(folder, `${name}.out.log`), 'utf8') };
    },
    async runUntil(signal, args) {
      const name = `command-${args[0]}-${fleet.starts}`;
      const child = start(name, args, {});
      const ended = once(child, 'exit');
      signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
      const [code] = (await ended) as [number | null];
      return { code, fired: false, output: readFileSync(join(folder, `${name}.out.log`), 'utf8') };
    },
  };
  return fleet;
}

function isStopped(pid: number | undefined): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat[stat.lastIndexOf(')') + 2] === 'T';
  } catch {
    return false;
  }
}

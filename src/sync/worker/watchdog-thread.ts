// The thread of the watchdog. It counts its own ticks while the heartbeat in shared memory stands still, writes one line and ends the
// process. A process that was suspended (SIGSTOP, a closed laptop) has missed no tick when it wakes, so its loop gets time to turn.
import { writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import { isMainThread, workerData } from 'node:worker_threads';

export interface WatchdogData {
  /** Iterations of the loop; for how long a task has been stuck, in ms; the length of `text`. */
  readonly cells: Int32Array;
  /** What moved last, as JSON. */
  readonly text: Uint8Array;
  readonly exitCode: number;
  /** An iteration of the loop that takes longer ends the process. */
  readonly loopMs: number;
}

/** So many ticks of the thread are the longest iteration. */
const mostTicks = 60;
/** What runs in native code cannot be interrupted, and then the process is killed. A busy machine takes seconds for an interruption. */
const killAfterMs = 15_000;

function watch({ cells, text, exitCode, loopMs }: WatchdogData): void {
  let seen = 0;
  let ticks = 0;
  const ticking = setInterval(() => {
    const beats = Atomics.load(cells, 0);
    const stuckMs = Atomics.load(cells, 1);
    ticks = beats === seen ? ticks + 1 : 0;
    seen = beats;
    if (stuckMs === 0 && ticks < mostTicks) return;
    clearInterval(ticking);
    const silentMs = stuckMs || loopMs;
    const msg = stuckMs > 0 ? 'no progress; the process ends' : 'the event loop stands still; the process ends';
    const line = { level: 'fatal', time: new Date().toISOString(), ...readWork(cells, text), silentMs, exitCode, msg };
    endProcess(`${JSON.stringify(line)}\n`, exitCode);
  }, loopMs / mostTicks);
}

function readWork(cells: Int32Array, text: Uint8Array): object {
  try {
    // TextDecoder does not read shared memory.
    return JSON.parse(Buffer.from(text.slice(0, Atomics.load(cells, 2))).toString());
  } catch {
    return {};
  }
}

/** `process.exit` of a thread ends the thread only. The inspector interrupts the main thread, even within a regular expression. */
function endProcess(line: string, exitCode: number): void {
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), killAfterMs);
  try {
    writeSync(2, line);
    const session = new Session();
    session.connectToMainThread();
    // Without stderr, because Node would write a line about the debugger.
    const expression = `process.getBuiltinModule('node:fs').closeSync(2); process.reallyExit(${exitCode})`;
    session.post('Runtime.evaluate', { expression });
  } catch {
    // A pipe that nobody reads, or a Node without the inspector: the signal ends the process.
  }
}

if (!isMainThread) watch(workerData as WatchdogData);

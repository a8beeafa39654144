// A process that runs the CLI with commands that wait, write endless output or fail, for tests of signals, pipes and exit codes.

import type { Definition } from '../../../src/cli/command.ts';
import { exitCodes } from '../../../src/cli/failure.ts';
import { runProcess } from '../../../src/cli/run.ts';

const untilAborted = async (signal: AbortSignal) => {
  const alive = setInterval(() => {}, 1_000);
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  clearInterval(alive);
};
const forEver = () => new Promise<never>(() => setInterval(() => {}, 1_000));

const runs: Readonly<Record<string, Definition['run']>> = {
  /** Waits until it is interrupted, and throws as the signal asks. */
  async 'one-shot'({ signal, terminal }) {
    terminal.note('waiting');
    await untilAborted(signal);
    signal.throwIfAborted();
    return exitCodes.done;
  },
  /** Waits until it is interrupted, and ends well. */
  async worker({ signal, terminal }) {
    terminal.note('waiting');
    await untilAborted(signal);
    return exitCodes.done;
  },
  /** Does not listen to its signal. */
  async deaf({ terminal }) {
    terminal.note('waiting');
    return await forEver();
  },
  /** Writes results until nobody reads them. */
  async flood({ signal, terminal }) {
    while (!signal.aborted) {
      terminal.result({}, () => 'x'.repeat(1_000));
      await new Promise((resolve) => setImmediate(resolve));
    }
    signal.throwIfAborted();
    return exitCodes.done;
  },
  async count({ terminal }) {
    using progress = terminal.openProgress('applications');
    progress.update(2, 2);
    return exitCodes.done;
  },
  /** Forgets a handle. */
  async leak() {
    setInterval(() => {}, 1_000);
    return exitCodes.incomplete;
  },
  /** Throws where nobody catches. */
  async crash() {
    setImmediate(() => {
      throw new Error('no reply from jane@example.com');
    });
    return await forEver();
  },
};

await runProcess(
  process,
  Object.entries(runs).map(([name, run]) => ({ name, summary: name, examples: [[`intake ${name}`, name]], run })),
);

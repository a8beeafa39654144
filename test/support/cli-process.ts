// A process that runs the CLI with commands that wait, write endless output or fail, for tests of signals, pipes and exit codes.

import { command } from '../../src/cli/command.ts';
import { exitCodes } from '../../src/cli/exit-codes.ts';
import { runProcess } from '../../src/cli/run.ts';

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));

await runProcess(process, [
  command({
    name: 'one-shot',
    summary: 'waits until it is interrupted, and throws as the signal asks',
    examples: [['intake one-shot', 'waits']],
    async run({ signal, terminal }) {
      const alive = setInterval(() => {}, 1_000);
      terminal.note('waiting');
      await untilAborted(signal);
      clearInterval(alive);
      signal.throwIfAborted();
      return exitCodes.done;
    },
  }),
  command({
    name: 'worker',
    summary: 'waits until it is interrupted, and ends well',
    examples: [['intake worker', 'waits']],
    async run({ signal, terminal }) {
      const alive = setInterval(() => {}, 1_000);
      terminal.note('waiting');
      await untilAborted(signal);
      clearInterval(alive);
      return exitCodes.done;
    },
  }),
  command({
    name: 'deaf',
    summary: 'does not listen to its signal',
    examples: [['intake deaf', 'waits']],
    async run({ terminal }) {
      setInterval(() => {}, 1_000);
      terminal.note('waiting');
      await new Promise(() => {});
      return exitCodes.done;
    },
  }),
  command({
    name: 'flood',
    summary: 'writes results until nobody reads them',
    examples: [['intake flood', 'writes']],
    async run({ signal, terminal }) {
      while (!signal.aborted) {
        terminal.result({}, () => 'x'.repeat(1_000));
        await new Promise((resolve) => setImmediate(resolve));
      }
      signal.throwIfAborted();
      return exitCodes.done;
    },
  }),
  command({
    name: 'count',
    summary: 'shows progress',
    examples: [['intake count', 'counts to two']],
    async run({ terminal }) {
      using progress = await terminal.openProgress('applications');
      progress.update(2, 2);
      return exitCodes.done;
    },
  }),
  command({
    name: 'leak',
    summary: 'forgets a handle',
    examples: [['intake leak', 'ends all the same']],
    async run() {
      setInterval(() => {}, 1_000);
      return exitCodes.incomplete;
    },
  }),
  command({
    name: 'crash',
    summary: 'throws where nobody catches',
    examples: [['intake crash', 'throws']],
    async run() {
      setImmediate(() => {
        throw new Error('no reply from jane@example.com');
      });
      await new Promise(() => setInterval(() => {}, 1_000));
      return exitCodes.done;
    },
  }),
]);

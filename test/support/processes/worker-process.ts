// A worker that exits after one second without progress, for the tests of a process that is stuck or whose event loop stands still.

import { createWorkerCommand } from '../../../src/cli/commands/serve.ts';
import { runProcess } from '../../../src/cli/run.ts';

await runProcess(process, [createWorkerCommand({ stuckMs: 1_000, loopMs: Number(process.env.LOOP_MS ?? 1_000) })]);

// A worker that exits after one second without progress, for the tests of a process that is stuck or whose event loop stands still.

import { runProcess } from '../../src/cli/run.ts';
import { createWorkerCommand } from '../../src/cli/worker.ts';

await runProcess(process, [createWorkerCommand({ stuckMs: 1_000, loopMs: Number(process.env.LOOP_MS ?? 1_000) })]);

// A worker that exits after one second without progress, for the test of a process that is stuck.

import { runProcess } from '../../src/cli/run.ts';
import { createWorkerCommand } from '../../src/cli/worker.ts';

await runProcess(process, [createWorkerCommand({ stuckMs: 1_000 })]);

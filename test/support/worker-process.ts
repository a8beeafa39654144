// A worker that ends itself after a silent second, for the test of a process in which nothing moves any more.

import { runProcess } from '../../src/cli/run.ts';
import { createWorkerCommand } from '../../src/cli/worker.ts';

await runProcess(process, [createWorkerCommand({ stuckMs: 1_000 })]);

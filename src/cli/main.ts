#!/usr/bin/env node
// The entry: lends the process to the CLI (argv, environment, streams, signals) and ends with its exit code.
// Nothing heavy is imported here; each command loads what it needs when it runs.

import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';

// Stripped and compiled modules are kept beside the packages (measured: --help in 98 ms instead of 140). Where that folder
// cannot be written Node goes on without; the common folder in /tmp would let other users plant code.
enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/intake'));

// V8 sizes its heap by the machine, not by the need: pages of megabytes would take a loading worker to 480 MB where 60 are alive.
// A heap that at most doubles, with a small nursery, stays near 200 MB for a tenth more CPU (measured, 60,000 applications uncapped).
setFlagsFromString('--heap-growing-percent=100');
setFlagsFromString('--semi-space-growth-factor=1');
// Chunks of large files are freed at once, not by a thread that a busy machine keeps waiting (four of 200 MB at once: 197 MB, then 155 to 172).
setFlagsFromString('--no-concurrent-array-buffer-sweeping');

const { runProcess } = await import('./run.ts');
await runProcess(process);

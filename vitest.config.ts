import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/browser/**', 'test/chaos/**'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/leak-guard.ts'],
    // A process per file: signals, exit codes and what is left open belong to one file and to nobody else.
    pool: 'forks',
    // Files wait for the database and for timers more than for a core; the bound keeps their pools within the server's connections.
    maxWorkers: Math.min(8, Math.max(2, availableParallelism())),
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});

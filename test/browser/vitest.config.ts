import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/browser/**/*.test.ts'],
    globalSetup: ['test/support/suite/global-setup.ts'],
    setupFiles: ['test/support/suite/leak-guard.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 480_000, interval: 10 } },
  },
});

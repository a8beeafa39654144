import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Starts the longest files first: journeys, workers and tests that wait for real time. Started last, one would run on alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) =>
      /\/journey\/|\/(worker|worker-silence|waits|undeleted|extract-again|erase|attachment-traps|download-run|store-owner|forged-proofs)\.test/.test(
        moduleId,
      );
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** Set by `npm run test:stress`, which runs the files in random order. */
const shuffleSeed = process.env.TEST_SHUFFLE_SEED;

export default defineConfig({
  test: {
    root: join(import.meta.dirname, '..'),
    include: ['test/**/*.test.ts'],
    exclude: ['test/browser/**', 'test/chaos/**'],
    tags: [{ name: 'slow', description: 'Only `npm run test:all` runs it.' }],
    globalSetup: ['test/support/suite/global-setup.ts'],
    setupFiles: ['test/support/suite/leak-guard.ts', ...(process.env.TEST_STALLS ? ['test/stress/stalls.ts'] : [])],
    // A process runs one file after the other and loads the product once, which saves 60 s of CPU. The leak guard detects resources that a
    // file leaves open. A file must restore what it changes in `process`.
    pool: 'forks',
    isolate: false,
    // Few collections of short-lived objects: saves 4% of the CPU.
    execArgv: ['--min-semi-space-size=64', '--max-semi-space-size=64'],
    // Node runs the files directly, as it runs the product, from its compile cache. This saves half a second of CPU per file.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, '../node_modules/.cache/intake') },
    // Files wait for the database and timers more than for a core. The limit keeps their pools within the server's connections.
    maxWorkers: Math.min(8, availableParallelism() + 2),
    sequence: shuffleSeed ? { shuffle: { files: true }, seed: Number(shuffleSeed) } : { sequencer: LongestFirst },
    // Only ends hanging tests: on a busy machine a test may take twenty times as long.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 480_000, interval: 50 } },
  },
});

import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Journeys, workers and what waits for real time take longest: begun last, one of them would keep all others waiting for its end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) =>
      /\/journey\/|\/(worker|worker-silence|waits|undeleted|recall|embedded|forged-proofs)\.test/.test(moduleId);
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** `npm run test:stress` puts the files in any order. */
const shuffleSeed = process.env.TEST_SHUFFLE_SEED;

export default defineConfig({
  test: {
    root: join(import.meta.dirname, '..'),
    include: ['test/**/*.test.ts'],
    exclude: ['test/browser/**', 'test/chaos/**'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/leak-guard.ts', ...(process.env.TEST_STALLS ? ['test/stress/stalls.ts'] : [])],
    // A process serves one file after the other, so that the product is loaded once: 60 s of CPU less. What a file leaves open is noticed
    // by the guard; what it sets in `process` it must put back.
    pool: 'forks',
    isolate: false,
    // Node runs the files as it runs the product, and finds them stripped and compiled: half a second of CPU less for every file.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, '../node_modules/.cache/intake') },
    // Files wait for the database and for timers more than for a core; the bound keeps their pools within the server's connections.
    maxWorkers: Math.min(8, availableParallelism() + 3),
    sequence: shuffleSeed ? { shuffle: { files: true }, seed: Number(shuffleSeed) } : { sequencer: LongestFirst },
    // Only against hanging: on a machine that is busy with other work, a test may take twenty times as long.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 480_000, interval: 50 } },
  },
});

import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Journeys take longest: begun last, one of them would keep a single core busy while the others have nothing left to do. */
class JourneysFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isJourney = ({ moduleId }: TestSpecification) => moduleId.includes('/test/journey/');
    const sorted = await super.sort(files);
    return [...sorted.filter(isJourney), ...sorted.filter((file) => !isJourney(file))];
  }
}

export default defineConfig({
  test: {
    root: join(import.meta.dirname, '..'),
    include: ['test/**/*.test.ts'],
    exclude: ['test/browser/**', 'test/chaos/**'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/leak-guard.ts'],
    // A process per file: signals, exit codes and what is left open belong to one file and to nobody else.
    pool: 'forks',
    // Node runs the files as it runs the product, and finds them stripped and compiled: half a second of CPU less for every file.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, '../node_modules/.cache/intake') },
    // Files wait for the database and for timers more than for a core; the bound keeps their pools within the server's connections.
    maxWorkers: Math.min(8, availableParallelism() + 1),
    sequence: { sequencer: JourneysFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});

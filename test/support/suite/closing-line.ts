// A reporter that ends a run with one plain line, `N passed, N failed`, for readers of the last line only. The lines before it count the
// tests that the run left out and the skipped tests by reason, and name the slowest file.
// Everything that makes vitest fail counts as a failure: a file that cannot be loaded, a broken hook, an unhandled error.
// A Node warning in the runner itself fails the run. The leak guard checks for warnings in the tests' processes.

import type { Reporter, TestCase, TestModule } from 'vitest/node';

interface Failing {
  errors(): readonly unknown[];
}

// biome-ignore lint/style/noDefaultExport: vitest takes a reporter from the default export.
export default class ClosingLine implements Reporter {
  readonly #warnings: Error[] = [];

  constructor() {
    process.on('warning', (warning) => this.#warnings.push(warning));
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const lines = [...renderLeftOut(tests), ...renderSkips(tests), ...renderDuration(modules)];
    if (this.#warnings.length > 0) {
      lines.push(...this.#warnings.map(({ name, message }) => `Node warned: ${name}: ${message}`));
      process.exitCode = 1;
    }
    lines.push(renderClosingLine(modules, tests, [...unhandled, ...this.#warnings]));
    process.stdout.write(`${lines.join('\n')}\n`);
  }
}

function renderClosingLine(
  modules: readonly TestModule[],
  tests: readonly TestCase[],
  unhandled: readonly unknown[],
): string {
  const holders: Failing[] = modules.flatMap((module) => [module, ...module.children.allSuites()]);
  const count = (state: string) => tests.filter((test) => test.result().state === state).length;
  const broken = holders.filter((holder) => holder.errors().length > 0).length;
  return `${count('passed')} passed, ${count('failed') + broken + unhandled.length} failed`;
}

/** A run that is filtered by tag (`npm test`) leaves out the tests that carry `slow`. */
const isLeftOut = (test: TestCase) =>
  test.project.config.tagsFilter !== undefined && test.tags.includes('slow') && test.result().state === 'skipped';

function renderLeftOut(tests: readonly TestCase[]): string[] {
  const count = tests.filter(isLeftOut).length;
  return count > 0 ? [`${count} left to npm run test:all`] : [];
}

/** One line per reason, `N skipped: reason`. The reason stands in parentheses at the end of the test's or group's name. */
function renderSkips(tests: readonly TestCase[]): string[] {
  const reasons = new Map<string, number>();
  for (const test of tests) {
    // A run that is filtered by name (-t) also skips tests. These need no reason.
    if (test.project.config.testNamePattern !== undefined) continue;
    if (test.result().state !== 'skipped' || test.options.mode !== 'skip' || isLeftOut(test)) continue;
    const reason = /\(([^()]+)\)(?: >|$)/.exec(test.fullName)?.[1] ?? `no reason given: ${test.fullName}`;
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return [...reasons].map(([reason, count]) => `${count} skipped: ${reason}`);
}

function duration(module: TestModule): number {
  const { duration: ms, prepareDuration, collectDuration, setupDuration } = module.diagnostic();
  return ms + prepareDuration + collectDuration + setupDuration;
}

/** One line that names the slowest of several files. */
function renderDuration(modules: readonly TestModule[]): string[] {
  const [slowest] = modules.toSorted((a, b) => duration(b) - duration(a));
  if (!slowest || modules.length === 1) return [];
  return [`Slowest file: ${slowest.relativeModuleId} (${(duration(slowest) / 1_000).toFixed(1)} s)`];
}

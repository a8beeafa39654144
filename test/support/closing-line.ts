// A reporter that ends a run with one plain line, `N passed, N failed`, for whoever reads only the last line.
// Everything that makes vitest fail counts as a failure: a file that cannot be loaded, a broken hook, an unhandled error.

import type { Reporter, TestModule } from 'vitest/node';

interface Failing {
  errors(): readonly unknown[];
}

// biome-ignore lint/style/noDefaultExport: vitest takes a reporter from the default export.
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    process.stdout.write(`${renderClosingLine(modules, unhandled)}\n`);
  }
}

function renderClosingLine(modules: readonly TestModule[], unhandled: readonly unknown[]): string {
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  const holders: Failing[] = modules.flatMap((module) => [module, ...module.children.allSuites()]);
  const count = (state: string) => tests.filter((test) => test.result().state === state).length;
  const broken = holders.filter((holder) => holder.errors().length > 0).length;
  return `${count('passed')} passed, ${count('failed') + broken + unhandled.length} failed`;
}

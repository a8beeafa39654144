// `npm test`: vitest with the project's configuration and closing line. It leaves out the tests that are tagged `slow`; `npm run test:all`
// (--all) runs them too, and so does a call that names files or tests. All other arguments go to vitest.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** The arguments of vitest for the arguments of `npm test`. */
export function toVitestArgs(given: readonly string[]): string[] {
  const passedOn = given.filter((word) => word !== '--all');
  // A file, a folder, or part of a test's name.
  const isChosen = passedOn.some((word) => /^(?!-)|^-t|^--testNamePattern/.test(word));
  const isQuick = !isChosen && !given.includes('--all');
  const reporters = ['--reporter=default', '--reporter=./test/support/suite/closing-line.ts'];
  const quick = isQuick ? ['--tagsFilter=!slow'] : [];
  return ['run', '--config', 'test/vitest.config.ts', ...reporters, ...quick, ...passedOn];
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '../../..');
  const args = toVitestArgs(process.argv.slice(2));
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  process.exit(status ?? 1);
}

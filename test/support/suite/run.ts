// `npm test`: vitest with the project's configuration and closing line. It leaves out the tests that are tagged `slow`; `npm run test:all`
// (--all) runs them too, and so does a call that names files or tests. All other arguments go to vitest.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** The arguments of vitest for the arguments of `npm test`, and how many random cases a property gets. */
export function toVitestCall(given: readonly string[]): { args: string[]; draws: 'all' | 'some' } {
  const passedOn = given.filter((word) => word !== '--all');
  // A file, a folder, or part of a test's name.
  const isChosen = passedOn.some((word) => /^(?!-)|^-t|^--testNamePattern/.test(word));
  const isQuick = !isChosen && !given.includes('--all');
  const reporters = ['--reporter=default', '--reporter=./test/support/suite/closing-line.ts'];
  const quick = isQuick ? ['--tagsFilter=!slow'] : [];
  const args = ['run', '--config', 'test/vitest.config.ts', ...reporters, ...quick, ...passedOn];
  return { args, draws: isQuick ? 'some' : 'all' };
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '../../..');
  const { args, draws } = toVitestCall(process.argv.slice(2));
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, TEST_DRAWS: draws },
  });
  process.exit(status ?? 1);
}

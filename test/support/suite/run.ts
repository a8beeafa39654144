// `npm test`: vitest with the project's configuration and closing line. It leaves out the tests that are tagged `slow`; `npm run test:all`
// (--all) runs them too, and so does a call that names files or tests. --slow prints the ten slowest files and tests. All other arguments
// go to vitest.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** The goal of `npm test` on two quiet cores. The closing line compares the run with it. */
const goalSeconds = 180;

/** The arguments and the environment of vitest for the arguments of `npm test`. */
export function toVitestCall(given: readonly string[]): { args: string[]; env: Record<string, string> } {
  const passedOn = given.filter((word) => word !== '--slow' && word !== '--all');
  // A file, a folder, or part of a test's name.
  const isChosen = passedOn.some((word) => /^(?!-)|^-t|^--testNamePattern/.test(word));
  const isQuick = !isChosen && !given.includes('--all');
  const reporters = ['--reporter=default', '--reporter=./test/support/suite/closing-line.ts'];
  return {
    args: [
      ...['run', '--config', 'test/vitest.config.ts', ...reporters, ...(isQuick ? ['--tagsFilter=!slow'] : [])],
      ...passedOn,
    ],
    env: {
      ...(given.includes('--slow') && { TEST_SLOWEST: '1' }),
      ...(isQuick && { TEST_GOAL: String(goalSeconds) }),
    },
  };
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '../../..');
  const { args, env } = toVitestCall(process.argv.slice(2));
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  process.exit(status ?? 1);
}

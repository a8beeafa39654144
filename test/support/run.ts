// `npm test`: vitest with the project's configuration and closing line. Arguments after `--` go to vitest, except --slow, which prints
// the ten slowest files and tests.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const given = process.argv.slice(2);
const reporters = ['--reporter=default', '--reporter=./test/support/closing-line.ts'];
const { status } = spawnSync(
  process.execPath,
  [
    join(root, 'node_modules/vitest/vitest.mjs'),
    ...['run', '--config', 'test/vitest.config.ts', ...reporters],
    ...given.filter((word) => word !== '--slow'),
  ],
  { cwd: root, stdio: 'inherit', env: { ...process.env, ...(given.includes('--slow') && { TEST_SLOWEST: '1' }) } },
);
process.exit(status ?? 1);

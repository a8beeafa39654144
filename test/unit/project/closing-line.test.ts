// The last line of a test run is true: it counts what vitest counts, and everything that makes a run fail. The lines before it name what
// the run left out.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { toVitestCall } from '../../support/suite/run.ts';

const root = mkdtempSync(join(tmpdir(), 'closing-line-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Run {
  readonly status: number | null;
  readonly last: string | undefined;
  readonly lines: readonly string[];
}

function run(files: Record<string, string>, options: readonly string[] = []): Run {
  writeFileSync(
    join(root, 'vitest.config.js'),
    `export default { test: { globals: true, tags: [{ name: 'slow' }, { name: 'other' }] } };`,
  );
  for (const [file, source] of Object.entries(files)) writeFileSync(join(root, file), source);
  const reporters = ['--reporter=default', `--reporter=${resolve('test/support/suite/closing-line.ts')}`];
  const vitest = [resolve('node_modules/vitest/vitest.mjs'), 'run', '--root', root, ...reporters];
  const args = [...vitest, ...Object.keys(files), ...options];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  const lines = stdout.trimEnd().split('\n');
  return { status, last: lines.at(-1), lines };
}

describe('the closing line', () => {
  it('counts passed tests, those that are skipped for a reason, and those that the run leaves out', () => {
    const files = {
      'tagged.test.js': `it('a', { tags: ['slow'] }, () => { throw new Error('a'); });
        describe('b', { tags: ['slow'] }, () => { beforeAll(() => { throw new Error('b'); }); it('c', () => {}); });
        it('d', { tags: ['other'] }, () => {}); it.skip('e (root may)', () => {});`,
      'whole.test.js': `// @module-tag slow\nit('f', () => { throw new Error('f'); });`,
      'skips.test.js': `describe.skip('a store (no network; with one: npm test)', () => { it('h', () => {}); it('i', () => {}); });
        it.skip('j', () => {});`,
    };
    const { status, lines } = run(files, ['--tagsFilter=!slow']);
    expect({ status, closing: lines.slice(-6).toSorted() }).toEqual({
      status: 0,
      closing: [
        '1 passed, 0 failed',
        '1 skipped: no reason given: j',
        '1 skipped: root may',
        '2 skipped: no network; with one: npm test',
        '3 left to npm run test:all',
        expect.stringMatching(/^Slowest file: \w+\.test\.js \(\d+\.\d s\)$/),
      ],
    });
    expect(lines.at(-1)).toBe('1 passed, 0 failed');
  });

  it('counts a failed test, a file that cannot be loaded, a broken hook and an unhandled error', () => {
    const files = {
      'failed.test.js': `it('a', () => {}); it('b', () => { throw new Error('b'); });`,
      'unloadable.test.js': `throw new Error('c');`,
      'hook.test.js': `describe('d', () => { beforeAll(() => { throw new Error('d'); }); it('e', () => {}); });`,
      'unhandled.test.js': `it('f', async () => { setTimeout(() => { throw new Error('f'); }); await new Promise((r) => setTimeout(r, 50)); });`,
    };
    expect(run(files)).toMatchObject({ status: 1, last: '2 passed, 4 failed' });
  });
});

it.each<[string[], string[]]>([
  [[], ['--tagsFilter=!slow']],
  [['--bail=1'], ['--tagsFilter=!slow', '--bail=1']],
  [['--all'], []],
  [['test/unit/log.test.ts'], ['test/unit/log.test.ts']],
  [
    ['-t', 'a part of a name'],
    ['-t', 'a part of a name'],
  ],
])('npm test with %j leaves out the slow tests only where nothing is chosen', (given, expected) => {
  const { args, draws } = toVitestCall(given);
  expect(draws).toBe(expected.includes('--tagsFilter=!slow') ? 'some' : 'all');
  expect(args.filter((arg) => !/^--(?:reporter|config)|^run$|vitest\.config/.test(arg))).toEqual(expected);
});

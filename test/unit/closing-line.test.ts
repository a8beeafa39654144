// The last line of a test run is true: it counts what vitest counts, and everything that makes a run fail.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const root = mkdtempSync(join(tmpdir(), 'closing-line-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function run(files: Record<string, string>): { status: number | null; last: string | undefined } {
  writeFileSync(join(root, 'vitest.config.js'), 'export default { test: { globals: true } };');
  for (const [file, source] of Object.entries(files)) writeFileSync(join(root, file), source);
  const reporters = ['--reporter=default', `--reporter=${resolve('test/support/closing-line.ts')}`];
  const args = [resolve('node_modules/vitest/vitest.mjs'), 'run', '--root', root, ...reporters, ...Object.keys(files)];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return { status, last: stdout.trimEnd().split('\n').at(-1) };
}

describe('the closing line', () => {
  it('counts passed tests', () => {
    expect(run({ 'good.test.js': `it('a', () => {}); it('b', () => {}); it.skip('c', () => {});` })).toEqual({
      status: 0,
      last: '2 passed, 0 failed',
    });
  });

  it('counts a failed test, a file that cannot be loaded, a broken hook and an unhandled error', () => {
    const files = {
      'failed.test.js': `it('a', () => {}); it('b', () => { throw new Error('b'); });`,
      'unloadable.test.js': `throw new Error('c');`,
      'hook.test.js': `describe('d', () => { beforeAll(() => { throw new Error('d'); }); it('e', () => {}); });`,
      'unhandled.test.js': `it('f', async () => { setTimeout(() => { throw new Error('f'); }); await new Promise((r) => setTimeout(r, 50)); });`,
    };
    expect(run(files)).toEqual({ status: 1, last: '2 passed, 4 failed' });
  });
});

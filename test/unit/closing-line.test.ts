// The last line of a test run is true: it counts what vitest counts, and everything that makes a run fail.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const root = mkdtempSync(join(tmpdir(), 'closing-line-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Run {
  readonly status: number | null;
  readonly last: string | undefined;
  readonly lines: readonly string[];
}

function run(files: Record<string, string>, env: Record<string, string> = {}): Run {
  writeFileSync(join(root, 'vitest.config.js'), 'export default { test: { globals: true } };');
  for (const [file, source] of Object.entries(files)) writeFileSync(join(root, file), source);
  const reporters = ['--reporter=default', `--reporter=${resolve('test/support/closing-line.ts')}`];
  const args = [resolve('node_modules/vitest/vitest.mjs'), 'run', '--root', root, ...reporters, ...Object.keys(files)];
  // This file may itself run under --slow.
  const { TEST_SLOWEST: _, ...inherited } = process.env;
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', env: { ...inherited, ...env } });
  const lines = stdout.trimEnd().split('\n');
  return { status, last: lines.at(-1), lines };
}

describe('the closing line', () => {
  it('counts passed tests', () => {
    expect(run({ 'good.test.js': `it('a', () => {}); it('b', () => {}); it.skip('c', () => {});` })).toMatchObject({
      status: 0,
      last: '2 passed, 0 failed',
    });
  });

  it('says for each reason how many tests are skipped', () => {
    const named = `describe.skip('a store (no network; with one: npm test)', () => { it('a', () => {}); it('b', () => {}); });
      it.skip('c (root may)', () => {}); it.skip('d', () => {}); it('e', () => {});`;
    expect(run({ 'skips.test.js': named }).lines.slice(-4)).toEqual([
      '2 skipped: no network; with one: npm test',
      '1 skipped: root may',
      '1 skipped: no reason given: d',
      '1 passed, 0 failed',
    ]);
  });

  it('names the slowest files and tests where it is asked to', () => {
    const { lines } = run({ 'slow.test.js': `it('a', () => {});` }, { TEST_SLOWEST: '1' });
    expect(lines.filter((line) => line.startsWith('Slowest'))).toEqual(['Slowest files:', 'Slowest tests:']);
    expect(lines.at(-2)).toMatch(/^ +0\.\d s {2}slow\.test\.js: a$/);
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

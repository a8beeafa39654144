// The linter states which folder may import which, and what no folder may do. Here it lints a tree in which its rules are broken, so that a
// rule that does not fire is found; and what it cannot state is read from src/.

import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const files = globSync('src/**/*.ts').map((file) => ({ file, source: readFileSync(file, 'utf8') }));
/** A new file in every folder of src, and the files beside its folders. */
const everywhere = new Set(
  files.map(({ file }) => (dirname(file) === 'src' ? file : join(dirname(file), 'stranger.ts'))),
);

describe('Biome refuses', { tags: ['slow'] }, () => {
  let tree: string;
  let refusals: Map<string, string[]>;

  beforeAll(() => {
    tree = mkdtempSync(join(tmpdir(), 'layers-'));
    cpSync('biome.json', join(tree, 'biome.json'));
    cpSync('.biome', join(tree, '.biome'), { recursive: true });
    const written: [file: string, source: string][] = [
      ...Object.entries(brokenFiles),
      ...[...everywhere].map((file): [string, string] => [file, `import 'left-pad';\n`]),
    ];
    for (const [file, source] of written) {
      mkdirSync(dirname(join(tree, file)), { recursive: true });
      writeFileSync(join(tree, file), source);
    }
    refusals = lint(tree);
  });
  afterAll(() => rmSync(tree, { recursive: true, force: true }));
  const isRefused = (place: string) =>
    (refusals.get(place) ?? []).some((rule) => /noRestrictedImports|plugin/.test(rule));

  it('a package that nobody named, in every folder', () => {
    expect([...everywhere].filter((file) => !isRefused(`${file}:1`))).toEqual([]);
  });

  it.each([
    ['process.env outside config and cli', 'src/sync/read/env.ts:1', 'style/noProcessEnv'],
    ['a dynamic import of what runs in an edge', 'src/sync/read/dynamic.ts:1', 'plugin'],
    ['an edge handed on by a re-export', 'src/sync/read/re-export.ts:1', 'plugin'],
    ['a table that is loaded', 'src/store/files/loads-table.ts:1', 'plugin'],
    ['a table that is loaded dynamically', 'src/app/loads-table.ts:1', 'plugin'],
    ['another layer loaded dynamically', 'src/domain/dynamic.ts:1', 'style/noRestrictedImports'],
    ['another layer re-exported', 'src/domain/re-export.ts:1', 'style/noRestrictedImports'],
    ['the way around through a folder', 'src/source/around.ts:1', 'style/noRestrictedImports'],
  ])('%s', (_, place, rule) => {
    expect(refusals.get(place) ?? []).toContainEqual(expect.stringContaining(rule));
  });

  it('nothing in a file that keeps the rules', () => {
    const clean = ['src/cli/env.ts', 'src/config/env.ts', 'src/store/files/free.ts'];
    expect([...refusals.keys()].filter((place) => clean.some((file) => place.startsWith(file)))).toEqual([]);
  });
});

describe('src/', () => {
  it('never loads drizzle: its tables give types only', () => {
    const loading = /^import (?!type )[^;]*'drizzle-orm|^export [^;]*from 'drizzle-orm|import\('drizzle-orm/m;
    const others = files.filter(({ file }) => !file.startsWith('src/store/schema/'));
    expect(others.filter(({ source }) => loading.test(source)).map(({ file }) => file)).toEqual([]);
  });

  it('has no barrel and no drawer for odds and ends', () => {
    const drawers = /^(?:index|utils?|helpers?|common|types|misc)\.ts$|-(?:service|manager)\.ts$/;
    expect(files.filter(({ file }) => drawers.test(basename(file))).map(({ file }) => file)).toEqual([]);
  });

  it('says at the top of each file what it promises', () => {
    expect(files.length).toBeGreaterThan(10);
    expect(files.filter(({ source }) => !/^(?:#!.*\n)?\/\/ /.test(source)).map(({ file }) => file)).toEqual([]);
  });
});

it('no folder holds more than 26 files, so that the layout can be read from a listing', () => {
  const folders = new Map<string, number>();
  for (const file of globSync('{src,test,bench,docs,examples,deploy}/**/*.*', {
    exclude: ['**/node_modules', '**/.*'],
  }))
    folders.set(dirname(file), (folders.get(dirname(file)) ?? 0) + 1);
  expect([...folders].filter(([, count]) => count > 26)).toEqual([]);
  expect(folders.size).toBeGreaterThan(50);
});

const brokenFiles: Record<string, string> = {
  'src/sync/read/env.ts': `export const port = process.env.PORT;\n`,
  'src/cli/env.ts': `export const port = process.env.PORT;\n`,
  'src/config/env.ts': `export const port = process.env.PORT;\n`,
  'src/store/files/free.ts': `export const c = 1;\n`,
  'src/sync/read/dynamic.ts': `export const store = await import('../../store/files/free.ts');\n`,
  'src/sync/read/re-export.ts': `export { c } from '../../store/files/free.ts';\n`,
  'src/store/files/loads-table.ts': `import { blobs } from '../schema/files.ts';\nexport const a = blobs;\n`,
  'src/app/loads-table.ts': `export const tables = await import('../store/schema/files.ts');\n`,
  'src/domain/dynamic.ts': `export const store = await import('../store/files/free.ts');\n`,
  'src/domain/re-export.ts': `export * from '../store/files/free.ts';\n`,
  'src/source/around.ts': `import { c } from '../../src/store/files/free.ts';\nexport const d = c;\n`,
};

/** The rules broken in a tree, by `file:line`. */
function lint(tree: string): Map<string, string[]> {
  const biome = join(process.cwd(), 'node_modules/@biomejs/biome/bin/biome');
  const options = ['--vcs-enabled=false', '--reporter=github', '--max-diagnostics=none'];
  const { stdout, stderr } = spawnSync(process.execPath, [biome, 'lint', ...options, 'src'], {
    cwd: tree,
    encoding: 'utf8',
    maxBuffer: 100_000_000,
  });
  const refusals = new Map<string, string[]>();
  for (const [, rule, file, line] of stdout.matchAll(/^::error title=(\S+?),file=(\S+?),line=(\d+)/gm)) {
    const place = `${file?.replace(/^.*?(?=src\/)/, '')}:${line}`;
    refusals.set(place, [...(refusals.get(place) ?? []), rule ?? '']);
  }
  if (refusals.size === 0) throw new Error(`Biome found nothing at all:\n${stdout}${stderr}`);
  return refusals;
}

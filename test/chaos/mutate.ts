// Mutation tests: plants small mistakes, one at a time, and runs the tests: `npx node test/chaos/mutate.ts [--files a.ts,b.ts] [--most N] [--seed K]`.
// With --planted, it plants earlier bugs again, and the fault harness must find each of them (planted.ts).
// It works in a copy of the checkout and does not change the original. It prints a mistake that no test notices as a survivor.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { openEmbedded } from '../../src/dev/embedded/embedded.ts';
import { createRandom } from '../support/random.ts';
import { tryPlanted } from './planted.ts';

/** The files to mutate, and the tests that should notice. */
const subjects: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    ['ask', 'certificate', 'learn', 'room', 'split', 'walk', 'witness'].map((name) => [
      `src/domain/coverage/${name}.ts`,
      ['test/unit/reading.test.ts', 'test/unit/kernel.test.ts'],
    ]),
  ),
  'src/domain/cursor.ts': ['test/unit/cursor.test.ts'],
  'src/domain/dates.ts': ['test/unit/dates.test.ts'],
  'src/domain/download-verdict.ts': ['test/unit/download-verdict.test.ts'],
  'src/store/applications/commit-page.ts': [
    'test/integration/commit-page.test.ts',
    'test/integration/poison.test.ts',
    'test/integration/erase.test.ts',
    'test/journey/late.test.ts',
  ],
  'src/store/applications/diff-page.ts': [
    'test/integration/commit-page.test.ts',
    'test/integration/lacking.test.ts',
    'test/integration/attachment-traps.test.ts',
  ],
  'src/store/accounts/leases.ts': ['test/integration/leases.test.ts', 'test/integration/commit-page.test.ts'],
  'src/store/files/download-queue.ts': ['test/integration/downloads.test.ts', 'test/integration/download-run.test.ts'],
  'src/store/files/complete-download.ts': [
    'test/integration/downloads.test.ts',
    'test/integration/download-run.test.ts',
    'test/integration/attachment-traps.test.ts',
  ],
  'src/store/files/claim-facts.ts': [
    'test/integration/downloads.test.ts',
    'test/integration/hash-trust.test.ts',
    'test/integration/attachment-traps.test.ts',
  ],
  'src/sync/files/fetch.ts': ['test/integration/attachment-traps.test.ts'],
  'src/source/parse/list.ts': ['test/unit/wire-list.test.ts', 'test/unit/wire-values.test.ts'],
  'src/source/parse/json.ts': [
    'test/unit/wire-list.test.ts',
    'test/unit/wire-values.test.ts',
    'test/unit/screen-shapes.test.ts',
  ],
  'src/source/parse/list-xml.ts': ['test/unit/wire-list.test.ts', 'test/unit/wire-properties.test.ts'],
  'src/source/parse/screen.ts': ['test/unit/screen-shapes.test.ts', 'test/unit/screen-properties.test.ts'],
};

interface Mutation {
  readonly file: string;
  readonly line: number;
  readonly before: string;
  readonly after: string;
}

/** A pattern in a line of code, and its replacement. */
const mistakes: readonly (readonly [RegExp, string])[] = [
  [/ <= /, ' < '],
  [/ >= /, ' > '],
  [/ < (?=[\w(])/, ' <= '],
  [/ > (?=[\w(])/, ' >= '],
  [/ === /, ' !== '],
  [/ !== /, ' === '],
  [/ && /, ' || '],
  [/ \|\| /, ' && '],
  [/\bawait (?!using)/, 'void '],
  [/\bthrow (?=\w)/, 'void '],
  [/\btrue\b/, 'false'],
  [/ \+ 1n?\b/, ''],
  [/ AND [\w.]+ (?:=|<>|IS|<|<=|>) [^'`]+?(?= AND |`|$)/, ''],
  [/ FOR (?:SHARE|UPDATE SKIP LOCKED|NO KEY UPDATE)/, ''],
];

const { values: options } = parseArgs({
  options: {
    files: { type: 'string' },
    most: { type: 'string', default: '40' },
    seed: { type: 'string', default: '1' },
    /** Names from planted.ts, separated by commas, or `all`. */
    planted: { type: 'string' },
  },
});
const files = options.files?.split(',') ?? Object.keys(subjects);
const random = createRandom(Number(options.seed));
const all = files.flatMap(findMutations).map((mutation) => ({ mutation, at: random.next() }));
const chosen = all.sort((a, b) => a.at - b.at).slice(0, Number(options.most));

const root = mkdtempSync(join(tmpdir(), 'intake-mutate-'));
for (const path of ['src', 'test', 'migrations', 'package.json', 'tsconfig.json', 'examples', 'docs']) {
  cpSync(path, join(root, path), { recursive: true });
}
symlinkSync(resolve('node_modules'), join(root, 'node_modules'));
if (options.planted !== undefined) {
  const isFound = tryPlanted(root, options.planted);
  rmSync(root, { recursive: true, force: true });
  process.exit(isFound ? 0 : 1);
}
// One server for all mistakes: starting one for each would take most of the time.
const database = await openEmbedded({ root, scratch: true });
for (const file of new Set(chosen.map(({ mutation }) => mutation.file))) {
  // Tests that fail without a mistake would seem to notice every mistake.
  if (!passes(file)) throw new Error(`The tests of ${file} fail on the code as it is.`);
}
const survivors: Mutation[] = [];
for (const [nth, { mutation }] of chosen.entries()) {
  const isNoticed = tryMutation(mutation);
  const { file, line, before, after } = mutation;
  console.log(
    `${nth + 1}/${chosen.length} ${isNoticed ? 'noticed ' : 'SURVIVED'} ${file}:${line}\n  - ${before.trim()}\n  + ${after.trim()}`,
  );
  if (!isNoticed) survivors.push(mutation);
}
await database[Symbol.asyncDispose]();
rmSync(root, { recursive: true, force: true });
console.log(`${all.length} possible, ${chosen.length} tried, ${survivors.length} survived.`);

function findMutations(file: string): Mutation[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.flatMap((before, at) => {
    if (/^\s*(?:\/\/|\*|\/\*|import |export (?:interface|type)|readonly )/.test(before)) return [];
    return mistakes
      .filter(([pattern]) => pattern.test(before))
      .map(([pattern, replacement]) => ({ file, line: at + 1, before, after: before.replace(pattern, replacement) }))
      .filter(({ after }) => after !== before);
  });
}

/** True if a test fails or the code does not load. */
function tryMutation({ file, line, after }: Mutation): boolean {
  const path = join(root, file);
  const whole = readFileSync(path, 'utf8');
  const lines = whole.split('\n');
  lines[line - 1] = after;
  writeFileSync(path, lines.join('\n'));
  const isNoticed = !passes(file);
  writeFileSync(path, whole);
  return isNoticed;
}

/** Whether the tests of a file pass with the file's current content in the copy. */
function passes(file: string): boolean {
  const settings = ['--config', 'test/vitest.config.ts', '--bail', '1'];
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', ...settings, ...(subjects[file] ?? [])];
  const env = { ...process.env, TEST_DATABASE_URL: database.url };
  return spawnSync(process.execPath, vitest, { cwd: root, env, stdio: 'ignore', timeout: 300_000 }).status === 0;
}

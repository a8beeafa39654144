// Runs the suite under stress: on a busy machine, with its files in random order, with eager and without autovacuum, and on an older
// Postgres. Prints every test that failed at least once, and a table of the runs.
//   npm run test:stress -- --runs 10                     ten runs: one of each kind, then busy ones
//   npm run test:stress -- --runs 4 --quick              without the journeys
//   npm run test:stress -- --runs 2 --only test/unit/log.test.ts test/unit/insert.test.ts
//   npm run test:stress -- --runs 1 --kind crowded --seed 7      repeats one run
// Exits with 1 when a test failed.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { findPostgres, openRealPostgres } from '../real/postgres.ts';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '10' },
    /** Skips the journeys. */
    quick: { type: 'boolean', default: false },
    /** Runs only the files given as arguments. */
    only: { type: 'boolean', default: false },
    /** The seed of the first run; each further run adds 1. */
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    /** Makes every run one of this kind. */
    kind: { type: 'string' },
  },
});

const cores = availableParallelism();
const oldestPostgres = 15;
const fastSettings = ['timezone=UTC', 'fsync=off', 'full_page_writes=off', 'max_connections=200'];

/** The kinds of runs, in the order in which they run. All further runs are `busy`. */
const kinds = {
  quiet: { busy: 0 },
  stalls: { busy: 0, stalls: true },
  eager: { busy: cores, autovacuum: 'eager' },
  off: { busy: cores, autovacuum: 'off' },
  crowded: { busy: 4 * cores },
  oldest: { busy: cores, postgres: oldestPostgres },
  busy: { busy: cores },
} as const satisfies Record<string, Stress>;
type Kind = keyof typeof kinds;

interface Stress {
  /** Number of processes that occupy a core all the time. */
  readonly busy: number;
  /** Slows down the event loops of the test processes. */
  readonly stalls?: boolean;
  readonly autovacuum?: 'eager' | 'off';
  readonly postgres?: number;
}

interface Red {
  readonly test: string;
  readonly why: string;
}

interface Run {
  readonly kind: Kind;
  readonly seed: number;
  readonly server: string;
  readonly passed: number;
  readonly seconds: number;
  readonly reds: readonly Red[];
}

const files = options.only ? positionals : options.quick ? ['test/unit', 'test/contract', 'test/integration'] : [];
const root = join(import.meta.dirname, '../..');
const scratch = mkdtempSync(join(tmpdir(), 'intake-stress-'));
const runs: Run[] = [];
try {
  for (let nth = 0; nth < Number(options.runs); nth++) {
    const run = await play(toKind(nth), Number(options.seed) + nth);
    runs.push(run);
    process.stdout.write(
      `run ${nth + 1}: ${run.kind}, seed ${run.seed}: ${run.passed} passed, ${run.reds.length} failed\n`,
    );
    for (const { test, why } of run.reds) process.stdout.write(`  ${test}\n    ${why}\n`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.stdout.write(`${render(runs)}\n`);
process.exitCode = runs.some(({ reds }) => reds.length > 0) ? 1 : 0;

function toKind(nth: number): Kind {
  const names = Object.keys(kinds) as Kind[];
  if (options.kind === undefined) return names[nth] ?? 'busy';
  const chosen = names.find((name) => name === options.kind);
  if (!chosen) throw new Error(`--kind is one of ${names.join(', ')}.`);
  return chosen;
}

async function play(kind: Kind, seed: number): Promise<Run> {
  const { busy, stalls, autovacuum, postgres }: Stress = kinds[kind];
  await using stack = new AsyncDisposableStack();
  const choice = findPostgres([]).find(({ name }) => name.startsWith(`Postgres ${postgres}.`));
  const installed = choice && stack.use(await openRealPostgres(choice, { settings: fastSettings, access: 'host' }));
  const server = installed
    ? `Postgres ${postgres}`
    : postgres
      ? `embedded (Postgres ${postgres} is not installed)`
      : 'embedded';
  for (let nth = 0; nth < busy; nth++) stack.use(startBusy());
  const report = join(scratch, `${seed}.json`);
  const startedAt = performance.now();
  const child = spawn(
    process.execPath,
    [
      join(root, 'node_modules/vitest/vitest.mjs'),
      ...['run', '--config', 'test/vitest.config.ts', ...files],
      ...['--reporter=json', `--outputFile=${report}`],
    ],
    {
      cwd: root,
      env: {
        ...process.env,
        NO_COLOR: '1',
        TEST_SHUFFLE_SEED: String(seed),
        ...(stalls && { TEST_STALLS: '1' }),
        ...(autovacuum && { TEST_AUTOVACUUM: autovacuum }),
        ...(installed && { TEST_DATABASE_URL: installed.plainUrl }),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const said = listen(child);
  const [code] = await once(child, 'close');
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const { passed, reds } = read(report, code as number | null, said.join(''));
  return { kind, seed, server, passed, seconds, reds };
}

function listen(child: ChildProcess): readonly string[] {
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => said.push(text));
  }
  return said;
}

/** Starts a process that occupies a core all the time. */
function startBusy(): AsyncDisposable {
  const child = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
  return {
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

interface Report {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

/** Collects what made the run fail: tests, files that could not be loaded or left something open, Node warnings, and the rest. */
function read(path: string, code: number | null, said: string): { passed: number; reds: Red[] } {
  const warnings = said.match(/^\(node:\d+\) .*Warning: .*/gm) ?? [];
  const reds: Red[] = [...new Set(warnings)].map((why) => ({ test: 'Node warning', why }));
  let report: Report;
  try {
    report = JSON.parse(readFileSync(path, 'utf8')) as Report;
  } catch {
    return {
      passed: 0,
      reds: [...reds, { test: 'the whole run', why: said.trim().split('\n').slice(-20).join('\n') }],
    };
  }
  for (const file of report.testResults) {
    const name = file.name.replace(`${root}/`, '');
    const failed = file.assertionResults.filter(({ status }) => status === 'failed');
    for (const { fullName, failureMessages = [] } of failed) {
      reds.push({ test: `${name}: ${fullName}`, why: firstLine(failureMessages[0] ?? '') });
    }
    if (file.status === 'failed' && failed.length === 0) reds.push({ test: name, why: firstLine(file.message) });
  }
  if (code !== 0 && reds.length === 0) {
    reds.push({
      test: 'the whole run',
      why: `exit code ${code}: ${said.trim().split('\n').slice(-20).join('\n')}`,
    });
  }
  return { passed: report.numPassedTests, reds };
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0]?.slice(0, 300) ?? '';
}

function render(all: readonly Run[]): string {
  const counts = new Map<string, number>();
  for (const { test } of all.flatMap(({ reds }) => reds)) counts.set(test, (counts.get(test) ?? 0) + 1);
  const table = new Table({
    head: ['run', 'kind', 'busy processes', 'Postgres', 'autovacuum', 'seed', 'passed', 'failed', 'seconds'],
    style: { head: [], border: [] },
  });
  for (const [nth, { kind, seed, server, passed, reds, seconds }] of all.entries()) {
    const { busy, autovacuum }: Stress = kinds[kind];
    table.push([nth + 1, kind, busy, server, autovacuum ?? 'default', seed, passed, reds.length, seconds]);
  }
  const ever = [...counts].sort(([, a], [, b]) => b - a).map(([test, count]) => `  ${count} of ${all.length}  ${test}`);
  const machine = `${cores} cores (${cpus()[0]?.model ?? process.arch}), ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}`;
  return [
    table.toString(),
    machine,
    ever.length > 0 ? `Failed at least once:\n${ever.join('\n')}` : 'No test failed.',
  ].join('\n');
}

// Runs the suite under stress: on a busy machine, with its files in random order, with eager and without autovacuum. Prints what failed in
// each run, and the closing line of each. TEST_DATABASE_URL names another server, such as an older Postgres.
//   npm run test:stress -- --runs 10                     ten runs: one of each kind, then busy ones
//   npm run test:stress -- --runs 2 test/unit            only these files
//   npm run test:stress -- --runs 1 --kind crowded --seed 7      repeats one run
// Exits with 1 when a test failed.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '10' },
    /** The seed of the first run; each further run adds 1. */
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    /** Makes every run one of this kind. */
    kind: { type: 'string' },
  },
});

interface Stress {
  /** Number of processes that occupy a core all the time. */
  readonly busy: number;
  readonly env?: Readonly<Record<string, string>>;
}

const cores = availableParallelism();
/** The kinds of runs, in the order in which they run. All further runs are `busy`. */
const kinds: Readonly<Record<string, Stress>> = {
  quiet: { busy: 0 },
  stalls: { busy: 0, env: { TEST_STALLS: '1' } },
  eager: { busy: cores, env: { TEST_AUTOVACUUM: 'eager' } },
  off: { busy: cores, env: { TEST_AUTOVACUUM: 'off' } },
  crowded: { busy: 4 * cores },
  busy: { busy: cores },
};

for (let nth = 0; nth < Number(options.runs); nth++) {
  const kind = options.kind ?? Object.keys(kinds)[nth] ?? 'busy';
  const stress = kinds[kind];
  if (!stress) throw new Error(`--kind is one of ${Object.keys(kinds).join(', ')}.`);
  const seed = Number(options.seed) + nth;
  process.stdout.write(`run ${nth + 1}: ${kind}, seed ${seed}: ${await play(stress, seed)}\n`);
}

/** Runs the suite; returns its closing line. */
async function play({ busy, env }: Stress, seed: number): Promise<string> {
  await using stack = new AsyncDisposableStack();
  for (let each = 0; each < busy; each++) stack.use(startBusy());
  const child = spawn(process.execPath, ['test/support/suite/run.ts', '--all', ...positionals], {
    cwd: join(import.meta.dirname, '../..'),
    env: { ...process.env, NO_COLOR: '1', TEST_SHUFFLE_SEED: String(seed), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  let last = '';
  // What failed goes to stderr.
  for await (const line of createInterface({ input: child.stdout })) last = line;
  const [code] = await ended;
  if (code !== 0) process.exitCode = 1;
  return last;
}

/** Starts a process that occupies a core all the time. */
function startBusy(): AsyncDisposable {
  const child: ChildProcess = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
  return {
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

// The fault harness: real workers, a real Postgres, and a source, a store and a network that misbehave.
//   npm run chaos -- --seeds 20 --seconds 30          twenty plans of half a minute
//   npm run chaos -- --seed 17 --seconds 30           repeats one of them
//   npm run chaos -- --seeds 20 --before ../earlier   with processes of an earlier checkout beside those of this one
//   npm run chaos -- --seeds 50 --json a.jsonl        also appends a line per seed to a file
//   npm run chaos -- a.jsonl b.jsonl                  plays nothing: adds up the files of several runs
// Exits with 1 if a promise was broken. With 20 seeds or more, a crash point that no process reached is a failure too.

import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { openCluster } from './cluster.ts';
import { playSeed, type Verdict } from './play.ts';
import { toPlan } from './seed.ts';
import { isFine, renderSummary, renderVerdict } from './summary.ts';

const { values: options, positionals: written } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string' },
    /** The first seed of a run of several. */
    from: { type: 'string', default: '1' },
    /** Only these rows of faults.ts, separated by commas. */
    faults: { type: 'string' },
    /** The first broken promise ends the run. */
    bail: { type: 'boolean', default: false },
    /** The checkout of the release before: its processes and those of this one run side by side. */
    before: { type: 'string' },
    /** A line per seed is appended to this file. */
    json: { type: 'string' },
  },
});

if (written.length > 0) report(written.flatMap(loadVerdicts));
else await play();

async function play(): Promise<void> {
  const seconds = Number(options.seconds);
  const seeds =
    options.seed === undefined
      ? Array.from({ length: Number(options.seeds) }, (_, at) => Number(options.from) + at)
      : [Number(options.seed)];
  // The current seed is played to its end, so that everything it opened is closed.
  let isStopping = false;
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      isStopping = true;
    });
  }
  const folder = mkdtempSync(join(tmpdir(), 'intake-chaos-'));
  await using cluster = await openCluster(mkdtempSync(join(tmpdir(), 'intake-chaos-pg-')));
  const verdicts: Verdict[] = [];
  for (const seed of seeds) {
    if (isStopping || (options.bail && verdicts.some((one) => one.broken !== null))) break;
    const plan = toPlan(seed, seconds, options.faults?.split(','));
    const before = options.before === undefined ? null : resolve(options.before);
    const verdict = await playSeed(plan, { cluster, folder, before });
    verdicts.push(verdict);
    if (options.json) appendFileSync(options.json, `${JSON.stringify(verdict)}\n`);
    console.log(renderVerdict(verdict));
    if (verdict.broken === null) {
      rmSync(join(folder, `seed-${seed}`), { recursive: true, force: true });
      continue;
    }
    console.log(`  plan: ${JSON.stringify({ ...plan, firstId: String(plan.firstId), schedule: undefined })}`);
    for (const { atMs, name, forMs } of plan.schedule) console.log(`  ${atMs} ms: ${name}, ${forMs} ms`);
    const only = options.faults ? ` --faults ${options.faults}` : '';
    const beside = before === null ? '' : ` --before ${before}`;
    console.log(`  repeat: npm run chaos -- --seed ${seed} --seconds ${seconds}${only}${beside}`);
  }
  report(verdicts);
  if (verdicts.every(({ broken }) => broken === null)) rmSync(folder, { recursive: true, force: true });
  else console.log(`Logs are kept in ${folder}.`);
}

function report(verdicts: readonly Verdict[]): void {
  console.log(renderSummary(verdicts));
  process.exitCode = isFine(verdicts) ? 0 : 1;
}

function loadVerdicts(file: string): Verdict[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Verdict);
}

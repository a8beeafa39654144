// Sweeps, polls and rechecks many simulated servers that keep the three assumptions, and looks for sweeps that were certified as proven
// or ended as success while an application was missing. Prints a line that replays each such server, and how often sweeps of honest
// servers were doubted.
//   npm run coverage:servers -- --servers 100000 --from 1000
// Exits with 1 when a sweep was wrongly proven or lost an application silently.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Kind } from './hidden-server.ts';
import { isCrowded, type JudgedSweep, judgeSeed, openSeed } from './judge.ts';
import { kinds } from './kinds.ts';

/** The share of one thread: every `threads`th of `servers` servers, starting with its own number. Seeds count up from `from`. */
interface Share {
  readonly servers: number;
  readonly from: number;
  readonly thread: number;
  readonly threads: number;
}

interface Counts {
  servers: number;
  /** Worlds with so many arrivals that a sweep would follow them for thousands of requests; another seed replaces each. */
  crowded: number;
  sweeps: number;
  proven: number;
  harmless: number;
  doubt: number;
  unproven: number;
}

const keepers = kinds.filter(({ keeps }) => keeps.filtersBeforeCap && keeps.capAboveHalf && keeps.oneCurrentList);
const mostDraws = 20;

/** Judges the servers of a share and reports after each one. */
function work({ servers, from, thread, threads }: Share): void {
  for (let nth = thread; nth < servers; nth += threads) {
    const kind = keepers[nth % keepers.length] as Kind;
    let seed = from + Math.floor(nth / keepers.length);
    let crowded = 0;
    for (; isCrowded(openSeed(kind, seed).server) && crowded < mostDraws; crowded++) seed += 1_000_000;
    const sweeps = crowded < mostDraws ? judgeSeed(kind, seed).sweeps : [];
    parentPort?.postMessage({ kind: kind.name, seed, crowded, sweeps } satisfies Report);
  }
}

interface Report {
  readonly kind: string;
  readonly seed: number;
  readonly crowded: number;
  readonly sweeps: readonly JudgedSweep[];
}

async function lead(): Promise<void> {
  const { values } = parseArgs({
    options: {
      servers: { type: 'string', default: '1000' },
      from: { type: 'string', default: '0' },
      threads: { type: 'string', default: String(availableParallelism()) },
    },
  });
  const [servers, from, threads] = [Number(values.servers), Number(values.from), Number(values.threads)];
  const counts: Counts = { servers: 0, crowded: 0, sweeps: 0, proven: 0, harmless: 0, doubt: 0, unproven: 0 };
  const wrong: string[] = [];
  const startedAt = performance.now();
  const take = (report: Report) => {
    add(counts, report);
    for (const line of findWrong(report)) {
      wrong.push(line);
      process.stdout.write(`${line}\n`);
    }
    if (counts.servers % 1_000 === 0) {
      const seconds = Math.round((performance.now() - startedAt) / 1_000);
      process.stderr.write(`${counts.servers} of ${servers} servers, ${wrong.length} wrong, ${seconds} s\n`);
    }
  };
  const threadsDone = Array.from({ length: threads }, (_, thread) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const worker = new Worker(import.meta.filename, {
      workerData: { servers, from, thread, threads } satisfies Share,
    });
    worker
      .on('message', take)
      .on('error', reject)
      .on('exit', () => resolve());
    return promise;
  });
  await Promise.all(threadsDone);
  const share = (count: number) => `${count} (${((100 * count) / counts.sweeps).toFixed(1)} %)`;
  process.stdout.write(
    [
      `${counts.servers} servers of ${keepers.length} kinds that keep the assumptions, seeds ${from} and up.`,
      `Replaced ${counts.crowded} worlds with more than one arrival every six seconds;`,
      `skipped ${servers - counts.servers} servers without a replacement.`,
      `${counts.sweeps} first sweeps and rechecks: ${share(counts.proven)} proven, ${share(counts.harmless)} assumed and harmless,`,
      `${share(counts.doubt)} doubted, ${share(counts.unproven)} unproven.`,
      `Wrongly proven, or silent loss: ${wrong.length}.`,
      '',
    ].join('\n'),
  );
  process.exitCode = wrong.length > 0 ? 1 : 0;
}

function add(counts: Counts, { crowded, sweeps }: Report): void {
  counts.crowded += crowded;
  if (sweeps.length === 0) return;
  counts.servers++;
  for (const { name, certificate, risk } of sweeps) {
    if (name === 'poll') continue;
    counts.sweeps++;
    if (certificate === 'assumed') counts[risk === 'doubt' ? 'doubt' : 'harmless']++;
    else counts[certificate]++;
  }
}

function findWrong({ kind, seed, sweeps }: Report): string[] {
  return sweeps
    .filter(({ isFalseProof, isSilentLoss }) => isFalseProof || isSilentLoss)
    .map(
      ({ name, certificate, lost, reason }) =>
        `COVERAGE_KIND=${kind} COVERAGE_FROM=${seed} COVERAGE_SEEDS=1: ${name} ${certificate} (${reason}), ${lost} lost`,
    );
}

if (isMainThread) await lead();
else work(workerData as Share);

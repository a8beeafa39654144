// Many simulated servers that keep the three assumptions, each swept, polled, left alone for a night and swept again: was a sweep
// called proven, or ended as success, while someone was missing? Prints every such server as a line that replays it, and how often
// honest servers were doubted.
//   npm run coverage:servers -- --servers 100000 --from 1000
// Ends with 1 when anyone was lost without a word.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Kind } from './hidden-server.ts';
import { isCrowded, type JudgedSweep, judgeSeed, openSeed } from './judge.ts';
import { kinds } from './kinds.ts';

/** What one thread has to do: of `servers` numbers from `from` on every `threads`th, beginning with its own. */
interface Share {
  readonly servers: number;
  readonly from: number;
  readonly thread: number;
  readonly threads: number;
}

interface Counts {
  servers: number;
  /** So many apply that a sweep follows them for thousands of requests: such a world is drawn again. */
  crowded: number;
  sweeps: number;
  proven: number;
  harmless: number;
  doubt: number;
  unproven: number;
}

const keepers = kinds.filter(({ keeps }) => keeps.filtersBeforeCap && keeps.capAboveHalf && keeps.oneCurrentList);
const mostDraws = 20;

/** Judges a share, and reports after every server. */
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
      `${counts.servers} servers of ${keepers.length} kinds that keep the assumptions, numbers ${from} and up;`,
      `${counts.crowded} worlds in which more than one applies every six seconds were drawn again, ${servers - counts.servers} servers had no other.`,
      `${counts.sweeps} first sweeps and rechecks: ${share(counts.proven)} proven, ${share(counts.harmless)} assumed and harmless,`,
      `${share(counts.doubt)} doubted, ${share(counts.unproven)} unproven.`,
      `Proven wrongly, or lost without a word: ${wrong.length}.`,
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

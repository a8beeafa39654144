// Sweeps, polls and rechecks many simulated servers of every kind, and looks for sweeps that were certified as proven or ended as success
// while an application was missing. Prints a table per group of kinds, and a line that replays each such server that keeps the assumptions.
//   npm run coverage:servers -- --servers 100000 --from 1000 [--kind PATTERN]
// Exits with 1 when a sweep of a server that keeps the assumptions was wrong.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Kind } from './hidden-server.ts';
import { isCrowded, judgeSeed, openSeed, type Verdict } from './judge.ts';
import { kinds } from './kinds.ts';

const { values: options } = parseArgs({
  options: {
    servers: { type: 'string', default: '1000' },
    /** The first seed. */
    from: { type: 'string', default: '0' },
    threads: { type: 'string', default: String(availableParallelism()) },
    /** A regular expression that the names of kinds match. */
    kind: { type: 'string', default: '' },
  },
});
const [servers, from, threads] = [Number(options.servers), Number(options.from), Number(options.threads)];
const chosen = kinds.filter(({ name }) => new RegExp(options.kind).test(name));
const mostDraws = 20;

/** What became of one server. */
interface Report {
  readonly group: string;
  /** Worlds with so many arrivals that a sweep would follow them for thousands of requests; another seed replaces each. */
  readonly crowded: number;
  /** Null if no seed was calm enough. */
  readonly verdict: Verdict | null;
}

const keeping = 'keeps all';

/** The kinds judge their own pages; whether an application fills a quarter of one depends on the seed. */
function groupOf({ keeps }: Kind, isHeavy: boolean): string {
  if (!keeps.filtersBeforeCap) return 'breaks filters';
  if (!keeps.oneCurrentList) return 'breaks one list';
  if (!keeps.capAboveHalf) return 'breaks the cap';
  return isHeavy ? 'heavy rows' : keeping;
}

/** Judges every `threads`th server and reports after each one. */
function work(thread: number): void {
  for (let nth = thread; nth < servers; nth += threads) {
    const kind = chosen[nth % chosen.length] as Kind;
    let seed = from + Math.floor(nth / chosen.length);
    let crowded = 0;
    for (; isCrowded(openSeed(kind, seed).server) && crowded < mostDraws; crowded++) seed += 1_000_000;
    const verdict = crowded < mostDraws ? judgeSeed(kind, seed) : null;
    parentPort?.postMessage({ group: groupOf(kind, verdict?.isHeavy ?? false), crowded, verdict } satisfies Report);
  }
}

/** The columns of a group in the table. A page is what the server shows at once. */
const noCounts = {
  servers: 0,
  falseProofs: 0,
  silent: 0,
  silentPolls: 0,
  told: 0,
  sweeps: 0,
  proven: 0,
  harmless: 0,
  doubt: 0,
  unproven: 0,
  pages: 0,
  first: 0,
  recheck: 0,
  poll: 0,
};
type Counts = typeof noCounts;

function count(counts: Counts, { sweeps, pages }: Verdict): void {
  counts.servers++;
  counts.pages += pages;
  for (const { name, certificate, risk, requests, lost, isFalseProof, isSilentLoss } of sweeps) {
    counts[name === 'first sweep' ? 'first' : name] += requests;
    if (isFalseProof) counts.falseProofs++;
    if (name === 'poll') {
      if (isSilentLoss) counts.silentPolls++;
      continue;
    }
    counts.sweeps++;
    if (isSilentLoss) counts.silent++;
    else if (lost > 0) counts.told++;
    counts[certificate === 'assumed' ? (risk === 'doubt' ? 'doubt' : 'harmless') : certificate]++;
  }
}

function findWrong({ kind, seed, sweeps }: Verdict): string[] {
  return sweeps
    .filter(({ isFalseProof, isSilentLoss }) => isFalseProof || isSilentLoss)
    .map(
      ({ name, certificate, lost, reason }) =>
        `COVERAGE_KIND=${kind} COVERAGE_FROM=${seed} COVERAGE_SEEDS=1: ${name} ${certificate} (${reason}), ${lost} lost`,
    );
}

async function lead(): Promise<void> {
  const table = new Map<string, Counts>();
  let [wrong, crowded, skipped, done] = [0, 0, 0, 0];
  const startedAt = performance.now();
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const take = ({ group, verdict, ...report }: Report) => {
    done++;
    crowded += report.crowded;
    if (verdict === null) skipped++;
    if (done % 1_000 === 0) {
      const seconds = Math.round((performance.now() - startedAt) / 1_000);
      process.stderr.write(`${done} of ${servers} servers, ${wrong} wrong, ${seconds} s\n`);
    }
    if (verdict === null) return;
    const counts = table.get(group) ?? { ...noCounts };
    table.set(group, counts);
    count(counts, verdict);
    if (group !== keeping) return;
    const lines = findWrong(verdict);
    wrong += lines.length;
    for (const line of lines) say(line);
  };
  const threadsDone = Array.from({ length: threads }, (_, thread) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const worker = new Worker(import.meta.filename, { workerData: thread, argv: process.argv.slice(2) });
    worker
      .on('message', take)
      .on('error', reject)
      .on('exit', () => resolve());
    return promise;
  });
  await Promise.all(threadsDone);
  say(`${done - skipped} servers of ${chosen.length} kinds, seeds ${from} and up.`);
  say(`Replaced ${crowded} worlds with more than one arrival every six seconds; skipped ${skipped} servers.`);
  say(
    '| group | servers | false proofs | silent losses | silent polls | told losses | proven | harmless | doubt | unproven | requests per page: first | recheck | poll, each |',
  );
  say(`|${' --- |'.repeat(13)}`);
  for (const [key, row] of [...table].sort()) {
    const share = (part: number) => `${((100 * part) / row.sweeps).toFixed(1)} %`;
    const cells = [
      ...[row.servers, row.falseProofs, row.silent, row.silentPolls, row.told],
      ...[share(row.proven), share(row.harmless), share(row.doubt), share(row.unproven)],
      ...[row.first, row.recheck].map((requests) => (requests / row.pages).toFixed(2)),
      (row.poll / row.servers / 5).toFixed(1),
    ];
    say(`| ${key} | ${cells.join(' | ')} |`);
  }
  say(`Wrongly proven, or silent loss, where the assumptions hold: ${wrong}.`);
  process.exitCode = wrong > 0 ? 1 : 0;
}

if (isMainThread) await lead();
else work(workerData as number);

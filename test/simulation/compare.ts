// Reads the same hidden servers with both kernels of the coverage logic and prints what each proves, loses and costs.
//   node test/simulation/compare.ts --seeds 12 --from 2000 [--kind PATTERN] [--list]
// --list prints every sweep that was wrongly proven or lost an application silently.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Kind } from './hidden-server.ts';
import { isCrowded, type JudgedSweep, judgeSeed, openSeed } from './judge.ts';
import { judgeKernelSeed } from './kernel-judge.ts';
import { kinds } from './kinds.ts';

const { values: options } = parseArgs({
  options: {
    seeds: { type: 'string', default: '2' },
    from: { type: 'string', default: '0' },
    /** A regular expression that the names of kinds match. Sweeps of busy lists (churn) take minutes. */
    kind: { type: 'string', default: '^(?!.*churn)' },
    list: { type: 'boolean', default: false },
  },
});
const [seeds, from] = [Number(options.seeds), Number(options.from)];
const chosen = kinds.filter(({ name }) => new RegExp(options.kind).test(name));

interface Report {
  readonly which: 'old' | 'new';
  readonly group: string;
  readonly kind: string;
  readonly seed: number;
  readonly sweeps: readonly JudgedSweep[];
}

function groupOf({ keeps }: Kind): string {
  if (!keeps.filtersBeforeCap) return 'breaks filters';
  if (!keeps.oneCurrentList) return 'breaks one list';
  return keeps.capAboveHalf ? 'keeps all' : 'breaks the cap';
}

function work(thread: number, threads: number): void {
  const servers = chosen.flatMap((kind) => Array.from({ length: seeds }, (_, nth) => ({ kind, seed: from + nth })));
  for (const [nth, { kind, seed }] of servers.entries()) {
    if (nth % threads !== thread || isCrowded(openSeed(kind, seed).server)) continue;
    const shared = { group: groupOf(kind), kind: kind.name, seed };
    parentPort?.postMessage({ ...shared, which: 'old', sweeps: judgeSeed(kind, seed).sweeps } satisfies Report);
    parentPort?.postMessage({ ...shared, which: 'new', sweeps: judgeKernelSeed(kind, seed) } satisfies Report);
  }
}

const head = ['servers', 'false', 'silent', 'silent polls', 'told', 'proven', 'harmless', 'doubt', 'unproven']
  .concat('first', 'again', 'poll')
  .map((name) => [name, 0] as const);

async function lead(threads: number): Promise<void> {
  const table = new Map<string, Record<string, number>>();
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const take = ({ which, group, kind, seed, sweeps }: Report) => {
    const row = table.get(`${group} | ${which}`) ?? Object.fromEntries(head);
    table.set(`${group} | ${which}`, row);
    const count = (name: string, by = 1) => {
      row[name] = (row[name] ?? 0) + by;
    };
    count('servers');
    for (const sweep of sweeps) {
      const isPoll = sweep.name === 'poll';
      if (sweep.isFalseProof) count('false');
      if (sweep.isSilentLoss) count(isPoll ? 'silent polls' : 'silent');
      if (!isPoll && sweep.lost > 0 && !sweep.isSilentLoss) count('told');
      count(isPoll ? 'poll' : sweep.name === 'recheck' ? 'again' : 'first', sweep.requests);
      if (!isPoll) count(sweep.certificate === 'assumed' ? sweep.risk : sweep.certificate);
      if (options.list && (sweep.isFalseProof || sweep.isSilentLoss)) {
        say(`${which} ${kind} ${seed}: ${sweep.name} ${sweep.certificate} (${sweep.reason}), ${sweep.lost} lost`);
      }
    }
  };
  await Promise.all(
    Array.from({ length: threads }, (_, thread) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const worker = new Worker(import.meta.filename, { workerData: { thread, threads }, argv: process.argv.slice(2) });
      worker
        .on('message', take)
        .on('error', reject)
        .on('exit', () => resolve());
      return promise;
    }),
  );
  say(`group | kernel | ${head.map(([name]) => name).join(' | ')}`);
  for (const [key, row] of [...table].sort()) say(`${key} | ${Object.values(row).join(' | ')}`);
}

if (isMainThread) await lead(availableParallelism());
else work(workerData.thread as number, workerData.threads as number);

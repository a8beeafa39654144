// One seed of the coverage simulation: a hidden server, a first sweep and a recheck of it, and what a judge who knows the truth says.
// The tests, the long runs and the published table of costs all come from here.

import { createRandom } from './random.ts';
import { createSimulatedSource, kindNames, kinds } from './simulated-source.ts';
import { runSweep, type SweepResult } from './simulated-sweep.ts';

export interface Verdict {
  readonly seed: number;
  readonly kind: string;
  readonly certificate: 'proven' | 'assumed' | 'unproven';
  readonly reason: string;
  readonly requests: number;
  readonly applications: number;
  readonly lost: number;
  /** What must never happen, in words; empty when all is well. */
  readonly wrongs: readonly string[];
  /** A proof that was false. */
  readonly deceived: boolean;
}

/**
 * Servers that contradict a written assumption so that no question need show it: filters that act after the cap. Whether the reader
 * was deceived is counted, and published.
 */
export const beyondProof: ReadonlySet<string> = new Set([
  'beforeid applied after the cap',
  'afterid applied after the cap',
  'both filters applied after the cap',
]);

/** Sweeps the hidden server of a seed twice, with crashes, lanes and a changing world, and judges both. */
export function judgeSeed(seed: number, only?: string): Verdict {
  const random = createRandom(seed ^ 0x5eed);
  const kind = only ?? (kindNames[seed % kindNames.length] as string);
  const source = createSimulatedSource(seed, { kind, still: random.chance(0.4) });
  const held = new Set<bigint>();
  const crashes = random.chance(0.25) ? 0.05 : 0;
  const lanes = random.pick([1, 1, 3]);
  const plan = { requestLimit: kind === 'always something new' ? 150 : 1500 };
  const shared = { held, seed, crashes, lanes, plan };
  const byteBudget = random.chance(0.1) ? 60_000 : Number.POSITIVE_INFINITY;
  const first = runSweep(source, { ...shared, byteBudget });
  const wrongs = toWrongs('first sweep', kind, first, source.visibleNow());
  const deceived = first.done.certificate === 'proven' && first.lost.length > 0;

  // Overnight some arrive, some commit late among ids that are held, and pages may have become shorter.
  source.grow(random.between(0, 10));
  source.commitLate(random.between(0, 4));
  if (random.chance(0.1)) source.shrink(random.pick([0.3, 0.6, 0.9]));
  const sorted = [...held].sort((a, b) => (a < b ? -1 : 1));
  const known = { positions: sorted.filter((_, index) => index % 5 === 4), stride: 5 };
  const again = runSweep(source, { ...shared, known });
  wrongs.push(...toWrongs('recheck', kind, again, source.visibleNow()));
  return {
    seed,
    kind,
    certificate: first.done.certificate,
    reason: first.done.reason,
    requests: first.requests,
    applications: source.visibleNow().length,
    lost: first.lost.length,
    wrongs,
    deceived: deceived || (again.done.certificate === 'proven' && again.lost.length > 0),
  };
}

function toWrongs(sweep: string, kind: string, result: SweepResult, visible: readonly bigint[]): string[] {
  const wrongs: string[] = [];
  const { done, lost, requests, state } = result;
  if (done.certificate === 'proven' && lost.length > 0 && !beyondProof.has(kind)) {
    wrongs.push(`${sweep}: called proven, ${lost.length} lost`);
  }
  if (kinds[kind]?.owes === 'complete' && lost.length > 0)
    wrongs.push(`${sweep}: ${lost.length} lost (${done.reason})`);
  const there = new Set(visible);
  const stillThere = done.absent.filter((id) => there.has(id)).length;
  if (stillThere > 0 && !beyondProof.has(kind)) wrongs.push(`${sweep}: ${stillThere} marked absent that are there`);
  if (state.facts.requests > Math.min(state.facts.requestLimit, 64 + 6 * state.facts.found))
    wrongs.push(`${sweep}: ${requests} requests`);
  if (done.certificate !== 'unproven' && done.open.length > 0) wrongs.push(`${sweep}: done with open ranges`);
  return wrongs;
}

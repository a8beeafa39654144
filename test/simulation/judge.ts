// One seed of the coverage simulation: a hidden server, a first sweep, polls, a night, a recheck, and what a judge who knows the truth
// says of each. The tests, the long runs and the published tables all come from here.

import type { Done } from '../../src/domain/coverage/coverage.ts';
import { createRandom, type Random } from '../support/random.ts';
import type { HiddenServer, Kind } from './hidden-server.ts';
import { createMemory, knownOf, type Memory, runSweep, type SweepResult } from './simulated-reader.ts';

/** One sweep, as the judge sees it. */
export interface JudgedSweep {
  readonly name: 'first sweep' | 'poll' | 'recheck';
  readonly certificate: Done['certificate'];
  readonly risk: Done['risk'];
  readonly reason: string;
  readonly requests: number;
  /** In the range that it read: a poll's begins where the cursor stood. */
  readonly lost: number;
  /** Called proven, and someone is missing. */
  readonly isFalseProof: boolean;
  /** Ended as success (exit code 0), and someone is missing. */
  readonly isSilentLoss: boolean;
}

export interface Verdict {
  readonly kind: string;
  readonly seed: number;
  readonly sweeps: readonly JudgedSweep[];
  readonly applications: number;
}

const lagMs = 15 * 60_000;
/** When a server's first rows are a little older than now. */
export const startMs = 1_790_000_000_000;

/** The server that a seed stands for, and what chooses how it is read. */
export function openSeed(kind: Kind, seed: number): { random: Random; server: HiddenServer } {
  const random = createRandom(seed ^ 0x5eed);
  return { random, server: kind.create(seed, { startMs, still: random.chance(0.4) }) };
}

/** More than one applies every six seconds: a sweep follows them for thousands of requests. Changes the server: it is not used afterwards. */
export function isCrowded(server: HiddenServer): boolean {
  // Things begin to happen with the first request.
  server.list({ afterId: null, beforeId: null, afterDate: null, beforeDate: null }, startMs);
  return server.presentAt(startMs + 360_000).length - server.presentAt(startMs).length > 60;
}

/** Reads the server of a seed: a first sweep, polls, a night, a recheck, polls. Only the sweeps crash and have several questions in flight. */
export function judgeSeed(kind: Kind, seed: number): Verdict {
  const { random, server } = openSeed(kind, seed);
  const memory = createMemory(startMs);
  const crashes = random.chance(0.2) ? 0.05 : 0;
  const parallel = random.pick([1, 1, 2, 4]);
  const pauseMs = random.pick([100, 100, 20, 1_000]);
  const byteBudget = random.chance(0.05) ? 60_000 : Number.POSITIVE_INFINITY;
  const shared = { seed, crashes, parallel, pauseMs, byteBudget };
  const sweeps: JudgedSweep[] = [];
  const first = runSweep(server, memory, shared);
  sweeps.push(toJudgedSweep('first sweep', first));
  let account = first.done;
  let { capacity } = account;
  for (let poll = 0; poll < 3; poll++) sweeps.push(runPoll());
  memory.now += 20 * 3_600_000;
  server.passNight(memory.now);
  const again = runSweep(server, memory, { ...shared, seed: seed + 1, known: knownOf(memory, random.pick([1, 5])) });
  sweeps.push(toJudgedSweep('recheck', again));
  account = again.done;
  capacity = account.capacity;
  for (let poll = 0; poll < 2; poll++) sweeps.push(runPoll());
  return { kind: kind.name, seed, sweeps, applications: server.presentAt(memory.now).length };

  function runPoll(): JudgedSweep {
    memory.now += 300_000;
    server.passMinutes(memory.now);
    const from = pollFrom(memory);
    // What the account is worth as a whole decides the exit code, not the poll alone.
    const isTrusted = account.certificate !== 'unproven' && account.risk !== 'doubt';
    const poll = toJudgedSweep('poll', runSweep(server, memory, { seed, plan: { from, rigor: 'poll', capacity } }));
    return { ...poll, isSilentLoss: poll.isSilentLoss && isTrusted };
  }
}

/** Where a poll begins: after the highest id that was seen one lag ago; when every id is young, at the lowest of the last 26 hours. */
function pollFrom({ held, now }: Memory): bigint {
  let aged = 0n;
  let highest = 0n;
  let recent: bigint | null = null;
  const dayAgo = BigInt(Math.floor(now / 1_000)) - 26n * 3_600n;
  for (const { id, firstSeenAt, submittedAt } of held.values()) {
    if (id > highest) highest = id;
    if (firstSeenAt <= now - lagMs && id > aged) aged = id;
    if (submittedAt !== null && submittedAt > dayAgo && (recent === null || id < recent)) recent = id;
  }
  if (aged > 0n) return aged + 1n;
  return recent ?? highest + 1n;
}

function toJudgedSweep(name: JudgedSweep['name'], { done, requests, lost }: SweepResult): JudgedSweep {
  const { certificate, risk, reason } = done;
  return {
    name,
    certificate,
    risk,
    reason,
    requests,
    lost: lost.length,
    isFalseProof: certificate === 'proven' && lost.length > 0,
    isSilentLoss: certificate !== 'unproven' && risk !== 'doubt' && lost.length > 0,
  };
}

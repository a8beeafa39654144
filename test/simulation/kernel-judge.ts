// Runs one seed of the simulation with the new kernel, in the same order as judge.ts does with the old one: a first sweep, polls, a night, a
// recheck, polls.

import type { Position } from '../../src/domain/kernel/position.ts';
import type { Kind } from './hidden-server.ts';
import { countPages, type JudgedSweep, openSeed, startMs, type Verdict } from './judge.ts';
import { createKernelMemory, type KernelMemory, type KernelResult, runKernelSweep } from './kernel-reader.ts';

const lagMs = 15 * 60_000;

/** Judges one seed. The draws are those of judge.ts, so that both kernels read the same server in the same way. */
export function judgeKernelSeed(kind: Kind, seed: number): Verdict {
  const { random, server } = openSeed(kind, seed);
  const memory = createKernelMemory(startMs);
  const crashes = random.chance(0.2) ? 0.05 : 0;
  const parallel = random.pick([1, 1, 2, 4]);
  const pauseMs = random.pick([100, 100, 20, 1_000]);
  const byteBudget = random.chance(0.05) ? 60_000 : Number.POSITIVE_INFINITY;
  const shared = { seed, crashes, parallel, pauseMs, byteBudget };
  const first = runKernelSweep(server, memory, shared);
  const sweeps = [toJudgedSweep('first sweep', first)];
  let account = first.done;
  for (let poll = 0; poll < 3; poll++) sweeps.push(runPoll());
  memory.now += 20 * 3_600_000;
  server.passNight(memory.now);
  // Of every other server the operator accepts what cannot be read; it is not asked again.
  const accepted = seed % 2 === 0 ? memory.unreadable : [];
  const plan = { unreadable: accepted, accepted };
  const again = runKernelSweep(server, memory, { ...shared, seed: seed + 1, known: true, plan });
  sweeps.push(toJudgedSweep('recheck', again));
  account = again.done;
  for (let poll = 0; poll < 2; poll++) sweeps.push(runPoll());
  return { kind: kind.name, seed, sweeps, pages: countPages(server, memory.now) };

  function runPoll(): JudgedSweep {
    memory.now += 300_000;
    server.passMinutes(memory.now);
    const plan = { ...planPoll(memory), rigor: 'poll', unreadable: memory.unreadable } as const;
    // The certificate of the whole account decides the exit code, not the poll alone.
    const isTrusted = account.certificate !== 'unproven' && account.risk !== 'doubt';
    const poll = toJudgedSweep('poll', runKernelSweep(server, memory, { seed, plan, pages: account.pages }));
    return { ...poll, isSilentLoss: poll.isSilentLoss && isTrusted };
  }
}

/** A poll begins at the newest application that must still be there: first seen a lag ago, else submitted within the last 26 hours. */
export function planPoll({ held, now, gone, absentSince }: KernelMemory): { from: Position; lifelines: Position[] } {
  const there = [...held.values()].filter(({ id }) => !gone.has(id) && !absentSince.has(id));
  const dayAgo = BigInt(Math.floor(now / 1_000)) - 26n * 3_600n;
  const highestOf = (ids: readonly bigint[]) =>
    ids.reduce<bigint | null>((most, id) => (most === null || id > most ? id : most), null);
  const aged = highestOf(there.filter(({ firstSeenAt }) => firstSeenAt <= now - lagMs).map(({ id }) => id));
  const recent = there.filter(({ submittedAt }) => submittedAt !== null && submittedAt > dayAgo).map(({ id }) => id);
  const lowest = recent.reduce<bigint | null>((least, id) => (least === null || id < least ? id : least), null);
  const from = (aged ?? lowest ?? highestOf(there.map(({ id }) => id)) ?? 1n) as Position;
  const older = there.map(({ id }) => id).filter((id) => id < from);
  older.sort((a, b) => (a < b ? 1 : -1));
  const lifelines = [older[0], older[Math.floor(older.length / 2)], older.at(-1)].filter((id) => id !== undefined);
  return { from, lifelines: [...new Set(lifelines)] as Position[] };
}

function toJudgedSweep(name: JudgedSweep['name'], { done, requests, lost }: KernelResult): JudgedSweep {
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

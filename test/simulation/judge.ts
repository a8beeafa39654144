// Runs one seed of the coverage simulation: a hidden server, a first sweep, polls, a night, a recheck, then polls again. A judge that knows
// every row of the server checks each sweep. The tests, the long runs and the published tables all use this module.

import type { Done } from '../../src/domain/coverage/certificate.ts';
import type { Position } from '../../src/domain/coverage/position.ts';
import { createRandom, type Random } from '../support/suite/random.ts';
import type { HiddenServer, Kind } from './hidden-server.ts';
import { createMemory, type Memory, runSweep, type SweepResult } from './simulated-reader.ts';

/** The judge's result for one sweep. */
export interface JudgedSweep {
  readonly name: 'first sweep' | 'poll' | 'recheck';
  readonly certificate: Done['certificate'];
  readonly risk: Done['risk'];
  readonly reason: string;
  readonly requests: number;
  /** Applications missing in the range of this sweep. The range of a poll starts at `pollFrom`. */
  readonly lost: number;
  /** The sweep was certified as proven, and an application is missing. */
  readonly isFalseProof: boolean;
  /** The sweep ended as success (exit code 0), and an application is missing. */
  readonly isSilentLoss: boolean;
}

export interface Verdict {
  readonly kind: string;
  readonly seed: number;
  readonly sweeps: readonly JudgedSweep[];
  /** The pages that hold all applications of the server at the end. */
  readonly pages: number;
  readonly isHeavy: boolean;
}

/** The pages that hold all applications of a server, by the rows that it shows without a filter. */
function countPages(server: HiddenServer, atMs: number): number {
  const { rows } = server.list({ afterId: null, beforeId: null, afterDate: null, beforeDate: null }, atMs);
  return Math.ceil(server.presentAt(atMs).length / Math.max(1, rows.length));
}

const lagMs = 15 * 60_000;
/** The virtual time at which a simulation starts. The initial rows are older. */
export const startMs = 1_790_000_000_000;

/** Creates the server of a seed, and the random source that decides how the judge reads it. */
export function openSeed(kind: Kind, seed: number): { random: Random; server: HiddenServer } {
  const random = createRandom(seed ^ 0x5eed);
  return { random, server: kind.create(seed, { startMs, still: random.chance(0.4) }) };
}

/**
 * True when more than one application arrives every six seconds: a sweep would follow them for thousands of requests. Moves the server's
 * time, so use a separate server for the sweeps.
 */
export function isCrowded(server: HiddenServer): boolean {
  // The virtual time of the server starts with the first request.
  server.list({ afterId: null, beforeId: null, afterDate: null, beforeDate: null }, startMs);
  return server.presentAt(startMs + 360_000).length - server.presentAt(startMs).length > 60;
}

/** Judges one seed: a first sweep, polls, a night, a recheck, polls. Polls do not crash and have one question in flight at a time. */
export function judgeSeed(kind: Kind, seed: number): Verdict {
  const { random, server } = openSeed(kind, seed);
  const memory = createMemory(startMs);
  const crashes = random.chance(0.2) ? 0.05 : 0;
  const parallel = random.pick([1, 1, 2, 4]);
  const pauseMs = random.pick([100, 100, 20, 1_000]);
  const byteBudget = random.chance(0.05) ? 60_000 : Number.POSITIVE_INFINITY;
  const shared = { seed, crashes, parallel, pauseMs, byteBudget };
  const first = runSweep(server, memory, shared);
  const sweeps = [toJudgedSweep('first sweep', first)];
  let account = first.done;
  for (let poll = 0; poll < 3; poll++) sweeps.push(runPoll());
  memory.now += 20 * 3_600_000;
  server.passNight(memory.now);
  // Of every other server the operator accepts what cannot be read; it is not asked again.
  const accepted = seed % 2 === 0 ? memory.unreadable : [];
  const plan = { unreadable: accepted, accepted };
  const again = runSweep(server, memory, { ...shared, seed: seed + 1, known: true, plan });
  sweeps.push(toJudgedSweep('recheck', again));
  account = again.done;
  for (let poll = 0; poll < 2; poll++) sweeps.push(runPoll());
  return { kind: kind.name, seed, sweeps, pages: countPages(server, memory.now), isHeavy: server.isHeavy };

  function runPoll(): JudgedSweep {
    memory.now += 300_000;
    server.passMinutes(memory.now);
    const plan = { ...planPoll(memory), rigor: 'poll', unreadable: memory.unreadable } as const;
    // The certificate of the whole account decides the exit code, not the poll alone.
    const isTrusted = account.certificate !== 'unproven' && account.risk !== 'doubt';
    const poll = toJudgedSweep('poll', runSweep(server, memory, { seed, plan, pages: account.pages }));
    return { ...poll, isSilentLoss: poll.isSilentLoss && isTrusted };
  }
}

/** A poll begins at the newest application that must still be there: first seen a lag ago, else submitted within the last 26 hours. */
export function planPoll({ held, now, gone, absentSince }: Memory): { from: Position; lifelines: Position[] } {
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

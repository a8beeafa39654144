// Builds the proof of a simulated sweep with the product's own lines: as the store would hold it, and as the product would export it.
import { begin } from '../../src/domain/coverage/coverage.ts';
import {
  type ExportedCertificate,
  type LineBody,
  toAnswerBody,
  toEndBody,
  toProofLine,
  toRowsLine,
  toSweepBody,
} from '../../src/domain/evidence/record.ts';
import { chain, type Line } from '../support/chain.ts';
import type { HiddenServer } from './hidden-server.ts';
import { startMs } from './judge.ts';
import { kindNamed } from './kinds.ts';
import { createMemory, type Memory, runSweep, type SweepOptions, type SweepResult } from './simulated-reader.ts';

const advertiserId = 7n;

/** A sweep with its evidence. */
export interface SimulatedProof {
  readonly sweepId: bigint;
  readonly startedAt: number;
  readonly result: SweepResult;
  readonly lines: readonly Line[];
}

/** Runs a sweep and records every answer as the product does. */
export function proveSweep(
  server: HiddenServer,
  memory: Memory,
  sweepId: bigint,
  options: SweepOptions = {},
  previous: readonly Pick<ExportedCertificate, 'sweepId' | 'last'>[] = [],
): SimulatedProof {
  const startedAt = memory.now;
  const plan = {
    listedBefore: memory.held.size - memory.gone.size,
    longestBefore: memory.longest,
    recentFrom: BigInt(Math.floor(startedAt / 1_000)) - 900n,
    ...options.plan,
  };
  const sweep = { sweepId, purpose: 'recheck', startedAt: new Date(startedAt) };
  const bodies: LineBody[] = [toSweepBody(advertiserId, sweep, begin(plan), previous)];
  const result = runSweep(server, memory, {
    ...options,
    plan,
    onStep({ sentAt, question, answer, learned }) {
      bodies.push(toAnswerBody({ sentAt, tookMs: 10 }, question, answer, learned));
      return undefined;
    },
  });
  bodies.push(toEndBody(result.done));
  return { sweepId, startedAt, result, lines: chain(null, bodies) };
}

/** The lines of the file that the product would export. */
export function toProofLines(
  { sweepId, startedAt, result: { done, state }, lines }: SimulatedProof,
  memory: Memory,
  erased: ReadonlySet<bigint> = new Set(),
): string[] {
  const { certificate, risk, reason } = done;
  const { from: low, to: high, recentFrom } = state.facts;
  const rows = [...memory.held.values()]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ id, firstSeenAt }) => {
      if (erased.has(id)) return [String(id)];
      return [String(id), String(Math.floor(firstSeenAt / 1_000)), memory.gone.has(id) ? '1' : null];
    });
  const whole = {
    ...{ low, high: high === 2n ** 63n - 1n ? null : high, certificate, risk, reason, sweepId },
    ...{ startedAt: new Date(startedAt), completeThrough: new Date(Number(recentFrom) * 1_000) },
    last: lines.at(-1)?.hash ?? null,
  };
  return [toProofLine(advertiserId, new Date(memory.now), [whole]), ...lines.map(({ text }) => text), toRowsLine(rows)];
}

export const proofDay = 86_400_000;

/**
 * The proofs of a first sweep and, a day later, of a recheck of a list that stands still. As many ids as are `deleted` are stored that the
 * source does not show.
 */
export function proveTwice(size: { rows: number; page: number }, kind = 'friendly', deleted = 0) {
  const server = kindNamed(kind).create(7, { startMs, still: true, ...size });
  const memory = createMemory(startMs);
  const proof = proveSweep(server, memory, 1n, { seed: 1 });
  const first = toProofLines(proof, memory);
  memory.now += proofDay;
  const middle = [...memory.held.keys()].sort((a, b) => (a < b ? -1 : 1))[size.rows >> 1] ?? 0n;
  const beside = Array.from({ length: 9 * deleted }, (_, nth) => middle + BigInt(nth));
  for (const id of beside.filter((one) => !memory.held.has(one)).slice(0, deleted))
    memory.held.set(id, { id, firstSeenAt: startMs, submittedAt: null });
  const previous = [{ sweepId: 1n, last: proof.lines.at(-1)?.hash ?? null }];
  const again = toProofLines(proveSweep(server, memory, 2n, { seed: 2, known: true }, previous), memory);
  return { first, again, memory };
}

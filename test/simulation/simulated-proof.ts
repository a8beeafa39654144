// Builds the proof of a simulated sweep with the product's own records: as the store would hold it, and as the product would export it.
import { hash as hashOnce } from 'node:crypto';
import type { Done, Plan } from '../../src/domain/coverage/coverage.ts';
import { type ChainedRecord, chain, chainAnswer } from '../../src/domain/evidence/chain.ts';
import { decodeLeaves, decodeRecord, encodeLeaves, encodeRecord } from '../../src/domain/evidence/codec.ts';
import { toProofLine, toRecordLine, toRowsLine } from '../../src/domain/evidence/export.ts';
import { type OpeningRecord, recordAnswer, toBounds } from '../../src/domain/evidence/record.ts';
import { eraseLeaves, type Hash } from '../../src/domain/evidence/tree.ts';
import type { HiddenServer } from './hidden-server.ts';
import { type Memory, runSweep, type SweepOptions, type SweepResult } from './simulated-reader.ts';

const hash: Hash = (bytes) => hashOnce('sha256', bytes, 'buffer');
const bodyKey = hash(Buffer.from('key'));
const advertiserId = 7n;

/** A sweep with its evidence. */
export interface SimulatedProof {
  readonly sweepId: bigint;
  readonly startedAt: number;
  readonly result: SweepResult;
  readonly records: readonly ChainedRecord[];
  readonly low: bigint;
  readonly high: bigint | null;
  readonly recentFrom: bigint;
}

/** Runs a sweep and records every answer as the product does. */
export function proveSweep(
  server: HiddenServer,
  memory: Memory,
  sweepId: bigint,
  options: SweepOptions = {},
  previous: OpeningRecord['previous'] = [],
): SimulatedProof {
  const startedAt = memory.now;
  const plan: Plan = options.plan ?? {};
  const recentFrom = BigInt(Math.floor(startedAt / 1_000)) - 900n;
  const [low, high] = [plan.from ?? 1n, plan.to ?? null];
  const heldBefore = plan.heldBefore ?? memory.held.size;
  const longestBefore = plan.longestBefore ?? memory.longest;
  const records: ChainedRecord[] = [
    chain(hash, null, {
      type: 'sweep',
      advertiserId,
      sweepId,
      purpose: 'recheck',
      axis: 'id',
      low,
      high,
      startedAt,
      recentFrom,
      heldBefore,
      longestBefore,
      previous,
      bodyKeyHash: hash(bodyKey),
    }),
  ];
  const add = (record: ChainedRecord) => {
    // Encode and decode each record, because the product reads it back from the database.
    const leaves = decodeLeaves(encodeLeaves(record.leaves));
    records.push({ ...record, record: decodeRecord(encodeRecord(record.record)), leaves });
  };
  let seq = 0n;
  const result = runSweep(server, memory, {
    ...options,
    onStep({ before, question, answer, after, sentAt, knew }) {
      const sent = { knew, seq: ++seq, sentAt, tookMs: 10 };
      const made = recordAnswer(sent, question, answer, null, before, after);
      add(chainAnswer(hash, records.at(-1) ?? null, made, hash(Buffer.from(`${sweepId} ${seq}`)).subarray(0, 16)));
    },
  });
  const { certificate, risk, reason, absent, open } = result.done;
  add(
    chain(hash, records.at(-1) ?? null, {
      type: 'end',
      certificate,
      risk,
      reason,
      open: open.map(toBounds),
      absent: absent.length,
    }),
  );
  return { sweepId, startedAt, result, records, low, high, recentFrom };
}

/** Erases these applications from the proof. */
export function eraseFromProof(proof: SimulatedProof, ids: ReadonlySet<bigint>): SimulatedProof {
  const records = proof.records.map((one) => ({ ...one, leaves: eraseLeaves(hash, one.leaves, ids) ?? one.leaves }));
  return { ...proof, records };
}

/** The lines of the file that the product would export. */
export function toProofLines(proof: SimulatedProof, memory: Memory, erased: ReadonlySet<bigint> = new Set()): string[] {
  const { sweepId, startedAt, result, records, low, high, recentFrom } = proof;
  const { certificate, risk, reason }: Done = result.done;
  const rows = [...memory.held.values()]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ id, firstSeenAt }) => {
      if (erased.has(id)) return { id, firstSeen: null, missingSince: null };
      return { id, firstSeen: BigInt(Math.floor(firstSeenAt / 1_000)), missingSince: memory.gone.has(id) ? 1n : null };
    });
  return [
    toProofLine(advertiserId, new Date(memory.now), [
      {
        low,
        high,
        certificate,
        risk,
        reason,
        sweepId,
        startedAt: new Date(startedAt),
        completeThrough: new Date(Number(recentFrom) * 1_000),
        last: records.at(-1)?.hash ?? null,
      },
    ]),
    ...records.map((record) => toRecordLine(hash, record, erased.size > 0 ? null : bodyKey)),
    toRowsLine(rows),
  ];
}

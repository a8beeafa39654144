// Records the requests and answers of a sweep for its proof (docs/proof-format.md) and chains them. The store commits them with the page.
import { createHmac, hash, randomBytes } from 'node:crypto';
import type { Answer, Question } from '../../domain/coverage/question.ts';
import type { State } from '../../domain/coverage/sweep-state.ts';
import { type ChainEnd, type ChainedRecord, chain, chainAnswer } from '../../domain/evidence/chain.ts';
import {
  type EndRecord,
  type LastHash,
  type OpeningRecord,
  recordAnswer,
  recordAudit,
} from '../../domain/evidence/record.ts';
import { digestBytes, type Hash, saltBytes } from '../../domain/evidence/tree.ts';
import type { Sweep, Ticket } from '../../store/sweeps/sweeps.ts';
import type { Heard } from './request-page.ts';

/** The hash function of proofs. */
export const sha256: Hash = (bytes) => hash('sha256', bytes, 'buffer');

/** The proof of a sweep so far. */
export interface Proof {
  /** Null before the first record. */
  readonly end: ChainEnd | null;
  /** Null once a person was erased whose application the sweep has seen. */
  readonly bodyKey: Uint8Array | null;
}

/** The facts of a request beside its question and its answer. */
export interface Exchange {
  readonly ticket: Ticket;
  readonly tookMs: number;
  /** Number of the last record that was committed when the request was sent. */
  readonly knew: number;
}

/** A proof without records. */
export function beginProof(): Proof {
  return { end: null, bodyKey: randomBytes(32) };
}

/** The first record of a proof. */
export function toOpening(
  advertiserId: bigint,
  { sweepId, purpose, axis, low, high, startedAt }: Sweep,
  { facts }: State,
  { bodyKey }: Proof,
  previous: readonly LastHash[],
): OpeningRecord {
  return {
    type: 'sweep',
    advertiserId,
    sweepId,
    purpose: purpose === 'backfill' ? 'backfill' : 'recheck',
    axis,
    low,
    high,
    startedAt: startedAt.getTime(),
    recentFrom: facts.recentFrom ?? 0n,
    heldBefore: facts.heldBefore,
    longestBefore: facts.longestBefore,
    previous,
    bodyKeyHash: sha256(bodyKey ?? new Uint8Array()),
  };
}

/** What one answer adds to a proof: its own record, the opening before it if it is the first, and the end after it if it is the last. */
export interface Step {
  readonly question: Question;
  readonly answer: Answer;
  readonly heard: Heard;
  readonly exchange: Exchange;
  readonly before: State;
  readonly after: State;
  readonly end: EndRecord | null;
}

/** The records of a step, chained to the proof. */
export function recordStep(
  proof: Proof,
  opening: OpeningRecord | null,
  { question, answer, heard, exchange, before, after, end }: Step,
): ChainedRecord[] {
  const opened = opening && chain(sha256, null, opening);
  const made = recordAnswer(toSent(exchange), question, answer, toDigest(proof, heard), before, after);
  const answered = chainAnswer(sha256, opened ?? proof.end, made, randomBytes(saltBytes));
  const ended = end && chain(sha256, answered, end);
  return [opened, answered, ended].filter((record) => record !== null);
}

/** The record of an audit, chained to the proof that it audits. */
export function recordAudited(
  proof: Proof & { readonly end: ChainEnd },
  question: Question,
  answer: Answer,
  heard: Heard,
  exchange: Exchange,
): ChainedRecord {
  const made = recordAudit(toSent(exchange), question, answer, toDigest(proof, heard));
  return chainAnswer(sha256, proof.end, made, randomBytes(saltBytes));
}

function toSent({ ticket, tookMs, knew }: Exchange) {
  return { knew, seq: ticket.seq, sentAt: ticket.at.getTime(), tookMs: Math.round(tookMs) };
}

function toDigest({ bodyKey }: Proof, heard: Heard): Uint8Array | null {
  const bodyHash = heard.kind === 'page' ? heard.page.bodyHash : null;
  if (bodyKey === null || bodyHash === null) return null;
  return createHmac('sha256', bodyKey).update(bodyHash).digest().subarray(0, digestBytes);
}

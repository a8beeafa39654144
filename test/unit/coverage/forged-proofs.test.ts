// Proofs of simulated servers against the checker that shares no code with Intake: it accepts every honest one at the level that the sweep
// reached, also after people were erased, and refuses files that were changed; proof-rules.test.ts forges them rule by rule. `npm test`
// takes one kind of server in four; `PROOF_SEEDS=6 npm test -- test/unit/coverage/forged-proofs.test.ts` takes six seeds of every kind.
// PROOF_SEEDS sets how many seeds, PROOF_FROM where they begin.
import { describe, expect, test } from 'vitest';
import { checkProof, type Finding, type Report } from '../../../examples/check-proof.ts';
import type { Kind } from '../../simulation/hidden-server.ts';
import { isCrowded, openSeed, startMs } from '../../simulation/judge.ts';
import { kinds } from '../../simulation/kinds.ts';
import { proveSweep, proveTwice, type SimulatedProof, toProofLines } from '../../simulation/simulated-proof.ts';
import { createMemory, type Memory, type SweepOptions } from '../../simulation/simulated-reader.ts';
import { claim, forge } from '../../support/forged-proof.ts';
import { createRandom } from '../../support/suite/random.ts';

const isSample = process.env.PROOF_SEEDS === undefined;
const seeds = Number(process.env.PROOF_SEEDS ?? 1);
const firstSeed = Number(process.env.PROOF_FROM ?? 1);
/** Where something happens several times a second a sweep follows it for thousands of requests. */
const isBusy = ({ name }: Kind) => /churn|mix-order-modified/.test(name);
const timeout = 300_000 + seeds * 300_000;

interface Case {
  readonly name: string;
  readonly proof: SimulatedProof;
  readonly memory: Memory;
}

/** A first sweep and, a night later, a recheck of every server that is not crowded. */
function* proofsOf(list: readonly Kind[]): Generator<Case> {
  for (const kind of list.filter((one) => !isBusy(one))) {
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
      if (!isCrowded(openSeed(kind, seed).server)) yield* sweepTwice(kind, seed);
    }
  }
}

function* sweepTwice(kind: Kind, seed: number): Generator<Case> {
  const { random, server } = openSeed(kind, seed);
  const memory = createMemory(startMs);
  const options: SweepOptions = {
    seed,
    crashes: random.chance(0.2) ? 0.05 : 0,
    parallel: random.pick([1, 1, 2, 4]),
    pauseMs: random.pick([100, 100, 20, 1_000]),
    byteBudget: random.chance(0.2) ? 20_000 : Number.POSITIVE_INFINITY,
  };
  const first = proveSweep(server, memory, 1n, options);
  yield { name: `${kind.name} ${seed}, first sweep`, proof: first, memory };
  memory.now += 20 * 3_600_000;
  server.passNight(memory.now);
  // What could not be read is left out, or read again; an operator has accepted some of it.
  const accepted = random.chance(0.5) ? memory.unreadable : [];
  const plan = { unreadable: random.chance(0.7) ? memory.unreadable : [], accepted };
  const previous = [{ sweepId: 1n, last: first.lines.at(-1)?.hash ?? null }];
  const again = proveSweep(server, memory, 2n, { ...options, seed: seed + 1, known: true, plan }, previous);
  yield { name: `${kind.name} ${seed}, recheck`, proof: again, memory };
}

/** What the lines of the only certificate support. */
function supportOf({ certificates }: Report): Finding['worth'] {
  const found = certificates[0]?.findings ?? [];
  const worths = ['forged', 'unproven', 'doubt', 'harmless'] as const;
  return worths.find((worth) => found.some((one) => one.worth === worth)) ?? 'proven';
}

test('an honest proof is accepted at its level, also after an erasure', { tags: ['slow'], timeout }, () => {
  const differences: string[] = [];
  let [proofs, proven] = [0, 0];
  // Kinds that resemble each other stand side by side: one in four is of every family.
  const chosen = isSample ? kinds.filter((_, at) => at % 4 === 0) : kinds;
  for (const { name, proof, memory } of proofsOf(chosen)) {
    proofs++;
    const { certificate, risk, reason } = proof.result.done;
    if (certificate === 'proven') proven++;
    const says = certificate === 'assumed' ? risk : certificate;
    const random = createRandom(proofs);
    const erased = new Set([...memory.held.keys()].filter((_, at) => at === 0 || random.chance(0.01)));
    for (const report of [checkProof(toProofLines(proof, memory)), checkProof(toProofLines(proof, memory, erased))]) {
      const isAccepted = report.supported && report.verdict === certificate;
      // A walk is replayed only in part: it may be worth less than its lines can show.
      const isExact = supportOf(report) === says || proof.result.state.facts.walk !== null;
      if (!isAccepted || !isExact) differences.push(`${name}: says ${says} (${reason}), supports ${supportOf(report)}`);
    }
  }
  expect(differences).toEqual([]);
  expect(proofs).toBeGreaterThan(seeds * chosen.length);
  expect(proven).toBeGreaterThan(proofs / 10);
});

const { again: recheck } = proveTwice({ rows: 400, page: 40 });

describe('a file that was changed without new hashes is forged', () => {
  const isForged = (lines: readonly string[]) => checkProof(lines).verdict === 'forged';
  const places = recheck.map((_, at) => at).slice(1, -2);

  test('each line removed', () => {
    expect(places.filter((at) => !isForged(recheck.toSpliced(at, 1)))).toEqual([]);
  });
  test('each line a second time', () => {
    expect(places.filter((at) => !isForged(recheck.toSpliced(at, 0, recheck[at] as string)))).toEqual([]);
  });
  test('each two neighbours exchanged', () => {
    const exchange = (at: number) => recheck.toSpliced(at, 2, recheck[at + 1] as string, recheck[at] as string);
    expect(places.slice(0, -1).filter((at) => !isForged(exchange(at)))).toEqual([]);
  });
  test('each number of a line', () => {
    const kept: string[] = [];
    for (const at of places.filter((place) => place % 6 === 1)) {
      const line = recheck[at] as string;
      for (const { index, 0: digits } of line.matchAll(/\d+/g)) {
        const other = line.slice(0, index) + String(BigInt(digits) + 1n) + line.slice(index + digits.length);
        if (!isForged(recheck.with(at, other))) kept.push(other);
      }
    }
    expect(kept).toEqual([]);
  }, 120_000);
  test('a line with a member twice, or with white space', () => {
    const line = recheck[2] as string;
    expect(isForged(recheck.with(2, `${line.slice(0, -1)},"n":1}`))).toBe(true);
    expect(isForged(recheck.with(2, line.replace(',', ', ')))).toBe(true);
  });
  test('a file without lines, and one that is no JSON', () => {
    expect([checkProof([]).verdict, checkProof(['no']).verdict]).toEqual(['forged', 'forged']);
  });
});

test(
  'a file over which every hash was computed anew is refused if it says more than its lines support, by level or by risk',
  () => {
    const levels = [
      ['proven', 'none'],
      ['assumed', 'harmless'],
      ['assumed', 'doubt'],
      ['unproven', 'doubt'],
    ] as const;
    const raised: string[] = [];
    let tried = 0;
    for (const { name, proof, memory } of proofsOf(kinds.filter((_, at) => at % 6 === 0))) {
      const { certificate, risk } = proof.result.done;
      const at = levels.findIndex(([level, its]) => level === certificate && its === risk);
      if (proof.result.state.facts.walk !== null) continue;
      for (const [level, its] of levels.slice(0, at)) {
        tried++;
        const forged = forge(toProofLines(proof, memory), claim(level, its));
        if (checkProof(forged).supported) raised.push(`${name}: ${certificate} ${risk} as ${level} ${its}`);
      }
    }
    expect(raised).toEqual([]);
    expect(tried).toBeGreaterThan(20);
  },
  timeout,
);

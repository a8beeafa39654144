// Proofs of simulated servers against the checker that shares no code with Intake: it accepts every honest one, also after people were erased,
// and refuses every forged one. `npm test` takes one kind of server in four; `npm run proofs` takes six seeds of every kind, more than two
// thousand proofs. PROOF_SEEDS sets how many seeds, PROOF_FROM where they begin.
import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { checkProof, type Report } from '../../examples/check-proof.ts';
import type { HiddenServer, Kind } from '../simulation/hidden-server.ts';
import { isCrowded, openSeed, startMs } from '../simulation/judge.ts';
import { kindNamed, kinds } from '../simulation/kinds.ts';
import { eraseFromProof, proveSweep, type SimulatedProof, toProofLines } from '../simulation/simulated-proof.ts';
import { createMemory, knownOf, type Memory } from '../simulation/simulated-reader.ts';
import { createRandom } from '../support/random.ts';

const isSample = process.env.PROOF_SEEDS === undefined;
const seeds = Number(process.env.PROOF_SEEDS ?? 1);
const firstSeed = Number(process.env.PROOF_FROM ?? 1);
/** Where something happens several times a second a sweep follows it for thousands of requests. */
const isBusy = ({ name }: Kind) => /churn|mix-order-modified/.test(name);
const timeout = 300_000 + seeds * 300_000;

/** Kinds that resemble each other stand side by side: one in four is of every family. */
const sampleOf = (list: readonly Kind[]) => (isSample ? list.filter((_, at) => at % 4 === 0) : list);

interface Case {
  readonly name: string;
  readonly proof: SimulatedProof;
  readonly memory: Memory;
}

/** A first sweep and, a night later, a recheck of every server that is not crowded. */
function* proofsOf(list: readonly Kind[], from = firstSeed): Generator<Case> {
  for (const kind of list.filter((one) => !isBusy(one))) {
    for (let seed = from; seed < from + seeds; seed++) {
      if (isCrowded(openSeed(kind, seed).server)) continue;
      const { random, server } = openSeed(kind, seed);
      const memory = createMemory(startMs);
      const crashes = random.chance(0.2) ? 0.05 : 0;
      const [lanes, pauseMs] = [random.pick([1, 1, 2, 4]), random.pick([100, 100, 20, 1_000])];
      const byteBudget = random.chance(0.2) ? 20_000 : Number.POSITIVE_INFINITY;
      const shared = { seed, crashes, lanes, pauseMs, byteBudget };
      yield* sweepTwice(`${kind.name} ${seed}`, server, memory, shared);
    }
  }
}

function* sweepTwice(
  name: string,
  server: HiddenServer,
  memory: Memory,
  options: Parameters<typeof proveSweep>[3] = {},
): Generator<Case> {
  const first = proveSweep(server, memory, 1n, options);
  yield { name: `${name}, first sweep`, proof: first, memory };
  memory.now += 20 * 3_600_000;
  server.passNight(memory.now);
  const again = proveSweep(server, memory, 2n, { ...options, known: knownOf(memory, 1) }, [
    { sweepId: 1n, hash: first.records.at(-1)?.hash ?? new Uint8Array(32) },
  ]);
  yield { name: `${name}, recheck`, proof: again, memory };
}

/** Why a report is not what the product says; nothing when it is. */
function toDifference({ name, proof }: Case, report: Report): string[] {
  const says = proof.result.done.certificate;
  if (report.supported && report.verdict === says) return [];
  const found = [...report.findings, ...report.certificates.flatMap((one) => one.findings)];
  return [`${name}: says ${says}, verdict ${report.verdict}: ${JSON.stringify(found[0])}`];
}

test('an honest proof is accepted, also where answers exceed the byte budget', { tags: ['slow'], timeout }, () => {
  const differences: string[] = [];
  let abandoned = 0;
  for (const name of ['cap-none', 'order-date']) {
    for (let seed = firstSeed; seed < firstSeed + 10; seed++) {
      const { server } = openSeed(kindNamed(name), seed);
      for (const one of sweepTwice(`${name} ${seed}`, server, createMemory(startMs), { seed, byteBudget: 20_000 })) {
        abandoned += one.proof.result.state.facts.overflowed ? 1 : 0;
        differences.push(...toDifference(one, checkProof(toProofLines(one.proof, one.memory))));
      }
    }
  }
  expect(differences).toEqual([]);
  expect(abandoned).toBeGreaterThan(20);
});

test('every honest proof is accepted, also after one person in a hundred was erased', {
  tags: ['slow'],
  timeout,
}, () => {
  const differences: string[] = [];
  let [proofs, proven] = [0, 0];
  const chosen = sampleOf(kinds);
  for (const one of proofsOf(chosen)) {
    proofs++;
    if (one.proof.result.done.certificate === 'proven') proven++;
    differences.push(...toDifference(one, checkProof(toProofLines(one.proof, one.memory))));
    const random = createRandom(proofs);
    const ids = [...one.memory.held.keys()].filter((_, at) => at === 0 || random.chance(0.01));
    const erased = new Set(ids);
    const report = checkProof(toProofLines(eraseFromProof(one.proof, erased), one.memory, erased));
    differences.push(...toDifference({ ...one, name: `${one.name}, ${erased.size} erased` }, report));
  }
  expect(differences).toEqual([]);
  expect(proofs).toBeGreaterThan(seeds * chosen.length);
  expect(proven).toBeGreaterThan(proofs / 10);
});

interface Line {
  type: string;
  n: number;
  hash: string;
  // biome-ignore lint/suspicious/noExplicitAny: a forger changes whatever is there.
  sealed: any;
  // biome-ignore lint/suspicious/noExplicitAny: the same.
  [member: string]: any;
}

const sha256 = (...parts: Uint8Array[]) => hash('sha256', Buffer.concat(parts), 'buffer');

/** As docs/proof-format.md defines it. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}

function rootOf(leaves: readonly (string | null)[][]): string | null {
  let level = leaves.map(([id, at, mark, salt]) =>
    sha256(Buffer.of(0), Buffer.from(salt ?? '', 'hex'), Buffer.from(`${id} ${at ?? '-'} ${mark}`)),
  );
  while (level.length > 1) {
    level = level.flatMap((left, at) => {
      if (at % 2 === 1) return [];
      const right = level[at + 1];
      return [right === undefined ? left : sha256(Buffer.of(1), left, right)];
    });
  }
  return level[0]?.toString('hex') ?? null;
}

/** What a forger with time does: numbers, counts, roots and every hash are computed anew. */
function reseal(lines: Line[]): Line[] {
  let before: Buffer = Buffer.alloc(32);
  let n = 0;
  const chain = lines.filter((line) => line.sealed !== undefined);
  for (const line of chain) {
    line.n = line.sealed.n = n++;
    if (line.type === 'answer') {
      line.sealed.knew = Math.min(line.sealed.knew, line.n - 1);
      const lacks = line.leaves.filter((leaf: string[]) => leaf[2] === 'lacking').length;
      Object.assign(line.sealed.answer, { lacks, rows: line.leaves.length - lacks, root: rootOf(line.leaves) });
    }
    before = sha256(before, Buffer.from(canonical(line.sealed)));
    line.hash = before.toString('hex');
  }
  const [head] = lines;
  if (head) head.certificates[0].last = chain.at(-1)?.hash;
  return lines;
}

const answersOf = (lines: readonly Line[]) => lines.filter((line) => line.type === 'answer');

/** The middle one, so that something stands before and after it. */
function middleOf<T>(list: readonly T[]): T {
  const found = list[list.length >> 1];
  if (found === undefined) throw new Error('There is none of these in the proof.');
  return found;
}

const withRows = (lines: readonly Line[]) => middleOf(answersOf(lines).filter((line) => line.leaves.length > 0));
const withClosed = (lines: readonly Line[]) =>
  middleOf(answersOf(lines).filter((line) => line.sealed.closed.length > 0));
const withoutLine = (lines: readonly Line[], line: Line) => lines.filter((one) => one !== line);

/** Records that closed a range, with whether the range holds an id that no other answer to a range question shows. */
function closingsOf(lines: readonly Line[]): { line: Line; isNeeded: boolean }[] {
  const shownIn = new Map<string, Set<Line>>();
  for (const line of answersOf(lines).filter((one) => one.sealed.question.purpose === 'range')) {
    for (const [id, , mark] of line.leaves) {
      if (mark !== 'lacking') shownIn.set(id, (shownIn.get(id) ?? new Set()).add(line));
    }
  }
  const isShownElsewhere = (id: bigint, line: Line) =>
    shownIn
      .get(String(id))
      ?.values()
      .some((other) => other !== line) === true;
  return answersOf(lines)
    .filter((line) => line.sealed.closed.length > 0)
    .map((line) => ({
      line,
      isNeeded: line.sealed.closed.some(([from, to]: [string, string | null]) => {
        // The first such id is soon found: no list of these servers has more ids without a gap.
        for (let id = BigInt(from); to === null || id <= BigInt(to); id++) if (!isShownElsewhere(id, line)) return true;
        return false;
      }),
    }));
}

/** Each takes the lines of an honest proof and gives those of a forged one; null where it has nothing to forge. */
const forgeries: Record<string, (lines: Line[]) => Line[] | null> = {
  'a record removed': (lines) => withoutLine(lines, middleOf(answersOf(lines))),
  'the last record removed': (lines) => withoutLine(lines, lines.findLast((line) => line.sealed !== undefined) as Line),
  'a record added': (lines) => {
    const at = lines.indexOf(middleOf(answersOf(lines)));
    return lines.toSpliced(at, 0, structuredClone(lines[at] as Line));
  },
  'two records in the other order': (lines) => {
    const at = lines.indexOf(middleOf(answersOf(lines)));
    return lines.with(at, lines[at + 1] as Line).with(at + 1, lines[at] as Line);
  },
  'an id removed from an answer': (lines) => {
    withRows(lines).leaves.pop();
    return lines;
  },
  'an id removed from an answer, its counts and its own hash made anew': (lines) => {
    const at = lines.indexOf(withRows(lines));
    lines[at]?.leaves.shift();
    const resealed = reseal(structuredClone(lines))[at] as Line;
    return lines.with(at, resealed);
  },
  'an id put into an answer': (lines) => {
    const line = withRows(lines);
    line.leaves.unshift(structuredClone(line.leaves[0]));
    return lines;
  },
  'a date changed': (lines) => {
    withRows(lines).leaves[0][1] = '1';
    return lines;
  },
  'a bound of a question widened': (lines) => {
    const { question } = withClosed(lines).sealed;
    question.after = '0';
    question.from = '1';
    return lines;
  },
  'a closed range widened': (lines) => {
    const [range] = withClosed(lines).sealed.closed;
    range[0] = String(BigInt(range[0]) - 1n);
    return lines;
  },
  'a witness dropped': (lines) =>
    withoutLine(lines, middleOf(answersOf(lines).filter((line) => line.sealed.question.purpose === 'witness'))),
  'an application deleted from the database': (lines) => {
    lines.find((line) => line.type === 'rows' && line.rows?.length > 0)?.rows.splice(0, 1);
    return lines;
  },
  'everything computed anew: a witness dropped': (lines) =>
    reseal(withoutLine(lines, middleOf(answersOf(lines).filter((line) => line.sealed.question.purpose === 'witness')))),
  'everything computed anew: a closed range widened': (lines) => {
    const line = answersOf(lines).find((one) => one.sealed.closed.some(([from]: [string]) => from !== '1'));
    if (line === undefined) return null;
    for (const range of line.sealed.closed) if (range[0] !== '1') range[0] = String(BigInt(range[0]) - 1n);
    line.sealed.question.from = line.sealed.closed[0][0];
    return reseal(lines);
  },
  'everything computed anew: the record that closed a range removed': (lines) =>
    reseal(withoutLine(lines, middleOf(closingsOf(lines).filter(({ isNeeded }) => isNeeded)).line)),
  'everything computed anew: an id that was held removed from every answer': (lines) => {
    const opening = lines.find((line) => line.type === 'sweep');
    if (!opening?.sealed.heldBefore) return null;
    const leaves: string[][] = answersOf(lines).flatMap((line) => line.leaves);
    // Somebody who came during the sweep may be left out unseen: only a noted hash tells.
    const arrived = new Set(leaves.filter((leaf) => leaf[2] === 'new').map((leaf) => leaf[0]));
    const [id] = leaves.find((leaf) => leaf[2] === 'held' && !arrived.has(leaf[0])) ?? [];
    if (id === undefined) return null;
    for (const line of answersOf(lines)) line.leaves = line.leaves.filter((leaf: string[]) => leaf[0] !== id);
    return reseal(lines);
  },
};

describe('a forged proof is refused', () => {
  /** Proofs that have something to forge: proven, with rows, witnesses and several closed ranges. */
  const keeps = kinds.filter(({ keeps: all }) => all.filtersBeforeCap && all.capAboveHalf && all.oneCurrentList);
  const makeHonest = () =>
    proofsOf(sampleOf(keeps))
      .filter(({ proof, memory }) => proof.result.done.certificate === 'proven' && memory.held.size > 30)
      .take(isSample ? 12 : seeds * 50)
      .map((one) => ({ ...one, lines: toProofLines(one.proof, one.memory) }))
      .toArray();
  let kept: ReturnType<typeof makeHonest> | undefined;
  // Made by the first test that needs them: a run that leaves these tests out still loads this file.
  const honest = () => {
    kept ??= makeHonest();
    return kept;
  };
  const parse = (lines: readonly string[]) => lines.map((line) => JSON.parse(line) as Line);
  const print = (lines: readonly Line[]) => lines.map((line) => JSON.stringify(line));

  test.each(Object.entries(forgeries))('%s', { tags: ['slow'], timeout }, (kind, forge) => {
    const accepted: string[] = [];
    let forged = 0;
    for (const { name, lines } of honest()) {
      const made = forge(parse(lines));
      if (made === null) continue;
      forged++;
      const report = checkProof(print(made));
      if (report.supported) accepted.push(`${name}: ${report.verdict}`);
      if (!kind.startsWith('everything') && report.verdict !== 'forged') accepted.push(`${name}: ${report.verdict}`);
    }
    expect(accepted).toEqual([]);
    expect(forged).toBeGreaterThan(4);
  });

  test('a certificate raised', { tags: ['slow'], timeout }, () => {
    const weak = proofsOf(sampleOf(kinds))
      .filter(({ proof }) => proof.result.done.certificate !== 'proven')
      .take(isSample ? 8 : seeds * 20)
      .toArray();
    const accepted = weak.filter(({ proof, memory }) => {
      const made = parse(toProofLines(proof, memory));
      if (made[0] !== undefined) made[0].certificates[0].certificate = 'proven';
      return checkProof(print(made)).supported;
    });
    expect(accepted.map(({ name }) => name)).toEqual([]);
    expect(weak.length).toBeGreaterThan(4);
  });

  test('everything computed anew: a sweep of a list in no order raised that saw only one filter act', {
    timeout,
  }, () => {
    const why = 'the filters were not seen to act before the page is cut off';
    for (const kind of kinds.filter(({ name }) => name === 'order-size' || name === 'order-random')) {
      const memory = createMemory(startMs);
      const proof = proveSweep(openSeed(kind, 1).server, memory, 1n, { seed: 1 });
      expect(proof.result.done).toMatchObject({ certificate: 'assumed', reason: why });
      const made = parse(toProofLines(proof, memory));
      if (made[0] !== undefined) made[0].certificates[0].certificate = 'proven';
      for (const line of made) if (line.type === 'end') line.sealed.certificate = 'proven';
      expect(checkProof(print(reseal(made)))).toMatchObject({ verdict: 'assumed', supported: false });
    }
  });

  test('everything computed anew: a record removed whose ids other answers show too is found by a noted hash', {
    timeout,
  }, () => {
    // Its ids follow each other without a gap: a range is covered by the pages that were cut off, too.
    const [one] = proofsOf(
      kinds.filter(({ name }) => name === 'deleted-return'),
      2,
    ).drop(1);
    if (one === undefined) throw new Error('There is no such server.');
    const made = parse(toProofLines(one.proof, one.memory));
    const noted = `${made[1]?.sealed.sweep}:${made[0]?.certificates[0].last}`;
    const { line } = middleOf(closingsOf(made).filter(({ isNeeded }) => !isNeeded));
    const without = print(reseal(withoutLine(made, line)));
    expect(checkProof(without)).toMatchObject({ verdict: 'proven', supported: true });
    expect(checkProof(without, { noted: [noted] })).toMatchObject({ verdict: 'forged', supported: false });
  });

  test('everything computed anew, against a hash that was noted before', { tags: ['slow'], timeout }, () => {
    for (const { lines } of honest()) {
      const made = parse(lines);
      const noted = `${made[1]?.sealed.sweep}:${made[0]?.certificates[0].last}`;
      expect(checkProof(lines, { noted: [noted] })).toMatchObject({ verdict: 'proven', supported: true });
      const answer = withRows(made);
      answer.sealed.tookMs += 1;
      expect(checkProof(print(reseal(made)), { noted: [noted] })).toMatchObject({ verdict: 'forged' });
    }
  });
});

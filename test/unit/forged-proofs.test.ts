// Proofs of simulated servers against the checker that shares no code with Intake: it accepts every honest one at the level that the sweep
// reached, also after people were erased, and refuses every forged one. `npm test` takes one kind of server in four; `PROOF_SEEDS=6 npm test -- test/unit/forged-proofs.test.ts` takes six
// seeds of every kind. PROOF_SEEDS sets how many seeds, PROOF_FROM where they begin.
import { describe, expect, test } from 'vitest';
import { checkProof, type Finding, type Report } from '../../examples/check-proof.ts';
import type { Kind } from '../simulation/hidden-server.ts';
import { isCrowded, openSeed, startMs } from '../simulation/judge.ts';
import { kindNamed, kinds } from '../simulation/kinds.ts';
import { proveSweep, type SimulatedProof, toProofLines } from '../simulation/simulated-proof.ts';
import { createMemory, type Memory, type SweepOptions } from '../simulation/simulated-reader.ts';
import { forge, type Json } from '../support/forged-proof.ts';
import { createRandom } from '../support/random.ts';

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

test('an honest proof is accepted, at the level and with the risk that its sweep reached, also after people were erased', {
  tags: ['slow'],
  timeout,
}, () => {
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

/** A proven first sweep of a few pages, and a proven recheck. */
const [firstSweep, recheck] = (() => {
  const server = kindNamed('friendly').create(7, { startMs, still: true, rows: 400, page: 40 });
  const memory = createMemory(startMs);
  const first = proveSweep(server, memory, 1n, { seed: 7 });
  const lines = toProofLines(first, memory);
  memory.now += 20 * 3_600_000;
  const previous = [{ sweepId: 1n, last: first.lines.at(-1)?.hash ?? null }];
  return [lines, toProofLines(proveSweep(server, memory, 2n, { seed: 8, known: true }, previous), memory)];
})();

test('the proofs that are forged here are proven before', () => {
  for (const lines of [firstSweep, recheck]) {
    expect(checkProof(lines)).toMatchObject({ verdict: 'proven', supported: true, findings: [] });
  }
});

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

const isAnswer = ({ type }: Json) => type === 'answer';
const isClosing = (line: Json) => isAnswer(line) && line.closed === 'known';
const isSplit = (line: Json) => isAnswer(line) && line.open !== undefined;
const isWitness = (line: Json) => isAnswer(line) && line.purpose === 'witness';
/** The middle one, so that something stands before and after it. */
const middle = (lines: readonly Json[], is: (line: Json) => boolean): Json => {
  const found = lines.filter(is);
  return found[found.length >> 1];
};
const rowsOf = (lines: readonly Json[]) => lines.filter(({ type }) => type === 'rows').flatMap(({ rows }) => rows);
const endOf = (lines: readonly Json[]) => lines.find(({ type }) => type === 'end');
const sentAt = startMs + 20 * 3_600_000;

/** What a forger with time does: every hash is computed anew. Each edit, and the verdict that it gets. */
const edits: [what: string, verdict: string, edit: (lines: Json[]) => Json[] | undefined][] = [
  ['a closing is removed', 'unproven', (lines) => lines.toSpliced(lines.indexOf(middle(lines, isClosing)), 1)],
  ['a witness is removed', 'unproven', (lines) => lines.filter((line) => !(isWitness(line) && line.byDate))],
  ['the end is removed', 'forged', (lines) => lines.filter(({ type }) => type !== 'end')],
  [
    'a page that splits its range closes it',
    'unproven',
    (lines) => {
      const line = middle(lines, isSplit);
      Object.assign(line, { closed: 'known', open: undefined });
      return undefined;
    },
  ],
  [
    'a closing is by another rule',
    'unproven',
    (lines) => void Object.assign(middle(lines, isClosing), { closed: 'empty' }),
  ],
  [
    'a closing covers less than it says',
    'unproven',
    (lines) => {
      const line = middle(lines, isClosing);
      line.afterId = String(BigInt(line.from) + 5n);
      return undefined;
    },
  ],
  ['a closing shows an id as new', 'forged', (lines) => void Object.assign(middle(lines, isClosing), { new: 'all' })],
  [
    'a closing lacks a stored id',
    'unproven',
    (lines) => {
      const line = middle(lines, isClosing);
      const [first, ...rest] = line.ids.split(' ');
      line.ids = rest.with(0, String(BigInt(first) + BigInt(rest[0]))).join(' ');
      line.lacking = first;
      return undefined;
    },
  ],
  [
    'a page has more rows than it may have to close',
    'unproven',
    (lines) => void Object.assign(middle(lines, isClosing), { unreadable: 30 }),
  ],
  [
    'a page has more bytes than it may have to close',
    'unproven',
    (lines) => {
      const closing = middle(lines, isClosing);
      closing.bytes = Math.max(...lines.filter(isAnswer).map(({ bytes = 0 }) => bytes));
      return undefined;
    },
  ],
  ['a split leaves a part out', 'unproven', (lines) => void middle(lines, isSplit).open.pop()],
  [
    'a split moves a part',
    'unproven',
    (lines) => {
      const { open } = middle(lines, isSplit);
      open[0][0] = String(BigInt(open[0][0]) + 1n);
      return undefined;
    },
  ],
  [
    'an answer repeats other filters',
    'unproven',
    (lines) => void Object.assign(middle(lines, isAnswer), { echo: 'differs' }),
  ],
  [
    'an answer shows an id that is not stored',
    'forged',
    (lines) => void Object.assign(middle(lines, isWitness), { ids: '99999999' }),
  ],
  [
    'a witness shows an id that was hidden',
    'unproven',
    (lines) => {
      const witness = middle(lines, (line) => isWitness(line) && line.ids !== undefined);
      const id = witness.ids.split(' ')[0];
      for (const line of lines.slice(0, lines.indexOf(witness)))
        if (line.ids !== undefined) line.ids = without(line.ids, id);
      for (const [nth, row] of rowsOf(lines).entries())
        if (row[0] === id) rowsOf(lines)[nth][1] = String(sentAt / 1_000);
      witness.new = id;
      return undefined;
    },
  ],
  ['a stored row is taken out of the database', 'forged', (lines) => void lines.at(-1).rows.splice(50, 1)],
  [
    'a row was stored after the sweep',
    'forged',
    (lines) => void Object.assign(rowsOf(lines)[50], { 1: String(sentAt / 1_000 + 90_000) }),
  ],
  [
    'somebody stored before is taken out of all answers',
    'forged',
    (lines) => {
      const id = rowsOf(lines)[50][0];
      for (const line of lines) if (line.ids !== undefined) line.ids = without(line.ids, id);
      return undefined;
    },
  ],
  ['the end leaves a range open', 'unproven', (lines) => void Object.assign(endOf(lines), { open: [['5', '9']] })],
  ['the end names ids as absent', 'unproven', (lines) => void Object.assign(endOf(lines), { absent: 3 })],
  [
    'an audit shows somebody new',
    'unproven',
    (lines) => {
      const audit = {
        type: 'audit',
        sentAt,
        tookMs: 5,
        from: '1',
        to: null,
        ids: rowsOf(lines)[50][0],
        new: 'all',
        bytes: 9,
      };
      rowsOf(lines)[50][1] = String(sentAt / 1_000);
      for (const line of lines) if (line.ids !== undefined) line.ids = without(line.ids, audit.ids);
      return lines.toSpliced(lines.indexOf(endOf(lines)) + 1, 0, audit);
    },
  ],
  [
    'an audit shows an id that was left out',
    'unproven',
    (lines) => {
      const [id] = rowsOf(lines)[50];
      const shared = { type: 'audit', sentAt, tookMs: 5, bytes: 9 };
      const without = { ...shared, from: String(BigInt(id) - 1n), to: id };
      return lines.toSpliced(lines.indexOf(endOf(lines)) + 1, 0, without, { ...shared, from: id, to: id, ids: id });
    },
  ],
  [
    'an answer follows the end',
    'forged',
    (lines) => {
      return lines.toSpliced(lines.indexOf(endOf(lines)) + 1, 0, structuredClone(middle(lines, isAnswer)));
    },
  ],
  ['the sweep is of another advertiser', 'forged', (lines) => void Object.assign(lines[1], { advertiser: '8' })],
  ['the certificate speaks of more ids', 'forged', (lines) => void Object.assign(lines[1], { from: '2' })],
  [
    'the certificate speaks of fewer ids',
    'unproven',
    (lines) => void Object.assign(lines[0].certificates[0], { low: '2' }),
  ],
  [
    'the certificate gives another reason',
    'forged',
    (lines) => void Object.assign(lines[0].certificates[0], { reason: 'trust me' }),
  ],
  [
    'the certificate reaches further',
    'forged',
    (lines) => void Object.assign(lines[0].certificates[0], { completeThrough: sentAt }),
  ],
  [
    'the sweep began later',
    'forged',
    (lines) => void Object.assign(lines[1], { startedAt: lines[1].startedAt + 60_000 }),
  ],
];

function without(list: string, id: string): string | undefined {
  let last = 0n;
  const ids = list.split(' ').map((part) => (last += BigInt(part)));
  const left = ids.filter((one) => String(one) !== id);
  return left.map((one, nth) => one - (left[nth - 1] ?? 0n)).join(' ') || undefined;
}

describe('a file over which every hash was computed anew', () => {
  test.each(edits)('%s: %s', (what, verdict, edit) => {
    const forged = forge(recheck, edit);
    const report = checkProof(forged);
    expect(`${what}: ${report.verdict}`).toBe(`${what}: ${verdict}`);
    expect(report.supported).toBe(what.includes('fewer ids'));
  });

  test('closes a range although the page shows somebody new', () => {
    const forged = forge(firstSweep, (lines) => {
      const closing = middle(lines, isClosing);
      const [id] = closing.ids.split(' ');
      for (const line of lines.slice(0, lines.indexOf(closing))) {
        if (line.ids) line.ids = without(line.ids, id);
        if (line.new !== undefined && line.new !== 'all') line.new = without(line.new, id);
      }
      return void Object.assign(closing, { new: id });
    });
    expect(checkProof(forged)).toMatchObject({ verdict: 'unproven', supported: false });
    expect(JSON.stringify(checkProof(forged))).toContain('the page shows new ids');
  });

  test('shows somebody who was stored a day later', () => {
    const later = String(startMs / 1_000 + 90_000);
    const forged = forge(firstSweep, (lines) => void Object.assign(rowsOf(lines)[50], { 1: later }));
    expect(checkProof(forged)).toMatchObject({ verdict: 'forged', supported: false });
    expect(JSON.stringify(checkProof(forged))).toContain('was stored later');
  });

  test('is found by a hash that was noted before', () => {
    const noted = [`2:${/"last":"(\w+)"/.exec(recheck[0] as string)?.[1]}`];
    const redated = forge(recheck, (lines) => void Object.assign(middle(lines, isAnswer), { tookMs: 11 }));
    expect(checkProof(redated)).toMatchObject({ verdict: 'proven', supported: true });
    expect(checkProof(redated, noted)).toMatchObject({ verdict: 'forged', supported: false });
    expect(checkProof(recheck, noted)).toMatchObject({ verdict: 'proven', supported: true });
  });

  test(
    'says more than its lines support, by level or by risk',
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
          const forged = forge(toProofLines(proof, memory), (lines) => {
            Object.assign(endOf(lines), { certificate: level, risk: its });
            return void Object.assign(lines[0].certificates[0], { certificate: level, risk: its });
          });
          if (checkProof(forged).supported) raised.push(`${name}: ${certificate} ${risk} as ${level} ${its}`);
        }
      }
      expect(raised).toEqual([]);
      expect(tried).toBeGreaterThan(20);
    },
    timeout,
  );
});

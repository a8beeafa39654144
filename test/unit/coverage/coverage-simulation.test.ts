// Every kind of hidden server, read for two days. COVERAGE_SEEDS sets how many seeds of each kind, COVERAGE_FROM where they begin, and
// COVERAGE_KIND names one kind: COVERAGE_KIND=order-date COVERAGE_FROM=7 COVERAGE_SEEDS=1 replays one server.
import { expect, test } from 'vitest';
import type { Kind } from '../../simulation/hidden-server.ts';
import { type JudgedSweep, judgeSeed, openSeed, startMs, type Verdict } from '../../simulation/judge.ts';
import { kinds } from '../../simulation/kinds.ts';
import { createMemory, runAudit, runSweep } from '../../simulation/simulated-reader.ts';
import { createRandom } from '../../support/suite/random.ts';

const only = process.env.COVERAGE_KIND;
const perKind = process.env.COVERAGE_SEEDS === undefined ? null : Number(process.env.COVERAGE_SEEDS);
const from = Number(process.env.COVERAGE_FROM ?? 0);
const isWhole = only === undefined && from === 0;

const chosen = kinds.filter(({ name }) => only === undefined || name === only);
const keepsAll = ({ keeps }: Kind) => keeps.filtersBeforeCap && keeps.capAboveHalf && keeps.oneCurrentList;

/** Where something happens several times a second a sweep follows it for thousands of requests: many seconds of CPU for one seed. */
const isBusy = ({ name }: Kind) => /churn|mix-order-modified/.test(name);

/** Seeds of a kind; a seed of a busy kind is left to long runs. */
const seedsOf = (kind: Kind) => perKind ?? (isBusy(kind) ? 0 : keepsAll(kind) ? 3 : 2);

const judged = new Map<string, Verdict[]>();

/** Each server is judged once for the whole file. */
function judge(kind: Kind): Verdict[] {
  const known = judged.get(kind.name);
  if (known) return known;
  const verdicts = Array.from({ length: seedsOf(kind) }, (_, nth) => judgeSeed(kind, from + nth));
  judged.set(kind.name, verdicts);
  return verdicts;
}

/** The sweeps of which something is true, as lines that say how to replay them. */
function find(list: readonly Kind[], is: (sweep: JudgedSweep) => boolean): string[] {
  return list.flatMap((kind) =>
    judge(kind).flatMap(({ seed, sweeps }) =>
      sweeps.flatMap((sweep, nth) => {
        const { name, certificate, risk, reason, lost } = sweep;
        if (!is(sweep)) return [];
        return `COVERAGE_KIND=${kind.name} COVERAGE_FROM=${seed} COVERAGE_SEEDS=1: sweep ${nth + 1} (${name}) ${certificate}, ${risk} (${reason}), ${lost} lost`;
      }),
    ),
  );
}

const timeout = 300_000 + chosen.reduce((sum, kind) => sum + seedsOf(kind) * 2_000, 0);

test('where the assumptions hold nobody is lost by a sweep that is called proven, or without a doubt: one seed of each kind', () => {
  const list = chosen.filter((kind) => keepsAll(kind) && seedsOf(kind) > 0);
  const wrong = list.filter((kind) =>
    judgeSeed(kind, from).sweeps.some(({ isFalseProof, isSilentLoss }) => isFalseProof || isSilentLoss),
  );
  expect(wrong.map(({ name }) => name)).toEqual([]);
});

test('where the assumptions hold nobody is lost so, by any seed', { tags: ['slow'], timeout }, () => {
  expect(find(chosen.filter(keepsAll), ({ isFalseProof, isSilentLoss }) => isFalseProof || isSilentLoss)).toEqual([]);
});

test.runIf(isWhole)(
  'where the assumptions hold many first sweeps and rechecks are proven (counted over every kind: npm test -- test/unit/coverage/coverage-simulation.test.ts)',
  { tags: ['slow'], timeout },
  () => {
    const list = chosen.filter(keepsAll);
    const all = find(list, ({ name }) => name !== 'poll').length;
    const proven = find(list, ({ name, certificate }) => name !== 'poll' && certificate === 'proven').length;
    expect(proven / all).toBeGreaterThan(0.25);
    // A simulation in which everything is proven would be green for the wrong reason, too.
    expect(find(list, ({ certificate }) => certificate === 'unproven').length).toBeGreaterThan(0);
  },
);

test.runIf(isWhole)(
  'where they do not hold some people are lost, and most losses are noticed (counted over every kind: npm test -- test/unit/coverage/coverage-simulation.test.ts)',
  { tags: ['slow'], timeout },
  () => {
    const list = chosen.filter((kind) => !keepsAll(kind));
    const losses = find(list, ({ lost, name }) => lost > 0 && name !== 'poll').length;
    const silent = find(list, ({ isSilentLoss, name }) => isSilentLoss && name !== 'poll').length;
    expect(losses).toBeGreaterThan(20);
    expect(silent / losses).toBeLessThan(0.6);
    expect(find(list, ({ risk }) => risk === 'doubt').length).toBeGreaterThan(20);
  },
);

/** Audits the proof of a first sweep 20 times; gives the number of contradictions. */
function countContradictions(kind: Kind, seed: number): number {
  const { server } = openSeed(kind, seed);
  const memory = createMemory(startMs);
  const { done } = runSweep(server, memory, { seed });
  if (done.certificate !== 'proven') return 0;
  const random = createRandom(seed);
  const audit = { provenAt: startMs - 900_000, pages: done.pages, random: () => random.next() };
  return Array.from({ length: 20 }, () => runAudit(server, memory, audit)).filter((isFound) => isFound).length;
}

test('where the assumptions hold audits contradict no proof', { tags: ['slow'], timeout }, () => {
  const list = chosen.filter((kind) => keepsAll(kind) && !isBusy(kind));
  const contradicted = list.flatMap((kind) =>
    Array.from({ length: seedsOf(kind) }, (_, nth) => from + nth)
      .filter((seed) => countContradictions(kind, seed) > 0)
      .map((seed) => `COVERAGE_KIND=${kind.name} COVERAGE_FROM=${seed} COVERAGE_SEEDS=1`),
  );
  expect(contradicted).toEqual([]);
});

// Thousands of servers with hidden semantics. COVERAGE_SEEDS sets how many, COVERAGE_FROM where they begin, COVERAGE_SEED replays one.

import { expect, test } from 'vitest';
import { beyondProof, judgeSeed, type Verdict } from '../support/coverage-matrix.ts';
import { kindNames } from '../support/simulated-source.ts';

const one = process.env.COVERAGE_SEED;
const from = one === undefined ? Number(process.env.COVERAGE_FROM ?? 0) : Number(one);
const count = one === undefined ? Number(process.env.COVERAGE_SEEDS ?? 5000) : 1;

test('no server of any kind makes the sweep lose what it calls proven, or lose anyone where the list can be enumerated', {
  timeout: 60_000 + count * 20,
}, () => {
  const verdicts: Verdict[] = [];
  for (let seed = from; seed < from + count; seed++) verdicts.push(judgeSeed(seed));
  const wrong = verdicts.filter((verdict) => verdict.wrongs.length > 0);
  const report = wrong.map(({ seed, kind, wrongs }) => `COVERAGE_SEED=${seed} (${kind}): ${wrongs.join('; ')}`);
  expect(report).toEqual([]);
  if (one !== undefined) return;
  // A simulation in which nothing is ever proven, or nothing ever refused, would be green for the wrong reason.
  const called = (certificate: string) =>
    new Set(verdicts.filter((v) => v.certificate === certificate).map((v) => v.kind));
  // Three in ten are proven: half of the kinds cannot be, and an account of fewer than sixteen applications never is.
  expect(verdicts.filter((verdict) => verdict.certificate === 'proven').length).toBeGreaterThan(count / 4);
  expect([...called('unproven')]).toEqual(
    expect.arrayContaining(['echo wrong', 'a filter ignored', 'always something new']),
  );
  expect([...called('assumed')]).toEqual(expect.arrayContaining(['echo absent', 'one filter only, in its order']));
  expect(new Set(verdicts.map((verdict) => verdict.kind)).size).toBe(kindNames.length);
  const deceivers = new Set(verdicts.filter((verdict) => verdict.deceived).map((verdict) => verdict.kind));
  expect([...deceivers].filter((kind) => !beyondProof.has(kind))).toEqual([]);
  expect(deceivers.size).toBeGreaterThan(0);
});

test.each([
  ['a post on a full page', [409, 653, 2212]],
  ['a post in a list that skips held ids', [153, 1354]],
])('the servers that broke the rule when it took %s for whole are read well', (_, seeds) => {
  const kind = 'chosen in one order, shown in that of ids';
  for (const seed of seeds) expect(judgeSeed(seed, kind)).toMatchObject({ wrongs: [], deceived: false });
});

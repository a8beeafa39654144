// Prints what a sweep costs and how often it proves, per kind of server, as the table in docs/coverage.md:
// npm run coverage:costs -- [seeds per kind]. The figures are of first sweeps over a few hundred applications.

import { judgeSeed, type Verdict } from '../test/support/coverage-matrix.ts';
import { createSimulatedSource, kindNames, type Order } from '../test/support/simulated-source.ts';
import { runSweep } from '../test/support/simulated-sweep.ts';

const seeds = Number(process.argv[2] ?? 200);
const line = (cells: readonly (string | number)[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`);

const orders: readonly Order[] = [
  'ascending',
  'descending',
  'by date',
  'by date, newest first',
  'shuffled',
  'another on every request',
];
const cap = 100;

line([`pages of ${cap}`, 'applications', 'first sweep', 'x items / cap', 'recheck', 'x items / cap']);
line(['---', '---', '---', '---', '---', '---']);
for (const [order, count] of [...orders.map((one) => [one, 2_000] as const), ...sorted()]) {
  const traits = { order, cap, inclusiveAfter: false, inclusiveBefore: false };
  const source = createSimulatedSource(7, { kind: 'no cap', still: true, count, traits });
  const held = new Set<bigint>();
  const first = runSweep(source, { held });
  const again = runSweep(source, { held, known: { positions: source.visibleNow(), stride: 1 } });
  const cost = (requests: number) => ((requests * cap) / count).toFixed(2);
  line([order, count, first.requests, cost(first.requests), again.requests, cost(again.requests)]);
}

/** Where a sorted list gets to when the fixed costs of a sweep no longer count. */
function sorted() {
  return orders.slice(0, 2).map((order) => [order, 20_000] as const);
}

process.stdout.write('\n');
line(['kind of server', 'requests per application', 'proven', 'assumed', 'unproven', 'lost anyone', 'proven, wrongly']);
line(['---', '---', '---', '---', '---', '---', '---']);
for (const kind of kindNames) {
  const verdicts: Verdict[] = [];
  for (let seed = 0; seed < seeds; seed++) verdicts.push(judgeSeed(seed, kind));
  const sum = (of: (verdict: Verdict) => number) => verdicts.reduce((total, verdict) => total + of(verdict), 0);
  const share = (of: (verdict: Verdict) => boolean) => `${Math.round((100 * verdicts.filter(of).length) / seeds)} %`;
  line([
    kind,
    (sum((verdict) => verdict.requests) / sum((verdict) => verdict.applications)).toFixed(2),
    share((verdict) => verdict.certificate === 'proven'),
    share((verdict) => verdict.certificate === 'assumed'),
    share((verdict) => verdict.certificate === 'unproven'),
    share((verdict) => verdict.lost > 0),
    share((verdict) => verdict.deceived),
  ]);
}

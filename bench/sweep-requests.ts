// How many requests a proven sweep needs, against the least possible: one per full page. 2,000 applications in pages of 100, listed in
// order; the first reading knows nothing, the recheck knows the ids. Pure reasoning, no clock: the figure is the same on every machine.

import { createSimulatedSource } from '../test/support/simulated-source.ts';
import { runSweep } from '../test/support/simulated-sweep.ts';
import { type Figure, report } from './figure.ts';

export async function* measure(): AsyncGenerator<Figure> {
  const pages = 20;
  const traits = { order: 'ascending', cap: 100, inclusiveAfter: false, inclusiveBefore: false } as const;
  const source = createSimulatedSource(7, { kind: 'no cap', still: true, count: pages * 100, traits });
  const held = new Set<bigint>();
  const first = runSweep(source, { held });
  const known = { positions: source.visibleNow().filter((_, index) => index % 5 === 4), stride: 5 };
  const again = runSweep(source, { held, known });
  const anchor = `the least possible: ${pages} pages`;
  const row = { anchor, ours: null, theirs: null };
  const note = (requests: number) => `${requests} requests`;
  yield {
    ...row,
    figure: 'requests of a proven sweep, first time',
    ratio: first.requests / pages,
    goal: { atMost: 3.2 },
    note: note(first.requests),
  };
  yield {
    ...row,
    figure: 'requests of a recheck that knows the ids',
    ratio: again.requests / pages,
    goal: { atMost: 1.3 },
    note: note(again.requests),
  };
}

if (import.meta.main) await report(measure);

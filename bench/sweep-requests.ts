// How many requests a proven sweep needs, against the least possible: one per full page. 20,000 applications in pages of 100, listed in
// order, so that the few questions of every sweep about its edges do not count for much; the first reading knows nothing, the recheck knows the ids. Pure reasoning, no clock: the figure is the same on every machine.

import { createSimulatedSource } from '../test/support/simulated-source.ts';
import { runSweep } from '../test/support/simulated-sweep.ts';
import { type Figure, report } from './figure.ts';

export async function* measure(): AsyncGenerator<Figure> {
  const [large, small] = [200, 20].map((pages) => ({ pages, ...count(pages) })) as [Counted, Counted];
  const row = { anchor: `the least possible: ${large.pages} pages`, ours: null, theirs: null };
  const note = (of: 'first' | 'again') => `${large[of]} requests; ${small[of]} for ${small.pages} pages`;
  yield {
    ...row,
    figure: 'requests of a proven sweep, first time',
    ratio: large.first / large.pages,
    goal: { atMost: 3.2 },
    note: note('first'),
  };
  yield {
    ...row,
    figure: 'requests of a recheck that knows the ids',
    ratio: large.again / large.pages,
    goal: { atMost: 1.3 },
    note: note('again'),
  };
}

interface Counted {
  readonly pages: number;
  readonly first: number;
  readonly again: number;
}

function count(pages: number): Omit<Counted, 'pages'> {
  const traits = { order: 'ascending', cap: 100, inclusiveAfter: false, inclusiveBefore: false } as const;
  const source = createSimulatedSource(7, { kind: 'no cap', still: true, count: pages * traits.cap, traits });
  const held = new Set<bigint>();
  const first = runSweep(source, { held });
  const again = runSweep(source, { held, known: { positions: source.visibleNow(), stride: 1 } });
  return { first: first.requests, again: again.requests };
}

if (import.meta.main) await report(measure);

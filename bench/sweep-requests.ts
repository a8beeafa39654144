// Counts the requests of a proven sweep, against the least possible: one per full page. 20,000 applications in pages of 100, sorted by
// id. The first sweep knows nothing, the recheck knows the ids. Nothing is timed, so the figure is the same on every machine.
import { kindNamed } from '../test/simulation/kinds.ts';
import { createMemory, runSweep } from '../test/simulation/simulated-reader.ts';
import { type Figure, report } from './support/figure.ts';

export async function* measure(): AsyncGenerator<Figure> {
  const [large, small] = [200, 20].map((pages) => ({ pages, ...count(pages) })) as [Counted, Counted];
  const row = { anchor: `the least possible: ${large.pages} pages`, ours: null, theirs: null };
  const note = (of: 'first' | 'again') => `${large[of]} requests; ${small[of]} for ${small.pages} pages`;
  yield {
    ...row,
    figure: 'requests of a proven sweep, first time',
    ratio: large.first / large.pages,
    goal: { atMost: 3.5 },
    note: note('first'),
  };
  yield {
    ...row,
    figure: 'requests of a recheck that knows the ids',
    ratio: large.again / large.pages,
    goal: { atMost: 2.5 },
    note: note('again'),
  };
}

interface Counted {
  readonly pages: number;
  readonly first: number;
  readonly again: number;
}

const pageSize = 100;
const startMs = 1_790_000_000_000;

function count(pages: number): Omit<Counted, 'pages'> {
  const server = kindNamed('friendly').create(7, { startMs, still: true, rows: pages * pageSize, page: pageSize });
  const memory = createMemory(startMs);
  const first = runSweep(server, memory);
  memory.now += 86_400_000;
  const again = runSweep(server, memory, { known: true });
  return { first: first.requests, again: again.requests };
}

if (import.meta.main) await report(measure);

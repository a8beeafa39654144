// Loads the same applications from XML pages and from JSON pages: text to rows, without a network. JSON is the default; this figure shows
// the extra cost of XML.

import { createBoard, createLocalSource } from './support/board.ts';
import { type Figure, interleave, report, type Size, toCount, toCpuMs } from './support/figure.ts';
import { loadPages } from './support/loading.ts';
import { openPlace } from './support/place.ts';

export async function* measure(size: Size): AsyncGenerator<Figure> {
  const applications = toCount(size, 20_000);
  await using place = await openPlace();
  const board = createBoard(applications);
  const load = (format: 'json' | 'xml') => {
    const source = createLocalSource(board, format);
    return async () => {
      await using database = await place.openDatabase();
      return await place.meter(() => loadPages(database.url, source, applications));
    };
  };
  const sides = { xml: load('xml'), json: load('json') };
  // Untimed, because the board renders its answers at the first request.
  await interleave(1, sides);
  const { xml, json } = await interleave(size.repeats, sides);
  yield {
    figure: 'XML list',
    anchor: `JSON list, the same ${applications} applications, text to rows`,
    ratio: json.wallMs / xml.wallMs,
    goal: { atLeast: 0.35 },
    ours: xml,
    theirs: json,
    note: `by CPU ${(toCpuMs(json) / toCpuMs(xml)).toFixed(2)}`,
  };
}

if (import.meta.main) await report(measure);

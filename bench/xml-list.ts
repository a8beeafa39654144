// The same applications loaded from XML pages and from JSON pages: text to rows, no network. JSON is the default for good reason; this
// says what the other costs.

import { createBoard, createLocalSource, pageCap } from './board.ts';
import { type Figure, interleave, report, type Size, toCount, toCpuMs } from './figure.ts';
import { loadPages } from './loading.ts';
import { openPlace } from './place.ts';

export async function* measure(size: Size): AsyncGenerator<Figure> {
  const applications = toCount(size, 20_000);
  await using place = await openPlace();
  const board = createBoard(applications);
  const load = (format: 'json' | 'xml') => {
    for (let after = 0; after < applications; after += pageCap) {
      board.list({ after, before: null, afterDate: null, beforeDate: null }, format);
    }
    return async () => {
      await using database = await place.openDatabase();
      return await place.meter(() =>
        loadPages(database.url, createLocalSource(board, format), { applications, writers: 1 }),
      );
    };
  };
  const { xml, json } = await interleave(size.repeats, { xml: load('xml'), json: load('json') });
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

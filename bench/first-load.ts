// Measures how fast pages of 500 new applications become rows, against the fastest and the usual way to write the same rows.
// Intake uses one lane. It reads each page once, parses the next page while it writes one, and commits rows, queued downloads, events,
// progress and cursor in one fenced transaction per page. The anchor is the best that Postgres can do: COPY of the same rows, encoded
// beforehand and read from the server's own disk, in one transaction, into the same tables with the same indexes and keys. The note
// compares with the same COPY in one transaction per page, which includes the cost of commits. The usual way is a loop of drizzle upserts,
// one transaction per page.

import { createBoard, createLocalSource, pageCap } from './support/board.ts';
import { type Copies, openCopies } from './support/copies.ts';
import { type Figure, interleave, report, type Size, toCount, toCpuMs } from './support/figure.ts';
import { loadPages } from './support/loading.ts';
import { type Cost, openPlace } from './support/place.ts';
import { loadRowByRow } from './support/row-by-row.ts';

export async function* measure(size: Size): AsyncGenerator<Figure> {
  const applications = toCount(size, 20_000);
  const few = toCount(size, 5_000);
  await using place = await openPlace();
  const source = createLocalSource(createBoard(applications));
  const load = (count: number) => async () => {
    await using database = await place.openDatabase();
    return await place.meter(() => loadPages(database.url, source, count));
  };
  // The first load also makes the board render its answers. It is not timed.
  const loaded = (url: string) => loadPages(url, source, applications);
  await using whole = await openCopies(place, loaded);
  await using paged = await openCopies(place, loaded, pageCap);
  const fill = (copies: Copies) => async () => {
    await using database = await place.openDatabase();
    return await place.meter(() => copies.fill(database));
  };
  const costs = await interleave(size.shortRepeats, {
    lane: load(applications),
    copy: fill(whole),
    pages: fill(paged),
  });
  const { lane, copy, pages } = costs;
  const toNote = (ours: Cost) => {
    const [byCpu, byPages] = [toCpuMs(copy) / toCpuMs(ours), pages.wallMs / ours.wallMs];
    return `by CPU ${byCpu.toFixed(2)}; ${byPages.toFixed(2)}x of COPY that commits every page`;
  };
  const anchor = `raw COPY of the same ${applications} applications, encoded beforehand, same tables, indexes and keys`;
  yield {
    figure: 'first load, pages of 500',
    anchor,
    ratio: copy.wallMs / lane.wallMs,
    goal: { atLeast: 0.8 },
    ours: lane,
    theirs: copy,
    note: toNote(lane),
  };
  const { ours, theirs } = await interleave(size.repeats, {
    ours: load(few),
    theirs: async () => {
      await using database = await place.openDatabase();
      return await place.meter(() => loadRowByRow(database.url, source, few));
    },
  });
  yield {
    figure: 'first load against a loop of upserts',
    anchor: `drizzle, row by row, a transaction per page, the same ${few} applications`,
    ratio: theirs.wallMs / ours.wallMs,
    goal: { atLeast: 25 },
    ours,
    theirs,
    note: `by CPU ${(toCpuMs(theirs) / toCpuMs(ours)).toFixed(1)}`,
  };
}

if (import.meta.main) await report(measure);

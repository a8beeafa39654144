// Measures memory and throughput as an account grows from 10,000 to 1,000,000 applications: `intake sync --no-files` runs as a separate
// process, reads a board over HTTP and proves the list complete. Its peak memory is the kernel's high-water mark. The goals are about
// memory; the note reports the throughput. The plots in docs/images show the same points.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Figure, report, type Size } from './figure.ts';
import { type BenchDatabase, type Cost, openPlace } from './place.ts';
import { renderPlot } from './plot.ts';
import { openBoardServer } from './servers.ts';
import { watchPeak } from './watching.ts';

interface Point {
  readonly applications: number;
  readonly perSecond: number;
  readonly peakBytes: number;
  readonly cost: Cost;
}

const sizes = { full: [10_000, 30_000, 100_000, 300_000, 1_000_000], quick: [10_000, 30_000] };
const main = join(import.meta.dirname, '../src/cli/main.ts');

export async function* measure(size: Size): AsyncGenerator<Figure> {
  await using place = await openPlace();
  const points: Point[] = [];
  for (const applications of size.quick ? sizes.quick : sizes.full) {
    await using board = await openBoardServer('board', applications);
    await using database = await place.openDatabase();
    let peakBytes = 0;
    const cost = await place.meter(async () => {
      peakBytes = await sync(database, board);
    });
    const [row] = await database.query<{ count: number }>('SELECT count(*)::int FROM intake.applications');
    if (row?.count !== applications) throw new Error(`${row?.count} of ${applications} applications came.`);
    points.push({ applications, perSecond: (applications * 1_000) / cost.wallMs, peakBytes, cost });
  }
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last) return;
  if (!size.quick) drawPlots(points);
  const rows = points.map((point) => {
    const cpuUs = ((point.cost.nodeMs + point.cost.postgresMs) * 1_000) / point.applications;
    return `${point.applications}: ${toMb(point.peakBytes)} MB, ${Math.round(point.perSecond)}/s, ${cpuUs.toFixed(0)} us CPU each`;
  });
  const sides = { ours: last.cost, theirs: first.cost, note: rows.join('; ') };
  const anchor = `at ${first.applications}`;
  yield {
    figure: `peak RSS at ${last.applications} applications`,
    anchor,
    ratio: last.peakBytes / first.peakBytes,
    goal: { atMost: 1.25 },
    ...sides,
  };
  yield {
    figure: `peak RSS at ${last.applications} applications, in all`,
    anchor: 'none',
    ratio: toMb(last.peakBytes),
    unit: 'MB',
    goal: { atMost: 200 },
    ours: last.cost,
    theirs: null,
  };
}

/** Runs the command to its end; returns its peak memory in bytes. */
function sync(database: BenchDatabase, board: { readonly url: string; readonly credential: string }): Promise<number> {
  return watchPeak([main, 'sync', '--no-files', '--json'], {
    DATABASE_URL: database.url,
    SOURCE_URL: board.url,
    SOURCE_CREDENTIAL: board.credential,
    SOURCE_RATE: 'off',
    PRIVACY_KEY: 'a privacy key for the benches',
  });
}

function drawPlots(points: readonly Point[]): void {
  const folder = join(import.meta.dirname, '../docs/images');
  const at = points.map((point) => point.applications);
  const plots = {
    'throughput.svg': {
      title: 'First sync with its proof: applications per second',
      values: points.map((point) => Math.round(point.perSecond)),
    },
    'memory.svg': {
      title: 'First sync with its proof: peak resident memory, MB',
      values: points.map((point) => toMb(point.peakBytes)),
    },
  };
  for (const [name, { title, values }] of Object.entries(plots)) {
    writeFileSync(
      join(folder, name),
      renderPlot(
        title,
        at.map((x, index) => ({ x, y: values[index] ?? 0 })),
      ),
    );
  }
}

function toMb(bytes: number): number {
  return Math.round(bytes / 1e6);
}

if (import.meta.main) await report(measure);

// Measures a first sync from the sandbox over HTTP to rows, with the proof: all that `intake sync --no-files` does for a new account.
// The anchor does the least that gives the same rows: the same requests over HTTP, JSON.parse, and COPY of the rows.

import { Pool } from 'undici';
import { createSource, type ListFilters, type Source } from '../src/source/client.ts';
import { openConnections } from '../src/source/http.ts';
import { syncAccount } from '../src/sync/read/read-account.ts';
import type { SweepCounts } from '../src/sync/read/sweep.ts';
import { openCopies } from './support/copies.ts';
import { type Figure, interleave, report, type Size, toCount, toCpuMs } from './support/figure.ts';
import { openBenchStore } from './support/loading.ts';
import { openPlace } from './support/place.ts';
import { type BoardServer, openBoardServer } from './support/servers.ts';

export async function* measure(size: Size): AsyncGenerator<Figure> {
  const applications = toCount(size, 30_000);
  await using place = await openPlace();
  await using sandbox = await openBoardServer('sandbox', applications);
  const asked: ListFilters[] = [];
  // Records the requests of one sync; the anchor repeats them.
  await using copies = await openCopies(place, (url) => sync(url, sandbox, applications, asked));
  const costs = await interleave(size.repeats, {
    ours: async () => {
      await using database = await place.openDatabase();
      return await place.meter(() => sync(database.url, sandbox, applications));
    },
    theirs: async () => {
      await using database = await place.openDatabase();
      return await place.meter(async () => {
        await askAll(sandbox, asked);
        await copies.fill(database);
      });
    },
  });
  yield {
    figure: 'whole path: sandbox over HTTP to rows',
    anchor: `the same ${asked.length} requests and JSON.parse without a database, plus COPY; ${applications} applications`,
    ratio: costs.theirs.wallMs / costs.ours.wallMs,
    goal: { atLeast: 0.6 },
    ...costs,
    note: `${Math.round((applications * 1_000) / costs.ours.wallMs)} applications/s; by CPU ${(toCpuMs(costs.theirs) / toCpuMs(costs.ours)).toFixed(2)}`,
  };
}

/** Runs a first sync; adds its requests to `asked`. */
async function sync(url: string, board: BoardServer, applications: number, asked: ListFilters[] = []): Promise<void> {
  await using store = openBenchStore(url);
  await using stack = new AsyncDisposableStack();
  const connections = stack.adopt(openConnections(8, 30_000), (agent) => agent.destroy());
  const source = createSource({
    url: board.url,
    credential: () => board.credential,
    format: 'json',
    totalTimeoutMs: 600_000,
    connections,
    listMaxBytes: 3_000_000,
    applicationMaxBytes: 50_000_000,
  });
  const noted: Source = {
    ...source,
    list(filters, signal) {
      asked.push(filters);
      return source.list(filters, signal);
    },
  };
  let added = 0;
  const onStep = (step: SweepCounts) => {
    added += step.added;
  };
  await syncAccount(
    { store, source: noted, onStep },
    {
      name: 'default',
      advertiserId: null,
      owner: 'bench',
      leaseMs: 60_000,
      lagMs: 0,
      startAt: null,
      recheck: false,
      retryForMs: 0,
      signal: AbortSignal.timeout(600_000),
    },
  );
  if (added !== applications) throw new Error(`${added} of ${applications} applications came.`);
}

async function askAll({ url, credential }: BoardServer, asked: readonly ListFilters[]): Promise<void> {
  const pool = new Pool(url, { connections: 2 });
  const headers = { authorization: `SWS ${credential}`, accept: 'application/json' };
  const rest = asked.values();
  // Two requests at once, as in the sync.
  const ask = async () => {
    for (const filters of rest) {
      const names = {
        afterId: 'afterid',
        beforeId: 'beforeid',
        afterDate: 'afterdate',
        beforeDate: 'beforedate',
      } as const;
      const query = new URLSearchParams({ include: 'primaryjobseekinginfo' });
      for (const [name, value] of Object.entries(filters) as [keyof ListFilters, bigint | number][]) {
        const isDate = name === 'afterDate' || name === 'beforeDate';
        query.set(
          names[name],
          isDate ? new Date(Number(value) + 36_000_000).toISOString().slice(0, 19) : String(value),
        );
      }
      const { body } = await pool.request({ method: 'GET', path: `/v1/advertiser/applications?${query}`, headers });
      JSON.parse(await body.text());
    }
  };
  await Promise.all([ask(), ask()]);
  await pool.close();
}

if (import.meta.main) await report(measure);

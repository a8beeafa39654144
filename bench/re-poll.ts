// Measures the cost of reading 10,000 unchanged applications again, against loading them. It must write nothing to the application tables:
// no row version, no lock, no WAL. The whole poll, with its lease and tickets, stays under 500 bytes of WAL.
// WAL is the difference of log positions on a server without other writers; rows written come from Postgres' counters per table.

import type { ReadPage } from '../src/store/applications/diff-page.ts';
import { createBoard, createLocalSource, pageCap } from './support/board.ts';
import { type Figure, report, type Size, toCount, toCpuMs, toLeast } from './support/figure.ts';
import { loadPages, openBenchStore } from './support/loading.ts';
import { type BenchDatabase, type Cost, openPlace } from './support/place.ts';

export async function* measure(size: Size): AsyncGenerator<Figure> {
  const applications = toCount(size, 10_000);
  await using place = await openPlace();
  const source = createLocalSource(createBoard(applications));
  await warm();
  let best: { first: Cost; again: Cost; walBytes: number; written: number } | undefined;
  for (let repeat = 0; repeat < size.shortRepeats; repeat++) {
    await using database = await place.openDatabase();
    const first = await place.meter(() => loadPages(database.url, source, applications));
    // The first read after a load sets hint bits, so only a later read is measured.
    await readAgain(database.url);
    const before = await snapshot(database);
    const again = await place.meter(() => readAgain(database.url), { checkpoint: false });
    const after = await snapshot(database);
    const walBytes = after.wal - before.wal;
    best = {
      first: toLeast(best?.first, first),
      again: toLeast(best?.again, again),
      // The server itself sometimes writes WAL, so the lowest run counts. Only this bench writes rows, so the highest run counts.
      walBytes: Math.min(best?.walBytes ?? walBytes, walBytes),
      written: Math.max(best?.written ?? 0, after.versions - before.versions),
    };
  }
  if (!best) return;
  const anchor = `first load of the same ${applications} applications`;
  const sides = { ours: best.again, theirs: best.first };
  yield {
    figure: 're-poll of unchanged applications, CPU',
    anchor,
    ratio: toCpuMs(best.again) / toCpuMs(best.first),
    goal: { atMost: 0.05 },
    ...sides,
  };
  yield {
    figure: 're-poll of unchanged applications, rows written in application tables',
    anchor,
    ratio: best.written,
    unit: 'rows',
    goal: { atMost: 0 },
    ...sides,
  };
  yield {
    figure: 're-poll of unchanged applications, WAL in all',
    anchor,
    ratio: best.walBytes,
    unit: 'bytes',
    goal: { atMost: 500 },
    ...sides,
  };

  /** Reads and compares every page again, as a poll of the whole list would. */
  async function readAgain(url: string): Promise<void> {
    await using store = openBenchStore(url);
    const signal = AbortSignal.timeout(600_000);
    const lease = await store.leases.claim({ name: 'default', lane: 'backfill', owner: 'bench', leaseMs: 60_000 });
    if (lease === null) throw new Error('The lane is not free.');
    const { seq: sweepId, at: startedAt } = await store.sweeps.begin();
    for (let after = 0; after < applications; after += pageCap) {
      const answer = await source.list({ afterId: BigInt(after) }, signal);
      if (answer.kind !== 'page' || answer.page.advertiserId === null) throw new Error('The board gave no page.');
      const ticket = await store.sweeps.takeTicket();
      const page: ReadPage = {
        lease,
        advertiserId: answer.page.advertiserId,
        seq: ticket.seq,
        sweep: { sweepId, purpose: 'backfill', axis: 'id', low: 1n, high: null, startedAt },
        askedAt: ticket.at,
        asked: { low: BigInt(after + 1), high: BigInt(after + pageCap) },
        applications: answer.page.applications,
        rejects: [],
        shared: [],
      };
      const { writes } = await store.applications.diffPage(page);
      if (writes > 0) throw new Error('An unchanged page would be written again.');
    }
    await store.leases.release({ ...lease, done: false });
  }

  async function warm(): Promise<void> {
    await using database = await place.openDatabase();
    await loadPages(database.url, source, applications);
    await readAgain(database.url);
  }
}

/** The server's WAL position, and the number of row changes ever made in the application tables. */
async function snapshot(database: BenchDatabase): Promise<{ wal: number; versions: number }> {
  await database.query('SELECT pg_stat_force_next_flush()');
  const [row] = await database.query<{ wal: number; versions: number }>(
    `SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS wal,
       (SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables
        WHERE schemaname = 'intake' AND relname IN ('applications', 'primary_job_seeking_info', 'attachments', 'downloads', 'events'))::float8 AS versions`,
  );
  return { wal: row?.wal ?? Number.NaN, versions: row?.versions ?? Number.NaN };
}

if (import.meta.main) await report(measure);

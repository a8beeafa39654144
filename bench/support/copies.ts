// The anchor of the loading figures: the server writes the rows of a finished load to files and reads them back with COPY.
// Nothing loads the same rows into the same tables faster: there is no client, no network, and no parsing except COPY's own.

import type { BenchDatabase, Place } from './place.ts';

export interface Copies extends AsyncDisposable {
  /** Loads the rows into an empty database. */
  fill(database: BenchDatabase): Promise<void>;
}

/** The tables that a first load fills for its applications. The few rows of sweeps are left out. */
const tables = ['applications', 'primary_job_seeking_info', 'attachments', 'downloads', 'events'];

/**
 * Runs `load` in a separate database and writes its rows to files. `fill` reads all of them in one transaction, or in one transaction per
 * `atOnce` applications, as a load must commit that loses no page.
 */
export async function openCopies(
  place: Place,
  load: (url: string) => Promise<unknown>,
  atOnce = Number.MAX_SAFE_INTEGER,
): Promise<Copies> {
  await using database = await place.openDatabase();
  await load(database.url);
  const [row] = await database.query<{ data_directory: string }>('SHOW data_directory');
  const [last] = await database.query<{ id: string }>('SELECT max(application_id) AS id FROM intake.applications');
  const toPath = (name: string) => `${row?.data_directory}/bench-${process.pid}-${atOnce}-${name}`;
  const advertisers = { table: 'advertisers', path: toPath('advertisers') };
  await database.query(`COPY intake.advertisers TO '${advertisers.path}'`);
  const parts = [[advertisers]];
  for (let from = 1; from <= Number(last?.id); from += atOnce) {
    const part = tables.map((table) => ({ table, path: toPath(`${table}-${from}`) }));
    for (const { table, path } of part) {
      const rows = `SELECT * FROM intake.${table} WHERE application_id >= ${from} AND application_id < ${from + atOnce}`;
      await database.query(`COPY (${rows}) TO '${path}'`);
    }
    parts.push(part);
  }
  return {
    async fill(empty) {
      for (const part of parts) {
        const copies = part.map(({ table, path }) => `COPY intake.${table} FROM '${path}'`);
        await empty.query(['BEGIN', ...copies, 'COMMIT'].join(';'));
      }
    },
    async [Symbol.asyncDispose]() {
      await using again = await place.openDatabase();
      // The server's user owns the files; perhaps only it can truncate them.
      for (const { path } of parts.flat()) await again.query(`COPY (SELECT WHERE false) TO '${path}'`);
    },
  };
}

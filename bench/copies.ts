// The anchor of the loading figures: the rows that a load leaves behind, written to files by the server and read back by it with COPY.
// Nothing can bring the same rows into the same tables faster: no client, no network, no parsing but COPY's own.

import type { BenchDatabase, Place } from './place.ts';

export interface Copies extends AsyncDisposable {
  /** Brings the rows into an empty database, in one transaction. */
  fill(database: BenchDatabase): Promise<void>;
}

/** What a first load writes; the books of sweeps are a few rows and left out. */
const tables = ['advertisers', 'applications', 'primary_job_seeking_info', 'attachments', 'downloads', 'events'];

/** Makes the files from what `load` writes into a database of its own. */
export async function openCopies(place: Place, load: (url: string) => Promise<unknown>): Promise<Copies> {
  await using database = await place.openDatabase();
  await load(database.url);
  const [row] = await database.query<{ data_directory: string }>('SHOW data_directory');
  const toPath = (table: string) => `${row?.data_directory}/bench-${process.pid}-${table}`;
  for (const table of tables) await database.query(`COPY intake.${table} TO '${toPath(table)}'`);
  return {
    async fill(empty) {
      await empty.query('BEGIN');
      for (const table of tables) await empty.query(`COPY intake.${table} FROM '${toPath(table)}'`);
      await empty.query('COMMIT');
    },
    async [Symbol.asyncDispose]() {
      await using again = await place.openDatabase();
      for (const table of tables) {
        // The server's own user wrote them; it alone can surely empty them.
        await again.query(`COPY (SELECT WHERE false) TO '${toPath(table)}'`);
      }
    },
  };
}

// The anchor of the loading figures: the rows that a load leaves behind, written to files by the server and read back by it with COPY.
// Nothing can bring the same rows into the same tables faster: no client, no network, no parsing but COPY's own.

import type { BenchDatabase, Place } from './place.ts';

export interface Copies extends AsyncDisposable {
  /** Brings the rows into an empty database. */
  fill(database: BenchDatabase): Promise<void>;
}

/** What a first load writes for its applications; the rows of sweeps are few and left out. */
const tables = ['applications', 'primary_job_seeking_info', 'attachments', 'downloads', 'events'];

/**
 * Makes the files from what `load` writes into a database of its own. All of it comes back in one transaction; or in one for so many
 * applications each, as a load has to commit that wants to lose no page that it was given.
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
      // The server's own user wrote them; it alone can surely empty them.
      for (const { path } of parts.flat()) await again.query(`COPY (SELECT WHERE false) TO '${path}'`);
    },
  };
}

// A database from a dump of an earlier release, which stays a fixture after its migrations have become part of a baseline.
import { openTestDatabase, type TestDatabase } from './test-database.ts';

/** A database with what was dumped. */
export async function openRestored(dump: string): Promise<TestDatabase> {
  const restored = await openTestDatabase();
  await restored.query(`DROP SCHEMA intake, intake_analytics CASCADE`);
  await restored.query(dump);
  return restored;
}

/** The board whose applications are in the dumps of earlier releases. The same clock gives the same bytes. */
export const dumpedBoard = { applications: 20, weeks: 5, now: () => Date.UTC(2026, 10, 17, 8) };

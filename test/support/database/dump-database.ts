// A database from a dump of an earlier release, which stays a fixture after its migrations have become part of a baseline.
import { openTestDatabase, type TestDatabase } from './test-database.ts';

/** A database with what was dumped. */
export async function openRestored(dump: string): Promise<TestDatabase> {
  const restored = await openTestDatabase();
  await restored.query(`DROP SCHEMA intake, intake_analytics CASCADE`);
  await restored.query(dump);
  return restored;
}

// A second database with the store of the first one: staging that was given production's BLOBS_URL.
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Stage } from './stage.ts';

/** Reads the source into a new database, then verifies with the right to delete every object that the database does not know. */
export async function useStoreElsewhere({ cluster, name, pooler, fleet, count, report }: Stage): Promise<boolean> {
  if (pooler) return false;
  // Until the first database has used the store, the store has no owner.
  if ((await cluster.query(`SELECT 1 FROM intake.blob_store WHERE identity IS NOT NULL`)).length === 0) return false;
  const other = `${name}_other`;
  using folder = mkdtempDisposableSync(join(tmpdir(), 'intake-chaos-other-'));
  const url = new URL(cluster.toUrl(cluster.port, 'other'));
  await cluster.query(`DROP DATABASE IF EXISTS ${other} WITH (FORCE)`);
  await cluster.query(`CREATE DATABASE ${other} OWNER ${url.username} TEMPLATE template0`);
  url.pathname = `/${other}`;
  const env = { DATABASE_URL_FILE: join(folder.path, 'url') };
  writeFileSync(env.DATABASE_URL_FILE, url.href);
  for (const args of [['sync'], ['verify', '--collect']]) {
    const { code } = await fleet.run(args, null, env);
    if (args[0] === 'verify' && (code === 0 || code === 3))
      report(`P28: another database verified the store (${code})`);
  }
  count('other databases');
  await cluster.query(`DROP DATABASE IF EXISTS ${other} WITH (FORCE)`);
  return true;
}

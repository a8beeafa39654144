// Orphaned objects, to which no row refers. The harness puts some directly into the store; faults leave others. `intake verify` finds
// them, and deletes them a day later. The harness simulates the day by setting the times of rows back, except for downloads in progress.
import { createHash } from 'node:crypto';
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { toBlobKey } from '../../src/domain/blob.ts';
import type { CrashPoint } from '../../src/domain/crash-point.ts';
import type { Random } from '../support/suite/random.ts';
import { untilDone } from './erasing.ts';
import type { Stage } from './stage.ts';

type OrphanStage = Pick<Stage, 'cluster' | 'accounts' | 's3' | 'runCommand' | 'count' | 'plan'>;

/** Puts orphans into the store, runs `verify` to find them, and a day later to delete them. The second run dies at `point`. */
export async function playCollection(stage: OrphanStage, random: Random, point: CrashPoint | null): Promise<void> {
  const { s3, count, runCommand } = stage;
  const { advertiserId } = random.pick(stage.accounts);
  const laid = random.between(1, 3);
  for (let nth = 0; nth < laid; nth++) {
    const bytes = Buffer.from(`nobody refers to this: ${stage.plan.seed} ${random.next()}`);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    s3.objects.set(`intake/${toBlobKey(advertiserId, sha256)}`, { bytes, sha256, headers: {}, modifiedAt: new Date() });
  }
  count('objects without a row', laid);
  await untilDone(() => runCommand(['verify']));
  await passDay(stage);
  await untilDone(() => runCommand(['verify'], point));
}

/** Makes every blob, and what was deleted of it, a day older, except those that a download is storing. */
export async function passDay({ cluster }: Pick<Stage, 'cluster'>): Promise<void> {
  await cluster.query(
    `UPDATE intake.blobs b SET intended_at = intended_at - interval '25 hours', deleted_at = deleted_at - interval '25 hours'
     WHERE NOT EXISTS (SELECT 1 FROM intake.downloads d WHERE d.advertiser_id = b.advertiser_id AND d.sha256 = b.sha256)`,
  );
}

/** Deletes until no orphan is left. An orphan that is left after four days is a finding. */
export async function collectAll(stage: OrphanStage): Promise<string[]> {
  for (let days = 1; ; days++) {
    await untilNoneIsDeleted(stage);
    await passDay(stage);
    // Faults may leave so many orphans that only an operator's --collect deletes them.
    const { code } = await stage.runCommand(['verify', '--collect']);
    const left = [...(await findLeftOver(stage)), ...(code === 0 ? [] : [`P6: intake verify ends with code ${code}`])];
    if (left.length === 0 || days === 4) return left;
  }
}

/** A process that was killed during a delete leaves its token. No other process deletes until that token expires. */
async function untilNoneIsDeleted({ cluster }: OrphanStage): Promise<void> {
  const isDeleted = () =>
    cluster.query(
      `SELECT 1 FROM intake.blobs WHERE delete_until BETWEEN now() AND now() + interval '2 minutes' LIMIT 1`,
    );
  while ((await isDeleted()).length > 0) await sleep(500);
}

/**
 * Finds objects that no file, earlier version or resume uses (P17 if their person was erased), and rows that were never deleted. The resume
 * of a prefill whose process died during the put belongs to it until it lapses.
 */
async function findLeftOver({ cluster, s3 }: OrphanStage): Promise<string[]> {
  const rows = await cluster.query<{ key: string }>(
    `SELECT b.key FROM intake.blobs b WHERE (b.state = 'stored'
         AND (EXISTS (SELECT 1 FROM intake.attachments a WHERE a.advertiser_id = b.advertiser_id AND a.sha256 = b.sha256)
           OR EXISTS (SELECT 1 FROM intake.attachment_versions v WHERE v.advertiser_id = b.advertiser_id AND v.sha256 = b.sha256)))
       OR (b.state IN ('writing', 'stored')
         AND EXISTS (SELECT 1 FROM intake.prefills p WHERE p.advertiser_id = b.advertiser_id AND p.resume_sha256 = b.sha256))`,
  );
  const needed = new Set(rows.map(({ key }) => `intake/${key}`));
  const left = [...s3.objects.keys()].filter((name) => /[0-9a-f]{64}$/.test(name) && !needed.has(name));
  const [marked] = await cluster.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM intake.blobs WHERE state = 'deleting' AND deleted_at IS NULL`,
  );
  return [
    ...left.slice(0, 3).map((name) => `P7, P17: ${name} is in the store, and nothing refers to it`),
    ...(marked && marked.n > 0 ? [`P7: ${marked.n} orphans are marked and never deleted`] : []),
  ];
}

/** Staging that was given production's BLOBS_URL: reads the source into a new database, then verifies with the right to delete every object that the database does not know. */
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

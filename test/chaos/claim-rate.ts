// How fast downloads are claimed and completed at 50,000 and at 1,000,000 queued rows: `node test/chaos/claim-rate.ts FOLDER`, where the
// folder takes an embedded Postgres.
import { randomUUID } from 'node:crypto';
import { openDatabase } from '../../src/store/database.ts';
import { claimDownloads } from '../../src/store/downloads.ts';
import { openEmbedded } from '../../src/store/embedded.ts';
import { migrate } from '../../src/store/migrations.ts';

const root = process.argv[2] ?? '';
if (!root) throw new Error('Name an empty folder for the embedded Postgres.');
await using server = await openEmbedded({ root });
await migrate(server.url);
await using db = openDatabase({ url: server.url, role: 'bench', statementTimeoutMs: 600_000 });
await db.query(`TRUNCATE intake.applications, intake.advertisers CASCADE`);
await db.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('a', 1), ('b', 2)`);

async function fill(from: number, to: number): Promise<void> {
  await db.query(
    `WITH a AS (INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq)
       SELECT 1 + n % 2, n, '', 1 FROM generate_series($1::int, $2::int) AS n RETURNING advertiser_id, application_id),
     f AS (INSERT INTO intake.attachments (advertiser_id, application_id, kind, state)
       SELECT advertiser_id, application_id, 'resume', 'pending' FROM a RETURNING advertiser_id, application_id)
     INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority) SELECT advertiser_id, application_id, 'resume', application_id % 2 FROM f`,
    [from, to],
  );
}

/** Claims and deletes, as completed work is, in batches of 100; rows per second. */
async function measure(rows: number): Promise<number> {
  const startedAt = performance.now();
  for (let done = 0; done < rows; ) {
    const token = randomUUID();
    const { claims } = await claimDownloads(db, {
      advertisers: [1n, 2n],
      lane: 'usual',
      limit: 100,
      token,
      leaseMs: 600_000,
    });
    await db.query(
      `DELETE FROM intake.downloads d USING unnest($1::bigint[], $2::bigint[]) AS c (advertiser_id, application_id)
       WHERE d.advertiser_id = c.advertiser_id AND d.application_id = c.application_id AND d.kind = 'resume' AND d.lease_token = $3`,
      [claims.map((c) => c.advertiserId), claims.map((c) => c.applicationId), token],
    );
    done += claims.length;
    if (claims.length === 0) throw new Error('The queue ran dry.');
  }
  return rows / ((performance.now() - startedAt) / 1_000);
}

/** The best of several: what the machine does beside it only makes them slower. */
async function measureBest(): Promise<number> {
  // What filling left behind (unvacuumed tables, dirty pages, cold ones) is not what is measured.
  for (const table of ['applications', 'attachments', 'downloads']) await db.query(`VACUUM ANALYZE intake.${table}`);
  await db.query('CHECKPOINT');
  await measure(4_000);
  let best = 0;
  for (let round = 0; round < 5; round++) best = Math.max(best, await measure(4_000));
  return best;
}

const total = Number(process.argv[3] ?? 1_000_000);
await fill(1, 50_000);
const small = await measureBest();
for (let from = 50_001; from <= total; from += 100_000) await fill(from, Math.min(total, from + 99_999));
const large = await measureBest();
console.log(
  `claim and delete per second: ${Math.round(small)} at 50,000 rows, ${Math.round(large)} at ${total}; ratio ${(large / small).toFixed(2)}`,
);

// How much room the evidence takes: a first sweep and nightly rechecks of a simulated account, in the real table, pruned as the product does.
// EVIDENCE_APPLICATIONS=20000 EVIDENCE_NIGHTS=30 tries a month of a large account; after the third night the size stays as it is.
import { expect } from 'vitest';
import type { LineBody } from '../../src/domain/evidence/record.ts';
import { openDatabase } from '../../src/store/postgres/database.ts';
import { appendEvidence, pruneEvidence } from '../../src/store/sweeps/evidence.ts';
import { mostAudits } from '../../src/sync/read/audit.ts';
import { kindNamed } from '../simulation/kinds.ts';
import { proveSweep } from '../simulation/simulated-proof.ts';
import { createMemory } from '../simulation/simulated-reader.ts';
import { test } from '../support/test-database.ts';

const applications = Number(process.env.EVIDENCE_APPLICATIONS ?? 2_000);
const nights = Number(process.env.EVIDENCE_NIGHTS ?? 3);
const startMs = 1_790_000_000_000;

/** As many audits as are kept, each of a page. */
function auditsOf(bodies: readonly LineBody[]): LineBody[] {
  const pages = (bodies as readonly { readonly ids?: string; readonly [member: string]: unknown }[]).filter(
    ({ ids }) => (ids?.split(' ').length ?? 0) >= 33,
  );
  return Array.from({ length: mostAudits }, (_, at) => {
    const { sentAt, tookMs, from, to, ids, bytes } = pages[at % pages.length] ?? {};
    return { type: 'audit', sentAt, tookMs, from, to, ids, bytes } as LineBody;
  });
}

function toBody(text: string): LineBody {
  const { n, before, ...body } = JSON.parse(text);
  return body;
}

test('stays small, however many nights pass', { timeout: 3_600_000 }, async ({ database }) => {
  await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
  const server = kindNamed('friendly').create(7, { startMs, still: true, rows: applications, page: 100 });
  const memory = createMemory(startMs);
  const loadBytes = async () => {
    await database.query(`VACUUM intake.evidence`);
    const [row] = await database.query<{ bytes: number; total: number }>(
      `SELECT coalesce(sum(pg_column_size(e.*)), 0)::int AS bytes, pg_total_relation_size('intake.evidence')::int AS total
       FROM intake.evidence e`,
    );
    return row ?? { bytes: 0, total: 0 };
  };
  const sizes: { bytes: number; total: number; lines: number }[] = [];
  for (let night = 0; night <= nights; night++) {
    const options = night === 0 ? { seed: 7 } : { seed: 7 + night, known: true };
    const proof = proveSweep(server, memory, BigInt(night + 1), options);
    expect(proof.result.done.certificate).toBe('proven');
    await db.query(
      `INSERT INTO intake.sweeps (advertiser_id, sweep_id, lane, purpose, axis, low, state, started_at, last_progress_at, ended_at)
       VALUES (7, $1, 'live', 'recheck', 'id', 1, 'closed', now(), now(), now())`,
      [proof.sweepId],
    );
    await db.transaction(async (tx) => {
      const bodies = proof.lines.map(({ text }) => toBody(text));
      await appendEvidence(tx, 7n, proof.sweepId, [...bodies, ...auditsOf(bodies)]);
      await pruneEvidence(tx, 7n);
    });
    sizes.push({ ...(await loadBytes()), lines: proof.lines.length });
    memory.now += 24 * 3_600_000;
  }
  if (process.env.EVIDENCE_NIGHTS !== undefined) process.stdout.write(`${JSON.stringify(sizes)}\n`);
  const [first] = sizes;
  const last = sizes.at(-1);
  // A first sweep shows everybody about three times, a recheck about once; three sweeps are kept. Each has some forty questions more, and audits
  // of about 0.4 kB.
  const ofAudits = mostAudits * 500;
  expect(first?.bytes).toBeLessThan(applications * 15 + 15_000 + ofAudits);
  expect(last?.bytes).toBeLessThan(applications * 25 + 3 * (15_000 + ofAudits));
  expect(last?.total).toBeLessThan(Math.max(1_000_000, applications * 50));
});

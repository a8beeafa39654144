// The admin port over a test database, as a worker opens it, and rows that look like a busy month.
import { BlockList } from 'node:net';
import { toStatus } from '../../src/domain/status/status.ts';
import { openStore } from '../../src/store/store.ts';
import { checkDatabase } from '../../src/sync/worker/health-checks.ts';
import { createMetrics } from '../../src/web/admin/metrics.ts';
import { type AdminOptions, openAdmin } from '../../src/web/admin/routes.ts';
import type { HttpServer } from '../../src/web/server.ts';
import type { TestDatabase } from './database/test-database.ts';
import { createRandom, type Random } from './suite/random.ts';

/** The last poll must be at most an hour old. */
const staleAfterMs = 3_600_000;

/** Opens the admin server on a free port; disposing also closes its store. */
export async function openTestAdmin(
  database: Pick<TestDatabase, 'url'>,
  options: Partial<AdminOptions> = {},
): Promise<HttpServer> {
  const store = openStore({ url: database.url, role: 'admin', privacyKey: Buffer.from('a privacy key for tests') });
  try {
    const admin = await openAdmin({
      host: '127.0.0.1',
      port: 0,
      login: null,
      metrics: createMetrics(),
      loadStatus: async () =>
        toStatus(new Date(), await store.reports.loadStatus(), {
          staleAfterMs,
          webhooks: await store.webhooks.loadWebhooks(),
        }),
      loadOwnWaits: () => [],
      store,
      loadLiveness: () => [{ check: 'work', ok: true, detail: 'a pass ended 3 s ago' }],
      loadReadiness: () => checkDatabase(store, Date.now),
      trustedProxies: new BlockList(),
      now: Date.now,
      onError: () => {},
      ...options,
    });
    return {
      url: admin.url,
      async [Symbol.asyncDispose]() {
        await admin[Symbol.asyncDispose]();
        await store[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

const dayMs = 86_400_000;

/** Inserts 31 days of three healthy advertisers: applications in daily and weekly patterns, files, sweeps, coverage without upper end. */
export async function fillMonth(database: TestDatabase, now = Date.now()): Promise<void> {
  const random = createRandom(7);
  await database.query(
    `INSERT INTO intake.advertisers (name, advertiser_id, created_at, late_ms) VALUES
       ('harbour-logistics', 20000001, $1, 41000), ('northside-clinics', 20000002, $1, NULL), ('fern-and-finch', 20000003, $1, 95000)`,
    [new Date(now - 40 * dayMs)],
  );
  for (const [index, perDay] of [240, 110, 40].entries()) {
    const advertiserId = 20_000_001 + index;
    const submittedAt = toRhythm(random, perDay, now);
    const delaysMs = submittedAt.map(() => 40_000 + 200_000 * random.next() + (random.chance(0.06) ? 600_000 : 0));
    await database.query(
      `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, email, first_name, last_name, job_reference, content_hash, observed_seq, first_seen_at, ready_at)
       SELECT $1::bigint, 100000 + i, s.at, 'sam.' || i || '@example.com', 'Samantha', 'Secretname', 'REF-' || i % 9, decode(md5(i::text), 'hex'), i, s.at + s.delay * interval '1 millisecond', now()
       FROM unnest($2::timestamptz[], $3::float8[]) WITH ORDINALITY AS s (at, delay, i)`,
      [advertiserId, submittedAt, delaysMs],
    );
    await database.query(
      `INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, has_virus, parser_version, size_bytes, sha256, file_name, stored_at)
       SELECT a.advertiser_id, a.application_id, k.kind, CASE WHEN i.infected THEN 'infected' ELSE 'stored' END, i.infected, CASE k.kind WHEN 'screen' THEN 1 END,
         20000 + (a.application_id * k.weight) % 240000, CASE WHEN NOT i.infected THEN md5(a.application_id || k.kind) END, 'Samantha Secretname.pdf',
         CASE WHEN NOT i.infected THEN a.first_seen_at + interval '9 seconds' END
       FROM intake.applications a CROSS JOIN (VALUES ('resume', 7919), ('screen', 104729)) AS k (kind, weight)
       CROSS JOIN LATERAL (SELECT k.kind = 'resume' AND a.application_id % 400 = 3 AS infected) AS i
       WHERE a.advertiser_id = $1 AND (k.kind = 'resume' OR a.application_id % 3 = 0)`,
      [advertiserId],
    );
    await database.query(
      `INSERT INTO intake.sweeps (advertiser_id, sweep_id, lane, purpose, axis, low, state, certificate, risk, reason, started_at, last_progress_at, ended_at, requests, received, added)
       SELECT $1::bigint, 1000 * ($1::bigint % 10) + i, 'live', purpose, 'id', 100000, CASE WHEN is_open THEN 'open' ELSE 'closed' END,
         CASE WHEN is_open THEN 'unproven' WHEN purpose = 'recheck' THEN 'proven' ELSE 'assumed' END,
         CASE WHEN is_open THEN 'doubt' WHEN purpose = 'recheck' THEN 'none' ELSE 'harmless' END,
         CASE WHEN is_open THEN 'the sweep has not finished' WHEN purpose = 'recheck' THEN 'every id range was read; cross-checks agree' ELSE 'normal poll; the next recheck brings the proof' END,
         t, t, t + (CASE purpose WHEN 'recheck' THEN 1400 ELSE 200 END + (i * 7919 + $1::bigint % 10 * 1543) % 600) * interval '1 millisecond', CASE purpose WHEN 'recheck' THEN 14 ELSE 1 END, 20, i % 5
       FROM generate_series(1, 700) AS i CROSS JOIN LATERAL (
         SELECT $2::timestamptz - (701 - i) * interval '61 minutes' + interval '55 minutes' AS t,
           CASE WHEN (i + $1::bigint) % 6 = 5 THEN 'recheck' ELSE 'live' END AS purpose, (i + $1::bigint) % 97 = 0 AS is_open) AS s`,
      [advertiserId, new Date(now)],
    );
    await database.query(
      `INSERT INTO intake.coverage (advertiser_id, axis, low, high, certificate, risk, reason, as_of, complete_through, sweep_id)
       VALUES ($1, 'id', 1, NULL, 'proven', 'none', 'every id range was read; cross-checks agree', $2, $3, 1)`,
      [advertiserId, new Date(now - 90_000), new Date(now - 17 * 60_000)],
    );
    await database.query(
      `INSERT INTO intake.cursors (advertiser_id, after_id, as_of) SELECT $1, max(application_id), $2 FROM intake.applications WHERE advertiser_id = $1`,
      [advertiserId, new Date(now - 25_000)],
    );
  }
}

/** Submission times, oldest first: more by day than by night, fewer at weekends. */
function toRhythm(random: Random, perDay: number, now: number): Date[] {
  const times: number[] = [];
  for (let at = now - 31 * dayMs; at < now - 300_000; at += dayMs / (perDay * 3)) {
    const local = new Date(at + 10 * 3_600_000);
    const byDay = 0.08 + 0.92 * Math.max(0, Math.sin(((local.getUTCHours() - 5) / 19) * Math.PI));
    const byWeek = [0, 6].includes(local.getUTCDay()) ? 0.4 : 1;
    if (random.chance(byDay * byWeek * 0.6)) times.push(at + Math.floor(random.next() * 200_000));
  }
  return times.sort((a, b) => a - b).map((at) => new Date(at));
}

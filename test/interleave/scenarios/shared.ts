// Scenarios of what all workers share: the outbox, the rate limit, the schema, the blob store and the maintenance of old rows.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { BlobStore } from '../../../src/domain/blob.ts';
import { type Delay, toDelay } from '../../../src/domain/trouble.ts';
import { loadRetryAfter, noteRetryAfter, takeSlot } from '../../../src/store/accounts/advertisers.ts';
import { appendEvents } from '../../../src/store/events.ts';
import {
  confirmIdentity,
  ensureRecordedStore,
  loadRecordedStore,
  planIdentity,
} from '../../../src/store/files/store-owner.ts';
import { type Database, openDatabase } from '../../../src/store/postgres/database.ts';
import { migrate } from '../../../src/store/postgres/migrations.ts';
import { lapsePrefills } from '../../../src/store/prefill/prefills.ts';
import { adoptStore, ensureOwned, type OwnerDeps } from '../../../src/sync/files/store-owner.ts';
import type { Actor } from '../schedule.ts';
import type { Scenarios, Situation, Stage } from '../stage.ts';
import { failOnWaiting } from './clients.ts';
import { never } from './objects.ts';

/** Creates a database without a schema, in place of the previous schedule's database. */
async function openEmpty(stage: Stage) {
  const database = `${new URL(stage.url).pathname.slice(1)}_empty`;
  await stage.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
  await stage.query(`CREATE DATABASE ${database} TEMPLATE template0`);
  const toUrl = (url: string) => Object.assign(new URL(url), { pathname: `/${database}` }).href;
  /** The applied migrations, in order. */
  const migrated = async (url = toUrl(stage.url)) => {
    await using db = openDatabase({ url, role: 'check', connections: 1 });
    return (await db.query(`SELECT hash FROM intake.migrations ORDER BY created_at, id`)).map(({ hash }) => hash);
  };
  return { toUrl, migrated };
}

function toDeps(db: Database, actor: Actor, identities: string[]): OwnerDeps {
  const blobs = {
    location: 'memory',
    list: async function* () {},
    loadIdentity: () => actor.act('load the identity', () => identities.at(-1) ?? null),
    replaceIdentity: (before: string | null, identity: string) =>
      actor.act('replace the identity', () => {
        const isUnchanged = (identities.at(-1) ?? null) === before;
        if (isUnchanged) identities.push(identity);
        return isUnchanged;
      }),
  } as Partial<BlobStore> as BlobStore;
  const blobStore = {
    loadRecordedStore: () => loadRecordedStore(db),
    ensureRecordedStore: () => ensureRecordedStore(db),
    planIdentity: (before: string | null, identity: string) => planIdentity(db, before, identity),
    confirmIdentity: (identity: string, location: string) => confirmIdentity(db, identity, location),
  };
  return { store: { blobStore }, blobs };
}

/** Two processes use a blob store for the first time, or adopt it; the first may die at any step. */
function createTaken(stage: Stage, first: typeof ensureOwned, other: typeof ensureOwned): Situation {
  return {
    promise: 'their database owns it afterwards, and nobody fails',
    async open() {
      await stage.query(`DELETE FROM intake.blob_store`);
      const identities: string[] = [];
      const run = (take: typeof ensureOwned) => (actor: Actor) =>
        take(toDeps(stage.database(actor.name), actor, identities), never);
      return {
        programs: { a: run(first), b: run(other) },
        mortal: ['a'],
        commitsApart: true,
        async check() {
          const [row] = await stage.query(`SELECT identity, next_identity FROM intake.blob_store`);
          const [identity] = [row?.identity, row?.next_identity].filter((text) => text === identities.at(-1));
          assert.ok(identity, 'the database does not know the identity of its store');
        },
      };
    },
  };
}

export const sharedScenarios = {
  /** Three writers of one advertiser, and a consumer that continues after the last event id it has read. */
  events: (stage) => ({
    promise: 'nothing ever appears behind a reader (P26)',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      const taken: string[] = [];
      const read = async (query: Stage['query']) => {
        const rows = await query<{ event_id: bigint | string }>(
          `SELECT event_id FROM intake.events WHERE advertiser_id = $1 AND event_id > $2 ORDER BY event_id`,
          [advertiserId, taken.at(-1) ?? 0],
        );
        taken.push(...rows.map((row) => String(row.event_id)));
      };
      const write = (applicationId: bigint) => async (actor: Actor) =>
        await stage.database(actor.name).transaction(async (tx) => {
          await tx.query(`SELECT 1 FROM intake.applications WHERE advertiser_id = $1`, [advertiserId]);
          await appendEvents(tx, advertiserId, [{ applicationId, type: 'application.received' }]);
        });
      return {
        programs: {
          a: write(1n),
          b: write(2n),
          c: write(3n),
          reader: async (actor) => {
            const db = stage.database(actor.name);
            for (let times = 0; times < 3; times++) await read((sql, values) => db.query(sql, values) as never);
          },
        },
        mortal: ['a'],
        async check() {
          await read(stage.query);
          const rows = await stage.query<{ event_id: string }>(
            `SELECT event_id FROM intake.events WHERE advertiser_id = $1 ORDER BY event_id`,
            [advertiserId],
          );
          assert.deepEqual(
            taken,
            rows.map((row) => row.event_id),
            'P26: an event appeared behind the reader',
          );
        },
      };
    },
  }),

  /** Three workers take rate-limit slots of one source; two of them get Retry-After answers of different lengths. */
  slots: (stage) => ({
    promise: 'no slot belongs to two workers, and the longest Retry-After holds for all (P14)',
    async open() {
      const { name } = await stage.openAdvertiser();
      const [opened] = await stage.direct.query<{ at: Date }>(`SELECT clock_timestamp() AS at`);
      // Longer than a schedule takes.
      const slotMs = 9_000;
      let slots = 0;
      let isHeard = false;
      const work = (retryAfterMs: Delay | undefined) => async (actor: Actor) => {
        const db = stage.database(actor.name);
        await takeSlot(db, name, slotMs, 60_000);
        slots++;
        if (retryAfterMs !== undefined) await noteRetryAfter(db, name, retryAfterMs);
        if (actor.name === 'a') isHeard = true;
        await takeSlot(db, name, slotMs, 60_000);
        slots++;
      };
      return {
        programs: { a: work(toDelay(600_000)), b: work(toDelay(20_000)), c: work(undefined) },
        mortal: ['a'],
        commitsApart: true,
        async check() {
          // Each slot has moved the beginning of the next one by its length.
          const [limit] = await stage.direct.query<{ ahead_ms: number }>(
            `SELECT extract(epoch FROM next_at - $2::timestamptz)::float8 * 1000 AS ahead_ms FROM intake.rate_limits WHERE source = $1`,
            [name, opened?.at],
          );
          if ((limit?.ahead_ms ?? 0) < slots * slotMs) throw new Error('P14: two slots overlap.');
          const [leftMs = 0] = await loadRetryAfter(stage.direct, [name]);
          if (isHeard && leftMs < 300_000)
            throw new Error(`P14: ${Math.round(leftMs)} ms are left of a Retry-After of 600 s.`);
        },
      };
    },
  }),

  /** Two processes start at once on an empty database. A schedule takes a second or more, so only 40 are played. */
  migrations: (stage) => ({
    promise: 'every migration is applied once, although processes die meanwhile; nobody fails (P22)',
    most: 40,
    async open() {
      const { migrated, toUrl } = await openEmpty(stage);
      const start = (actor: Actor) => migrate(toUrl(stage.gate.toUrl(actor.name)));
      return {
        programs: { a: start, b: start },
        mortal: ['a'],
        async check() {
          assert.deepEqual(await migrated(), await migrated(stage.url), 'P22: other migrations were applied');
        },
      };
    },
  }),

  'first-use': (stage) => createTaken(stage, ensureOwned, ensureOwned),
  'adopt-store': (stage) => createTaken(stage, ensureOwned, adoptStore),
  'adopt-twice': (stage) => createTaken(stage, adoptStore, adoptStore),

  /** Two workers count the prefills that ended without a profile. */
  'prefill-days': (stage) => ({
    promise: 'each prefill is counted once, and neither worker waits',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      for (const outcome of ['failed', 'denied']) {
        await stage.query(
          `INSERT INTO intake.prefills (advertiser_id, prefill_id, outcome, reason, form_url, return_url, created_at, ended_at)
           VALUES ($1, $2, $3, 'test', 'https://a.example/', 'https://a.example/', now() - interval '2 hours', now() - interval '2 hours')`,
          [advertiserId, randomUUID(), outcome],
        );
      }
      await stage.query(
        `INSERT INTO intake.prefill_days (advertiser_id, day, started)
         SELECT $1, ((now() - interval '2 hours') AT TIME ZONE interval '10 hours')::date, 5`,
        [advertiserId],
      );
      const lapse = (actor: Actor) => lapsePrefills(stage.database(actor.name));
      return {
        programs: { a: lapse, b: lapse },
        mortal: ['a'],
        commitsApart: true,
        async check(outcome) {
          failOnWaiting(outcome, /^WITH gone AS/, 'what another one counts');
          // If the first worker died before it counted, the next run counts.
          await lapsePrefills(stage.direct);
          const rows = await stage.query(
            `SELECT started::int, failed::int, denied::int FROM intake.prefill_days WHERE advertiser_id = $1`,
            [advertiserId],
          );
          assert.deepEqual(rows, [{ started: 7, failed: 1, denied: 1 }], 'each is counted once');
        },
      };
    },
  }),
} satisfies Scenarios;

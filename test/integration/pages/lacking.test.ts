// Which stored ids the store says a page lacks, compared with the rule as a plain function on random pages.
import { createSecretKey } from 'node:crypto';
import { expect } from 'vitest';
import type { Covered } from '../../../src/domain/coverage/position.ts';
import { type LackingId, mostLacking } from '../../../src/domain/coverage/question.ts';
import { diffPage, loadSurroundings, type ReadPage } from '../../../src/store/applications/diff-page.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { anApplication, aPage } from '../../support/applications.ts';
import { test as base, type TestDatabase } from '../../support/database/test-database.ts';
import { createRandom, type Random } from '../../support/suite/random.ts';

const key = createSecretKey(Buffer.from('key'));

const lease = { name: 'acme', lane: 'live', owner: 'test', epoch: 1n } as const;
const noon = Date.UTC(2026, 5, 1, 12);
const advertisers = 40;
const highestId = 90;
const sweepId = 5n;

interface Stored {
  readonly advertiserId: number;
  readonly id: bigint;
  readonly firstSeenAt: number;
  /** Since when it is known to be gone at the source, or null. */
  readonly missingSince: number | null;
  /** How many answers of the sweep have lacked it; after two it is gone. */
  readonly lackedBy: 0 | 1 | 2;
  /** No answer is expected to show it. */
  readonly erased: boolean;
}

const test = base
  .extend('db', { scope: 'file' }, async ({ database }, { onCleanup }) => {
    const db = openDatabase({ url: database.url, role: 'test' });
    onCleanup(() => db[Symbol.asyncDispose]());
    return db;
  })
  .extend('stored', { scope: 'file' }, async ({ database }) => await fill(database));

/** A minute between any two times that matter, so that equal times are frequent. */
const aTime = (random: Random) => noon + random.between(-6, 6) * 60_000;

/** Fills accounts with few and with many applications, all in one statement. */
async function fill(database: TestDatabase): Promise<Stored[]> {
  const random = createRandom(1);
  const stored: (Stored & { readonly absent: boolean })[] = [];
  for (let advertiserId = 1; advertiserId <= advertisers; advertiserId++) {
    const share = random.pick([0, 0.05, 0.4, 0.9]);
    for (let id = 1; id <= highestId; id++) {
      if (!random.chance(share)) continue;
      const [erased, absent] = [random.chance(0.1), random.chance(0.3)];
      const missingSince = random.chance(0.3) ? aTime(random) : null;
      const lackedBy = random.pick([0, 0, 0, 1, 2] as const);
      stored.push({ advertiserId, id: BigInt(id), firstSeenAt: aTime(random), missingSince, lackedBy, erased, absent });
    }
  }
  await database.query(
    `INSERT INTO intake.applications
       (advertiser_id, application_id, content_hash, observed_seq, first_seen_at, erased_at, absent_since, missing_since)
     SELECT advertiser_id, id, '', 0, to_timestamp(seen), CASE WHEN erased THEN now() END, CASE WHEN absent THEN now() END, to_timestamp(missing)
     FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::boolean[], $5::float8[], $6::boolean[])
       AS r (advertiser_id, id, seen, erased, missing, absent)`,
    [
      stored.map((one) => one.advertiserId),
      stored.map((one) => one.id),
      stored.map((one) => one.firstSeenAt / 1_000),
      stored.map((one) => one.erased),
      stored.map((one) => (one.missingSince === null ? null : one.missingSince / 1_000)),
      stored.map((one) => one.absent),
    ],
  );
  await database.query(
    `INSERT INTO intake.sweeps (advertiser_id, sweep_id, lane, purpose, axis, low, state, started_at, last_progress_at)
     SELECT id, ${sweepId}, 'live', 'recheck', 'id', 1, 'running', now(), now() FROM generate_series(1, $1::int) AS id`,
    [advertisers],
  );
  const lacked = stored.filter(({ lackedBy }) => lackedBy > 0);
  await database.query(
    `INSERT INTO intake.lacked (advertiser_id, sweep_id, application_id, gone)
     SELECT r.advertiser_id, ${sweepId}, r.id, r.gone FROM unnest($1::bigint[], $2::bigint[], $3::boolean[]) AS r (advertiser_id, id, gone)`,
    [lacked.map((one) => one.advertiserId), lacked.map((one) => one.id), lacked.map(({ lackedBy }) => lackedBy === 2)],
  );
  return stored;
}

/**
 * The rule: an answer lacks the ids of its range that were stored when the question was sent and that it does not show. Ids that were missing
 * before the sweep began, that two answers of the sweep have lacked, or that were erased are left out.
 */
function findLacking(
  { low, high }: Covered,
  shown: readonly bigint[],
  stored: readonly Stored[],
  times: { readonly sentAt: number; readonly sweepStartedAt: number },
): LackingId[] {
  return stored
    .filter(({ id }) => id >= low && (high === null || id <= high) && !shown.includes(id))
    .filter(({ firstSeenAt, erased, lackedBy }) => firstSeenAt <= times.sentAt && !erased && lackedBy < 2)
    .filter(({ missingSince }) => missingSince === null || missingSince >= times.sweepStartedAt)
    .map(({ id, firstSeenAt, lackedBy }) => ({ id, old: firstSeenAt < times.sweepStartedAt, again: lackedBy === 1 }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

interface Case {
  readonly page: ReadPage;
  readonly expected: LackingId[];
  readonly name: string;
}

/** A random question, a random answer to it, and what the rule finds lacking. */
function aCase(random: Random, stored: readonly Stored[], seed: number, isEmpty: boolean): Case {
  const advertiserId = random.between(1, advertisers);
  const [one, other] = [random.between(1, highestId + 5), random.between(1, highestId + 5)];
  const asked: Covered = {
    low: BigInt(Math.min(one, other)),
    high: random.chance(0.4) ? null : BigInt(Math.max(one, other)),
  };
  const sentAt = aTime(random);
  const sweepStartedAt = random.chance(0.2) ? sentAt : Math.min(sentAt, aTime(random));
  const own = stored.filter((row) => row.advertiserId === advertiserId);
  const share = random.pick([0.1, 0.6, 1]);
  const shown = isEmpty ? [] : own.filter(() => random.chance(share)).map(({ id }) => id);
  // An answer may also show ids that are not stored, inside and outside of what was asked for.
  if (!isEmpty) shown.push(BigInt(random.between(1, highestId + 20)));
  const ids = [...new Set(shown)];
  const anyPage = aPage(
    lease,
    ids.map((id) => anApplication(id)),
    { advertiserId: BigInt(advertiserId), sweepId },
  );
  const page = {
    ...anyPage,
    sweep: { ...anyPage.sweep, startedAt: new Date(sweepStartedAt) },
    asked,
    askedAt: new Date(sentAt),
  };
  return { page, name: `seed ${seed}`, expected: findLacking(asked, ids, own, { sentAt, sweepStartedAt }) };
}

/** Guards against cases in which nothing is ever lacking, or nothing is ever left out. */
function expectVariety(cases: readonly Case[]): void {
  const some = (is: (one: Case) => boolean) => cases.filter(is).length;
  expect(some(({ expected }) => expected.length === 0)).toBeGreaterThan(cases.length / 20);
  expect(some(({ expected }) => expected.length > 5)).toBeGreaterThan(cases.length / 20);
  expect(some(({ expected }) => expected.some(({ again }) => again))).toBeGreaterThan(cases.length / 20);
  expect(some(({ expected }) => expected.some(({ old }) => old))).toBeGreaterThan(cases.length / 20);
  expect(some(({ expected }) => expected.some(({ old }) => !old))).toBeGreaterThan(cases.length / 20);
}

test('a page lacks what the rule finds lacking, on 600 pages', { tags: ['slow'] }, async ({ db, stored }) => {
  const cases = Array.from({ length: 600 }, (_, seed) => aCase(createRandom(seed), stored, seed, false));
  expectVariety(cases);
  for (const { page, expected, name } of cases) {
    const { lacking, fresh } = await diffPage(db, key, page);
    expect(lacking, name).toEqual(expected);
    const own = new Set(stored.filter((row) => BigInt(row.advertiserId) === page.advertiserId).map(({ id }) => id));
    const ids = page.applications.map(({ id }) => id);
    expect(
      fresh.map(({ id }) => id),
      name,
    ).toEqual(ids.filter((id) => !own.has(id)));
  }
});

test('pages compared in one statement lack the same, on 3,000 random questions', async ({ db, stored }) => {
  const cases = Array.from({ length: 3_000 }, (_, seed) =>
    aCase(createRandom(seed + 9_000), stored, seed, seed % 2 === 0),
  );
  expectVariety(cases);
  for (let from = 0; from < cases.length; from += 250) {
    const batch = cases.slice(from, from + 250);
    const around = await loadSurroundings(
      db,
      batch.map(({ page }) => page),
    );
    for (const [nth, { expected, name }] of batch.entries()) expect(around[nth]?.lacking, name).toEqual(expected);
  }
});

test('the answer to a question without a range of ids lacks nothing', async ({ db, stored }) => {
  const { page } = aCase(createRandom(3), stored, 3, false);
  expect((await diffPage(db, key, { ...page, asked: null })).lacking).toEqual([]);
  expect((await diffPage(db, key, { ...page, asked: null, applications: [] })).lacking).toEqual([]);
});

test('an answer reports so many lacking ids at most', async ({ db, database }) => {
  const advertiserId = BigInt(advertisers + 1);
  await database.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq, first_seen_at)
     SELECT $1, id, '', 0, to_timestamp($2) FROM generate_series(1, $3::int) AS id`,
    [advertiserId, noon / 1_000, mostLacking + 5],
  );
  const { lacking } = await diffPage(db, key, aPage(lease, [anApplication(2)], { advertiserId, sweepId }));
  expect(lacking.map(({ id }) => id)).toEqual([
    1n,
    ...Array.from({ length: mostLacking - 1 }, (_, n) => BigInt(n + 3)),
  ]);
});

// What the store says a page lacks, held against the rule that the reasoning and its simulation go by.
import { createSecretKey } from 'node:crypto';
import { expect } from 'vitest';
import type { UnshownId } from '../../src/domain/coverage/question.ts';
import type { ExpectedIds } from '../../src/domain/coverage/unshown.ts';
import { diffPage, loadSurroundings, type ReadPage, type Seen } from '../../src/store/applications/diff-page.ts';
import { type Database, openDatabase } from '../../src/store/postgres/database.ts';
import { findUnshown, type Held } from '../simulation/find-unshown.ts';
import { anApplication, aPage } from '../support/applications.ts';
import { createRandom, type Random } from '../support/random.ts';
import { test as base, type TestDatabase } from '../support/test-database.ts';

const _key = createSecretKey(Buffer.from('a key for tests'));
const lease = { name: 'acme', lane: 'live', owner: 'test', epoch: 1n } as const;
const noon = Date.UTC(2026, 5, 1, 12);
const advertisers = 40;
const highestId = 90;

interface Stored extends Held {
  readonly advertiserId: number;
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
      stored.push({ advertiserId, id: BigInt(id), firstSeenAt: aTime(random), missingSince, erased, absent });
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
  return stored;
}

interface Case {
  readonly page: ReadPage;
  readonly expected: UnshownId[];
  readonly name: string;
}

/** A random question, a random answer to it, and what the rule finds unshown. */
function aCase(random: Random, stored: readonly Stored[], seed: number, isEmpty: boolean): Case {
  const advertiserId = random.between(1, advertisers);
  const [one, other] = [random.between(1, highestId + 5), random.between(1, highestId + 5)];
  const asked: ExpectedIds = {
    low: BigInt(Math.min(one, other)),
    high: random.chance(0.4) ? null : BigInt(Math.max(one, other)),
    limit: random.pick([1, 2, 7, 64]),
    fromTop: random.chance(0.3),
  };
  const sentAt = aTime(random);
  const sweepStartedAt = random.chance(0.2) ? sentAt : Math.min(sentAt, aTime(random));
  const own = stored.filter((row) => row.advertiserId === advertiserId);
  const share = random.pick([0.1, 0.6, 1]);
  const shown = isEmpty ? [] : own.filter(() => random.chance(share)).map(({ id }) => id);
  // An answer may also show ids that are not stored, inside and outside of what was asked for.
  if (!isEmpty) shown.push(BigInt(random.between(1, highestId + 20)));
  const rows = [...new Set(shown)].map((id) => ({ id }));
  const anyPage = aPage(
    lease,
    rows.map(({ id }) => anApplication(id)),
    { advertiserId: BigInt(advertiserId) },
  );
  const page = {
    ...anyPage,
    sweep: { ...anyPage.sweep, startedAt: new Date(sweepStartedAt) },
    asked,
    askedAt: new Date(sentAt),
  };
  const held = own.filter(({ erased }) => !erased);
  return { page, name: `seed ${seed}`, expected: findUnshown(asked, rows, held, { sentAt, sweepStartedAt }) };
}

/** What the store tells the sweep of a page. */
async function tell(db: Database, page: ReadPage): Promise<Seen> {
  return (await diffPage(db, page)).seen;
}

/** Guards against cases in which nothing is ever unshown, or nothing is ever left out. */
function expectVariety(cases: readonly Case[]): void {
  const some = (is: (one: Case) => boolean) => cases.filter(is).length;
  expect(some(({ expected }) => expected.length === 0)).toBeGreaterThan(cases.length / 20);
  expect(some(({ expected }) => expected.length > 5)).toBeGreaterThan(cases.length / 20);
  expect(some(({ expected, page }) => expected.length === page.asked?.limit)).toBeGreaterThan(cases.length / 20);
  expect(some(({ expected }) => expected.some(({ old }) => old))).toBeGreaterThan(cases.length / 20);
  expect(some(({ expected }) => expected.some(({ old }) => !old))).toBeGreaterThan(cases.length / 20);
}

test('a page with rows lacks what the rule finds unshown, on 600 random pages', { tags: ['slow'] }, async ({
  db,
  stored,
}) => {
  const cases = Array.from({ length: 600 }, (_, seed) => aCase(createRandom(seed), stored, seed, false));
  expectVariety(cases);
  for (const { page, expected, name } of cases) {
    const { unshown, unheld } = await tell(db, page);
    expect(unshown, name).toEqual(expected);
    const own = new Set(stored.filter((row) => BigInt(row.advertiserId) === page.advertiserId).map(({ id }) => id));
    expect(unheld, name).toEqual(page.applications.map(({ id }) => id).filter((id) => !own.has(id)));
  }
});

test('an empty page lacks what the rule finds unshown, on 300 random questions', async ({ db, stored }) => {
  const cases = Array.from({ length: 300 }, (_, seed) => aCase(createRandom(seed), stored, seed, true));
  for (const { page, expected, name } of cases) {
    expect(await tell(db, page), name).toEqual({ unheld: [], unshown: expected });
  }
});

test('empty pages compared in one statement lack the same, on 3,000 random questions', async ({ db, stored }) => {
  const cases = Array.from({ length: 3_000 }, (_, seed) => aCase(createRandom(seed + 9_000), stored, seed, true));
  expectVariety(cases);
  for (let from = 0; from < cases.length; from += 250) {
    const batch = cases.slice(from, from + 250);
    const around = await loadSurroundings(
      db,
      batch.map(({ page }) => page),
    );
    for (const [nth, { expected, name }] of batch.entries()) expect(around[nth]?.unshown, name).toEqual(expected);
  }
});

test('a question that speaks of no range of ids lacks nothing', async ({ db, stored }) => {
  const { page } = aCase(createRandom(3), stored, 3, false);
  expect((await tell(db, { ...page, asked: null })).unshown).toEqual([]);
  expect((await tell(db, { ...page, asked: null, applications: [] })).unshown).toEqual([]);
});

// @module-tag slow
// What sources do that their description does not foresee, read by the product over HTTP into Postgres: everybody else is stored, nothing
// stands still, and the operator is told and can decide.

import { createServer } from 'node:http';
import { describe, expect } from 'vitest';
import type { Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import type { Source } from '../../../src/source/client.ts';
import { audit } from '../../../src/sync/read/audit.ts';
import { syncAccount } from '../../../src/sync/read/read-account.ts';
import { readAgain } from '../../../src/sync/read/read-tasks.ts';
import { addUp, nothingCounted, type SweepCounts } from '../../../src/sync/read/sweep.ts';
import { type TestDatabase, test } from '../../support/database/test-database.ts';
import { callIntake } from '../../support/processes/intake.ts';
import { type CountedSweep, toEnvironment } from '../../support/processes/syncing.ts';
import { inLane } from '../../support/reading.ts';
import { listenLocally } from '../../support/servers/local-server.ts';
import { type OwnSourceOptions, openOwnSource } from '../../support/servers/own-source.ts';
import {
  loadProblems,
  openSmallIntake,
  type SmallIntake,
  type SmallIntakeOptions,
} from '../../support/small-intake.ts';

/** An answer of the list, before it is sent. */
interface ListAnswer {
  readonly ids: readonly bigint[];
  readonly body: string;
  readonly query: URLSearchParams;
}
/** What the source makes of an answer; null leaves it as it is. */
type Spoil = (answer: ListAnswer) => { readonly status?: number; readonly body?: string } | null;

interface Troubled extends SmallIntake {
  /** The sandbox, reached through what `spoil` does to its lists. */
  readonly source: Source;
  readonly env: Record<string, string>;
  spoil: Spoil | null;
  /** Requests of the list so far. */
  requests: number;
  /** Reads as `intake sync` does; the last sweep. */
  sync(recheck?: boolean, lagMs?: number): Promise<CountedSweep>;
  run(...args: string[]): ReturnType<typeof callIntake>;
}

async function openTroubled(
  options: SmallIntakeOptions & { readonly database: TestDatabase },
  limits: Partial<OwnSourceOptions> = {},
): Promise<Troubled> {
  await using stack = new AsyncDisposableStack();
  const intake = stack.use(await openSmallIntake({ rigor: 'proof', ...options }));
  const troubled = { spoil: null as Spoil | null, requests: 0 };
  const url = await serveSpoiled(stack, intake.board, troubled);
  const source = stack.use(
    openOwnSource({
      ...{ url, credential: intake.board.credential, retryDelayMs: 1, connections: 8 },
      ...{ listMaxBytes: 8_000_000, applicationMaxBytes: 8_000_000, ...limits },
    }),
  );
  const env = toEnvironment(intake.database, { url, credential: intake.board.credential });
  const owned = stack.move();
  return Object.assign(troubled, intake, {
    source,
    env,
    async sync(recheck = false, lagMs = 0) {
      let counts: SweepCounts = nothingCounted;
      const onStep = (step: SweepCounts) => {
        counts = addUp(counts, step);
      };
      const sweeps = await syncAccount(
        { store: intake.store, source, onStep },
        {
          ...{ name: 'default', advertiserId: null, owner: 'test', leaseMs: 600_000, lagMs, startAt: null },
          ...{ retryForMs: 0, recheck, signal: AbortSignal.timeout(600_000) },
        },
      );
      return { ...counts, ...sweeps.at(-1) } as CountedSweep;
    },
    run: (...args: string[]) => callIntake(args, env),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  });
}

/** Serves the sandbox; its lists pass through `spoil`. */
async function serveSpoiled(
  stack: AsyncDisposableStack,
  board: Sandbox,
  troubled: { spoil: Spoil | null; requests: number },
): Promise<string> {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', board.url);
    const headers = { authorization: request.headers.authorization ?? '', accept: request.headers.accept ?? '*/*' };
    const answer = await fetch(url, { headers });
    const body = Buffer.from(await answer.arrayBuffer());
    const isList = url.pathname.endsWith('/advertiser/applications');
    if (isList) troubled.requests++;
    const text = body.toString();
    const ids = [...text.matchAll(/"ID":(\d+)/g)].map(([, id = '']) => BigInt(id));
    const spoiled = isList ? (troubled.spoil?.({ ids, body: text, query: url.searchParams }) ?? null) : null;
    response.writeHead(spoiled?.status ?? answer.status, {
      'content-type': answer.headers.get('content-type') ?? 'application/json',
    });
    response.end(spoiled === null ? body : (spoiled.body ?? ''));
  });
  return stack.use(await listenLocally(server)).url;
}

const idsOf = ({ board }: Pick<SmallIntake, 'board'>) => [...board.truth()].map(({ id }) => id);

async function loadIds(database: TestDatabase): Promise<bigint[]> {
  const rows = await database.query<{ id: string }>(
    `SELECT application_id::text AS id FROM intake.applications ORDER BY application_id`,
  );
  return rows.map(({ id }) => BigInt(id));
}

const loadCursor = async (database: TestDatabase) =>
  (await database.query<{ id: string }>(`SELECT after_id::text AS id FROM intake.cursors`)).map(({ id }) => BigInt(id));

const ascending = (a: bigint, b: bigint) => (a < b ? -1 : 1);

describe('one application makes every page with it fail', () => {
  const broken: Record<string, Spoil> = {
    'with 500': () => ({ status: 500, body: 'Something went wrong.' }),
    'with broken JSON': ({ body }) => ({ body: body.slice(0, -30) }),
  };

  test.for(Object.keys(broken))(
    '%s: all others are stored, it is named, and everything goes on',
    async (how, { database }) => {
      await using intake = await openTroubled({ database, applications: 120, choices: { pageCap: 30 } });
      const ids = idsOf(intake);
      const poison = ids[45] as bigint;
      intake.spoil = (answer) => (answer.ids.includes(poison) ? (broken[how]?.(answer) ?? null) : null);

      const first = await intake.sync();
      expect(first).toMatchObject({ certificate: 'assumed', risk: 'doubt', openRanges: 0 });
      expect(first.reason).toMatch(new RegExp(`^all but id ${poison}: `));
      const others = ids.filter((id) => id !== poison).sort(ascending);
      expect(await loadIds(database)).toEqual(others);
      expect(await loadCursor(database)).toEqual([others.at(-1)]);
      expect(intake.requests).toBeLessThan(120);

      // Polls and files go on, and the id costs them nothing.
      const added = intake.board.add(3);
      intake.requests = 0;
      expect(await intake.sync()).toMatchObject({ added: 3, risk: 'harmless' });
      expect(intake.requests).toBeLessThan(8);
      expect(await loadCursor(database)).toEqual([added.at(-1)]);
      expect(await intake.runDownloads()).toMatchObject({ stored: expect.any(Number) });
      expect(await database.query(`SELECT 1 FROM intake.applications WHERE ready_at IS NULL`)).toEqual([]);

      const problems = await loadProblems(intake);
      expect(problems).toContainEqual(
        expect.objectContaining({
          what: expect.stringContaining(`Id ${poison} could not be read since `),
          command: `intake accept-unreadable ${poison}`,
        }),
      );

      // The operator decides, on record, and the rest can be proven.
      expect(await intake.run('accept-unreadable', String(poison))).toMatchObject({ code: 2 });
      expect(await intake.sync(true)).toMatchObject({ certificate: 'assumed', risk: 'doubt' });
      expect(await intake.run('accept-unreadable', String(poison), '--yes')).toMatchObject({ code: 0 });
      expect(
        await database.query(`SELECT application_id::text AS id, facts->>'what' AS what FROM intake.audit_log`),
      ).toEqual([{ id: String(poison), what: 'unreadable' }]);
      expect(await intake.sync(true)).toMatchObject({ certificate: 'proven' });
      const after = await loadProblems(intake);
      expect(after.map(({ what }) => what)).not.toContainEqual(expect.stringContaining(String(poison)));
    },
  );

  test('and is stored when the source serves it again', async ({ database }) => {
    await using intake = await openTroubled({ database, applications: 60 });
    const poison = idsOf(intake)[20] as bigint;
    intake.spoil = ({ ids }) => (ids.includes(poison) ? { status: 500 } : null);
    await intake.sync();
    const row = `SELECT tries, next_at > now() AS later FROM intake.unreadable`;
    expect(await database.query(row)).toEqual([{ tries: 1, later: true }]);
    // It is asked alone when its pause is over, and the next pause is longer.
    await database.query(`UPDATE intake.unreadable SET next_at = now()`);
    await intake.sync();
    expect(await database.query(row)).toEqual([{ tries: 2, later: true }]);
    intake.spoil = null;
    await database.query(`UPDATE intake.unreadable SET next_at = now()`);
    await intake.sync();
    expect(await database.query(row)).toEqual([]);
    expect(await loadIds(database)).toEqual(idsOf(intake).sort(ascending));
    expect(await intake.sync(true)).toMatchObject({ certificate: 'proven' });
  });

  test('is told from an outage, in which the source serves no other question either', async ({ database }) => {
    await using intake = await openTroubled({ database, applications: 60 });
    await intake.sync();
    intake.spoil = () => ({ status: 500 });
    await expect(intake.sync()).rejects.toMatchObject({ kind: 'unreachable', status: 500 });
    await expect(intake.sync(true)).rejects.toMatchObject({ kind: 'unreachable', status: 500 });
    expect(await database.query(`SELECT 1 FROM intake.unreadable`)).toEqual([]);
  });
});

test('where nothing is to be accepted, a decision changes nothing and ends with 0', async ({ database }) => {
  await using intake = await openTroubled({ database, applications: 20 });
  await intake.sync();
  const id = String(idsOf(intake)[3]);
  for (const yes of [[], ['--yes']]) {
    expect(await intake.run('accept-deletions', ...yes)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('no application is gone at the source'),
    });
    expect(await intake.run('accept-unreadable', id, ...yes)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`id ${id} is not known to be unreadable`),
    });
  }
  expect(await database.query(`SELECT 1 FROM intake.audit_log`)).toEqual([]);
});

test('a purge of a tenth is unproven until the operator accepts it, on record', async ({ database }) => {
  await using intake = await openTroubled({ database, applications: 300, choices: { pageCap: 50 } });
  await intake.sync();
  const gone = idsOf(intake)
    .filter((_, nth) => nth % 10 === 3)
    .sort(ascending);
  for (const id of gone) intake.board.remove(id);
  const purged = await intake.sync(true);
  expect(purged).toMatchObject({
    certificate: 'unproven',
    reason: 'too many stored applications are gone at once',
    absent: 30,
  });
  const problems = await loadProblems(intake);
  expect(problems).toContainEqual(expect.objectContaining({ command: 'intake accept-deletions' }));
  const counts = `SELECT count(absent_since)::int AS absent, count(missing_since)::int AS missing FROM intake.applications`;
  expect(await database.query(counts)).toEqual([{ absent: 30, missing: 0 }]);

  // Without --yes it only shows what would be accepted.
  const shown = await intake.run('accept-deletions');
  expect(shown).toMatchObject({ code: 2, stdout: expect.stringContaining('30 applications are gone at the source') });
  expect(shown.stdout).toContain(String(gone[0]));
  expect(await database.query(counts)).toEqual([{ absent: 30, missing: 0 }]);
  expect(await intake.sync(true)).toMatchObject({ certificate: 'unproven' });

  expect(await intake.run('accept-deletions', '--yes')).toMatchObject({ code: 0 });
  expect(await database.query(counts)).toEqual([{ absent: 30, missing: 30 }]);
  expect(await database.query(`SELECT 1 FROM intake.events WHERE type = 'application.missing'`)).toHaveLength(30);
  expect(
    await database.query(`SELECT action, facts->>'what' AS what, facts->'count' AS count FROM intake.audit_log`),
  ).toEqual([{ action: 'accept', what: 'deletions', count: 30 }]);
  const lines = await database.query<{ line: string }>(
    `SELECT line FROM intake.evidence ORDER BY sweep_id DESC, n DESC LIMIT 1`,
  );
  expect(JSON.parse(lines[0]?.line ?? '{}')).toMatchObject({
    type: 'decision',
    what: 'deletions',
    ids: expect.stringContaining(String(gone[0])),
  });

  expect(await intake.sync(true)).toMatchObject({ certificate: 'proven', absent: 0 });
  expect(await loadIds(database)).toHaveLength(300);
  expect(await intake.run('accept-deletions', '--yes')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('no application is gone at the source'),
  });
});

test('filters combined by OR, and a volatile member: few requests for each page', async ({ database }) => {
  await using intake = await openTroubled({ database, applications: 300, choices: { pageCap: 50, combination: 'or' } });
  let answers = 0;
  intake.spoil = ({ body }) => {
    answers++;
    return { body: body.replaceAll('{"ID":', `{"Viewed":${answers},"ID":`) };
  };
  const first = await intake.sync();
  expect(first.certificate).not.toBe('proven');
  expect(await loadIds(database)).toHaveLength(300);
  expect(intake.requests).toBeLessThan(20 * 6);
  intake.requests = 0;
  await intake.sync(true);
  expect(intake.requests).toBeLessThan(20 * 6);
});

test('an application larger than the byte budget: later polls do not grow', async ({ database }) => {
  await using intake = await openTroubled(
    { database, applications: 60 },
    { listMaxBytes: 100_000, applicationMaxBytes: 200_000 },
  );
  await intake.sync();
  const [large = 0n] = intake.board.add([{ firstName: 'x'.repeat(400_000), attachments: [] }]);
  const costs: number[] = [];
  for (let nth = 0; nth < 6; nth++) {
    intake.board.add([{ attachments: [] }]);
    intake.requests = 0;
    // A poll reads again what came within the lag, the large one included.
    await intake.sync(false, 900_000);
    costs.push(intake.requests);
  }
  expect(await loadIds(database)).toEqual(
    idsOf(intake)
      .filter((id) => id !== large)
      .sort(ascending),
  );
  expect(await database.query(`SELECT application_id::text AS id FROM intake.unreadable`)).toEqual([
    { id: String(large) },
  ]);
  expect(Math.max(...costs.slice(1)) - Math.min(...costs.slice(1))).toBeLessThanOrEqual(2);
  expect(Math.max(...costs.slice(1))).toBeLessThan(12);
  expect(await database.query(`SELECT 1 FROM intake.sweeps WHERE state IN ('open', 'running')`)).toEqual([]);
  expect(await database.query(`SELECT 1 FROM intake.ranges`)).toEqual([]);
});

test('an application without a date that an audit shows ends the certificate', async ({ database }) => {
  await using intake = await openTroubled({ database, applications: 60 });
  const undated = idsOf(intake).sort(ascending)[30] as bigint;
  type Listed = { JobApplications: { JobApplicationsList: { ID: number; DateSubmitted?: unknown }[] } };
  const edit = (body: string, change: (one: Listed['JobApplications']['JobApplicationsList']) => void) => {
    const parsed = JSON.parse(body) as Listed;
    change(parsed.JobApplications.JobApplicationsList);
    return { body: JSON.stringify(parsed) };
  };
  const isUndated = ({ ID }: { ID: number }) => BigInt(ID) === undated;
  intake.spoil = ({ body }) =>
    edit(body, (list) => list.splice(0, list.length, ...list.filter((one) => !isUndated(one))));
  expect(await intake.sync()).toMatchObject({ certificate: 'proven' });
  intake.spoil = ({ body }) =>
    edit(body, (list) => {
      for (const one of list) if (isUndated(one)) delete one.DateSubmitted;
    });
  const { source } = intake;
  expect(await inLane(intake, ([deps, context]) => audit(deps, context, () => 0.4), { source })).toBe(1);
  expect(
    await database.query(`SELECT submitted_at FROM intake.applications WHERE application_id = $1`, [undated]),
  ).toEqual([{ submitted_at: null }]);
  expect(await database.query(`SELECT certificate, reason FROM intake.coverage`)).toEqual([
    { certificate: 'unproven', reason: expect.stringContaining('a random audit found an application') },
  ]);
  // A recheck after it brings a new certificate.
  expect(await inLane(intake, (read) => readAgain(...read), { source })).toMatchObject({ certificate: 'proven' });
});

test.for(['notFound', 'noContent', 'emptyBody'] as const)(
  'a source that says "nothing" without an envelope (%s) does not change the agent of the account',
  async (empty, { database }) => {
    await using intake = await openTroubled({ database, applications: 40, choices: { empty, agentId: 'number' } });
    const loadAgent = async () =>
      (await database.query<{ id: string }>(`SELECT agent_id AS id FROM intake.advertisers`))[0]?.id;
    expect(await intake.sync()).toMatchObject({ certificate: 'assumed', risk: 'harmless' });
    const agent = await loadAgent();
    expect(agent).toEqual(expect.any(String));
    for (const recheck of [false, true]) {
      await intake.sync(recheck);
      expect(await loadAgent()).toBe(agent);
    }
  },
);

const loadUnreadable = async (database: TestDatabase) =>
  (
    await database.query<{ id: string }>(
      `SELECT application_id::text AS id FROM intake.unreadable ORDER BY application_id`,
    )
  ).map(({ id }) => BigInt(id));
const loadVerdict = (database: TestDatabase) =>
  database.query(`SELECT certificate, risk, open_ranges FROM intake_analytics.completeness`);

describe('ids that cannot be read', () => {
  test('beside each other are each an open range, and a backfill of the gaps asks for both', async ({ database }) => {
    await using intake = await openTroubled({ database, choices: { pageCap: 30 } });
    intake.board.add(Array.from({ length: 80 }, (_, nth) => ({ id: 100_000n + BigInt(nth), attachments: [] })));
    const poison = [100_040n, 100_041n];
    intake.spoil = ({ ids }) => (ids.some((id) => poison.includes(id)) ? { status: 500 } : null);
    await intake.sync();
    expect(await loadVerdict(database)).toEqual([{ certificate: 'assumed', risk: 'doubt', open_ranges: 2 }]);
    intake.spoil = null;
    await intake.run('backfill', '--gaps', '--no-files');
    expect(await loadUnreadable(database)).toEqual([]);
    expect(await loadIds(database)).toHaveLength(80);
  });

  test('are asked alone after new applications, ten at once, and none after a stop', async ({ database }) => {
    await using intake = await openTroubled({ database, applications: 40, choices: { pageCap: 30 } });
    await intake.sync();
    await database.query(
      `INSERT INTO intake.unreadable (advertiser_id, application_id, reason, next_at)
       SELECT advertiser_id, id, 'test', now() FROM intake.advertisers, generate_series(10, 140, 10) AS id`,
    );
    const asked: ('new' | 'alone')[] = [];
    const stop = new AbortController();
    const note: Spoil = ({ query }) => {
      asked.push(Number(query.get('beforeid') ?? 0) - Number(query.get('afterid')) === 2 ? 'alone' : 'new');
      return null;
    };
    intake.spoil = note;
    intake.board.add(2);
    expect(await intake.sync()).toMatchObject({ added: 2 });
    expect(asked.slice(asked.indexOf('alone'))).toEqual(Array.from({ length: 10 }, () => 'alone'));
    expect(asked[0]).toBe('new');
    expect(await loadUnreadable(database)).toHaveLength(4);

    asked.length = 0;
    intake.spoil = (answer) => {
      note(answer);
      if (asked.filter((one) => one === 'alone').length === 2) stop.abort();
      return null;
    };
    const whose = { name: 'default', advertiserId: null, owner: 'test', leaseMs: 600_000, lagMs: 0, startAt: null };
    const how = { retryForMs: 60_000, recheck: false, signal: stop.signal };
    await expect(syncAccount({ store: intake.store, source: intake.source }, { ...whose, ...how })).rejects.toThrow();
    expect(asked.filter((one) => one === 'alone')).toHaveLength(2);
    expect(await loadUnreadable(database)).toHaveLength(3);
  });

  test('stay due while the source serves nothing, and the sync ends', async ({ database }) => {
    await using intake = await openTroubled({ database, applications: 60, choices: { pageCap: 30 } });
    const poison = idsOf(intake).sort(ascending)[30] as bigint;
    intake.spoil = ({ ids }) => (ids.includes(poison) ? { status: 500 } : null);
    await intake.sync();
    await database.query(`UPDATE intake.unreadable SET next_at = now()`);
    intake.board.add(1);
    intake.spoil = ({ ids, query }) => (ids.includes(poison) || query.get('beforeid') === '1' ? { status: 500 } : null);
    expect(await intake.sync()).toMatchObject({ added: 1 });
    expect(await loadUnreadable(database)).toEqual([poison]);
  });

  test('are believed up to twenty: then the source is in trouble', async ({ database }) => {
    await using intake = await openTroubled({ database, applications: 60, choices: { pageCap: 30 } });
    await intake.sync();
    intake.spoil = ({ query }) => (query.get('beforeid') === '1' ? null : { status: 500 });
    await expect(intake.sync(true)).rejects.toThrow('The source fails for one id after the other');
    expect((await loadUnreadable(database)).length).toBeLessThanOrEqual(20);
  });

  test('are found as well if the source fails for the question about nobody', async ({ database }) => {
    await using intake = await openTroubled({ database, applications: 120, choices: { pageCap: 30 } });
    const poison = idsOf(intake).sort(ascending)[45] as bigint;
    intake.spoil = ({ ids, query }) => (ids.includes(poison) || query.get('beforeid') === '1' ? { status: 500 } : null);
    await intake.sync();
    expect(await loadUnreadable(database)).toEqual([poison]);
    expect(await loadIds(database)).toHaveLength(119);
  });
});

test('a first sync from a date reads everything where the source ignores dates', async ({ database }) => {
  await using intake = await openTroubled({ database, applications: 100, choices: { pageCap: 30 } });
  const source: Source = {
    ...intake.source,
    list: ({ afterDate, beforeDate, ...filters }, ...rest) =>
      intake.source.list(afterDate || beforeDate ? { afterId: 0n } : filters, ...rest),
  };
  const dates = [...intake.board.truth()].map(({ submittedAt }) => submittedAt as number).sort((a, b) => a - b);
  const whose = { name: 'default', advertiserId: null, owner: 'test', leaseMs: 600_000, lagMs: 0, recheck: false };
  const how = { startAt: dates[70] as number, retryForMs: 0, signal: AbortSignal.timeout(600_000) };
  await syncAccount({ store: intake.store, source }, { ...whose, ...how });
  expect(await loadIds(database)).toHaveLength(100);
});

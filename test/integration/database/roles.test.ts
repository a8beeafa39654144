// The five roles on a real database: what each may do, to the last relation and privilege, and what the analyst finds when looking for
// people.
import { createSecretKey, randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import pg from 'pg';
import { describe, expect } from 'vitest';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { anonymousViews, loadGrantsSql, personalViews, roles } from '../../../src/store/postgres/grants.ts';
import { migrate } from '../../../src/store/postgres/migrations.ts';
import { beginErasure } from '../../../src/store/privacy/erasure-jobs.ts';
import { fillFromDemoBoard } from '../../support/database/demo-board.ts';
import { test as base, emptyDatabase, type TestDatabase } from '../../support/database/test-database.ts';
import { callIntake } from '../../support/processes/intake.ts';

interface Cast {
  readonly prefix: string;
  /** The URL of a login that is a member of one role and of nothing else. */
  urlOf(role: (typeof roles)[number]): string;
}

/** Roles are known to the whole server, so each file has names of its own and takes them away again. */
const test = base.extend('cast', { scope: 'file' }, async ({ database }, { onCleanup }): Promise<Cast> => {
  const prefix = `intake_test_${randomBytes(4).toString('hex')}`;
  const { code, stderr } = await callIntake(['grants', '--apply', '--prefix', prefix], { DATABASE_URL: database.url });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const role of roles) {
    await database.query(`CREATE ROLE ${prefix}_${role}_login LOGIN PASSWORD 'only-a-test' IN ROLE ${prefix}_${role}`);
  }
  await database.query(`ALTER ROLE ${prefix}_owner_login SET role = '${prefix}_owner'`);
  onCleanup(async () => {
    await database.query(`REASSIGN OWNED BY ${prefix}_owner TO CURRENT_USER`);
    for (const name of roles.flatMap((role) => [`${prefix}_${role}_login`, `${prefix}_${role}`])) {
      await database.query(`DROP OWNED BY ${name}`);
      await database.query(`DROP ROLE ${name}`);
    }
  });
  return {
    prefix,
    urlOf(role) {
      const url = new URL(database.url);
      url.username = `${prefix}_${role}_login`;
      url.password = 'only-a-test';
      return url.href;
    },
  };
});

/** Opens a session of a role; `attempt` gives the error's code, or the rows. */
async function openSession(url: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const attempt = async (sql: string): Promise<string | pg.QueryResultRow[]> => {
    try {
      return (await client.query(sql)).rows;
    } catch (error) {
      return (error as { code?: string }).code ?? 'no code';
    }
  };
  return { attempt, [Symbol.asyncDispose]: () => client.end() };
}

/** Runs a statement as a role, in a session of its own. */
async function attempt(url: string, sql: string): Promise<string | pg.QueryResultRow[]> {
  await using session = await openSession(url);
  return await session.attempt(sql);
}

const refused = '42501';

describe('the roles that intake grants makes', () => {
  test('have these privileges (npm test -- test/integration/database/roles.test.ts -u)', async ({ database, cast }) => {
    const rows = await database.query<{ relation: string; role: string; privileges: string }>(
      `SELECT relation, role, coalesce(string_agg(privilege, ' ' ORDER BY place) FILTER (WHERE held), '-') AS privileges
       FROM (
         SELECT n.nspname || '.' || c.relname AS relation, role, r.no, privilege, place,
           CASE WHEN c.relkind = 'S' THEN privilege = ANY ('{USAGE,SELECT,UPDATE}') AND has_sequence_privilege($1 || '_' || role, c.oid, CASE WHEN privilege = ANY ('{USAGE,SELECT,UPDATE}') THEN privilege ELSE 'USAGE' END)
             ELSE privilege <> 'USAGE' AND has_table_privilege($1 || '_' || role, c.oid, CASE WHEN privilege = 'USAGE' THEN 'SELECT' ELSE privilege END) END AS held
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
           unnest($2::text[]) WITH ORDINALITY AS r (role, no),
           unnest('{USAGE,SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) WITH ORDINALITY AS p (privilege, place)
         WHERE n.nspname IN ('intake', 'intake_analytics') AND c.relkind IN ('r', 'v', 'S')
         UNION ALL
         SELECT 'schema ' || n.nspname, role, r.no, privilege, place, has_schema_privilege($1 || '_' || role, n.oid, privilege)
         FROM pg_namespace n, unnest($2::text[]) WITH ORDINALITY AS r (role, no),
           unnest('{USAGE,CREATE}'::text[]) WITH ORDINALITY AS p (privilege, place)
         WHERE n.nspname IN ('intake', 'intake_analytics')
       ) AS held
       GROUP BY relation, role, no ORDER BY relation COLLATE "C", no`,
      [cast.prefix, roles],
    );
    const held = [...Map.groupBy(rows, ({ relation }) => relation)];
    const groups = Map.groupBy(held, ([, all]) =>
      all.map(({ role, privileges }) => `${role}: ${privileges}`).join('\n'),
    );
    const golden = [...groups].map(([privileges, of]) => [privileges, ...of.map(([name]) => `  ${name}`)].join('\n'));
    await expect(`${golden.join('\n')}\n`).toMatchFileSnapshot(resolve('test/support/database/roles.golden.txt'));
  });

  test('leave no view unjudged: each names people or names nobody', async ({ database }) => {
    const views = await database.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relnamespace = 'intake_analytics'::regnamespace AND relkind IN ('v', 'm')`,
    );
    expect(
      views.map(({ name }) => name).filter((name) => ![...anonymousViews, ...personalViews].includes(name)),
      'add it to anonymousViews or personalViews in src/store/postgres/grants.ts',
    ).toEqual([]);
  });

  test('are made again without a change, and a privilege given by hand is taken back', async ({ database, cast }) => {
    await database.query(
      `GRANT SELECT, TRUNCATE ON intake.applications TO ${cast.prefix}_analyst, ${cast.prefix}_worker`,
    );
    await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
    await db.query(await loadGrantsSql(db, cast.prefix));
    expect(await attempt(cast.urlOf('analyst'), `SELECT 1 FROM intake.applications`)).toBe(refused);
    expect(await attempt(cast.urlOf('worker'), `TRUNCATE intake.events`)).toBe(refused);
  });

  test('let the owner migrate and the worker do everything but change the schema', async ({ database, cast }) => {
    await migrate(cast.urlOf('owner'));
    const { truth } = await fillFromDemoBoard(database, { applications: 120, asUrl: cast.urlOf('worker') });
    expect(await database.query(`SELECT count(*)::int AS n FROM intake.applications`)).toEqual([{ n: truth.length }]);
    expect(
      (await callIntake(['status'], { DATABASE_URL: cast.urlOf('worker'), PRIVACY_KEY: 'x'.repeat(32) })).code,
    ).toBe(0);
    await using db = openDatabase({ url: cast.urlOf('worker'), role: 'test' });
    const [{ advertiser_id: advertiserId = 0n, application_id: applicationId = 0n } = {}] = await db.query<{
      advertiser_id: bigint;
      application_id: bigint;
    }>(`SELECT advertiser_id, application_id FROM intake.applications ORDER BY application_id DESC LIMIT 1`);
    const sought = { by: 'application', applicationId } as const;
    expect(
      await beginErasure(db, createSecretKey(Buffer.from('key')), { advertiserId, sought, by: 'test' }),
    ).toMatchObject({ counts: { applications: 1 } });
    const [{ job_seeker_id: jobSeekerId = '' } = {}] = await db.query<{ job_seeker_id: string }>(
      `SELECT job_seeker_id FROM intake.applications WHERE email IS NOT NULL AND job_seeker_id IS NOT NULL LIMIT 1`,
    );
    const account = { advertiserId, sought: { by: 'jobseeker', jobSeekerId }, by: 'test' } as const;
    expect(await beginErasure(db, createSecretKey(Buffer.from('key')), account)).not.toBeNull();
    // Again, while the first is open: what it remembers is renewed.
    expect(await beginErasure(db, createSecretKey(Buffer.from('key')), account)).toMatchObject({
      closedAt: expect.any(Date),
    });
    for (const sql of [
      `CREATE TABLE intake.mine (a int)`,
      `ALTER TABLE intake.applications ADD COLUMN mine int`,
      `DROP TABLE intake.events`,
      `TRUNCATE intake.events`,
      `DELETE FROM intake.migrations`,
      `DELETE FROM intake.audit_log`,
      `UPDATE intake.audit_log SET by = 'somebody else'`,
      `DELETE FROM intake.erasures`,
      `UPDATE intake.erasures SET tombstone = ''`,
      `CREATE SCHEMA mine`,
    ]) {
      expect([sql, await attempt(cast.urlOf('worker'), sql)]).toEqual([sql, refused]);
    }
  });

  test('give the worker a table that a later migration brings, and the analyst none', async ({ cast }) => {
    await attempt(
      cast.urlOf('owner'),
      `CREATE TABLE intake.later (a int); CREATE VIEW intake_analytics.later AS SELECT a FROM intake.later`,
    );
    expect(await attempt(cast.urlOf('worker'), `INSERT INTO intake.later VALUES (1) RETURNING a`)).toEqual([{ a: 1 }]);
    expect(await attempt(cast.urlOf('analyst_personal'), `SELECT * FROM intake_analytics.later`)).toBe(refused);
    await attempt(cast.urlOf('owner'), `DROP VIEW intake_analytics.later; DROP TABLE intake.later`);
  });
});

describe('an analyst who looks for people', () => {
  /** Everything the login can read in the analysts' schema, value by value. */
  const loadCells = async (database: TestDatabase, url: string) => {
    const views = await database.query<{ view: string }>(
      `SELECT relname AS view FROM pg_class WHERE relnamespace = 'intake_analytics'::regnamespace ORDER BY 1`,
    );
    const cells = new Map<string, { place: string; text: string }>();
    const columns = new Set<string>();
    await using session = await openSession(url);
    for (const { view } of views) {
      const rows = await session.attempt(`SELECT to_jsonb(v) AS row FROM intake_analytics."${view}" v`);
      if (typeof rows === 'string') continue;
      for (const [column, value] of rows.flatMap(({ row }) => Object.entries(row as object))) {
        const place = `${view}.${column}`;
        const text = typeof value === 'string' ? value : JSON.stringify(value);
        columns.add(place);
        cells.set(`${place} ${text}`, { place, text });
      }
    }
    return { cells: [...cells.values()], readable: columns.size };
  };

  test('finds nothing of a person in any column, in statistics, or by a function', async ({ database, cast }) => {
    const { truth } = await fillFromDemoBoard(await empty(database), { applications: 150 });
    // What people typed that is a bare number proves nothing: such numbers are everywhere.
    const typed = truth.flatMap((row) =>
      row.screens.flatMap(({ questions }) =>
        questions
          .filter(({ type }) => type === 'Text' || type === 'URLQuestion')
          .flatMap(({ answers }) => answers.map(({ text }) => text).filter((text) => /\D/.test(text))),
      ),
    );
    const secrets = new Set([
      ...truth.flatMap((row) => [row.email, row.phone, row.jobSeekerId, row.firstName, row.lastName]),
      ...truth.flatMap((row) =>
        [row.jobSeekingInfo?.jobTitle, row.jobSeekingInfo?.companyName].filter((one) => typeof one === 'string'),
      ),
      ...truth.flatMap((row) => row.attachments.flatMap(({ fileName }) => fileName ?? [])),
      ...typed,
    ]);
    expect(secrets.size).toBeGreaterThan(450);
    const isSecret = ({ text }: { text: string }) =>
      secrets.has(text) ||
      truth.some(
        (row) =>
          text.includes(row.email) ||
          text.includes(row.phone) ||
          text.includes(row.jobSeekerId) ||
          (text.includes(row.firstName) && text.includes(row.lastName)),
      );

    const seen = await loadCells(database, cast.urlOf('analyst'));
    expect(seen.readable).toBeGreaterThan(120);
    expect(seen.cells.length).toBeGreaterThan(2_000);
    // Titles of jobs are the advertiser's words where they name a questionnaire, and people's where they tell of themselves.
    const titles = new Set(truth.flatMap((row) => row.screens.map(({ name }) => name)));
    expect(
      seen.cells.filter(isSecret).filter(({ place, text }) => !(place.endsWith('.screen_name') && titles.has(text))),
    ).toEqual([]);

    const full = await loadCells(database, cast.urlOf('analyst_personal'));
    expect(full.cells.filter(isSecret).length).toBeGreaterThan(500);

    expect(await peek(cast.urlOf('analyst'), [...secrets])).toEqual([]);
    expect(await peek(cast.urlOf('analyst_personal'), [...secrets])).not.toEqual([]);
    const elsewhere = await attempt(
      cast.urlOf('analyst'),
      `SELECT tablename || '.' || attname AS place, concat(most_common_vals, histogram_bounds) AS text
       FROM pg_stats WHERE schemaname LIKE 'intake%'
       UNION ALL SELECT 'pg_stat_activity', query FROM pg_stat_activity WHERE application_name LIKE 'intake%'`,
    );
    expect((elsewhere as { place: string; text: string }[]).filter(isSecret)).toEqual([]);
  });

  /** What a function of the analyst's own is shown that costs nothing, and so is asked before the conditions of the views. */
  const peek = async (url: string, secrets: readonly string[]) => {
    const client = new pg.Client({ connectionString: url });
    const shown: string[] = [];
    client.on('notice', ({ message = '' }) => shown.push(message));
    await client.connect();
    try {
      await client.query(`CREATE TEMP TABLE secrets (secret text PRIMARY KEY)`);
      await client.query(`INSERT INTO secrets SELECT unnest($1::text[])`, [secrets]);
      await client.query(
        `CREATE FUNCTION pg_temp.peek(place text, shown text) RETURNS boolean LANGUAGE plpgsql COST 0.000001 AS $$
         BEGIN
           IF EXISTS (SELECT FROM secrets WHERE secret = shown) THEN RAISE NOTICE '%', place; END IF;
           RETURN true;
         END $$`,
      );
      const { rows } = await client.query<{ view: string; asked: string }>(
        `SELECT table_name AS view, string_agg(format('pg_temp.peek(%L, %I)', table_name || '.' || column_name, column_name), ' AND ') AS asked
         FROM information_schema.columns WHERE table_schema = 'intake_analytics' AND data_type = 'text' AND column_name <> 'screen_name'
         GROUP BY table_name`,
      );
      expect(rows.length).toBeGreaterThan(10);
      for (const { view, asked } of rows)
        await client.query(`SELECT count(*) FROM intake_analytics.${view} WHERE ${asked}`);
    } finally {
      await client.end();
    }
    return [...new Set(shown)];
  };
});

/** The board is read afresh, so that this test stands alone. */
async function empty(database: TestDatabase): Promise<TestDatabase> {
  await emptyDatabase(database);
  return database;
}

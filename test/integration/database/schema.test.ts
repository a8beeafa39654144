// The schema as the catalog shows it.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { describe, expect } from 'vitest';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import {
  ensureSchema,
  loadMigrations,
  loadSchema,
  type Migration,
  migrate,
} from '../../../src/store/postgres/migrations.ts';
import { openStore } from '../../../src/store/store.ts';
import { isTemporary } from '../../../src/sync/retry.ts';
import { checkDatabase } from '../../../src/sync/worker/health-checks.ts';
import { openTestDatabase, test } from '../../support/database/test-database.ts';
import { callIntake } from '../../support/processes/intake.ts';
import { testPrivacyKey } from '../../support/processes/syncing.ts';
import { until } from '../../support/suite/until.ts';

const ours = `('intake', 'intake_analytics')`;
/** Tables that hold no advertiser's data: names, claims, which store is ours, where extracts are, and the migrations' own table. */
const shared = ['advertisers', 'leases', 'processes', 'rate_limits', 'migrations', 'blob_store', 'extracts'];

describe('the schema', () => {
  test('every primary, unique and foreign key of a data table begins with advertiser_id', async ({ database }) => {
    const keys = await database.query<{ relation: string; name: string; first: string; columns: string[] }>(
      `SELECT c.conrelid::regclass::text AS relation, c.conname AS name,
         (SELECT attname FROM pg_attribute WHERE attrelid = c.conrelid AND attnum = c.conkey[1]) AS first
       FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
       WHERE n.nspname = 'intake' AND c.contype IN ('p', 'u', 'f')
       UNION ALL
       SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text,
         (SELECT attname FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = i.indkey[0])
       FROM pg_index i JOIN pg_class k ON k.oid = i.indexrelid JOIN pg_namespace n ON n.oid = k.relnamespace
       WHERE n.nspname = 'intake' AND i.indisunique`,
    );
    const data = keys.filter(({ relation }) => !shared.includes(relation.replace('intake.', '')));
    expect(data.length).toBeGreaterThan(15);
    expect(data.filter(({ first }) => first !== 'advertiser_id')).toEqual([]);
  });

  test('every table, view and column says what it means', async ({ database }) => {
    const silent = await database.query(
      `SELECT c.oid::regclass::text AS relation, a.attname AS column_name
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
       WHERE n.nspname IN ${ours} AND c.relkind IN ('r', 'p', 'v', 'm')
         AND (coalesce(obj_description(c.oid), '') = '' OR coalesce(col_description(c.oid, a.attnum), '') = '')`,
    );
    expect(silent, 'write COMMENT ON for these into the migration that brings them').toEqual([]);
  });

  test('values that the source owns carry no CHECK and no enum', async ({ database }) => {
    const checked = await database.query<{ definition: string }>(
      `SELECT pg_get_constraintdef(c.oid) AS definition FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
       WHERE n.nspname = 'intake' AND c.contype = 'c'`,
    );
    expect(checked.length).toBeGreaterThan(5);
    const owned =
      /email|phone|first_name|last_name|job_reference|job_seeker_id|has_virus|href|source_hash|\bkind\b|size_bytes/;
    expect(checked.filter(({ definition }) => owned.test(definition))).toEqual([]);
    expect(
      await database.query(
        `SELECT 1 FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname IN ${ours} AND t.typtype = 'e'`,
      ),
    ).toEqual([]);
  });

  test('nothing is created outside intake and intake_analytics, beside tables of others', async ({ database }) => {
    await using other = await openTestDatabase();
    await other.query(`DROP SCHEMA IF EXISTS intake, intake_analytics CASCADE`);
    await other.query(`CREATE TABLE public.applications (id int PRIMARY KEY); INSERT INTO public.applications VALUES (1);
      CREATE SCHEMA ats; CREATE TABLE ats.events (event_id int); CREATE SCHEMA drizzle`);
    const everything = `SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname NOT IN ('intake', 'intake_analytics', 'pg_catalog', 'information_schema', 'pg_toast')
      UNION ALL SELECT 'extension ' || extname FROM pg_extension UNION ALL
      SELECT 'function ' || p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
      WHERE n.nspname NOT IN ('intake', 'intake_analytics', 'pg_catalog', 'information_schema') ORDER BY 1`;
    const before = await other.query(everything);
    await migrate(other.url);
    expect(await other.query(everything)).toEqual(before);
    expect(await other.query(`SELECT * FROM public.applications`)).toEqual([{ id: 1 }]);
    expect(await database.query(everything)).toContainEqual({ name: 'extension plpgsql' });
  });
});

describe('migrations', () => {
  test('five processes may start together on an empty database', async () => {
    await using empty = await openTestDatabase();
    await empty.query(`DROP SCHEMA intake CASCADE`);
    await Promise.all(Array.from({ length: 5 }, () => migrate(empty.url)));
    await using db = openDatabase({ url: empty.url, role: 'test' });
    expect((await loadSchema(db)).state).toBe('current');
  });

  test('one that fails is undone as a whole, ends with a SchemaTrouble and says what to do', async () => {
    await using broken = await openTestDatabase();
    await broken.query(`DROP SCHEMA intake CASCADE; CREATE SCHEMA intake; CREATE TABLE intake.sweeps (a int)`);
    await using db = openDatabase({ url: broken.url, role: 'test' });
    await expect(
      ensureSchema(db, { directUrl: broken.url, signal: AbortSignal.timeout(600_000) }),
    ).rejects.toMatchObject({ name: 'SchemaTrouble', next: expect.stringContaining('intake migrate') });
    expect(
      await broken.query(
        `SELECT relname FROM pg_class WHERE relnamespace = 'intake'::regnamespace AND relkind = 'r' ORDER BY 1`,
      ),
    ).toEqual([{ relname: 'sweeps' }]);
  });

  test('one that would fail is named by a trial', async () => {
    await using broken = await openTestDatabase();
    await broken.query(`DROP SCHEMA intake CASCADE; CREATE SCHEMA intake; CREATE TABLE intake.sweeps (a int)`);
    const { code, stderr } = await callIntake(['migrate', '--dry-run'], { DATABASE_URL: broken.url });
    expect({ code, stderr }).toEqual({ code: 7, stderr: expect.stringContaining('A migration failed (42P07)') });
  });

  test('one that waits for a lock lets others pass, and names who is in the way', { tags: ['slow'] }, async () => {
    await using older = await openTestDatabase();
    await older.query(`DROP SCHEMA intake, intake_analytics CASCADE; CREATE SCHEMA intake; CREATE TABLE intake.other ();
      CREATE TABLE intake.migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint)`);
    const bystander = new pg.Client({ connectionString: older.url, application_name: 'an older report' });
    const reader = new pg.Client({ connectionString: older.url, application_name: 'a long report' });
    await bystander.connect();
    await reader.connect();
    try {
      await bystander.query(`BEGIN; SELECT 1 FROM intake.other`);
      await reader.query(`BEGIN; SELECT 1 FROM intake.migrations`);
      const told: string[] = [];
      const waited = new AbortController();
      const onWait = ({ message }: Error) => {
        told.push(message);
        // On a busy machine the first wait may be over before it was looked at.
        if (message.includes('application "')) waited.abort();
      };
      // A process that is told to end meanwhile has not failed.
      const stopped = { name: 'AbortError' };
      await expect(migrate(older.url, { signal: waited.signal, onWait })).rejects.toMatchObject(stopped);
      expect(told.at(-1)).toMatch(/application "a long report", idle in transaction.* open for \d+ s/);
      // A session that came behind the migration has passed, and nothing was changed.
      await older.query(`BEGIN; LOCK TABLE intake.migrations IN SHARE MODE; COMMIT`);
      const ended = migrate(older.url, { onWait: () => void reader.query('COMMIT') });
      expect((await ended).at(0)).toMatch(/^0000/);
    } finally {
      await bystander.end();
      await reader.end();
    }
    await using db = openDatabase({ url: older.url, role: 'test' });
    expect((await loadSchema(db)).state).toBe('current');
  });

  test('each is committed alone: those before one that fails stay, and the next attempt goes on with it', async () => {
    await using older = await openTestDatabase();
    const [one, two] = [toMigration(1, 'CREATE TABLE intake.one ()'), toMigration(2, 'CREATE TABLE intake.two ()')];
    const broken = { ...two, statements: ['CREATE TABLE intake.half ()', 'SELECT 1 / 0', ...two.statements] };
    await expect(migrate(older.url, { migrations: [...loadMigrations(), one, broken] })).rejects.toMatchObject({
      name: 'SchemaTrouble',
      cause: { message: 'division by zero' },
    });
    const tables = `SELECT relname FROM pg_class WHERE relname IN ('one', 'half', 'two') ORDER BY 1`;
    expect(await older.query(tables)).toEqual([{ relname: 'one' }]);
    expect(await migrate(older.url, { migrations: [...loadMigrations(), one, two] })).toEqual([two.name]);
    expect(await older.query(tables)).toEqual([{ relname: 'one' }, { relname: 'two' }]);
  });

  test('a process that stands still amid one loses its locks, and the next succeeds', { tags: ['slow'] }, async () => {
    await using older = await openTestDatabase();
    const one = toMigration(1, 'LOCK TABLE intake.applications', 'CREATE TABLE intake.one ()');
    const migrations = [...loadMigrations(), one];
    let statements = 0;
    const crashPoint = () => {
      // After BEGIN and LOCK TABLE.
      if (++statements === 3) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 7_000);
    };
    await expect(migrate(older.url, { migrations, crashPoint })).rejects.toThrow(/terminat|25P03/);
    expect(await migrate(older.url, { migrations })).toEqual([one.name]);
  });

  test('one without a transaction builds its index beside readers and writers', { tags: ['slow'] }, async () => {
    await using older = await openTestDatabase();
    const statements = [
      'DROP INDEX CONCURRENTLY IF EXISTS intake.beside',
      'CREATE INDEX CONCURRENTLY IF NOT EXISTS beside ON intake.advertisers (state)',
    ];
    const migrations = [...loadMigrations(), { ...toMigration(1, ...statements), inTransaction: false }];
    const isValid = `SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('intake.beside')`;
    expect(await migrate(older.url, { migrations, dryRun: true })).toHaveLength(1);
    expect(await older.query(isValid)).toEqual([]);
    const reader = new pg.Client({ connectionString: older.url, application_name: 'a long report' });
    await reader.connect();
    try {
      // The build waits for the transaction that may still need the table as it was. Nobody waits for the build.
      await reader.query(`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM intake.advertisers`);
      const told = Promise.withResolvers<string>();
      const interrupted = expect(
        migrate(older.url, { migrations, onWait: ({ message }) => told.resolve(message) }),
      ).rejects.toThrow();
      expect(await told.promise).toContain('application "a long report", idle in transaction');
      await older.query(
        `BEGIN; SET LOCAL lock_timeout = 1; INSERT INTO intake.advertisers (name) VALUES ('a'); COMMIT`,
      );
      await older.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'intake migrate' AND datname = current_database()`,
      );
      await interrupted;
      expect(await older.query(isValid)).toEqual([{ indisvalid: false }]);
    } finally {
      await reader.end();
    }
    expect(await migrate(older.url, { migrations })).toHaveLength(1);
    expect(await older.query(isValid)).toEqual([{ indisvalid: true }]);
  });

  test('a process that waits for the migrations does not keep another one from building an index', async () => {
    await using older = await openTestDatabase();
    const statements = [
      'DROP INDEX CONCURRENTLY IF EXISTS intake.beside',
      'CREATE INDEX CONCURRENTLY IF NOT EXISTS beside ON intake.advertisers (state)',
    ];
    const migrations = [...loadMigrations(), { ...toMigration(1, ...statements), inTransaction: false }];
    const migrating = `SELECT query FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'intake migrate' AND query LIKE `;
    const writer = new pg.Client({ connectionString: older.url });
    await writer.connect();
    try {
      // The build waits for it first, and then for every statement that has begun meanwhile.
      await writer.query(`BEGIN; LOCK TABLE intake.advertisers IN ROW EXCLUSIVE MODE`);
      const building = migrate(older.url, { migrations });
      await until(async () => (await older.query(`${migrating} 'CREATE INDEX%'`)).length === 1);
      const waiting = migrate(older.url, { migrations });
      await until(async () => (await older.query(`${migrating} '%advisory_lock%'`)).length === 1);
      await writer.query('COMMIT');
      expect(await Promise.all([building, waiting])).toEqual([['0101_later'], []]);
    } finally {
      await writer.end();
    }
  });

  test('one that a deadlock with a worker ends begins again', { tags: ['slow'] }, async () => {
    await using older = await openTestDatabase();
    // A server that looks for deadlocks sooner than a migration gives up, and at first in the migration.
    const url = Object.assign(new URL(older.url), { search: '?options=-c%20deadlock_timeout%3D100' });
    const locks = ['applications', 'events'].map((table) => `LOCK TABLE intake.${table} IN ACCESS EXCLUSIVE MODE`);
    const worker = new pg.Client({ connectionString: older.url });
    await worker.connect();
    try {
      await worker.query(`SET deadlock_timeout = '10min'; BEGIN; LOCK TABLE intake.events IN ROW EXCLUSIVE MODE`);
      let statements = 0;
      let committed: Promise<unknown> = Promise.resolve();
      const crashPoint = () => {
        // After BEGIN and the first lock.
        if (++statements === 3)
          committed = worker.query('LOCK TABLE intake.applications IN ROW EXCLUSIVE MODE; COMMIT');
      };
      const ended = migrate(url.href, { migrations: [...loadMigrations(), toMigration(1, ...locks)], crashPoint });
      expect(await ended).toEqual(['0101_later']);
      await committed;
    } finally {
      await worker.end();
    }
  });

  test('limits that the role has for its statements are not for migrations', async () => {
    await using older = await openTestDatabase();
    const url = Object.assign(new URL(older.url), { search: '?options=-c%20statement_timeout%3D200' });
    const slow = toMigration(1, 'SELECT pg_sleep(0.3)');
    expect(await migrate(url.href, { migrations: [...loadMigrations(), slow] })).toEqual([slow.name]);
  });

  test('can be read and tried before they run', async () => {
    await using empty = await openTestDatabase();
    await empty.query(`DROP SCHEMA intake, intake_analytics CASCADE`);
    const env = { DATABASE_URL: empty.url };
    const printed = await callIntake(['migrate', '--print'], env);
    expect(printed).toMatchObject({ code: 0, stdout: expect.stringContaining('CREATE TABLE "intake"."applications"') });
    const tried = await callIntake(['migrate', '--dry-run'], env);
    expect(tried).toMatchObject({ code: 0, stdout: expect.stringContaining('rolled back: 0000') });
    expect(await empty.query(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'intake%'`)).toEqual([]);
    await empty.query(printed.stdout);
    expect((await callIntake(['migrate', '--print'], env)).stdout).toBe('-- The schema is up to date.\n');
  });

  test.for(['SQL_ASCII', 'LATIN1'])(
    'a database in %s is not migrated, and doctor names it',
    { tags: ['slow'] },
    async (encoding) => {
      await using server = await openTestDatabase();
      const name = `other_encoding_${randomBytes(4).toString('hex')}`;
      await server.query(`CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`);
      try {
        const url = new URL(server.url);
        url.pathname = `/${name}`;
        await expect(migrate(url.href)).rejects.toMatchObject({
          name: 'SchemaTrouble',
          message: expect.stringContaining(encoding),
          next: expect.stringContaining(`ENCODING 'UTF8'`),
        });
        await using store = openStore({ url: url.href, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
        expect(await checkDatabase(store, Date.now)).toContainEqual(
          expect.objectContaining({ check: 'encoding', ok: false, detail: expect.stringContaining(encoding) }),
        );
      } finally {
        await server.query(`DROP DATABASE ${name} WITH (FORCE)`);
      }
    },
  );

  test('a server that is away while it is to be migrated is trouble that passes, not a failed migration', async () => {
    await using empty = await openTestDatabase();
    await empty.query(`DROP SCHEMA intake CASCADE`);
    await using db = openDatabase({ url: empty.url, role: 'test' });
    const directUrl = 'postgres://intake:no@127.0.0.1:1/intake';
    const error = await ensureSchema(db, { directUrl, signal: AbortSignal.timeout(600_000) }).catch((met) => met);
    expect(error).toMatchObject({ name: 'Trouble', kind: 'local' });
    expect(isTemporary(error)).toBe(true);
  });

  test('a role that may not migrate waits for the owner, and says so', { tags: ['slow'] }, async ({ database }) => {
    const role = `intake_test_${randomBytes(4).toString('hex')}`;
    await database.query(`CREATE ROLE ${role} LOGIN PASSWORD 'only-a-test'`);
    await using empty = await openTestDatabase();
    await empty.query(`DROP SCHEMA intake CASCADE`);
    const url = new URL(empty.url);
    url.username = role;
    url.password = 'only-a-test';
    {
      await using db = openDatabase({ url: url.href, role: 'test' });
      const request = { directUrl: url.href, signal: AbortSignal.timeout(600_000) };
      await expect(ensureSchema(db, { ...request, retryForMs: 0 })).rejects.toMatchObject({
        name: 'SchemaTrouble',
        next: expect.stringContaining('as the owner'),
      });
      const waiting = ensureSchema(db, { ...request, retryForMs: 600_000 });
      await empty.query(`SELECT 1`);
      await migrate(empty.url);
      await empty.query(`GRANT USAGE ON SCHEMA intake TO ${role}; GRANT SELECT ON intake.migrations TO ${role}`);
      await waiting;
    }
    await empty.query(`DROP OWNED BY ${role}`);
    await database.query(`DROP ROLE ${role}`);
  });

  test('a schema that a newer version has broken for this one is left alone', async () => {
    await using newer = await openTestDatabase();
    await newer.query(`INSERT INTO intake.migrations (hash, created_at, lowest) VALUES ('x', 9999999999999, '99.0.0')`);
    await using db = openDatabase({ url: newer.url, role: 'test' });
    await expect(
      ensureSchema(db, { directUrl: newer.url, signal: AbortSignal.timeout(600_000) }),
    ).rejects.toMatchObject({ name: 'SchemaTrouble', message: expect.stringContaining('newer version') });
  });
});

/** A migration that a later version brings. */
function toMigration(nth: number, ...statements: string[]): Migration {
  const at = 9_999_999_999_000n + BigInt(nth);
  const record = `INSERT INTO intake.migrations (hash, created_at) VALUES ('x', ${at})`;
  return { name: `010${nth}_later`, at, statements: [...statements, record], inTransaction: true, lowest: null };
}

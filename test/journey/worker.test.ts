// Workers as processes of their own: how they live beside each other, how they are stopped, and what a paused one may not do.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import pg from 'pg';
import { describe, expect } from 'vitest';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { findDifferences } from '../support/equality.ts';
import { callIntake } from '../support/intake.ts';
import { openTestDatabase, type TestDatabase, test } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { isRead, openSettings, probe, spawnWorker } from '../support/worker.ts';

const loadLeases = (database: TestDatabase) =>
  database.query<{ owner: string; held: boolean }>(
    `SELECT owner, expires_at > now() AS held FROM intake.leases JOIN intake.advertisers USING (name) WHERE lane = 'live'`,
  );

describe('a worker', () => {
  test('keeps a board up to date, tells how it fares, and ends well when it is asked to', async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 10 });
    await using settings = await openSettings(database, board);
    await using worker = await spawnWorker(settings.env);
    await until(() => isRead(database, board));
    board.add(2);
    await until(() => isRead(database, board));
    await until(async () => (await database.query(`SELECT 1 FROM intake.downloads`)).length === 0);
    expect(await findDifferences(database, board)).toEqual([]);

    await until(async () => (await probe(worker, '/readyz')).status === 200);
    // The first sweep brings its proof after its last application.
    await until(async () =>
      (await (await fetch(worker.adminUrl)).text()).includes('All is well: 12 applications of 1 advertiser stored.'),
    );
    const metrics = await (await fetch(`${worker.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/^intake_passes_total\{pass="live",outcome="done"\} [1-9]/m);
    expect(metrics).toContain('intake_applications_taken_total{how="added"} 12');
    expect(metrics).toMatch(/^intake_files_total\{outcome="stored"\} [1-9]/m);
    const health = await callIntake(['healthcheck'], { ADMIN_PORT: new URL(worker.adminUrl).port });
    expect(health).toMatchObject({ code: 0, stdout: expect.stringContaining('alive') });
    const taken = await callIntake(['worker'], { ...settings.env, ADMIN_PORT: new URL(worker.adminUrl).port });
    expect(taken).toMatchObject({ code: 2, stderr: expect.stringContaining('ADMIN_PORT: port') });

    // Quiet polls are recorded as well: what is new was read just now, though nothing was.
    const [before] = await database.query<{ as_of: Date }>(`SELECT as_of FROM intake.cursors`);
    await until(async () => {
      const [now] = await database.query<{ as_of: Date }>(`SELECT as_of FROM intake.cursors`);
      return (now?.as_of.getTime() ?? 0) > (before?.as_of.getTime() ?? 0);
    });
    worker.kill('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
    expect(await loadLeases(database)).toEqual([{ owner: expect.stringContaining('worker on'), held: false }]);
  });

  const isFetching = (board: Sandbox) => board.requests().some((one) => !one.path.endsWith('/applications'));

  test('that is stopped amid its files gives them back unspent', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 10 });
    board.fault({ kind: 'hang', on: 'attachments', times: null });
    await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
    await using worker = await spawnWorker(settings.env);
    await until(() => isFetching(board));
    worker.kill('SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0 });
    expect(
      await database.query(
        `SELECT sum(attempts)::int AS attempts, count(lease_token)::int AS claimed FROM intake.downloads`,
      ),
    ).toEqual([{ attempts: 0, claimed: 0 }]);
  });

  test('that is asked to stop a second time ends at once', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 10 });
    board.fault({ kind: 'hang', on: 'attachments', times: null });
    await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
    await using hasty = await spawnWorker(settings.env);
    await until(() => isFetching(board));
    hasty.kill('SIGTERM');
    // Two that the process has not taken yet count as one, so it is asked until it has ended.
    const signals = setInterval(() => hasty.kill('SIGTERM'), 50);
    const { code } = await hasty.ended;
    clearInterval(signals);
    // Without the second one it would have ended well.
    expect(code).toBe(5);
  });

  test('in which something has stopped moving ends by itself with 8', { tags: ['slow'] }, async ({
    emptied: database,
  }) => {
    await using board = await openSandbox({ applications: 5 });
    board.fault({ kind: 'hang', on: 'list', times: null });
    await using settings = await openSettings(database, board);
    const child = spawn(process.execPath, ['test/support/worker-process.ts', 'worker'], {
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...settings.env },
      stdio: 'ignore',
    });
    expect(await once(child, 'exit')).toEqual([8, null]);
  });
});

describe('three workers of one database', () => {
  test('together keep the rate, and leave nothing out when one of them is killed', { tags: ['slow'] }, async ({
    emptied: database,
  }) => {
    const lag = monitorEventLoopDelay({ resolution: 5 });
    lag.enable();
    const rate = 20;
    const some = { applications: 12, choices: { pageCap: 5 } };
    await using board = await openSandbox({ ...some, advertisers: [some, some] });
    await using settings = await openSettings(database, board, {
      SOURCE_RATE: `${rate}/s`,
      SYNC_SCHEDULE: '*/2 * * * * *',
    });
    const workers = await Promise.all([1, 2, 3].map(() => spawnWorker(settings.env)));
    await using stack = new AsyncDisposableStack();
    for (const worker of workers) stack.use(worker);
    await until(() => board.requests().length > 20);
    workers[0]?.kill('SIGKILL');
    for (const account of board.advertisers) account.add(1);
    await until(async () => {
      const read = await Promise.all(board.advertisers.map((account) => isRead(database, account)));
      return read.every(Boolean) && (await database.query(`SELECT 1 FROM intake.downloads`)).length === 0;
    });
    for (const account of board.advertisers) expect(await findDifferences(database, account)).toEqual([]);

    lag.disable();
    // The board sees a request when its own process, this one, is free to look: those of a moment in which it was not seem to come
    // together, and with them what is sent in the second that follows. So much later may a request seem, and no more.
    const secondMs = 1_000 + lag.max / 1e6;
    const times = board.requests().map((one) => one.at);
    const most = Math.max(...times.map((start) => times.filter((at) => at >= start && at < start + 1_000).length));
    // A worker's process may stand still between its slot and its request, for two requests each. With a limit per process it is 35 and more.
    const heldUp = 2 * workers.length;
    expect(most).toBeLessThanOrEqual(Math.ceil((rate * secondMs) / 1_000) + heldUp);
  });
});

describe('a worker that is paused inside a transaction', () => {
  test('commits nothing once another one holds its lane', { tags: ['slow'] }, async () => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 10 });
    await using settings = await openSettings(database, board, { LEASE: '2s' });
    // Notes, at the very end of each transaction that writes applications, who commits and whose lane it is then.
    await database.query(`
      CREATE TABLE public.commits (app text, owner text);
      CREATE FUNCTION public.note_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.commits SELECT current_setting('application_name'), owner FROM intake.leases WHERE lane = 'live' AND name = 'account-1';
        RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER note_commit AFTER INSERT ON intake.applications DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION public.note_commit();`);
    const named = (name: string) => ({ ...settings.env, DATABASE_URL: `${database.url}?application_name=${name}` });

    // Maintenance by the clock has leases of its own, which say nothing of the account's.
    await database.query(
      `INSERT INTO intake.leases (name, lane, owner, epoch, expires_at) VALUES ('maintenance erasures', 'live', 'elsewhere', 1, now())`,
    );
    const holder = new pg.Client({ connectionString: database.url, application_name: 'test' });
    await holder.connect();
    await holder.query('BEGIN; LOCK TABLE intake.sweeps IN EXCLUSIVE MODE');
    await using paused = await spawnWorker(named('paused'));
    // Of this database and this worker: pg_locks also shows the waits of other tests.
    const waits = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'paused' AND wait_event_type = 'Lock'`;
    await until(async () => (await database.query(waits)).length > 0);
    paused.kill('SIGSTOP');
    const lapsed = `SELECT 1 FROM intake.leases WHERE name = 'account-1' AND lane = 'live' AND expires_at < now()`;
    await until(async () => (await database.query(lapsed)).length > 0);
    await using other = await spawnWorker(named('other'));
    // It tries for the lane, and again.
    const tries = new Set<string>();
    await until(async () => {
      const rows = await database.query<{ at: string }>(
        `SELECT query_start::text AS at FROM pg_stat_activity WHERE application_name = 'other' AND query LIKE '%intake.leases%'`,
      );
      for (const { at } of rows) tries.add(at);
      return tries.size > 1;
    });
    paused.kill('SIGCONT');
    await holder.query('ROLLBACK');
    await holder.end();

    await until(() => isRead(database, board));
    const commits = await database.query<{ app: string; owner: string }>(
      `SELECT DISTINCT app, owner FROM public.commits`,
    );
    const stale = commits.filter(({ app, owner }) => !owner.includes(`(${app === 'paused' ? paused.pid : other.pid},`));
    expect({ commits: commits.length, stale }).toEqual({ commits: 1, stale: [] });
  });
});

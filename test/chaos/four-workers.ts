// Four workers read three growing boards during two minutes of pauses, kills and database restarts. At the end no application may be lost
// or stored twice, and no worker may have committed a page while another worker held the lane.
//   node test/chaos/four-workers.ts [seconds] [seed]

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { openEmbedded } from '../../src/dev/embedded/embedded.ts';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { migrate } from '../../src/store/postgres/apply-migrations.ts';
import { query } from '../support/embedded-root.ts';
import { findDifferences } from '../support/equality.ts';
import { createRandom } from '../support/random.ts';
import type { TestDatabase } from '../support/test-database.ts';
import { openSettings, type SpawnedWorker, spawnWorker } from '../support/worker.ts';

const [seconds = '120', seed = '1'] = process.argv.slice(2);
const random = createRandom(Number(seed));
const pick = <T>(some: readonly T[]): T => some[Math.floor(random.next() * some.length)] as T;

// At the end of each transaction that inserts applications, records which session commits and which worker holds the lane.
const witness = `
  CREATE TABLE public.commits (app text, name text, owner text);
  CREATE FUNCTION public.note_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO public.commits SELECT current_setting('application_name'), v.name, l.owner
      FROM intake.advertisers v JOIN intake.leases l ON l.name = v.name AND l.lane = 'live' WHERE v.advertiser_id = NEW.advertiser_id;
    RETURN NULL; END $$;
  CREATE CONSTRAINT TRIGGER note_commit AFTER INSERT ON intake.applications DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION public.note_commit();`;

const folder = mkdtempSync(join(tmpdir(), 'intake-four-'));
chmodSync(folder, 0o755);
const tally = { pauses: 0, kills: 0, restarts: 0 };
try {
  await using server = await openEmbedded({ root: folder });
  await migrate(server.url);
  await query(server.url, witness);
  const some = { applications: 400, choices: { pageCap: 20 } };
  await using board = await openSandbox({ ...some, advertisers: [some, some] });
  await using settings = await openSettings({ url: server.url }, board, { LEASE: '3s', SOURCE_RATE: '200/s' });

  // Each start has its own session name, which identifies its commits.
  const pids = new Map<string, number>();
  let starts = 0;
  async function start(): Promise<SpawnedWorker> {
    const name = `w${++starts}`;
    const worker = await spawnWorker({ ...settings.env, DATABASE_URL: `${server.url}?application_name=${name}` });
    pids.set(name, worker.pid);
    return worker;
  }
  const workers = await Promise.all([start(), start(), start(), start()]);
  await using leftovers = new AsyncDisposableStack();
  leftovers.defer(async () => void (await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()))));
  const endAt = performance.now() + 1_000 * Number(seconds);
  while (performance.now() < endAt) {
    pick(board.advertisers).add(1 + Math.floor(random.next() * 5));
    await sleep(300 + 900 * random.next());
    const at = Math.floor(random.next() * workers.length);
    const chance = random.next();
    if (chance < 0.4) {
      tally.pauses++;
      const worker = workers[at];
      worker?.kill('SIGSTOP');
      // Pauses are shorter or longer than the lease of 3 s.
      void sleep(500 + 6_000 * random.next()).then(() => worker?.kill('SIGCONT'));
    } else if (chance < 0.6) {
      tally.kills++;
      await workers[at]?.[Symbol.asyncDispose]();
      workers[at] = await start();
    } else if (chance < 0.75) {
      tally.restarts++;
      // A fast shutdown or a kill; the supervisor restarts the server at the same address.
      const told = await query(
        server.url,
        `SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int AS pid`,
      ).catch(() => []);
      const [postmaster] = told as { pid: number }[];
      if (postmaster) process.kill(postmaster.pid, pick(['SIGINT', 'SIGKILL'] as const));
    }
  }
  for (const worker of workers) worker.kill('SIGCONT');

  const pool = new pg.Pool({ connectionString: server.url, max: 2 });
  pool.on('error', () => {});
  const database = {
    query: async (sql: string, values: unknown[] = []) => (await pool.query(sql, values)).rows,
  } as TestDatabase;
  const isDone = async () => {
    const [{ n }] = (await database.query(`SELECT count(*)::int AS n FROM intake.applications`)) as [{ n: number }];
    const queued = await database.query(`SELECT 1 FROM intake.downloads LIMIT 1`);
    return n === board.advertisers.reduce((sum, one) => sum + one.size, 0) && queued.length === 0;
  };
  for (let waited = 0; !(await isDone().catch(() => false)) && waited < 120; waited++) await sleep(1_000);

  const differences: string[] = [];
  for (const account of board.advertisers) differences.push(...(await findDifferences(database, account)));
  const commits = (await database.query(`SELECT DISTINCT app, name, owner FROM public.commits`)) as {
    app: string;
    owner: string;
  }[];
  const stale = commits.filter(({ app, owner }) => !owner.includes(`(${pids.get(app)},`));
  const [{ files }] = (await database.query(
    `SELECT count(*)::int AS files FROM intake.attachments WHERE state = 'stored'`,
  )) as [{ files: number }];
  const [{ twice }] = (await database.query(
    `SELECT count(*)::int AS twice FROM (SELECT 1 FROM intake.events WHERE type = 'application.received' GROUP BY advertiser_id, application_id HAVING count(*) > 1) AS t`,
  )) as [{ twice: number }];
  await pool.end();
  const ends = await Promise.all(
    workers.map(async (worker) => {
      worker.kill('SIGTERM');
      return (await worker.ended).code;
    }),
  );
  const applications = board.advertisers.reduce((sum, one) => sum + one.size, 0);
  const verdict = { lost: differences.length, duplicated: twice, stale: stale.length };
  console.log(JSON.stringify({ ...verdict, applications, files, ...tally, commits: commits.length, ends }));
  for (const difference of differences) console.error(difference);
  process.exitCode = Object.values(verdict).every((count) => count === 0) && ends.every((code) => code === 0) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

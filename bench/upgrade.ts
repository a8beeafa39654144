// Measures how long a worker waits for locks during an upgrade: node bench/upgrade.ts [APPLICATIONS] [CHECKOUT OF THE RELEASE BEFORE]
// That release creates the schema, and its worker polls every second while somebody applies. A reader holds intake.applications for a
// minute. Meanwhile this release migrates, and then a later one that alters the very table that is held.
// `longestPoll` is the longest time in which the locks of a poll could be had. It also counts for a checkout before 1.0.0, whose worker
// cannot go on beside this release.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { openEmbedded } from '../src/dev/embedded/embedded.ts';
import { openSandbox } from '../src/dev/sandbox/http/server.ts';
import { loadMigrations, type Migration, migrate } from '../src/store/postgres/migrations.ts';
import { fillAccount } from './support/filled-account.ts';

const applications = Number(process.argv[2] ?? 100_000);
const before = resolve(process.argv[3] ?? '.');
const heldSeconds = 60;
const lookMs = 20;
/** What a poll and its downloads write to. */
const polledTables = ['applications', 'attachments', 'blobs', 'cursors', 'downloads', 'events', 'leases', 'sweeps'];

/** What a later release might do to the table that is held: add a column, then an index in a step of its own. */
const later: readonly Migration[] = [
  toMigration(1, ['ALTER TABLE intake.applications ADD COLUMN later text'], true),
  toMigration(2, ['CREATE INDEX CONCURRENTLY later_index ON intake.applications (later)'], false),
];

function toMigration(nth: number, statements: readonly string[], inTransaction: boolean): Migration {
  const at = 9_999_999_999_000 + nth;
  const record = `INSERT INTO intake.migrations (hash, created_at) VALUES ('later', ${at})`;
  return { name: `later_${nth}`, at: BigInt(at), statements: [...statements, record], inTransaction, lowest: null };
}

await using stack = new AsyncDisposableStack();
const folder = stack.use(mkdtempDisposableSync(join(tmpdir(), 'intake-upgrade-')));
const server = stack.use(await openEmbedded({ root: import.meta.dirname }));
const name = `upgrade_${process.pid}`;
const admin = await openClient(server.url);
await admin.query(`CREATE DATABASE ${name}`);
stack.defer(async () => void (await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)));
const url = Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
const board = stack.use(await openSandbox({ advertiserId: 7n, applications: 5, firstId: BigInt(applications + 1) }));

const [created] = await once(startIntake(['migrate']), 'exit');
if (created !== 0) throw new Error(`intake migrate ended with ${created}.`);
await fillAccount(url, applications, (said) => console.error(said));
const db = await openClient(url);
const poller = await openClient(url);
// The filled account's keys are of no PRIVACY_KEY, and a worker refuses them.
await db.query(`SET session_replication_role = replica; UPDATE intake.applications SET person_key = NULL`);
await db.query('VACUUM (ANALYZE) intake.applications');
const worker = startIntake(['worker']);
stack.defer(async () => {
  if (worker.exitCode !== null) return;
  const ended = once(worker, 'exit');
  worker.kill('SIGTERM');
  await ended;
});
const arriving = setInterval(() => board.add(2), 500);
stack.defer(() => clearInterval(arriving));

const countPolled = async () => {
  const { rows } = await db.query(`SELECT count(*)::int AS n FROM intake.applications WHERE application_id > $1`, [
    applications,
  ]);
  return rows[0].n as number;
};
while ((await countPolled()) === 0) {
  if (worker.exitCode !== null) throw new Error(`The worker ended with ${worker.exitCode}.`);
  await sleep(100);
}

const quiet = await watch(sleep(20_000));
const reader = await openClient(url);
const held = (async () => {
  await reader.query('BEGIN');
  await reader.query('SELECT count(*) FROM intake.applications');
  await reader.query(`SELECT pg_sleep(${heldSeconds})`);
  await reader.query('COMMIT');
})();
const heldAt = performance.now();
const toSeconds = () => Math.round((performance.now() - heldAt) / 100) / 10;
let waits = 0;
const onWait = () => {
  waits++;
};
const upgrade = async () => {
  await sleep(2_000);
  const applied = await migrate(url, { onWait });
  const appliedAt = toSeconds();
  const alteredBy = await migrate(url, { migrations: [...loadMigrations(), ...later], onWait });
  return { applied, appliedAt, alteredBy, alteredAt: toSeconds() };
};
const upgraded = await watch(Promise.all([upgrade(), held]));
const [done] = upgraded.result;
console.log(
  JSON.stringify({ applications, heldSeconds, ...done, waits, quiet: quiet.seen, upgrade: upgraded.seen }, null, 2),
);

/** Takes the locks of a poll ten times a second; answers how long that took at most, in milliseconds. */
async function takeLocks(isOver: () => boolean): Promise<number> {
  const tables = polledTables.map((table) => `intake.${table}`).join(', ');
  let longest = 0;
  for (; !isOver(); await sleep(100)) {
    const begunAt = performance.now();
    // One that a deadlock with the migration ends begins again, as a worker's transaction does.
    for (let isTaken = false; !isTaken; ) {
      const taking = poller.query(`BEGIN; LOCK TABLE ${tables} IN ROW EXCLUSIVE MODE`);
      isTaken = await taking.then(
        () => true,
        () => false,
      );
      await poller.query('ROLLBACK');
    }
    longest = Math.max(longest, Math.round(performance.now() - begunAt));
  }
  return longest;
}

/** Looks at locks and the cursor until the work ends. Times in milliseconds. */
async function watch<T>(work: Promise<T>) {
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  const polling = takeLocks(() => isOver);
  const seen = { longestPoll: 0, longestLockWait: 0, longestBetweenPolls: 0, polls: 0, stored: await countPolled() };
  let [last, lastAt] = [0, performance.now()];
  for (; !isOver; await sleep(lookMs)) {
    const { rows } = await db.query<{ waited: number; polled: number }>(
      `SELECT (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart)), 0)::float8 * 1000
         FROM pg_locks l JOIN pg_stat_activity s USING (pid)
         WHERE NOT l.granted AND s.application_name LIKE 'intake %' AND s.application_name NOT LIKE 'intake migrate%') AS waited,
         (SELECT extract(epoch FROM max(as_of))::float8 FROM intake.cursors) AS polled`,
    );
    const { waited = 0, polled = 0 } = rows[0] ?? {};
    seen.longestLockWait = Math.max(seen.longestLockWait, Math.round(waited));
    if (polled === last) continue;
    if (last !== 0) {
      seen.polls++;
      seen.longestBetweenPolls = Math.max(seen.longestBetweenPolls, Math.round(performance.now() - lastAt));
    }
    [last, lastAt] = [polled, performance.now()];
  }
  seen.stored = (await countPolled()) - seen.stored;
  seen.longestPoll = await polling;
  return { result: await ended, seen };
}

async function openClient(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString, application_name: 'bench' });
  await client.connect();
  stack.defer(() => client.end());
  return client;
}

function startIntake(args: readonly string[]) {
  const settings = {
    ...{ DATABASE_URL: url, SOURCE_URL: board.url, SOURCE_CREDENTIAL: board.credential, SOURCE_RATE: 'off' },
    ...{ BLOBS_URL: `file:${folder.path}/blobs`, PRIVACY_KEY: 'a privacy key for the benches', ADMIN_PORT: '0' },
    ...{ SYNC_SCHEDULE: '* * * * * *', RECHECK_SCHEDULE: 'off', AUDIT_SCHEDULE: 'off' },
    // The filled account's files are not in the store.
    VERIFY_WITHIN: '3650d',
  };
  return spawn(process.execPath, [join(before, 'src/cli/main.ts'), ...args], {
    cwd: folder.path,
    env: { PATH: process.env.PATH ?? '', HOME: folder.path, TMPDIR: folder.path, ...settings },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
}

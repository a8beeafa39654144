// The public port as a process of its own: beside a worker that opens no such port, with a role that can do no more than it must, and
// within bounds of memory.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import pg from 'pg';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { callbackTimeoutMs } from '../../src/domain/prefill.ts';
import { roles } from '../../src/store/postgres/grants.ts';
import { type TestDatabase, test } from '../support/database/test-database.ts';
import { createBrowser } from '../support/prefill/candidate-browser.ts';
import { redeem, takeBlobStore, toPrefillSettings, toStartUrl } from '../support/prefill/prefill-stage.ts';
import { callIntake, runIntake, startIntake } from '../support/processes/intake.ts';
import { toEnvironment } from '../support/processes/syncing.ts';
import { isRead, spawnPrefill, spawnWorker } from '../support/processes/worker.ts';
import { findFreePort } from '../support/servers/free-port.ts';
import { openScratch } from '../support/stores/blob-stores.ts';
import { until } from '../support/suite/until.ts';

/** A board and the settings of both processes; the careers site's client is registered for their port. */
async function openParts(database: TestDatabase) {
  const stack = new AsyncDisposableStack();
  const port = await findFreePort();
  const redirectUri = `http://127.0.0.1:${port}/prefill/callback`;
  const board = stack.use(
    await openSandbox({ applications: 1, choices: { consent: 'allow' }, client: { redirectUris: [redirectUri] } }),
  );
  const blobs = stack.use(await openScratch());
  const env = {
    ...toEnvironment(database, board, blobs.path),
    ...{ LOG_FORMAT: 'json', PORT: String(port), SYNC_SCHEDULE: 'off' },
    ...toPrefillSettings(board, redirectUri),
  };
  await takeBlobStore(env);
  return { board, env, url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** A login of the role of the public port, in this database; disposing takes the roles away again. */
async function openWebLogin(database: TestDatabase) {
  const prefix = `intake_test_${randomBytes(4).toString('hex')}`;
  const { code } = await callIntake(['grants', '--apply', '--prefix', prefix], { DATABASE_URL: database.url });
  expect(code).toBe(0);
  const login = `${prefix}_web_login`;
  await database.query(`CREATE ROLE ${login} LOGIN PASSWORD 'only-a-test' IN ROLE ${prefix}_web`);
  const url = Object.assign(new URL(database.url), { username: login, password: 'only-a-test' }).href;
  return {
    url,
    async [Symbol.asyncDispose]() {
      await database.query(`REASSIGN OWNED BY ${prefix}_owner TO CURRENT_USER`);
      for (const name of [login, ...roles.map((role) => `${prefix}_${role}`)]) {
        await database.query(`DROP OWNED BY ${name}; DROP ROLE ${name}`);
      }
    },
  };
}

/** The ports on which a process listens, as Linux lists them. */
function listListening(pid: number): number[] {
  const sockets = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
    } catch {
      return [];
    }
  });
  const rows = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/${pid}/net/${name}`, 'utf8').trim().split('\n'));
  return rows.flatMap((row) => {
    const [, local = '', , state, , , , , , inode = ''] = row.trim().split(/\s+/);
    return state === '0A' && sockets.includes(inode) ? [Number.parseInt(local.split(':')[1] ?? '', 16)] : [];
  });
}

describe('intake prefill', () => {
  test('serves a candidate, with its own role, beside a worker with its admin port', async ({ emptied: database }) => {
    await using parts = await openParts(database);
    await using login = await openWebLogin(database);
    const { board, env } = parts;
    await using worker = await spawnWorker(env);
    await until(() => isRead(database, board));
    await expect(fetch(`${parts.url}/prefill/stopped`)).rejects.toThrow();
    if (process.platform === 'linux') {
      expect(listListening(worker.pid)).toEqual([Number(new URL(worker.adminUrl).port)]);
    }
    await using prefill = await spawnPrefill({ ...env, DATABASE_URL: login.url });
    expect(prefill.url).toBe(parts.url);
    expect(await callIntake(['prefill'], env)).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining(`PORT: port ${env.PORT} of 127.0.0.1 is taken`) },
    });
    const back = await createBrowser().toReturn(toStartUrl(parts.url, board));
    const redeemed = await redeem(parts.url, back.searchParams.get('prefill'));
    const { profile, resume } = (await redeemed.json()) as { profile: object; resume: { url: string } };
    const [grant] = board.grants();
    expect(profile).toMatchObject({ applicantInfo: { emailAddress: grant?.candidate.person.email } });
    const bytes = Buffer.from(await (await fetch(resume.url)).arrayBuffer());
    expect(bytes.equals(Buffer.concat([...(grant?.candidate.resume.open() ?? [])]))).toBe(true);
    for (const one of [prefill, worker]) one.kill('SIGTERM');
    expect((await Promise.all([prefill.ended, worker.ended])).map(({ code }) => code)).toEqual([0, 0]);
  });

  test('has a role that reads no application, deletes nothing and changes no schema', async ({ emptied: database }) => {
    await using login = await openWebLogin(database);
    const client = new pg.Client({ connectionString: login.url });
    await client.connect();
    try {
      for (const sql of [
        'SELECT 1 FROM intake.applications',
        'SELECT 1 FROM intake_analytics.applications',
        'DELETE FROM intake.prefills',
        `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, infected_at) VALUES (1, '', 0, '', 'infected', now())`,
        'DROP TABLE intake.prefills',
      ]) {
        await expect(client.query(sql), sql).rejects.toMatchObject({ code: '42501' });
      }
      // It may add a blob, and cannot change which are infected or being deleted.
      await database.query(
        `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, infected_at, verified_at)
         VALUES (1, 'a', 0, 'a', 'infected', now(), NULL), (1, 'b', 0, 'b', 'stored', NULL, now())`,
      );
      await client.query(
        `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state) VALUES (1, 'c', 0, 'c', 'writing')`,
      );
      for (const sql of [
        `UPDATE intake.blobs SET state = 'stored', verified_at = now() WHERE sha256 = 'a'`,
        `UPDATE intake.blobs SET state = 'deleting' WHERE sha256 = 'b'`,
        `UPDATE intake.blobs SET state = 'infected' WHERE sha256 = 'b'`,
      ]) {
        await expect(client.query(sql), sql).rejects.toMatchObject({ code: '23514' });
      }
    } finally {
      await client.end();
    }
  });

  test("with another database's store ends, and waits for one", { tags: ['slow'] }, async ({ emptied: database }) => {
    await using parts = await openParts(database);
    await database.query(
      `UPDATE intake.blob_store SET database_id = gen_random_uuid(), identity = NULL, location = NULL`,
    );
    const { child, ended } = startIntake(['prefill'], parts.env);
    using limit = new DisposableStack();
    limit.defer(() => child.kill('SIGKILL'));
    expect(await ended).toMatchObject({
      ...{ code: 2, stderr: expect.stringMatching(/belongs to the database .* has no store yet/s) },
    });
    await using empty = await openScratch();
    const waiting = startIntake(['prefill'], { ...parts.env, BLOBS_URL: `file:${empty.path}` });
    limit.defer(() => waiting.child.kill('SIGKILL'));
    let said = '';
    waiting.child.stderr?.on('data', (text) => {
      said += text;
    });
    await until(() => said.includes('has no owner yet'));
    waiting.child.kill('SIGTERM');
    expect(await waiting.ended).toMatchObject({ code: 0 });
  });

  test('with another PRIVACY_KEY than before does not start', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using parts = await openParts(database);
    await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('default', $1)`, [
      parts.board.advertiserId,
    ]);
    {
      await using _prefill = await spawnPrefill(parts.env);
      await createBrowser().toReturn(toStartUrl(parts.url, parts.board));
    }
    const { code, stderr } = await runIntake(['prefill'], { ...parts.env, PRIVACY_KEY: 'another key of some length' });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('PRIVACY_KEY is not the key') });
  });
});

describe.skipIf(process.platform !== 'linux')('as Linux sees it (reads /proc: npm test on Linux)', () => {
  test('fifty resumes of 20 MB at once are served within 300 MB', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using parts = await openParts(database);
    const { board, url } = parts;
    await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('default', $1)`, [
      board.advertiserId,
    ]);
    await using prefill = await spawnPrefill(parts.env);
    const browsers = Array.from({ length: 50 }, createBrowser);
    const callbacks = await Promise.all(browsers.map((browser) => browser.toCallback(toStartUrl(url, board))));
    const piece = Buffer.alloc(1_000_000, 'x');
    const large = { sizeBytes: 19_000_000, open: () => Array<Buffer>(19).fill(piece) };
    for (const { candidate } of board.grants()) Object.assign(candidate.resume, large);
    const startedAt = performance.now();
    const backs = await Promise.all(
      browsers.map(async (browser, index) => {
        const back = await browser.step(callbacks[index] ?? '');
        return { isServed: new URL(back).searchParams.has('prefill'), tookMs: performance.now() - startedAt };
      }),
    );
    // No candidate waits longer than this. Only a crowded machine takes as long.
    const inTime = backs.filter(({ tookMs }) => tookMs < callbackTimeoutMs);
    expect(inTime.filter(({ isServed }) => !isServed)).toEqual([]);
    const [stored] = await database.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM intake.prefills WHERE resume_stored_at IS NOT NULL AND resume_size_bytes = 19000000`,
    );
    expect(stored?.n).toBeGreaterThanOrEqual(inTime.length);
    const peakKb = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${prefill.pid}/status`, 'utf8'))?.[1]);
    expect(peakKb).toBeLessThan(300_000);
  });
});

// A sweep that is killed goes on where it was: what is closed is not asked again.
import type { Socket } from 'node:net';
import { describe, expect } from 'vitest';
import { openSandbox, type Sandbox, type SandboxOptions } from '../../src/dev/sandbox/http/server.ts';
import { emptyDatabase, type TestDatabase, test } from '../support/database/test-database.ts';
import { findDifferences } from '../support/equality.ts';
import { callIntake, startIntake } from '../support/processes/intake.ts';
import { toEnvironment } from '../support/processes/syncing.ts';
import { openTcpGate } from '../support/servers/tcp-gate.ts';
import { until } from '../support/suite/until.ts';

async function readUndisturbed(database: TestDatabase, options: SandboxOptions): Promise<number> {
  await emptyDatabase(database);
  await using board = await openSandbox(options);
  expect(await callIntake(['backfill', '--no-files'], toEnvironment(database, board))).toMatchObject({ code: 0 });
  return board.requests().length;
}

/** Kills the backfill when the board has answered so many questions; it does not answer the next ones. */
async function killAfter(database: TestDatabase, board: Sandbox, questions: number): Promise<void> {
  const asked = board.requests().length;
  const number = board.fault({ kind: 'hang', on: 'list', skip: questions, times: null });
  const { child, ended } = startIntake(['backfill', '--no-files'], { ...toEnvironment(database, board), LEASE: '1s' });
  await until(() => board.requests().length > asked + questions);
  child.kill('SIGKILL');
  await ended;
  board.clearFaults(number);
}

describe('a backfill', () => {
  for (const { applications, kills, tags } of [
    { applications: 120, kills: 1, tags: [] },
    { applications: 1_200, kills: 5, tags: ['slow'] },
  ]) {
    const name = `of ${applications} that is killed ${kills} times ends equal to the truth and asks at most a fifth more than an undisturbed one`;
    test(name, { tags }, async ({ database }) => {
      const options = { applications, choices: { pageCap: 20 } };
      const needed = await readUndisturbed(database, options);
      await emptyDatabase(database);
      await using board = await openSandbox(options);
      for (let kill = 0; kill < kills; kill++) {
        // Together less than it takes: a backfill that has come to its end would begin again.
        await killAfter(database, board, Math.ceil((needed / (kills + 2)) * (0.5 + Math.random() / 2)));
      }
      const last = await callIntake(['backfill', '--no-files'], { ...toEnvironment(database, board), LEASE: '1s' });
      expect(last).toMatchObject({ code: 0, stdout: expect.stringContaining('coverage proven') });
      expect(await findDifferences(database, board)).toEqual([]);
      expect(board.requests().length).toBeLessThanOrEqual(needed * 1.2);
      expect(await database.query(`SELECT state, count(*)::int AS n FROM intake.sweeps GROUP BY 1`)).toEqual([
        { state: 'closed', n: 1 },
      ]);
      expect(await database.query(`SELECT * FROM intake.gaps`)).toEqual([]);
    });
  }
});

describe('a first sync whose first answer is too long to be read whole', { tags: ['slow'] }, () => {
  async function openLongBoard(): Promise<Sandbox> {
    const board = await openSandbox({ applications: 0, choices: { order: 'descending', pageCap: null } });
    board.add(Array.from({ length: 400 }, () => ({ firstName: 'x'.repeat(9_000) })));
    return board;
  }

  test('and whose connection breaks at every kind of statement reads everything', async ({ emptied: database }) => {
    await using board = await openLongBoard();
    const broken = new Set<string>();
    const amidst = new WeakSet<Socket>();
    // Each has done its work by then, and nobody was told. What a transaction does between its first and its last word is undone.
    const breaks = (said: Buffer, client: Socket) => {
      const sql = toStatement(said);
      if (sql === undefined || (amidst.has(client) && sql !== 'COMMIT')) return false;
      const isBegin = sql.startsWith('BEGIN');
      if (isBegin) amidst.add(client);
      else amidst.delete(client);
      const kind = isBegin ? 'BEGIN' : sql;
      return !broken.has(kind) && broken.add(kind).has(kind);
    };
    await using gate = await openTcpGate(database.url, { breaks });
    const ended = await callIntake(['sync', '--no-files'], toEnvironment({ url: gate.url }, board));
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect([...broken]).toEqual(expect.arrayContaining(['BEGIN', 'COMMIT']));
    expect(await findDifferences(database, board)).toEqual([]);
  });
});

/** The SQL of a message to Postgres: a query as it is, or one to be parsed, which may have a name before it. */
function toStatement(said: Buffer): string | undefined {
  const [first = '', second] = said.toString('latin1', 5).split('\0', 2);
  return { Q: first, P: second }[String.fromCharCode(said[0] ?? 0)];
}

test('an interrupted first sync ends with 5; the next reads on', { tags: ['slow'] }, async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 240, choices: { pageCap: 20, order: 'descending' } });
  const env = toEnvironment(database, board);
  const { child, ended } = startIntake(['sync', '--no-files'], env);
  const watch = setInterval(() => {
    if (board.requests().length < 12) return;
    child.kill('SIGINT');
    clearInterval(watch);
  }, 1);
  const interrupted = await ended;
  expect(interrupted.code).toBe(5);
  expect(interrupted.stderr).toContain('continues from there');
  expect(await database.query(`SELECT 1 FROM intake.cursors`)).toEqual([]);

  const asked = board.requests().length;
  board.add(3);
  expect((await callIntake(['sync', '--no-files'], env)).code).toBe(0);
  expect(await findDifferences(database, board)).toEqual([]);
  expect(board.requests().length - asked).toBeLessThan(asked * 8);
});

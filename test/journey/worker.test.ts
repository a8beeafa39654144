// Workers as processes of their own: how they live, and how they are stopped.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { type TestDatabase, test } from '../support/database/test-database.ts';
import { findDifferences } from '../support/equality.ts';
import { callIntake } from '../support/processes/intake.ts';
import { isRead, openSettings, probe, spawnWorker } from '../support/processes/worker.ts';
import { until } from '../support/suite/until.ts';

const loadLeases = (database: TestDatabase) =>
  database.query<{ owner: string; held: boolean }>(
    `SELECT owner, expires_at > now() AS held FROM intake.leases JOIN intake.advertisers USING (name) WHERE lane = 'live'`,
  );

describe('a worker', () => {
  test('keeps a board up to date, tells how it fares, and ends when asked to', async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 3 });
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
      (await (await fetch(worker.adminUrl)).text()).includes('All is well: 5 applications of 1 advertiser stored.'),
    );
    const metrics = await (await fetch(`${worker.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/^intake_passes_total\{pass="poll",outcome="done"\} [1-9]/m);
    expect(metrics).toMatch(/^intake_files_total\{outcome="stored"\} [1-9]/m);
    const health = await callIntake(['healthcheck'], { ADMIN_PORT: new URL(worker.adminUrl).port });
    expect(health).toMatchObject({ code: 0, stdout: expect.stringContaining('alive') });
    const everywhere = { ADMIN_HOST: '0.0.0.0', ADMIN_USER: 'a', ADMIN_PASSWORD: 'b' };
    const near = await callIntake(['healthcheck'], { ...everywhere, ADMIN_PORT: new URL(worker.adminUrl).port });
    expect(near).toMatchObject({ code: 0, stdout: expect.stringContaining('http://127.0.0.1:') });
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

  test('in which something has stopped moving ends with 8', { tags: ['slow'] }, async ({ emptied: database }) => {
    await using board = await openSandbox({ applications: 5 });
    board.fault({ kind: 'hang', on: 'list', times: null });
    await using settings = await openSettings(database, board);
    const child = spawn(process.execPath, ['test/support/processes/worker-process.ts', 'worker'], {
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...settings.env },
      stdio: 'ignore',
    });
    expect(await once(child, 'exit')).toEqual([8, null]);
  });
});

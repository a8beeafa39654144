// A process whose event loop stands still: it is ended from its own thread, says what it was at, and the file in hand is not tried for ever.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { test } from '../support/database/test-database.ts';
import { runIntake } from '../support/processes/intake.ts';
import { openSettings, spawnWorker } from '../support/processes/worker.ts';
import { until } from '../support/suite/until.ts';
import { testFirst } from '../support/suite/variants.ts';

function start(file: string, args: readonly string[], env: Record<string, string> = {}) {
  const cache = process.env.NODE_COMPILE_CACHE;
  const child = spawn(process.execPath, [`test/support/processes/${file}`, ...args], {
    env: { PATH: process.env.PATH, ...(cache && { NODE_COMPILE_CACHE: cache }), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = Promise.all([once(child, 'exit'), text(child.stderr)]).then(([[code, signal], said]) => ({
    code,
    signal,
    fatal: said.split('\n').flatMap((line) => (line.includes('"fatal"') ? [JSON.parse(line) as object] : [])),
  }));
  return { child, ended };
}

const inHand = { task: 'downloads', advertiser: 'default', application: '100001', kind: 'resume' };

describe('an event loop that stands still', () => {
  testFirst(['loop', 'pattern'])(
    'in a %s: one line says what was in hand, and the process ends with 8',
    async (still) => {
      const { ended } = start('watched-process.ts', [still, '300']);
      expect(await ended).toMatchObject({
        ...{ code: 8, signal: null },
        fatal: [{ ...inHand, msg: 'the event loop stands still; the process ends' }],
      });
    },
  );

  test('in native code, which nothing interrupts: the same, and it is killed', { tags: ['slow'] }, async () => {
    const { ended } = start('watched-process.ts', ['native', '300']);
    expect(await ended).toMatchObject({ code: null, signal: 'SIGKILL', fatal: [inHand] });
  });

  test('a process that was suspended has its chance when it wakes', { tags: ['slow'] }, async () => {
    const loopMs = 1_000;
    const { child, ended } = start('watched-process.ts', ['not', String(loopMs)]);
    let lines = 0;
    createInterface({ input: child.stdout }).on('line', () => lines++);
    // Each wake is a race between the thread and the loop, so there are several.
    for (let wakes = 0; wakes < 6; wakes++) {
      const before = lines;
      await until(() => lines > before + 2 || child.exitCode !== null);
      child.kill('SIGSTOP');
      await sleep(1.5 * loopMs);
      child.kill('SIGCONT');
    }
    const awakeAt = lines;
    await until(() => lines > awakeAt + loopMs / 50 || child.exitCode !== null);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ signal: 'SIGTERM', fatal: [] });
  });
});

test('a sync of cron ends with 8 when its loop stands still', { tags: ['slow'] }, async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 0 });
  board.add([{ attachments: [{ kind: 'resume', content: 'a resume' }] }]);
  await using settings = await openSettings(database, board);
  const [application] = [...board.truth()].map(({ id }) => String(id));
  const { code, stderr } = await runIntake(['sync'], { ...settings.env, INTAKE_CRASH_AT: 'fetched:1:hang' });
  expect(code).toBe(8);
  const fatal = stderr.split('\n').find((line) => line.includes('"fatal"'));
  expect(JSON.parse(fatal ?? '{}')).toMatchObject({
    task: 'sync',
    advertiser: 'account-1',
    application,
    kind: 'resume',
  });
});

test('a file that stops the worker twice is given up', { tags: ['slow'] }, async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 0 });
  board.add([{ attachments: [{ kind: 'resume', content: 'a resume' }] }]);
  await using settings = await openSettings(database, board, { SYNC_SCHEDULE: 'off' });
  const [application] = [...board.truth()].map(({ id }) => String(id));
  const env = { ...settings.env, INTAKE_CRASH_AT: 'fetched:1:hang', LOOP_MS: '4000' };
  for (const _ of ['among others', 'alone']) {
    let ended = await start('worker-process.ts', ['worker'], env).ended;
    // On a crowded machine the loop may stand still before it has the file.
    while (ended.code === 8 && !JSON.stringify(ended.fatal).includes('application'))
      ended = await start('worker-process.ts', ['worker'], env).ended;
    const fatal = [{ task: 'downloads', advertiser: 'account-1', application, kind: 'resume' }];
    expect(ended).toMatchObject({ code: 8, fatal });
  }
  await using _worker = await spawnWorker({ ...settings.env, INTAKE_CRASH_AT: 'fetched:1' });
  const load = () => database.query<{ state: string; reason: string }>(`SELECT state, reason FROM intake.attachments`);
  await until(async () => (await load())[0]?.state === 'given_up');
  expect((await load())[0]?.reason).toContain('ended twice while it had this file in hand');
});

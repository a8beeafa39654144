// Many short-lived processes use one embedded Postgres. A fifth of them end by kill -9, and every three seconds the server or its
// supervisor is killed, in alternation. Each process that gets the URL must be able to query. A failure is excused if such a kill
// happened while the process ran or in the second before.
//   node test/chaos/embedded-stress.ts [seconds] [users at once] [folder]

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openEmbedded } from '../../src/dev/embedded/embedded.ts';
import { answers, loadParent, query, succeeds } from '../support/embedded-root.ts';
import { until } from '../support/until.ts';

const [seconds = '20', usersAtOnce = '20', root = join(tmpdir(), 'intake-stress'), role] = process.argv.slice(2);

if (role === 'user') await visit();
else await watch();

async function visit(): Promise<void> {
  const startedAt = performance.now();
  await using embedded = await openEmbedded({ root });
  const openedMs = Math.round(performance.now() - startedAt);
  await query(embedded.url, 'SELECT 1');
  await sleep(Math.random() * 300);
  await query(embedded.url, 'SELECT 1');
  process.stdout.write(`${JSON.stringify({ url: embedded.url, openedMs })}\n`);
  if (Math.random() < 0.2) process.kill(process.pid, 'SIGKILL');
}

async function watch(): Promise<void> {
  mkdirSync(root, { recursive: true, mode: 0o755 });
  const endAt = performance.now() + Number(seconds) * 1000;
  const openedMs: number[] = [];
  const urls = new Set<string>();
  let failed = 0;
  let excused = 0;
  let kills = 0;
  let lastKillAt = Number.NEGATIVE_INFINITY;

  const comeAndGo = async () => {
    while (performance.now() < endAt) {
      const startedAt = performance.now();
      const child = spawn(process.execPath, [import.meta.filename, seconds, usersAtOnce, root, 'user']);
      let said = '';
      let complaint = '';
      child.stdout.on('data', (text) => {
        said += text;
      });
      child.stderr.on('data', (text) => {
        complaint += text;
      });
      const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
      if (said) {
        const visit = JSON.parse(said) as { url: string; openedMs: number };
        urls.add(visit.url);
        openedMs.push(visit.openedMs);
      }
      if (said && (code === 0 || code === null)) continue;
      if (lastKillAt > startedAt - 1000) excused += 1;
      else {
        failed += 1;
        console.error(complaint);
      }
    }
  };
  const kill = async () => {
    while (performance.now() < endAt - 3000) {
      await sleep(3000);
      try {
        const server = Number(readFileSync(join(root, '.intake/postgres/data/postmaster.pid'), 'utf8').split('\n')[0]);
        process.kill(kills % 2 === 0 ? server : loadParent(server), 'SIGKILL');
        lastKillAt = performance.now();
        kills += 1;
      } catch {
        // No server was running at that moment.
      }
    }
  };
  await Promise.all([...Array.from({ length: Number(usersAtOnce) }, comeAndGo), kill()]);

  const gone = async () => (await Promise.all([...urls].map(answers))).every((answered) => !answered);
  const leftNothing = await succeeds(until(gone));
  openedMs.sort((a, b) => a - b);
  const percentile = (part: number) => openedMs[Math.floor(openedMs.length * part)];
  console.log(
    JSON.stringify({
      visits: openedMs.length,
      failed,
      excused,
      kills,
      p50Ms: percentile(0.5),
      p99Ms: percentile(0.99),
      leftNothing,
    }),
  );
  process.exitCode = failed === 0 && leftNothing ? 0 : 1;
}

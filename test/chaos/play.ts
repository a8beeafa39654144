// One seed on its stage: a source, a store, a database, proxies between them and the workers, and the two phases: faults on, watched
// every half second; faults off, until everything is equal. Answers what it saw; judging a whole run is main.ts.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CrashPoint, crashPoints } from '../../src/domain/crash-point.ts';
import { openSandbox } from '../../src/sandbox/server.ts';
import { createRandom } from '../support/random.ts';
import { openStrictS3 } from '../support/strict-s3.ts';
import { type Cluster, untilAnswering } from './cluster.ts';
import { faults, leaseMs, toArming } from './faults.ts';
import { createFleet } from './fleet.ts';
import { findBroken, startWatching } from './invariants.ts';
import { openProxy } from './proxy.ts';
import type { Plan, Stage } from './stage.ts';
import { untilEqual } from './truth.ts';
import { createWorkload } from './workload.ts';

export interface Verdict {
  readonly seed: number;
  /** The first promise that was broken, or null. */
  readonly broken: string | null;
  readonly counts: Readonly<Record<string, number>>;
  readonly applications: number;
  readonly files: number;
  readonly looks: number;
  readonly recoveredMs: number;
}

export interface Surroundings {
  readonly cluster: Cluster;
  readonly folder: string;
  readonly fired: Map<CrashPoint, number>;
  readonly nextPoint: Stage['nextPoint'];
}

/** The promised times hold on a machine that has a core for whoever wants one; elsewhere everything takes as much longer. */
const toPatience = (ms: number) => ms * Math.max(1, (loadavg()[0] ?? 1) / availableParallelism());
const recoveryMs = 120_000;
const stopMs = 25_000;
/** What a one-shot command may end with amid faults. 7: the database would not even take a migration. */
const fineCodes: readonly (number | null)[] = [0, 3, 4, 5, 6, 7];

/** Plays one plan. */
export async function playSeed(plan: Plan, around: Surroundings): Promise<Verdict> {
  const { cluster } = around;
  const folder = join(around.folder, `seed-${plan.seed}`);
  mkdirSync(folder, { recursive: true });
  const counts: Record<string, number> = {};
  const broken: string[] = [];
  const random = createRandom(plan.seed + 2_000_003);
  let isHalted = false;
  let isQuiet = false;
  let looks = 0;
  await using stack = new AsyncDisposableStack();
  const name = `seed_${plan.seed}`;
  await cluster.openDatabase(name, plan.onSmallDisk);
  stack.defer(() => cluster.dropDatabase());
  const board = stack.use(
    await openSandbox({
      seed: plan.seed,
      applications: plan.applications,
      choices: plan.choices,
      advertisers: plan.accounts > 1 ? [{ applications: 15, firstId: 5_000_001n, choices: plan.choices }] : [],
    }),
  );
  const s3 = stack.use(await openStrictS3());
  const portOf = (url: string) => Number(new URL(url).port);
  const proxies = {
    database: stack.use(await openProxy(cluster.port)),
    source: stack.use(await openProxy(portOf(board.url))),
    storage: stack.use(await openProxy(portOf(s3.endpoint))),
  };
  const advertisersFile = join(folder, 'advertisers.json');
  writeFileSync(
    advertisersFile,
    JSON.stringify(board.advertisers.map(({ credential }, at) => ({ name: `account-${at + 1}`, credential }))),
  );
  const accounts = board.advertisers;
  const workload = createWorkload(accounts, createRandom(plan.seed + 1_000_003));
  const count: Stage['count'] = (what, by = 1) => {
    counts[what] = (counts[what] ?? 0) + by;
  };

  const fleet = createFleet({
    folder,
    env: (member) => ({
      DATABASE_URL: cluster.toUrl(proxies.database.port, member),
      SOURCE_URL: `http://127.0.0.1:${proxies.source.port}`,
      ADVERTISERS_FILE: advertisersFile,
      SOURCE_FORMAT: plan.format,
      SOURCE_RATE: 'off',
      SOURCE_TIMEOUT: '3s',
      SYNC_SCHEDULE: '*/9 * * * * *',
      RECHECK_SCHEDULE: '*/2 * * * * *',
      LEASE: `${leaseMs}ms`,
      ATTACHMENT_MAX_BYTES: '4MB',
      BLOBS_URL: `s3://${s3.bucket}/intake`,
      S3_ENDPOINT: `http://127.0.0.1:${proxies.storage.port}`,
      S3_REGION: s3.region,
      S3_FORCE_PATH_STYLE: 'true',
      AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
      PRIVACY_KEY: 'a privacy key for tests, long enough',
      ADMIN_PORT: '0',
      LOG_LEVEL: 'trace',
      LOG_FORMAT: 'json',
    }),
    toArming: () => (isQuiet || random.chance(0.3) ? null : toArming(random, around.nextPoint)),
    onFired(point) {
      around.fired.set(point, (around.fired.get(point) ?? 0) + 1);
      count('named moments');
    },
    async onStopped(point) {
      // What it has in its hands changes meanwhile: with its old bytes it must not end the new file's download.
      if ((crashPoints.download as readonly CrashPoint[]).includes(point)) {
        const claimed = await cluster
          .query<{ application_id: string }>(
            `SELECT application_id FROM intake.downloads WHERE lease_token IS NOT NULL`,
          )
          .catch(() => []);
        workload.changeFiles(claimed.map((row) => BigInt(row.application_id)));
        // And nobody else can fetch it meanwhile: when the process goes on, the new file's download still waits.
        const faulted = accounts.map(
          (one) => [one, one.fault({ kind: 'fail', status: 503, on: 'files', times: null })] as const,
        );
        setTimeout(
          () => {
            for (const [one, number] of faulted) one.clearFaults(number);
          },
          2 * leaseMs + 3_000,
        );
      }
      await sleep(2 * leaseMs + 1_500);
    },
  });

  const stage: Stage = {
    ...{ plan, name, cluster, accounts, s3, proxies, fleet, workload, count },
    lostKeys: new Set(),
    note: () => {
      isHalted = true;
    },
    nextPoint: around.nextPoint,
    async stopWell(nth) {
      const { code, tookMs } = await fleet.stop(nth);
      count('stopped by SIGTERM');
      if (code !== 0 || tookMs > toPatience(stopMs))
        broken.push(`P16: SIGTERM ended in ${Math.round(tookMs)} ms with code ${code}`);
    },
    async runCommand(args) {
      const code = await fleet.run(args);
      count('commands');
      if (!fineCodes.includes(code)) broken.push(`P12: intake ${args.join(' ')} ended with code ${code}`);
    },
  };

  try {
    const { diesMigratingAt } = plan;
    for (let nth = 0; nth < plan.workers; nth++) {
      if (nth > 0 || diesMigratingAt === null) fleet.launch();
      else {
        fleet.launch({ point: 'migrating', count: diesMigratingAt, stop: false });
        await fleet.untilEnded(nth, 6_000);
      }
    }
    await untilMigrated(cluster);
    await startWatching(cluster);

    // Phase A: faults on.
    const startedAt = performance.now();
    const running: Promise<unknown>[] = [];
    const over = new AbortController();
    const happening = (async () => {
      while (!over.signal.aborted) {
        workload.step();
        await sleep(220);
      }
    })();
    const watching = (async () => {
      while (!over.signal.aborted && broken.length === 0) {
        broken.push(...(await findBroken(stage).then(countLook, () => [])), ...fleet.odd.splice(0).map(toOddity));
        await sleep(500);
      }
    })();
    for (const planned of plan.schedule) {
      await sleep(Math.max(0, planned.atMs - (performance.now() - startedAt)));
      if (broken.length > 0) break;
      running.push(playFault(stage, planned));
    }
    if (broken.length === 0) await sleep(Math.max(0, plan.seconds * 1_000 - (performance.now() - startedAt)));
    over.abort();
    await Promise.all([...running, happening, watching]);

    // Phase B: faults off. What a person would do is done once: ends halts, verifies, retries.
    isQuiet = true;
    for (const account of accounts) account.clearFaults();
    for (const proxy of Object.values(proxies)) proxy.mode = 'open';
    await cluster.start();
    await untilAnswering(cluster);
    workload.finish();
    const quietAt = performance.now();
    if (broken.length === 0) {
      for (const args of [['unhalt'], ['verify', '--full'], ['retry']]) await stage.runCommand(args);
      // A halted account is asked again every three minutes; a restart asks at once. One that is armed still, or whose clock jumps, is no quiet worker.
      for (let nth = 0; nth < fleet.size; nth++)
        if (isHalted || nth === 0 || fleet.isSpecial(nth)) await stage.stopWell(nth);
      const { differences } = await untilEqual(stage, toPatience(recoveryMs) - (performance.now() - quietAt));
      broken.push(...differences.map((line) => `P1, P3, P6: ${line}`));
      broken.push(...(await findBroken(stage).then(countLook)), ...fleet.odd.splice(0).map(toOddity));
    }
    const recoveredMs = performance.now() - quietAt;
    for (let nth = 0; nth < fleet.size; nth++) {
      const { code, tookMs } = await fleet.stop(nth, true);
      if (code !== 0 || tookMs > toPatience(stopMs))
        broken.push(`P16: SIGTERM ended in ${Math.round(tookMs)} ms with code ${code}`);
    }
    broken.push(...findLeaks(folder, stage));
    const [sizes] = await cluster.query<{ applications: number; files: number }>(
      `SELECT (SELECT count(*)::int FROM intake.applications) AS applications, (SELECT count(*)::int FROM intake.attachments) AS files`,
    );
    count('starts', fleet.starts);
    return {
      seed: plan.seed,
      broken: broken[0] ?? null,
      counts,
      applications: sizes?.applications ?? 0,
      files: sizes?.files ?? 0,
      looks,
      recoveredMs,
    };
  } finally {
    await cluster.start();
    for (let nth = 0; nth < fleet.size; nth++) await fleet.stop(nth, true);
  }

  function countLook(found: string[]): string[] {
    looks++;
    return found;
  }
}

function toOddity(line: string): string {
  return `P12: ${line}`;
}

async function playFault(stage: Stage, { name, number, forMs }: Plan['schedule'][number]): Promise<void> {
  const fault = faults[name];
  if (!fault) return;
  const random = createRandom(stage.plan.seed * 1_000 + number);
  try {
    const end = await fault.begin(stage, random);
    if (end === null) return stage.count('not played');
    stage.count(fault.class);
    stage.count(name);
    await sleep(forMs);
    // A server that another fault has stopped cannot be told yet.
    for (let tries = 1; ; tries++) {
      try {
        await end();
        return;
      } catch (error) {
        if (tries > 100) throw error;
        await sleep(100);
      }
    }
  } catch {
    stage.count('not played');
  }
}

async function untilMigrated({ query }: Cluster): Promise<void> {
  const untilAt = performance.now() + 60_000;
  for (;;) {
    const [row] = await query<{ there: boolean }>(
      `SELECT to_regclass('intake.prefills') IS NOT NULL AND to_regclass('intake_analytics.completeness') IS NOT NULL AS there`,
    );
    if (row?.there) return;
    if (performance.now() > untilAt) throw new Error('P22: no worker brought the schema up within a minute');
    await sleep(100);
  }
}

/** Nothing of a person, and no credential, in anything that the processes said (P18). */
function findLeaks(folder: string, { accounts, s3 }: Stage): string[] {
  const said = readdirSync(folder)
    .filter((file) => file.endsWith('.log'))
    .map((file) => readFileSync(join(folder, file), 'utf8'))
    .join('\n');
  for (const account of accounts) {
    if (said.includes(account.credential)) return ['P18: a credential is in the log'];
    for (const { id, email, phone } of account.truth()) {
      if (said.includes(email) || said.includes(phone))
        return [`P18: an e-mail or phone of application ${id} is in the log`];
    }
  }
  return said.includes(s3.credentials.secretAccessKey) ? ['P18: a secret is in the log'] : [];
}

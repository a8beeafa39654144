// Plays one seed: opens a source, a store, a database and proxies between them and the workers, and runs two phases. Phase A has faults and
// checks the invariants every half second. Phase B has no faults and waits until everything is equal. main.ts judges a whole run.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exitCodes } from '../../src/cli/failure.ts';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { type CrashPoint, crashPoints } from '../../src/domain/crash-point.ts';
import { openPooler } from '../support/database/pooler.ts';
import { findFreePort } from '../support/servers/free-port.ts';
import { openStrictS3 } from '../support/stores/strict-s3.ts';
import { createRandom } from '../support/suite/random.ts';
import { careersForm, createCandidates, toCandidateSettings, toSiteKey } from './candidates.ts';
import type { Cluster } from './cluster.ts';
import { openEndpoints } from './endpoints.ts';
import { createErasing } from './erasing.ts';
import { faults, toArming } from './faults/faults.ts';
import { openProxy } from './faults/proxy.ts';
import { openSmallDisk } from './faults/small-disk.ts';
import { createFleet } from './fleet.ts';
import { findBroken, startWatching } from './promises/invariants.ts';
import { createStrangerWatch, findLeaks } from './promises/leaks.ts';
import { endFaults, recover } from './promises/recovery.ts';
import { findFalseVerdicts } from './promises/verdicts.ts';
import { lookAtBareDatabase, untilMigrated, untilWorking, watchStatus } from './readiness.ts';
import { createReleases, knowsWebhooks } from './releases.ts';
import { leaseMs, toSettings, withSlack } from './settings.ts';
import type { Plan, Stage } from './stage.ts';
import { createWorkload } from './workload.ts';

export interface Verdict {
  readonly seed: number;
  readonly seconds: number;
  readonly pooled: boolean;
  /** The first broken promise, or null. */
  readonly broken: string | null;
  readonly counts: Readonly<Record<string, number>>;
  /** How often a process died or stopped at each crash point. */
  readonly fired: Readonly<Partial<Record<CrashPoint, number>>>;
  /** Parts of the plan that this machine cannot play, with the reason. */
  readonly unplayable: readonly string[];
  readonly applications: number;
  readonly files: number;
  readonly erased: number;
  readonly looks: number;
  readonly recoveredMs: number;
}

export interface Surroundings {
  readonly cluster: Cluster;
  readonly folder: string;
  /** The checkout of the release before. It creates the schema, and every later start is of one release or the other. */
  readonly before: string | null;
}

const recoveryMs = 120_000;
const stopMs = 25_000;
/** Exit codes that a one-shot command may have during faults. 7: the database could not be migrated. */
const fineCodes: readonly (number | null)[] = [0, 3, 4, 5, 6, 7];

/** Plays one plan. An error in the harness itself is a finding too. */
export async function playSeed(plan: Plan, around: Surroundings): Promise<Verdict> {
  try {
    return await playPlan(plan, around);
  } catch (error) {
    const { seed, seconds, pooled } = plan;
    const nothing = { counts: {}, fired: {}, unplayable: [], applications: 0, files: 0, erased: 0, looks: 0 };
    const broken = describeError(error);
    return { seed, seconds, pooled, ...nothing, recoveredMs: 0, broken };
  }
}

/** Shows both errors when closing fails after another error; otherwise the second would hide the first. */
function describeError(error: unknown): string {
  if (error instanceof SuppressedError) {
    return `${describeError(error.suppressed)}\nAnd while closing: ${describeError(error.error)}`;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

async function playPlan(plan: Plan, { cluster, folder: root, before }: Surroundings): Promise<Verdict> {
  const folder = join(root, `seed-${plan.seed}`);
  mkdirSync(folder, { recursive: true });
  const counts: Record<string, number> = {};
  const fired: Partial<Record<CrashPoint, number>> = {};
  const unplayable: string[] = [];
  const broken: string[] = [];
  const random = createRandom(plan.seed + 2_000_003);
  let isHalted = false;
  let isQuiet = false;
  let looks = 0;
  await using stack = new AsyncDisposableStack();
  const name = `seed_${plan.seed}`;
  await cluster.openDatabase(name, plan.onSmallDisk);
  stack.defer(() => cluster.dropDatabase());
  const choices = { ...plan.choices, consent: 'allow', resumeLink: 'relative' } as const;
  const board = stack.use(
    await openSandbox({
      seed: plan.seed,
      applications: plan.applications,
      firstId: plan.firstId,
      choices,
      advertisers: plan.accounts > 1 ? [{ applications: 15, firstId: 5_000_001n, choices }] : [],
    }),
  );
  const s3 = stack.use(await openStrictS3(plan.store));
  const portOf = (url: string) => Number(new URL(url).port);
  const proxies = {
    database: stack.use(await openProxy(cluster.port)),
    source: stack.use(await openProxy(portOf(board.url))),
    storage: stack.use(await openProxy(portOf(s3.endpoint))),
  };
  // The pooler connects through the same proxy as direct connections.
  const pooler = plan.pooled ? await openPooler(cluster.toUrl(proxies.database.port, 'pooler'), 6) : null;
  if (pooler) stack.use(pooler);
  else if (plan.pooled) unplayable.push('pgbouncer: it is not installed');
  const spool = plan.onSmallSpool ? openSmallDisk(join(folder, 'spool')) : null;
  if (spool) stack.use(spool);
  else if (plan.onSmallSpool) unplayable.push('full spool: a small disk cannot be mounted here');
  if (plan.onSmallDisk && !cluster.hasSmallDisk)
    unplayable.push('full disk of the database: a small disk cannot be mounted here');
  const strangersFile = join(folder, 'strangers.txt');
  const findStrangers = createStrangerWatch(strangersFile, board);
  const site = { port: await findFreePort(), key: 'a-key-of-the-careers-site' };
  const endpoints = stack.use(await openEndpoints());
  const writeAdvertisers = (name: string, withWebhooks: boolean) => {
    const file = join(folder, name);
    const list = board.advertisers.map(({ credential, advertiserId }, at) => ({
      ...{ name: `account-${at + 1}`, credential },
      ...{ prefillKey: toSiteKey(site.key, advertiserId), prefillReturnUrls: [careersForm] },
      ...(withWebhooks && { webhooks: endpoints.toSettings(`account-${at + 1}`) }),
    }));
    writeFileSync(file, JSON.stringify(list));
    return file;
  };
  const advertisersFile = writeAdvertisers('advertisers.json', true);
  const earlierFile = writeAdvertisers('advertisers-before.json', false);
  const accounts = board.advertisers;
  /** Cycles through each list of crash points, starting at a position given by the seed. */
  const next = new Map<readonly CrashPoint[], number>();
  const nextPoint: Stage['nextPoint'] = (among) => {
    const at = next.get(among) ?? plan.seed;
    next.set(among, at + 1);
    return among[at % among.length] as CrashPoint;
  };
  const workload = createWorkload(accounts, createRandom(plan.seed + 1_000_003));
  const count: Stage['count'] = (what, by = 1) => {
    counts[what] = (counts[what] ?? 0) + by;
  };
  const releases = createReleases(before, createRandom(plan.seed + 3_000_017), count);

  /** Each process reads the database URL from its own file, except with a pooler, which has its own login. */
  const members = new Set<string>();
  const publishUrls = () => {
    for (const member of members) {
      writeFileSync(join(folder, `${member}.url`), cluster.toUrl(proxies.database.port, member));
    }
  };
  const toUrls = (member: string) => {
    const direct = cluster.toUrl(proxies.database.port, member);
    if (pooler) return { DATABASE_URL: cluster.toUrl(pooler.port, member), DATABASE_DIRECT_URL: direct };
    members.add(member);
    writeFileSync(join(folder, `${member}.url`), direct);
    return { DATABASE_URL_FILE: join(folder, `${member}.url`) };
  };
  const sourceUrl = `http://127.0.0.1:${proxies.source.port}`;
  const fleet = createFleet({
    folder,
    env: (member, checkout) => ({
      ...toSettings(plan, s3),
      ...toUrls(member),
      SOURCE_URL: sourceUrl,
      ...(member === 'prefill' && toCandidateSettings(board, sourceUrl, site.port)),
      S3_ENDPOINT: `http://127.0.0.1:${proxies.storage.port}`,
      ADVERTISERS_FILE: knowsWebhooks(checkout) ? advertisersFile : earlierFile,
      ...(spool && { TMPDIR: spool.folder }),
      // The second database of a plan is used without a proxy.
      WEBHOOK_ALLOW_PRIVATE: 'true',
      CHAOS_PORTS: [cluster, endpoints, ...Object.values(proxies), ...(pooler ? [pooler] : [])]
        .map(({ port }) => port)
        .join(','),
      CHAOS_STRANGERS: strangersFile,
    }),
    toCheckout: releases.toCheckout,
    toArming: () => (isQuiet || random.chance(0.3) ? null : toArming(random, nextPoint)),
    onFired(point) {
      fired[point] = (fired[point] ?? 0) + 1;
      count('named moments');
    },
    async onStopped(point) {
      // The claimed files change meanwhile. The stopped worker must not complete the new file's download with the old bytes.
      if ((crashPoints.download as readonly CrashPoint[]).includes(point)) {
        const claimed = await cluster
          .query<{ application_id: string }>(
            `SELECT application_id FROM intake.downloads WHERE lease_token IS NOT NULL`,
          )
          .catch(() => []);
        workload.changeFiles(claimed.map((row) => BigInt(row.application_id)));
        // No other worker can fetch the file meanwhile, so the new download is still queued when the process continues.
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

  const runCommand: Stage['runCommand'] = async (args, point) => {
    const rotated = counts['passwords rotated'];
    let ended = await fleet.run(args, point);
    // The command read the password just before it changed. It is started again, as a supervisor would.
    if (ended.code === exitCodes.usage && counts['passwords rotated'] !== rotated) ended = await fleet.run(args, point);
    count('commands');
    if (!ended.fired && !fineCodes.includes(ended.code))
      broken.push(`P12: intake ${args.join(' ')} ended with code ${ended.code}`);
    return ended;
  };
  const stage: Stage = {
    ...{ plan, name, cluster, accounts, s3, proxies, pooler, spool, fleet, workload, count, nextPoint, runCommand },
    publishUrls,
    erasing: createErasing({ cluster, accounts, count, runCommand }),
    requests: () => board.requests(),
    candidates: createCandidates({
      ...{ board, cluster, s3, runCommand, count },
      site: { url: `http://127.0.0.1:${site.port}`, key: site.key },
    }),
    endpoints,
    lostKeys: new Set(),
    report: (finding) => broken.push(finding),
    note: () => {
      isHalted = true;
    },
    async stopWell(nth) {
      const { code, tookMs } = await fleet.stop(nth);
      count('stopped by SIGTERM');
      if (code !== 0 || tookMs > withSlack(stopMs))
        broken.push(`P16: SIGTERM ended in ${Math.round(tookMs)} ms with code ${code}`);
    },
  };

  try {
    broken.push(...(await lookAtBareDatabase(cluster, fleet)));
    const { diesMigratingAt } = plan;
    for (let nth = 0; nth < plan.workers; nth++) {
      if (nth > 0 || diesMigratingAt === null) fleet.launch();
      else {
        fleet.launch({ point: 'migrating', count: diesMigratingAt, stop: false });
        await fleet.untilEnded(nth, 6_000);
      }
    }
    await untilMigrated(cluster, fleet, releases.first);
    releases.mix();
    fleet.launchPrefill();
    await startWatching(cluster);
    await untilWorking(cluster);

    // Phase A: faults on.
    const startedAt = performance.now();
    const running: Promise<unknown>[] = [];
    const over = new AbortController();
    running.push(watchStatus(fleet, over.signal).then((found) => broken.push(...found)));
    const happening = (async () => {
      while (!over.signal.aborted) {
        workload.step();
        await sleep(220);
      }
    })();
    const watching = (async () => {
      while (!over.signal.aborted && broken.length === 0) {
        broken.push(...findStrangers(), ...takeOdd(), ...endpoints.takeOdd());
        broken.push(...(await findBroken(stage).then(countLook, () => [])));
        if (looks % 10 === 0) broken.push(...findLeaks(folder, stage, 'running'));
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

    // Phase B: faults off.
    isQuiet = true;
    await endFaults(stage);
    let recoveredMs = 0;
    if (broken.length === 0) broken.push(...(await releases.complete(runCommand)));
    if (broken.length === 0) {
      const recovered = await recover(stage, isHalted, withSlack(recoveryMs));
      recoveredMs = recovered.tookMs;
      broken.push(...recovered.broken, ...(await findBroken(stage).then(countLook)));
      broken.push(...findStrangers(), ...takeOdd(), ...endpoints.takeOdd());
    }
    const stops = Array.from({ length: fleet.size }, (_, nth) => fleet.stop(nth, true));
    for (const { code, tookMs } of await Promise.all(stops)) {
      if (code !== 0 || tookMs > withSlack(stopMs))
        broken.push(`P16: SIGTERM ended in ${Math.round(tookMs)} ms with code ${code}`);
    }
    // Before the verdicts, which change certificates.
    if (broken.length === 0) broken.push(...(await releases.checkProofs(stage, folder)));
    if (broken.length === 0) broken.push(...(await findFalseVerdicts(stage)));
    if (broken.length === 0) broken.push(...(await releases.finish(runCommand)));
    broken.push(...findLeaks(folder, stage, 'ended'));
    const [sizes] = await cluster.query<{ applications: number; files: number; erased: number }>(
      `SELECT count(*)::int AS applications, count(erased_at)::int AS erased,
         (SELECT count(*)::int FROM intake.attachments) AS files FROM intake.applications`,
    );
    count('starts', fleet.starts);
    count('kills', fleet.kills);
    const { seed, seconds } = plan;
    return {
      ...{ seed, seconds, pooled: pooler !== null, counts, fired, unplayable, looks, recoveredMs },
      broken: broken[0] ?? null,
      ...{ applications: 0, files: 0, erased: 0, ...sizes },
    };
  } finally {
    await cluster.start();
    for (let nth = 0; nth < fleet.size; nth++) await fleet.stop(nth, true);
  }

  function takeOdd(): string[] {
    // A process that starts while the password changes exits with the proper message (28P01), and is started again.
    const isRotated = (line: string) => 'passwords rotated' in counts && line.includes('(28P01)');
    return fleet.odd.splice(0).flatMap((line) => (isRotated(line) ? [] : [`P12: ${line}`]));
  }

  function countLook(found: string[]): string[] {
    looks++;
    return found;
  }
}

async function playFault(stage: Stage, { name, number, forMs }: Plan['schedule'][number]): Promise<void> {
  const fault = faults[name];
  if (!fault) return;
  const random = createRandom(stage.plan.seed * 1_000 + number);
  try {
    const end = await fault.begin(stage, random);
    if (end === null) return stage.count(`not played: ${name}`);
    stage.count(fault.class);
    stage.count(name);
    await sleep(forMs);
    // Ending the fault fails while another fault has stopped the server.
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
    stage.count(`not played: ${name}`);
  }
}

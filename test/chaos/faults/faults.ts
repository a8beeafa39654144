// Every fault by name: its class, its weight in the draw, its duration and its start. `begin` returns the function that ends the fault.
// To add a fault, add a row. If a fault cannot be played here, `begin` returns null and the fault counts as not played.

import { setTimeout as sleep } from 'node:timers/promises';
import { type CrashPoint, crashPoints } from '../../../src/domain/crash-point.ts';
import { setClockBack } from '../../support/database/moved-clock.ts';
import type { Fault as StorageFault } from '../../support/stores/strict-s3.ts';
import type { Random } from '../../support/suite/random.ts';
import { untilAnswering } from '../cluster.ts';
import { showChangingElement } from '../elements.ts';
import { endpointFaults } from '../endpoints.ts';
import type { Arming } from '../fleet.ts';
import { playCollection, useStoreElsewhere } from '../orphans.ts';
import { leaseMs, within } from '../settings.ts';
import type { Plan, Stage } from '../stage.ts';
import { during, type End, findWriter, lockTable, withSetting } from './database-faults.ts';
import { beginOutage, toSourceFault } from './outages.ts';
import type { ProxyMode, TcpProxy } from './proxy.ts';

export type FaultClass = 'process' | 'database' | 'network' | 'source' | 'storage' | 'clock';

interface FaultRow {
  readonly class: FaultClass;
  readonly weight: number;
  readonly lastsMs: readonly [shortest: number, longest: number];
  readonly begin: (stage: Stage, random: Random) => Promise<End | null>;
  /** The fault is drawn only for plans that have this property. */
  readonly needs?: keyof Pick<Plan, 'onSmallDisk' | 'pooled' | 'onSmallSpool'>;
}

const nothing: End = () => {};

/** Permanent failures of a single file. */
const deadFiles = [
  { kind: 'refuse', status: 403 },
  { kind: 'reset', at: 'start' },
  { kind: 'throttle', retryAfter: 'seconds', seconds: 1 },
] as const;

/** Crash points of workers. play.ts arms the migration once, at the start, since a database is migrated once. Commands use the rest. */
const armed: readonly CrashPoint[] = [...crashPoints.page, ...crashPoints.download, ...crashPoints.webhook];

/** The table; a seed draws from it by weight. */
export const faults: Readonly<Record<string, FaultRow>> = {
  kill: row('process', 6, [0, 0], async ({ fleet }, random) => {
    fleet.kill(random.between(0, 99));
    return nothing;
  }),
  crashPoint: row('process', 10, [0, 0], async ({ fleet, nextPoint }, random) => {
    fleet.kill(random.between(0, 99), toArming(random, nextPoint));
    return nothing;
  }),
  /**
   * Stops a worker for longer than two leases while its page waits for a table lock. The transaction is not idle, so no timeout of the
   * server ends it. Only the fence prevents another worker from taking over its lane meanwhile.
   */
  pausePage: row('process', 3, [0, 0], async (stage) => {
    const waitMs = 2_000;
    const forMs = 2 * leaseMs + 1_500;
    const unlocked = await lockTable(stage, 'ranges', waitMs + forMs, 'EXCLUSIVE');
    const nth = await findWriter(stage, waitMs);
    if (nth === null) return null;
    stage.count('pages paused');
    const paused = stage.fleet.pause(nth, forMs);
    return () => Promise.all([paused, unlocked()]);
  }),
  /** Stops a worker at its put; the file changes before the worker continues. Only the token prevents it from completing the new file. */
  pauseFile: row('process', 0, [0, 0], async ({ fleet }, random) => {
    fleet.kill(random.between(0, 99), { point: 'put', count: 1, stop: true });
    return nothing;
  }),
  pause: row('process', 4, [0, 0], async ({ fleet, count }, random) => {
    count('pauses');
    const paused = fleet.pause(random.between(0, 99), 2 * leaseMs + random.between(200, 1_500));
    return () => paused;
  }),
  restart: row('process', 2, [0, 0], async ({ fleet, stopWell }, random) => {
    const stopped = stopWell(random.between(0, fleet.size - 1));
    return () => stopped;
  }),
  command: row('process', 4, [0, 0], async ({ runCommand }, random) => {
    const ended = runCommand(
      random.pick([['backfill'], ['backfill', '--restart'], ['sync', '--recheck'], ['sync'], ['verify'], ['retry']]),
    );
    return () => ended;
  }),
  /** Erases a person, mostly with kill -9 at a crash point. The same command continues the erasure, now or in phase B. */
  erase: row('process', 2, [0, 0], async ({ erasing, nextPoint }, random) => {
    const ended = erasing.eraseSomebody(random, random.chance(0.85) ? nextPoint(crashPoints.erasure) : null);
    return (await ended) ? nothing : null;
  }),
  /** A candidate shares a profile and is erased while the careers site redeems it. */
  candidate: row('process', 4, [0, 0], async ({ candidates }, random) => {
    return (await candidates.visit(random)) ? nothing : null;
  }),
  /** The source answers 410 for a second, so files end as missing. `intake retry` requeues them while workers fetch and flags arrive. */
  retry: row('process', 2, [0, 0], async ({ accounts, workload, runCommand }, random) => {
    const account = random.pick(accounts);
    const number = account.fault({ kind: 'fail', status: 410, on: 'files', times: 4 });
    workload.changeFiles();
    await sleep(1_000);
    account.clearFaults(number);
    workload.flagSome();
    await runCommand(['retry']);
    return nothing;
  }),
  /** The epoch of the store rises while workers put and delete. They must go on, and no command may be refused. */
  adopt: row('process', 2, [0, 0], async ({ runCommand, count }) => {
    count('stores adopted');
    const ended = runCommand(['adopt-store', '--yes']);
    return () => ended;
  }),
  /** Another database has the same store configured. It is refused; what it would delete there, phase B would miss. */
  otherDatabase: row('process', 1, [0, 0], async (stage) => ((await useStoreElsewhere(stage)) ? nothing : null)),
  collect: row('process', 1, [0, 0], async (stage, random) => {
    const ended = playCollection(stage, random, random.chance(0.85) ? stage.nextPoint(crashPoints.collection) : null);
    return () => ended;
  }),

  terminate: row('database', 4, [300, 1_500], (stage, random) =>
    during(async () => {
      await stage.cluster.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'worker%' AND random() < $1`,
        [random.next()],
      );
      await sleep(random.between(50, 400));
    }),
  ),
  /** Changes the workers' password, updates their URL files and terminates their sessions. The workers must continue without a restart. */
  rotatePassword: row('database', 3, [0, 0], async ({ cluster, pooler, publishUrls, count }) => {
    if (pooler) return null;
    await cluster.rotatePassword();
    publishUrls();
    await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'worker%'`);
    count('passwords rotated');
    return nothing;
  }),
  /** COMMIT waits for a standby that does not exist. The commit is durable, but the client sees only a closed connection. */
  terminateInCommit: row('database', 5, [400, 1_200], async ({ cluster, count }) => {
    await cluster.query(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`);
    await cluster.query(`SELECT pg_reload_conf()`);
    return async () => {
      const waiting = await cluster.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
      );
      count('commits broken off', waiting.length);
      await cluster.query(`ALTER SYSTEM RESET synchronous_standby_names`);
      await cluster.query(`SELECT pg_reload_conf()`);
    };
  }),
  stopDatabase: row('database', 3, [100, 2_500], async ({ cluster, count }) => {
    await cluster.stopAtOnce();
    count('database stops');
    return async () => {
      await cluster.start();
      await untilAnswering(cluster);
    };
  }),
  readOnly: row('database', 2, [500, 3_000], (stage) => withSetting(stage, 'default_transaction_read_only', 'on')),
  serializable: row('database', 2, [1_000, 4_000], (stage) =>
    withSetting(stage, 'default_transaction_isolation', 'serializable'),
  ),
  statementTimeout: row('database', 2, [500, 2_000], (stage) => withSetting(stage, 'statement_timeout', '4ms')),
  lockTable: row('database', 2, [500, 4_000], (stage, random) => {
    const table = random.pick(['applications', 'downloads', 'attachments', 'leases', 'sweeps']);
    return lockTable(stage, table, random.between(500, 4_000));
  }),
  tooManyConnections: row('database', 2, [500, 2_000], async ({ cluster, name }) => {
    await cluster.query(`ALTER DATABASE ${name} CONNECTION LIMIT 2`);
    await cluster.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'worker%'`);
    return () => cluster.query(`ALTER DATABASE ${name} CONNECTION LIMIT -1`);
  }),
  diskFull: {
    needs: 'onSmallDisk',
    ...row('database', 6, [800, 3_000], async ({ cluster }) => {
      if (!cluster.hasSmallDisk) return null;
      cluster.fillDisk(true);
      return () => cluster.fillDisk(false);
    }),
  },
  poolerKilled: {
    needs: 'pooled',
    ...row('database', 6, [0, 2_500], async ({ pooler, count }) => {
      if (!pooler) return null;
      await pooler.kill();
      count('pooler kills');
      return () => pooler.start();
    }),
  },

  ...network('database'),
  ...network('source'),
  ...network('storage'),
  /** The endpoints of webhooks fail in one way. When they are back, hours have passed for some: the next try is due, or they were halted. */
  endpoint: row('network', 8, [500, 4_000], async ({ endpoints, cluster, runCommand, accounts, count }, random) => {
    const mode = random.pick(endpointFaults);
    count(`endpoint: ${mode}`);
    endpoints.mode = mode;
    return async () => {
      endpoints.mode = 'open';
      const past = random.pick(['0 hours', '80 hours']);
      await cluster
        .query(
          `UPDATE intake.webhooks SET next_at = now(), failing_since = failing_since - interval '${past}' WHERE next_at > now()`,
        )
        .catch(() => []);
      if (mode === 'gone') await runCommand(['retry', '--webhook', `account-${random.between(1, accounts.length)}`]);
    };
  }),

  sourceOutage: row('network', 1, [0, 0], (stage) => beginOutage(stage, 'source')),
  storageOutage: row('network', 1, [0, 0], (stage) => beginOutage(stage, 'storage')),

  sourceFault: row('source', 14, [500, 4_000], async ({ accounts, count }, random) => {
    const account = random.pick(accounts);
    const fault = toSourceFault(random);
    const number = account.fault(fault);
    count(`source: ${fault.kind}`);
    return () => account.clearFaults(number);
  }),
  /** Changes files; three downloads end cleanly after a random share of the bytes. Only the Size in the list shows the truncation. */
  cutFile: row('source', 3, [2_000, 8_000], async ({ accounts, workload }, random) => {
    const account = random.pick(accounts);
    const number = account.fault({
      kind: 'cut',
      on: 'files',
      framing: 'closeDelimited',
      keep: random.next(),
      times: 3,
    });
    workload.changeFiles();
    return () => account.clearFaults(number);
  }),
  /** A list element that cannot be stored and that differs in every answer. */
  changingElement: row('source', 3, [2_000, 6_000], (stage, random) => showChangingElement(stage, random)),
  /** One file downloads very slowly, so its download run does not end. Meanwhile stored files are flagged. */
  longRun: row('source', 2, [8_000, 20_000], async ({ accounts, workload }, random) => {
    const account = random.pick(accounts);
    const number = account.fault({ kind: 'drip', on: 'files', pieceBytes: 20, everyMs: 1_000, times: 1 });
    workload.changeFiles();
    await sleep(2_000);
    workload.flagSome();
    return () => account.clearFaults(number);
  }),
  /** Applications disappear from the list until Intake marks them as missing, and return unchanged. */
  vanish: row('source', 2, [0, 0], async ({ cluster, workload, count }) => {
    const { ids, show } = workload.hideSome();
    try {
      const isMarked = (column: string) => async () => {
        const sql = `SELECT 1 FROM intake.applications WHERE application_id = ANY ($1::bigint[]) AND ${column} IS NOT NULL`;
        return (await cluster.query(sql, [ids.map(String)])).length > 0;
      };
      if (!(await within(10_000, isMarked('absent_since')))) return null;
      await cluster.query(
        `UPDATE intake.applications SET absent_since = absent_since - interval '25 hours' WHERE application_id = ANY ($1::bigint[])`,
        [ids.map(String)],
      );
      if (await within(10_000, isMarked('missing_since'))) count('applications that were missing', ids.length);
    } finally {
      show();
    }
    return nothing;
  }),
  refuse: row('source', 1, [300, 1_500], async ({ accounts, note }, random) => {
    const account = random.pick(accounts);
    const number = account.fault({ kind: 'refuse', status: random.pick([401, 403]), times: null });
    note('halted');
    return () => account.clearFaults(number);
  }),
  /** One file is refused, reset or throttled while the source serves everything else. */
  deadFile: row('source', 3, [2_000, 6_000], async ({ accounts, workload }, random) => {
    const account = random.pick(accounts);
    const { id } = random.pick([...account.truth()]);
    const fault = random.pick(deadFiles);
    const number = account.fault({ ...fault, on: 'files', applicationId: id, times: null });
    workload.changeFiles([id]);
    return () => account.clearFaults(number);
  }),
  retryAfter: row('source', 2, [0, 0], async ({ accounts }, random) => {
    random.pick(accounts).fault({ kind: 'throttle', on: 'any', seconds: random.between(1, 4), times: 1 });
    return nothing;
  }),
  otherAdvertiser: row('source', 1, [300, 1_500], async ({ accounts, note }, random) => {
    const account = random.pick(accounts);
    const number = account.fault({ kind: 'otherAdvertiser', on: 'list', times: 1 });
    note('halted');
    return () => account.clearFaults(number);
  }),

  storageFault: row('storage', 8, [0, 0], async ({ s3, count }, random) => {
    const fault = random.pick<StorageFault>([
      { kind: 'answer', status: 503, code: 'SlowDown' },
      { kind: 'answer', status: 403, code: 'AccessDenied' },
      { kind: 'answer', status: 404, code: 'NoSuchBucket' },
      { kind: 'answerLost' },
      { kind: 'reset' },
      { kind: 'wrongBytes' },
      { kind: 'shortBytes' },
      { kind: 'slow', delayMs: 4_000 },
    ]);
    s3.fail(random.pick(['PutObject', 'PutObject', 'HeadObject', 'GetObject']), fault, random.between(1, 6));
    count(`storage: ${fault.kind === 'answer' ? fault.code : fault.kind}`);
    return nothing;
  }),
  /** The store deletes slowly, and flags are lifted meanwhile, so the same bytes are needed again. */
  flagBriefly: row('storage', 3, [0, 0], async ({ s3, cluster, workload, count }, random) => {
    s3.fail('DeleteObject', { kind: 'slow', delayMs: random.between(4_000, 12_000) }, 2);
    const { hashes, lift } = workload.flagSome();
    const isRead = async () => {
      const sql = `SELECT 1 FROM intake.blobs WHERE sha256 = ANY ($1::text[]) AND state = 'infected' AND deleted_at IS NULL`;
      return (await cluster.query(sql, [hashes])).length > 0;
    };
    const isDeleting = async () =>
      s3.requests.some(({ operation, status }) => operation === 'DeleteObject' && status === 0);
    if ((await within(12_000, isRead)) && (await within(8_000, isDeleting))) count('flags lifted amid a delete');
    lift();
    return nothing;
  }),
  /** The store refuses to delete some flagged files for a while, and deletes others. */
  undeleted: row('storage', 2, [0, 0], async ({ s3, workload, count }, random) => {
    s3.fail('DeleteObject', { kind: 'answer', status: 403, code: 'AccessDenied' }, random.between(1, 3));
    workload.flagSome();
    count('storage: undeleted');
    return nothing;
  }),
  objectLost: row('storage', 2, [0, 0], async ({ s3, lostKeys }, random) => {
    const keys = [...s3.objects.keys()].filter((key) => /[0-9a-f]{64}$/.test(key));
    if (keys.length === 0) return null;
    const key = random.pick(keys);
    lostKeys.add(key);
    s3.objects.delete(key);
    return nothing;
  }),
  /** The spool's disk is full while files arrive that are too large for memory. */
  spoolFull: {
    needs: 'onSmallSpool',
    ...row('storage', 6, [800, 3_500], async ({ spool, accounts }, random) => {
      if (!spool) return null;
      const account = random.pick(accounts);
      const number = account.fault({ kind: 'flood', on: 'files', sizeBytes: 12_000_000, times: 4 });
      await sleep(random.between(0, 400));
      spool.fill(true);
      return () => {
        spool.fill(false);
        account.clearFaults(number);
      };
    }),
  },
  storageClock: row('clock', 1, [500, 4_000], async ({ s3 }, random) => {
    s3.skewMs = random.pick([-1, 1]) * random.between(1_000_000, 9_000_000);
    return () => {
      s3.skewMs = 0;
    };
  }),
  /** The database's clock was hours ahead and is set back, so every stored time is in the future. */
  databaseClock: row('clock', 2, [0, 0], async ({ cluster }, random) => {
    await setClockBack(cluster.query, random.between(1, 20) * 3_600_000);
    return nothing;
  }),
  workerClock: row('clock', 2, [0, 0], async ({ fleet }, random) => {
    const imported = new URL('./shifted-clock.ts', import.meta.url).href;
    fleet.kill(random.between(0, 99), null, {
      imported,
      CHAOS_CLOCK_MS: String(random.between(60_000, 50 * 3_600_000)),
    });
    return nothing;
  }),
};

/** Chooses a crash point for a new process. It dies at any of them, or stops inside a page's transaction or during a download. */
export function toArming(random: Random, nextPoint: Stage['nextPoint']): Arming {
  const count = random.between(1, 3);
  if (random.chance(0.6)) return { point: nextPoint(armed), count, stop: false };
  const point = random.pick<CrashPoint>(['pageCompared', 'pageWritten', 'pageWritten', 'fetched', 'put']);
  return { point, count, stop: true };
}

function row(kind: FaultClass, weight: number, lastsMs: readonly [number, number], begin: FaultRow['begin']): FaultRow {
  return { class: kind, weight, lastsMs, begin };
}

/** Network faults between the workers and one of the three services. */
function network(side: keyof Stage['proxies']): Record<string, FaultRow> {
  const inMode = (mode: ProxyMode) => async (stage: Stage) => {
    const proxy: TcpProxy = stage.proxies[side];
    proxy.mode = mode;
    if (mode === 'cut') proxy.cut();
    return () => {
      proxy.mode = 'open';
    };
  };
  return {
    [`${side}Cut`]: row('network', 2, [200, 2_500], inMode('cut')),
    [`${side}Late`]: row('network', 1, [500, 3_000], inMode('late')),
    [`${side}Slow`]: row('network', 1, [500, 2_500], inMode('slow')),
    [`${side}Stalled`]: row('network', 1, [500, 3_000], inMode('stalled')),
    [`${side}Reset`]: row('network', 2, [0, 0], async (stage) => {
      stage.proxies[side].cut();
      return nothing;
    }),
    [`${side}HalfOpen`]: row('network', 1, [0, 0], async (stage) => {
      stage.proxies[side].deaden();
      return nothing;
    }),
  };
}

// The plan and the stage of a seed: the types that the parts of the harness share. Types only.

import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import type { Choices } from '../../src/dev/sandbox/behaviour/choices.ts';
import type { RequestEntry } from '../../src/dev/sandbox/http/request-log.ts';
import type { CrashPoint } from '../../src/domain/crash-point.ts';
import type { Pooler } from '../support/database/pooler.ts';
import type { StrictS3, StrictS3Options } from '../support/stores/strict-s3.ts';
import type { Candidates } from './candidates.ts';
import type { Cluster } from './cluster.ts';
import type { Endpoints } from './endpoints.ts';
import type { Erasing } from './erasing.ts';
import type { TcpProxy } from './faults/proxy.ts';
import type { SmallDisk } from './faults/small-disk.ts';
import type { Ended, Fleet } from './fleet.ts';
import type { Workload } from './workload.ts';

/** Everything that a seed determines. */
export interface Plan {
  readonly seed: number;
  readonly seconds: number;
  readonly workers: number;
  readonly accounts: number;
  readonly applications: number;
  readonly format: 'json' | 'xml';
  readonly choices: Partial<Choices>;
  /** The first id of the first account. */
  readonly firstId: bigint;
  /** SOURCE_RATE. A shared rate limit stores times in the database, which clock faults affect. */
  readonly rate: 'off' | '400/s';
  /** The database is on a disk that can become full. */
  readonly onSmallDisk: boolean;
  /** Workers reach the database through pgbouncer in transaction mode. */
  readonly pooled: boolean;
  /** The spool is on a disk that can become full. */
  readonly onSmallSpool: boolean;
  /** The behaviour of the storage. */
  readonly store: Pick<StrictS3Options, 'versions'>;
  /** The first worker dies while it migrates, at this statement. */
  readonly diesMigratingAt: number | null;
  readonly schedule: readonly PlannedFault[];
}

export interface PlannedFault {
  readonly number: number;
  /** A row of faults.ts. */
  readonly name: string;
  readonly atMs: number;
  readonly forMs: number;
}

/** Everything that a fault can use. */
export interface Stage {
  readonly plan: Plan;
  /** The name of the database. */
  readonly name: string;
  readonly cluster: Cluster;
  readonly accounts: readonly BoardAdvertiser[];
  readonly s3: StrictS3;
  readonly proxies: Readonly<Record<'database' | 'source' | 'storage', TcpProxy>>;
  /** Null if the plan uses no pooler, or this machine has none. */
  readonly pooler: Pooler | null;
  readonly spool: SmallDisk | null;
  readonly fleet: Fleet;
  readonly workload: Workload;
  readonly erasing: Erasing;
  /** Writes the current database URL into the file of every process. */
  publishUrls(): void;
  /** The source's request log. */
  requests(): readonly RequestEntry[];
  readonly candidates: Candidates;
  readonly endpoints: Endpoints;
  /** Objects that the objectLost fault removed from the store. */
  readonly lostKeys: Set<string>;
  count(what: string, by?: number): void;
  /** Reports a broken promise. */
  report(broken: string): void;
  /** Records a fact that phase B needs. */
  note(what: 'halted'): void;
  /** Cycles through the crash points, from seed to seed, so that each is used without depending on chance. */
  nextPoint(among: readonly CrashPoint[]): CrashPoint;
  stopWell(nth: number): Promise<void>;
  /** Runs a one-shot command; the process dies at `point` if it reaches it. An unexpected exit code is a finding. */
  runCommand(args: readonly string[], point?: CrashPoint | null): Promise<Ended>;
}

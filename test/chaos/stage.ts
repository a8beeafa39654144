// What a seed is played on: the words that plan, faults, invariants and truth have in common. Types only.

import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import type { Choices } from '../../src/dev/sandbox/behaviour/choices.ts';
import type { RequestEntry } from '../../src/dev/sandbox/http/request-log.ts';
import type { CrashPoint } from '../../src/domain/crash-point.ts';
import type { Pooler } from '../support/pooler.ts';
import type { StrictS3, StrictS3Options } from '../support/strict-s3.ts';
import type { Candidates } from './candidates.ts';
import type { Cluster } from './cluster.ts';
import type { Erasing } from './erasing.ts';
import type { Ended, Fleet } from './fleet.ts';
import type { TcpProxy } from './proxy.ts';
import type { SmallDisk } from './small-disk.ts';
import type { Workload } from './workload.ts';

/** What a seed decides. */
export interface Plan {
  readonly seed: number;
  readonly seconds: number;
  readonly workers: number;
  readonly accounts: number;
  readonly applications: number;
  readonly format: 'json' | 'xml';
  readonly choices: Partial<Choices>;
  /** Of the first account. */
  readonly firstId: bigint;
  /** SOURCE_RATE: a shared rate has stored times of its own. */
  readonly rate: 'off' | '400/s';
  /** The database lies on a disk that can run full. */
  readonly onSmallDisk: boolean;
  /** Workers reach the database through pgbouncer in transaction mode. */
  readonly pooled: boolean;
  /** Files wait on a disk that can run full. */
  readonly onSmallSpool: boolean;
  /** What the storage is like. */
  readonly store: Pick<StrictS3Options, 'manyDeletes' | 'versions'>;
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

/** What a fault can reach. */
export interface Stage {
  readonly plan: Plan;
  /** Of the database. */
  readonly name: string;
  readonly cluster: Cluster;
  readonly accounts: readonly BoardAdvertiser[];
  readonly s3: StrictS3;
  readonly proxies: Readonly<Record<'database' | 'source' | 'storage', TcpProxy>>;
  /** Null where the plan has none, or this machine. */
  readonly pooler: Pooler | null;
  readonly spool: SmallDisk | null;
  readonly fleet: Fleet;
  readonly workload: Workload;
  readonly erasing: Erasing;
  /** Writes the URL of the database anew for every process, as it is now. */
  publishUrls(): void;
  /** What the source was asked. */
  requests(): readonly RequestEntry[];
  readonly candidates: Candidates;
  /** Objects that were deleted behind our back. */
  readonly lostKeys: Set<string>;
  count(what: string, by?: number): void;
  /** A promise was broken, in words. */
  report(broken: string): void;
  /** Something that the second phase has to know. */
  note(what: 'halted'): void;
  /** The named moments in turn, seed after seed, so that none is left to chance. */
  nextPoint(among: readonly CrashPoint[]): CrashPoint;
  stopWell(nth: number): Promise<void>;
  /** A one-shot command; the process dies at the moment given, if it comes. A code that it should not end with is a finding. */
  runCommand(args: readonly string[], point?: CrashPoint | null): Promise<Ended>;
}

// What a seed is played on: the words that plan, faults, invariants and truth have in common. Types only.

import type { CrashPoint } from '../../src/domain/crash-point.ts';
import type { Advertiser } from '../../src/sandbox/account.ts';
import type { Choices } from '../../src/sandbox/choices.ts';
import type { StrictS3 } from '../support/strict-s3.ts';
import type { Cluster } from './cluster.ts';
import type { Fleet } from './fleet.ts';
import type { TcpProxy } from './proxy.ts';
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
  /** The database lies on a disk that can run full. */
  readonly onSmallDisk: boolean;
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
  readonly accounts: readonly Advertiser[];
  readonly s3: StrictS3;
  readonly proxies: Readonly<Record<'database' | 'source' | 'storage', TcpProxy>>;
  readonly fleet: Fleet;
  readonly workload: Workload;
  /** Objects that were deleted behind our back. */
  readonly lostKeys: Set<string>;
  count(what: string, by?: number): void;
  /** Something that the second phase has to know. */
  note(what: 'halted'): void;
  /** The named moments in turn over a whole run, so that none is left to chance. */
  nextPoint(among: readonly CrashPoint[]): CrashPoint;
  stopWell(nth: number): Promise<void>;
  runCommand(args: readonly string[]): Promise<void>;
}

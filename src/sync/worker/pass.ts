// What a worker reports about one run of a task, for metrics and logs: ids and counts only.
import { Trouble, type TroubleKind } from '../../domain/trouble.ts';
import type { TaskName } from './account-queue.ts';
import type { Watchdog } from './watchdog.ts';

export type MaintenanceName = 'verify' | 'retention' | 'erasures' | 'prefills' | 'prune' | 'days' | 'extract';
export type PassName = TaskName | MaintenanceName | 'downloads' | 'webhooks';

export interface Pass {
  readonly pass: PassName;
  readonly outcome: 'done' | 'failed';
  readonly durationMs: number;
  readonly kind?: TroubleKind | 'unexpected';
  readonly requests?: number;
  readonly added?: number;
  /** By outcome. */
  readonly files?: Readonly<Record<string, number>>;
}

/** Where all tasks of a worker report. */
export interface Reports {
  readonly log: WorkerLog;
  readonly watchdog: Watchdog;
  readonly onPass: (pass: Pass) => void;
}

export interface WorkerLog {
  debug(facts: object, message: string): void;
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/** Starts to time a pass. The returned function reports its end. */
export function createTeller({ onPass }: Pick<Reports, 'onPass'>, pass: PassName) {
  const beganAt = performance.now();
  return (outcome: Pass['outcome'], counts: Partial<Pass> = {}) =>
    onPass({ ...counts, pass, outcome, durationMs: performance.now() - beganAt });
}

/** Maps any error to one of a fixed set of words. */
export function toErrorKind(error: unknown): TroubleKind | 'unexpected' {
  return error instanceof Trouble ? error.kind : 'unexpected';
}

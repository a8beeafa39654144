// What a worker reports of a task that ended: counts only, for metrics and logs.
import { Trouble, type TroubleKind } from '../../domain/trouble.ts';

/** The tasks of a worker. */
export type PassName =
  | 'live'
  | 'recheck'
  | 'witness'
  | 'downloads'
  | 'verify'
  | 'retention'
  | 'erasures'
  | 'prefills'
  | 'prune';

/** What can become of a file in a download run. */
export const fileOutcomes = ['stored', 'linked', 'infected', 'missing', 'rejected', 'given_up', 'failed'] as const;

/** One task that ended. */
export interface Pass {
  readonly pass: PassName;
  readonly outcome: 'done' | 'failed';
  readonly durationMs: number;
  /** Of a task that failed: the kind of its trouble. */
  readonly kind?: TroubleKind | 'unexpected';
  /** List requests, and the applications that they brought. */
  readonly requests?: number;
  readonly added?: number;
  readonly changed?: number;
  /** Bytes of files that were stored. */
  readonly fileBytes?: number;
  readonly files?: Readonly<Partial<Record<(typeof fileOutcomes)[number], number>>>;
}

/** Reports how a task that begins now has ended. */
export function createTeller(
  { onPass }: { readonly onPass: (pass: Pass) => void },
  pass: PassName,
): (outcome: Pass['outcome'], counts?: Partial<Pass>) => void {
  const beganAt = performance.now();
  return (outcome, counts = {}) => onPass({ ...counts, pass, outcome, durationMs: performance.now() - beganAt });
}

/** One of a closed set of words, whatever was thrown. */
export function toKind(error: unknown): TroubleKind | 'unexpected' {
  return error instanceof Trouble ? error.kind : 'unexpected';
}

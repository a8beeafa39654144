// What a worker reports about a finished task: counts only, for metrics and logs.
import { Trouble, type TroubleKind } from '../../domain/trouble.ts';

export type PassName =
  | 'live'
  | 'recheck'
  | 'witness'
  | 'downloads'
  | 'webhooks'
  | 'verify'
  | 'retention'
  | 'erasures'
  | 'prefills'
  | 'prune'
  | 'days'
  | 'extract';

export const fileOutcomes = ['stored', 'linked', 'infected', 'missing', 'rejected', 'given_up', 'failed'] as const;

export interface Pass {
  readonly pass: PassName;
  readonly outcome: 'done' | 'failed';
  readonly durationMs: number;
  readonly kind?: TroubleKind | 'unexpected';
  readonly requests?: number;
  readonly added?: number;
  readonly changed?: number;
  readonly fileBytes?: number;
  readonly files?: Readonly<Partial<Record<(typeof fileOutcomes)[number], number>>>;
}

/** Starts to time a task. The returned function reports its end. */
export function createTeller(
  { onPass }: { readonly onPass: (pass: Pass) => void },
  pass: PassName,
): (outcome: Pass['outcome'], counts?: Partial<Pass>) => void {
  const beganAt = performance.now();
  return (outcome, counts = {}) => onPass({ ...counts, pass, outcome, durationMs: performance.now() - beganAt });
}

/** Maps any error to one of a fixed set of words. */
export function toErrorKind(error: unknown): TroubleKind | 'unexpected' {
  return error instanceof Trouble ? error.kind : 'unexpected';
}

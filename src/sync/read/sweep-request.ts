// What a sweep is asked to do.
import type { Plan } from '../../domain/coverage/coverage.ts';
import type { Known } from '../../domain/coverage/next-question.ts';
import type { KnownAdvertiser } from '../../store/sweeps/advertisers.ts';
import type { SweepPurpose } from '../../store/sweeps/sweeps.ts';
import type { HeldLane } from './held-lane.ts';

export interface SweepRequest {
  readonly lane: HeldLane;
  readonly advertiser: KnownAdvertiser;
  readonly purpose: SweepPurpose;
  readonly plan: Plan;
  /** No interrupted sweep of this range is there: none is looked for. */
  readonly isNew?: boolean | undefined;
  /** Held ids to cut the questions at, for a range that was read before. */
  readonly known?: Known | undefined;
  /** Questions under way at once: while one answer is committed, the next is fetched. */
  readonly parallel: number;
  /** How long an application may take to show at the source after its submission. */
  readonly lagMs: number;
  /** How long the source or the database may be gone. */
  readonly retryForMs: number;
  /** Looked at between two answers: a sweep that pauses keeps its gaps and goes on when it is asked again. */
  readonly shouldPause?: (() => boolean) | undefined;
  /** After this long no further question is asked: what is open is read next time. */
  readonly timeLimitMs?: number | undefined;
}

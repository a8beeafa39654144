// The parameters of a sweep.
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
  /** The caller knows that there is no interrupted sweep of this range, so none is looked up. */
  readonly isNew?: boolean | undefined;
  /** Stored ids at which the questions are split, for a range that was read before. */
  readonly known?: Known | undefined;
  /** Requests in flight at once. With 2, the next answer is fetched while one is committed. */
  readonly parallel: number;
  /** How long an application may take to appear in the source's list after its submission. */
  readonly lagMs: number;
  /** How long the source or the database may be unavailable. */
  readonly retryForMs: number;
  /** Checked between two answers. A paused sweep keeps its open ranges and continues when it is run again. */
  readonly shouldPause?: (() => boolean) | undefined;
  /** After this time no further request is sent; open ranges are read next time. */
  readonly timeLimitMs?: number | undefined;
}

// Maintenance tasks run by the clock, not per advertiser. Of several workers one runs each task: the one that takes its lease. The others
// find the lease taken, or just released. Knows nothing of what a task does.
import type { Store } from '../../store/store.ts';
import { tryHoldLane } from '../read/held-lane.ts';
import type { PassName } from './pass.ts';

export interface MaintenanceTask {
  readonly name: PassName;
  /** Cron text. */
  readonly schedule: string;
  /** Also by this schedule, where no run has come to its end for so long. */
  readonly missed?: { readonly schedule: string; readonly afterMs: number };
  /** `onStep` is called while it makes progress. */
  readonly run: (signal: AbortSignal, onStep: () => void) => Promise<void>;
}

/** Clocks of workers differ by less. */
const sameTickMs = 60_000;

/** Runs the task unless another worker runs it, or has just run it. True when this worker ran it. */
export async function runMaintenance(
  store: Pick<Store, 'leases'>,
  task: MaintenanceTask,
  request: {
    readonly owner: string;
    readonly leaseMs: number;
    readonly signal: AbortSignal;
    readonly onStep: () => void;
    /** A run that ended within this time is not repeated. */
    readonly skipIfDoneWithinMs?: number | undefined;
  },
): Promise<boolean> {
  // No advertiser's name has a space in it.
  const name = `maintenance ${task.name}`;
  const skipIfDoneWithinMs = request.skipIfDoneWithinMs ?? sameTickMs;
  await using lane = await tryHoldLane(store, { ...request, name, lane: 'live', skipIfDoneWithinMs });
  if (lane === null) return false;
  await task.run(lane.signal, request.onStep);
  lane.markDone();
  return true;
}

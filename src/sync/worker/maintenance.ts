// Maintenance tasks run by schedule, not per advertiser. Of several workers, the one that takes the lease of a task runs it. The others
// find the lease taken or just released.
import type { Store } from '../../store/store.ts';
import { type LaneHolder, tryHoldLane } from '../accounts/held-lane.ts';
import type { PassName } from './pass.ts';

export interface MaintenanceTask {
  readonly name: PassName;
  readonly schedule: string;
  /** No run begins within this time after one that has finished: a minute, if not given. The clocks of workers differ by less. */
  readonly restMs?: number;
  /** Calls `onStep` while it makes progress. */
  readonly run: (signal: AbortSignal, onStep: () => void) => Promise<void>;
}

/** Runs the task unless another worker runs it, or has just run it. True when this worker ran it. */
export async function runMaintenance(
  store: Pick<Store, 'leases'>,
  task: MaintenanceTask,
  request: LaneHolder & { readonly onStep: () => void },
): Promise<boolean> {
  // The space keeps it apart from advertiser names, which have none.
  const name = `maintenance ${task.name}`;
  const { restMs: skipIfDoneWithinMs = 60_000 } = task;
  await using lane = await tryHoldLane(store, { ...request, name, lane: 'live', skipIfDoneWithinMs });
  if (lane === null) return false;
  await task.run(lane.signal, request.onStep);
  lane.markDone();
  return true;
}

// Chores: what has to be done by the clock and not per advertiser. Of several workers one does each: whoever takes its lease, which
// others then find taken, or just given back. What a chore does is not known here.
import type { Store } from '../../store/store.ts';
import { tryHoldLane } from '../read/held-lease.ts';
import type { PassName } from './pass.ts';

export interface Chore {
  readonly name: PassName;
  /** Cron text. */
  readonly schedule: string;
  /** `onStep` is called while it moves. */
  readonly run: (signal: AbortSignal, onStep: () => void) => Promise<void>;
}

/** Clocks of workers differ by less. */
const notWithinMs = 60_000;

/** Runs the chore unless another worker does it, or has just done it. True when it was this one's turn. */
export async function runChore(
  store: Store,
  chore: Chore,
  request: {
    readonly owner: string;
    readonly leaseMs: number;
    readonly signal: AbortSignal;
    readonly onStep: () => void;
  },
): Promise<boolean> {
  // No advertiser's name has a space in it.
  const name = `chore ${chore.name}`;
  await using lane = await tryHoldLane(store, { ...request, name, lane: 'live', notWithinMs });
  if (lane === null) return false;
  await chore.run(lane.signal, request.onStep);
  lane.markDone();
  return true;
}

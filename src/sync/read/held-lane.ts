// Holding a lane: a lease that is renewed while the work runs and given back when it ends.
// The renewal stops nothing by itself; it tells the work through a signal, and the fence in every write protects the rows.
import { setTimeout as sleep } from 'node:timers/promises';
import { LaneHeld, LeaseLost } from '../../domain/trouble.ts';
import type { Store } from '../../store/store.ts';
import type { Lane, Lease } from '../../store/sweeps/leases.ts';

export interface HeldLane extends AsyncDisposable {
  readonly lease: Lease;
  /** Aborts when the caller's does, or when the lease has changed hands. */
  readonly signal: AbortSignal;
  /** The work is done: it need not be repeated within a moment. */
  markDone(): void;
}

export interface LaneRequest {
  readonly name: string;
  readonly lane: Lane;
  readonly owner: string;
  readonly leaseMs: number;
  readonly signal: AbortSignal;
}

/** Takes the lane if it is free now and its work was not done just before; null otherwise. */
export async function tryHoldLane(
  store: Pick<Store, 'leases'>,
  request: LaneRequest & { readonly skipIfDoneWithinMs?: number },
): Promise<HeldLane | null> {
  const lease = await store.leases.claim(request);
  return lease && keepLane(store, request, lease);
}

/** Takes the lane. A holder that died is waited out, as long as its lease can last; one that lives on makes this throw LaneHeld. */
export async function holdLane(store: Pick<Store, 'leases'>, request: LaneRequest): Promise<HeldLane> {
  return keepLane(store, request, await claimRetrying(store, request));
}

function keepLane(store: Pick<Store, 'leases'>, request: LaneRequest, lease: Lease): HeldLane {
  const lost = new AbortController();
  let isDone = false;
  const renewal = setInterval(() => {
    store.leases.renew(lease, request.leaseMs).then(
      (held) => {
        if (!held) lost.abort(new LeaseLost(lease.name, lease.lane));
      },
      // A database that does not answer is met by the work itself; the next tick tries again.
      () => {},
    );
  }, request.leaseMs / 3);
  return {
    lease,
    signal: AbortSignal.any([request.signal, lost.signal]),
    markDone: () => {
      isDone = true;
    },
    async [Symbol.asyncDispose]() {
      clearInterval(renewal);
      await store.leases.release(lease, isDone).catch(() => {});
    },
  };
}

async function claimRetrying(store: Pick<Store, 'leases'>, request: LaneRequest): Promise<Lease> {
  let first: { owner: string; remainingMs: number } | undefined;
  for (;;) {
    const lease = await store.leases.claim(request);
    if (lease) return lease;
    const holder = await store.leases.loadHolder(request.name, request.lane);
    if (!holder) {
      // Free since, or lapsed and still held by a transaction of its last holder, which the server ends.
      await sleep(50, undefined, { signal: request.signal });
      continue;
    }
    // A lease that grows is being renewed: its holder lives.
    if (first && (holder.owner !== first.owner || holder.remainingMs > first.remainingMs)) {
      throw new LaneHeld(
        `The ${request.lane} lane of ${request.name} is held by ${holder.owner}, which is alive. Nothing was read. ` +
          'Let it finish, or stop it, then run this again.',
      );
    }
    first = holder;
    await sleep(Math.min(holder.remainingMs, request.leaseMs / 3) + 50, undefined, { signal: request.signal });
  }
}

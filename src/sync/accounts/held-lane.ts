// Holds a lane: claims its lease, renews it while the work runs, and releases it at the end. When the lease is lost, only the signal tells
// the work to stop; the fence in the transaction that commits a page protects the rows.
import { setTimeout as sleep } from 'node:timers/promises';
import { LaneHeld, LeaseLost, Trouble } from '../../domain/trouble.ts';
import type { KnownAdvertiser } from '../../store/accounts/advertisers.ts';
import type { Lane, Lease } from '../../store/accounts/leases.ts';
import type { Store } from '../../store/store.ts';

export interface HeldLane extends AsyncDisposable {
  readonly lease: Lease;
  /** Aborts when the caller's signal does, or when another process has taken the lease. */
  readonly signal: AbortSignal;
  /** Records at release that the work is done, so that another process can skip it for a while. */
  markDone(): void;
}

/** The process that takes a lane, and how long the lane stays its own if it dies. */
export interface LaneHolder {
  readonly owner: string;
  readonly leaseMs: number;
  readonly signal: AbortSignal;
}

export interface LaneRequest extends LaneHolder {
  readonly name: string;
  readonly lane: Lane;
}

/** Takes the lane if it is free and its work was not done within `skipIfDoneWithinMs`; null otherwise. */
export async function tryHoldLane(
  store: Pick<Store, 'leases'>,
  request: LaneRequest & { readonly skipIfDoneWithinMs?: number },
): Promise<HeldLane | null> {
  const lease = await store.leases.claim(request);
  return lease && keepLane(store, request, lease);
}

/** Takes the lane. If the holder has died, waits until its lease expires. If the holder is alive, throws LaneHeld. */
export async function holdLane(store: Pick<Store, 'leases'>, request: LaneRequest): Promise<HeldLane> {
  let first: { owner: string; expiresAt: Date } | undefined;
  for (;;) {
    const lease = await store.leases.claim(request);
    if (lease) return keepLane(store, request, lease);
    const holder = await store.leases.loadHolder(request.name, request.lane);
    if (!holder) {
      // The lease was released meanwhile, or it expired and a transaction of its last holder still locks the row until the server ends it.
      await sleep(50, undefined, { signal: request.signal });
      continue;
    }
    // A lease whose end moves is being renewed, so its holder is alive.
    if (first && (holder.owner !== first.owner || holder.expiresAt > first.expiresAt)) {
      throw new LaneHeld(
        'local',
        `The ${request.lane} lane of ${request.name} is held by ${holder.owner}, which is alive. Nothing was read.`,
      );
    }
    first = holder;
    await sleep(Math.min(holder.remainingMs, request.leaseMs / 3) + 50, undefined, { signal: request.signal });
  }
}

function keepLane(store: Pick<Store, 'leases'>, request: LaneRequest, lease: Lease): HeldLane {
  const lost = new AbortController();
  let isDone = false;
  const renewal = setInterval(() => {
    store.leases.renewLease(lease, request.leaseMs).then(
      (held) => {
        if (!held) lost.abort(new LeaseLost(lease.name, lease.lane));
      },
      // If the database does not answer, the work itself fails and reports it. The next tick tries again.
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
      await store.leases.release({ ...lease, done: isDone }).catch(() => {});
    },
  };
}

/** Throws while the advertiser is halted because the source answered with another advertiser's data. */
export function requireIdentity({ name, halt }: KnownAdvertiser): void {
  if (halt?.kind !== 'mismatch') return;
  throw new Trouble('mismatch', `${name} is halted: ${halt.reason} Run \`intake unhalt\` once the cause is gone.`);
}

/** Reads an account in its lane. A refused credential halts the account, and an accepted one ends such a halt. */
export async function haltIfRefused<T>(
  { advertisers }: Pick<Store, 'advertisers'>,
  { advertiser, lane }: { readonly advertiser: KnownAdvertiser; readonly lane: HeldLane },
  read: () => Promise<T>,
): Promise<T> {
  try {
    const result = await read();
    if (advertiser.halt !== null) await advertisers.unhaltAdvertiser(advertiser.name, 'refused');
    return result;
  } catch (error) {
    // Once the lane is lost, another process may hold it, and this refusal says nothing about the account's state.
    if (error instanceof Trouble && error.kind === 'refused' && !lane.signal.aborted) {
      await advertisers.haltAdvertiser(advertiser.name, 'refused', error.message);
    }
    throw error;
  }
}

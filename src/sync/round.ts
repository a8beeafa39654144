// A round: everything `intake sync` does for one advertiser. What an interrupted reading left open is read first, then what is new.
// The first round reads everything; later ones read on from the cursor, less the lag.
import type { Plan } from '../domain/coverage.ts';
import { Trouble } from '../domain/trouble.ts';
import type { Advertiser } from '../store/advertisers.ts';
import { type HeldLane, holdLane } from './lane.ts';
import { type SweepDeps, type SweepSummary, sweep } from './sweep.ts';

export interface RoundRequest {
  readonly name: string;
  /** Null: learned from the first answer. */
  readonly advertiserId: bigint | null;
  readonly owner: string;
  readonly leaseMs: number;
  readonly lagMs: number;
  /** Where the first round begins, in milliseconds since the epoch; null is everything. */
  readonly startAt: number | null;
  /** Read everything again. */
  readonly recheck: boolean;
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

/** Reads what is new (or everything), holding the advertiser's live lane; the last sweep is the newest. A refused credential halts the advertiser. */
export async function syncRound(deps: SweepDeps, request: RoundRequest): Promise<SweepSummary[]> {
  const { store } = deps;
  const advertiser = await store.ensureAdvertiser(request.name, request.advertiserId);
  if (advertiser.halt?.kind === 'mismatch') {
    throw new Trouble(
      'mismatch',
      `${request.name} is halted: ${advertiser.halt.reason} Run \`intake unhalt\` once the cause is gone.`,
    );
  }
  await using lane = await holdLane(store, { ...request, lane: 'live' });
  try {
    const sweeps = await readAll(deps, request, lane, advertiser);
    await store.unhaltAdvertiser(request.name, 'refused');
    const advertiserId = sweeps.at(-1)?.advertiser.advertiserId ?? null;
    if (advertiserId !== null) await store.confirmCursors([advertiserId]);
    return sweeps;
  } catch (error) {
    if (error instanceof Trouble && error.kind === 'refused') {
      await store.haltAdvertiser(request.name, 'refused', error.message);
    }
    throw error;
  }
}

async function readAll(
  deps: SweepDeps,
  request: RoundRequest,
  lane: HeldLane,
  first: Advertiser,
): Promise<SweepSummary[]> {
  const sweeps: SweepSummary[] = [];
  let advertiser = first;
  const read = async (purpose: 'live' | 'recheck', plan: Plan) => {
    const { patienceMs, lagMs } = request;
    const known = purpose === 'recheck' ? await loadKnown(deps, advertiser, plan) : undefined;
    const heldBefore = known?.held ?? 0;
    const summary = await sweep(deps, {
      ...{ lane, advertiser, purpose, known, lagMs, patienceMs },
      plan: { ...plan, heldBefore },
      parallel: purpose === 'recheck' ? 2 : 1,
    });
    advertiser = summary.advertiser;
    sweeps.push(summary);
  };

  const { unfinished, pollFrom, learned } = await deps.store.loadReading(first.advertiserId, request.lagMs);
  // What a stopped reading left open comes first: until it is closed, the cursor cannot pass it.
  for (const { purpose, low, high, axis } of unfinished) {
    await read(purpose, { axis, from: low, to: high, rigor: purpose === 'live' ? 'poll' : 'proof' });
  }
  const isReadJustNow = unfinished.some((one) => one.purpose === 'recheck');
  if (pollFrom === null || request.recheck) {
    if (!isReadJustNow) await read('recheck', toFirstPlan(request));
  } else {
    await read('live', { from: pollFrom, rigor: 'poll', ...(learned && { capacity: learned.capacity }) });
  }
  return sweeps;
}

/** The ids already held are where a second reading cuts its questions: nearly every one then closes at once. */
export async function loadKnown(deps: SweepDeps, { advertiserId }: Advertiser, plan: Plan) {
  if (advertiserId === null || plan.axis === 'date') return undefined;
  return await deps.store.loadHeld(advertiserId, plan.from ?? 1n, plan.to ?? null);
}

/** Everything, or from a date on; the latter goes by the date filter, since no id is known yet. */
function toFirstPlan({ startAt, recheck }: RoundRequest) {
  if (startAt === null || recheck) return { from: 1n, rigor: 'proof' } as const;
  return { axis: 'date', from: BigInt(Math.floor(startAt / 1_000)), rigor: 'proof' } as const;
}

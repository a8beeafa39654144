// What `intake sync` and the worker read of an account: new applications, earlier ones again, and ids that could not be read.
import { noneShown } from '../../domain/coverage/certificate.ts';
import {
  coveredOf,
  firstPosition,
  type IdRange,
  isSingle,
  lastPosition,
  rangeOf,
  wholeAxis,
} from '../../domain/coverage/position.ts';
import { aloneQuestion } from '../../domain/coverage/question.ts';
import { NotBelieved } from '../../domain/trouble.ts';
import type { SyncState } from '../../store/sweeps/continue-sweep.ts';
import { isTemporary } from '../retry.ts';
import { commitAnswer, createAsker, toReadPage } from './answers.ts';
import { readDates, readIds } from './read-range.ts';
import { loadState, type ReadContext, type SweepDeps, type SweepRequest, type SweepSummary } from './sweep.ts';

/**
 * Reads on from where the cursor was one lag ago; the first time, from `startAt`. The poll begins at an application that must still be
 * there. Throws if the source shows neither that one nor older ones: then it is in trouble, although it answers.
 */
export async function readNew(deps: SweepDeps, context: ReadContext, state?: SyncState): Promise<SweepSummary> {
  const { pollFrom, pages, unfinished, lifelines, unreadable, accepted } = state ?? (await loadState(deps, context));
  if (pollFrom === null) return await readFirst(deps, context);
  const range = { from: pollFrom, to: lastPosition };
  const plan = { ...range, rigor: 'poll', lifelines, unreadable, accepted, learned: pages } as const;
  const isNew = !unfinished.some((one) => one.purpose === 'live' && one.low === pollFrom);
  const summary = await readIds(deps, { ...context, purpose: 'live', parallel: 1, isNew }, plan);
  if (summary.reason !== noneShown) return summary;
  const what = `The source answers, but for ${context.advertiser.name} it shows nothing: ${noneShown}.`;
  throw new NotBelieved('unreachable', what, { at: 'source' });
}

/** Everything, or from a date on. The latter uses the date filter, because no id is known yet. */
async function readFirst(deps: SweepDeps, context: ReadContext): Promise<SweepSummary> {
  const { startAt = null } = context;
  if (startAt === null) return await readAgain(deps, context, wholeAxis);
  const dates = { low: BigInt(Math.floor(startAt / 1_000)), high: null };
  const byDates = await readDates(deps, { ...context, purpose: 'recheck' }, dates);
  const isEnough = byDates.certificate !== 'unproven' || byDates.stopped;
  return isEnough ? byDates : await readAgain(deps, context, wholeAxis);
}

/** Continues unfinished sweeps first: no poll requests again what they have not read. After one that stops early, nothing is read. */
export async function readUnfinishedFirst(
  deps: SweepDeps,
  context: ReadContext,
  then: 'new' | 'everything' | 'nothing',
): Promise<SweepSummary[]> {
  const { unfinished, unreadable, accepted, due } = await loadState(deps, context);
  const sweeps: SweepSummary[] = [];
  for (const { low, high, axis, purpose } of unfinished) {
    const request = { ...context, purpose };
    const range = rangeOf({ low, high });
    if (axis === 'date') sweeps.push(await readDates(deps, request, { low, high }));
    else if (purpose === 'recheck') sweeps.push(await readAgain(deps, request, range));
    else {
      const plan = { ...range, rigor: 'poll', unreadable, accepted } as const;
      sweeps.push(await readIds(deps, { ...request, parallel: 1 }, plan));
    }
    if (sweeps.at(-1)?.stopped) return sweeps;
  }
  const isReadJustNow = unfinished.some(isWholeRecheck);
  if (then === 'new') sweeps.push(await readNew(deps, context));
  if (then === 'everything' && !isReadJustNow) sweeps.push(await readAgain(deps, context, wholeAxis));
  await readUnreadable(deps, context, due);
  return sweeps;
}

/** Records that the list was read up to its newest application, if it was. Other workers skip their poll for a while. */
export async function confirmRead({ store }: SweepDeps, context: ReadContext, sweeps: readonly SweepSummary[]) {
  const { advertiserId } = context.advertiser;
  const last = sweeps.at(-1);
  if (advertiserId === null || last === undefined || last.stopped || last.openRanges > 0) return;
  await store.sweeps.confirmCursor({ advertiserId, at: last.startedAt });
  context.lane.markDone();
}

export function isWholeRecheck({ purpose, axis, low, high }: SyncState['unfinished'][number]): boolean {
  return purpose === 'recheck' && axis === 'id' && low <= firstPosition && high === null;
}

/** Reads a range up to a proof. Ids that are already stored split the range into questions that close it at once. */
export async function readToProof(deps: SweepDeps, request: SweepRequest, range: IdRange): Promise<SweepSummary> {
  const { advertiserId } = request.advertiser;
  const { pages, latenessMs, accepted, ...known } = await loadState(deps, request);
  const listedBefore = await deps.store.sweeps.countListed(advertiserId, coveredOf(range));
  // A range that is one such id is asked for its sake.
  const unreadable = isSingle(range) ? [] : known.unreadable;
  const plan = { ...range, listedBefore, longestBefore: pages?.longest ?? 0, unreadable, accepted };
  return await readIds(deps, { ...request, lagMs: Math.max(request.lagMs, latenessMs) }, plan);
}

/**
 * Reads a range again, or for the first time. If the id filters hide applications, or may do so, the date filters are tried for the whole
 * list, which the source may honour. What they show is stored. The certificate stays that of the sweep by ids.
 */
export async function readAgain(deps: SweepDeps, context: ReadContext, range: IdRange): Promise<SweepSummary> {
  const byIds = await readToProof(deps, { ...context, purpose: 'recheck', parallel: 2 }, range);
  if (!byIds.tryDates || byIds.stopped || range.from !== firstPosition) return byIds;
  await readDates(deps, { ...context, purpose: 'recheck' }, { low: 0n, high: null });
  return byIds;
}

/** Ids that are asked for at once. The others wait for the next time. */
const mostAtOnce = 10;

/** Asks alone for ids that could not be read. One that is served now is stored, if it exists; the others wait twice as long as before. */
async function readUnreadable(deps: SweepDeps, context: ReadContext, ids: SyncState['due']): Promise<void> {
  const { store } = deps;
  const { advertiserId } = context.advertiser;
  if (advertiserId === null) return;
  const askSource = createAsker(deps, context.advertiser, context.lane.signal);
  for (const id of ids.slice(0, mostAtOnce)) {
    if (context.hasToStop?.()) return;
    const received = await askSource(aloneQuestion(id)).catch((error: unknown) => {
      if (isTemporary(error)) return null;
      throw error;
    });
    // Nothing is served now. The sweeps have ended, and these ids stay due.
    if (received === null) return;
    const { answer } = received;
    if (answer.kind !== 'page') {
      const reason = answer.kind === 'unanswered' ? answer.why : 'the source refuses the question';
      await store.sweeps.saveUnreadable(advertiserId, [{ id, reason }]);
      continue;
    }
    const page = toReadPage(context.lane, advertiserId, null, received);
    await commitAnswer(deps, page, 'a question about an unreadable id');
    await store.sweeps.resolveUnreadable(advertiserId, id);
  }
}

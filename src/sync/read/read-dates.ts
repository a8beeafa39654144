// Reads a range of submission dates, window by window, and stores what it is shown. It proves nothing and can contradict a certificate.
// An interrupted one continues with the windows that are left.

import type { Covered } from '../../domain/coverage/covered.ts';
import { decode, encode } from '../../domain/coverage/state.ts';
import { askDates, beginDates, type DateProgress, learnDates } from '../../domain/dates.ts';
import { type RangeState, type SweepDeps, type SweepRequest, type SweepSummary, sweep } from './sweep.ts';

/** Reads the dates to their end. In seconds since 1970, both included; `high` null is up to the newest. */
export async function readDates(
  deps: SweepDeps,
  request: Omit<SweepRequest, 'parallel'>,
  { low, high }: Covered,
): Promise<SweepSummary> {
  const isLive = request.lane.lease.lane === 'live' && high === null;
  const toRangeState = (state: DateProgress): RangeState => ({
    found: state.found,
    share: null,
    ask: async () => askDates(state) ?? conclude(state),
    open: async () => [],
    learn({ answer }) {
      const learned = learnDates(state, answer);
      const ended = askDates(learned) === null ? conclude(learned) : null;
      const cursor = isLive && ended?.certificate === 'assumed' ? learned.highest : null;
      const nothing = { dropped: [], added: [], lacked: [], unreadable: [], evidence: [] };
      return { ...nothing, next: toRangeState(learned), facts: encode(learned), cursor, ended };
    },
  });
  return await sweep(
    deps,
    { ...request, parallel: 1 },
    {
      range: { axis: 'date', low, high },
      // A recheck by date follows a sweep by ids that has already ended with a doubt.
      asker: request.purpose === 'backfill' ? 'a backfill by date' : null,
      begin: (_, startedAt) => toRangeState(beginDates(low, high, BigInt(Math.floor(startedAt.getTime() / 1_000)))),
      decode: ({ facts }) => toRangeState(decode<DateProgress>(facts)),
    },
  );
}

const readByDate = 'read by date; only a sweep by ids can prove that nothing is missing';

function conclude({ trouble }: DateProgress) {
  const nothing = { openRanges: 0, absent: 0, tryDates: false, pages: null, completeThrough: null };
  const read = { certificate: 'assumed', risk: 'harmless', reason: readByDate } as const;
  const worth = trouble === null ? read : ({ certificate: 'unproven', risk: 'doubt', reason: trouble } as const);
  return { kind: 'done', ...nothing, ...worth } as const;
}

// Reads a range of ids or of dates: domain/ decides what to ask and what an answer proves; here its state becomes rows, and back.

import type { SweepEnd } from '../../domain/coverage/certificate.ts';
import { ask, begin, type KnownIds, renew, shareRead } from '../../domain/coverage/coverage.ts';
import { learn } from '../../domain/coverage/learn.ts';
import { type Covered, coveredOf, firstPosition, lowerBound, wholeAxis } from '../../domain/coverage/position.ts';
import type { Question } from '../../domain/coverage/question.ts';
import type { Facts, OpenRange, Plan, State } from '../../domain/coverage/state.ts';
import { decode, encode, isUnreadable } from '../../domain/coverage/state.ts';
import { askDates, beginDates, type DateProgress, learnDates } from '../../domain/dates.ts';
import { toAnswerBody, toEndBody, toSweepBody } from '../../domain/evidence/record.ts';
import { type RangeState, type SweepDeps, type SweepRequest, type SweepSummary, sweep } from './sweep.ts';

export async function readIds(deps: SweepDeps, request: SweepRequest, plan: Partial<Plan>): Promise<SweepSummary> {
  const { store } = deps;
  const { lagMs, lane } = request;
  const range = coveredOf({ ...wholeAxis, ...plan });
  /** Stored ids split what was read before; they are loaded as the sweep comes to them. */
  let known: KnownIds = { from: firstPosition, ids: [], isAll: false };
  const askNext = (state: State, inFlight: readonly Question[]) =>
    ask(state, inFlight, state.facts.listedBefore > 0 && state.facts.rigor === 'proof' ? known : undefined);
  const toRangeState = (state: State): RangeState => ({
    found: state.facts.found,
    share: shareRead(state),
    async ask(inFlight) {
      for (;;) {
        const next = askNext(state, inFlight);
        if (!('kind' in next) || next.kind !== 'load') return next;
        known = await store.sweeps.loadKnownIds(request.advertiser.advertiserId, next.from);
      }
    },
    async open(advertiserId, begun) {
      if (state.facts.rigor === 'poll') return [];
      return [toSweepBody(advertiserId, begun, state, await store.evidence.loadCertificates(advertiserId))];
    },
    learn({ question, answer, sent }, others, isRecorded) {
      const learned = learn(state, question, answer);
      const { facts, open } = learned.state;
      const next = askNext(learned.state, others);
      const done = 'kind' in next && next.kind === 'done' ? next : null;
      const old = toStored(isRecorded ? state.open : []);
      const now = toStored(open);
      const isProof = facts.rigor === 'proof';
      return {
        next: toRangeState(learned.state),
        facts: encode(facts),
        dropped: [...old.difference(now)].map(({ from }) => from),
        added: [...now.difference(old)].map((one) => ({
          ...coveredOf(one),
          state: one.stuck === null ? 'open' : 'stuck',
          evidence: encode(one),
        })),
        lacked: learned.lacked,
        unreadable: [...new Set(open).difference(new Set(state.open))]
          .filter(isUnreadable)
          .map(({ from, stuck }) => ({ id: from, reason: stuck })),
        cursor: lane.lease.lane === 'live' && range.high === null ? toReadThrough(learned.state, done) : null,
        ended: done,
        evidence: isProof ? [toAnswerBody(sent, question, answer, learned), ...(done ? [toEndBody(done)] : [])] : [],
      };
    },
  });
  return await sweep(deps, request, {
    range: { axis: 'id', ...range },
    asker: request.purpose === 'live' ? 'a poll' : 'a sweep by ids',
    begin(sweepId, startedAt) {
      const recentFrom = BigInt(Math.floor((startedAt.getTime() - lagMs) / 1_000));
      return toRangeState(begin({ ...plan, recentFrom, seed: Number(sweepId % 4_294_967_296n) }));
    },
    decode({ facts, ranges, isOld }) {
      const state = { facts: decode<Facts>(facts), open: ranges.map((text) => decode<OpenRange>(text)) };
      return toRangeState(isOld ? renew(state) : state);
    },
  });
}

/** The open ranges as rows, by their lowest id. Neighbours may share one id: of two ranges that begin with it, one is part of the other. */
function toStored(open: readonly OpenRange[]): Set<OpenRange> {
  const widest = new Map<bigint, OpenRange>();
  for (const range of open) if ((widest.get(range.from)?.to ?? 0n) < range.to) widest.set(range.from, range);
  return new Set(widest.values());
}

/** The id up to which everything was read: below the lowest open range. In a walk it is known only at the end, and with a certificate. */
function toReadThrough({ facts, open }: State, done: Pick<SweepEnd, 'certificate'> | null): bigint | null {
  if (facts.walk !== null) return done && done.certificate !== 'unproven' ? facts.highest : null;
  const lowest = open.find((range) => !isUnreadable(range));
  return lowest === undefined ? facts.highest : lowerBound(lowest) || null;
}

/** Reads submission dates in seconds, both included; `high` null is up to the newest. Proves nothing and can contradict a certificate. */
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
  const one = { ...request, parallel: 1 };
  return await sweep(deps, one, {
    range: { axis: 'date', low, high },
    // A recheck by date follows a sweep by ids that has already ended with a doubt.
    asker: request.purpose === 'backfill' ? 'a backfill by date' : null,
    begin: (_, startedAt) => toRangeState(beginDates(low, high, BigInt(Math.floor(startedAt.getTime() / 1_000)))),
    decode: ({ facts }) => toRangeState(decode<DateProgress>(facts)),
  });
}

const readByDate = 'read by date; only a sweep by ids can prove that nothing is missing';

function conclude({ trouble }: DateProgress) {
  const nothing = { openRanges: 0, absent: 0, tryDates: false, pages: null, completeThrough: null };
  const read = { certificate: 'assumed', risk: 'harmless', reason: readByDate } as const;
  const worth = trouble === null ? read : ({ certificate: 'unproven', risk: 'doubt', reason: trouble } as const);
  return { kind: 'done', ...nothing, ...worth } as const;
}

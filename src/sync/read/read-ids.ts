// Reads a range of ids. domain/coverage decides what to ask and what an answer proves; here its state becomes rows, and rows become its
// state.
import { ask, type KnownIds } from '../../domain/coverage/ask.ts';
import type { SweepEnd } from '../../domain/coverage/certificate.ts';
import { begin, renew, shareRead } from '../../domain/coverage/coverage.ts';
import { coveredOf } from '../../domain/coverage/covered.ts';
import { learn } from '../../domain/coverage/learn.ts';
import { firstPosition, lowerBound, wholeAxis } from '../../domain/coverage/position.ts';
import type { Question } from '../../domain/coverage/question.ts';
import type { Facts, OpenRange, Plan, State } from '../../domain/coverage/state.ts';
import { decode, encode, isUnreadable } from '../../domain/coverage/state.ts';
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
        known = await store.applications.loadKnownIds(request.advertiser.advertiserId, next.from);
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
          .map(({ from, stuck }) => ({ id: from, reason: stuck ?? '' })),
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

/**
 * The id up to which everything was read: just below the lowest open range, or the highest id if none is open. In a walk it is known only at
 * the end, and only with a certificate.
 */
function toReadThrough({ facts, open }: State, done: Pick<SweepEnd, 'certificate'> | null): bigint | null {
  if (facts.walk !== null) return done && done.certificate !== 'unproven' ? facts.highest : null;
  const lowest = open.find((range) => !isUnreadable(range));
  return lowest === undefined ? facts.highest : lowerBound(lowest) || null;
}

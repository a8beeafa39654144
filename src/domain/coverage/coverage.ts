// Reads a list whose order, paging and filters are unknown without missing an application. A pure state machine without clock, network or
// database: `ask` gives the next question, `learn` applies its answer. docs/coverage.md has the rules and the proof.

import { gapsBetween, idsInside, rising, toRange, wholeAxis, widthOf } from './position.ts';
import { type Facts, knownAsUnreadable, openRange, type Plan, type State } from './state.ts';

const nothing = { rows: 0, bytes: 0 };

/** Begins a sweep. The default is a proof of the whole list of an account of which nothing is stored. */
export function begin({ unreadable = [], learned, ...plan }: Partial<Plan>): State {
  const facts: Facts = {
    ...wholeAxis,
    rigor: 'proof',
    listedBefore: 0,
    longestBefore: 0,
    recentFrom: null,
    lifelines: [],
    accepted: [],
    seed: 1,
    ...plan,
    requests: 0,
    found: 0,
    recent: 0,
    pages: { after: learned?.after ?? nothing, both: learned?.both ?? nothing },
    largestRow: learned?.largestRow ?? 0,
    rising: learned?.order === 'ascending' ? 10 : 0,
    falling: learned?.order === 'descending' ? 10 : 0,
    reach: { after: false, before: false, both: false },
    lowest: null,
    highest: null,
    earliestAt: null,
    latestAt: null,
    reasons: [],
    absent: 0,
    vanished: 0,
    goneSample: [],
    gaps: [],
    samples: [],
    closedRanges: 0,
    witnesses: null,
    walk: null,
  };
  const leftOut = idsInside(facts, unreadable);
  const read = gapsBetween(facts, leftOut).map((range) => openRange(range));
  const stuck = leftOut.map((id) => ({ ...openRange({ from: id, to: id }), stuck: knownAsUnreadable }));
  const open = [...read, ...stuck].sort((a, b) => rising(a.from, b.from));
  // Without anything to read there is nothing to cross-check.
  return { facts: read.length > 0 ? facts : { ...facts, witnesses: [] }, open };
}

/** A sweep that goes on after so long a pause that the source may have changed: it measures pages again. */
export function renew({ facts, open }: State): State {
  const forgotten = open.map((range) => ({ ...openRange(range), stuck: range.stuck }));
  return { facts: { ...facts, pages: { after: nothing, both: nothing }, largestRow: 0 }, open: forgotten };
}

/** The share of the ids up to the highest known one that are closed (0 to 1); null while none is known, and in a walk. */
export function shareRead({ facts, open }: State): number | null {
  const top = facts.to === wholeAxis.to ? facts.highest : facts.to;
  const all = top === null || facts.walk !== null ? null : toRange(facts.from, top);
  if (all === null) return null;
  const unread = open.map((range) => toRange(range.from, range.to < all.to ? range.to : all.to));
  const width = unread.reduce((sum, range) => sum + (range === null ? 0n : widthOf(range)), 0n);
  return 1 - Number(width) / Number(widthOf(all));
}

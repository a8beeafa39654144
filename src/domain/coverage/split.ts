// Splits a range that an answer did not close (R6 of docs/coverage.md). It splits at ids that the answer showed, and nearly every part keeps
// one of them, so that an empty answer to it is a contradiction. Where that cannot have room (small pages, a heavy id), parts lie between
// the ids.

import {
  contains,
  gapsBetween,
  type IdRange,
  idsInside,
  isSingle,
  middleOf,
  type Position,
  splitAfter,
  upperBound,
} from './position.ts';
import type { ShapedPage } from './question.ts';
import { partRows } from './room.ts';
import { type Facts, type OpenRange, type Order, openRange, orderOf } from './state.ts';

/** Most cuts of one range, so that an answer changes few rows. A choice: it costs requests only. */
const mostCuts = 16;

/** Parts of a range, with what the page showed of each, and which bound of the question moves. */
export function openParts(
  range: IdRange,
  parts: readonly IdRange[],
  shown: readonly Position[],
  page: ShapedPage,
): OpenRange[] {
  return parts.map((part) => {
    const [isLower, isUpper] = [part.from === range.from, part.to === range.to];
    const moved = isLower === isUpper ? 'both' : isLower ? 'before' : 'after';
    return openRange(part, { ...page, inside: shown.filter((id) => contains(part, id)).length, moved });
  });
}

/** The parts of a range after a page that showed these ids (rising, inside it). `isKnown`: nothing new, nothing lacking. */
export function cutRange(facts: Facts, range: IdRange, shown: readonly Position[], isKnown: boolean): IdRange[] {
  const order = isKnown ? 'mixed' : orderOf(facts);
  const shapes = (['after', 'both'] as const).filter(
    (shape) =>
      facts.pages[shape].rows > 0 && (shape === 'both' || upperBound(range) === null || facts.pages.both.rows === 0),
  );
  const size = Math.min(...shapes.map((shape) => partRows(facts, shape)));
  if (size === 0) return cutBetween(range, shown, order);
  // The first page with both bounds shows how much such a page holds, so it should be full.
  if (facts.pages.both.rows === 0 && range.to > (shown.at(-1) as Position))
    return cutAt(range, [shown.at(-1) as Position], order);
  const parts = cutAt(range, chooseCuts(shown, size, order, isKnown), order);
  if (parts.length > 1) return parts;
  const halves = cutAt(range, chooseCuts(shown, size, 'mixed', isKnown), 'mixed');
  // A known id that fills so much of a page that its answer has no room: parts lie around it.
  return halves.length > 1 || !isKnown ? halves : cutBetween(range, shown, order);
}

/** Where pages are not measurable, only empty answers close: parts lie between the ids shown, from the side where the list begins. */
function cutBetween(range: IdRange, shown: readonly Position[], order: Order): IdRange[] {
  const ids = order === 'descending' ? shown.slice(-mostCuts) : shown.slice(0, mostCuts);
  return gapsBetween(range, ids);
}

/**
 * The ids at which a range is cut. Known content is cut evenly into parts that have room. A sorted page gives as many parts of that size as
 * it can fill, from the side where the list begins; the rest of the page is read again with what lies beyond it. In a list without order
 * more may be hidden anywhere: it is cut in two.
 */
function chooseCuts(shown: readonly Position[], size: number, order: Order, isKnown: boolean): Position[] {
  const count = shown.length;
  const at = (index: number) => shown[Math.max(0, Math.min(count - 1, index))] as Position;
  if (order === 'mixed') {
    const parts = isKnown ? Math.max(2, Math.min(mostCuts, Math.ceil(count / size))) : 2;
    return [...new Set(Array.from({ length: parts - 1 }, (_, nth) => at(Math.floor(((nth + 1) * count) / parts) - 1)))];
  }
  const parts = Math.max(1, Math.min(mostCuts, Math.floor(count / size)));
  const step = Math.min(size, Math.ceil(count / parts));
  const steps = Array.from({ length: parts }, (_, nth) => (nth + 1) * step);
  const cuts =
    order === 'ascending' ? steps.map((many) => at(many - 1)) : steps.map((many) => at(count - many)).reverse();
  return [...new Set(cuts)];
}

/** Cuts a range after these ids. What lies beyond the far end of a sorted page keeps the outermost id, which its answer must show. */
function cutAt(range: IdRange, cuts: readonly Position[], order: Order): IdRange[] {
  const far = order === 'ascending' ? cuts.at(-1) : order === 'descending' ? cuts[0] : null;
  const parts: IdRange[] = [];
  let rest: IdRange | null = range;
  for (const cut of cuts) {
    if (rest === null) break;
    const [part, after] = splitAfter(rest, cut);
    if (part !== null) parts.push(part);
    // Beginning with the outermost id again must leave a smaller range.
    rest = after !== null && cut === far && cut > range.from ? { from: cut, to: rest.to } : after;
  }
  return rest === null ? parts : [...parts, rest];
}

/**
 * R7: splits a range whose question was not answered, at the middle of the ids that are known to be in it, else at the middle of the range.
 */
export function splitUnanswered(range: IdRange, ids: readonly bigint[], why: string): OpenRange[] {
  if (isSingle(range)) return [{ ...openRange(range), stuck: why }];
  const inside = idsInside(range, ids).filter((id) => id < range.to);
  const cut = inside[Math.floor(inside.length / 2)] ?? middleOf(range);
  return splitAfter(range, cut).flatMap((part) => (part ? openRange(part) : []));
}

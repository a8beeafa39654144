// Decides what an answer proves: its range is closed, or is asked again in parts, or the source does not honour its filters. R1 to R9 are the
// rules of docs/coverage.md, each named where it is applied.

import { mostGone, noteClosed, planWitnesses } from './certificate.ts';
import {
  contains,
  gapsBetween,
  type IdRange,
  idsInside,
  isSingle,
  middleOf,
  type Position,
  rising,
  splitAfter,
  toRange,
  upperBound,
  without,
} from './position.ts';
import {
  type Answer,
  isSameQuestion,
  isStray,
  type LackingId,
  mostLacking,
  type PageAnswer,
  type Question,
  recentIds,
  type ShapedPage,
  shownInside,
  sizeOf,
} from './question.ts';
import {
  type Draft,
  type Facts,
  hasRoom,
  indexOfOpen,
  isFarFromFull,
  type Learned,
  type OpenRange,
  type Order,
  openRange,
  orderOf,
  partRows,
  type Reason,
  type State,
  smallPage,
  unreadableOnly,
  type Wider,
} from './state.ts';
import { beginWalk, learnWalk } from './walk.ts';

export function learn(state: State, question: Question, answer: Answer): Learned {
  const draft: Draft = { facts: { ...state.facts, requests: state.facts.requests + 1 }, open: state.open };
  const { facts } = draft;
  // Answers that were in flight when a walk began say nothing more.
  if (facts.walk !== null && question.purpose !== 'walk') return { state: draft, ...noEffect };
  if (answer.kind === 'page') {
    notePage(facts, question, answer);
    noteHidden(draft, question, answer);
  }
  const effect = question.purpose === 'range' ? learnRange(draft, question, answer) : noEffect;
  if (question.purpose === 'walk') facts.walk = facts.walk && learnWalk(facts, facts.walk, answer);
  if (question.purpose === 'witness') learnWitness(draft, question, answer);
  const isRead = draft.open.every(({ stuck }) => stuck !== null);
  if (facts.witnesses === null && facts.walk === null && isRead) facts.witnesses = planWitnesses(draft);
  return { state: draft, ...effect };
}

/** What every page tells, whatever it was asked for (R8); and how much a page holds (R1). */
function notePage(facts: Draft['facts'], question: Question, page: PageAnswer): void {
  if (page.echo === 'differs') addReason(facts, 'fault', 'the source repeats other filters than were sent');
  if (page.echo === 'absent') addReason(facts, 'harmless', 'the source does not repeat the filters that were sent');
  if (page.cached) addReason(facts, 'doubt', 'answers came from a cache, although none was asked for');
  if (page.weakEmpty) addReason(facts, 'harmless', 'the source says "nothing" without an empty list');
  if (question.covers === null) return;
  let last: bigint | null = null;
  for (const { id, at, bytes } of page.rows) {
    if (last !== null && id > last) facts.rising++;
    if (last !== null && id < last) facts.falling++;
    last = id;
    if (!contains(facts, id)) continue;
    if (bytes > facts.largestRow) facts.largestRow = bytes;
    if (facts.lowest === null || id < facts.lowest) facts.lowest = id;
    if (facts.highest === null || id > facts.highest) facts.highest = id;
    if (at !== null && (facts.earliestAt === null || at < facts.earliestAt)) facts.earliestAt = at;
    if (at !== null && (facts.latestAt === null || at > facts.latestAt)) facts.latestAt = at;
  }
  if (question.purpose !== 'range') return;
  // Rows that come twice are one application: a page that was cut off may have as few elements as another has applications.
  const length = new Set(page.rows.map(({ id }) => id)).size + page.unreadable;
  const { shape } = sizeOf(question, page);
  const { rows, bytes } = facts.pages[shape];
  facts.pages = { ...facts.pages, [shape]: { rows: Math.max(rows, length), bytes: Math.max(bytes, page.bytes) } };
}

type Effect = Pick<Learned, 'closed' | 'lacked'>;
const noEffect: Effect = { closed: null, lacked: [] };

function learnRange(draft: Draft, question: Question, answer: Answer): Effect {
  const { covers } = question;
  const at = covers === null ? -1 : indexAround(draft.open, covers);
  const whole = draft.open[at];
  if (covers === null || whole === undefined) return noEffect;
  const rest = without(whole, covers).map((part) => openRange(part));
  const { parts, ...effect } = judge(draft.facts, rest.length === 0 ? whole : openRange(covers), question, answer);
  if (draft.facts.walk !== null) return noEffect;
  draft.open = draft.open.toSpliced(at, 1, ...[...rest, ...parts].sort((a, b) => rising(a.from, b.from)));
  return effect;
}

type Judged = Effect & { readonly parts: readonly OpenRange[] };

/** Index of the open range that this range is part of; -1 if there is none. */
function indexAround(open: readonly OpenRange[], range: IdRange): number {
  for (let at = indexOfOpen(open, range.from); at < open.length; at++) {
    const one = open[at] as OpenRange;
    if (one.from > range.from) return -1;
    if (one.stuck === null && one.to >= range.to) return at;
  }
  return -1;
}

function addReason(facts: Draft['facts'], risk: Reason['risk'], reason: string): void {
  if (!facts.reasons.some((one) => one.reason === reason)) facts.reasons = [...facts.reasons, { risk, reason }];
}

/** The open ranges that remain of a range after an answer to all of it. */
function judge(facts: Draft['facts'], range: OpenRange, question: Question, answer: Answer): Judged {
  // R8: two filters together are refused, or not honoured.
  const isRefused = answer.kind === 'refused';
  if (isRefused || (answer.kind === 'page' && isStray(question, answer))) {
    const verb = isRefused ? 'refuses' : 'does not honour';
    facts.walk = beginWalk(facts, `the source ${verb} afterid and beforeid together`);
    return { ...noEffect, parts: [] };
  }
  // R7: a question that fails is asked in parts.
  if (answer.kind === 'unanswered') return { ...noEffect, parts: splitUnanswered(range, answer.ids, answer.why) };
  const shown = shownInside(range, answer);
  const lacked = answer.lacking;
  const hasNews = shown.some((id) => answer.news.has(id));
  const page = sizeOf(question, answer);
  const recents = recentIds(answer, facts.recentFrom);
  const recent = shown.filter((id) => recents.has(id));
  const arrived = recent.filter((id) => answer.news.has(id)).length;
  if (range.wider !== null && shown.length - arrived > range.wider.inside) noteCut(facts, range.wider);
  // R3: elements without a readable id, and bounds that come back, take up room. R5: one id. R1: room.
  const isEmpty = shown.length === 0 && (page.rows === 0 || isFarFromFull(facts, page));
  const isOne = isSingle(range) && (shown.length === 1 || isEmpty);
  const isWhole = isEmpty || isOne || hasRoom(facts, page);
  const isExact = !hasNews && lacked.length === 0;
  if (isWhole && lacked.length > 0) {
    // R4: an id that two such answers lack is gone.
    const again = lacked.filter((one) => one.again);
    noteGone(facts, again);
    const isConfirmed = !hasNews && again.length === lacked.length && lacked.length < mostLacking;
    if (isConfirmed) return { ...close(facts, range, shown, recent.length), lacked };
    return { closed: null, lacked, parts: openParts(range, halve(range, shown, lacked), shown, page) };
  }
  // R2: nothing new, nothing lacking.
  if (isOne || (isWhole && isExact)) return close(facts, range, shown, recent.length);
  // R6: what is not closed is asked in parts.
  if (shown.length === 0) return { ...noEffect, parts: stepOver(facts, range, question, answer) };
  const parts = openParts(range, cutRange(facts, range, shown, isExact), shown, page);
  // Ids between the parts have been read and belong to none of them.
  const between = shown.filter((id) => !parts.some((part) => contains(part, id)));
  facts.found += between.length;
  facts.recent += between.filter((id) => recents.has(id)).length;
  return { ...noEffect, parts };
}

function close(facts: Draft['facts'], range: IdRange, shown: readonly Position[], recent: number): Judged {
  facts.found += shown.length;
  facts.recent += recent;
  noteClosed(facts, { from: range.from, to: range.to }, shown);
  return { closed: shown.length === 0 ? 'empty' : isSingle(range) ? 'single' : 'known', lacked: [], parts: [] };
}

/** Known ids are lacking (R4): reads both halves of the range again. If it holds one known id only, the same question again. */
function halve(range: IdRange, shown: readonly Position[], lacking: readonly LackingId[]): IdRange[] {
  const ids = [...shown, ...lacking.map(({ id }) => id as Position)].sort(rising);
  const cut = ids[Math.floor((ids.length - 1) / 2)] as Position;
  const [lower, upper] = splitAfter(range, cut);
  return ids.length < 2 || lower === null || upper === null ? [range] : [lower, upper];
}

/** A page that shows only the bounds of its question (R6): asks again with bounds that step over them. */
function stepOver(facts: Draft['facts'], range: OpenRange, question: Question, page: PageAnswer): OpenRange[] {
  const came = (bound: bigint | null) => page.rows.some(({ id }) => id === bound);
  const { after, before } = range.steps;
  const steps = { after: after || came(question.afterId), before: before || came(question.beforeId) };
  const size = sizeOf(question, page);
  if (steps.after !== after || steps.before !== before) {
    return [{ ...range, wider: { ...size, inside: 0, moved: 'both' }, steps }];
  }
  // A long page of unreadable ids may hide readable ones. A short one may come with every answer.
  if (size.rows >= smallPage) return splitUnanswered(range, [], unreadableOnly);
  addReason(facts, 'fault', 'a range could not be split small enough to be closed');
  return [{ ...range, stuck: unreadableOnly }];
}

/** R8: an answer is known to have left something out: it was cut off. If it was empty or had room, an assumption is wrong. */
function noteCut(facts: Draft['facts'], wider: Wider): void {
  if (wider.rows === 0 || hasRoom(facts, wider))
    addReason(facts, 'doubt', 'an answer left out applications although it had room for them');
  else facts.reach = { ...facts.reach, [wider.moved]: true };
}

function noteGone(facts: Draft['facts'], gone: readonly LackingId[]): void {
  facts.absent += gone.filter(({ old }) => old).length;
  facts.vanished += gone.filter(({ old }) => !old).length;
  facts.goneSample = [...facts.goneSample, ...gone.map(({ id }) => id as Position)].slice(0, mostGone);
}

/** R9: a witness closes nothing. What it shows, or lacks, opens ranges again. */
function learnWitness(draft: Draft, question: Question, answer: Answer): void {
  const { facts } = draft;
  facts.witnesses = facts.witnesses?.filter((other) => !isSameQuestion(other, question)) ?? null;
  if (answer.kind !== 'page') {
    // A question with one filter, or by date, may cross an id that cannot be read.
    if (answer.kind === 'unanswered' && draft.open.length === 0)
      addReason(facts, 'harmless', 'a cross-check was not answered');
    return;
  }
  const { covers } = question;
  if (isStray(question, answer)) addReason(facts, 'doubt', 'a cross-check showed applications outside of its question');
  const isAlone = covers !== null && isSingle(covers);
  const isThere = isAlone && answer.rows.some(({ id }) => id === covers.from);
  if (isThere && facts.lifelines.includes(covers.from)) facts.lifelines = [];
  if (isThere && facts.goneSample.includes(covers.from))
    addReason(facts, 'doubt', 'the source left out applications that it shows when asked again');
  const page = sizeOf(question, answer);
  const lacksSome = answer.lacking.length > 0 && (answer.rows.length === 0 || hasRoom(facts, page));
  if (lacksSome && covers !== null && !isAlone) {
    const [first, last] = [answer.lacking[0] as LackingId, answer.lacking.at(-1) as LackingId];
    const range = { from: first.id as Position, to: last.id as Position };
    // If they come back, the witness left them out.
    reopen(draft, [range], (part) => ({ ...page, inside: shownInside(part, answer).length, moved: 'both' }));
  }
}

/** R8: new ids in closed ranges. They were hidden when the range was read, or have arrived since. The ids around them are read again. */
function noteHidden(draft: Draft, { covers, purpose }: Question, answer: PageAnswer): void {
  const { facts } = draft;
  if (purpose === 'walk') return;
  const ids = shownInside(facts, answer);
  const recents = recentIds(answer, facts.recentFrom);
  const around: IdRange[] = [];
  for (const [nth, id] of ids.entries()) {
    const open = draft.open[indexOfOpen(draft.open, id)];
    if (!answer.news.has(id) || (open !== undefined && contains(open, id))) continue;
    if (purpose === 'range' && covers !== null && contains(covers, id)) continue;
    if (!recents.has(id)) addReason(facts, 'doubt', 'an application appeared in a range that had been read');
    const [from, to] = [ids[nth - 1] ?? facts.from, ids[nth + 1] ?? facts.to];
    const last = around.at(-1);
    const joined = last !== undefined && last.to >= from ? around.pop() : undefined;
    around.push({ from: joined?.from ?? from, to });
  }
  if (around.length > 0) reopen(draft, around);
}

/** Opens closed ranges again, where they do not overlap with open ones. */
function reopen(draft: Draft, ranges: readonly IdRange[], toWider: (part: IdRange) => Wider | null = () => null): void {
  const { open } = draft;
  const parts: OpenRange[] = [];
  for (const range of ranges) {
    let from: bigint = range.from;
    for (let at = indexOfOpen(open, from); from <= range.to; at++) {
      const next = open[at];
      const free = toRange(from, next === undefined || next.from > range.to ? range.to : next.from - 1n);
      if (free !== null) parts.push(openRange(free, toWider(free)));
      from = (next ?? range).to + 1n;
    }
  }
  draft.open = [...open, ...parts].sort((a, b) => rising(a.from, b.from));
}

// Parts of a range that an answer did not close (R6). It is split at ids that the answer showed, and nearly every part keeps one of them, so
// that an empty answer to it is a contradiction. Where that cannot have room (small pages, a heavy id), parts lie between the ids.

/** Most cuts of one range, so that an answer changes few rows. A choice: it costs requests only. */
const mostCuts = 16;

/** Parts of a range, with what the page showed of each, and which bound of the question moves. */
function openParts(
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
function cutRange(facts: Facts, range: IdRange, shown: readonly Position[], isKnown: boolean): IdRange[] {
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

/** R7: splits a range whose question was not answered, at the middle of the ids that are known to be in it, else at its own middle. */
function splitUnanswered(range: IdRange, ids: readonly bigint[], why: string): OpenRange[] {
  if (isSingle(range)) return [{ ...openRange(range), stuck: why }];
  const inside = idsInside(range, ids).filter((id) => id < range.to);
  const cut = inside[Math.floor(inside.length / 2)] ?? middleOf(range);
  return splitAfter(range, cut).flatMap((part) => (part ? openRange(part) : []));
}

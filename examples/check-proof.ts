// Checks a proof of Intake without Intake: node examples/check-proof.ts FILE [--noted SWEEP:HASH] (Node 24)
// FILE is the output of `intake prove --export FILE`. This file follows docs/proof-format.md, needs only Node and shares no code with Intake.
// It prints a report as JSON and exits with 0 if the lines support what the certificates say, with 1 if they do not, and with 2 for wrong arguments.

import { ok as must } from 'node:assert';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

/** What a line, a certificate or a file is worth, from the lowest. `doubt` and `harmless` are the risks of `assumed`. */
const worths = ['forged', 'unproven', 'doubt', 'harmless', 'proven'] as const;
type Worth = (typeof worths)[number];
const wordOf = (worth: Worth) => (worth === 'doubt' || worth === 'harmless' ? 'assumed' : worth);
const lowestOf = (all: { worth: Worth }[]) =>
  worths.find((worth) => all.some((one) => one.worth === worth)) ?? 'proven';

/** Why something is worth less than `proven`. `n` is the number of the line in its sweep. */
export type Finding = ReturnType<typeof find>;
const find = (worth: Worth, sweep: string | null, n: number | null, reason: string) => ({ worth, sweep, n, reason });

type Range = Readonly<Record<'from' | 'to', bigint>>;
const lastId = 2n ** 63n - 1n;
const axis: Range = { from: 1n, to: lastId };
const toRange = (from: bigint, to: bigint): Range => ({ from, to });
const only = (one: bigint) => toRange(one, one);
const contains = ({ from, to }: Range, one: bigint) => from <= one && one <= to;
const within = (part: Range, range: Range) => range.from <= part.from && part.to <= range.to;
const overlaps = (a: Range, b: Range) => a.from <= b.to && b.from <= a.to;
const isSame = (a: Range, b: Range) => a.from === b.from && a.to === b.to;
const compare = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0);
const byPlace = (a: Range, b: Range) => compare(a.from, b.from) || compare(a.to, b.to);
const spell = ({ from, to }: Range) => (from === to ? `${from}` : `${from} to ${to === lastId ? 'infinity' : to}`);

/** The ids inside a range, rising, each once. */
function inside(ids: readonly bigint[], range: Range): bigint[] {
  return [...new Set(ids)].filter((one) => contains(range, one)).sort(compare);
}

/** What is left of ranges without a part. */
function without(ranges: readonly Range[], part: Range): Range[] {
  const sides = ({ from, to }: Range) => [toRange(from, part.from - 1n), toRange(part.to + 1n, to)];
  return ranges
    .flatMap((range) => (overlaps(range, part) ? sides(range) : [range]))
    .filter(({ from, to }) => from <= to);
}

// biome-ignore lint/suspicious/noExplicitAny: each member is checked when it is read.
type Json = any;
/** The second in which each row was first stored; null if it was erased. */
type Rows = Map<bigint, number | null>;

function id(value: Json): bigint {
  must(/^-?\d{1,30}$/.test(value), 'an id is no number');
  return BigInt(value);
}

function count(value: Json = 0): number {
  must(Number.isSafeInteger(value) && value >= 0 && value < 8.64e15, 'a number is no count');
  return value;
}

function rangeOf([from, to]: Json): Range {
  const range = { from: id(from), to: to === null ? lastId : id(to) };
  must(range.from <= range.to && within(range, axis), 'a range has no ids');
  return range;
}

/** The first id, then the difference of each to the one before. */
function idsOf(list: Json = ''): bigint[] {
  let last = 0n;
  return (list === '' ? [] : String(list).split(' ')).map((part) => (last += id(part)));
}

function worthOf({ certificate, risk }: Json): Worth {
  const all = ['proven none', 'assumed harmless', 'assumed doubt', 'unproven doubt'];
  must(all.includes(`${certificate} ${risk}`), 'no such certificate');
  return certificate === 'assumed' ? risk : certificate;
}

/** Members of a line that are of one type. */
function read<Name extends string, Value>(line: Json, type: (value: Json) => Value, ...names: Name[]) {
  return Object.fromEntries(names.map((name) => [name, type(line[name])])) as Record<Name, Value>;
}

type ProofFile = ReturnType<typeof readProof>;
/** The file: reads all lines. What does not follow the format is a forgery. */
function readProof(lines: Iterable<string>) {
  const [sweeps, rows, forged] = [new Map<string, Sweep>(), new Map() as Rows, [] as Finding[]];
  let head = { advertiser: 'unknown', exportedAt: 0, certificates: [] as Certificate[] };
  let [number, sweep] = [0, null as Sweep | null];
  for (const text of lines) {
    number++;
    try {
      const line: Json = JSON.parse(text);
      // Of two members with one name, different programs read different ones.
      must(JSON.stringify(line) === text, 'not written as JSON.stringify writes it');
      must((line.type === 'proof') === (number === 1), 'the first line, and no other, is the proof line');
      must(line.type === 'rows' || rows.size === 0, 'only rows follow rows');
      must(!['proof', 'sweep'].includes(line.type) || line.format === 2, 'the format is not 2');
      if (line.type === 'proof') {
        const certificates = line.certificates.map(readCertificate);
        head = { advertiser: String(id(line.advertiser)), exportedAt: count(line.exportedAt), certificates };
      }
      for (const [row, first] of line.rows ?? []) {
        must(!rows.has(id(row)), 'an id has two rows');
        rows.set(id(row), first === undefined ? null : Number(id(first)));
      }
      if (line.type === 'sweep') {
        must(line.advertiser === head.advertiser, 'a sweep of another advertiser');
        must(id(line.sweep) > BigInt(sweep?.number ?? 0), 'the sweeps are not in their order');
        sweep = readSweep(line);
        sweeps.set(sweep.number, sweep);
      }
      if (line.type !== 'proof' && line.type !== 'rows') addLine(sweep, line, text);
    } catch (error) {
      forged.push(find('forged', sweep?.number ?? null, null, `line ${number}: ${(error as Error).message}`));
    }
  }
  if (number === 0) forged.push(find('forged', null, null, 'the file is empty'));
  return { ...head, sweeps, rows, forged };
}

type Certificate = ReturnType<typeof readCertificate>;
function readCertificate(line: Json) {
  const [range, number] = [rangeOf([line.low, line.high]), String(id(line.sweep))];
  const { reason, last }: Record<string, string> = line;
  return { range, worth: worthOf(line), number, reason, last, ...read(line, count, 'startedAt', 'completeThrough') };
}

type Sweep = ReturnType<typeof readSweep>;
function readSweep(line: Json) {
  return {
    number: String(id(line.sweep)),
    range: rangeOf([line.from, line.to]),
    recentFrom: Number(id(line.recentFrom)),
    ...read(line, count, 'startedAt', 'listedBefore', 'longestBefore'),
    ...read(line, idsOf, 'unreadable', 'accepted'),
    previous: new Map<string, string>(line.previous),
    ...{ answers: [] as Answer[], audits: [] as Answer[], hashes: [] as string[] },
    end: null as ReturnType<typeof readEnd> | null,
    decisions: [] as { by: string; what: string; ids: bigint[] }[],
  };
}

function addLine(sweep: Sweep | null, line: Json, text: string): void {
  must(sweep !== null, 'it belongs to no sweep');
  const n = sweep.hashes.length;
  const before = sweep.hashes.at(-1) ?? '0'.repeat(64);
  sweep.hashes.push(hash('sha256', text, 'hex'));
  must(line.n === n && line.before === before, 'the line before it is not the one that was there');
  must(n === 0 || (line.type === 'answer' || line.type === 'end') === (sweep.end === null), 'not at this place');
  if (line.type === 'answer') sweep.answers.push(readAnswer(line));
  else if (line.type === 'end') sweep.end = readEnd(line);
  else if (line.type === 'audit') sweep.audits.push(readAnswer({ ...line, purpose: 'audit' }));
  else if (line.type === 'decision') sweep.decisions.push({ ...line, ids: idsOf(line.ids) });
  else must(line.type === 'sweep', 'a line of no known type');
}

type Answer = ReturnType<typeof readAnswer>;
function readAnswer(line: Json) {
  const { purpose, answer: kind = 'page', echo = 'matches', closed = null } = line;
  const range = line.from === undefined ? null : rangeOf([line.from, line.to]);
  const boundOf = (sent: Json, usual: bigint | null) => (sent === undefined ? usual : sent === null ? null : id(sent));
  const afterId = boundOf(line.afterId, range && range.from - 1n);
  const beforeId = boundOf(line.beforeId, range && (range.to === lastId ? null : range.to + 1n));
  const shape: 'after' | 'both' = afterId === null || beforeId === null ? 'after' : 'both';
  const { ids, lacking, arrived } = read(line, idsOf, 'ids', 'lacking', 'arrived');
  const fresh = new Set(line.new === 'all' ? ids : idsOf(line.new));
  const isOfRange = range !== null && (purpose === 'range' || purpose === 'walk');
  must(isOfRange || purpose === 'witness' || purpose === 'audit', 'no such question');
  must(fresh.isSubsetOf(new Set(ids)), 'a new id that the page does not show');
  must(kind === 'page' || (ids.length + lacking.length === 0 && closed === null), 'only a page shows or closes');
  return {
    ...{ purpose, range, afterId, beforeId, shape, kind, echo, ids, fresh, lacking, closed },
    ...read(line, Boolean, 'byDate', 'weakEmpty', 'cached'),
    ...read(line, count, 'n', 'sentAt', 'tookMs', 'bytes', 'largest'),
    rows: ids.length + count(line.unreadable),
    distinct: new Set(ids).size + count(line.unreadable),
    arrived: new Set(arrived),
    open: ((line.open ?? []) as Json[]).map(rangeOf),
  };
}

function readEnd(line: Json) {
  const open: Range[] = line.open.map(rangeOf);
  return { worth: worthOf(line), reason: line.reason as string, open, ...read(line, count, 'n', 'absent') };
}

const [second, hour, day] = [1_000, 3_600_000, 86_400_000];
const isWalk = ({ answers }: Sweep) => answers.some(({ purpose }) => purpose === 'walk');

/** Integrity: ids against rows, times, and what sweeps know of each other. */
function checkSweep({ rows, exportedAt, sweeps }: ProofFile, sweep: Sweep): Finding[] {
  const { number, range, startedAt, end } = sweep;
  const findings: Finding[] = [];
  const forge = (n: number, is: boolean, why: string) => is && findings.push(find('forged', number, n, why));
  const latest = exportedAt + day;
  forge(0, startedAt > latest || sweep.recentFrom * second > startedAt, 'it began at another time');
  const cutOff = [...sweep.previous].find(([other, last]) => sweeps.get(other)?.hashes.includes(last) === false);
  forge(0, cutOff !== undefined, `lines of sweep ${cutOff?.[0]} that it knew are not there`);
  const deleted = sweep.decisions.flatMap(({ what, ids }) => (what === 'deletions' ? ids : []));
  forge(0, !deleted.every((one) => rows.has(one)), 'an id of a decision is not a row');
  const named = new Set<bigint>();
  for (const { n, purpose, ids, lacking, fresh, sentAt, tookMs } of [...sweep.answers, ...sweep.audits]) {
    forge(n, sentAt < startedAt - day || sentAt > latest, 'it was sent at another time');
    for (const one of [...ids, ...lacking].filter((any) => contains(axis, any))) {
      const first = rows.get(one);
      forge(n, first === undefined, `id ${one} is not a row`);
      if (first === undefined || first === null) continue;
      forge(n, first * second > sentAt + tookMs + hour, `id ${one} was stored later`);
      const isKnown = (named.has(one) && purpose !== 'audit') || first * second < sentAt - hour;
      forge(n, fresh.has(one) && isKnown, `id ${one} is called new, and was known before`);
    }
    for (const one of [...ids, ...lacking]) named.add(one);
  }
  if (end === null || end.worth === 'unproven' || isWalk(sweep)) return findings;
  const isNamed = (one: bigint) => named.has(one) || end.open.some((part) => contains(part, one));
  const old = [...rows].filter(
    ([one, first]) => contains(range, one) && (first === null || (first * second <= startedAt && isNamed(one))),
  );
  forge(end.n, old.length < sweep.listedBefore, 'ids that were stored before the sweep are not in its lines');
  return findings;
}

/** How many neighbouring ids rise and fall in the pages, and the outermost ids of a range. */
function orderOf(answers: readonly Answer[], range: Range) {
  const pages = answers.filter((one) => one.range !== null).map(({ ids }) => ids);
  const pairs = pages.flatMap((ids) => ids.slice(1).map((one, nth) => compare(one, ids[nth] as bigint)));
  const shown = inside(pages.flat(), range);
  const [rising, falling] = [1, -1].map((sign) => pairs.filter((one) => one === sign).length) as [number, number];
  return { rising, falling, lowest: shown[0], highest: shown.at(-1) };
}

/** A range that is not closed, the page that it was cut from, and the ids that earlier pages have shown in it. */
type Open = Range & { readonly wider: Answer | null; readonly known: readonly bigint[] };
const toOpen = ({ from, to }: Range): Open => ({ from, to, wider: null, known: [] });
const toSizes = () => ({ after: { rows: 0, bytes: 0 }, both: { rows: 0, bytes: 0 }, row: 0 });
const smallPage = 16;
const byDate = (range: Range) => `${spell(range)} by date`;

/** Replay: goes through the answers of a sweep in their order. Returns why they support less than `proven`. */
function replay(sweep: Sweep, rows: Rows): Finding[] {
  const { answers, end } = sweep;
  const findings = new Map<string, Finding>();
  /** Each reason is given once. */
  const say = (worth: Worth, n: number, is: boolean, reason: string) =>
    is && !findings.has(reason) && findings.set(reason, find(worth, sweep.number, n, reason));
  const add = (worth: Worth, is: boolean, why: string) => say(worth, end?.n ?? answers.length, is, why);
  for (const { n, echo, cached, weakEmpty } of answers) {
    say('unproven', n, echo !== 'matches' && echo !== 'absent', 'the answer repeats other filters than were sent');
    say('doubt', n, cached, 'the answer came from a cache');
    say('harmless', n, echo === 'absent', 'the answer does not repeat its filters');
    say('harmless', n, weakEmpty, 'the answer is empty without an empty list');
  }
  const { rising, falling, lowest, highest } = orderOf(answers, sweep.range);
  if (isWalk(sweep)) {
    const isSorted = (rising === 0 || falling === 0) && rising + falling >= 10;
    const isSkipping = answers.some(({ purpose, lacking }) => purpose === 'walk' && lacking.length > 0);
    add('doubt', true, 'two filters are not honoured; the list was walked by one');
    add('unproven', !isSorted || isSkipping, 'the walk does not show a sorted list');
    return [...findings.values()];
  }

  /** What is not closed, and single ids for which the source failed. */
  const stuck = new Set(inside(sweep.unreadable, sweep.range));
  let open: Open[] = [];
  reopen(sweep.range, null);
  /** Most rows and bytes of a page by shape, and bytes of the largest row. */
  let most = toSizes();
  /** Bounds that showed more ids when they moved: the page before was cut off. */
  const reach = new Set<string>();
  /** Ids that one answer lacked, and that two answers lacked. */
  const [lacked, gone] = [new Set<bigint>(), new Set<bigint>()];
  const longest = () => Math.max(most.after.rows, most.both.rows);
  const goneSample = () => [...gone].slice(0, 20);
  /** What lies between the ids of closed ranges, by closing, and the witnesses that are due; null before the first. */
  const gaps: Range[][] = [];
  let [due, lastAt] = [null as Set<string> | null, sweep.startedAt];
  for (const [nth, answer] of answers.entries()) {
    if (answer.sentAt > lastAt + 25 * hour) {
      // After a pause the source may have changed: pages are measured again.
      most = toSizes();
      open = open.map((part) => ({ ...part, wider: null }));
    }
    lastAt = Math.max(lastAt, answer.sentAt + answer.tookMs);
    if (answer.purpose === 'witness') due ??= planWitnesses(answers.slice(0, nth));
    most.row = Math.max(most.row, answer.largest);
    const unread = [...open, ...[...stuck].map(only), ...(answer.purpose === 'range' ? [answer.range as Range] : [])];
    const shown = inside(answer.ids, sweep.range);
    for (const [at, one] of shown.entries()) {
      if (!answer.fresh.has(one) || unread.some((part) => contains(part, one))) continue;
      say('doubt', answer.n, !answer.arrived.has(one), `the answer shows ${one} in a range that had been closed`);
      reopen(toRange(shown[at - 1] ?? sweep.range.from, shown[at + 1] ?? sweep.range.to), null);
    }
    if (answer.purpose === 'range') learnRange(answer, answer.range as Range);
    else learnWitness(answer);
  }

  // The end names as open what could not be read, and nothing else.
  const others = new Set([...stuck].map(String)).symmetricDifference(new Set(end?.open.map(spell)));
  for (const part of [...open.map(spell), ...others]) add('unproven', true, `ids ${part} are not closed`);
  for (const one of stuck) add('doubt', !sweep.accepted.includes(one), `id ${one} could not be read`);
  for (const witness of due ?? planWitnesses(answers)) add('unproven', true, `the witness ${witness} was not asked`);
  const stored = new Set(answers.flatMap(({ fresh }) => [...fresh]));
  const isOld = (one: bigint) => !stored.has(one) && (rows.get(one) ?? 0) * second <= sweep.startedAt;
  const absent = [...gone].filter(isOld).length;
  const vanished = gone.size - absent;
  add('unproven', absent > Math.max(20, sweep.listedBefore / 50), `${absent} stored ids are gone at once`);
  add('unproven', (end?.absent ?? 0) > gone.size, 'the end names more ids as absent than two answers lacked');
  const isMostly = (pairs: number) => pairs * 4 > (rising + falling) * 3;
  const isMixed = !isMostly(rising) && !isMostly(falling);
  const isCut = reach.size > 0;
  const hasReach = isMixed && rising + falling >= 10 ? reach.has('after') && reach.has('before') : isCut;
  add('doubt', isCut && !hasReach, 'the filters were not seen to act before the cut');
  const isEdge = (one: bigint) => isMixed || (isMostly(rising) ? one > (highest ?? 0n) : one < (lowest ?? 0n));
  const isLate = lowest === undefined ? absent > 0 : longest() === sweep.longestBefore && goneSample().some(isEdge);
  add('doubt', isLate && !hasReach, 'ids are gone where a filter that acts after the cut would hide them');
  add(vanished > 2 ? 'doubt' : 'harmless', vanished > 0, `${vanished} ids were shown and then hidden`);
  add('harmless', lowest === undefined && isSame(sweep.range, axis), 'nothing was shown at all');
  const isSmall = [most.after, most.both].some((page) => page.rows > 0 && page.rows < smallPage);
  add('harmless', lowest !== undefined && (longest() < smallPage || (isCut && isSmall)), 'pages are too short to tell');
  return [...findings.values()];

  /** True if a page of this size cannot have been cut off. */
  function hasRoom({ rows, bytes, shape }: Answer): boolean {
    const { [shape]: page, row } = most;
    return page.rows >= smallPage && row * 8 < page.bytes && rows * 2 < page.rows && bytes * 16 < page.bytes * 9;
  }

  function learnRange(answer: Answer, range: Range): void {
    const { n, ids, afterId, beforeId, arrived, shape, distinct: rows, bytes } = answer;
    most[shape] = { rows: Math.max(most[shape].rows, rows), bytes: Math.max(most[shape].bytes, bytes) };
    const [whole] = open.filter((one) => within(range, one)).sort(byPlace);
    const touched = open.filter((one) => one === whole || within(one, range));
    if (touched.length === 0) return;
    const isNarrow = afterId === null || afterId > range.from || (beforeId ?? lastId) < range.to;
    say('unproven', n, isNarrow, 'the question asks for less than its range');
    const isStray = (one: bigint) => !contains(range, one) && one !== afterId && one !== beforeId;
    say('unproven', n, answer.kind === 'refused' || ids.some(isStray), 'two filters are not honoured');
    const shown = inside(ids, range);
    const wider = touched.find((one) => isSame(one, range))?.wider;
    if (wider?.range && shown.filter((one) => !arrived.has(one)).length > inside(wider.ids, range).length) {
      const [isLower, isUpper] = [wider.range.from === range.from, wider.range.to === range.to];
      if (wider.rows === 0 || hasRoom(wider)) say('doubt', n, true, 'a page left ids out although it had room');
      else reach.add(isLower === isUpper ? 'both' : isLower ? 'before' : 'after');
    }
    const known = [...touched.flatMap((one) => one.known), ...shown];
    if (answer.closed !== null) close(answer, range, shown, inside(known, range));
    const parts = answer.closed === null ? cut(answer, range, shown) : [];
    const left = [...without(touched, range).map(toOpen), ...parts];
    open = open.filter((one) => !touched.includes(one));
    open.push(...left.map((one) => ({ ...one, known: inside(known, one) })));
    for (const one of answer.lacking) (lacked.has(one) ? gone : lacked).add(one);
  }

  /** Whether a page may close its range. */
  function close(page: Answer, range: Range, shown: bigint[], known: bigint[]): void {
    const isFarFromFull =
      page.rows * 2 < longest() && page.bytes * 16 < Math.max(most.after.bytes, most.both.bytes) * 9;
    const isEmpty = shown.length === 0 && (page.rows === 0 || isFarFromFull);
    const isOne = range.from === range.to && (shown.length === 1 || isEmpty);
    const rule = isEmpty ? 'empty' : isOne ? 'single' : 'known';
    const there = new Set([...shown, ...page.lacking]);
    const isLost = (one: bigint) => !there.has(one) && !gone.has(one) && rows.get(one) !== null;
    const lost = [...page.lacking.filter((one) => !lacked.has(one)), ...known.filter(isLost)];
    const hasNews = shown.some((one) => page.fresh.has(one));
    const not = (is: boolean, why: string) => say('unproven', page.n, is, `ids ${spell(range)} are not closed: ${why}`);
    not(page.closed !== rule, `the rule is ${rule}`);
    not(rule === 'known' && !hasRoom(page), 'the page may have been cut off');
    not(hasNews && (!isOne || page.lacking.length > 0), 'the page shows new ids');
    not(lost.length > 0, `the page lacks ${lost[0]}`);
    const ends = [range.from - 1n, ...shown, range.to + 1n];
    gaps.push(ends.slice(1).map((next, nth) => ({ from: (ends[nth] as bigint) + 1n, to: next - 1n })));
  }

  /** The parts that stay open. With the ids that were shown they cover the range. */
  function cut(answer: Answer, range: Range, shown: bigint[]): Open[] {
    const parts = answer.open.filter((part) => within(part, range));
    const lost = parts.reduce(without, [range]).find((one) => BigInt(inside(shown, one).length) <= one.to - one.from);
    if (lost) say('unproven', answer.n, true, `ids ${spell(lost)} are neither closed nor open nor shown`);
    if (answer.kind === 'page') return parts.map((part) => ({ ...toOpen(part), wider: answer }));
    if (range.from === range.to) stuck.add(range.from);
    return parts.filter((part) => !isSame(part, range)).map(toOpen);
  }

  function learnWitness(answer: Answer): void {
    const { n, range, ids, lacking, afterId, beforeId } = answer;
    const bounds = toRange((afterId ?? 0n) + 1n, (beforeId ?? lastId + 1n) - 1n);
    due?.delete(answer.byDate ? byDate(bounds) : spell(bounds));
    say('harmless', n, answer.kind === 'unanswered' && open.length + stuck.size === 0, 'a witness was not answered');
    const isOutside = (one: bigint) => one < bounds.from - 1n || one > bounds.to + 1n;
    say('doubt', n, ids.some(isOutside), 'the answer shows ids outside of its question');
    const isAlone = range !== null && range.from === range.to;
    const isBack = isAlone && ids.includes(range.from) && goneSample().includes(range.from);
    say('doubt', n, isBack, 'the answer shows an id that two answers had left out');
    if (lacking[0] && range && !isAlone) reopen(toRange(lacking[0], lacking.at(-1) ?? lacking[0]), answer);
  }

  function reopen(range: Range, wider: Answer | null): void {
    const closed = [...open, ...[...stuck].map(only)].reduce<Range[]>(without, [range]);
    open = [...open, ...closed.map((part) => ({ ...toOpen(part), wider }))];
  }

  /** The witnesses that follow from the answers so far, by their filters. None crosses an id that cannot be read. */
  function planWitnesses(before: readonly Answer[]): Set<string> {
    const { from, to } = sweep.range;
    const { lowest, highest } = orderOf(before, sweep.range);
    const inner = gaps.flat().filter((gap) => gap.from <= gap.to && gap.from !== from && gap.to !== to);
    const widest = inner.sort((a, b) => compare(b.to - b.from, a.to - a.from)).slice(0, 6);
    const places = highest === undefined ? [999n, 999_999n, 999_999_999n].map((far) => from + far) : [highest];
    const above = to === lastId ? places.map((one) => ({ from: one + 1n, to })) : [];
    const below = from === 1n && lowest !== undefined ? [{ from, to: lowest - 1n }] : [];
    const isFree = (range: Range) => range.from <= range.to && ![...stuck].some((one) => contains(range, one));
    const whole = gaps.length > 1 ? [sweep.range] : [];
    const ranges = [...goneSample().map(only), ...widest, ...whole, ...above, ...below];
    const dates = [...below.filter(isFree), ...(isSame(sweep.range, axis) ? [axis] : [])];
    return new Set([...ranges.filter(isFree).map(spell), ...dates.map(byDate)]);
  }
}

/** True if a certificate is what its sweep ended with, or less, and no later sweep has replaced it. */
function isOfSweep(one: Certificate, sweep: Sweep, sweeps: readonly Sweep[]): boolean {
  const end = sweep.end ?? { worth: 'unproven' as const, reason: '' };
  const isLast = sweep.hashes.at(-1) === one.last && within(one.range, sweep.range);
  const isSameTime = one.startedAt === sweep.startedAt && Math.floor(one.completeThrough / second) === sweep.recentFrom;
  const isLower = lowestOf([one, end]) === one.worth;
  const isSameReason = one.worth === 'unproven' || one.worth !== end.worth || one.reason === end.reason;
  const later = sweeps.filter(({ end, previous }) => end !== null && previous.has(sweep.number));
  return isLast && isSameTime && isLower && isSameReason && !later.some(({ range }) => overlaps(one.range, range));
}

function checkCertificate({ sweeps }: ProofFile, certificate: Certificate, ofSweeps: readonly Finding[]) {
  const { range, worth, last, number } = certificate;
  const sweep = sweeps.get(number);
  const findings = ofSweeps.filter((one) => one.sweep === number);
  const add = (worth: Worth, n: number | null, why: string) => findings.push(find(worth, number, n, why));
  if (last === null) add('unproven', null, 'no evidence of this sweep is kept');
  else if (sweep === undefined || !isOfSweep(certificate, sweep, [...sweeps.values()]))
    add('forged', null, `the certificate of ids ${spell(range)} is not that of its sweep, or was replaced`);
  const audits = sweep?.audits ?? [];
  for (const [nth, { n, range: asked, ids, fresh, arrived }] of audits.entries()) {
    const before = audits.slice(Math.max(0, nth - 4), nth).filter(({ shape }) => shape === 'both');
    const isLeftOut = (one: bigint) =>
      before.some((it) => it.range && contains(it.range, one) && !it.ids.includes(one));
    const isAlone = (one: bigint) => asked !== null && isSame(asked, only(one));
    const isMissed = (one: bigint) => (isAlone(one) && isLeftOut(one)) || (fresh.has(one) && !arrived.has(one));
    for (const one of inside(ids, range).filter(isMissed)) add('unproven', n, `an audit shows ${one}, left out before`);
  }
  const [supports, completeThrough] = [lowestOf(findings), new Date(certificate.completeThrough)];
  const about = { ids: spell(range), sweep: number, completeThrough, says: wordOf(worth), supports: wordOf(supports) };
  return { ...about, refused: lowestOf([certificate, ...findings]) !== worth, findings };
}

/** A noted hash that the file does not have: forged if it has another in its place, else unproven. */
function checkNoted(sweeps: ProofFile['sweeps'], note: string): Finding[] {
  const [, number = '', noted = ''] = /^0*(\d+):([0-9a-f]{64})$/.exec(note) ?? [];
  if (noted === '') throw new Error('a noted hash is written as SWEEP:HASH');
  const [own, all] = [sweeps.get(number), [...sweeps.values()]];
  if (own?.hashes.includes(noted) || all.some(({ previous }) => previous.get(number) === noted)) return [];
  const isOther = sweeps.has(number) || all.some(({ hashes }) => hashes.includes(noted));
  return [find(isOther ? 'forged' : 'unproven', null, null, `the hash that was noted of sweep ${number} is not there`)];
}

export type Report = ReturnType<typeof checkProof>;
export function checkProof(lines: Iterable<string>, noted: readonly string[] = []) {
  const file = readProof(lines);
  const all = [...file.sweeps.values()];
  const forged = [...file.forged, ...all.flatMap((sweep) => checkSweep(file, sweep))];
  const ofSweeps = [...all.flatMap((sweep) => replay(sweep, file.rows)), ...forged];
  const certificates = file.certificates.map((one) => checkCertificate(file, one, ofSweeps));
  const unknown = noted.flatMap((note) => checkNoted(file.sweeps, note));
  const gaps = file.certificates.map(({ range }) => range).reduce(without, [axis]);
  const uncovered = gaps.map((gap) => find('unproven', null, null, `no certificate speaks of ids ${spell(gap)}`));
  const findings = [...forged, ...unknown, ...uncovered];
  const worth = lowestOf([...findings, ...file.certificates, ...certificates.flatMap((one) => one.findings)]);
  const verdict = wordOf(worth);
  const risk = worth === 'proven' ? 'none' : worth === 'harmless' ? worth : 'doubt';
  /** The file is not forged and has every noted hash, and no certificate says more than its lines support. */
  const supported = verdict !== 'forged' && unknown.length === 0 && !certificates.some(({ refused }) => refused);
  const sweeps = all.flatMap(({ number, range, answers, audits, decisions }) => [
    `sweep ${number}: ids ${spell(range)}, ${answers.length} questions, ${audits.length} audits`,
    ...decisions.map(({ by, what, ids }) => `${by} accepted ${ids.length} ids (${what})`),
  ]);
  const about = { advertiser: file.advertiser, exportedAt: new Date(file.exportedAt) };
  return { verdict, risk, supported, ...about, certificates, sweeps, findings };
}

if (import.meta.main) {
  try {
    const options = { noted: { type: 'string', multiple: true } } as const;
    const { values, positionals } = parseArgs({ allowPositionals: true, options });
    if (positionals.length !== 1) throw new Error('name one file');
    const report = checkProof(readFileSync(positionals.join(), 'utf8').replace(/\n$/, '').split('\n'), values.noted);
    process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
    process.exitCode = report.supported ? 0 : 1;
  } catch (error) {
    process.stderr.write(
      `${(error as Error).message}\nusage: node examples/check-proof.ts FILE [--noted SWEEP:HASH]\n`,
    );
    process.exitCode = 2;
  }
}

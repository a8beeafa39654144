// Checks a proof of Intake without Intake: node examples/check-proof.ts FILE [--noted SWEEP:HASH] [--rows DUMP] [--json] (Node 24)
// FILE is the output of `intake prove --export FILE`. This file implements docs/proof-format.md. It needs only Node and shares no code with
// Intake. It exits with 0 if the lines support what the certificates say, with 1 if they do not, and with 2 for wrong arguments.

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

/** What a certificate, or a file, is worth, from the lowest. */
export type Word = 'forged' | 'unproven' | 'assumed' | 'proven';
/** The same, with the two risks of `assumed`. */
type Worth = 'forged' | 'unproven' | 'doubt' | 'harmless' | 'proven';
const worths: readonly Worth[] = ['forged', 'unproven', 'doubt', 'harmless', 'proven'];
const wordOf = (worth: Worth): Word => (worth === 'doubt' || worth === 'harmless' ? 'assumed' : worth);
const lowest = (all: readonly { worth: Worth }[]) =>
  worths.find((worth) => all.some((one) => one.worth === worth)) ?? 'proven';

/** Why a proof is worth less than `proven`. `n` is the number of the line in its sweep. */
export type Finding = ReturnType<typeof find>;
function find(worth: Worth, sweep: string | null, n: number | null, reason: string) {
  return { verdict: wordOf(worth), worth, sweep, n, reason };
}

/** Wrong arguments; says nothing about the proof. */
export class WrongUse extends Error {}

// ---- The file ----

const lastId = 2n ** 63n - 1n;
const axis: Range = { from: 1n, to: lastId };
const hourMs = 3_600_000;

type Range = Readonly<Record<'from' | 'to', bigint>>;
/** The second in which each row was first stored; null if it was erased. */
type Rows = Map<bigint, number | null>;
// biome-ignore lint/suspicious/noExplicitAny: each member is checked when it is read.
type Json = any;

function must(isRight: boolean, otherwise: string): asserts isRight {
  if (!isRight) throw new Error(otherwise);
}

function id(value: Json): bigint {
  must(/^-?\d{1,30}$/.test(value), 'an id is no number');
  return BigInt(value);
}

function count(value: Json): number {
  must(Number.isSafeInteger(value) && value >= 0 && value < 8.64e15, 'a number is no count');
  return value;
}

function rangeOf([from, to]: Json): Range {
  const range = { from: id(from), to: to === null ? lastId : id(to) };
  must(range.from >= 1n && range.from <= range.to && range.to <= lastId, 'a range has no ids');
  return range;
}

/** The first id, then the difference of each to the one before. */
function idsOf(list: Json): bigint[] {
  let last = 0n;
  return (list ? String(list).split(' ') : []).map((part) => (last += id(part)));
}

function worthOf({ certificate, risk }: Json): Worth {
  const pairs = ['proven none', 'assumed harmless', 'assumed doubt', 'unproven doubt'];
  must(pairs.includes(`${certificate} ${risk}`), 'no certificate has this risk');
  return certificate === 'assumed' ? risk : certificate;
}

type ProofFile = ReturnType<typeof readProof>;
/** Reads all lines. What does not follow docs/proof-format.md is a forgery. */
function readProof(lines: Iterable<string>) {
  const [sweeps, rows, forged] = [new Map<string, Sweep>(), new Map() as Rows, [] as Finding[]];
  let head = { advertiser: 'unknown', exportedAt: 0, certificates: [] as Certificate[] };
  let sweep: Sweep | null = null;
  let [number, lastRow] = [0, -1n];
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
        must(id(row) > lastRow, 'the rows are not in the order of ids, each once');
        lastRow = id(row);
        rows.set(lastRow, first === undefined ? null : Number(id(first)));
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
  const [startedAt, completeThrough] = [count(line.startedAt), count(line.completeThrough)];
  const last: string | null = line.last;
  const about = { worth: worthOf(line), reason: String(line.reason), sweep: String(id(line.sweep)) };
  return { range: rangeOf([line.low, line.high]), ...about, startedAt, completeThrough, last };
}

type Sweep = ReturnType<typeof readSweep>;
function readSweep(line: Json) {
  return {
    number: String(id(line.sweep)),
    range: rangeOf([line.from, line.to]),
    startedAt: count(line.startedAt),
    recentFrom: line.recentFrom === null ? null : Number(id(line.recentFrom)),
    listedBefore: count(line.listedBefore),
    longestBefore: count(line.longestBefore),
    unreadable: new Set(idsOf(line.unreadable)),
    accepted: new Set(idsOf(line.accepted)),
    previous: new Map<string, string>(line.previous),
    answers: [] as Answer[],
    end: null as ReturnType<typeof readEnd> | null,
    audits: [] as Answer[],
    decisions: [] as { n: number; ids: readonly bigint[]; what: string; about: string }[],
    hashes: [] as string[],
  };
}

function readEnd(n: number, line: Json) {
  const open: Range[] = line.open.map(rangeOf);
  return { n, worth: worthOf(line), reason: String(line.reason), open, absent: count(line.absent) };
}

function addLine(sweep: Sweep | null, line: Json, text: string): void {
  must(sweep !== null, 'it belongs to no sweep');
  const n = sweep.hashes.length;
  const before = sweep.hashes.at(-1) ?? '0'.repeat(64);
  sweep.hashes.push(hash('sha256', text, 'hex'));
  must(line.n === n && line.before === before, 'the line before it is not the one that was there');
  must(n === 0 || (line.type === 'answer' || line.type === 'end') === (sweep.end === null), 'not at this place');
  if (line.type === 'answer') sweep.answers.push(readAnswer(n, line));
  else if (line.type === 'end') sweep.end = readEnd(n, line);
  else if (line.type === 'audit') sweep.audits.push(readAnswer(n, { ...line, purpose: 'audit' }));
  else if (line.type === 'decision') {
    const ids = idsOf(line.ids);
    const about = `${spellTime(count(line.at))}: ${line.by} accepted ${ids.length} ids (${line.what})`;
    sweep.decisions.push({ n, ids, what: line.what, about });
  } else must(line.type === 'sweep', 'a line of no known type');
}

type Answer = ReturnType<typeof readAnswer>;
function readAnswer(n: number, line: Json) {
  const { purpose, answer: kind = 'page', echo = 'matches', weakEmpty = false, cached = false, byDate = false } = line;
  const range = line.from === undefined ? null : rangeOf([line.from, line.to]);
  const isFree = purpose === 'witness' || purpose === 'audit';
  must(isFree || (range !== null && (purpose === 'range' || purpose === 'walk')), 'no such question');
  const ids = idsOf(line.ids);
  const fresh = new Set(line.new === 'all' ? ids : idsOf(line.new));
  must(fresh.isSubsetOf(new Set(ids)), 'a new id that the page does not show');
  must(kind === 'page' || (ids.length === 0 && line.closed === undefined), 'only a page shows ids or closes a range');
  const bound = (sent: Json, usual: bigint | null) => (sent === undefined ? usual : sent === null ? null : id(sent));
  const afterId = bound(line.afterId, range && range.from - 1n);
  const beforeId = bound(line.beforeId, range && (range.to === lastId ? null : range.to + 1n));
  const shape: 'after' | 'both' = afterId === null || beforeId === null ? 'after' : 'both';
  return {
    ...{ n, purpose, range, afterId, beforeId, shape, kind, ids, echo, weakEmpty, cached, fresh },
    filters: filtersOf(afterId, beforeId, byDate),
    sentAt: count(line.sentAt),
    tookMs: count(line.tookMs),
    rows: ids.length + count(line.unreadable ?? 0),
    bytes: count(line.bytes ?? 0),
    largest: count(line.largest ?? 0),
    arrived: new Set(idsOf(line.arrived)),
    lacking: idsOf(line.lacking),
    closed: (line.closed ?? null) as string | null,
    open: ((line.open ?? []) as Json[]).map(rangeOf),
  };
}

// ---- Ranges ----

const contains = ({ from, to }: Range, one: bigint) => from <= one && one <= to;
const within = (part: Range, range: Range) => range.from <= part.from && part.to <= range.to;
const overlaps = (a: Range, b: Range) => a.from <= b.to && b.from <= a.to;
const isSame = (a: Range, b: Range) => a.from === b.from && a.to === b.to;
const isSingle = ({ from, to }: Range) => from === to;
const compare = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0);
const byFrom = (a: Range, b: Range) => compare(a.from, b.from);
const byWidth = (a: Range, b: Range) => compare(b.to - b.from, a.to - a.from);
const spell = ({ from, to }: Range) => (from === to ? `${from}` : `${from} to ${to === lastId ? 'infinity' : to}`);
const spellTime = (milliseconds: number) => new Date(milliseconds).toISOString();

/** The filters of a question, in words. */
function filtersOf(after: bigint | null, before: bigint | null, byDate = false): string {
  const end = before === null || before > lastId ? 'nothing' : before;
  return `after ${after ?? 'nothing'}, before ${end}${byDate ? ', with a date' : ''}`;
}

/** The ids inside a range, rising, each once. */
function inside(ids: readonly bigint[], range: Range): bigint[] {
  return [...new Set(ids)].filter((one) => contains(range, one)).sort(compare);
}

/** What is left of ranges without these parts. */
function without(ranges: readonly Range[], ...parts: readonly Range[]): Range[] {
  const cut = ({ from, to }: Range, part: Range) => {
    if (!overlaps({ from, to }, part)) return [{ from, to }];
    return [toRange(from, part.from - 1n), toRange(part.to + 1n, to)].flat();
  };
  return parts.reduce((rest, part) => rest.flatMap((range) => cut(range, part)), [...ranges]);
}
const toRange = (from: bigint, to: bigint): Range[] => (from <= to ? [{ from, to }] : []);

// ---- The rules of a sweep ----

type PageSize = Pick<Answer, 'rows' | 'bytes' | 'shape'>;
interface Open extends Range {
  /** The page that it was cut from, how many ids that page showed in it, and which of its bounds has moved since. */
  readonly wider: (PageSize & { inside: number; moved: 'after' | 'before' | 'both' }) | null;
  /** Ids that earlier pages have shown in it. */
  readonly known: readonly bigint[];
  /** One id for which the source failed. */
  readonly stuck: boolean;
}
const untouched = { wider: null, known: [], stuck: false } as const;
const smallPage = 16;

/** Goes through the answers of a sweep in their order. Returns why they support less than `proven`. */
function replay(sweep: Sweep, rows: Rows): Finding[] {
  const findings = new Map<string, Finding>();
  const unread = [...sweep.unreadable].map((one) => ({ from: one, to: one }));
  let open: Open[] = [
    ...without([sweep.range], ...unread).map((part) => ({ ...untouched, ...part })),
    ...unread.map((part) => ({ ...untouched, ...part, stuck: true })),
  ].sort(byFrom);
  const nothing = { rows: 0, bytes: 0 };
  let pages = { after: nothing, both: nothing };
  let lastAt = sweep.startedAt;
  const reach: Record<'after' | 'before' | 'both', boolean> = { after: false, before: false, both: false };
  let [largest, closings, found, rising, falling] = [0, 0, 0, 0, 0];
  let [isWalk, isSkipping] = [false, false];
  let [lowest, highest, gaps]: [bigint | null, bigint | null, Range[]] = [null, null, []];
  let plan: Set<string> | null = null;
  const [firstShown, lacked, gone] = [new Set<bigint>(), new Set<bigint>(), new Set<bigint>()];

  const say = (worth: Worth, n: number, is: boolean, reason: string) => {
    if (is && !findings.has(reason)) findings.set(reason, find(worth, sweep.number, n, reason));
  };
  const goneSample = () => [...gone].slice(0, 20);
  const longestPage = () => Math.max(pages.after.rows, pages.both.rows);
  /** True if a page of this size cannot have been cut off. */
  const hasRoom = (page: PageSize) => {
    const most = pages[page.shape];
    const isMeasured = most.rows >= smallPage && largest * 8 < most.bytes;
    return isMeasured && page.rows * 2 < most.rows && page.bytes * 16 < most.bytes * 9;
  };

  for (const answer of sweep.answers) {
    if (answer.sentAt > lastAt + 25 * hourMs) {
      // After a pause the source may have changed: pages are measured again.
      [pages, largest] = [{ after: nothing, both: nothing }, 0];
      open = open.map((part) => ({ ...part, wider: null }));
    }
    lastAt = Math.max(lastAt, answer.sentAt + answer.tookMs);
    if (isWalk && answer.purpose !== 'walk') continue;
    if (answer.purpose === 'witness') plan ??= planWitnesses();
    if (answer.kind === 'page') notePage(answer);
    if (answer.purpose === 'walk') isSkipping ||= answer.lacking.length > 0;
    else if (answer.purpose === 'range') learnRange(answer, answer.range as Range);
    else learnWitness(answer);
    for (const one of answer.fresh) firstShown.add(one);
  }
  finish();
  return [...findings.values()].sort((a, b) => (a.n ?? 0) - (b.n ?? 0));

  function notePage({ n, ids, range, ...page }: Answer): void {
    say('harmless', n, page.echo === 'absent', 'the answer does not repeat its filters');
    say('unproven', n, !['matches', 'absent'].includes(page.echo), 'the answer repeats other filters than were sent');
    say('doubt', n, page.cached, 'the answer came from a cache');
    say('harmless', n, page.weakEmpty, 'the answer is empty without an empty list');
    if (range === null) return;
    largest = Math.max(largest, page.largest);
    for (const [nth, one] of ids.entries()) {
      if (one > (ids[nth - 1] ?? one)) rising++;
      if (one < (ids[nth - 1] ?? one)) falling++;
      if (!contains(sweep.range, one)) continue;
      if (lowest === null || one < lowest) lowest = one;
      if (highest === null || one > highest) highest = one;
    }
    if (page.purpose !== 'range') return;
    const most = pages[page.shape];
    const distinct = page.rows - ids.length + new Set(ids).size;
    pages[page.shape] = { rows: Math.max(most.rows, distinct), bytes: Math.max(most.bytes, page.bytes) };
  }

  function learnRange(answer: Answer, range: Range): void {
    const { n, ids, afterId, beforeId } = answer;
    const whole = open.find((one) => !one.stuck && within(range, one));
    if (whole === undefined) return;
    const isNarrow = afterId === null || afterId > range.from || (beforeId ?? lastId) < range.to;
    say('unproven', n, isNarrow, 'the question asks for less than its range');
    const isStray = (one: bigint) => !contains(range, one) && one !== afterId && one !== beforeId;
    isWalk = answer.kind === 'refused' || ids.some(isStray);
    if (isWalk) return;
    const shown = inside(ids, range);
    const known = [...whole.known, ...shown];
    const asked = { ...whole, ...range, known, wider: isSame(range, whole) ? whole.wider : null };
    if (answer.kind === 'page') judge(answer, shown, asked);
    const parts = answer.closed === null ? cut(answer, shown, asked) : [];
    const rest = without([whole], range).map((part) => ({ ...untouched, ...part, known: inside(known, part) }));
    open.splice(open.indexOf(whole), 1, ...[...rest, ...parts].sort(byFrom));
    found += shown.filter((one) => !parts.some((part) => contains(part, one))).length;
  }

  /** Whether a page may close its range, and what it tells about the page that the range was cut from. */
  function judge(
    { n, lacking, closed, ...page }: Answer,
    shown: readonly bigint[],
    { wider, known, ...range }: Open,
  ): void {
    const fresh = shown.filter((one) => page.fresh.has(one));
    if (wider !== null && shown.length - fresh.filter((one) => page.arrived.has(one)).length > wider.inside) {
      reach[wider.moved] = true;
      say('doubt', n, hasRoom(wider), 'an earlier page left ids out although it had room');
    }
    if (closed !== null) {
      const mostBytes = Math.max(pages.after.bytes, pages.both.bytes);
      const isFarFromFull = page.rows * 2 < longestPage() && page.bytes * 16 < mostBytes * 9;
      const isEmpty = shown.length === 0 && (page.rows === 0 || isFarFromFull);
      const isOne = isSingle(range) && (shown.length === 1 || isEmpty);
      const rule = isEmpty ? 'empty' : isOne ? 'single' : 'known';
      const there = new Set([...shown, ...lacking]);
      const isLost = (one: bigint) => !there.has(one) && !gone.has(one) && rows.get(one) !== null;
      const lost = [...lacking.filter((one) => !lacked.has(one)), ...inside(known, range).filter(isLost)];
      const not = (is: boolean, why: string) => say('unproven', n, is, `ids ${spell(range)} are not closed: ${why}`);
      not(rule === 'known' && !hasRoom(page), 'the page may have been cut off');
      not(fresh.length > 0 && (!isOne || lacking.length > 0), 'the page shows new ids');
      not(lost.length > 0, `the page lacks ${lost[0]}`);
      not(closed !== rule, `the rule is ${rule}`);
      closings++;
      const ends = [range.from - 1n, ...shown, range.to + 1n];
      const between = ends.slice(1).flatMap((next, nth) => toRange((ends[nth] as bigint) + 1n, next - 1n));
      const inner = between.filter(({ from, to }) => from !== sweep.range.from && to !== sweep.range.to);
      gaps = [...gaps, ...inner].sort(byWidth).slice(0, 6);
    }
    for (const one of lacking) (lacked.has(one) ? gone : lacked).add(one);
  }

  /** The parts that stay open. With the ids that were shown they cover the range. */
  function cut({ n, lacking, rows, bytes, shape, ...answer }: Answer, shown: readonly bigint[], range: Open): Open[] {
    const all = answer.open.filter((part) => within(part, range));
    const lost = without([range], ...all).find((one) => BigInt(inside(shown, one).length) <= one.to - one.from);
    if (lost) say('unproven', n, true, `ids ${spell(lost)} are neither closed nor open nor shown`);
    // Neighbouring parts share an id. So a part may belong to the neighbour, which is open already.
    const parts = all.filter((part) => isSame(part, range) || !open.some((one) => isSame(one, part)));
    if (answer.kind !== 'page') return parts.map((part) => ({ ...untouched, ...part, stuck: isSingle(range) }));
    const isAgain = parts.length === 1 && isSame(parts[0] as Range, range);
    if (isAgain && lacking.length === 0 && !shown.some((one) => answer.fresh.has(one))) {
      say(rows * 2 >= pages.after.rows ? 'doubt' : 'harmless', n, true, 'a page holds no more than its bounds');
      return [range];
    }
    return parts.map((part) => {
      const isBoth = isAgain ? lacking.length > 0 : part.from !== range.from && part.to !== range.to;
      const moved = isBoth ? 'both' : part.from === range.from ? 'before' : 'after';
      const wider = { rows, bytes, shape, inside: inside(shown, part).length, moved } as const;
      return { ...part, wider, known: inside(range.known, part), stuck: false };
    });
  }

  function learnWitness(witness: Answer): void {
    const { n, range, ids, lacking } = witness;
    plan?.delete(witness.filters);
    const alone = range !== null && isSingle(range) ? range.from : null;
    const isBack = alone !== null && ids.includes(alone) && goneSample().includes(alone);
    say('doubt', n, isBack, `the answer shows ${alone}, which two answers had left out`);
    if (lacking.length > 0 && range !== null && alone === null && (ids.length === 0 || hasRoom(witness)))
      reopen([{ from: lacking[0] as bigint, to: lacking.at(-1) as bigint }]);
    const shown = inside(ids, sweep.range);
    const around: Range[] = [];
    for (const [nth, one] of shown.entries()) {
      if (!witness.fresh.has(one) || open.some((part) => contains(part, one))) continue;
      say('doubt', n, !witness.arrived.has(one), `the answer shows ${one} in a range that had been closed`);
      const [from, to] = [shown[nth - 1] ?? sweep.range.from, shown[nth + 1] ?? sweep.range.to];
      const last = (around.at(-1)?.to ?? 0n) < from ? undefined : around.pop();
      around.push({ from: last?.from ?? from, to });
    }
    reopen(around);
  }

  function reopen(ranges: readonly Range[]): void {
    open = [...open, ...without(ranges, ...open).map((part) => ({ ...untouched, ...part }))].sort(byFrom);
  }

  /** The witnesses that follow from the answers so far, by their filters. None crosses an id that cannot be read. */
  function planWitnesses(): Set<string> {
    const { from, to } = sweep.range;
    const ask = (range: Range, after: bigint | null, before: bigint | null, byDate = false) =>
      open.some((one) => overlaps(one, range)) ? [] : [filtersOf(after, before, byDate)];
    const within = (range: Range) => ask(range, range.from - 1n, range.to + 1n);
    const needed = [...goneSample().map((one) => ({ from: one, to: one })), ...gaps].flatMap(within);
    if (closings > 1) needed.push(...within(sweep.range));
    if (isSame(sweep.range, axis)) needed.push(filtersOf(null, null, true));
    const places = highest === null ? [999n, 999_999n, 999_999_999n].map((far) => from + far) : [highest];
    if (to === lastId)
      needed.push(...places.flatMap((one) => (one < to ? ask({ from: one + 1n, to }, one, null) : [])));
    if (from !== 1n || lowest === null || lowest === 1n) return new Set(needed);
    const below = { from, to: lowest - 1n };
    return new Set([...needed, ...ask(below, null, lowest), ...ask(below, 0n, lowest, true)]);
  }

  function finish(): void {
    const { end, range, accepted } = sweep;
    const add = (worth: Worth, is: boolean, why: string) => say(worth, end?.n ?? sweep.answers.length, is, why);
    add('unproven', end === null, 'the sweep has no end');
    add('unproven', end?.worth === 'unproven', `the sweep ended unproven: ${end?.reason}`);
    const isOneWay = (rising === 0 || falling === 0) && rising + falling >= 10;
    add('doubt', isWalk, 'two filters are not honoured; the list was walked by one');
    add('unproven', isWalk && (!isOneWay || isSkipping), 'the walk does not show a sorted list');
    if (isWalk) return;
    const others = end?.open.filter((part) => !open.some((one) => isSame(one, part))) ?? [];
    for (const part of [...open, ...others.map((one) => ({ ...untouched, ...one }))]) {
      const isOne = isSingle(part) && part.stuck;
      const isNamed = accepted.has(part.from) || end?.open.some((one) => isSame(one, part));
      add('unproven', !isOne || !isNamed, `ids ${spell(part)} are not closed`);
      add('doubt', isOne && !accepted.has(part.from), `id ${part.from} could not be read`);
    }
    for (const witness of plan ?? planWitnesses()) add('unproven', true, `the witness ${witness} was not asked`);
    const isOld = (one: bigint) => !firstShown.has(one) && (rows.get(one) ?? 0) * 1_000 <= sweep.startedAt;
    const absent = [...gone].filter(isOld).length;
    const vanished = gone.size - absent;
    const isPurge = absent > Math.max(20, Math.floor(sweep.listedBefore * 0.02));
    add('unproven', isPurge, `${absent} stored ids are gone at once`);
    add('unproven', (end?.absent ?? 0) > gone.size, 'the end names more ids as absent than two answers lacked');
    const isMostly = (pairs: number) => pairs * 4 > (rising + falling) * 3;
    const isMixed = !isMostly(rising) && !isMostly(falling);
    const isCut = Object.values(reach).includes(true);
    const hasReach = isMixed && rising + falling >= 10 ? reach.after && reach.before : isCut;
    add('doubt', isCut && found >= smallPage && !hasReach, 'the filters were not seen to act before the cut');
    const isBeyond = (one: bigint) => (isMostly(rising) ? one > (highest ?? 0n) : one < (lowest ?? 0n));
    const longest = longestPage();
    const isEdge = longest === sweep.longestBefore && goneSample().some((one) => isMixed || isBeyond(one));
    const isHidden = (lowest === null ? absent > 0 : isEdge) && !hasReach;
    add('doubt', isHidden, 'ids are gone where a filter that acts after the cut would hide them');
    add(vanished > 2 ? 'doubt' : 'harmless', vanished > 0, `${vanished} ids were shown and then hidden`);
    add('harmless', lowest === null && isSame(range, axis), 'nothing was shown at all');
    add('harmless', lowest !== null && longest < smallPage, 'no page is long enough to tell whether pages are cut off');
    const isSmall = Object.values(pages).some((most) => most.rows > 0 && most.rows < smallPage);
    add('harmless', isCut && isSmall, 'pages are too small for their length to prove anything');
  }
}

// ---- The file as a whole ----

/** Ids against rows, times, and what sweeps know of each other. */
function checkSweep({ rows, exportedAt, sweeps }: ProofFile, sweep: Sweep): Finding[] {
  const { range, startedAt, end } = sweep;
  const findings: Finding[] = [];
  const forge = (n: number, is: boolean, why: string) => is && findings.push(find('forged', sweep.number, n, why));
  const latest = exportedAt + 24 * hourMs;
  forge(0, startedAt > latest || (sweep.recentFrom ?? 0) * 1_000 > startedAt, 'it began at another time');
  for (const [number, last] of sweep.previous)
    forge(
      0,
      sweeps.get(number)?.hashes.includes(last) === false,
      `lines of sweep ${number} that it knew are not there`,
    );
  const seen = new Set<bigint>();
  for (const { n, purpose, ids, lacking, fresh, sentAt, tookMs } of [...sweep.answers, ...sweep.audits]) {
    forge(n, sentAt < startedAt - 24 * hourMs || sentAt > latest, 'it was sent at another time');
    for (const one of [...ids, ...lacking].filter((any) => any >= 1n && any <= lastId)) {
      const first = rows.get(one);
      forge(n, first === undefined, `id ${one} is not a row`);
      if (first === undefined || first === null) continue;
      forge(n, first * 1_000 > sentAt + tookMs + hourMs, `id ${one} was stored later`);
      const isKnown = (seen.has(one) && purpose !== 'audit') || first * 1_000 < sentAt - hourMs;
      forge(n, fresh.has(one) && isKnown, `id ${one} is called new, and was known before`);
    }
    for (const one of [...ids, ...lacking]) seen.add(one);
  }
  for (const { n, ids, what } of sweep.decisions)
    forge(n, what === 'deletions' && ids.some((one) => !rows.has(one)), 'an id of the decision is not a row');
  const isWalk = sweep.answers.some(({ purpose }) => purpose === 'walk');
  if (end === null || end.worth === 'unproven' || isWalk) return findings;
  const isNamed = (one: bigint) => seen.has(one) || end.open.some((part) => contains(part, one));
  const named = [...rows].filter(([one, first]) => {
    return contains(range, one) && (first === null || (first * 1_000 <= startedAt && isNamed(one)));
  });
  forge(end.n, named.length < sweep.listedBefore, 'ids that were stored before the sweep are not in its lines');
  return findings;
}

/** True if a certificate is what its sweep ended with, or less, and no later sweep has replaced it. */
function isOfSweep(one: Certificate, sweep: Sweep, others: Iterable<Sweep>): boolean {
  const end = sweep.end?.worth ?? 'unproven';
  const isReplaced = [...others].some(({ end, previous, range }) => {
    return end !== null && previous.has(sweep.number) && overlaps(one.range, range);
  });
  const isSameTime = one.startedAt === sweep.startedAt && one.completeThrough <= one.startedAt;
  const isThrough = sweep.recentFrom === null || Math.floor(one.completeThrough / 1_000) === sweep.recentFrom;
  const isSameReason = one.worth !== end || one.worth === 'unproven' || one.reason === sweep.end?.reason;
  const isLower = worths.indexOf(one.worth) <= worths.indexOf(end);
  const isLast = sweep.hashes.at(-1) === one.last && within(one.range, sweep.range);
  return isLast && isSameTime && isThrough && isLower && isSameReason && !isReplaced;
}

function checkCertificate(file: ProofFile, certificate: Certificate, replayed: readonly Finding[]) {
  const { range, worth, last, sweep: number } = certificate;
  const sweep = last === null ? undefined : file.sweeps.get(number);
  const findings = [...replayed, ...file.forged].filter((one) => one.sweep === number);
  const say = (is: Worth, n: number | null, why: string) => findings.push(find(is, number, n, why));
  if (sweep === undefined) say('unproven', null, 'no evidence of this sweep is kept');
  if (last !== null && !(sweep && isOfSweep(certificate, sweep, file.sweeps.values())))
    say('forged', null, `the certificate of ids ${spell(range)} is not that of its sweep, or was replaced`);
  const audits = sweep?.audits ?? [];
  for (const [nth, { n, range: asked, ids, fresh, arrived }] of audits.entries()) {
    const before = audits.slice(Math.max(0, nth - 4), nth).filter(({ shape }) => shape === 'both');
    const isLeftOut = (one: bigint) =>
      before.some((audit) => audit.range && contains(audit.range, one) && !audit.ids.includes(one));
    const isAlone = asked !== null && isSingle(asked);
    for (const one of inside(ids, range))
      if ((fresh.has(one) && !arrived.has(one)) || (isAlone && one === asked.from && isLeftOut(one)))
        say('unproven', n, `an audit shows ${one}, which was left out`);
  }
  const supports = lowest(findings);
  const refused = worths.indexOf(supports) < worths.indexOf(worth);
  const about = { ids: spell(range), sweep: number, completeThrough: spellTime(certificate.completeThrough) };
  return { ...about, says: wordOf(worth), supports: wordOf(supports), refused, findings };
}

/** Finds noted hashes that the file does not have: forged if it has another in their place, else unproven. */
function checkNoted({ sweeps }: ProofFile, note: string): Finding[] {
  const [, number = '', noted = ''] = /^0*(\d+):([0-9a-f]{64})$/.exec(note) ?? [];
  if (noted === '') throw new WrongUse('a noted hash is written as SWEEP:HASH');
  const [own, all] = [sweeps.get(number), [...sweeps.values()]];
  if (own?.hashes.includes(noted) || all.some(({ previous }) => previous.get(number) === noted)) return [];
  const isThere = own !== undefined || all.some(({ hashes }) => hashes.includes(noted));
  return [find(isThere ? 'forged' : 'unproven', null, null, `the hash that was noted of sweep ${number} is not there`)];
}

/** Three columns, separated by commas, tabs or bars, with or without a header. Erased applications have only an id. */
function readDump(lines: readonly string[]): Rows {
  const isRow = (line: string, nth: number) => line.trim() !== '' && (nth > 0 || /^[-\d]/.test(line));
  return new Map(
    lines.filter(isRow).map((line) => {
      const [row = '', first = ''] = line.split(/[,\t|]/).map((column) => column.trim());
      if (!/^-?\d+ \d*$/.test(`${row} ${first}`)) throw new WrongUse(`no row of a dump: ${line}`);
      return [BigInt(row), first === '' ? null : Number(first)];
    }),
  );
}

export interface Options {
  readonly noted?: readonly string[];
  /** Lines of a database dump that replace the rows in the file: id, first stored, missing since. */
  readonly rows?: readonly string[];
}

export type Report = ReturnType<typeof checkProof>;
export function checkProof(lines: Iterable<string>, options: Options = {}) {
  const read = readProof(lines);
  const rows = options.rows ? readDump(options.rows) : read.rows;
  const all = [...read.sweeps.values()];
  const file = { ...read, rows, forged: [...read.forged, ...all.flatMap((one) => checkSweep({ ...read, rows }, one))] };
  const replayed = all.flatMap((sweep) => replay(sweep, file.rows));
  const certificates = file.certificates.map((one) => checkCertificate(file, one, replayed));
  const noted = (options.noted ?? []).flatMap((note) => checkNoted(file, note));
  const gaps = without([axis], ...file.certificates.map(({ range }) => range));
  const uncovered = gaps.map((gap) => find('unproven', null, null, `no certificate speaks of ids ${spell(gap)}`));
  const findings = [...file.forged, ...noted, ...uncovered];
  const why = [...findings, ...file.certificates, ...certificates.flatMap((one) => one.findings)];
  const verdict = wordOf(lowest(why));
  /** The file is not forged and has every noted hash, and no certificate says more than its lines support. */
  const supported = verdict !== 'forged' && noted.length === 0 && !certificates.some(({ refused }) => refused);
  const sweeps = all.flatMap(({ number, range, answers, audits, decisions }) => [
    `sweep ${number}: ids ${spell(range)}, ${answers.length} questions, ${audits.length} audits`,
    ...decisions.map(({ about }) => `  ${about}`),
  ]);
  const exportedAt = spellTime(file.exportedAt);
  return { verdict, supported, advertiser: file.advertiser, exportedAt, certificates, sweeps, findings };
}

// ---- The report ----

function spellFinding({ verdict, sweep, n, reason }: Finding): string {
  return `${verdict}: ${sweep === null ? '' : `sweep ${sweep}, `}${n === null ? '' : `line ${n}: `}${reason}`;
}

function spellFindings(findings: readonly Finding[]): string[] {
  const more = findings.length > 10 ? [`  and ${findings.length - 10} more`] : [];
  return [...findings.slice(0, 10).map((one) => `  ${spellFinding(one)}`), ...more];
}

/** The report as text. */
export function renderReport({ verdict, supported, certificates, findings, ...report }: Report): string {
  const first = [...findings, ...certificates.flatMap((one) => one.findings)].find((one) => one.verdict === verdict);
  const why = first === undefined ? '' : ` (${spellFinding(first)})`;
  const lines = [
    `advertiser ${report.advertiser}, exported at ${report.exportedAt}`,
    ...report.sweeps,
    ...certificates.flatMap(({ refused, supports, ...one }) => [
      `certificate for ids ${one.ids} (sweep ${one.sweep}): ${one.says}: ${refused ? `refused, its lines support ${supports}` : 'supported'}`,
      `  speaks of what was submitted before ${one.completeThrough}`,
      ...spellFindings(one.findings),
    ]),
    ...(findings.length > 0 ? ['the file as a whole', ...spellFindings(findings)] : []),
    `\nverdict: ${verdict}${supported ? '' : ', refused'}${why}\n`,
  ];
  return lines.join('\n');
}

if (import.meta.main) {
  const readLines = (file: string) => readFileSync(file, 'utf8').replace(/\n$/, '').split('\n');
  try {
    const text = { type: 'string' } as const;
    const options = { noted: { ...text, multiple: true }, rows: text, json: { type: 'boolean' } } as const;
    const { values, positionals } = parseArgs({ allowPositionals: true, options });
    const [file, ...others] = positionals;
    if (file === undefined || others.length > 0) throw new WrongUse('name one file');
    const dump = values.rows === undefined ? {} : { rows: readLines(values.rows) };
    const report = checkProof(readLines(file), { noted: values.noted ?? [], ...dump });
    process.stdout.write(values.json ? `${JSON.stringify(report, null, 2)}\n` : renderReport(report));
    process.exitCode = report.supported ? 0 : 1;
  } catch (error) {
    const usage = 'usage: node examples/check-proof.ts FILE [--noted SWEEP:HASH] [--rows DUMP] [--json]';
    process.stderr.write(`${(error as Error).message}\n${usage}\n`);
    process.exitCode = 2;
  }
}

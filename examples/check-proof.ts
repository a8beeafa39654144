// Checks a proof of Intake without Intake: node examples/check-proof.ts FILE [--noted SWEEP:HASH] [--rows DUMP] [--json] (Node 24)
// FILE is the output of `intake prove --export FILE`. This file implements docs/proof-format.md. It needs only Node and shares no code with
// Intake. It exits with 0 if the lines support what the certificates say, with 1 if they do not, and with 2 for wrong arguments.

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

export type Word = 'forged' | 'unproven' | 'assumed' | 'proven';
/** What something is worth, from the lowest. `doubt` and `harmless` are the two risks of `assumed`. */
const worths = ['forged', 'unproven', 'doubt', 'harmless', 'proven'] as const;
type Worth = (typeof worths)[number];

/** Why a proof is worth less than `proven`. `n` is the number of the line in its sweep. */
export interface Finding {
  readonly verdict: Word;
  readonly worth: Worth;
  readonly sweep: string | null;
  readonly n: number | null;
  readonly reason: string;
}

export interface Report {
  readonly verdict: Word;
  /** True if the file is not forged and has every noted hash, and no certificate says more than its lines support. */
  readonly supported: boolean;
  readonly advertiser: string;
  readonly exportedAt: string;
  readonly certificates: readonly ReturnType<typeof checkCertificate>[];
  readonly sweeps: readonly string[];
  /** About the whole file. */
  readonly findings: readonly Finding[];
}

export interface Options {
  readonly noted?: readonly string[];
  /** Lines of a database dump that replace the rows in the file: id, first stored, missing since. */
  readonly rows?: Iterable<string>;
}

/** Wrong arguments; says nothing about the proof. */
export class WrongUse extends Error {}

// ---- The file ----

const lastId = 2n ** 63n - 1n;
const hourMs = 3_600_000;

interface Range {
  readonly from: bigint;
  readonly to: bigint;
}
type Certificate = ReturnType<typeof readCertificate>;
type Sweep = ReturnType<typeof readSweep>;
type Answer = ReturnType<typeof readAnswer>;
type ProofFile = ReturnType<typeof readProof>;
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

function oneOf<Name extends string>(value: Json, ...names: Name[]): Name {
  must(names.includes(value), `none of ${names.join(', ')}`);
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
  oneOf(`${certificate} ${risk}`, 'proven none', 'assumed harmless', 'assumed doubt', 'unproven doubt');
  return certificate === 'assumed' ? risk : certificate;
}

function wordOf(worth: Worth): Word {
  return worth === 'doubt' || worth === 'harmless' ? 'assumed' : worth;
}

function find(worth: Worth, sweep: string | null, n: number | null, reason: string): Finding {
  return { verdict: wordOf(worth), worth, sweep, n, reason };
}

/** Reads all lines. What does not follow docs/proof-format.md is a forgery. */
function readProof(lines: Iterable<string>) {
  const file = {
    advertiser: 'unknown',
    exportedAt: 0,
    certificates: [] as Certificate[],
    sweeps: new Map<string, Sweep>(),
    rows: new Map() as Rows,
    forged: [] as Finding[],
  };
  let sweep: Sweep | null = null;
  let [number, lastRow] = [0, -1n];
  for (const text of lines) {
    number++;
    try {
      const line: Json = JSON.parse(text);
      // Of two members with one name, different programs read different ones.
      must(JSON.stringify(line) === text, 'not written as JSON.stringify writes it');
      must((line.type === 'proof') === (number === 1), 'the first line, and no other, is the proof line');
      must(line.type === 'rows' || file.rows.size === 0, 'only rows follow rows');
      if (line.type === 'proof') {
        must(line.format === 2, 'the format is not 2');
        file.advertiser = String(id(line.advertiser));
        file.exportedAt = count(line.exportedAt);
        file.certificates = line.certificates.map(readCertificate);
      } else if (line.type === 'rows') {
        for (const [row, first] of line.rows) {
          must(id(row) > lastRow, 'the rows are not in the order of ids, each once');
          lastRow = id(row);
          file.rows.set(lastRow, first === undefined ? null : Number(id(first)));
        }
      } else {
        if (line.type === 'sweep') {
          sweep = readSweep(line);
          must(line.advertiser === file.advertiser, 'a sweep of another advertiser');
          must(BigInt(sweep.number) > BigInt([...file.sweeps.keys()].at(-1) ?? 0), 'the sweeps are not in their order');
          file.sweeps.set(sweep.number, sweep);
        }
        must(sweep !== null, 'it belongs to no sweep');
        addLine(sweep, line, text);
      }
    } catch (error) {
      file.forged.push(find('forged', sweep?.number ?? null, null, `line ${number}: ${(error as Error).message}`));
    }
  }
  if (number === 0) file.forged.push(find('forged', null, null, 'the file is empty'));
  return file;
}

function readCertificate(line: Json) {
  return {
    range: rangeOf([line.low, line.high]),
    worth: worthOf(line),
    reason: String(line.reason),
    sweep: String(id(line.sweep)),
    startedAt: count(line.startedAt),
    completeThrough: count(line.completeThrough),
    last: line.last as string | null,
  };
}

function readSweep(line: Json) {
  must(line.format === 2, 'the format is not 2');
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

function addLine(sweep: Sweep, line: Json, text: string): void {
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
    const what = oneOf(line.what, 'deletions', 'unreadable');
    const about = `${spellTime(count(line.at))}: ${line.by} accepted ${ids.length} ids (${what})`;
    sweep.decisions.push({ n, ids, what, about });
  } else must(line.type === 'sweep', 'a line of no known type');
}

function readAnswer(n: number, line: Json) {
  const purpose = oneOf(line.purpose, 'range', 'witness', 'walk', 'audit');
  const range = line.from === undefined ? null : rangeOf([line.from, line.to]);
  must(range !== null || purpose === 'witness' || purpose === 'audit', 'a question without a range');
  const ids = idsOf(line.ids);
  const fresh = new Set(line.new === 'all' ? ids : idsOf(line.new));
  must(fresh.isSubsetOf(new Set(ids)), 'a new id that the page does not show');
  const bound = (sent: Json, usual: bigint | null) => (sent === undefined ? usual : sent === null ? null : id(sent));
  const afterId = bound(line.afterId, range && range.from - 1n);
  const beforeId = bound(line.beforeId, range && (range.to === lastId ? null : range.to + 1n));
  return {
    n,
    purpose,
    range,
    sentAt: count(line.sentAt),
    tookMs: count(line.tookMs),
    afterId,
    beforeId,
    byDate: line.byDate === true,
    shape: afterId === null || beforeId === null ? ('after' as const) : ('both' as const),
    kind: oneOf(line.answer ?? 'page', 'page', 'unanswered', 'refused'),
    ids,
    rows: ids.length + count(line.unreadable ?? 0),
    bytes: count(line.bytes ?? 0),
    largest: count(line.largest ?? 0),
    echo: oneOf(line.echo ?? 'matches', 'matches', 'absent', 'differs'),
    weakEmpty: line.weakEmpty === true,
    cached: line.cached === true,
    fresh,
    arrived: new Set(idsOf(line.arrived)),
    lacking: idsOf(line.lacking),
    closed: line.closed === undefined ? null : oneOf(line.closed, 'reading', 'empty', 'single'),
    open: ((line.open ?? []) as Json[]).map(rangeOf),
  };
}

function readEnd(n: number, line: Json) {
  const open: Range[] = line.open.map(rangeOf);
  return { n, worth: worthOf(line), reason: String(line.reason), open, absent: count(line.absent) };
}

// ---- The rules of a sweep ----

interface Open extends Range {
  /** The page that it was cut from, how many ids that page showed in it, and which of its bounds has moved since. */
  readonly wider: (Pick<Answer, 'rows' | 'bytes' | 'shape'> & { inside: number; moved: Moved }) | null;
  /** Ids that earlier pages have shown in it. */
  readonly known: readonly bigint[];
  /** One id for which the source failed. */
  readonly stuck: boolean;
}
type Moved = 'after' | 'before' | 'both';

const smallPage = 16;
const fresh = { wider: null, known: [], stuck: false } as const;

/** Goes through the answers of a sweep in their order, as docs/proof-format.md says. */
class Replay {
  readonly findings: Finding[] = [];
  sweep: Sweep;
  rows: Rows;
  open: Open[];
  pages = { after: { rows: 0, bytes: 0 }, both: { rows: 0, bytes: 0 } };
  largest = 0;
  closings = 0;
  found = 0;
  rising = 0;
  falling = 0;
  lowest: bigint | null = null;
  highest: bigint | null = null;
  reach = { after: false, before: false, both: false };
  gaps: Range[] = [];
  isInclusive = false;
  isSkipping = false;
  isWalk = false;
  plan: Set<string> | null = null;
  readonly firstShown = new Set<bigint>();
  readonly lacked = new Set<bigint>();
  readonly gone = new Set<bigint>();

  constructor(sweep: Sweep, rows: Rows) {
    this.sweep = sweep;
    this.rows = rows;
    this.open = [{ ...sweep.range, ...fresh }];
    for (const answer of sweep.answers) this.learn(answer);
    this.finish();
    this.findings.sort((a, b) => (a.n ?? 0) - (b.n ?? 0));
  }

  say(worth: Worth, n: number, reason: string): void {
    if (!this.findings.some((one) => one.reason === reason))
      this.findings.push(find(worth, this.sweep.number, n, reason));
  }

  learn(answer: Answer): void {
    if (this.isWalk && answer.purpose !== 'walk') return;
    if (answer.purpose === 'witness') this.plan ??= this.planWitnesses();
    if (answer.kind === 'page') this.notePage(answer);
    if (answer.purpose === 'walk') this.isSkipping ||= answer.lacking.length > 0;
    else if (answer.purpose === 'range') this.learnRange(answer, answer.range as Range);
    else this.learnWitness(answer);
    for (const one of answer.fresh) this.firstShown.add(one);
  }

  notePage({ n, ids, range, ...page }: Answer): void {
    if (page.echo === 'differs') this.say('unproven', n, 'the answer repeats other filters than were sent');
    if (page.echo === 'absent') this.say('harmless', n, 'the answer does not repeat its filters');
    if (page.cached) this.say('doubt', n, 'the answer came from a cache');
    if (page.weakEmpty) this.say('harmless', n, 'the answer is empty without an empty list');
    if (range === null) return;
    this.largest = Math.max(this.largest, page.largest);
    for (const [nth, one] of ids.entries()) {
      if (one > (ids[nth - 1] ?? one)) this.rising++;
      if (one < (ids[nth - 1] ?? one)) this.falling++;
      if (!contains(this.sweep.range, one)) continue;
      if (this.lowest === null || one < this.lowest) this.lowest = one;
      if (this.highest === null || one > this.highest) this.highest = one;
    }
    if (page.purpose !== 'range') return;
    const most = this.pages[page.shape];
    this.pages[page.shape] = { rows: Math.max(most.rows, page.rows), bytes: Math.max(most.bytes, page.bytes) };
  }

  /** True if a page of this size cannot have been cut off. */
  hasRoom({ rows, bytes, shape }: Pick<Answer, 'rows' | 'bytes' | 'shape'>): boolean {
    const most = this.pages[shape];
    if (most.rows < smallPage || this.largest * 8 >= most.bytes) return false;
    return rows * 2 < most.rows && bytes * 16 < most.bytes * 9;
  }

  get longest(): number {
    return Math.max(this.pages.after.rows, this.pages.both.rows);
  }

  get order(): 'rising' | 'falling' | 'mixed' {
    const threeQuarters = (this.rising + this.falling) * 3;
    return this.rising * 4 > threeQuarters ? 'rising' : this.falling * 4 > threeQuarters ? 'falling' : 'mixed';
  }

  learnRange(answer: Answer, range: Range): void {
    const { n, ids, afterId, beforeId } = answer;
    const whole = this.open.find((one) => !one.stuck && within(range, one));
    if (whole === undefined) return;
    const isAsked =
      (afterId === range.from - 1n || (this.isInclusive && afterId === range.from)) &&
      (beforeId === (range.to === lastId ? null : range.to + 1n) || (this.isInclusive && beforeId === range.to));
    if (!isAsked) this.say('unproven', n, 'the question asks for less than its range');
    if (answer.kind === 'refused' || ids.some((one) => !contains(range, one) && one !== afterId && one !== beforeId)) {
      this.isWalk = true;
      return;
    }
    this.isInclusive ||= ids.some((one) => !contains(range, one));
    const shown = inside(ids, range);
    const wider = isSame(range, whole) ? whole.wider : null;
    if (answer.kind === 'page') this.judge(answer, range, shown, { ...whole, wider });
    const known = [...new Set([...whole.known, ...shown])];
    const rest = without(whole, range).map((part) => ({ ...fresh, ...part, known: inside(known, part) }));
    const parts = answer.closed === null ? this.cut(answer, range, shown, { ...whole, wider, known }) : [];
    this.open.splice(this.open.indexOf(whole), 1, ...[...rest, ...parts].sort(byFrom));
    this.found += shown.filter((one) => !parts.some((part) => contains(part, one))).length;
  }

  /** Whether a page may close its range, and what it tells about the page that the range was cut from. */
  judge(page: Answer, range: Range, shown: readonly bigint[], { wider, known }: Open): void {
    const { n, lacking, closed } = page;
    const late = shown.filter((one) => page.fresh.has(one) && page.arrived.has(one)).length;
    if (wider !== null && shown.length - late > wider.inside) {
      this.reach[wider.moved] = true;
      if (this.hasRoom(wider)) this.say('doubt', n, 'an earlier page left ids out although it had room');
    }
    const isEmpty = shown.length === 0 && (page.rows === 0 || page.rows * 2 < this.longest);
    const isOne = range.from === range.to && (shown.length === 1 || isEmpty);
    const isWhole = isEmpty || isOne || this.hasRoom(page);
    const isNew = shown.some((one) => page.fresh.has(one)) && (!isOne || lacking.length > 0);
    const isLacking = lacking.some((one) => !this.lacked.has(one));
    if (closed !== null) {
      const rule = isEmpty ? 'empty' : isOne ? 'single' : 'reading';
      const not = (why: string) => this.say('unproven', n, `ids ${spell(range)} are not closed: ${why}`);
      if (!isWhole) not('the page may have been cut off');
      if (isNew) not('the page shows new ids');
      if (isLacking) not('the page lacks stored ids');
      if (closed !== rule) not(`the rule is ${rule}`);
      const there = new Set([...shown, ...lacking, ...this.gone]);
      const lost = inside(known, range).find((one) => !there.has(one) && this.rows.get(one) !== null);
      if (lost !== undefined) not(`the page lacks ${lost}, which was shown before`);
      this.closings++;
      const gaps = gapsBetween(range, shown).filter(({ from, to }) => {
        return from !== this.sweep.range.from && to !== this.sweep.range.to;
      });
      this.gaps = [...this.gaps, ...gaps].sort((a, b) => compare(b.to - b.from, a.to - a.from)).slice(0, 6);
    }
    for (const one of lacking) (this.lacked.has(one) ? this.gone : this.lacked).add(one);
  }

  /** The parts that stay open. With the ids that were shown they cover the range. */
  cut(answer: Answer, range: Range, shown: readonly bigint[], whole: Open): Open[] {
    const { n, lacking, rows, bytes, shape } = answer;
    // Neighbouring parts share an id. So a part may belong to the neighbour, which is open already.
    const isOther = (part: Range) => this.open.some((one) => isSame(one, part) && !isSame(one, range));
    const left = answer.open.reduce((rest, part) => rest.flatMap((one) => without(one, part)), [range]);
    const lost = left.find((one) => BigInt(inside(shown, one).length) <= one.to - one.from);
    if (lost !== undefined) this.say('unproven', n, `ids ${spell(lost)} are neither closed nor open nor shown`);
    const parts = answer.open.filter((part) => within(part, range) && !isOther(part));
    const isAgain = parts.length === 1 && isSame(parts[0] as Range, range);
    if (answer.kind === 'unanswered')
      return parts.map((part) => ({ ...fresh, ...part, stuck: range.from === range.to }));
    if (isAgain && lacking.length === 0 && !shown.some((one) => answer.fresh.has(one))) {
      const risk = rows * 2 >= this.pages.after.rows ? 'doubt' : 'harmless';
      this.say(risk, n, 'a page holds no more than the bounds of its question');
      return [{ ...whole, ...range }];
    }
    return parts.map((part) => {
      const moved: Moved = part.from === range.from ? 'before' : part.to === range.to ? 'after' : 'both';
      const isSecond = isAgain && lacking.length > 0;
      const wider = { rows, bytes, shape, inside: inside(shown, part).length, moved: isSecond ? 'both' : moved };
      return { ...fresh, ...part, wider, known: inside(whole.known, part) };
    });
  }

  learnWitness(answer: Answer): void {
    const { n, range, ids, lacking } = answer;
    this.plan?.delete(keyOf(answer.afterId, answer.beforeId, answer.byDate));
    const alone = range !== null && range.from === range.to ? range.from : null;
    if (alone !== null && [...this.gone].slice(0, 20).includes(alone) && ids.includes(alone))
      this.say('doubt', n, `the answer shows ${alone}, which two answers had left out`);
    if (lacking.length > 0 && range !== null && alone === null && (ids.length === 0 || this.hasRoom(answer)))
      this.reopen(lacking[0] as bigint, lacking.at(-1) as bigint);
    const shown = inside(ids, this.sweep.range);
    for (const [nth, one] of shown.entries()) {
      if (!answer.fresh.has(one) || this.open.some((part) => contains(part, one))) continue;
      if (!answer.arrived.has(one)) this.say('doubt', n, `the answer shows ${one} in a range that had been closed`);
      this.reopen(shown[nth - 1] ?? this.sweep.range.from, shown[nth + 1] ?? this.sweep.range.to);
    }
  }

  reopen(from: bigint, to: bigint): void {
    const parts = this.open.reduce<Range[]>((rest, one) => rest.flatMap((part) => without(part, one)), [{ from, to }]);
    this.open = [...this.open, ...parts.map((part) => ({ ...fresh, ...part }))].sort(byFrom);
  }

  /** The witnesses that follow from the answers so far. */
  planWitnesses(): Set<string> {
    const { from, to } = this.sweep.range;
    const plan = new Set<string>();
    const need = (after: bigint | null, before: bigint | null, byDate = false) =>
      plan.add(keyOf(after, before, byDate));
    for (const one of [...this.gone].slice(0, 20)) need(one - 1n, one + 1n);
    if (this.closings > 1) need(from - 1n, to + 1n);
    for (const gap of this.gaps) need(gap.from - 1n, gap.to + 1n);
    if (from === 1n && to === lastId) need(null, null, true);
    if (this.highest !== null && to === lastId && this.highest < lastId) need(this.highest, null);
    if (this.lowest !== null && from === 1n && this.lowest > 1n) need(null, this.lowest);
    if (this.lowest !== null && from === 1n && this.lowest > 1n) need(0n, this.lowest, true);
    if (this.lowest === null && to === lastId) for (const far of [999n, 999_999n, 999_999_999n]) need(from + far, null);
    return plan;
  }

  finish(): void {
    const { end, range, unreadable, accepted, startedAt, listedBefore, longestBefore } = this.sweep;
    const n = end?.n ?? this.sweep.answers.at(-1)?.n ?? 0;
    const add = (worth: Worth, is: boolean, reason: string) => is && this.say(worth, n, reason);
    add('unproven', end === null, 'the sweep has no end');
    add('unproven', end?.worth === 'unproven', `the sweep ended unproven: ${end?.reason}`);
    const isSorted = (this.rising === 0 || this.falling === 0) && this.rising + this.falling >= 10;
    add('doubt', this.isWalk, 'two filters are not honoured; the list was walked by one');
    add('unproven', this.isWalk && (!isSorted || this.isSkipping), 'the walk does not show a sorted list');
    if (this.isWalk) return;
    for (const part of this.open) {
      const isOne = part.from === part.to && (part.stuck || unreadable.has(part.from));
      const isNamed = accepted.has(part.from) || end?.open.some((one) => isSame(one, part));
      add('unproven', !isOne || !isNamed, `ids ${spell(part)} are not closed`);
      add('doubt', isOne && !accepted.has(part.from), `id ${part.from} could not be read`);
    }
    this.plan ??= this.planWitnesses();
    for (const witness of this.plan) add('unproven', true, `the witness ${witness} was not asked`);
    const isOld = (one: bigint) => !this.firstShown.has(one) && (this.rows.get(one) ?? 0) * 1_000 <= startedAt;
    const absent = [...this.gone].filter(isOld).length;
    const vanished = this.gone.size - absent;
    add('unproven', absent > Math.max(20, Math.floor(listedBefore * 0.02)), `${absent} stored applications are gone`);
    add('unproven', (end?.absent ?? 0) > this.gone.size, 'the end names more ids as absent than two answers lacked');
    const { after, before, both } = this.reach;
    const isCut = after || before || both;
    const isMixed = this.order === 'mixed' && this.rising + this.falling >= 10;
    const hasReach = isMixed ? after && before : isCut;
    add('doubt', isCut && this.found >= smallPage && !hasReach, 'the filters were not seen to act before the cut');
    const isEdge = [...this.gone].slice(0, 20).some((one) => {
      if (this.lowest === null || this.highest === null) return absent > 0;
      return this.order === 'mixed' || (this.order === 'rising' ? one > this.highest : one < this.lowest);
    });
    const isNone = this.lowest === null;
    const isLikeBefore = isNone || this.longest === longestBefore;
    add(
      'doubt',
      isEdge && !hasReach && isLikeBefore,
      'ids are gone where a filter that acts after the cut would hide them',
    );
    add(vanished > 2 ? 'doubt' : 'harmless', vanished > 0, `${vanished} ids were shown and then hidden`);
    add('harmless', isNone && range.from === 1n && range.to === lastId, 'nothing was shown at all');
    add('harmless', !isNone && this.longest < smallPage, 'no page is long enough to tell whether pages are cut off');
    const isSmall = [this.pages.after, this.pages.both].some(({ rows }) => rows > 0 && rows < smallPage);
    add('harmless', isCut && isSmall, 'pages are too small for their length to prove anything');
  }
}

function contains({ from, to }: Range, one: bigint): boolean {
  return from <= one && one <= to;
}

function within(part: Range, range: Range): boolean {
  return range.from <= part.from && part.to <= range.to;
}

function isSame(a: Range, b: Range): boolean {
  return a.from === b.from && a.to === b.to;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function byFrom(a: Range, b: Range): number {
  return compare(a.from, b.from);
}

/** The ids inside a range, rising, each once. */
function inside(ids: readonly bigint[], range: Range): bigint[] {
  return [...new Set(ids)].filter((one) => contains(range, one)).sort(compare);
}

function without(range: Range, part: Range): Range[] {
  if (part.from > range.to || part.to < range.from) return [range];
  const rest = [
    { from: range.from, to: part.from - 1n },
    { from: part.to + 1n, to: range.to },
  ];
  return rest.filter(({ from, to }) => from <= to);
}

function gapsBetween({ from, to }: Range, shown: readonly bigint[]): Range[] {
  const ends = [from - 1n, ...shown, to + 1n];
  return ends.slice(1).flatMap((end, nth) => {
    const begin = (ends[nth] as bigint) + 1n;
    return begin < end ? [{ from: begin, to: end - 1n }] : [];
  });
}

/** The filters of a question. */
function keyOf(after: bigint | null, before: bigint | null, byDate: boolean): string {
  if (after === null && before === null && byDate) return 'by date';
  const end = before === null || before > lastId ? 'nothing' : before;
  return `after ${after ?? 'nothing'}, before ${end}${byDate ? ', with a date' : ''}`;
}

// ---- The file as a whole ----

/** Ids against rows, times, and what sweeps know of each other. */
function checkSweep(file: ProofFile, sweep: Sweep): void {
  const { rows, exportedAt } = file;
  const { range, startedAt, end } = sweep;
  const forge = (n: number, is: boolean, reason: string) => {
    if (is) file.forged.push(find('forged', sweep.number, n, reason));
  };
  const latest = exportedAt + 24 * hourMs;
  forge(0, startedAt > latest || (sweep.recentFrom ?? 0) * 1_000 > startedAt, 'it began at another time');
  for (const [number, last] of sweep.previous)
    forge(
      0,
      file.sweeps.get(number)?.hashes.includes(last) === false,
      `it knew lines of sweep ${number} that are not there`,
    );
  const seen = new Set<bigint>();
  for (const { n, ids, lacking, fresh, sentAt, tookMs } of [...sweep.answers, ...sweep.audits]) {
    forge(n, sentAt < startedAt - 24 * hourMs || sentAt > latest, 'it was sent at another time');
    for (const one of [...ids, ...lacking].filter((id) => id >= 1n && id <= lastId)) {
      const first = rows.get(one);
      forge(n, first === undefined, `id ${one} is not a row`);
      if (first === undefined || first === null) continue;
      forge(n, first * 1_000 > sentAt + tookMs + hourMs, `id ${one} was stored later`);
      forge(n, fresh.has(one) && first * 1_000 < sentAt - hourMs, `id ${one} is new, and was stored before`);
      forge(n, fresh.has(one) && seen.has(one), `id ${one} is new, and was shown before`);
    }
    for (const one of [...ids, ...lacking]) seen.add(one);
  }
  for (const { n, ids, what } of sweep.decisions)
    forge(
      n,
      what === 'deletions' && ids.some((one) => !rows.has(one)),
      'it accepts the deletion of an id that is not a row',
    );
  if (end === null || end.worth === 'unproven' || sweep.answers.some(({ purpose }) => purpose === 'walk')) return;
  const isNamed = (one: bigint) => seen.has(one) || end.open.some((part) => contains(part, one));
  const named = [...rows].filter(([one, first]) => {
    return contains(range, one) && (first === null || (first * 1_000 <= startedAt && isNamed(one)));
  });
  forge(
    end.n,
    named.length < sweep.listedBefore,
    'applications that were stored before the sweep are not in its lines',
  );
}

function checkCertificate(file: ProofFile, certificate: Certificate, replayed: ReadonlyMap<string, Replay>) {
  const { range, worth, last, completeThrough } = certificate;
  const sweep = last === null ? undefined : file.sweeps.get(certificate.sweep);
  const isReplaced = (other: Sweep) =>
    other.end !== null && other.previous.has(certificate.sweep) && without(range, other.range)[0] !== range;
  const isFalse =
    last !== null &&
    (sweep?.hashes.at(-1) !== last ||
      !within(range, sweep.range) ||
      certificate.startedAt !== sweep.startedAt ||
      (sweep.recentFrom !== null && Math.floor(completeThrough / 1_000) !== sweep.recentFrom) ||
      worths.indexOf(worth) > worths.indexOf(sweep.end?.worth ?? 'unproven') ||
      (worth !== 'unproven' && worth === sweep.end?.worth && certificate.reason !== sweep.end.reason) ||
      [...file.sweeps.values()].some(isReplaced));
  if (isFalse) {
    const reason = `the certificate of ids ${spell(range)} is not that of its sweep, or a later sweep replaced it`;
    file.forged.push(find('forged', certificate.sweep, null, reason));
  }
  const audits = sweep?.audits.flatMap(({ n, range: asked, ids, fresh, arrived }) => {
    const isHidden = (one: bigint) =>
      (fresh.has(one) && !arrived.has(one)) || (asked?.from === one && asked.to === one);
    const hidden = inside(ids, range).filter(isHidden);
    return hidden.map((one) => find('unproven', sweep.number, n, `an audit shows ${one}, which was left out`));
  });
  const findings = [
    ...(sweep ? [] : [find('unproven', certificate.sweep, null, 'no evidence of this sweep is kept')]),
    ...(replayed.get(certificate.sweep)?.findings ?? []),
    ...(audits ?? []),
    ...file.forged.filter((one) => one.sweep === certificate.sweep),
  ];
  const supports = lowest(findings);
  return {
    ids: spell(range),
    sweep: certificate.sweep,
    completeThrough: spellTime(completeThrough),
    says: wordOf(worth),
    supports: wordOf(supports),
    /** True if the certificate says more than its lines support. */
    refused: worths.indexOf(supports) < worths.indexOf(worth),
    findings,
  };
}

function lowest(all: readonly { readonly worth: Worth }[]): Worth {
  return worths.find((worth) => all.some((one) => one.worth === worth)) ?? 'proven';
}

/** Finds noted hashes that the file does not have: forged if it has another in their place, else unproven. */
function checkNoted({ sweeps }: ProofFile, note: string): Finding[] {
  const [, number = '', noted = ''] = /^(\d+):([0-9a-f]{64})$/.exec(note) ?? [];
  if (noted === '') throw new WrongUse('a noted hash is written as SWEEP:HASH');
  const all = [...sweeps.values()];
  const own = sweeps.get(String(BigInt(number)));
  if (own?.hashes.includes(noted) || all.some(({ previous }) => previous.get(String(BigInt(number))) === noted))
    return [];
  const isThere = own !== undefined || all.some(({ hashes }) => hashes.includes(noted));
  return [find(isThere ? 'forged' : 'unproven', null, null, `the hash that was noted of sweep ${number} is not there`)];
}

export function checkProof(lines: Iterable<string>, options: Options = {}): Report {
  const file = readProof(lines);
  if (options.rows !== undefined) file.rows = readDump(options.rows);
  const replayed = new Map([...file.sweeps].map(([number, sweep]) => [number, new Replay(sweep, file.rows)]));
  for (const sweep of file.sweeps.values()) checkSweep(file, sweep);
  const certificates = file.certificates.map((one) => checkCertificate(file, one, replayed));
  const noted = (options.noted ?? []).flatMap((note) => checkNoted(file, note));
  const gaps = file.certificates.reduce(
    (rest, { range }) => rest.flatMap((one) => without(one, range)),
    [{ from: 1n, to: lastId }],
  );
  const uncovered = gaps.map((gap) => find('unproven', null, null, `no certificate speaks of ids ${spell(gap)}`));
  const findings = [...file.forged, ...noted, ...uncovered];
  const verdict = wordOf(lowest([...findings, ...file.certificates, ...certificates.flatMap((one) => one.findings)]));
  return {
    verdict,
    supported: verdict !== 'forged' && noted.length === 0 && !certificates.some(({ refused }) => refused),
    advertiser: file.advertiser,
    exportedAt: spellTime(file.exportedAt),
    certificates,
    sweeps: [...file.sweeps.values()].flatMap(({ number, range, answers, audits, decisions }) => {
      const closed = answers.filter((answer) => answer.closed !== null).length;
      const about = `sweep ${number}: ids ${spell(range)}, ${answers.length} questions, ${closed} ranges closed, ${audits.length} audits`;
      return [about, ...decisions.map((one) => `  ${one.about}`)];
    }),
    findings,
  };
}

/** Three columns, separated by commas, tabs or bars, with or without a header. Erased applications have only an id. */
function readDump(lines: Iterable<string>): Rows {
  const rows: Rows = new Map();
  for (const [nth, line] of [...lines].entries()) {
    const [row = '', first = ''] = line.split(/[,\t|]/).map((column) => column.trim());
    if (line.trim() === '' || (nth === 0 && !/^-?\d/.test(row))) continue;
    if (!/^-?\d{1,30} \d{0,15}$/.test(`${row} ${first}`)) throw new WrongUse(`line ${nth + 1} of the dump is no row`);
    rows.set(BigInt(row), first === '' ? null : Number(first));
  }
  return rows;
}

// ---- The report ----

function spell({ from, to }: Range): string {
  return from === to ? `${from}` : `${from} to ${to === lastId ? 'infinity' : to}`;
}

function spellTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

function spellFinding({ verdict, sweep, n, reason }: Finding): string {
  return `${verdict}: ${sweep === null ? '' : `sweep ${sweep}, `}${n === null ? '' : `line ${n}: `}${reason}`;
}

function spellFindings(findings: readonly Finding[]): string[] {
  const lines = findings.map((one) => `  ${spellFinding(one)}`);
  return lines.length > 10 ? [...lines.slice(0, 10), `  and ${lines.length - 10} more`] : lines;
}

/** The report as text. */
export function renderReport({ verdict, supported, certificates, findings, ...report }: Report): string {
  const first = [...findings, ...certificates.flatMap((one) => one.findings)].find((one) => one.verdict === verdict);
  return [
    `advertiser ${report.advertiser}, exported at ${report.exportedAt}`,
    ...report.sweeps,
    ...certificates.flatMap(({ ids, sweep, says, supports, refused, ...one }) => [
      `certificate for ids ${ids} (sweep ${sweep}): ${says}: ${refused ? `refused, its lines support ${supports}` : 'supported'}`,
      `  speaks of what was submitted before ${one.completeThrough}`,
      ...spellFindings(one.findings),
    ]),
    ...(findings.length > 0 ? ['the file as a whole', ...spellFindings(findings)] : []),
    '',
    `verdict: ${verdict}${supported ? '' : ', refused'}${first === undefined ? '' : ` (${spellFinding(first)})`}\n`,
  ].join('\n');
}

function readLines(file: string): string[] {
  return readFileSync(file, 'utf8').replace(/\n$/, '').split('\n');
}

if (import.meta.main) {
  try {
    const options = {
      noted: { type: 'string', multiple: true },
      rows: { type: 'string' },
      json: { type: 'boolean' },
    } as const;
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

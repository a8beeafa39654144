// Checks a proof of Intake without Intake: node examples/check-proof.ts FILE [--noted SWEEP:HASH] [--rows DUMP] [--json] (Node 24)
// FILE is the output of `intake prove --export FILE`. This file implements docs/proof-format.md section by section. It needs only Node and
// shares no code with Intake. It exits with 0 if the records support what the certificates say, with 1 if they do not, and with 2 for wrong
// arguments. It prints application ids and record numbers, and nothing else about people.

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

/** The verdicts, from the lowest to the highest. */
const words = ['forged', 'unproven', 'assumed', 'proven'] as const;
export type Word = (typeof words)[number];

/** One reason why a proof is worth less than `proven`. `n` is the number of the record in the sweep's chain. */
export interface Finding {
  readonly verdict: Word;
  readonly sweep: string | null;
  readonly n: number | null;
  readonly reason: string;
}

export interface CheckedCertificate {
  readonly low: string;
  readonly high: string | null;
  readonly sweep: string;
  /** The certificate covers applications submitted before this time. */
  readonly completeThrough: string;
  readonly says: Word;
  readonly supports: Word;
  readonly verdict: Word;
  /** True when the certificate says more than its records support. */
  readonly refused: boolean;
  /** The first record that does not support what the certificate says. */
  readonly first: Finding | null;
  /** Why the records support no more, in the order of the records. */
  readonly findings: readonly Finding[];
}

export interface CheckedSweep {
  readonly sweep: string;
  readonly axis: 'id' | 'date';
  readonly low: string;
  readonly high: string | null;
  readonly questions: number;
  readonly audits: number;
  readonly supports: Word;
  /** How many of the ranges that are closed at the end were closed by each rule. */
  readonly closedBy: Readonly<Record<string, number>>;
  readonly erased: readonly ErasedRows[];
}

/** Adjacent erased rows of one page, with the ids on either side. */
export interface ErasedRows {
  readonly n: number;
  readonly rows: number;
  readonly between: readonly [string | null, string | null];
}

export interface Report {
  readonly verdict: Word;
  /** True when the file is not forged and contains every noted hash, and no certificate says more than its records support. */
  readonly supported: boolean;
  readonly advertiser: string | null;
  /** Null when the first line is invalid. */
  readonly exportedAt: string | null;
  readonly certificates: readonly CheckedCertificate[];
  readonly sweeps: readonly CheckedSweep[];
  /** Findings about the whole file: forgeries, ids without a certificate, and noted hashes that are absent. */
  readonly findings: readonly Finding[];
}

export interface Options {
  /** Hashes that were noted elsewhere, as `SWEEP:HASH`. */
  readonly noted?: readonly string[];
  /** Lines of a database dump that replace the rows in the file: id, first stored, missing since. */
  readonly rows?: Iterable<string>;
}

/** Wrong arguments; says nothing about the proof. */
export class WrongUse extends Error {}

// ---------------------------------------------------------------------------------------------------------------------------------------
// The file
// ---------------------------------------------------------------------------------------------------------------------------------------

const lastId = 9223372036854775807n;
/** The upper end of an unbounded range: above every id. */
const noEnd = lastId + 1n;

interface Range {
  readonly from: bigint;
  readonly to: bigint;
}

interface Certificate {
  readonly range: Range;
  readonly certificate: Word;
  readonly risk: string;
  readonly reason: string;
  readonly sweep: string;
  readonly startedAt: number;
  readonly completeThrough: number;
  readonly last: string | null;
}

interface Row {
  readonly id: bigint;
  readonly seconds: bigint | null;
  readonly mark: 'new' | 'held' | 'lacking';
}
type Leaf = Row | 'erased';

type Axis = 'id' | 'date';
type Purpose = 'range' | 'confirm' | 'alone' | 'witness' | 'walk' | 'audit';
type Order = 'rising' | 'falling';

interface Question {
  readonly purpose: Purpose;
  readonly axis: Axis;
  readonly after: bigint | null;
  readonly before: bigint | null;
  readonly since: bigint | null;
  /** The members `from` and `to`. */
  readonly range: Range | null;
}

type Filters = Pick<Question, 'axis' | 'after' | 'before' | 'since'>;

/** One number per shape of a question; the shape `before` counts as `after`. */
interface ByShape {
  readonly after: number;
  readonly both: number;
}

interface Answer {
  readonly n: number;
  readonly part: number;
  readonly knew: number;
  readonly seq: bigint;
  readonly sentAt: number;
  readonly question: Question;
  readonly kind: 'page' | 'overflow' | 'refused';
  readonly rows: number;
  readonly unreadable: number;
  /** `rows + unreadable`: the number of elements on the page. */
  readonly length: number;
  readonly bytes: number;
  readonly largest: number;
  readonly sizes: readonly [rising: number, falling: number];
  readonly echo: 'matches' | 'absent' | 'differs';
  readonly weakEmpty: boolean;
  readonly cached: boolean;
  /** The rows in the order of the page, without ids that no proof covers. */
  readonly shown: readonly Leaf[];
  readonly lacking: readonly Leaf[];
  /** The ids in `shown`. */
  readonly ids: ReadonlySet<bigint>;
  readonly closed: readonly Range[];
  readonly opened: readonly Range[];
  readonly limit: ByShape;
  readonly uneven: boolean;
  readonly sorted: Order | null;
  readonly planned: readonly Filters[] | null;
}

interface End {
  readonly n: number;
  readonly certificate: Word;
  readonly risk: string;
  readonly reason: string;
  readonly absent: number;
  readonly open: readonly Range[];
}

interface Sweep {
  readonly number: string;
  readonly axis: Axis;
  readonly range: Range;
  readonly startedAt: number;
  readonly recentFrom: bigint;
  readonly heldBefore: number;
  readonly longestBefore: number;
  /** The last hash of each other sweep when this one began. */
  readonly previous: readonly Noted[];
  readonly answers: Answer[];
  end: End | null;
  readonly hashes: string[];
}

/** The second in which each row of the database was first stored, by id. */
type StoredRows = Map<bigint, bigint>;

interface ProofFile {
  advertiser: string | null;
  exportedAt: number | null;
  certificates: readonly Certificate[];
  readonly sweeps: Map<string, Sweep>;
  stored: StoredRows;
  /** The ids of erased applications, ascending. */
  erased: bigint[];
  /** Each of these makes the file forged. */
  forged: Finding[];
}

/** A line that does not follow docs/proof-format.md. */
class Malformed extends Error {}

type Members = Readonly<Record<string, unknown>>;

function membersOf(value: unknown, what: string): Members {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Malformed(`${what} is no object`);
  return value as Members;
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Malformed(`${what} is no list`);
  return value;
}

function integer(value: unknown, what: string): number {
  if (!Number.isSafeInteger(value)) throw new Malformed(`${what} is no integer`);
  return value as number;
}

/** Milliseconds since 1970, within the range of Date. */
function moment(value: unknown, what: string): number {
  if (Math.abs(integer(value, what)) > 8_640_000_000_000_000) throw new Malformed(`${what} is no moment`);
  return value as number;
}

function count(value: unknown, what: string): number {
  if (integer(value, what) < 0) throw new Malformed(`${what} is negative`);
  return value as number;
}

/** A number that may exceed 2^53: a string of decimal digits. */
function digits(value: unknown, what: string): bigint {
  if (typeof value !== 'string' || !/^(?:0|-?[1-9]\d{0,29})$/.test(value)) throw new Malformed(`${what} is no number`);
  return BigInt(value);
}

function digitsOrNull(value: unknown, what: string): bigint | null {
  return value === null ? null : digits(value, what);
}

function hex(value: unknown, bytes: number, what: string): string {
  if (typeof value !== 'string' || value.length !== bytes * 2 || !/^[0-9a-f]*$/.test(value)) {
    throw new Malformed(`${what} is not ${bytes} bytes of lower-case hex`);
  }
  return value;
}

function boolean(value: unknown, what: string): boolean {
  if (typeof value !== 'boolean') throw new Malformed(`${what} is neither true nor false`);
  return value;
}

function oneOf<Name extends string>(value: unknown, names: readonly Name[], what: string): Name {
  const name = names.find((known) => known === value);
  if (name === undefined) throw new Malformed(`${what} is none of ${names.join(', ')}`);
  return name;
}

function rangeOf(from: unknown, to: unknown, what: string): Range {
  const end = digitsOrNull(to, what);
  if (end !== null && end > lastId) throw new Malformed(`${what} ends above the last id`);
  const range = { from: digits(from, what), to: end ?? noEnd };
  if (range.from > range.to) throw new Malformed(`${what} ends before it begins`);
  return range;
}

function rangesOf(value: unknown, what: string): Range[] {
  return listOf(value, what).map((pair) => {
    const [from, to] = listOf(pair, what);
    return rangeOf(from, to, what);
  });
}

/** Reads all lines in order. An invalid line is a forgery; reading continues after it. */
function readProof(lines: Iterable<string>): ProofFile {
  const file: ProofFile = {
    advertiser: null,
    exportedAt: null,
    certificates: [],
    sweeps: new Map(),
    stored: new Map(),
    erased: [],
    forged: [],
  };
  const place: Place = { line: 0, sweep: null, n: null, inRows: false, lastRow: null };
  for (const text of lines) {
    place.line += 1;
    try {
      readLine(file, place, membersOf(parseLine(text), 'the line'));
    } catch (error) {
      file.forged.push(forgery(place.sweep, place.n, `line ${place.line}: ${whyUnreadable(error)}`));
    }
  }
  if (place.line === 0) file.forged.push(forgery(null, null, 'the file is empty'));
  return file;
}

/** Accepts only the form that JSON.stringify writes: of two members with the same name, different programs read different ones. */
function parseLine(text: string): unknown {
  const line: unknown = JSON.parse(text);
  if (JSON.stringify(line) !== text)
    throw new Malformed('it has white space, a number in another form or a name twice');
  return line;
}

function whyUnreadable(error: unknown): string {
  if (error instanceof Malformed) return error.message;
  if (error instanceof SyntaxError) return 'the line is no JSON';
  // Stack overflow: valid lines are nested only a few levels deep.
  if (error instanceof RangeError) return 'the line is nested too deep';
  throw error;
}

/** The reader's position in the file. */
interface Place {
  line: number;
  sweep: Sweep | null;
  n: number | null;
  inRows: boolean;
  lastRow: bigint | null;
}

function forgery(sweep: Sweep | null, n: number | null, reason: string): Finding {
  return { verdict: 'forged', sweep: sweep?.number ?? null, n, reason };
}

function readLine(file: ProofFile, place: Place, line: Members): void {
  const type = oneOf(line.type, ['proof', 'sweep', 'answer', 'end', 'rows'], 'type');
  if ((type === 'proof') !== (place.line === 1)) throw new Malformed('the first line, and no other, is the proof line');
  if (type === 'sweep' || type === 'rows') {
    place.sweep = null;
    place.n = null;
  }
  if (place.inRows && type !== 'rows') throw new Malformed('only rows follow rows');
  if (type === 'proof') readProofLine(file, line);
  else if (type === 'rows') readRows(file, place, line);
  else if (type === 'sweep') place.sweep = readSweep(file, line);
  else readRecord(file, place, type, line);
}

function readRecord(file: ProofFile, place: Place, type: 'answer' | 'end', line: Members): void {
  const { sweep } = place;
  if (sweep === null) throw new Malformed('it belongs to no sweep');
  place.n = sweep.hashes.length;
  // Checks the hash first: an edit without a new hash is reported as such, and not by what else it breaks.
  file.forged.push(...brokenSeals(sweep, line));
  const sealed = membersOf(line.sealed, 'sealed');
  if (type === 'end') {
    if (sweep.end !== null) throw new Malformed('the sweep has ended before');
    sweep.end = readEnd(sealed);
    return;
  }
  const leaves = readLeaves(line.leaves);
  const answer = readAnswer(sealed, leaves);
  sweep.answers.push(answer);
  const broken = brokenLeaves(membersOf(sealed.answer, 'answer'), answer.kind, leaves);
  if (broken !== null) file.forged.push(forgery(sweep, place.n, broken));
}

// --- Sealed lines and the chain ---

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}

function sha256(...parts: readonly (string | Buffer)[]): Buffer {
  // One call on joined bytes takes a third of the time of create, update and digest, and a proof has one hash per row of every answer.
  return hash(
    'sha256',
    Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))),
    'buffer',
  );
}

/** Adds the next line to the sweep's chain; returns what is wrong with its number or its hash. */
function brokenSeals(sweep: Sweep, line: Members): Finding[] {
  const n = sweep.hashes.length;
  const before = sweep.hashes.at(-1);
  const hash = hex(line.hash, 32, 'hash');
  sweep.hashes.push(hash);
  const sealed = membersOf(line.sealed, 'sealed');
  const broken: Finding[] = [];
  if (line.n !== n || sealed.n !== n) broken.push(forgery(sweep, n, 'the numbers of the records have a gap'));
  const previous = before === undefined ? Buffer.alloc(32) : Buffer.from(before, 'hex');
  if (sha256(previous, canonical(sealed)).toString('hex') !== hash) {
    broken.push(forgery(sweep, n, 'the hash is not that of the record and the hash before it'));
  }
  return broken;
}

// --- proof ---

function readProofLine(file: ProofFile, line: Members): void {
  if (line.format !== 1) throw new Malformed('the format is not 1');
  file.advertiser = String(digits(line.advertiser, 'advertiser'));
  file.exportedAt = moment(line.exportedAt, 'exportedAt');
  file.certificates = listOf(line.certificates, 'certificates').map((certificate) =>
    readCertificate(membersOf(certificate, 'a certificate')),
  );
}

const certificateWords = ['proven', 'assumed', 'unproven'] as const;

function whyOf({ risk, reason }: Members): Pick<Certificate, 'risk' | 'reason'> {
  if (typeof reason !== 'string') throw new Malformed('reason is no text');
  return { risk: oneOf(risk, ['none', 'harmless', 'doubt'], 'risk'), reason };
}

function readCertificate(members: Members): Certificate {
  return {
    range: rangeOf(members.low, members.high, 'low to high'),
    certificate: oneOf(members.certificate, certificateWords, 'certificate'),
    ...whyOf(members),
    sweep: String(digits(members.sweep, 'sweep')),
    startedAt: moment(members.startedAt, 'startedAt'),
    completeThrough: moment(members.completeThrough, 'completeThrough'),
    last: members.last === null ? null : hex(members.last, 32, 'last'),
  };
}

// --- sweep ---

function readSweep(file: ProofFile, line: Members): Sweep {
  const sealed = membersOf(line.sealed, 'sealed');
  const number = digits(sealed.sweep, 'sweep');
  const newest = [...file.sweeps.keys()].at(-1);
  if (newest !== undefined && number <= BigInt(newest)) throw new Malformed('the sweeps are not in their order');
  const sweep: Sweep = {
    number: String(number),
    axis: oneOf(sealed.axis, ['id', 'date'], 'axis'),
    range: rangeOf(sealed.low, sealed.high, 'low to high'),
    startedAt: moment(sealed.startedAt, 'startedAt'),
    recentFrom: digits(sealed.recentFrom, 'recentFrom'),
    heldBefore: count(sealed.heldBefore, 'heldBefore'),
    longestBefore: count(sealed.longestBefore, 'longestBefore'),
    previous: listOf(sealed.previous, 'previous').map(readPrevious),
    answers: [],
    end: null,
    hashes: [],
  };
  file.sweeps.set(sweep.number, sweep);
  file.forged.push(...brokenSeals(sweep, line));
  if (sealed.format !== 1) file.forged.push(forgery(sweep, 0, 'the format is not 1'));
  if (sealed.advertiser !== file.advertiser) {
    file.forged.push(forgery(sweep, 0, 'the sweep is not of the advertiser of the proof'));
  }
  const bodyKeyHash = hex(sealed.bodyKeyHash, 32, 'bodyKeyHash');
  const bodyKey = line.bodyKey === null ? null : Buffer.from(hex(line.bodyKey, 32, 'bodyKey'), 'hex');
  if (bodyKey !== null && sha256(bodyKey).toString('hex') !== bodyKeyHash) {
    file.forged.push(forgery(sweep, 0, 'the key of the body digests is not the one that was sealed'));
  }
  return sweep;
}

function readPrevious(value: unknown): Noted {
  const [sweep, hash] = listOf(value, 'previous');
  return { sweep: String(digits(sweep, 'a previous sweep')), hash: hex(hash, 32, 'a previous hash') };
}

// --- answer ---

function readAnswer(sealed: Members, leaves: readonly ReadLeaf[]): Answer {
  const answer = membersOf(sealed.answer, 'answer');
  const rows = count(answer.rows, 'rows');
  const unreadable = count(answer.unreadable, 'unreadable');
  const [rising, falling] = listOf(answer.sizes ?? [0, 0], 'sizes');
  const [after, both] = listOf(sealed.limit, 'limit');
  const shown = spokenOf(leaves.slice(0, rows));
  return {
    n: count(sealed.n, 'n'),
    part: count(sealed.part, 'part'),
    knew: count(sealed.knew, 'knew'),
    seq: digits(sealed.seq, 'seq'),
    sentAt: moment(sealed.sentAt, 'sentAt'),
    question: readQuestion(membersOf(sealed.question, 'question')),
    kind: oneOf(answer.kind, ['page', 'overflow', 'refused'], 'kind'),
    rows,
    unreadable,
    length: rows + unreadable,
    bytes: count(answer.bytes, 'bytes'),
    largest: count(answer.largest, 'largest'),
    sizes: [count(rising, 'sizes'), count(falling, 'sizes')],
    echo: oneOf(answer.echo, ['matches', 'absent', 'differs'], 'echo'),
    weakEmpty: boolean(answer.weakEmpty, 'weakEmpty'),
    cached: boolean(answer.cached, 'cached'),
    shown,
    lacking: spokenOf(leaves.slice(rows)),
    ids: new Set(wholeRows(shown).map((row) => row.id)),
    closed: rangesOf(sealed.closed, 'closed'),
    opened: rangesOf(sealed.opened, 'opened'),
    limit: { after: count(after, 'limit'), both: count(both, 'limit') },
    uneven: boolean(sealed.uneven, 'uneven'),
    sorted: sealed.sorted === null ? null : oneOf<Order>(sealed.sorted, ['rising', 'falling'], 'sorted'),
    planned: sealed.planned === null ? null : listOf(sealed.planned, 'planned').map(readPlanned),
  };
}

function readQuestion(members: Members): Question {
  return {
    purpose: oneOf(members.purpose, ['range', 'confirm', 'alone', 'witness', 'walk', 'audit'], 'purpose'),
    axis: oneOf(members.axis, ['id', 'date'], 'axis'),
    after: digitsOrNull(members.after, 'after'),
    before: digitsOrNull(members.before, 'before'),
    since: digitsOrNull(members.since, 'since'),
    range: members.from === null ? null : rangeOf(members.from, members.to, 'from to to'),
  };
}

function readPlanned(value: unknown): Filters {
  const [axis, after, before, since] = listOf(value, 'planned');
  return {
    axis: oneOf(axis, ['id', 'date'], 'axis'),
    after: digitsOrNull(after, 'after'),
    before: digitsOrNull(before, 'before'),
    since: digitsOrNull(since, 'since'),
  };
}

// --- Leaves ---

interface ReadLeaf {
  readonly leaf: Leaf;
  readonly hash: Buffer;
}

function readLeaves(value: unknown): ReadLeaf[] {
  return listOf(value, 'leaves').map((entry) => {
    const [id, seconds, mark, salt, ...more] = listOf(entry, 'a leaf');
    if (seconds === undefined) return { leaf: 'erased', hash: Buffer.from(hex(id, 32, 'a leaf'), 'hex') };
    if (more.length > 0) throw new Malformed('a leaf has too many members');
    const row: Row = {
      id: digits(id, 'the id of a leaf'),
      seconds: digitsOrNull(seconds, 'the date of a leaf'),
      mark: oneOf(mark, ['new', 'held', 'lacking'], 'the mark of a leaf'),
    };
    const text = `${row.id} ${row.seconds ?? '-'} ${row.mark}`;
    return { leaf: row, hash: sha256('\0', Buffer.from(hex(salt, 16, 'a salt'), 'hex'), text) };
  });
}

/** The root of the Merkle tree over the leaves: neighbours are joined from the left, and an odd last node moves up unchanged. */
function rootOf(leaves: readonly Buffer[]): string | null {
  let level = leaves;
  while (level.length > 1) {
    level = level.flatMap((left, at) => {
      const right = level[at + 1];
      if (at % 2 === 1) return [];
      return [right === undefined ? left : sha256('\u0001', left, right)];
    });
  }
  return level[0]?.toString('hex') ?? null;
}

/** Removes ids below 1 or above the last id: pages may show them, but no proof covers them. */
function spokenOf(leaves: readonly ReadLeaf[]): Leaf[] {
  return leaves.map(({ leaf }) => leaf).filter((leaf) => leaf === 'erased' || (leaf.id >= 1n && leaf.id <= lastId));
}

function wholeRows(leaves: readonly Leaf[]): Row[] {
  return leaves.filter((leaf) => leaf !== 'erased');
}

function erasedAmong(leaves: readonly Leaf[]): number {
  return leaves.length - wholeRows(leaves).length;
}

// --- end ---

function readEnd(sealed: Members): End {
  return {
    n: count(sealed.n, 'n'),
    certificate: oneOf(sealed.certificate, certificateWords, 'certificate'),
    ...whyOf(sealed),
    absent: count(sealed.absent, 'absent'),
    open: rangesOf(sealed.open, 'open'),
  };
}

// --- rows ---

function readRows(file: ProofFile, place: Place, line: Members): void {
  place.inRows = true;
  for (const entry of listOf(line.rows, 'rows')) {
    const [id, first, missingSince] = listOf(entry, 'a row');
    const row = digits(id, 'the id of a row');
    if (place.lastRow !== null && row <= place.lastRow)
      throw new Malformed('the rows are not in the order of ids, each once');
    place.lastRow = row;
    if (first === undefined) {
      file.erased.push(row);
      continue;
    }
    file.stored.set(row, digits(first, 'the first second of a row'));
    digitsOrNull(missingSince, 'the second since which a row is missing');
  }
}

/** Reads a dump of three columns, separated by commas, tabs or bars, with or without a header. Erased applications have only an id. */
function readDump(lines: Iterable<string>): Pick<ProofFile, 'stored' | 'erased'> {
  const stored: StoredRows = new Map();
  const erased: bigint[] = [];
  let line = 0;
  for (const text of lines) {
    line += 1;
    const [id = '', first = '', missing = ''] = text.split(/[,\t|]/).map((column) => column.trim());
    if (text.trim() === '' || (line === 1 && !/^-?\d/.test(id))) continue;
    if (!/^-?\d{1,30}$/.test(id) || !/^\d{0,30}$/.test(first) || !/^\d{0,30}$/.test(missing))
      throw new WrongUse(`line ${line} of the dump is no row`);
    if (first === '') erased.push(BigInt(id));
    else stored.set(BigInt(id), BigInt(first));
  }
  return { stored, erased: erased.sort((a, b) => (a < b ? -1 : 1)) };
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// What a checker does
// ---------------------------------------------------------------------------------------------------------------------------------------

export function checkProof(lines: Iterable<string>, options: Options = {}): Report {
  const noted = (options.noted ?? []).map(readNoted);
  const file = readProof(lines);
  if (options.rows !== undefined) Object.assign(file, readDump(options.rows));
  const sweeps = [...file.sweeps.values()];
  const unknown = noted.filter((note) => !knowsNoted(file, note));
  file.forged = file.forged.concat(
    sweeps.flatMap(brokenRecords),
    sweeps.flatMap((sweep) => brokenTimes(file, sweep)),
    sweeps.flatMap((sweep) => cutOff(file, sweep)),
    brokenCertificates(file),
    missingRows(file),
    unknown.flatMap((note) => contradictedNote(file, note)),
  );

  const judged = new Map(sweeps.map((sweep) => [sweep.number, judge(file, sweep)]));
  const certificates = file.certificates.map((certificate) => checkCertificate(certificate, judged));
  const absent = unknown.filter((note) => !file.sweeps.has(note.sweep)).map(absentNote);
  const findings = [...file.forged, ...certificateGaps(file), ...absent];
  const verdict = lowest([...certificates, ...findings].map((each) => each.verdict));
  return {
    verdict,
    supported: verdict !== 'forged' && absent.length === 0 && !certificates.some((certificate) => certificate.refused),
    advertiser: file.advertiser,
    exportedAt: file.exportedAt === null ? null : spellMoment(file.exportedAt),
    certificates,
    sweeps: sweeps.map((sweep) => describeSweep(sweep, judged.get(sweep.number))),
    findings,
  };
}

function lowest(verdicts: readonly Word[]): Word {
  return words.find((word) => verdicts.includes(word)) ?? 'proven';
}

/** What follows from the records of a sweep. `findings` is in the order of the records. */
interface Judgement {
  readonly findings: readonly Finding[];
  readonly closings: readonly CheckedClosing[];
  readonly contradictions: readonly Contradiction[];
}

function judge(file: ProofFile, sweep: Sweep): Judgement {
  const forged = file.forged.filter((finding) => finding.sweep === sweep.number);
  // The rules for pages apply only to genuine records.
  if (forged.length > 0) return { findings: forged, closings: [], contradictions: [] };
  const evidence = gather(file, sweep);
  checkUnproven(evidence);
  const closings = isProofById(evidence) ? checkById(evidence) : [];
  const findings = evidence.findings.toSorted((a, b) => (a.n ?? 0) - (b.n ?? 0));
  return { findings, closings, contradictions: contradictions(sweep) };
}

function checkById(evidence: Evidence): CheckedClosing[] {
  checkStatements(evidence);
  const closings = checkClosings(evidence);
  checkTiling(evidence);
  checkWitnesses(evidence);
  checkAssumed(evidence, closings);
  return closings;
}

function checkCertificate(certificate: Certificate, judged: ReadonlyMap<string, Judgement>): CheckedCertificate {
  const { range, sweep, certificate: says, last } = certificate;
  const judgement = last === null ? undefined : judged.get(sweep);
  const findings = judgement === undefined ? [noEvidence(sweep)] : findingsFor(range, judgement);
  const supports = lowest(findings.map((finding) => finding.verdict));
  const verdict = lowest([says, supports]);
  const refused = verdict !== says && verdict !== 'forged';
  const first = findings.find((finding) => lowest([says, finding.verdict]) !== says) ?? null;
  const completeThrough = spellMoment(certificate.completeThrough);
  return { ...shownRange(range), sweep, completeThrough, says, supports, verdict, refused, first, findings };
}

function noEvidence(sweep: string): Finding {
  return { verdict: 'unproven', sweep, n: null, reason: 'no evidence of this sweep is kept' };
}

function findingsFor(range: Range, { findings, contradictions: audits }: Judgement): Finding[] {
  return [...findings, ...audits.filter(({ at }) => contains(range, at)).map(({ finding }) => finding)];
}

/** The certificates on ids must cover 1 to infinity without gap or overlap. */
function certificateGaps(file: ProofFile): Finding[] {
  const ranges = file.certificates
    .filter((certificate) => file.sweeps.get(certificate.sweep)?.axis !== 'date')
    .map((certificate) => certificate.range)
    .sort((a, b) => (a.from < b.from ? -1 : 1));
  const gaps: Finding[] = [];
  const gap = (reason: string) => gaps.push({ verdict: 'unproven', sweep: null, n: null, reason });
  let next = 1n;
  for (const { from, to } of ranges) {
    if (from > next) gap(`no certificate speaks of the ids ${spell({ from: next, to: from - 1n })}`);
    if (from < next) gap(`more than one certificate speaks of the id ${from}`);
    next = to + 1n;
  }
  if (next <= noEnd) gap(`no certificate speaks of the ids ${spell({ from: next, to: noEnd })}`);
  return gaps;
}

interface Noted {
  readonly sweep: string;
  readonly hash: string;
}

function readNoted(text: string): Noted {
  const [, sweep, hash] = /^(\d+):([0-9a-f]{64})$/.exec(text) ?? [];
  if (sweep === undefined || hash === undefined) throw new WrongUse('a noted hash is written as SWEEP:HASH');
  return { sweep: String(BigInt(sweep)), hash };
}

/** True when a record of the sweep has the hash, or when another sweep recorded the hash at its start; the records may be pruned since. */
function knowsNoted({ sweeps }: ProofFile, { sweep, hash }: Noted): boolean {
  if (sweeps.get(sweep)?.hashes.includes(hash)) return true;
  return [...sweeps.values()].some(({ previous }) => previous.some((one) => one.sweep === sweep && one.hash === hash));
}

/** A forgery when the sweep is in the file without the hash, or when another sweep has the hash. */
function contradictedNote({ sweeps }: ProofFile, { sweep, hash }: Noted): Finding[] {
  const known = sweeps.get(sweep);
  if (known !== undefined) return [forgery(known, null, 'no record has the hash that was noted')];
  const other = [...sweeps.values()].find(({ hashes }) => hashes.includes(hash));
  return other === undefined ? [] : [forgery(other, null, `it has the hash that was noted of sweep ${sweep}`)];
}

/** The sweep was pruned, or was rewritten under another number: the file does not show which. */
function absentNote({ sweep }: Noted): Finding {
  const reason = `sweep ${sweep}, of which a hash was noted, is not in the file, and no other sweep knows that hash`;
  return { verdict: 'unproven', sweep: null, n: null, reason };
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// Integrity (the reader has checked the places of lines and the chain)
// ---------------------------------------------------------------------------------------------------------------------------------------

function brokenLeaves(sealed: Members, kind: Answer['kind'], leaves: readonly ReadLeaf[]): string | null {
  const { rows, lacks, root } = sealed;
  if (leaves.length !== Number(rows) + count(lacks, 'lacks')) return 'the number of leaves is not rows + lacks';
  if (kind !== 'page' && leaves.length > 0) return `an answer of the kind ${kind} has leaves`;
  const misplaced = leaves.some(
    ({ leaf }, at) => leaf !== 'erased' && (leaf.mark === 'lacking') !== at >= Number(rows),
  );
  if (misplaced) return 'the leaves are not in the order of their marks';
  const dated = leaves.some(({ leaf }) => leaf !== 'erased' && leaf.mark === 'lacking' && leaf.seconds !== null);
  if (dated) return 'a lacking application has a date';
  if (rootOf(leaves.map(({ hash }) => hash)) !== root) return 'the leaves do not lead to the root that was sealed';
  return null;
}

/** Contradictions between the records of one sweep. */
function brokenRecords(sweep: Sweep): Finding[] {
  const broken: Finding[] = [];
  const requests = new Set<bigint>();
  const closed = new ClosedRanges();
  let before: Answer | null = null;
  for (const answer of sweep.answers) {
    const isAfterEnd = sweep.end !== null && answer.n > sweep.end.n;
    const reasons = [...brokenOrder(answer, requests), ...(isAfterEnd ? [] : brokenParts(answer, before))];
    if ((answer.question.purpose === 'audit') !== isAfterEnd) reasons.push('audits, and only audits, follow the end');
    if (!isAskedInRange(answer.question, sweep)) reasons.push('it asks for a range outside the sweep');
    for (const reason of isAfterEnd ? reasons : reasons.concat(closed.apply(answer))) {
      broken.push(forgery(sweep, answer.n, reason));
    }
    before = answer;
  }
  const gone = new Set(sweep.answers.filter(isGoneAlone).map(({ question }) => onlyId(question))).size;
  if (sweep.end !== null && sweep.end.absent > gone) {
    broken.push(forgery(sweep, sweep.end.n, `it calls ${sweep.end.absent} absent, its records only ${gone}`));
  }
  return broken;
}

/** True when a question asked for one id alone, and the answer does not show it. */
function isGoneAlone({ kind, question, unreadable, ids }: Answer): boolean {
  const id = onlyId(question);
  return question.purpose === 'alone' && kind === 'page' && unreadable === 0 && id !== null && !ids.has(id);
}

function brokenOrder({ n, knew, seq }: Answer, requests: Set<bigint>): string[] {
  const isUsed = requests.has(seq);
  requests.add(seq);
  return [
    ...(knew >= n ? ['it knew records that come after it'] : []),
    ...(isUsed ? ['its request number was used before'] : []),
  ];
}

function brokenParts({ part }: Answer, before: Answer | null): string[] {
  const isNext = before === null ? part === 1 : part === before.part || part === before.part + 1;
  return isNext ? [] : ['the parts are not in their order'];
}

function isAskedInRange({ purpose, axis, range }: Question, sweep: Sweep): boolean {
  if (sweep.axis !== 'id' || axis !== 'id' || purpose === 'witness' || purpose === 'audit') return true;
  return range === null || within(range, sweep.range);
}

/** The tolerance for a database clock that was adjusted in between. */
const clockMs = 86_400_000;

/** Times that would let a sweep cover what it cannot have seen. */
function brokenTimes({ exportedAt }: ProofFile, sweep: Sweep): Finding[] {
  const { startedAt, recentFrom, answers } = sweep;
  const exported = exportedAt ?? Number.POSITIVE_INFINITY;
  const broken: Finding[] = [];
  if (recentFrom > secondOf(startedAt)) {
    broken.push(forgery(sweep, 0, 'it speaks of what was submitted after it began'));
  }
  if (startedAt > exported + clockMs) broken.push(forgery(sweep, 0, 'it began after the file was exported'));
  for (const { n, sentAt } of answers) {
    if (sentAt < startedAt - clockMs) broken.push(forgery(sweep, n, 'it was asked before the sweep began'));
    if (sentAt > exported + clockMs) broken.push(forgery(sweep, n, 'it was asked after the file was exported'));
  }
  return broken;
}

/** Sweeps that lack a record that existed when this one began. */
function cutOff(file: ProofFile, { number, previous }: Sweep): Finding[] {
  return previous.flatMap(({ sweep, hash }) => {
    const earlier = file.sweeps.get(sweep);
    if (earlier === undefined || earlier.hashes.includes(hash)) return [];
    return [forgery(earlier, null, `it lacks the record that was its last when sweep ${number} began`)];
  });
}

interface Closing {
  readonly range: Range;
  readonly answer: Answer;
}

/** The ranges that are closed after the records applied so far, in ascending order. */
class ClosedRanges {
  readonly standing: Closing[] = [];

  /** Applies the ranges that a record opened and closed; returns what is impossible about them. */
  apply(answer: Answer): string[] {
    const { question, opened, closed } = answer;
    const closes = question.purpose === 'range' || question.purpose === 'confirm';
    const broken: string[] = [];
    for (const range of opened) {
      if (!this.#open(range)) broken.push(`it opens ${spell(range)}, which is not closed`);
    }
    for (const range of closed) {
      const own = closes && question.range !== null && within(range, question.range);
      if (!own) broken.push(`it closes ${spell(range)}, for which it did not ask`);
      if (!this.#close({ range, answer })) broken.push(`it closes ${spell(range)}, of which a part is closed already`);
    }
    return broken;
  }

  has(id: bigint): boolean {
    const closing = this.standing[this.#firstFrom(id + 1n) - 1];
    return closing !== undefined && contains(closing.range, id);
  }

  #close(closing: Closing): boolean {
    const at = this.#firstFrom(closing.range.from);
    const [left, right] = [this.standing[at - 1], this.standing[at]];
    if (left !== undefined && left.range.to >= closing.range.from) return false;
    if (right !== undefined && right.range.from <= closing.range.to) return false;
    this.standing.splice(at, 0, closing);
    return true;
  }

  #open(range: Range): boolean {
    const at = this.#firstFrom(range.from);
    const closing = this.standing[at];
    if (closing === undefined || !isSame(closing.range, range)) return false;
    this.standing.splice(at, 1);
    return true;
  }

  #firstFrom(from: bigint): number {
    return firstIndex(this.standing, (closing) => closing.range.from >= from);
  }
}

/** Compares the certificates with the sweeps that they name. */
function brokenCertificates(file: ProofFile): Finding[] {
  return file.certificates.flatMap((certificate) => {
    if (certificate.last === null) return [];
    const sweep = file.sweeps.get(certificate.sweep);
    if (sweep === undefined) {
      const reason = `the certificate names sweep ${certificate.sweep}, which is not in the file`;
      return [forgery(null, null, reason)];
    }
    const reason = brokenCertificate(certificate, sweep) ?? supersededBy(file, certificate);
    return reason === null ? [] : [forgery(sweep, null, reason)];
  });
}

function brokenCertificate(certificate: Certificate, sweep: Sweep): string | null {
  if (sweep.hashes.at(-1) !== certificate.last) return 'the last hash is not the one of the certificate';
  if (!within(certificate.range, sweep.range)) return 'the certificate speaks of ids that were not swept';
  if (certificate.startedAt !== sweep.startedAt) return 'the certificate has another beginning than the sweep';
  if (secondOf(certificate.completeThrough) !== sweep.recentFrom) {
    return 'the certificate is complete through another moment than the sweep';
  }
  const { end } = sweep;
  if (end !== null && lowest([end.certificate, certificate.certificate]) !== certificate.certificate) {
    return `the certificate says ${certificate.certificate}, the end of the sweep ${end.certificate}`;
  }
  // A certificate that an audit has lowered has its own reason.
  if (end?.certificate === certificate.certificate) {
    if (end.risk !== certificate.risk) return 'the certificate has another risk than the end of the sweep';
    if (end.reason !== certificate.reason) return 'the certificate has another reason than the end of the sweep';
  }
  return null;
}

/** A sweep that recorded the certificate's sweep at its start, and has ended, replaces the certificate: the file must not have both. */
function supersededBy(file: ProofFile, { range, sweep }: Certificate): string | null {
  const later = [...file.sweeps.values()].find(
    (other) =>
      other.axis === 'id' &&
      other.end !== null &&
      other.previous.some((one) => one.sweep === sweep) &&
      other.range.from <= range.to &&
      range.from <= other.range.to,
  );
  return later === undefined ? null : `sweep ${later.number} has swept ids of the certificate again and ended since`;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// Rows
// ---------------------------------------------------------------------------------------------------------------------------------------

/** Compares the ids in the evidence with the rows of the database, in both directions. */
function missingRows(file: ProofFile): Finding[] {
  const missing: Finding[] = [];
  for (const sweep of file.sweeps.values()) {
    const seen = new Set<bigint>();
    for (const { n, shown, lacking } of sweep.answers) {
      for (const { id } of wholeRows([...shown, ...lacking])) {
        if (!file.stored.has(id) && !seen.has(id)) missing.push(forgery(sweep, n, `the database does not hold ${id}`));
        seen.add(id);
      }
    }
    missing.push(...inventedErasures(file, sweep));
    const held = heldIn(file.stored, sweep, seen) + erasedIn(file, sweep.range);
    if (speaksOfHeld(sweep) && held < sweep.heldBefore) {
      missing.push(
        forgery(sweep, 0, `${sweep.heldBefore} were stored before the sweep, its records know only ${held}`),
      );
    }
  }
  return missing;
}

/** Pages with more erased leaves than erased applications that they can have shown. */
function inventedErasures(file: ProofFile, sweep: Sweep): Finding[] {
  // If the source shows an application several times on one page, one erased application leaves several leaves.
  const repeats = sweep.answers.some(({ shown, ids }) => wholeRows(shown).length > ids.size);
  return sweep.answers.flatMap(({ n, question, shown, lacking }) => {
    const leaves = erasedAmong(shown) + erasedAmong(lacking);
    if (leaves === 0) return [];
    const erased = erasedIn(file, shownFrom(sweep, question));
    if (erased >= (repeats ? 1 : leaves)) return [];
    return [forgery(sweep, n, `${leaves} of its rows are erased, of the applications there only ${erased}`)];
  });
}

/** The ids that an answer can have shown. In a sweep that claims more than unproven, a `range` question shows no row beyond its bounds. */
function shownFrom(sweep: Sweep, { purpose, axis, after, before }: Question): Range {
  if (purpose !== 'range' || axis !== 'id' || !speaksOfHeld(sweep)) return { from: -noEnd, to: noEnd };
  return { from: after ?? -noEnd, to: before ?? noEnd };
}

function erasedIn({ erased }: ProofFile, { from, to }: Range): number {
  return firstIndex(erased, (id) => id > to) - firstIndex(erased, (id) => id >= from);
}

function speaksOfHeld({ axis, end, answers }: Sweep): boolean {
  if (axis !== 'id' || end === null || end.certificate === 'unproven') return false;
  return !answers.some((answer) => answer.question.purpose === 'walk');
}

function secondOf(milliseconds: number): bigint {
  return BigInt(Math.floor(milliseconds / 1000));
}

/** How many rows were stored before the sweep began and are in its records. */
function heldIn(stored: StoredRows, sweep: Sweep, seen: ReadonlySet<bigint>): number {
  const began = secondOf(sweep.startedAt);
  return stored
    .entries()
    .filter(([id, first]) => first <= began && contains(sweep.range, id) && seen.has(id))
    .toArray().length;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// Page sizes
// ---------------------------------------------------------------------------------------------------------------------------------------

/** The records of one sweep before its end, and what follows from them. */
interface Evidence {
  readonly sweep: Sweep;
  readonly asked: readonly Answer[];
  readonly pages: readonly Answer[];
  readonly rangePages: readonly Answer[];
  readonly steps: ReadonlyMap<Answer, Step>;
  readonly parts: ReadonlyMap<number, Part>;
  readonly standing: readonly Closing[];
  /** Every id that was shown, ascending. */
  readonly seen: readonly Seen[];
  /** Every id that some page marked `new`. */
  readonly newIds: ReadonlySet<bigint>;
  /** Every gone id, with the `n` of the first `alone` question that shows it to be gone. */
  readonly gone: ReadonlyMap<bigint, number>;
  readonly included: IncludedBounds;
  /** The ids of erased applications that pages of the sweep can have shown: those in its range, and its bounds. */
  readonly erasedIds: readonly bigint[];
  readonly findings: Finding[];
}

/** The shapes in which some page showed its own bound, so the source includes bounds there. */
interface IncludedBounds {
  readonly after: ReadonlySet<Shape>;
  readonly before: ReadonlySet<Shape>;
}

/** R, B and m as docs/proof-format.md defines them, learned from the records of one part. */
interface Sizes {
  readonly R: ByShape;
  readonly B: ByShape;
  readonly m: number;
}

/** Totals over all pages of the sweep up to a record. */
interface Totals {
  /** How many pairs of adjacent rows have rising and falling ids. */
  readonly rising: number;
  readonly falling: number;
  readonly erased: number;
  /** How many pairs of adjacent rows grow and shrink in bytes. */
  readonly larger: number;
  readonly smaller: number;
  /** The largest `rows + unreadable` of a page. */
  readonly longest: number;
}

/** What was known before and after one record. */
interface Step {
  readonly before: Sizes;
  readonly after: Sizes;
  readonly totals: Totals;
}

/** The page sizes at the end of a part. */
interface Part extends Sizes {
  readonly limit: ByShape;
  readonly uneven: boolean;
  readonly sorted: Order | null;
}

interface Seen {
  readonly id: bigint;
  /** The `n` of the first page that showed it, and of the first `range` page. */
  readonly first: number;
  readonly firstInRange: number;
  /** Some page showed it with a date before `recentFrom`. */
  readonly isOld: boolean;
  /** Some page showed it with a date before `recentFrom`, or without a date. */
  readonly isOldOrUndated: boolean;
}

type Shape = 'after' | 'before' | 'both';

function shapeOf({ after, before }: Question): Shape {
  if (before === null) return 'after';
  return after === null ? 'before' : 'both';
}

/** For page sizes, the shape `before` counts as `after`. */
function sizeShape(question: Question): keyof ByShape {
  return shapeOf(question) === 'both' ? 'both' : 'after';
}

function gather({ erased }: ProofFile, sweep: Sweep): Evidence {
  const endAt = sweep.end?.n ?? Number.POSITIVE_INFINITY;
  const asked = sweep.answers.filter((answer) => answer.n < endAt);
  const pages = asked.filter((answer) => answer.kind === 'page');
  const included = { after: shapesShowing(pages, 'after'), before: shapesShowing(pages, 'before') };
  return {
    sweep,
    asked,
    pages,
    rangePages: pages.filter((page) => page.question.purpose === 'range'),
    ...measure(asked),
    standing: closedBefore(asked, endAt).standing,
    seen: seenIn(pages, sweep.recentFrom),
    newIds: new Set(
      pages.flatMap(({ shown }) => wholeRows(shown)).flatMap((row) => (row.mark === 'new' ? row.id : [])),
    ),
    gone: goneIn(pages, included),
    included,
    erasedIds: erased.filter((id) => id >= sweep.range.from - 1n && id <= sweep.range.to + 1n),
    findings: [],
  };
}

function say({ sweep, findings }: Evidence, verdict: Word, n: number, reason: string): void {
  findings.push({ verdict, sweep: sweep.number, n, reason });
}

function closedBefore(answers: readonly Answer[], n: number): ClosedRanges {
  const closed = new ClosedRanges();
  for (const answer of answers) if (answer.n < n) closed.apply(answer);
  return closed;
}

function seenIn(pages: readonly Answer[], recentFrom: bigint): Seen[] {
  const seen = new Map<bigint, Seen>();
  for (const { n, question, shown } of pages) {
    const inRange = question.purpose === 'range' ? n : Number.POSITIVE_INFINITY;
    for (const { id, seconds } of wholeRows(shown)) {
      const known = seen.get(id);
      const isOld = seconds !== null && seconds < recentFrom;
      seen.set(id, {
        id,
        first: known?.first ?? n,
        firstInRange: Math.min(known?.firstInRange ?? inRange, inRange),
        isOld: isOld || known?.isOld === true,
        isOldOrUndated: isOld || seconds === null || known?.isOldOrUndated === true,
      });
    }
  }
  return [...seen.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function goneIn(pages: readonly Answer[], included: IncludedBounds): Map<bigint, number> {
  const gone = new Map<bigint, number>();
  for (const { n, question, unreadable, ids } of pages) {
    const id = onlyId(question);
    if (question.purpose !== 'alone' || id === null || !covers({ included }, question, { from: id, to: id })) continue;
    if (unreadable === 0 && !ids.has(id) && !gone.has(id)) gone.set(id, n);
  }
  return gone;
}

/** The id of a question for one id; otherwise null. */
function onlyId({ range }: Question): bigint | null {
  return range !== null && range.from === range.to ? range.from : null;
}

function shapesShowing(pages: readonly Answer[], bound: 'after' | 'before'): Set<Shape> {
  // An erased row may have been the bound.
  const showing = pages.filter(({ question, ids, shown }) => {
    const at = question[bound];
    return question.axis === 'id' && at !== null && (ids.has(at) || erasedAmong(shown) > 0);
  });
  return new Set(showing.map((page) => shapeOf(page.question)));
}

const noTotals: Totals = { rising: 0, falling: 0, erased: 0, larger: 0, smaller: 0, longest: 0 };
const noSizes: Sizes = { R: { after: 0, both: 0 }, B: { after: 0, both: 0 }, m: 0 };

/** Goes through the records in order and learns the page sizes, separately for each part. */
function measure(asked: readonly Answer[]): Pick<Evidence, 'steps' | 'parts'> {
  const steps = new Map<Answer, Step>();
  const parts = new Map<number, Part>();
  let totals = noTotals;
  let gaveAway = false;
  for (const answer of asked) {
    const known = parts.get(answer.part);
    const before = known ?? noSizes;
    const after = answer.kind === 'page' ? grown(before, answer) : before;
    if (answer.kind === 'page') totals = added(totals, answer);
    gaveAway = (known !== undefined && gaveAway) || givesAway(answer, before);
    const { limit, sorted } = answer;
    parts.set(answer.part, { ...after, limit, sorted, uneven: answer.uneven || gaveAway });
    steps.set(answer, { before, after, totals });
  }
  return { steps, parts };
}

function grown({ R, B, m }: Sizes, page: Answer): Sizes {
  const largest = Math.max(m, page.largest);
  if (page.question.purpose !== 'range') return { R, B, m: largest };
  const shape = sizeShape(page.question);
  return {
    R: { ...R, [shape]: Math.max(R[shape], page.length) },
    B: { ...B, [shape]: Math.max(B[shape], page.bytes) },
    m: largest,
  };
}

function added(totals: Totals, page: Answer): Totals {
  const rows = wholeRows(page.shown);
  let { rising, falling } = totals;
  for (const [at, { id }] of rows.entries()) {
    const next = rows[at + 1]?.id ?? id;
    if (next > id) rising += 1;
    if (next < id) falling += 1;
  }
  return {
    rising,
    falling,
    erased: totals.erased + erasedAmong(page.shown),
    larger: totals.larger + page.sizes[0],
    smaller: totals.smaller + page.sizes[1],
    longest: Math.max(totals.longest, page.length),
  };
}

/** True for about as many bytes as the fullest page but a different number of rows: the source limits pages by bytes, not only by rows. */
function givesAway({ kind, question, length, bytes }: Answer, { R, B }: Sizes): boolean {
  if (kind !== 'page' || question.axis !== 'id' || question.purpose === 'walk') return false;
  const shape = sizeShape(question);
  const more = Math.max(length, R[shape]);
  const fewer = Math.min(length, R[shape]);
  return more >= 16 && fewer * 5 <= more * 4 && Math.min(bytes, B[shape]) * 20 >= Math.max(bytes, B[shape]) * 19;
}

/** What records state about pages must follow from the pages. */
function checkStatements(evidence: Evidence): void {
  for (const answer of evidence.asked) {
    const { after, totals } = stepOf(evidence, answer);
    const { limit, sorted, n } = answer;
    if (limit.after > after.R.after || limit.both > after.R.both) {
      say(evidence, 'unproven', n, 'it states a row limit above the longest page');
    }
    if (sorted === null) continue;
    const [along, against] = sorted === 'rising' ? [totals.rising, totals.falling] : [totals.falling, totals.rising];
    if (against > 0 || along + totals.erased < 10) {
      say(evidence, 'unproven', n, `it states that pages are ${sorted}, which they are not`);
    }
  }
}

function stepOf(evidence: Evidence, answer: Answer): Step {
  return evidence.steps.get(answer) ?? { before: noSizes, after: noSizes, totals: noTotals };
}

/** The line of the table in docs/proof-format.md by which a page is short in a shape; null when it is not. */
function shortBy(evidence: Evidence, page: Answer, shape: keyof ByShape): 1 | 2 | 3 | null {
  const part = evidence.parts.get(page.part);
  if (part === undefined || part.limit[shape] < 16 || page.length * 2 >= part.limit[shape]) return null;
  const { m, uneven, sorted } = part;
  const B = part.B[shape];
  const { bytes } = page;
  const { larger, smaller } = stepOf(evidence, page).totals;
  if (m * 8 < B && !uneven) return bytes * 5 < B * 3 ? 1 : null;
  if (sorted !== null) return (bytes + m) * 2 < B || bytes * 4 < B ? 2 : null;
  if (m * 8 < B && larger * 4 <= (larger + smaller) * 3) return bytes * 4 < B ? 3 : null;
  return null;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// Closings
// ---------------------------------------------------------------------------------------------------------------------------------------

type Rule = 'empty' | 'confirmed' | 'single' | 'margin';

interface CheckedClosing extends Closing {
  readonly rule: Rule;
  /** The page that shows that nothing can be missing: for `confirmed` the empty page, otherwise the record's own page. */
  readonly page: Answer;
}

/** Each standing range must follow from the record that closed it. */
function checkClosings(evidence: Evidence): CheckedClosing[] {
  checkFilters(evidence);
  const checked: CheckedClosing[] = [];
  for (const closing of evidence.standing) {
    const { n } = closing.answer;
    const followed = ruleOf(evidence, closing);
    if (followed === null) {
      say(evidence, 'unproven', n, `nothing in the answer closes ${spell(closing.range)}`);
      continue;
    }
    checked.push(followed);
    if (!covers(evidence, followed.page.question, closing.range)) {
      say(evidence, 'unproven', n, `the question does not cover ${spell(closing.range)}`);
    }
    const lacking = knownButLacking(evidence, followed);
    if (lacking !== null) say(evidence, 'unproven', n, `it closes ${spell(closing.range)}, which lacks ${lacking}`);
    if (followed.rule === 'empty' && needsConfirmation(evidence, followed)) {
      say(evidence, 'assumed', n, `${spell(closing.range)} was closed by an empty answer that nothing confirms`);
    }
  }
  return checked;
}

/** A page must not show a row outside the range of its question. */
function checkFilters(evidence: Evidence): void {
  for (const { n, question, ids } of evidence.rangePages) {
    const { range, after, before } = question;
    const elsewhere = [...ids].find((id) => !isWithin(range, id) && id !== after && id !== before);
    if (elsewhere !== undefined) say(evidence, 'unproven', n, `it shows ${elsewhere}, for which it did not ask`);
  }
}

function covers({ included }: Pick<Evidence, 'included'>, question: Question, range: Range): boolean {
  const { purpose, axis, after, before, since } = question;
  if (axis !== 'id' || since !== null) return false;
  const isOneSided = after === null || before === null;
  if (purpose === 'range' && isOneSided && (question.range?.to ?? 0n) < lastId) return false;
  const shape = shapeOf(question);
  const isAfter = after === null || after < range.from || (after === range.from && included.after.has(shape));
  if (!isAfter || before === null) return isAfter;
  if (range.to === noEnd) return false;
  return before > range.to || (before === range.to && included.before.has(shape));
}

function ruleOf(evidence: Evidence, closing: Closing): CheckedClosing | null {
  const { range, answer } = closing;
  if (answer.question.purpose === 'confirm') {
    const page = emptyPageOf(evidence, closing);
    return page === null ? null : { ...closing, rule: 'confirmed', page };
  }
  if (answer.kind !== 'page') return null;
  if (answer.rows === 0) return leavesRoom(evidence, answer) ? { ...closing, rule: 'empty', page: answer } : null;
  const isSingle = range.from === range.to && (answer.ids.has(range.from) || erasedAmong(answer.shown) > 0);
  if (isSingle) return { ...closing, rule: 'single', page: answer };
  return hasMargin(evidence, closing) ? { ...closing, rule: 'margin', page: answer } : null;
}

/** Unreadable elements may have displaced rows, unless the page had room for more. */
function leavesRoom(evidence: Evidence, page: Answer): boolean {
  if (page.unreadable === 0) return true;
  const shape = sizeShape(page.question);
  if (page.limit[shape] >= 16) return shortBy(evidence, page, shape) !== null;
  return page.unreadable * 2 <= stepOf(evidence, page).totals.longest;
}

/** The empty page that this confirmation confirms. */
function emptyPageOf(evidence: Evidence, { range, answer }: Closing): Answer | null {
  const { question } = answer;
  if (!isSame(question.range, range) || rowsIn(answer, range).length > 0) return null;
  if (!confirms(evidence, question, range)) return null;
  const earlier = evidence.asked.findLast(
    (other) => other.n < answer.n && other.question.purpose === 'range' && isSame(other.question.range, range),
  );
  if (earlier?.kind !== 'page' || earlier.rows > 0 || !leavesRoom(evidence, earlier)) return null;
  const isAskedAgain = earlier.question.after === question.after && earlier.question.before === question.before;
  return isAskedAgain ? null : earlier;
}

/** A confirmation must cover the range as well; for an unbounded range it may leave out the far end. */
function confirms(evidence: Evidence, question: Question, range: Range): boolean {
  const { before } = question;
  const isCutOff = range.to === noEnd && before !== null && before > range.from;
  return covers(evidence, isCutOff ? { ...question, before: null } : question, range);
}

/** True when the page shows rows, and far fewer than fit. */
function hasMargin(evidence: Evidence, { range, answer }: Closing): boolean {
  if (answer.rows === 0) return false;
  const shapes = [sizeShape(answer.question), range.to === noEnd ? 'after' : 'both'] as const;
  return shapes.some((shape) => {
    const line = shortBy(evidence, answer, shape);
    return line === 2 ? endsInRow(evidence, { range, answer }) : line !== null;
  });
}

/** In a sorted list, a page that was cut off ends at its last row, and nothing is known beyond it. So the range must end in that row. */
function endsInRow(evidence: Evidence, { range, answer }: Closing): boolean {
  const end = evidence.parts.get(answer.part)?.sorted === 'falling' ? range.from : range.to;
  return answer.ids.has(end) || answer.shown.at(-1) === 'erased';
}

function needsConfirmation(evidence: Evidence, { range, answer }: Closing): boolean {
  const { sweep, pages } = evidence;
  if (range.from === range.to) return false;
  const isInside = range.from > sweep.range.from && range.to !== noEnd && range.to !== sweep.range.to;
  if (answer.limit.both < 16 && isInside) return false;
  if (answer.sorted === null) return true;
  return !pages.some(
    (page) => page.n < answer.n && covers(evidence, page.question, range) && showsRowsAround(page, range),
  );
}

/** True when the page shows rows on both sides of a range and none inside. An erased row counts as a row on a missing side. */
function showsRowsAround(page: Answer, range: Range): boolean {
  if (rowsIn(page, range).length > 0) return false;
  const rows = wholeRows(page.shown);
  const sides = [rows.some((row) => row.id < range.from), rows.some((row) => row.id > range.to)];
  return sides.filter((isShown) => !isShown).length <= erasedAmong(page.shown);
}

/** An id of the range that was known, is not on the page, and is not gone. */
function knownButLacking(evidence: Evidence, { range, answer, page }: CheckedClosing): bigint | null {
  const lacking = wholeRows(page.lacking).filter((row) => contains(range, row.id));
  const shownBefore = seenWithin(evidence, range).filter((seen) => seen.first <= page.knew);
  const known = [...lacking, ...shownBefore].map(({ id }) => id);
  return known.find((id) => !page.ids.has(id) && (evidence.gone.get(id) ?? answer.n) >= answer.n) ?? null;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// Tiling
// ---------------------------------------------------------------------------------------------------------------------------------------

function checkTiling(evidence: Evidence): void {
  const { sweep, standing } = evidence;
  const gap = firstGap(evidence, standing, Number.POSITIVE_INFINITY);
  if (gap !== null) say(evidence, 'unproven', sweep.end?.n ?? 0, `${spell(gap)} is neither closed nor shown`);
}

/** The first range that neither the closed ranges nor the rows of `range` pages up to record `n` cover. */
function firstGap(evidence: Evidence, standing: readonly Closing[], n: number): Range | null {
  const pages = evidence.rangePages.filter((page) => page.n <= n && erasedAmong(page.shown) > 0);
  const places = pages.flatMap((page) => (page.question.range === null ? [] : [placesOf(page, page.question.range)]));
  for (const open of openRanges(evidence.sweep.range, standing)) {
    const shown = seenWithin(evidence, open).filter((seen) => seen.firstInRange <= n);
    for (const gap of openRanges(
      open,
      shown.map(({ id }) => ({ range: { from: id, to: id } })),
    )) {
      for (let id = gap.from; id <= gap.to; id += 1n) {
        if (!takePlace(places, id)) return { from: id, to: gap.to };
      }
    }
  }
  return null;
}

/** The parts of a range that others do not cover. `covered` is ascending. */
function openRanges(whole: Range, covered: readonly { readonly range: Range }[]): Range[] {
  const open: Range[] = [];
  let next = whole.from;
  for (const { range } of covered) {
    if (range.from > next) open.push({ from: next, to: range.from - 1n });
    next = range.to + 1n;
  }
  const end = whole.to === noEnd ? lastId : whole.to;
  if (next <= end) open.push({ from: next, to: end });
  return open;
}

/** The erased rows of a page. Each may have been any one id of its range. */
interface ErasedPlaces {
  readonly range: Range;
  left: number;
}

function placesOf(page: Answer, range: Range): ErasedPlaces {
  return { range, left: erasedAmong(page.shown) };
}

/** Uses the page that ends first: ids are tried in ascending order, so that page is the least useful for later ids. */
function takePlace(places: readonly ErasedPlaces[], id: bigint): boolean {
  const free = places.filter((place) => place.left > 0 && contains(place.range, id));
  const place = free.sort((a, b) => (a.range.to < b.range.to ? -1 : 1))[0];
  if (place === undefined) return false;
  place.left -= 1;
  return true;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// Witnesses
// ---------------------------------------------------------------------------------------------------------------------------------------

function checkWitnesses(evidence: Evidence): void {
  const { sweep, asked } = evidence;
  const [plan, ...others] = asked.filter((answer) => answer.planned !== null);
  if (plan === undefined) {
    say(evidence, 'unproven', sweep.end?.n ?? 0, 'no witness was planned');
    return;
  }
  for (const { n } of others) say(evidence, 'unproven', n, 'witnesses were planned a second time');
  const open = firstGap(evidence, closedBefore(asked, plan.n + 1).standing, plan.n);
  if (open !== null) say(evidence, 'unproven', plan.n, `witnesses were planned while ${spell(open)} was open`);
  checkPlan(evidence, plan, plan.planned ?? []);
  for (const planned of plan.planned ?? []) {
    const isAnswered = asked.some(
      ({ n, question }) => n > plan.n && question.purpose === 'witness' && isSameQuestion(question, planned),
    );
    if (!isAnswered)
      say(evidence, 'unproven', plan.n, `the witness ${spellQuestion(planned)} was planned and never asked`);
  }
  for (const answer of evidence.pages) checkLate(evidence, answer);
}

/** The outermost ids and dates of the rows that closed the ranges. */
interface Outermost {
  readonly isAnyShown: boolean;
  /** True when an erased row may lie further out. */
  readonly isAnyErased: boolean;
  readonly lowest: bigint | null;
  readonly highest: bigint | null;
  readonly earliest: bigint | null;
  readonly latest: bigint | null;
}

function outermost(evidence: Evidence, n: number): Outermost {
  const leaves = evidence.pages.filter((page) => page.n <= n).flatMap(leavesThatCount);
  const rows = wholeRows(leaves);
  const ids = rows.map((row) => row.id);
  const dates = rows.flatMap((row) => row.seconds ?? []);
  return {
    isAnyShown: leaves.length > 0,
    isAnyErased: erasedAmong(leaves) > 0,
    lowest: least(ids),
    highest: greatest(ids),
    earliest: least(dates),
    latest: greatest(dates),
  };
}

function leavesThatCount({ question, shown }: Answer): readonly Leaf[] {
  if (question.purpose === 'range') return shown;
  if (question.purpose !== 'confirm') return [];
  return shown.filter((leaf) => leaf === 'erased' || isWithin(question.range, leaf.id));
}

/** Reports which of the questions that could contradict the sweep are missing in its plan. */
function checkPlan(evidence: Evidence, plan: Answer, planned: readonly Filters[]): void {
  const { low, high, isEndless } = ends(evidence.sweep);
  const { isAnyShown, isAnyErased, ...seen } = outermost(evidence, plan.n);
  const need = (isPlanned: boolean, what: string) => {
    if (!isPlanned) say(evidence, 'unproven', plan.n, `the plan lacks the witness ${what}`);
  };
  const befores = planned.filter(isShape('id', null, 'any', null)).map((question) => question.before);
  const afters = planned.filter(isShape('id', 'any', null, null)).map((question) => question.after);
  const erasedIds = new Set(evidence.erasedIds);
  const isOutermost = (id: bigint) => id === seen.lowest || id === seen.highest || erasedIds.has(id);
  const lowestIds = furtherOut(befores, seen.lowest, isAnyErased, 'below').filter(isOutermost);
  const highestId = least(furtherOut(afters, seen.highest, isAnyErased, 'above').filter(isOutermost));

  if (isAnyShown) need(lowestIds.length > 0, 'below the lowest id');
  if (isAnyShown && isEndless && seen.highest !== lastId) need(highestId !== null, 'above the highest id');
  if (closedBefore(evidence.asked, plan.n + 1).standing.length > 1) {
    need(planned.some(isShape('id', low - 1n, isEndless ? null : high + 1n, null)), 'over the whole range');
  }
  if (lowestIds.length > 0) {
    // It is unknown which of the erased ids was the lowest, so it is enough if one of them has both witnesses.
    const isDated = (id: bigint) => id <= low || planned.some(isShape('id', low - 1n, id, 0n));
    need(lowestIds.some(isDated), 'below the lowest id, with a date');
  }
  if (seen.earliest !== null) {
    const dates = planned.filter(isShape('date', null, 'any', null)).map((question) => question.before);
    need(furtherOut(dates, seen.earliest - day, isAnyErased, 'below').length > 0, 'before the earliest date');
  }
  if (seen.latest !== null) {
    const dates = planned.filter(isShape('date', 'any', null, null)).map((question) => question.after);
    need(furtherOut(dates, seen.latest + day, isAnyErased, 'above').length > 0, 'after the latest date');
  }
  const top = isAnyShown ? highestId : low;
  if (isEndless && top !== null && (!isAnyShown || top < 2n ** 62n)) {
    need(
      afters.some((after) => after !== null && after > top),
      'far above the highest id',
    );
  }
}

/** 26 hours in seconds: a day, and a margin for time zones. */
const day = 93_600n;

function ends({ range }: Sweep): { low: bigint; high: bigint; isEndless: boolean } {
  return { low: range.from, high: range.to, isEndless: range.to === noEnd };
}

/** Tests whether a question has these filters; `any` means a bound that is not null. */
function isShape(axis: Axis, after: bigint | 'any' | null, before: bigint | 'any' | null, since: bigint | null) {
  const fits = (bound: bigint | null, wanted: bigint | 'any' | null) =>
    wanted === 'any' ? bound !== null : bound === wanted;
  return (question: Filters): boolean =>
    question.axis === axis && fits(question.after, after) && fits(question.before, before) && question.since === since;
}

/** The bounds that equal an outermost value, or lie further out where an erased row may have been. */
function furtherOut(
  bounds: readonly (bigint | null)[],
  value: bigint | null,
  isAnyErased: boolean,
  side: 'below' | 'above',
): bigint[] {
  return bounds
    .filter((bound) => bound !== null)
    .filter((bound) => {
      if (bound === value) return true;
      if (!isAnyErased) return false;
      return value === null || (side === 'below' ? bound < value : bound > value);
    });
}

function isSameQuestion(a: Filters, b: Filters): boolean {
  return isShape(b.axis, b.after, b.before, b.since)(a);
}

/** Rows that should have been seen earlier. */
function checkLate(evidence: Evidence, { n, question, shown }: Answer): void {
  const { recentFrom } = evidence.sweep;
  const old = wholeRows(shown).filter((row) => row.seconds === null || row.seconds < recentFrom);
  if (question.purpose === 'confirm') {
    const row = old.find(({ id }) => isWithin(question.range, id));
    if (row !== undefined) say(evidence, 'assumed', n, `it shows ${row.id} in a range that was answered empty`);
  }
  const isNew = old.filter((row) => row.mark === 'new');
  if (question.purpose !== 'witness' || isNew.length === 0) return;
  const closed = closedBefore(evidence.asked, n);
  const late = isNew.find((row) => closed.has(row.id));
  if (late !== undefined) say(evidence, 'assumed', n, `a witness shows ${late.id}, which the sweep had not seen`);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// Audits
// ---------------------------------------------------------------------------------------------------------------------------------------

/** An audit contradicts the certificates of its sweep whose range contains this id (for a sweep by date: this second). */
interface Contradiction {
  readonly at: bigint;
  readonly finding: Finding;
}

function contradictions(sweep: Sweep): Contradiction[] {
  const found: Contradiction[] = [];
  const audits = sweep.answers.filter(({ n, kind }) => sweep.end !== null && n > sweep.end.n && kind === 'page');
  for (const { n, question, shown } of audits) {
    const only = onlyId(question);
    for (const { id, seconds, mark } of wholeRows(shown)) {
      const at = sweep.axis === 'id' ? id : seconds;
      if (at === null || !contains(sweep.range, at)) continue;
      const say = (reason: string) =>
        found.push({
          at,
          finding: { verdict: 'unproven', sweep: sweep.number, n, reason: `an audit shows ${id}, ${reason}` },
        });
      if (mark === 'new' && seconds !== null && seconds < sweep.recentFrom) say('which the sweep had not seen');
      if (id === only) say('which an answer had left out');
    }
  }
  return found;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// What makes it unproven
// ---------------------------------------------------------------------------------------------------------------------------------------

function checkUnproven(evidence: Evidence): void {
  const { sweep, asked, pages, gone, newIds } = evidence;
  const { end } = sweep;
  if (end === null) say(evidence, 'unproven', asked.at(-1)?.n ?? 0, 'the sweep has no end');
  if (end?.certificate === 'unproven') say(evidence, 'unproven', end.n, 'the sweep ended unproven');
  const [open] = end?.open ?? [];
  if (end !== null && open !== undefined) say(evidence, 'unproven', end.n, `the sweep left ${spell(open)} open`);
  const differs = pages.find((page) => page.echo === 'differs');
  if (differs !== undefined) say(evidence, 'unproven', differs.n, 'the answer repeats other filters than were sent');
  const goneAt = [...gone].flatMap(([id, n]) => (newIds.has(id) ? [] : [n]));
  if (goneAt.length > Math.max(20, Math.floor(sweep.heldBefore / 50))) {
    say(evidence, 'unproven', goneAt.at(-1) ?? 0, `${goneAt.length} applications that were stored before are gone`);
  }
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// What makes it assumed
// ---------------------------------------------------------------------------------------------------------------------------------------

/** True when closings, tiling and witnesses must be checked: the sweep read by id and claims more than unproven. */
function isProofById(evidence: Evidence): boolean {
  const { sweep, asked } = evidence;
  const walk = asked.find((answer) => answer.question.purpose === 'walk');
  if (sweep.axis === 'date') say(evidence, 'assumed', 0, 'the sweep is by date, and dates are not unique');
  if (walk !== undefined) say(evidence, 'assumed', walk.n, 'the sweep read page by page, by one filter');
  const claims = sweep.end !== null && sweep.end.certificate !== 'unproven';
  return claims && sweep.axis === 'id' && walk === undefined;
}

function checkAssumed(evidence: Evidence, closings: readonly CheckedClosing[]): void {
  checkAnswers(evidence, closings);
  checkAmount(evidence);
  checkConfirmations(evidence);
  checkReappeared(evidence);
  checkShrunk(evidence);
  checkReach(evidence);
  const goneId = [...evidence.gone].find(([id]) => evidence.newIds.has(id));
  if (goneId !== undefined) say(evidence, 'assumed', goneId[1], `${goneId[0]} appeared and went during the sweep`);
}

function checkAnswers(evidence: Evidence, closings: readonly CheckedClosing[]): void {
  const { pages } = evidence;
  const absent = pages.find((page) => page.echo === 'absent');
  if (absent !== undefined) say(evidence, 'assumed', absent.n, 'the answer does not repeat its filters');
  const cached = pages.find((page) => page.cached);
  if (cached !== undefined) say(evidence, 'assumed', cached.n, 'the answer came from a cache');
  const weak = closings.find(({ page }) => page.question.purpose === 'range' && page.weakEmpty);
  if (weak !== undefined) say(evidence, 'assumed', weak.page.n, 'the answer is empty without an empty list');
}

/** Too few applications show nothing about the page limit. */
function checkAmount(evidence: Evidence): void {
  const { sweep, pages } = evidence;
  const endAt = sweep.end?.n ?? 0;
  const isAnyShown = pages.some((page) => page.rows > 0);
  if (!isAnyShown && sweep.range.from === 1n && sweep.range.to === noEnd) {
    say(evidence, 'assumed', endAt, 'the source showed nothing at all');
  }
  if (isAnyShown && longestPage(evidence) < 16) {
    say(evidence, 'assumed', endAt, 'no page is long enough to tell whether pages are cut off');
  }
}

function longestPage({ pages }: Evidence): number {
  return pages.reduce((longest, page) => Math.max(longest, page.length), 0);
}

function checkConfirmations(evidence: Evidence): void {
  for (const answer of evidence.asked) {
    const { kind, question, unreadable } = answer;
    if (question.purpose !== 'confirm') continue;
    if (kind === 'refused') say(evidence, 'assumed', answer.n, 'the source refused to confirm an empty answer');
    if (kind === 'overflow' && answer.closed.length > 0)
      say(evidence, 'assumed', answer.n, 'the answer that should confirm an empty one was abandoned');
    if (kind !== 'page' || question.range === null || rowsIn(answer, question.range).length > 0) continue;
    if (unreadable * 2 > stepOf(evidence, answer).totals.longest) {
      say(evidence, 'assumed', answer.n, 'the confirmation is full of elements that cannot be read');
    }
  }
}

/** Finds an id that exists although pages with room for it left it out. */
function checkReappeared(evidence: Evidence): void {
  const askedAt = new Map<bigint, number>();
  for (const alone of evidence.asked) {
    const id = onlyId(alone.question);
    if (alone.question.purpose !== 'alone' || id === null) continue;
    const since = askedAt.get(id) ?? 0;
    askedAt.set(id, alone.n);
    if (!alone.ids.has(id)) continue;
    const lacking = evidence.pages.filter(
      (page) => page.n > since && page.n < alone.n && wholeRows(page.lacking).some((row) => row.id === id),
    );
    const hadRoom = lacking.every((page) => page.bytes + alone.bytes <= fullestPage(evidence, page, alone.n));
    if (lacking.length > 0 && hadRoom) say(evidence, 'assumed', alone.n, `pages with room for ${id} left it out`);
  }
}

/** B for the shape and part of a page, up to record `n`. */
function fullestPage({ rangePages }: Evidence, { part, question }: Answer, n: number): number {
  const shape = sizeShape(question);
  const alike = rangePages.filter((page) => page.n <= n && page.part === part && sizeShape(page.question) === shape);
  return alike.reduce((most, page) => Math.max(most, page.bytes), 0);
}

/** Finds a page that is far smaller than those before it and lacks applications that others show. */
function checkShrunk(evidence: Evidence): void {
  for (const page of evidence.rangePages) {
    const { before } = stepOf(evidence, page);
    const shape = sizeShape(page.question);
    const R = before.R[shape];
    if (page.length * 2 >= R || (page.bytes + before.m) * 2 >= before.B[shape] || page.question.range === null)
      continue;
    const lacking = seenWithin(evidence, page.question.range).filter(
      ({ id, isOld }) => isOld && !page.ids.has(id) && !evidence.gone.has(id),
    );
    if (lacking.length > Math.max(2, R / 8)) {
      say(evidence, 'assumed', page.n, `pages shrank: it lacks ${lacking.length} applications that others show`);
    }
  }
}

/** Checks, where it matters, whether pages show that the source applies filters before it cuts off the page. */
function checkReach(evidence: Evidence): void {
  const { sweep } = evidence;
  const endAt = sweep.end?.n ?? 0;
  const old = seenWithin(evidence, sweep.range).filter((seen) => seen.isOldOrUndated).length;
  const pairs = comparePages(evidence);
  const isMoreThanPage = old * 2 > longestPage(evidence) * 3;
  const needsReach = isMoreThanPage || (pairs.isCutInNoOrder && old >= 16);
  if ((!needsReach && evidence.gone.size === 0) || hasReach(evidence, pairs)) return;
  if (needsReach) say(evidence, 'assumed', endAt, 'no question shows that filters act before the page is cut off');
  const edge = goneAtEdge(evidence);
  if (edge !== null)
    say(evidence, 'assumed', evidence.gone.get(edge) ?? endAt, `${edge} is gone at the edge of the list`);
}

type Reach = 'upwards' | 'downwards' | 'inner';

/** What pages show about earlier pages that asked for the same ids and more. */
interface Pairs {
  readonly reached: ReadonlySet<Reach>;
  /** True when an earlier page of an unordered list left out an existing row. */
  readonly isCutInNoOrder: boolean;
  /** The orders in which the source cannot have chosen the rows of an earlier page. */
  readonly notChosen: ReadonlySet<Order>;
}

function comparePages(evidence: Evidence): Pairs {
  const { rangePages, asked } = evidence;
  const last = asked.at(-1);
  const { rising, falling } = last === undefined ? noTotals : stepOf(evidence, last).totals;
  const isMixed = Math.max(rising, falling) * 4 <= (rising + falling) * 3;
  const old = new Set(evidence.seen.filter((seen) => seen.isOld).map(({ id }) => id));
  const reached = new Set<Reach>();
  const notChosen = new Set<Order>();
  let isCutInNoOrder = false;
  for (const later of rangePages) {
    for (const earlier of rangePages) {
      if (earlier.n >= later.n) break;
      const reach = movedInwards(earlier.question.range, later.question.range);
      const range = later.question.range;
      if (reach === null || range === null) continue;
      const left = leftOut(evidence, earlier, later);
      if (left.length > 0) reached.add(reach);
      if (!left.some((id) => old.has(id))) continue;
      if (isMixed && range.to !== noEnd) isCutInNoOrder = true;
      const ids = [...earlier.ids];
      if (ids.some((id) => id >= range.to)) notChosen.add('rising');
      if (ids.some((id) => id <= range.from)) notChosen.add('falling');
    }
  }
  return { reached, isCutInNoOrder, notChosen };
}

/** Only the filter towards the far end of a list can hide rows; if rows were chosen in no order, both filters can. */
function hasReach({ asked, pages }: Evidence, { reached, notChosen }: Pairs): boolean {
  const sorted = asked.at(-1)?.sorted ?? null;
  if (sorted !== null) return reached.has('inner') || reached.has(sorted === 'rising' ? 'upwards' : 'downwards');
  // An erased row may be the one that showed it.
  const isAnyErased = pages.some((page) => erasedAmong(page.shown) > 0);
  if (notChosen.size < 2 || isAnyErased) return reached.size > 0;
  return reached.has('upwards') && reached.has('downwards');
}

function movedInwards(outer: Range | null, inner: Range | null): Reach | null {
  if (outer === null || inner === null || isSame(outer, inner) || !within(inner, outer)) return null;
  if (inner.to === outer.to) return 'upwards';
  return inner.from === outer.from ? 'downwards' : 'inner';
}

/** The ids that the later page shows in its range and that the earlier page lacks, although it asked for them. */
function leftOut(evidence: Evidence, earlier: Answer, later: Answer): bigint[] {
  return [...later.ids].filter(
    (id) =>
      !earlier.ids.has(id) &&
      isWithin(later.question.range, id) &&
      covers(evidence, earlier.question, { from: id, to: id }),
  );
}

/** A gone id in a position where a page limit would leave it out. */
function goneAtEdge(evidence: Evidence): bigint | null {
  const { sweep, asked, pages, gone } = evidence;
  const goneIds = [...gone.keys()];
  if (!pages.some((page) => page.rows > 0)) return goneIds[0] ?? null;
  if (longestPage(evidence) !== sweep.longestBefore) return null;
  const plan = asked.find((answer) => answer.planned !== null);
  const { lowest: low, highest: high } = outermost(evidence, plan?.n ?? 0);
  const last = asked.at(-1);
  const { rising, falling } = last === undefined ? noTotals : stepOf(evidence, last).totals;
  const threeQuarters = (rising + falling) * 3;
  if (rising * 4 > threeQuarters) return goneIds.find((id) => high === null || id > high) ?? null;
  if (falling * 4 > threeQuarters) return goneIds.find((id) => low === null || id < low) ?? null;
  return goneIds[0] ?? null;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// Ranges and ids
// ---------------------------------------------------------------------------------------------------------------------------------------

function contains({ from, to }: Range, id: bigint): boolean {
  return from <= id && id <= to;
}

function isWithin(range: Range | null, id: bigint | null): boolean {
  return range !== null && id !== null && contains(range, id);
}

function within(inner: Range, outer: Range): boolean {
  return outer.from <= inner.from && inner.to <= outer.to;
}

function isSame(a: Range | null, b: Range | null): boolean {
  return a !== null && b !== null && a.from === b.from && a.to === b.to;
}

function rowsIn(page: Answer, range: Range): Row[] {
  return wholeRows(page.shown).filter((row) => contains(range, row.id));
}

function seenWithin({ seen }: Evidence, range: Range): readonly Seen[] {
  const begin = firstIndex(seen, ({ id }) => id >= range.from);
  const end = firstIndex(seen, ({ id }) => id > range.to);
  return seen.slice(begin, end);
}

/** The index of the first element that passes a test, by binary search: all later elements must pass as well. */
function firstIndex<Item>(items: readonly Item[], passes: (item: Item) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(items[middle] as Item)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function least(values: readonly bigint[]): bigint | null {
  return values.reduce<bigint | null>((a, b) => (a === null || b < a ? b : a), null);
}

function greatest(values: readonly bigint[]): bigint | null {
  return values.reduce<bigint | null>((a, b) => (a === null || b > a ? b : a), null);
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// The report
// ---------------------------------------------------------------------------------------------------------------------------------------

function spell({ from, to }: Range): string {
  return from === to ? `${from}` : `${from} to ${to === noEnd ? 'infinity' : to}`;
}

function spellMoment(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

function spellQuestion({ axis, after, before, since }: Filters): string {
  return `by ${axis} after ${after ?? 'nothing'}, before ${before ?? 'nothing'}${since === null ? '' : `, since ${since}`}`;
}

function shownRange({ from, to }: Range): { low: string; high: string | null } {
  return { low: String(from), high: to === noEnd ? null : String(to) };
}

function describeSweep(sweep: Sweep, judgement: Judgement | undefined): CheckedSweep {
  const closedBy: Record<string, number> = {};
  for (const { rule } of judgement?.closings ?? []) closedBy[rule] = (closedBy[rule] ?? 0) + 1;
  const audits = sweep.answers.filter((answer) => answer.question.purpose === 'audit').length;
  return {
    sweep: sweep.number,
    axis: sweep.axis,
    ...shownRange(sweep.range),
    questions: sweep.answers.length - audits,
    audits,
    supports: lowest(judgement?.findings.map((finding) => finding.verdict) ?? ['unproven']),
    closedBy,
    erased: sweep.answers.flatMap(erasedRows),
  };
}

/** The positions of erased rows, given by the rows on either side. */
function erasedRows({ n, shown }: Answer): ErasedRows[] {
  const found: ErasedRows[] = [];
  let left: string | null = null;
  let rows = 0;
  const close = (right: string | null) => {
    if (rows > 0) found.push({ n, rows, between: [left, right] });
    left = right;
    rows = 0;
  };
  for (const leaf of shown) {
    if (leaf === 'erased') rows += 1;
    else close(String(leaf.id));
  }
  close(null);
  return found;
}

const reasonsShown = 10;

/** The report as text. */
export function renderReport(report: Report): string {
  const lines = [`advertiser ${report.advertiser ?? 'unknown'}, exported at ${report.exportedAt ?? 'an unknown time'}`];
  for (const sweep of report.sweeps) lines.push(...renderSweep(sweep));
  for (const certificate of report.certificates) lines.push(...renderCertificate(certificate));
  if (report.findings.length > 0) lines.push('the file as a whole', ...renderFindings(report.findings));
  lines.push('', renderVerdict(report));
  return `${lines.join('\n')}\n`;
}

function renderSweep(sweep: CheckedSweep): string[] {
  const closed = Object.entries(sweep.closedBy).map(([rule, ranges]) => `${ranges} ${rule}`);
  const axis = sweep.axis === 'id' ? 'ids' : 'dates';
  const lines = [
    `sweep ${sweep.sweep}: ${axis} ${sweep.low} to ${sweep.high ?? 'infinity'}, ${sweep.questions} questions, ${sweep.audits} audits`,
    `  its records support: ${sweep.supports}${closed.length > 0 ? ` (ranges closed: ${closed.join(', ')})` : ''}`,
  ];
  const erased = sweep.erased.map(
    ({ n, rows, between: [left, right] }) =>
      `  n ${n}: ${rows === 1 ? 'one erased row' : `${rows} erased rows`} between ${left ?? 'the beginning'} and ${right ?? 'the end'}`,
  );
  return [...lines, ...firstOf(erased)];
}

function renderCertificate(certificate: CheckedCertificate): string[] {
  const { low, high, sweep, completeThrough, says, supports, refused, findings } = certificate;
  const verdict = refused ? `refused, its records support ${supports}` : supports === 'forged' ? 'forged' : 'supported';
  return [
    `certificate for ids ${low} to ${high ?? 'infinity'} (sweep ${sweep}): ${says}: ${verdict}`,
    `  speaks of what was submitted before ${completeThrough}`,
    ...renderFindings(findings.filter((finding) => finding.verdict !== 'forged')),
  ];
}

function renderFindings(findings: readonly Finding[]): string[] {
  return firstOf(findings.map((finding) => `  ${finding.verdict}: ${renderFinding(finding)}`));
}

function renderFinding({ sweep, n, reason }: Finding): string {
  const place = [...(sweep === null ? [] : [`sweep ${sweep}`]), ...(n === null ? [] : [`n ${n}`])].join(', ');
  return place === '' ? reason : `${place}: ${reason}`;
}

function firstOf(lines: readonly string[]): string[] {
  const more = lines.length - reasonsShown;
  return more > 0 ? [...lines.slice(0, reasonsShown), `  and ${more} more`] : [...lines];
}

/** One line: the verdict, and the first record that causes it. */
function renderVerdict({ verdict, certificates, findings }: Report): string {
  const refused = certificates.find((certificate) => certificate.refused);
  if (verdict !== 'forged' && refused !== undefined) {
    const { says, first } = refused;
    return `verdict: ${verdict}, refused: a certificate says ${says} (${first === null ? '' : renderFinding(first)})`;
  }
  const all = [...findings, ...certificates.flatMap((certificate) => certificate.findings)];
  const first = all.find((finding) => finding.verdict === verdict);
  return first === undefined ? `verdict: ${verdict}` : `verdict: ${verdict} (${renderFinding(first)})`;
}

// ---------------------------------------------------------------------------------------------------------------------------------------
// The command
// ---------------------------------------------------------------------------------------------------------------------------------------

const usage = 'node examples/check-proof.ts FILE [--noted SWEEP:HASH] [--rows DUMP] [--json]';

function readLines(file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

function main(args: string[]): number {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      noted: { type: 'string', multiple: true },
      rows: { type: 'string' },
      json: { type: 'boolean' },
    },
  });
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new WrongUse('name one file');
  const report = checkProof(readLines(file), {
    ...(values.noted && { noted: values.noted }),
    ...(values.rows !== undefined && { rows: readLines(values.rows) }),
  });
  process.stdout.write(values.json ? `${JSON.stringify(report, null, 2)}\n` : renderReport(report));
  return report.supported ? 0 : 1;
}

if (import.meta.main) {
  try {
    process.exitCode = main(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\nusage: ${usage}\n`);
    process.exitCode = 2;
  }
}

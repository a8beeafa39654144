// The independent checker against proofs that are written here by hand, from docs/proof-format.md: neither side shares code with Intake.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { checkProof, type Options, type Report, renderReport, WrongUse } from '../../examples/check-proof.ts';

// ---- A writer of proofs ----

// biome-ignore lint/suspicious/noExplicitAny: records are looked at and forged member by member.
type Json = any;
type Leaf = [string, string | null, string, string] | [string];
interface Line {
  type: 'sweep' | 'answer' | 'end';
  sealed: Json;
  leaves?: Leaf[];
  bodyKey?: string | null;
}

const sha256 = (...parts: (string | Buffer)[]) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();
const hex = (text: string) => sha256(text).toString('hex');

function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const names = Object.keys(value).sort((a, b) => (a < b ? -1 : 1));
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}

function leafHash(leaf: Leaf): Buffer {
  if (leaf.length === 1) return Buffer.from(leaf[0], 'hex');
  const [id, seconds, mark, salt] = leaf;
  return sha256(Buffer.from([0]), Buffer.from(salt, 'hex'), `${id} ${seconds ?? '-'} ${mark}`);
}

function root(nodes: Buffer[]): string | null {
  if (nodes.length < 2) return nodes[0]?.toString('hex') ?? null;
  const above: Buffer[] = [];
  for (let at = 0; at < nodes.length; at += 2) {
    const [left, right] = [nodes[at] as Buffer, nodes[at + 1]];
    above.push(right ? sha256(Buffer.from([1]), left, right) : left);
  }
  return root(above);
}

/** Numbers, roots and hashes as they should be: also what a forger computes anew over an edit. */
function seal(lines: Line[]): string[] {
  let before: Buffer = Buffer.alloc(32);
  return lines.map(({ type, sealed, leaves, bodyKey }, n) => {
    sealed.n = n;
    if (leaves) {
      sealed.answer.root = root(leaves.map(leafHash));
      sealed.answer.lacks = leaves.length - sealed.answer.rows;
    }
    before = sha256(before, canonical(sealed));
    return JSON.stringify({ type, n, sealed, leaves, bodyKey, hash: before.toString('hex') });
  });
}

interface Application {
  id: bigint;
  seconds: bigint | null;
  bytes: number;
}
const startedAt = 1_763_290_000_000;
const recentFrom = 1_763_289_100n;
const noId = 2n ** 63n;

const list = (amount: number, step = 3n): Application[] =>
  Array.from({ length: amount }, (_, at) => ({
    id: 100n + BigInt(at) * step,
    seconds: at % 11 === 5 ? null : 1_721_000_000n + BigInt(at) * 60n,
    bytes: 700 + ((at * 37) % 60),
  }));

interface Source {
  applications: Application[];
  /** Rows of a page. */
  rows: number;
  order: 'rising' | 'falling' | 'mixed';
  /** The source shows the bounds of a question, too. */
  inclusive?: boolean;
  /** Bytes end its pages, not only rows. */
  uneven?: boolean;
}
interface Setting extends Source {
  held?: Application[];
  low?: bigint;
  high?: bigint | null;
  number?: string;
}

/** A small sweep that keeps the rules of the page: asks, splits at a row in the middle, and closes what the rules allow. */
class Sweeper {
  readonly lines: Line[] = [];
  readonly stored = new Map<bigint, boolean>();
  readonly gone = new Set<bigint>();
  readonly closed: [bigint, bigint | null][] = [];
  readonly shown = new Map<bigint, Application>();
  readonly R = { after: 0, both: 0 };
  readonly B = { after: 0, both: 0 };
  /** Bounds that a page showed, by the shape of its question. */
  readonly includes = new Set<string>();
  m = 0;
  adjacent = 0;
  readonly setting: Setting;
  readonly low: bigint;
  readonly high: bigint | null;

  constructor(setting: Setting) {
    this.setting = setting;
    this.low = setting.low ?? 1n;
    this.high = setting.high ?? null;
    for (const { id } of setting.held ?? []) this.stored.set(id, true);
  }

  run(): Line[] {
    this.lines.push({
      type: 'sweep',
      bodyKey: 'ab'.repeat(32),
      sealed: {
        format: 1,
        advertiser: '7001',
        sweep: this.setting.number ?? '1',
        purpose: 'recheck',
        axis: 'id',
        low: `${this.low}`,
        high: this.high === null ? null : `${this.high}`,
        startedAt,
        recentFrom: `${recentFrom}`,
        heldBefore: this.setting.held?.length ?? 0,
        longestBefore: 0,
        previous: [],
        bodyKeyHash: sha256(Buffer.from('ab'.repeat(32), 'hex')).toString('hex'),
      },
    });
    this.read(this.low, this.high);
    const last = this.lines.at(-1) as Line;
    last.sealed.planned = this.plan();
    for (const [axis, after, before, since] of last.sealed.planned) {
      this.ask('witness', { axis, after, before, since });
    }
    const longest = Math.max(...this.lines.flatMap((line) => line.sealed.answer?.rows ?? []));
    const certificate = (longest > 0 || this.low === 1n) && longest < 16 ? 'assumed' : 'proven';
    this.lines.push({
      type: 'end',
      sealed: { certificate, risk: 'none', reason: '', open: [], absent: this.gone.size },
    });
    return this.lines;
  }

  ask(purpose: string, filters: Json, from: bigint | null = null, to: bigint | null = null): Line {
    const { axis = 'id', after, before, since = null } = filters;
    const rows = this.page(axis, after, before);
    const lacking = [...this.stored.keys()].filter(
      (id) =>
        purpose !== 'witness' &&
        from !== null &&
        id >= from &&
        (to === null || id <= to) &&
        !rows.some((row) => row.id === id),
    );
    const n = this.lines.length;
    const mark = (row: Application) => (this.stored.has(row.id) ? 'held' : 'new');
    const leaves: Leaf[] = [
      ...rows.map(
        (row, at): Leaf => [
          `${row.id}`,
          row.seconds === null ? null : `${row.seconds}`,
          mark(row),
          hex(`${n} ${at}`).slice(32),
        ],
      ),
      ...lacking.map((id, at): Leaf => [`${id}`, null, 'lacking', hex(`${n} lacking ${at}`).slice(32)]),
    ];
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 40);
    const shape = after !== null && before !== null ? 'both' : 'after';
    if (purpose === 'range') {
      this.R[shape] = Math.max(this.R[shape], rows.length);
      this.B[shape] = Math.max(this.B[shape], bytes);
      for (const row of rows) this.shown.set(row.id, row);
      if (rows.some((row) => `${row.id}` === after)) this.includes.add(`${shape} after`);
      if (rows.some((row) => `${row.id}` === before)) this.includes.add(`${shape} before`);
    }
    this.m = Math.max(this.m, ...rows.map((row) => row.bytes));
    this.adjacent += Math.max(0, rows.length - 1);
    for (const row of rows) this.stored.set(row.id, true);
    const { order } = this.setting;
    const line: Line = {
      type: 'answer',
      leaves,
      sealed: {
        part: 1,
        knew: n - 1,
        seq: `${900 + n}`,
        sentAt: startedAt + n,
        tookMs: 5,
        question: {
          purpose,
          axis,
          after,
          before,
          since,
          from: from === null ? null : `${from}`,
          to: to === null ? null : `${to}`,
        },
        answer: {
          kind: 'page',
          rows: rows.length,
          unreadable: 0,
          bytes,
          largest: Math.max(0, ...rows.map((row) => row.bytes)),
          sizes: [0, 0],
          echo: 'matches',
          weakEmpty: false,
          cached: false,
          body: hex(`body ${n}`).slice(32),
        },
        closed: [],
        opened: [],
        limit: [this.R.after, this.R.both],
        uneven: this.setting.uneven === true,
        sorted: order !== 'mixed' && this.adjacent >= 10 ? order : null,
        planned: null,
      },
    };
    this.lines.push(line);
    return line;
  }

  page(axis: string, after: string | null, before: string | null): Application[] {
    const { applications, order, rows, inclusive } = this.setting;
    const value = (row: Application) => (axis === 'id' ? row.id : (row.seconds ?? -1n));
    const rank = (row: Application) =>
      order === 'rising' ? Number(row.id) : order === 'falling' ? -Number(row.id) : (Number(row.id) * 7919) % 1009;
    return applications
      .filter((row) => after === null || value(row) > BigInt(after) || (inclusive && value(row) === BigInt(after)))
      .filter((row) => before === null || value(row) < BigInt(before) || (inclusive && value(row) === BigInt(before)))
      .sort((a, b) => rank(a) - rank(b))
      .slice(0, rows);
  }

  close(line: Line, from: bigint, to: bigint | null): void {
    line.sealed.closed.push([`${from}`, to === null ? null : `${to}`]);
    this.closed.push([from, to]);
  }

  read(from: bigint, to: bigint | null): void {
    if (to !== null && from > to) return;
    const shape = to === null ? 'after' : 'both';
    const [below, above] = ['after', 'before'].map((bound) => (this.includes.has(`${shape} ${bound}`) ? 0n : 1n));
    const filters = { after: `${from - (below ?? 1n)}`, before: to === null ? null : `${to + (above ?? 1n)}` };
    const line = this.ask('range', filters, from, to);
    const lacking = (line.leaves ?? []).flatMap((leaf) => (leaf[2] === 'lacking' ? BigInt(leaf[0]) : []));
    const unknown = lacking.filter((id) => !this.gone.has(id));
    const isRead = line.sealed.answer.rows < this.setting.rows;
    if (unknown.length > 0 && isRead) {
      for (const id of unknown) {
        this.gone.add(id);
        this.ask('alone', { after: `${id - 1n}`, before: `${id + 1n}` }, id, id);
      }
      this.read(from, to);
      return;
    }
    const short = this.shortBy(line, to);
    if (line.sealed.answer.rows === 0) this.closeEmpty(line, from, to);
    else if (short === 'bytes') this.close(line, from, to);
    else if (short === 'order') this.closeToRow(line, from, to);
    else this.split(line, from, to);
  }

  /** By which part of the table a page is short: by its bytes alone, or by the order of the list, too. */
  shortBy({ sealed }: Line, to: bigint | null): 'bytes' | 'order' | null {
    const { rows, bytes } = sealed.answer;
    const shape = to === null ? 'after' : 'both';
    const B = this.B[shape];
    const isSmall = this.m * 8 < B;
    if (this.R[shape] < 16 || rows * 2 >= this.R[shape]) return null;
    if (isSmall && !this.setting.uneven) return bytes < 0.6 * B ? 'bytes' : null;
    if (sealed.sorted !== null) return (bytes + this.m) * 2 < B || bytes * 4 < B ? 'order' : null;
    return isSmall && bytes * 4 < B ? 'bytes' : null;
  }

  closeToRow(line: Line, from: bigint, to: bigint | null): void {
    const last = BigInt(line.leaves?.filter((leaf) => leaf[2] !== 'lacking').at(-1)?.[0] ?? 0);
    if (this.setting.order === 'rising') {
      this.close(line, from, last);
      this.read(last + 1n, to);
    } else {
      this.close(line, last, to);
      this.read(from, last - 1n);
    }
  }

  closeEmpty(line: Line, from: bigint, to: bigint | null): void {
    const isInside = from > this.low && to !== null && to !== this.high;
    const needsNone = from === to || (isInside && this.R.both < 16) || this.isBetweenRows(line, from, to);
    const { after, before } = line.sealed.question;
    const other = before === null ? { after, before: `${noId - 1n}` } : { after: null, before };
    this.close(needsNone ? line : this.ask('confirm', other, from, to), from, to);
  }

  /** An earlier page of a sorted list shows rows on both sides. */
  isBetweenRows({ sealed }: Line, from: bigint, to: bigint | null): boolean {
    if (sealed.sorted === null || to === null) return false;
    return this.lines.slice(1).some(({ sealed: { question, answer: page }, leaves = [] }) => {
      const ids = leaves.slice(0, page.rows).map(([id]) => BigInt(id));
      const isAsked = question.axis === 'id' && question.since === null && BigInt(question.after ?? 0) < from;
      const isAround = ids.some((id) => id < from) && ids.some((id) => id > to);
      return isAsked && isAround && !ids.some((id) => id >= from && id <= to);
    });
  }

  split(line: Line, from: bigint, to: bigint | null): void {
    const ids = (line.leaves ?? [])
      .filter((leaf) => leaf[2] !== 'lacking')
      .map((leaf) => BigInt(leaf[0]))
      .filter((id) => id >= from && (to === null || id <= to))
      .sort((a, b) => Number(a - b));
    const middle = ids[ids.length >> 1];
    if (middle === undefined) {
      this.read(from, to);
      return;
    }
    this.read(from, middle - 1n);
    this.read(middle + 1n, to);
  }

  plan(): Json[] {
    const rows = [...this.shown.values()];
    const ids = rows.map((row) => row.id).sort((a, b) => Number(a - b));
    const dates = rows.flatMap((row) => row.seconds ?? []).sort((a, b) => Number(a - b));
    const [lowest, highest, earliest, latest] = [ids[0], ids.at(-1), dates[0], dates.at(-1)];
    const plan: Json[] = [];
    // Places inside, as a sweep may ask at any of them.
    if (ids[2] !== undefined) plan.push(['id', null, `${ids[2]}`, null], ['id', `${ids.at(-3)}`, null, null]);
    if (lowest !== undefined) plan.push(['id', null, `${lowest}`, null]);
    if (highest !== undefined && this.high === null) plan.push(['id', `${highest}`, null, null]);
    if (this.closed.length > 1) {
      plan.push(['id', `${this.low - 1n}`, this.high === null ? null : `${this.high + 1n}`, null]);
    }
    if (lowest !== undefined && lowest > this.low) plan.push(['id', `${this.low - 1n}`, `${lowest}`, '0']);
    if (earliest !== undefined) plan.push(['date', null, `${earliest - 93_600n}`, null]);
    if (latest !== undefined) plan.push(['date', `${latest + 93_600n}`, null, null]);
    if (this.high === null) plan.push(['id', `${(highest ?? this.low) + 1_000_000n}`, null, null]);
    return plan;
  }
}

type StoredRow = [string, string, string | null] | [string];
interface Proof {
  sweeps: Line[][];
  rows: StoredRow[];
}

function proofOf(...settings: Setting[]): Proof {
  const sweeps = settings.map((setting) => new Sweeper(setting).run());
  const held = new Set(settings.flatMap((setting) => (setting.held ?? []).map((row) => row.id)));
  const ids = new Set([...held, ...settings.flatMap((setting) => setting.applications.map((row) => row.id))]);
  const second = startedAt / 1000;
  const rows = [...ids]
    .sort((a, b) => Number(a - b))
    .map((id): StoredRow => [`${id}`, `${held.has(id) ? second - 500 : second + 1}`, null]);
  return { sweeps, rows };
}

const lastHash = (lines: string[]): string => JSON.parse(lines.at(-1) ?? '').hash;
const sealedOf = (line: Line | undefined): Json => line?.sealed;

function certificatesOf(sweeps: Line[][]): Json[] {
  return sweeps.map((lines) => {
    const { low, high, sweep } = sealedOf(lines[0]);
    const certificate = lines.find((line) => line.type === 'end')?.sealed.certificate ?? 'proven';
    const last = lastHash(seal(lines));
    return {
      low,
      high,
      certificate,
      risk: 'none',
      reason: '',
      sweep,
      startedAt,
      completeThrough: Number(recentFrom) * 1000,
      last,
    };
  });
}

/** The lines of the file. */
function write(proof: Proof, certificates = certificatesOf(proof.sweeps)): string[] {
  return [
    JSON.stringify({ type: 'proof', format: 1, advertiser: '7001', exportedAt: startedAt, certificates }),
    ...proof.sweeps.flatMap(seal),
    JSON.stringify({ type: 'rows', rows: proof.rows }),
  ];
}

const check = (proof: Proof, options?: Options): Report => checkProof(write(proof), options);

/** Takes a person out of the records and the database, as an erasure does. */
function erase(proof: Proof, ids: Set<string>): void {
  for (const line of proof.sweeps.flat()) {
    if (line.type === 'sweep') line.bodyKey = null;
    if (line.leaves)
      line.leaves = line.leaves.map((leaf) => (ids.has(leaf[0]) ? [leafHash(leaf).toString('hex')] : leaf));
  }
  proof.rows = proof.rows.map((row) => (ids.has(row[0]) ? [row[0]] : row));
}

const large: Setting = { applications: list(100), rows: 20, order: 'mixed' };
const small: Setting = { applications: list(3), rows: 20, order: 'mixed' };

/** The first answer that fits. */
function answer(proof: Proof, fits: (sealed: Json, line: Line) => boolean): Line {
  const line = proof.sweeps.flat().find((each) => each.type === 'answer' && fits(each.sealed, each));
  if (line === undefined) throw new Error('there is no such answer');
  return line;
}

const emptyPage = (proof: Proof) =>
  answer(proof, ({ question, answer: page }) => question.purpose === 'range' && page.rows === 0);

const closes = (purpose: string, isEmpty: boolean) => (sealed: Json) =>
  sealed.closed.length > 0 && sealed.question.purpose === purpose && (sealed.answer.rows === 0) === isEmpty;

// ---- Honest proofs ----

const withHuge = list(100).map((row, at) => (at === 0 ? { ...row, bytes: 9000 } : row));
const ranges = (): Setting[] => [
  { ...large, low: 1n, high: 250n, number: '1', applications: list(100).filter((row) => row.id <= 250n) },
  { ...large, low: 251n, number: '2', applications: list(100).filter((row) => row.id > 250n) },
];

describe('an honest proof', () => {
  test.each<[string, string, Setting[]]>([
    ['no application', 'assumed', [{ ...small, applications: [] }]],
    ['three applications', 'assumed', [small]],
    ['neighbouring ids', 'assumed', [{ ...small, applications: list(9, 1n) }]],
    ['a list in no order', 'proven', [large]],
    ['a rising list', 'proven', [{ ...large, order: 'rising' }]],
    ['a falling list', 'proven', [{ ...large, order: 'falling' }]],
    ['a source that includes bounds', 'proven', [{ ...large, inclusive: true }]],
    ['everything was stored before', 'proven', [{ ...large, held: list(100) }]],
    ['stored applications that are gone', 'proven', [{ ...large, held: list(110), order: 'rising' }]],
    ['two sweeps that share the ids', 'proven', ranges()],
    ['a rising list whose bytes end pages', 'proven', [{ ...large, order: 'rising', uneven: true }]],
    ['a falling list whose bytes end pages', 'proven', [{ ...large, order: 'falling', uneven: true }]],
    ['a list in no order whose bytes end pages', 'proven', [{ ...large, uneven: true }]],
    ['a rising list with one huge application', 'proven', [{ ...large, order: 'rising', applications: withHuge }]],
    ['a list in no order with one huge application', 'proven', [{ ...large, applications: withHuge }]],
    ['pages of 50 rows', 'proven', [{ ...large, applications: list(500), rows: 50 }]],
  ])('of %s is %s', (_, verdict, settings) => {
    const report = check(proofOf(...settings));
    expect(report.findings).toEqual([]);
    expect(report.certificates.map(({ says, first }) => ({ says, first }))).toEqual(
      settings.map(() => ({ says: verdict, first: null })),
    );
    expect(report).toMatchObject({ verdict, supported: true });
  });

  test('has no question whose range ends before it begins', () => {
    for (const purpose of ['range', 'witness']) {
      const proof = forge(proofOf(large), (copy) => {
        const { question } = answer(copy, (sealed) => sealed.question.purpose === purpose).sealed;
        Object.assign(question, { from: '1', to: '0' });
      });
      expect(check(proof)).toMatchObject({ verdict: 'forged', supported: false });
    }
  });
});

// ---- Forgeries ----

/** An edit of records over which every hash was computed anew. */
function forge(proof: Proof, edit: (proof: Proof) => void): Proof {
  const copy = structuredClone(proof);
  edit(copy);
  for (const lines of copy.sweeps) {
    for (const [n, { sealed }] of lines.entries()) if (sealed.knew >= n && sealed.knew < 999) sealed.knew = n - 1;
  }
  return copy;
}

const honest = proofOf(large);
const recheck = proofOf({ ...large, held: list(100), order: 'rising' });
/** The ids from 10000 are empty, which is confirmed. */
const halves = proofOf({ ...large, high: 9999n }, { ...large, applications: [], low: 10_000n, number: '2' });
const noted = `1:${lastHash(seal(honest.sweeps[0] ?? []))}`;

describe('a line that was changed without new hashes is forged', () => {
  const lines = write(proofOf(small));
  const places = lines.slice(1, -1).map((_, at) => at + 1);
  const verdictOf = (changed: string[]) => checkProof(changed).verdict;

  test('each record removed', () => {
    for (const at of places) expect([at, verdictOf(lines.toSpliced(at, 1))]).toEqual([at, 'forged']);
  });

  test('each record a second time', () => {
    for (const at of places) expect([at, verdictOf(lines.toSpliced(at, 0, lines[at] ?? ''))]).toEqual([at, 'forged']);
  });

  test('each two neighbours exchanged', () => {
    for (const at of places) {
      expect([at, verdictOf(lines.toSpliced(at, 2, lines[at + 1] ?? '', lines[at] ?? ''))]).toEqual([at, 'forged']);
    }
  });

  test('each id removed from an answer, and the first record that says so is named', () => {
    for (const at of places) {
      const line = JSON.parse(lines[at] ?? '');
      if (!line.leaves?.length) continue;
      line.leaves.pop();
      const report = checkProof(lines.with(at, JSON.stringify(line)));
      expect(report).toMatchObject({ verdict: 'forged', supported: false });
      expect(report.findings[0]).toMatchObject({ sweep: '1', n: line.n });
    }
  });

  test('each number in a sealed record', () => {
    const numbers = /(?<=":"?)\d+(?="?[,}])/g;
    for (const at of places) {
      const text = lines[at] ?? '';
      const sealed = text.indexOf('"hash"') === -1 ? 0 : text.search(/"leaves"|"bodyKey"|"hash"/);
      for (const { index, 0: number } of text.matchAll(numbers)) {
        if (index > sealed) continue;
        const changed = `${text.slice(0, index)}${BigInt(number) + 1n}${text.slice(index + number.length)}`;
        expect([changed, verdictOf(lines.with(at, changed))]).toEqual([changed, 'forged']);
      }
    }
  });

  test.each<[string, (lines: string[]) => string[]]>([
    ['a line is cut off', (all) => all.with(3, (all[3] ?? '').slice(0, 50))],
    ['a line of an unknown type', (all) => all.toSpliced(3, 0, '{"type":"note"}')],
    ['no proof line', (all) => all.slice(1)],
    ['an empty file', () => []],
    ['rows between records', (all) => all.toSpliced(3, 0, '{"type":"rows","rows":[]}')],
    ['another format', (all) => all.with(0, (all[0] ?? '').replace('"format":1', '"format":2'))],
    ['another advertiser', (all) => all.with(0, (all[0] ?? '').replace('7001', '7002'))],
    ['another body key', (all) => all.with(1, (all[1] ?? '').replace('abab', 'acab'))],
    ['a member twice', (all) => all.with(0, (all[0] ?? '').replace('"format":1', '"format":2,"format":1'))],
    ['a number in another form', (all) => all.with(0, (all[0] ?? '').replace('"format":1', '"format":1.0'))],
    ['lines ended by CR LF', (all) => all.map((line) => `${line}\r`)],
    [
      'a line nested beyond the stack',
      (all) => all.with(3, (all[3] ?? '').replace('"sealed":{', `"sealed":{"a":${'['.repeat(1e5)}${']'.repeat(1e5)},`)),
    ],
    ['rows in another order', (all) => all.toSpliced(-1, 0, '{"type":"rows","rows":[["9000","1",null]]}')],
  ])('%s', (_, change) => {
    expect(checkProof(change(lines))).toMatchObject({ verdict: 'forged', supported: false });
  });
});

describe('an edit over which every hash was computed anew', () => {
  const rangeOf = (sealed: Json): [string, string | null] => sealed.closed[0];

  test.each<[string, string, Proof, (proof: Proof) => void]>([
    ['a witness is dropped', 'unproven', honest, ({ sweeps: [lines = []] }) => lines.splice(lines.length - 3, 1)],
    [
      'the plan is dropped',
      'unproven',
      honest,
      (proof) => {
        answer(proof, (sealed) => sealed.planned !== null).sealed.planned = null;
      },
    ],
    [
      'a witness is dropped from the plan, too',
      'unproven',
      honest,
      (proof) => {
        answer(proof, (sealed) => sealed.planned !== null).sealed.planned.pop();
        proof.sweeps[0]?.splice(-2, 1);
      },
    ],
    [
      'an answer that closed a range is removed',
      'unproven',
      honest,
      (proof) => {
        const line = answer(proof, closes('range', false));
        proof.sweeps = proof.sweeps.map((lines) => lines.filter((other) => other !== line));
      },
    ],
    [
      'a confirmation closes without its empty page',
      'unproven',
      halves,
      (proof) => {
        emptyPage(proof).sealed.question.purpose = 'witness';
      },
    ],
    [
      'a bound does not reach as far as the closing',
      'unproven',
      honest,
      (proof) => {
        const { question } = answer(proof, closes('range', false)).sealed;
        question.before = `${BigInt(question.before) - 1n}`;
      },
    ],
    [
      'a question had another date filter',
      'unproven',
      honest,
      (proof) => {
        answer(proof, closes('range', false)).sealed.question.since = '5';
      },
    ],
    [
      'the row limit is raised',
      'unproven',
      honest,
      (proof) => {
        for (const { sealed, type } of proof.sweeps.flat()) if (type === 'answer') sealed.limit = [90, 90];
      },
    ],
    [
      'a page in no order is called rising',
      'unproven',
      honest,
      (proof) => {
        for (const { sealed, type } of proof.sweeps.flat()) if (type === 'answer') sealed.sorted = 'rising';
      },
    ],
    [
      'an id is removed from the answer that closed its range',
      'unproven',
      honest,
      (proof) => {
        const line = answer(
          proof,
          (sealed, { leaves }) => closes('range', false)(sealed) && leaves?.at(-1)?.[2] === 'held',
        );
        line.leaves?.pop();
        line.sealed.answer.rows -= 1;
      },
    ],
    [
      'a stored id is removed from the whole evidence',
      'forged',
      recheck,
      (proof) => {
        for (const line of proof.sweeps.flat()) {
          if (!line.leaves) continue;
          const isShown = line.leaves.slice(0, line.sealed.answer.rows).some(([id]) => id === '103');
          line.leaves = line.leaves.filter(([id]) => id !== '103');
          if (isShown) line.sealed.answer.rows -= 1;
        }
      },
    ],
    [
      'a row is shown from elsewhere',
      'unproven',
      honest,
      (proof) => {
        const line = answer(proof, closes('range', false));
        line.leaves?.push(['397', null, 'held', 'ab'.repeat(16)]);
        line.sealed.answer.rows += 1;
      },
    ],
    [
      'a range is closed for which nobody asked',
      'forged',
      honest,
      (proof) => {
        const { sealed } = answer(proof, closes('range', false));
        rangeOf(sealed)[1] = `${BigInt(rangeOf(sealed)[1] ?? '0') + 1n}`;
      },
    ],
    [
      'a range is closed twice',
      'forged',
      honest,
      (proof) => {
        const { sealed } = answer(proof, closes('range', false));
        sealed.closed.push(rangeOf(sealed));
      },
    ],
    [
      'a range is opened that was not closed',
      'forged',
      honest,
      (proof) => {
        answer(proof, closes('range', false)).sealed.opened = [['1', '2']];
      },
    ],
    [
      'a witness closes',
      'forged',
      honest,
      (proof) => {
        answer(proof, (sealed) => sealed.question.purpose === 'witness').sealed.closed = [['1', '2']];
      },
    ],
    [
      'a record knows its successors',
      'forged',
      honest,
      (proof) => {
        answer(proof, () => true).sealed.knew = 1000;
      },
    ],
    [
      'a request number comes twice',
      'forged',
      honest,
      (proof) => {
        answer(proof, ({ n }) => n === 2).sealed.seq = answer(proof, () => true).sealed.seq;
      },
    ],
    [
      'the parts go back',
      'forged',
      honest,
      (proof) => {
        answer(proof, ({ n }) => n === 2).sealed.part = 2;
      },
    ],
    [
      'a question lies outside the sweep',
      'forged',
      honest,
      (proof) => {
        answer(proof, () => true).sealed.question.from = '0';
      },
    ],
    ['the end is removed', 'unproven', honest, ({ sweeps: [lines = []] }) => lines.pop()],
    [
      'an open range is left',
      'unproven',
      honest,
      ({ sweeps: [lines = []] }) => {
        sealedOf(lines.at(-1)).open = [['5', '6']];
      },
    ],
    [
      'filters are repeated differently',
      'unproven',
      honest,
      (proof) => {
        answer(proof, () => true).sealed.answer.echo = 'differs';
      },
    ],
    [
      'filters are not repeated',
      'assumed',
      honest,
      (proof) => {
        answer(proof, () => true).sealed.answer.echo = 'absent';
      },
    ],
    [
      'an answer came from a cache',
      'assumed',
      honest,
      (proof) => {
        answer(proof, () => true).sealed.answer.cached = true;
      },
    ],
    [
      'an empty page is no list',
      'assumed',
      halves,
      (proof) => {
        emptyPage(proof).sealed.answer.weakEmpty = true;
      },
    ],
    [
      'a confirmation was refused',
      'assumed',
      halves,
      (proof) => {
        const line = answer(proof, closes('confirm', true));
        line.sealed.answer = {
          ...line.sealed.answer,
          kind: 'refused',
          echo: 'absent',
          bytes: 0,
          largest: 0,
          body: null,
        };
      },
    ],
    [
      'an empty answer was not confirmed',
      'assumed',
      halves,
      (proof) => {
        const { sealed } = answer(proof, closes('confirm', true));
        const empty = emptyPage(proof);
        empty.sealed.closed = sealed.closed;
        sealed.closed = [];
      },
    ],
    [
      'a witness shows a late row',
      'assumed',
      honest,
      (proof) => {
        const line = answer(proof, (sealed) => sealed.question.purpose === 'witness');
        line.leaves?.push(['101', '1721000000', 'new', 'ab'.repeat(16)]);
        line.sealed.answer.rows += 1;
        proof.rows.splice(1, 0, ['101', '1', null]);
      },
    ],
    [
      'all pages are alike',
      'assumed',
      proofOf({ ...large, applications: list(12) }),
      ({ sweeps: [lines = []] }) => {
        sealedOf(lines.at(-1)).certificate = 'proven';
      },
    ],
  ])('%s: %s', (_, verdict, proof, edit) => expectRefused(forge(proof, edit), verdict));

  test('is found by a hash that was noted before', () => {
    const invented = proofOf({ ...large, applications: list(99) });
    expect(check(invented)).toMatchObject({ verdict: 'proven', supported: true });
    expect(check(invented, { noted: [noted] })).toMatchObject({ verdict: 'forged', supported: false });
    expect(check(honest, { noted: [noted] })).toMatchObject({ verdict: 'proven', supported: true });
  });
});

/** The certificate says `proven` and its records support no more than this. */
function expectRefused(proof: Proof, verdict: string): void {
  const report = check(proof);
  expect({ verdict: report.verdict, supported: report.supported, text: renderReport(report) }).toMatchObject({
    verdict,
    supported: false,
  });
  const refused = report.certificates.find((certificate) => certificate.refused);
  expect(refused?.first ?? null).toEqual(
    verdict === 'forged' ? null : { verdict, sweep: refused?.sweep, n: expect.any(Number), reason: expect.any(String) },
  );
}

describe('what supports less than the certificate says', { tags: ['slow'] }, () => {
  const salt = 'ab'.repeat(16);
  /** One more answer, right before the end. */
  const append = (proof: Proof, question: Json, leaves: Leaf[] = [], page: Json = {}) => {
    const [lines = []] = proof.sweeps;
    const sealed = structuredClone(sealedOf(lines.at(-2)));
    Object.assign(sealed, { seq: '5000', knew: lines.length - 2, closed: [], planned: null });
    sealed.question = { axis: 'id', since: null, from: null, to: null, ...question };
    Object.assign(sealed.answer, { rows: leaves.length, bytes: 40, largest: 0, sizes: [0, 0], ...page });
    lines.splice(-1, 0, { type: 'answer', sealed, leaves });
  };
  const alone = (id: number) => ({
    purpose: 'alone',
    after: `${id - 1}`,
    before: `${id + 1}`,
    from: `${id}`,
    to: `${id}`,
  });
  /** No question that closed nothing covers anything: pages show no reach. */
  const withoutReach = (proof: Proof) => {
    for (const { sealed, type } of proof.sweeps.flat()) {
      const isSplit = type === 'answer' && sealed.closed.length === 0 && sealed.answer.rows > 0;
      if (isSplit && sealed.question.purpose === 'range') sealed.question.since = '0';
    }
  };
  const byBytes = proofOf({ ...large, uneven: true });
  const edge = proofOf({ ...large, applications: list(28), held: list(30), order: 'rising' });

  test.each<[string, string, Proof, (proof: Proof) => void]>([
    ['a new application is gone', 'assumed', honest, (proof) => append(proof, alone(100))],
    [
      'more than 20 stored applications are gone',
      'unproven',
      proofOf({ ...large, held: list(125), order: 'rising' }),
      () => {},
    ],
    [
      'pages with room left out an application',
      'assumed',
      recheck,
      (proof) => append(proof, alone(397), [['397', '1721005940', 'held', salt]], { bytes: 0 }),
    ],
    [
      'pages shrank',
      'assumed',
      honest,
      (proof) => append(proof, { purpose: 'range', after: '0', before: null, from: '1', to: null }),
    ],
    ['no question shows reach', 'assumed', honest, withoutReach],
    [
      'an application is gone at the edge',
      'assumed',
      edge,
      (proof) => {
        withoutReach(proof);
        sealedOf(proof.sweeps[0]?.[0]).longestBefore = 20;
      },
    ],
    [
      'a confirmation shows a row',
      'assumed',
      honest,
      (proof) => append(proof, { ...alone(100), purpose: 'confirm' }, [['100', '1721000000', 'held', salt]]),
    ],
    [
      'an empty page is full of unreadable elements',
      'unproven',
      halves,
      (proof) => {
        emptyPage(proof).sealed.answer.unreadable = 5;
      },
    ],
    [
      'a confirmation is full of unreadable elements',
      'assumed',
      halves,
      (proof) => {
        answer(proof, closes('confirm', true)).sealed.answer.unreadable = 5;
      },
    ],
    [
      'a confirmation does not cover the range',
      'unproven',
      halves,
      (proof) => {
        answer(proof, closes('confirm', true)).sealed.question.after = '10000';
      },
    ],
    [
      'a page of as many bytes has fewer rows',
      'unproven',
      honest,
      (proof) => {
        const witness = answer(proof, ({ question }) => question.purpose === 'witness').sealed;
        witness.answer.bytes = answer(proof, () => true).sealed.answer.bytes;
      },
    ],
    [
      'rows become larger along the pages',
      'unproven',
      byBytes,
      (proof) => {
        answer(proof, () => true).sealed.answer.sizes = [10, 0];
      },
    ],
    [
      'a large row is shown',
      'unproven',
      honest,
      (proof) => {
        answer(proof, () => true).sealed.answer.largest = 9000;
      },
    ],
    [
      'it read by one filter',
      'assumed',
      honest,
      (proof) => {
        for (const { sealed } of proof.sweeps.flat()) {
          if (sealed.question?.purpose === 'range') Object.assign(sealed, { closed: [], planned: null });
          if (sealed.question?.purpose === 'range') sealed.question.purpose = 'walk';
        }
      },
    ],
  ])('%s: %s', (_, verdict, proof, edit) => expectRefused(forge(proof, edit), verdict));

  test.each<[string, Proof, (proof: Proof) => void]>([
    [
      'witnesses were planned while .* was open',
      honest,
      (proof) => {
        const plan = answer(proof, ({ planned }) => planned !== null).sealed;
        answer(proof, ({ n }) => n === plan.n - 1).sealed.planned = plan.planned;
        plan.planned = null;
      },
    ],
    [
      'the question does not cover',
      honest,
      (proof) => {
        answer(
          proof,
          (sealed) => closes('range', false)(sealed) && sealed.closed[0][1] !== null,
        ).sealed.question.before = null;
      },
    ],
    [
      'is neither closed nor shown',
      honest,
      (proof) => {
        append(proof, { purpose: 'witness', after: '0', before: null });
        sealedOf(proof.sweeps[0]?.at(-2)).opened = answer(proof, closes('range', false)).sealed.closed;
      },
    ],
    [
      'nothing in the answer closes 10000 to infinity',
      halves,
      (proof) => {
        const { after, before } = emptyPage(proof).sealed.question;
        Object.assign(answer(proof, closes('confirm', true)).sealed.question, { after, before });
      },
    ],
    [
      'nothing in the answer closes',
      proofOf({ ...large, order: 'rising', uneven: true }),
      (proof) => {
        // One id more than the last row; the questions for the gap behind it begin one id later.
        const [range] = answer(proof, closes('range', false)).sealed.closed;
        const begin = `${BigInt(range[1]) + 1n}`;
        const later = `${BigInt(range[1]) + 2n}`;
        range[1] = begin;
        for (const { sealed, type } of proof.sweeps.flat()) {
          if (type !== 'answer' || sealed.question.from !== begin) continue;
          sealed.question.from = later;
          for (const closed of sealed.closed) closed[0] = later;
        }
      },
    ],
  ])('%s, and no other reason', (reason, proof, edit) => {
    const { certificates } = check(forge(proof, edit));
    const reasons = certificates.flatMap(({ findings }) => findings.map((finding) => finding.reason));
    expect(reasons).toEqual([expect.stringMatching(reason)]);
  });

  test('what looks similar and is none of it', () => {
    const fits = (proof: Proof, edit: (proof: Proof) => void) =>
      expect(check(forge(proof, edit))).toMatchObject({ verdict: 'proven', supported: true });
    fits(edge, withoutReach);
    fits(recheck, (proof) => append(proof, alone(397), [['397', '1721005940', 'held', salt]], { bytes: 700 }));
    fits(honest, (proof) =>
      append(proof, { ...alone(100), purpose: 'confirm' }, [['100', `${recentFrom}`, 'held', salt]]),
    );
    fits(honest, (proof) => append(proof, alone(100), [], { unreadable: 1 }));
  });

  test('it is by date', () => {
    const proof = forge(honest, ({ sweeps: [lines = []] }) => {
      Object.assign(sealedOf(lines[0]), { axis: 'date', low: '0' });
    });
    expect(check(proof).certificates[0]).toMatchObject({ says: 'proven', supports: 'assumed', refused: true });
  });
});

describe('a noted hash', () => {
  const hash = noted.slice(2);
  /** The same records under another number, over which every hash was computed anew. */
  const renumbered = forge(honest, ({ sweeps: [lines = []] }) => {
    sealedOf(lines[0]).sweep = '12';
  });

  test('of a sweep that was given another number is not found', () => {
    expect(check(renumbered)).toMatchObject({ verdict: 'proven', supported: true });
    const report = check(renumbered, { noted: [noted] });
    expect(report).toMatchObject({ verdict: 'unproven', supported: false });
    expect(report.findings[0]?.reason).toContain('is not in the file');
  });

  test('stands under one number', () => {
    expect(check(honest, { noted: [`12:${hash}`] })).toMatchObject({ verdict: 'forged', supported: false });
  });

  test('of a sweep whose records were pruned is known from the sweep after it', () => {
    const later = forge(honest, ({ sweeps: [lines = []] }) => {
      Object.assign(sealedOf(lines[0]), { sweep: '12', previous: [['1', hash]] });
    });
    expect(check(later, { noted: [noted] })).toMatchObject({ verdict: 'proven', supported: true });
    expect(check(later, { noted: [`2:${hash}`] })).toMatchObject({ verdict: 'unproven', supported: false });
  });

  test('is written with its sweep', () => {
    expect(() => check(honest, { noted: ['1'] })).toThrow(WrongUse);
  });
});

test('any number of findings is reported', { tags: ['slow'] }, () => {
  const proof = forge(proofOf(small), ({ sweeps: [lines = []] }) => {
    sealedOf(lines[1]).opened = Array.from({ length: 150_000 }, (_, at) => [`${at + 1}`, `${at + 1}`]);
  });
  expect(check(proof)).toMatchObject({ verdict: 'forged', supported: false });
});

describe('the database', () => {
  test('lacks an application that the evidence knows', () => {
    for (const [id] of honest.rows.filter((_row, at) => at % 10 === 0)) {
      const report = check({ ...honest, rows: honest.rows.filter((row) => row[0] !== id) });
      expect(report).toMatchObject({ verdict: 'forged', supported: false });
      expect(report.findings[0]?.reason).toContain(id);
    }
  });

  test('holds an application that was stored before the sweep and that no record names, missing or not', () => {
    const second = startedAt / 1000;
    for (const missingSince of [null, `${second - 60}`, `${second + 60}`]) {
      const proof = forge(recheck, (copy) => {
        sealedOf(copy.sweeps[0]?.[0]).heldBefore += 1;
        copy.rows.push(['9000', `${second - 500}`, missingSince]);
      });
      expect(check(proof)).toMatchObject({ verdict: 'forged', supported: false });
      const dump = proof.rows.map((row) => row.join(','));
      expect(check({ ...proof, rows: [] }, { rows: dump })).toMatchObject({ verdict: 'forged' });
    }
  });

  test('may be given as a dump', () => {
    const dump = ['application_id,floor,floor', ...honest.rows.map(([id, first]) => `${id},${first},`)];
    expect(check({ ...honest, rows: [] }, { rows: dump })).toMatchObject({ verdict: 'proven', supported: true });
    expect(check(honest, { rows: dump.slice(0, -1) })).toMatchObject({ verdict: 'forged', supported: false });
    expect(() => check(honest, { rows: [...dump, 'x'] })).toThrow(WrongUse);
  });
});

describe('erased people', () => {
  const few: readonly [string, Setting][] = [
    ['in no order', large],
    ['three applications', small],
    ['neighbouring ids', { ...small, applications: list(9, 1n) }],
  ];
  const more: readonly [string, Setting][] = [
    ['rising', { ...large, order: 'rising' }],
    ['rising, whose bytes end pages', { ...large, order: 'rising', uneven: true }],
    ['falling, whose bytes end pages', { ...large, order: 'falling', uneven: true }],
    ['with one huge application', { ...large, applications: withHuge }],
    ['stored before', { ...large, held: list(100) }],
    ['a source that includes bounds', { ...large, inclusive: true }],
  ];
  const expectStillChecks = (setting: Setting) => {
    const proof = proofOf(setting);
    const { verdict } = check(proof);
    const ids = proof.rows.map(([id]) => id);
    const groups = [
      ...ids.filter((_id, at) => at % 16 === 0).map((id) => [id]),
      ids.slice(0, 2),
      ids.slice(-2),
      ids.filter((_id, at) => at % 7 === 0),
      ids,
    ];
    const hash = lastHash(proof.sweeps.flatMap(seal));
    for (const group of groups) {
      const erased = forge(proof, (copy) => erase(copy, new Set(group)));
      const report = check(erased, { noted: [`1:${hash}`] });
      expect({ group, verdict: report.verdict, text: renderReport(report) }).toMatchObject({ group, verdict });
      expect(report.supported).toBe(true);
    }
  };

  test.each(few)('leave a proof that still checks: %s', (_, setting) => expectStillChecks(setting));
  test.each(more)('leave a proof that still checks: %s', { tags: ['slow'] }, (_, setting) =>
    expectStillChecks(setting),
  );
});

test('a witness beside somebody who was erased stands at an erased id, and nowhere further out', () => {
  const move = (at: number, to: string) => (proof: Proof) => {
    erase(proof, new Set(['100', '397']));
    for (const { sealed } of proof.sweeps.flat()) {
      for (const question of [...(sealed.planned ?? []), sealed.question ?? []]) moveBound(question, at, to);
    }
  };
  const moveBound = (question: Json, at: number, to: string) => {
    const names = ['axis', 'after', 'before', 'since'];
    const name = Array.isArray(question) ? at : (names[at] ?? '');
    if (question[name] === (at === 1 ? '397' : '100') && (question.purpose ?? 'witness') === 'witness')
      question[name] = to;
  };
  expect(check(forge(honest, move(2, '100')))).toMatchObject({ verdict: 'proven', supported: true });
  expect(check(forge(honest, move(2, '50')))).toMatchObject({ verdict: 'unproven', supported: false });
  expect(check(forge(honest, move(1, '500')))).toMatchObject({ verdict: 'unproven', supported: false });
});

describe('people passed off as erased, whose leaves lead to the same hashes', () => {
  const isForged = (proof: Proof) => {
    const report = check(proof, { noted: [noted] });
    expect(report).toMatchObject({ verdict: 'forged', supported: false });
    expect(report.findings[0]?.reason).toContain('erased');
  };
  const passOff = (...ids: string[]) => forge(honest, (proof) => erase(proof, new Set(ids)));

  test('are found where nobody was erased', () => {
    const proof = passOff('103');
    isForged({ ...proof, rows: proof.rows.filter((row) => row.length > 1) });
  });

  test('are found where fewer were erased', () => {
    const proof = passOff('103', '106');
    isForged({ ...proof, rows: proof.rows.filter(([id]) => id !== '106') });
  });

  test('are found where somebody else was erased', () => {
    const proof = passOff('103');
    isForged({ ...proof, rows: [...proof.rows.filter(([id]) => id !== '103'), ['9000']] });
  });

  test('are found in a dump', () => {
    const dump = (isErased: (id: string) => boolean) =>
      honest.rows.map(([id, first]) => (isErased(id) ? `${id},,` : `${id},${first},`));
    const proof = { ...passOff('103'), rows: [] };
    expect(check(proof, { rows: dump((id) => id === '103') })).toMatchObject({ verdict: 'proven', supported: true });
    expect(check(proof, { rows: dump(() => false) })).toMatchObject({ verdict: 'forged', supported: false });
  });

  test('leave more leaves than they are where the source shows somebody twice', () => {
    const twice = forge(honest, (proof) => {
      const { leaves, sealed } = answer(proof, () => true);
      for (const at of [0, 1]) leaves?.push([...(leaves[at] as Leaf)] as Leaf);
      sealed.answer.rows += 2;
    });
    const [id = ''] = answer(twice, () => true).leaves?.[0] ?? [];
    expect(check(twice)).toMatchObject({ verdict: 'proven', supported: true });
    expect(check(forge(twice, (proof) => erase(proof, new Set([id]))))).toMatchObject({ supported: true });
  });
});

describe('audits', () => {
  const audited = (leaf: Leaf, from: string | null) =>
    forge(honest, ({ sweeps: [lines = []], rows }) => {
      const copy = structuredClone(answer(honest, () => true));
      copy.leaves = [leaf];
      Object.assign(copy.sealed, { part: 0, knew: lines.length - 1, seq: '5000', closed: [], limit: [0, 0] });
      Object.assign(copy.sealed.question, { purpose: 'audit', after: '99', before: '110', from, to: from });
      Object.assign(copy.sealed.answer, { rows: 1, bytes: 700 });
      lines.push(copy);
      if (leaf[0] === '101') rows.splice(1, 0, ['101', '1', null]);
    });
  const salt = 'ab'.repeat(16);

  test.each<[string, boolean, Proof]>([
    ['shows what is known', true, audited(['100', '1721000000', 'held', salt], null)],
    ['shows a recent application', true, audited(['101', `${recentFrom}`, 'new', salt], null)],
    ['shows an application that the sweep should have seen', false, audited(['101', '1721000000', 'new', salt], null)],
    ['shows the id for which it asked', false, audited(['100', '1721000000', 'held', salt], '100')],
  ])('%s', (_, supported, proof) => {
    expect(check(proof)).toMatchObject({ verdict: supported ? 'proven' : 'unproven', supported });
  });

  test('are missed where they were cut off before the next sweep began', () => {
    const proof = proofOf(...ranges());
    const [first = [], second = []] = proof.sweeps;
    const audit = audited(['100', '1721000000', 'held', salt], null).sweeps[0]?.at(-1) as Line;
    first.push({ ...audit, sealed: { ...audit.sealed, knew: first.length - 1 } });
    sealedOf(second[0]).previous = [
      ['1', lastHash(seal(first))],
      ['0', 'ab'.repeat(32)],
    ];
    expect(check(proof)).toMatchObject({ verdict: 'proven', supported: true });
    const cut = { ...proof, sweeps: [first.slice(0, -1), second] };
    const report = check(cut);
    expect(report).toMatchObject({ verdict: 'forged', supported: false });
    expect(report.findings[0]).toMatchObject({ sweep: '1', reason: expect.stringContaining('when sweep 2 began') });
  });

  test('ended a certificate: what it says now is supported', () => {
    const proof = audited(['101', '1721000000', 'new', salt], null);
    const certificates = certificatesOf(proof.sweeps).map((each) => ({ ...each, certificate: 'unproven' }));
    expect(checkProof(write(proof, certificates))).toMatchObject({ verdict: 'unproven', supported: true });
  });

  test('contradict the certificates whose range holds the id, and no other', () => {
    const proof = audited(['101', '1721000000', 'new', salt], null);
    const [whole] = certificatesOf(proof.sweeps);
    const report = checkProof(
      write(proof, [
        { ...whole, high: '200' },
        { ...whole, low: '201' },
      ]),
    );
    expect(report.certificates.map(({ verdict }) => verdict)).toEqual(['unproven', 'proven']);
  });
});

test('a certificate repeats the risk and the reason of the end, which names no more absent than are gone', () => {
  const [certificate] = certificatesOf(honest.sweeps);
  for (const change of [{ risk: 'doubt' }, { reason: 'other words' }]) {
    const report = checkProof(write(honest, [{ ...certificate, ...change }]));
    expect(report).toMatchObject({ verdict: 'forged', supported: false });
    expect(report.findings[0]?.reason).toContain(Object.keys(change)[0]);
  }
  const absent = forge(honest, ({ sweeps }) => {
    sealedOf(sweeps[0]?.find((line) => line.type === 'end')).absent = 1;
  });
  expect(check(absent)).toMatchObject({ verdict: 'forged', findings: [{ reason: expect.stringContaining('absent') }] });
});

describe('certificates', { tags: ['slow'] }, () => {
  const changed = (change: Json, proof = honest) =>
    checkProof(
      write(
        proof,
        certificatesOf(proof.sweeps).map((each) => ({ ...each, ...change })),
      ),
    );

  test.each<[string, string, boolean, Json]>([
    ['says less than its records', 'assumed', true, { certificate: 'assumed' }],
    ['has another last hash', 'forged', false, { last: '00'.repeat(32) }],
    ['names a sweep that is not there', 'forged', false, { sweep: '9' }],
    ['has another beginning', 'forged', false, { startedAt: 5 }],
    ['is complete through a later moment', 'forged', false, { completeThrough: startedAt }],
    ['leaves out the first ids', 'unproven', true, { low: '2' }],
    ['leaves out the last ids', 'unproven', true, { high: '9000' }],
    ['has no evidence', 'unproven', false, { last: null }],
    ['ends above the last id', 'forged', false, { high: '9223372036854775808' }],
  ])('one that %s', (_, verdict, supported, change) => {
    expect(changed(change)).toMatchObject({ verdict, supported });
  });

  test('rests on the newest sweep of its ids, not on one that another has taken the place of', () => {
    const proof = proofOf(large, { ...large, held: list(100), number: '2' });
    sealedOf(proof.sweeps[1]?.[0]).previous = [['1', lastHash(seal(proof.sweeps[0] ?? []))]];
    const [older, newer] = certificatesOf(proof.sweeps);
    expect(checkProof(write(proof, [newer]))).toMatchObject({ verdict: 'proven', supported: true });
    expect(checkProof(write(proof, [older]))).toMatchObject({ verdict: 'forged', supported: false });
    // A sweep that has not come to its end has taken the place of none.
    proof.sweeps[1]?.pop();
    expect(checkProof(write(proof, [older]))).toMatchObject({ verdict: 'proven', supported: true });
  });

  test.each<[string, string, (sealed: Json, certificate: Json) => void]>([
    [
      'what was submitted after the sweep began',
      'speaks of what was submitted after it began',
      (sealed, certificate) => {
        sealed.recentFrom = `${startedAt / 1000 + 1}`;
        certificate.completeThrough = startedAt + 1000;
      },
    ],
    [
      'a sweep that began after the export',
      'began after the file was exported',
      (sealed, certificate) => {
        sealed.startedAt = certificate.startedAt = startedAt + 90_000_000;
      },
    ],
    [
      'answers from before the sweep',
      'was asked before the sweep began',
      (sealed, certificate) => {
        sealed.startedAt = certificate.startedAt = startedAt + 90_000_000;
      },
    ],
  ])('speaks of no time that it cannot know: %s', (_, reason, edit) => {
    const proof = structuredClone(honest);
    const [certificate] = certificatesOf(proof.sweeps);
    edit(sealedOf(proof.sweeps[0]?.[0]), certificate);
    certificate.last = lastHash(seal(proof.sweeps[0] ?? []));
    const report = checkProof(write(proof, [certificate]));
    expect(report.verdict).toBe('forged');
    expect(report.findings).toContainEqual(expect.objectContaining({ reason: expect.stringContaining(reason) }));
  });

  test('was exported after its questions were asked', () => {
    const [head = '', ...rest] = write(honest);
    const early = head.replace(`"exportedAt":${startedAt}`, `"exportedAt":${startedAt - 90_000_000}`);
    expect(checkProof([early, ...rest])).toMatchObject({ verdict: 'forged', supported: false });
  });

  test('may not say more than the end of the sweep, or more than was swept', () => {
    expect(changed({ certificate: 'proven' }, proofOf(small))).toMatchObject({ verdict: 'forged' });
    const two = proofOf(...ranges());
    const [first, second] = certificatesOf(two.sweeps);
    expect(checkProof(write(two, [{ ...first, high: null }]))).toMatchObject({ verdict: 'forged' });
    expect(checkProof(write(two, [first, { ...second, low: '300' }]))).toMatchObject({ verdict: 'unproven' });
    expect(checkProof(write(two, [second]))).toMatchObject({ verdict: 'unproven' });
  });

  test('no certificate at all is unproven and refuses nothing', () => {
    expect(checkProof(write(honest, []))).toMatchObject({ verdict: 'unproven', supported: true });
  });
});

test('the example of the page is what the page says of it', () => {
  const example = readFileSync('docs/proof-format.md', 'utf8')
    .split('\n')
    .filter((line) => /^\{"type":"(?:sweep|answer)","n":\d,"sealed":\{"n"/.test(line));
  expect(example).toHaveLength(2);
  const [proof = '', ...others] = write(
    {
      sweeps: [],
      rows: [['101', '1', null], ['103'], ['105', '1', null]],
    },
    [],
  );
  const report = checkProof([proof, ...example, ...others]);
  expect(report).toMatchObject({ verdict: 'unproven', supported: true });
  expect(report.findings.map(({ reason }) => reason)).toEqual(['no certificate speaks of the ids 1 to infinity']);
  expect(report.sweeps).toMatchObject([{ closedBy: {}, erased: [{ n: 1, rows: 1, between: ['101', '105'] }] }]);
  expect(renderReport(report)).toContain('n 1: one erased row between 101 and 105');
});

describe('the command', () => {
  const folder = mkdtempSync(join(tmpdir(), 'proof-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const proof = join(folder, 'proof.ndjson');
  const dump = join(folder, 'rows.csv');
  writeFileSync(proof, `${write(halves).join('\n')}\n`);
  writeFileSync(dump, '100,1,\n');
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['examples/check-proof.ts', ...args], { encoding: 'utf8' });

  test('says for a person what the proof is worth', () => {
    const { status, stdout } = run(proof);
    expect(stdout).toContain('advertiser 7001, exported at 2025-11-16T10:46:40.000Z');
    expect(stdout).toContain(
      'certificate for ids 1 to 9999 (sweep 1): proven: supported\n  speaks of what was submitted before 2025-11-16T10:31:40.000Z',
    );
    expect(stdout).toMatch(/\nverdict: proven\n$/);
    expect(status).toBe(0);
  });

  test('says for a machine why it is worth nothing', () => {
    const { status, stdout } = run(proof, '--json', '--rows', dump, '--noted', `1:${'0'.repeat(64)}`);
    const report: Report = JSON.parse(stdout);
    expect(report).toMatchObject({ verdict: 'forged', supported: false });
    expect(report.findings.map(({ reason }) => reason)).toContain('no record has the hash that was noted');
    expect(report).toMatchObject({
      exportedAt: '2025-11-16T10:46:40.000Z',
      certificates: [{ completeThrough: '2025-11-16T10:31:40.000Z' }, {}],
    });
    expect(status).toBe(1);
  });

  test('ends with 1 where a sweep whose hash was noted is absent', () => {
    const { status, stdout } = run(proof, '--noted', `77:${'0'.repeat(64)}`);
    expect(stdout).toMatch(/\nverdict: unproven \(sweep 77, of which a hash was noted, is not in the file.*\n$/);
    expect(status).toBe(1);
  });

  test.each<[string, string[]]>([
    ['no file', []],
    ['a file that is not there', ['no-such-file']],
    ['two files', [proof, proof]],
    ['half a noted hash', [proof, '--noted', '5']],
    ['an unknown option', [proof, '--what']],
  ])('ends with 2 where it is called wrongly: %s', (_, args) => {
    const { status, stderr } = run(...args);
    expect(stderr).toContain('usage: node examples/check-proof.ts FILE');
    expect(status).toBe(2);
  });
});

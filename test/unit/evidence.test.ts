// Evidence as pure values: the tree of hashes with erased leaves, the chain, the form in the database, and which sweeps keep it.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { begin, learn } from '../../src/domain/coverage/coverage.ts';
import type { PageAnswer, Question } from '../../src/domain/coverage/question.ts';
import { chain, chainAnswer } from '../../src/domain/evidence/chain.ts';
import { decodeLeaves, decodeRecord, encodeLeaves, encodeRecord } from '../../src/domain/evidence/codec.ts';
import { findKept } from '../../src/domain/evidence/kept.ts';
import {
  type AnswerRecord,
  canonical,
  type EndRecord,
  type EvidenceRecord,
  type Leaf,
  type OpeningRecord,
  recordAnswer,
  seal,
} from '../../src/domain/evidence/record.ts';
import { createLeaves, eraseLeaves, isErased, rootOf, saltsOf } from '../../src/domain/evidence/tree.ts';

const hash = (bytes: Uint8Array) => new Uint8Array(createHash('sha256').update(bytes).digest());
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const count = fc.nat(1_000_000);
const bytesOf = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const option = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: null });
const range = fc.record({ from: int64, to: option(int64) });
const leaf: fc.Arbitrary<Leaf> = fc.oneof(
  fc.record({ id: int64, at: option(int64), mark: fc.constantFrom('new' as const, 'held' as const) }),
  fc.record({ id: int64, at: fc.constant(null), mark: fc.constant('lacking' as const) }),
);
const leaves = fc.tuple(fc.array(leaf, { maxLength: 40 }), bytesOf(16)).map(([all, seed]) => createLeaves(all, seed));

const opening: fc.Arbitrary<OpeningRecord> = fc.record({
  type: fc.constant('sweep' as const),
  advertiserId: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  sweepId: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  purpose: fc.constantFrom('recheck' as const, 'backfill' as const),
  axis: fc.constantFrom('id' as const, 'date' as const),
  low: int64,
  high: option(int64),
  startedAt: fc.nat(2 ** 31).map((n) => n * 1_000),
  recentFrom: int64,
  heldBefore: count,
  longestBefore: count,
  previous: fc.array(fc.record({ sweepId: count.map(BigInt), hash: bytesOf(32) }), { maxLength: 3 }),
  bodyKeyHash: bytesOf(32),
});
const answer: fc.Arbitrary<AnswerRecord> = fc.record({
  type: fc.constant('answer' as const),
  part: count,
  knew: count,
  seq: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  sentAt: fc.nat(2 ** 31).map((n) => n * 1_000 + 7),
  tookMs: count,
  question: fc.record({
    purpose: fc.constantFrom('range' as const, 'confirm', 'alone', 'witness', 'walk', 'audit'),
    axis: fc.constantFrom('id' as const, 'date' as const),
    from: option(int64),
    to: option(int64),
    after: option(int64),
    before: option(int64),
    since: option(int64),
  }),
  answer: fc.record({
    kind: fc.constantFrom('page' as const, 'overflow', 'refused'),
    rows: count,
    lacks: count,
    unreadable: count,
    bytes: count,
    largest: count,
    sizes: fc.tuple(count, count),
    echo: fc.constantFrom('matches' as const, 'absent', 'differs'),
    weakEmpty: fc.boolean(),
    cached: fc.boolean(),
    body: option(bytesOf(16)),
  }),
  closed: fc.array(range, { maxLength: 4 }),
  opened: fc.array(range, { maxLength: 4 }),
  limit: fc.tuple(count, count),
  uneven: fc.boolean(),
  sorted: fc.constantFrom(null, 'rising' as const, 'falling'),
  planned: option(
    fc.array(
      fc.record({
        axis: fc.constantFrom('id' as const, 'date' as const),
        after: option(int64),
        before: option(int64),
        since: option(int64),
      }),
      { maxLength: 4 },
    ),
  ),
});
const end: fc.Arbitrary<EndRecord> = fc.record({
  type: fc.constant('end' as const),
  certificate: fc.constantFrom('proven' as const, 'assumed', 'unproven'),
  risk: fc.constantFrom('none' as const, 'harmless', 'doubt'),
  reason: fc.string({ unit: 'grapheme' }),
  open: fc.array(range, { maxLength: 4 }),
  absent: count,
});
const record: fc.Arbitrary<EvidenceRecord> = fc.oneof(opening, answer, end);

describe('the form in the database', () => {
  test('gives every record back as it was', () => {
    fc.assert(
      fc.property(record, (one) => {
        expect(decodeRecord(encodeRecord(one))).toEqual(one);
      }),
    );
  });

  test('gives leaves back as they were, also erased ones', () => {
    fc.assert(
      fc.property(leaves, fc.array(fc.nat(39)), (all, places) => {
        const ids = new Set(places.flatMap((at) => (all.entries[at] as Leaf | undefined)?.id ?? []));
        for (const one of [all, eraseLeaves(hash, all, ids) ?? all])
          expect(decodeLeaves(encodeLeaves(one))).toEqual(one);
      }),
    );
  });

  test('takes about three bytes a row where ids and dates rise', () => {
    const rows = Array.from({ length: 100 }, (_, at): Leaf => {
      return { id: 4_000_000n + BigInt(at * 7), at: 1_750_000_000n + BigInt(at * 900), mark: 'new' };
    });
    const size = encodeLeaves(createLeaves(rows, new Uint8Array(16)))?.length ?? 0;
    expect(size).toBeLessThan(350);
  });

  test('refuses bytes that are cut off or go on', () => {
    const whole = encodeLeaves(createLeaves([{ id: 5n, at: 7n, mark: 'new' }], new Uint8Array(16))) as Uint8Array;
    expect(() => decodeLeaves(whole.slice(0, -1))).toThrow('end too early');
    expect(() => decodeLeaves(Uint8Array.of(...whole, 1))).toThrow('beyond their end');
  });
});

describe('the tree of hashes', () => {
  test('keeps its root when leaves are erased, and their salts cannot be made again', () => {
    fc.assert(
      fc.property(leaves, fc.array(fc.nat(39), { minLength: 1 }), (all, places) => {
        const ids = places.flatMap((at) => (all.entries[at] as Leaf | undefined)?.id ?? []);
        let now = all;
        // One after the other, as people are erased.
        for (const id of ids) now = eraseLeaves(hash, now, new Set([id])) ?? now;
        expect(rootOf(hash, now)).toEqual(rootOf(hash, all));
        const salts = saltsOf(hash, all);
        for (const [at, salt] of saltsOf(hash, now).entries())
          expect(salt).toEqual(isErased(now.entries[at] as Leaf) ? undefined : salts[at]);
        expect(now.entries.some((entry) => !isErased(entry) && ids.includes(entry.id))).toBe(false);
      }),
    );
  });

  test('has another root for another id, date, mark or order', () => {
    const rows: Leaf[] = [
      { id: 1n, at: 10n, mark: 'new' },
      { id: 2n, at: null, mark: 'held' },
      { id: 3n, at: 30n, mark: 'new' },
    ];
    const root = (all: Leaf[]) =>
      Buffer.from(rootOf(hash, createLeaves(all, new Uint8Array(16))) ?? []).toString('hex');
    const [a, b, c] = rows as [Leaf, Leaf, Leaf];
    const roots = [
      [a, b, c],
      [a, b],
      [b, a, c],
      [{ ...a, id: 4n }, b, c],
      [{ ...a, at: 11n }, b, c],
      [{ ...a, mark: 'held' as const }, b, c],
    ].map(root);
    expect(new Set(roots).size).toBe(roots.length);
  });
});

test('the example of docs/proof-format.md has the hashes that this code gives', () => {
  const page = readFileSync('docs/proof-format.md', 'utf8');
  const lines = Array.from(page.matchAll(/^\{"type":"(?:sweep|answer)","n".*"[0-9a-f]{64}"\}$/gm), ([line]) =>
    JSON.parse(line),
  );
  expect(lines).toHaveLength(2);
  let last: Uint8Array = new Uint8Array(32);
  for (const line of lines) {
    last = hash(Buffer.concat([last, Buffer.from(canonical(line.sealed))]));
    expect(Buffer.from(last).toString('hex')).toBe(line.hash);
  }
});

describe('the record of an answer', () => {
  const question: Question = { axis: 'id', purpose: 'range', from: 1n, to: null, after: 0n, before: null, since: null };
  const page: PageAnswer = {
    kind: 'page',
    rows: [
      { id: 7n, at: 70n, bytes: 100 },
      { id: 9n, at: null, bytes: 80 },
    ],
    unreadable: 1,
    bytes: 260,
    echo: 'matches',
    weakEmpty: false,
    cached: false,
    unheld: [9n],
    unshown: [{ id: 8n, old: true }],
  };
  const sent = { knew: 0, seq: 5n, sentAt: 1_000, tookMs: 12 };

  test('says what was asked, what came and what was held', () => {
    const before = begin({});
    const after = learn(before, question, page);
    const made = recordAnswer(sent, question, page, null, before, after);
    expect(made.leaves).toEqual([
      { id: 7n, at: 70n, mark: 'held' },
      { id: 9n, at: null, mark: 'new' },
    ]);
    expect(made.record).toMatchObject({
      ...sent,
      part: 1,
      question,
      answer: { kind: 'page', rows: 2, lacks: 0, unreadable: 1, bytes: 260, largest: 100, sizes: [0, 1] },
      closed: [],
      opened: [],
      limit: [3, 0],
      planned: null,
    });
  });

  test('names known ids that are lacking where the page cannot have been cut off', () => {
    const empty = { ...page, rows: [], unreadable: 0, unheld: [] };
    const before = begin({});
    const made = recordAnswer(sent, question, empty, null, before, learn(before, question, empty));
    expect(made.leaves).toEqual([{ id: 8n, at: null, mark: 'lacking' }]);
    expect(made.record.answer).toMatchObject({ rows: 0, lacks: 1 });
  });

  test('names the ranges that it closes and the witnesses that follow', () => {
    const empty: PageAnswer = { ...page, rows: [], unreadable: 0, unheld: [], unshown: [] };
    const asked = learn(begin({}), question, empty);
    const confirm: Question = { ...question, purpose: 'confirm', before: 1_000_002n };
    const after = learn(asked, confirm, empty);
    const { record: made } = recordAnswer(sent, confirm, empty, null, asked, after);
    expect(made.closed).toEqual([{ from: 1n, to: null }]);
    expect(made.planned?.length).toBe(after.facts.witnesses?.length);
    expect(made.planned?.length).toBeGreaterThan(0);
  });

  test('follows on the hash of the record before it', () => {
    const before = begin({});
    const made = recordAnswer(sent, question, page, null, before, learn(before, question, page));
    const first = chainAnswer(hash, null, made, new Uint8Array(16));
    const second = chainAnswer(hash, first, made, new Uint8Array(16));
    expect([first.n, second.n]).toEqual([0, 1]);
    const text = canonical(seal(made.record, 1, rootOf(hash, second.leaves)));
    expect(second.hash).toEqual(hash(Buffer.concat([first.hash, Buffer.from(text)])));
    expect(chain(hash, { n: 0, hash: second.hash }, made.record, second.leaves).hash).not.toEqual(second.hash);
  });
});

describe('which sweeps keep their evidence', () => {
  const whole = (name: string) => ({ name, low: 1n, high: null });
  const names = (kept: Set<{ name: string }>) =>
    [...kept].map(({ name }) => name).toSorted((a, b) => a.localeCompare(b));

  test('the first, the newest and the one before it', () => {
    expect(names(findKept(['a', 'b', 'c', 'd', 'e'].map(whole)))).toEqual(['a', 'd', 'e']);
  });

  test('by range: recent days that are read again often leave the rest as it was', () => {
    const recent = (name: string, low: bigint) => ({ name, low, high: null });
    const sweeps = [whole('a'), whole('b'), recent('c', 900n), recent('d', 905n), recent('e', 910n), recent('f', 915n)];
    expect(names(findKept(sweeps))).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(names(findKept([...sweeps, recent('g', 900n), recent('h', 900n)]))).toEqual(['a', 'b', 'g', 'h']);
    expect(names(findKept([...sweeps, whole('g'), whole('h')]))).toEqual(['a', 'g', 'h']);
  });

  test('for every id the newest, the one before it and the first, and no other', () => {
    const end = option(fc.bigInt({ min: 1n, max: 20n }));
    const sweep = fc.tuple(fc.bigInt({ min: 1n, max: 20n }), end).map(([low, high]) => {
      return { low, high: high === null ? null : low + high };
    });
    fc.assert(
      fc.property(fc.array(sweep, { maxLength: 12 }), (sweeps) => {
        const kept = findKept(sweeps);
        const needed = new Set<unknown>();
        for (let id = 1n; id <= 45n; id++) {
          const here = sweeps.filter(({ low, high }) => low <= id && (high === null || id <= high));
          for (const one of [here.at(0), here.at(-1), here.at(-2)]) if (one) needed.add(one);
        }
        expect(kept).toEqual(needed);
      }),
    );
  });
});

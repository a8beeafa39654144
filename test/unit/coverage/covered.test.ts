// The set of ranges that were read, held against a plain list that says of every id which sweep was the last.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Covered,
  coveredOf,
  isTiled,
  lastPosition,
  rangeOf,
  withRange,
} from '../../../src/domain/coverage/position.ts';

interface Read extends Covered {
  readonly name: string;
}

const lastId = 40;

const reads = fc
  .array(fc.tuple(fc.integer({ min: 1, max: lastId }), fc.option(fc.integer({ min: 0, max: 12 }))), { maxLength: 25 })
  .map((list) =>
    list.map(([low, length], nth): Read => {
      return { low: BigInt(low), high: length === null ? null : BigInt(low + length), name: `read ${nth}` };
    }),
  );

/** Which sweep speaks of each id up to one far beyond all bounds. */
function lastReads(list: readonly Read[]): (string | null)[] {
  const names: (string | null)[] = Array.from({ length: lastId + 30 }, () => null);
  for (const { low, high, name } of list)
    for (let id = 1; id < names.length; id++) if (isIn({ low, high }, BigInt(id))) names[id] = name;
  return names;
}

const isIn = ({ low, high }: Covered, id: bigint) => id >= low && (high === null || id <= high);
const fold = (list: readonly Read[]) => list.reduce<Read[]>((rows, read) => withRange(rows, read), []);

describe('the set of ranges that were read', () => {
  it('says of every id what the last sweep of it says', () => {
    fc.assert(
      fc.property(reads, (list) => {
        const rows = fold(list);
        const said = lastReads([]).map((_, id) => rows.find((row) => isIn(row, BigInt(id)))?.name ?? null);
        expect(said).toEqual(lastReads(list));
      }),
      { numRuns: 500 },
    );
  });

  it('rises, has no overlap and no empty range', () => {
    fc.assert(
      fc.property(reads, (list) => {
        const rows = fold(list);
        for (const [nth, { low, high }] of rows.entries()) {
          expect(high === null || high >= low).toBe(true);
          const next = rows[nth + 1];
          if (next !== undefined) expect(high !== null && high < next.low).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('leaves a row that the sweep does not touch the same object, so that nothing is written for it', () => {
    fc.assert(
      fc.property(reads, fc.integer({ min: 0, max: 25 }), (list, at) => {
        const before = fold(list.slice(0, at));
        const read = list[at];
        if (read === undefined) return;
        const after = new Set(withRange(before, read));
        for (const row of before) {
          const isApart = (row.high !== null && row.high < read.low) || (read.high !== null && row.low > read.high);
          expect(after.has(row)).toBe(isApart);
        }
        expect(after.has(read)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('covers every id exactly if no id is without a sweep', () => {
    fc.assert(
      fc.property(reads, (list) => {
        expect(isTiled(fold(list))).toBe(
          lastReads(list)
            .slice(1)
            .every((name) => name !== null),
        );
      }),
      { numRuns: 500 },
    );
    expect(
      isTiled([
        { low: 1n, high: 7n },
        { low: 8n, high: null },
      ]),
    ).toBe(true);
    expect(
      isTiled([
        { low: 1n, high: 7n },
        { low: 9n, high: null },
      ]),
    ).toBe(false);
    expect(isTiled([{ low: 1n, high: lastPosition }])).toBe(true);
  });

  it('ends at the largest id, which has no end of its own', () => {
    expect(rangeOf({ low: 5n, high: null })).toEqual({ from: 5n, to: lastPosition });
    expect(coveredOf(rangeOf({ low: 5n, high: lastPosition }))).toEqual({ low: 5n, high: null });
    const rows = withRange([{ low: 1n, high: null, name: 'old' }], { low: lastPosition, high: null, name: 'new' });
    expect(rows).toEqual([
      { low: 1n, high: lastPosition - 1n, name: 'old' },
      { low: lastPosition, high: null, name: 'new' },
    ]);
  });
});

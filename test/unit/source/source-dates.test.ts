// Dates: what a moment of the source is read as, row by row.

import { describe, expect, test } from 'vitest';
import { parseDate, toDateText, toFilterDate } from '../../../src/source/parse/dates.ts';

const noon = Date.UTC(2024, 0, 15, 12);

interface Row {
  readonly row: string;
  readonly value: unknown;
  readonly at: number | null;
  readonly offset?: string | null;
  readonly problem?: RegExp;
}

const rows: readonly Row[] = [
  { row: '/Date(ms)/ without offset', value: `/Date(${noon})/`, at: noon },
  { row: '+0000', value: `/Date(${noon}+0000)/`, at: noon, offset: '+00:00' },
  { row: '-0330', value: `/Date(${noon}-0330)/`, at: noon, offset: '-03:30' },
  { row: '+1100: the milliseconds are the instant', value: `/Date(${noon}+1100)/`, at: noon, offset: '+11:00' },
  { row: '+11:00 with a colon', value: `/Date(${noon}+11:00)/`, at: noon, offset: '+11:00' },
  { row: '+9900: instant kept, offset not', value: `/Date(${noon}+9900)/`, at: noon, problem: /impossible offset/ },
  { row: 'negative ms', value: '/Date(-86400000+1000)/', at: -86_400_000, offset: '+10:00' },
  { row: 'escaped slashes left in the text', value: `\\/Date(${noon}+1000)\\/`, at: noon, offset: '+10:00' },
  { row: 'ISO with zone', value: '2024-01-15T23:00:00+11:00', at: noon, offset: '+11:00' },
  { row: 'ISO in UTC names an instant and no offset', value: '2024-01-15T12:00:00Z', at: noon },
  { row: 'ISO with 7 fraction digits', value: '2024-01-15T12:00:00.1239999Z', at: noon + 123 },
  { row: 'ISO with one fraction digit', value: '2024-01-15T12:00:00.5Z', at: noon + 500 },
  { row: 'ISO without zone', value: '2024-01-15T22:00:00', at: noon, problem: /read as \+10:00/ },
  { row: 'a date alone', value: '2024-01-15', at: noon - 22 * 3_600_000, problem: /read as \+10:00/ },
  { row: 'ISO with an impossible zone', value: '2024-01-15T12:00:00+25:00', at: null, problem: /impossible offset/ },
  { row: 'year 1 sentinel as ISO', value: '0001-01-01T00:00:00', at: null, problem: /year 1/ },
  { row: 'year 1 sentinel as /Date()/', value: '/Date(-62135596800000)/', at: null, problem: /year 1/ },
  { row: 'year 1 sentinel shifted by an offset', value: '/Date(-62135636400000+1100)/', at: null, problem: /year 1/ },
  { row: 'null', value: null, at: null },
  { row: 'absent', value: undefined, at: null },
  { row: 'future', value: '/Date(4102444800000+1000)/', at: 4_102_444_800_000, offset: '+10:00' },
  { row: 'beyond every calendar', value: '/Date(99999999999999999)/', at: null, problem: /9999/ },
  { row: 'the doubled hour, first', value: '2024-04-07T02:30:00+11:00', at: 1_712_417_400_000, offset: '+11:00' },
  { row: 'the doubled hour, second', value: '2024-04-07T02:30:00+10:00', at: 1_712_421_000_000, offset: '+10:00' },
  { row: 'the skipped hour', value: '2024-10-06T02:30:00+10:00', at: 1_728_145_800_000, offset: '+10:00' },
  { row: 'a 30th of February', value: '2024-02-30T00:00:00Z', at: null, problem: /not a date/ },
  { row: 'a 25th hour', value: '2024-02-03T25:00:00Z', at: null, problem: /not a date/ },
  { row: 'empty text', value: '', at: null, problem: /not a date/ },
  { row: 'words', value: 'yesterday', at: null, problem: /not a date/ },
  { row: 'a bare number', value: noon, at: null, problem: /not a date text/ },
];

describe('a date of the source', () => {
  test.for(rows)('$row', ({ value, at, offset, problem }) => {
    const read = parseDate(value);
    expect({ at: read.at, offset: read.offset }).toEqual({ at, offset: offset ?? null });
    if (problem === undefined) expect(read.problem).toBeNull();
    else expect(read.problem).toMatch(problem);
  });

  test('as a filter has a year of four digits, however far its margin reaches', () => {
    expect(toFilterDate(noon)).toBe('2024-01-15T22:00:00');
    expect(toFilterDate(Date.UTC(10_000, 0, 2))).toBe('9999-12-31T23:59:59');
    expect(toFilterDate(Date.UTC(-1, 0, 1))).toBe('0002-01-01T00:00:00');
  });

  test('keeps instant and offset through its JSON form', () => {
    for (const offset of ['+11:00', '-03:30', '+00:00', null]) {
      expect(parseDate(toDateText(noon, offset))).toEqual({ at: noon, offset, problem: null });
    }
  });
});

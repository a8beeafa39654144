// The one form of counts, bytes and spans.
import { expect, test } from 'vitest';
import { formatBytes, formatCount, formatSpan } from '../../src/domain/format.ts';

test('a count agrees with its thing', () => {
  expect([formatCount(12_345), formatCount(1, 'request'), formatCount(0, 'request')]).toEqual([
    '12,345',
    '1 request',
    '0 requests',
  ]);
  expect(formatCount(2, 'download is', 'downloads are')).toBe('2 downloads are');
});

test.for([
  [0, '0 B'],
  [940, '940 B'],
  [1_000, '1 kB'],
  [1_234_567, '1.2 MB'],
  [53_000_000_000, '53 GB'],
  [4e18, '4,000 PB'],
] as const)('%i bytes are %s', ([bytes, text]) => expect(formatBytes(bytes)).toBe(text));

const minuteMs = 60_000;
const dayMs = 1_440 * minuteMs;

test.for([
  [-5, '0ms', '0ms'],
  [350.4, '350ms', '350ms'],
  [1_000, '1s', '1s'],
  [1_540, '1.5s', '1s'],
  [45_900, '45s', '45s'],
  [21 * minuteMs, '21m', '21m'],
  [125 * minuteMs, '2h 5m', '2h'],
  [15 * dayMs, '15d', '15d'],
  [dayMs + 5 * minuteMs, '1d', '1d'],
  [400 * dayMs, '1y 35d', '1y'],
] as const)('%d ms are %s, or %s', ([ms, two, one]) => {
  expect([formatSpan(ms), formatSpan(ms, 1)]).toEqual([two, one]);
});

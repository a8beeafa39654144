// Transport: what a status means, and what Retry-After asks for.

import { describe, expect, test } from 'vitest';
import { isRetryable, toStatusTrouble } from '../../../src/source/http.ts';

const now = Date.parse('Fri, 15 Nov 2024 12:00:00 GMT');

function trouble(status: number, headers: Record<string, string> = {}) {
  const found = toStatusTrouble({ status, headers }, now);
  if (found === null) throw new Error(`${status} is no trouble`);
  return found;
}

describe('a status', () => {
  test.for([200, 203, 204])('%i is an answer', (status) => {
    expect(toStatusTrouble({ status, headers: {} }, now)).toBeNull();
  });

  test.for([
    [401, 'refused', false],
    [403, 'refused', false],
    [404, 'missing', false],
    [410, 'missing', false],
    [400, 'unreachable', false],
    [408, 'unreachable', true],
    [418, 'unreachable', false],
    [206, 'unreachable', false],
    [304, 'unreachable', false],
    [302, 'unreachable', false],
    [429, 'throttled', true],
    [500, 'unreachable', true],
    [503, 'unreachable', true],
    [599, 'unreachable', true],
  ] as const)('%i is %s, worth another try within seconds: %s', ([status, kind, another]) => {
    expect(trouble(status)).toMatchObject({ kind, status });
    expect(isRetryable(trouble(status))).toBe(another);
  });
});

describe('Retry-After', () => {
  test.for([
    ['seconds', '7', 7000, true],
    ['a day', '86400', 86_400_000, false],
    ['a date', 'Fri, 15 Nov 2024 12:00:05 GMT', 5000, true],
    ['a date in the past', 'Fri, 15 Nov 2024 11:00:00 GMT', undefined, true],
    ['0', '0', undefined, true],
    ['negative', '-5', undefined, true],
    ['words', 'soon', undefined, true],
    ['a fraction', '1.5', undefined, true],
    ['more than a day', '99999999', 86_400_000, false],
    ['more than any number', '9'.repeat(400), 86_400_000, false],
    ['a date in years', 'Fri, 15 Nov 2034 12:00:00 GMT', 86_400_000, false],
    ['empty', '', undefined, true],
  ] as const)('as %s', ([, value, retryAfterMs, another]) => {
    const found = trouble(429, { 'retry-after': value });
    expect(found).toMatchObject({ kind: 'throttled', retryAfterMs });
    expect(isRetryable(found)).toBe(another);
  });

  test('as a date counts by the clock of the server that sent it', () => {
    const headers = { 'retry-after': 'Fri, 15 Nov 2024 15:00:09 GMT', date: 'Fri, 15 Nov 2024 15:00:00 GMT' };
    expect(trouble(429, headers).retryAfterMs).toBe(9000);
  });

  test('makes a 503 a throttle: the source names a time', () => {
    expect(trouble(503, { 'retry-after': '3' })).toMatchObject({ kind: 'throttled', retryAfterMs: 3000 });
  });
});

// The one verdict on every failure of a download.
import { describe, expect, it } from 'vitest';
import { type FailedAttempt, mostAttempts, toHashUse, toVerdict } from '../../src/domain/download-verdict.ts';
import { Trouble, type TroubleFacts, type TroubleKind, toDelay } from '../../src/domain/trouble.ts';

const fail = (kind: TroubleKind, some: Partial<FailedAttempt> = {}, facts: TroubleFacts = {}) =>
  toVerdict({
    trouble: new Trouble(kind, 'It failed.', facts),
    at: 'source',
    attempts: 1,
    isOwn: true,
    random: 0.5,
    ...some,
  });

describe('a failure', () => {
  it.each(['unreachable', 'malformed', 'mismatch'] as const)(
    'that is %s waits longer each time, anywhere up to the limit',
    (kind) => {
      const delays = [1, 2, 3, 4, 5, 6, 7].map((attempts) => fail(kind, { attempts, random: 1 }));
      expect(delays.map((verdict) => verdict.kind === 'retry' && verdict.delayMs)).toEqual([
        5_000, 20_000, 80_000, 320_000, 1_280_000, 5_120_000, 20_480_000,
      ]);
      expect(fail(kind, { attempts: 5, random: 0 })).toEqual({ kind: 'retry', delayMs: 0, countsAttempt: true });
    },
  );

  it('is given up after the last try, with what went wrong', () => {
    expect(fail('unreachable', { attempts: mostAttempts })).toEqual({
      kind: 'complete',
      state: 'given_up',
      reason: 'It failed. Tried 8 times.',
    });
  });

  it('while the source is down spends nothing and is never given up', () => {
    expect(fail('unreachable', { attempts: 100, isOwn: false })).toMatchObject({ kind: 'retry', countsAttempt: false });
  });

  it('of a file that is not there is final after tries over a day, and at once when it is gone for good', () => {
    const delays = [1, 2, 3, 4, 5, 6].map((attempts) => fail('missing', { attempts }));
    const total = delays.reduce((sum, verdict) => sum + (verdict.kind === 'retry' ? verdict.delayMs : 0), 0);
    expect(total / 3_600_000).toBeCloseTo(24.2, 1);
    expect(fail('missing', { attempts: 7 })).toMatchObject({ kind: 'complete', state: 'missing' });
    expect(fail('missing', {}, { status: 410 })).toMatchObject({ kind: 'complete', state: 'missing' });
  });

  it('by throttling waits as long as it was told, at most a day, and spends nothing', () => {
    const isOwn = false;
    expect(fail('throttled', { isOwn }, { retryAfterMs: toDelay(30_000) })).toEqual({
      kind: 'pause',
      scope: 'account',
      delayMs: 30_000,
    });
    expect(fail('throttled', { isOwn }, { retryAfterMs: toDelay(9e9) })).toMatchObject({ delayMs: 86_400_000 });
    expect(fail('throttled', { isOwn }, { retryAfterMs: toDelay(1) })).toMatchObject({ delayMs: 1_000 });
  });

  it('by throttling of one file, although the list was read since its last failure, is that file’s own: it waits as long as it was told', () => {
    const status = 429;
    expect(fail('throttled', {}, { status, retryAfterMs: toDelay(30_000) })).toEqual({
      kind: 'retry',
      delayMs: 30_000,
      countsAttempt: true,
    });
    expect(fail('throttled', {}, { status, retryAfterMs: toDelay(9e9) })).toMatchObject({ delayMs: 86_400_000 });
    expect(fail('throttled', {})).toMatchObject({ kind: 'pause', scope: 'account' });
    expect(fail('throttled', { attempts: 5 }, { status })).toEqual({
      kind: 'retry',
      delayMs: 640_000,
      countsAttempt: true,
    });
    expect(fail('throttled', { attempts: mostAttempts }, { status })).toMatchObject({
      kind: 'complete',
      state: 'given_up',
    });
  });

  it.each(['refused', 'unreachable', 'malformed'] as const)(
    'that is %s spends an attempt only where the list was read since the attempt before',
    (kind) => {
      expect(fail(kind, { isOwn: true })).toMatchObject({ kind: 'retry', countsAttempt: true });
      expect(fail(kind, { isOwn: false, attempts: 100 })).toMatchObject({ kind: 'retry', countsAttempt: false });
    },
  );

  it.each(['local', 'throttled', 'refused', 'missing', 'unreachable'] as const)(
    'of our storage (%s) is nobody’s fault: everything rests',
    (kind) => {
      const failed = { at: 'storage', attempts: 100, isOwn: false } as const;
      expect(fail(kind, failed)).toMatchObject({ kind: 'pause', scope: 'all' });
    },
  );

  it('of our storage at one file, while it takes others, is that file’s own', () => {
    expect(fail('local', { at: 'storage', attempts: 3 })).toEqual({
      kind: 'retry',
      delayMs: 40_000,
      countsAttempt: true,
    });
    expect(fail('local', { at: 'storage', attempts: mostAttempts })).toMatchObject({
      kind: 'complete',
      state: 'given_up',
    });
  });
});

describe('an equal Hash', () => {
  const trust = { agreed: 20, contradicted: false };
  it('is compared until twenty pairs agreed, then one time in twenty', () => {
    expect(toHashUse('learn', { ...trust, agreed: 19 }, 0.9)).toBe('compare');
    expect(toHashUse('learn', trust, 0.9)).toBe('link');
    expect(toHashUse('learn', trust, 0.04)).toBe('compare');
  });
  it('spares nothing after a contradiction, everything where it is to be believed, and nothing where it is not', () => {
    expect(toHashUse('learn', { ...trust, contradicted: true }, 0.9)).toBe('fetch');
    expect(toHashUse('always', { ...trust, agreed: 0, contradicted: true }, 0)).toBe('link');
    expect(toHashUse('never', trust, 0.9)).toBe('fetch');
  });
});

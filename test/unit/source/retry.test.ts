// Retries of temporary failures.
import { describe, expect, test, vi } from 'vitest';
import { LeaseLost, Trouble, toDelay } from '../../../src/domain/trouble.ts';
import { retry } from '../../../src/sync/retry.ts';

describe('a retry', () => {
  test('waits for what passes, and then goes on', async () => {
    const waits: string[] = [];
    const signal = AbortSignal.timeout(600_000);
    let tries = 0;
    const worked = await retry({ retryForMs: Infinity, signal, onWait: ({ kind }) => waits.push(kind) }, async () => {
      tries++;
      if (tries < 3) throw new Trouble('local', 'The database is away.', { retryAfterMs: toDelay(1) });
      return 'done';
    });
    expect([worked, tries, waits]).toEqual(['done', 3, ['local', 'local']]);
  });

  test('that is ended by a lane taken over says so, and not that something was aborted', async () => {
    const lane = new AbortController();
    const lost = new LeaseLost('acme', 'live');
    const waiting = retry(
      { retryForMs: Infinity, signal: lane.signal, onWait: () => setImmediate(() => lane.abort(lost)) },
      () => Promise.reject(new Trouble('local', 'The database is away.', { retryAfterMs: toDelay(60_000) })),
    );
    await expect(waiting).rejects.toBe(lost);
  });

  test('counts from the first failure, also where the work has succeeded for longer before it', async () => {
    vi.useFakeTimers();
    try {
      const away = new Trouble('local', 'The database is away.', { retryAfterMs: toDelay(1_000) });
      let tries = 0;
      const waiting = retry({ retryForMs: 2_000, signal: new AbortController().signal }, async () => {
        if (++tries > 1) return 'done';
        await new Promise((resolve) => setTimeout(resolve, 5_000));
        throw away;
      });
      const ended = expect(waiting).resolves.toBe('done');
      await vi.advanceTimersByTimeAsync(7_000);
      await ended;
    } finally {
      vi.useRealTimers();
    }
  });

  test.for(['refused', 'missing', 'mismatch'] as const)('does not wait for what stays: %s', async (kind) => {
    const refused = new Trouble(kind, 'No.');
    const signal = AbortSignal.timeout(600_000);
    const failing = retry({ retryForMs: Infinity, signal }, () => Promise.reject(refused));
    await expect(failing).rejects.toBe(refused);
  });
});

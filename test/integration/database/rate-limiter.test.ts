// The request budget of a source, shared by several workers through the database.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { openStore } from '../../../src/store/store.ts';
import { createRateLimiter } from '../../../src/sync/limits.ts';
import { test } from '../../support/database/test-database.ts';

describe('a rate limit', () => {
  test('of 100 a second holds over three workers of eight requests each at once', async ({ database }) => {
    const open = () => openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('key') });
    await using one = open();
    await using two = open();
    await using three = open();
    const sentAt: number[] = [];
    const signal = AbortSignal.timeout(600_000);
    await Promise.all(
      [one, two, three].flatMap((store) => {
        const takeSlot = createRateLimiter(store, 'http://source.example', 100);
        return Array.from({ length: 8 }, async () => {
          for (let nth = 0; nth < 10; nth++) {
            await takeSlot(signal);
            sentAt.push(performance.now());
          }
        });
      }),
    );
    sentAt.sort((a, b) => a - b);
    expect(sentAt).toHaveLength(240);
    // In any window of a second, on a busy machine too: a slot that is missed is not made up for.
    for (const [at, start] of sentAt.entries()) {
      const within = sentAt.slice(at).filter((time) => time < start + 1_000).length;
      expect(within).toBeLessThanOrEqual(100);
    }
    // And the budget is used, not just kept: where the machine lets them, eight slots come in the time of sixteen at most.
    const shortest = Math.min(...sentAt.slice(8).map((time, at) => time - (sentAt[at] ?? 0)));
    expect(shortest).toBeLessThan(160);
  });

  test('is kept where the first answer of the database comes late', async () => {
    const lateMs = 400;
    const slots: number[] = [];
    let answers = 0;
    const rateLimits = {
      async takeSlot() {
        slots.push(performance.now());
        if (answers++ === 0) await sleep(lateMs);
        return 0;
      },
    };
    const takeSlot = createRateLimiter({ rateLimits }, 'http://source.example', 100);
    await takeSlot(AbortSignal.timeout(600_000));
    // Real time, bounded in one direction: the slot of the late answer would be used as much later.
    expect(performance.now() - (slots.at(-1) ?? Number.NaN)).toBeLessThan(lateMs);
  });

  test('is used again at once after one long stall: slots grow wider step by step', async () => {
    const asked: number[] = [];
    const rateLimits = {
      async takeSlot(_source: string, slotMs: number) {
        asked.push(slotMs);
        if (asked.length === 3) await sleep(400);
        return 0;
      },
    };
    const takeSlot = createRateLimiter({ rateLimits }, 'http://source.example', 100);
    for (let nth = 0; nth < 10; nth++) await takeSlot(AbortSignal.timeout(600_000));
    const usual = asked[0] ?? Number.NaN;
    const tooWide = asked.filter((slotMs, at) => {
      const widest = Math.max(usual, ...asked.slice(0, at));
      return slotMs - usual > 50 + 2 * (widest - usual);
    });
    expect(tooWide).toEqual([]);
  });

  test('that is off never waits', async ({ database }) => {
    await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('key') });
    const takeSlot = createRateLimiter(store, 'http://source.example', null);
    for (let nth = 0; nth < 1_000; nth++) await takeSlot(AbortSignal.timeout(1_000));
  });
});

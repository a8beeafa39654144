// How much of the stored bytes a night reads, on a turned clock: no byte stays unread for longer than it may, and no night reads the whole.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nightMs, toNightBudget, type UnreadBytes } from '../../src/domain/reread.ts';

interface Blob {
  readonly bytes: number;
  readAt: number;
}

/** As the store counts them. */
function toUnread(blobs: readonly Blob[], now: number, withinMs: number): UnreadBytes[] {
  return blobs.map(({ bytes, readAt }) => ({
    nights: Math.max(1, Math.floor((readAt - now + withinMs) / nightMs)),
    bytes,
  }));
}

/** Reads as the pass does. Returns how many bytes, and the greatest age that was met. */
function readNight(blobs: readonly Blob[], now: number, withinMs: number) {
  let left = toNightBudget(toUnread(blobs, now, withinMs), withinMs);
  let read = 0;
  let oldest = 0;
  for (const blob of blobs.toSorted((a, b) => a.readAt - b.readAt)) {
    if (left <= 0) break;
    oldest = Math.max(oldest, now - blob.readAt);
    left -= blob.bytes;
    read += blob.bytes;
    blob.readAt = now;
  }
  return { read, oldest };
}

const sum = (blobs: readonly Blob[]) => blobs.reduce((total, { bytes }) => total + bytes, 0);
const toAge = (blobs: readonly Blob[], now: number) => Math.max(0, ...blobs.map(({ readAt }) => now - readAt));
const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 1_000_000 })), {
  maxLength: 12,
});
const days = fc.integer({ min: 2, max: 40 });

describe('a night reads so much that', () => {
  it('no byte is unread for longer than it may be, however files come and runs are late', () => {
    fc.assert(
      fc.property(
        days,
        fc.array(fc.record({ added: sizes, lateMs: fc.integer({ min: 0, max: 4 * 3_600_000 }) }), {
          minLength: 60,
          maxLength: 120,
        }),
        (within, nights) => {
          const blobs: Blob[] = [];
          nights.forEach(({ added, lateMs }, night) => {
            const now = night * nightMs + lateMs;
            readNight(blobs, now, within * nightMs);
            expect(toAge(blobs, now + nightMs / 2)).toBeLessThanOrEqual(within * nightMs);
            // At any time of the day that follows.
            blobs.push(...added.map((bytes, at) => ({ bytes, readAt: now + (at / 12) * (nightMs / 2) })));
          });
        },
      ),
      { numRuns: 50 },
    );
  });

  it('a night may be left out', () => {
    fc.assert(
      fc.property(
        days.filter((within) => within > 2),
        sizes,
        fc.array(fc.integer({ min: 8, max: 40 }), { minLength: 1, maxLength: 4 }),
        (within, stored, pauses) => {
          const blobs = stored.map((bytes, at) => ({ bytes, readAt: -(at % within) * 1_000 }));
          let night = 0;
          for (const pause of pauses) {
            for (let each = 0; each < pause + within; each++) {
              night++;
              const { oldest } = readNight(blobs, night * nightMs, within * nightMs);
              expect(oldest).toBeLessThanOrEqual(within * nightMs);
            }
            night++;
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it('half of the bytes may be erased meanwhile, also those that were just read', () => {
    const within = 30;
    const blobs: Blob[] = Array.from({ length: 600 }, () => ({ bytes: 10, readAt: 0 }));
    for (let night = 1; night <= 90; night++) {
      readNight(blobs, night * nightMs, within * nightMs);
      expect(toAge(blobs, night * nightMs)).toBeLessThanOrEqual(within * nightMs);
      if (night === 15) blobs.splice(0, 300);
    }
  });
});

describe('a night reads no more than it has to', () => {
  it('of an account that was stored at once: evenly, from the first night on', () => {
    const blobs: Blob[] = Array.from({ length: 2_900 }, () => ({ bytes: 100, readAt: 0 }));
    for (let night = 1; night <= 100; night++) {
      const { read } = readNight(blobs, night * nightMs - 1, 30 * nightMs);
      expect(read / sum(blobs)).toBeCloseTo(1 / 29, 2);
    }
  });

  it('after a long absence: a quarter of the bytes at most, until all is well again', () => {
    const blobs: Blob[] = Array.from({ length: 2_900 }, (_, at) => ({ bytes: 100, readAt: -at }));
    const shares = Array.from({ length: 40 }, (_, night) => {
      const { read } = readNight(blobs, (100 + night) * nightMs, 30 * nightMs);
      return read / sum(blobs);
    });
    expect(Math.max(...shares)).toBe(0.25);
    expect(shares.slice(0, 4)).toEqual([0.25, 0.25, 0.25, 0.25]);
    expect(Math.max(...shares.slice(4))).toBeLessThan(0.05);
  });

  it('of nothing: nothing', () => {
    expect(toNightBudget([], 30 * nightMs)).toBe(0);
  });
});

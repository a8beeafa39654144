// Calls that are answered together.
import { describe, expect, test } from 'vitest';
import { createCoalescer } from '../../src/store/postgres/coalesce.ts';

const fulfilled = <T>(value: T): PromiseSettledResult<T> => ({ status: 'fulfilled', value });

/** Work that waits until it is let go, and notes what it was given. */
function createHeldWork() {
  const batches: string[][] = [];
  const holds: (() => void)[] = [];
  const call = createCoalescer<string, string>(
    (text) => text[0],
    async (texts) => {
      batches.push([...texts]);
      await new Promise<void>((resolve) => holds.push(resolve));
      return texts.map((text) =>
        text.endsWith('!') ? { status: 'rejected', reason: text } : fulfilled(`${text} done`),
      );
    },
  );
  return { batches, call, release: () => holds.splice(0).forEach((resolve) => void resolve()) };
}

describe('calls of one group', () => {
  test('that come while one is under way are worked on together, the first at once', async () => {
    const { batches, call, release } = createHeldWork();
    const answers = ['a1', 'a2', 'a3'].map((text) => call(text));
    expect(batches).toEqual([['a1']]);
    release();
    await answers[0];
    await expect.poll(() => batches).toEqual([['a1'], ['a2', 'a3']]);
    release();
    expect(await Promise.all(answers)).toEqual(['a1 done', 'a2 done', 'a3 done']);
    const later = call('a4');
    expect(batches.at(-1)).toEqual(['a4']);
    release();
    expect(await later).toBe('a4 done');
  });

  test('get each its own answer, also when one is refused', async () => {
    const { batches, call, release } = createHeldWork();
    const answers = Promise.allSettled(['a1', 'a2!', 'a3'].map((text) => call(text)));
    release();
    await expect.poll(() => batches).toHaveLength(2);
    release();
    expect((await answers).map((one) => one.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  test('are all refused when the work itself fails', async () => {
    const call = createCoalescer<string, string>(
      () => 'one',
      () => Promise.reject(new Error('no database')),
    );
    await expect(call('a')).rejects.toThrow('no database');
    await expect(call('b')).rejects.toThrow('no database');
  });
});

test('calls of different groups do not wait for each other', () => {
  const { batches, call, release } = createHeldWork();
  void call('a1');
  void call('b1');
  expect(batches).toEqual([['a1'], ['b1']]);
  release();
});

// Calls that are answered together.

import { setImmediate as nextTick } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Trouble } from '../../src/domain/trouble.ts';
import { coalesce } from '../../src/store/postgres/coalesce.ts';

const fulfilled = <T>(value: T): PromiseSettledResult<T> => ({ status: 'fulfilled', value });

/** Work that waits until it is let go, and notes what it was given. */
function createHeldWork() {
  const batches: string[][] = [];
  const holds: (() => void)[] = [];
  const call = coalesce<string, string>(
    async (texts) => {
      batches.push([...texts]);
      await new Promise<void>((resolve) => holds.push(resolve));
      return texts.map((text) => `${text} done`);
    },
    (text) => text[0],
  );
  return { batches, call, release: () => holds.splice(0).forEach((resolve) => void resolve()) };
}

describe('calls of one group', () => {
  test('that come together, or while one is under way, are worked on together', async () => {
    const { batches, call, release } = createHeldWork();
    const answers = ['a1', 'a2'].map((text) => call(text));
    await nextTick();
    expect(batches).toEqual([['a1', 'a2']]);
    answers.push(call('a3'), call('a4'));
    await nextTick();
    expect(batches).toHaveLength(1);
    release();
    await answers[0];
    await expect
      .poll(() => batches)
      .toEqual([
        ['a1', 'a2'],
        ['a3', 'a4'],
      ]);
    release();
    expect(await Promise.all(answers)).toEqual(['a1 done', 'a2 done', 'a3 done', 'a4 done']);
    const later = call('a5');
    await nextTick();
    expect(batches.at(-1)).toEqual(['a5']);
    release();
    expect(await later).toBe('a5 done');
  });

  test('do not share the fate of one whose value the database refuses', async () => {
    const batches: number[] = [];
    const call = coalesce(async (texts: readonly string[]) => {
      batches.push(texts.length);
      if (texts.includes('bad')) throw Object.assign(new Error('bigint out of range'), { code: '22003' });
      return texts.map((text) => `${text} done`);
    });
    const answers = await Promise.allSettled(['a', 'bad', 'b'].map((text) => call(text)));
    expect(answers).toMatchObject([fulfilled('a done'), { status: 'rejected' }, fulfilled('b done')]);
    expect(batches).toEqual([3, 1, 1, 1]);
    expect(await call('later')).toBe('later done');
  });

  test('are all refused when the database is away', async () => {
    let statements = 0;
    const call = coalesce<string, string>(async () => {
      statements += 1;
      throw new Trouble('local', 'no database', { at: 'database' });
    });
    const answers = await Promise.allSettled(['a', 'b'].map((text) => call(text)));
    expect([answers.map(({ status }) => status), statements]).toEqual([['rejected', 'rejected'], 1]);
    await expect(call('c')).rejects.toThrow('no database');
  });
});

test('calls of different groups do not wait for each other', async () => {
  const { batches, call, release } = createHeldWork();
  void call('a1');
  void call('b1');
  await nextTick();
  expect(batches).toEqual([['a1'], ['b1']]);
  release();
});

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { withinGrace } from '../../src/cli/grace.ts';

describe('a process that was asked to stop', () => {
  const never = new Promise<string>(() => {});

  it('ends with its work when that ends in time', async () => {
    const stop = new AbortController();
    const work = sleep(20, 'done');
    stop.abort();
    expect(await withinGrace(work, stop.signal, 1_000)).toBe('done');
  });

  it('does not wait longer than its grace for a connection that went silent', async () => {
    const stop = new AbortController();
    const ended = withinGrace(never, stop.signal, 30);
    stop.abort();
    expect(await ended).toBe('overdue');
    expect(await withinGrace(never, stop.signal, 1)).toBe('overdue');
  });

  it('is not hurried before it was asked', async () => {
    const first = await Promise.race([withinGrace(never, new AbortController().signal, 1), sleep(40, 'still at work')]);
    expect(first).toBe('still at work');
  });

  it('hands on what its work throws', async () => {
    await expect(withinGrace(Promise.reject(new Error('x')), new AbortController().signal, 1)).rejects.toThrow('x');
  });
});

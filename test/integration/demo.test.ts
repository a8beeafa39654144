// The parts of the demo: a board that goes on where it stopped, arrivals that slow down, and ports that stay the same.
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openBoard, startArrivals } from '../../src/dev/demo/board.ts';
import { findDemoPorts } from '../../src/dev/demo/ports.ts';
import { Trouble } from '../../src/domain/trouble.ts';

const openFolder = () => mkdtempDisposableSync(join(tmpdir(), 'intake-test-'));

describe("the demo's board", () => {
  test('begins with people who applied over the weeks before, until now', async () => {
    using folder = openFolder();
    await using board = await openBoard({ stateDir: folder.path, applications: 300, port: 0 });
    const days = [...board.truth()].map(({ submittedAt }) => (Date.now() - submittedAt) / 86_400_000);
    expect(Math.max(...days)).toBeGreaterThan(30);
    expect(Math.max(...days)).toBeLessThan(36);
    expect(Math.min(...days)).toBeLessThan(1);
    // Every one of the thirty days that the status page draws has its bar.
    expect(new Set(days.map(Math.floor)).size).toBeGreaterThan(30);
  });

  test('goes on with the same people and times, those who came meanwhile included', async () => {
    using folder = openFolder();
    const open = (applications: number) => openBoard({ stateDir: folder.path, applications, port: 0 });
    const listed = (board: Awaited<ReturnType<typeof open>>) =>
      [...board.truth()].map(({ id, submittedAt, email }) => [id, submittedAt, email]);
    let before: unknown[][];
    {
      await using board = await open(20);
      board.arrive();
      before = listed(board);
    }
    await using again = await open(7);
    expect(before).toHaveLength(21);
    expect(listed(again)).toEqual(before);
    expect(again.begunWith).toBe(20);
  });

  test('that cannot be kept is said before anything starts', async () => {
    using folder = openFolder();
    const file = join(folder.path, 'a-file');
    writeFileSync(file, '');
    const opening = openBoard({ stateDir: file, applications: 1, port: 0 });
    await expect(opening).rejects.toThrow(Trouble);
    await expect(opening).rejects.toThrow(`The demo cannot write into ${file} (`);
  });
});

describe('people', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('apply within seconds, then ever more rarely, and no more once it is over', () => {
    let count = 0;
    const arrivals = startArrivals({ arrive: () => void count++ });
    vi.advanceTimersByTime(30_000);
    expect(count).toBeGreaterThan(2);
    vi.advanceTimersByTime(3 * 3_600_000);
    const before = count;
    vi.advanceTimersByTime(3_600_000);
    expect(count - before).toBe(12);
    arrivals[Symbol.dispose]();
    vi.advanceTimersByTime(3_600_000);
    expect(count - before).toBe(12);
  });
});

test('the ports stay the same; one that is taken is replaced, and that is said', async () => {
  const first = await findDemoPorts(() => {});
  const taken = createServer();
  await new Promise<void>((resolve) => {
    taken.listen(first.statusPage, '127.0.0.1', resolve);
  });
  const said: string[] = [];
  const second = await findDemoPorts((text) => said.push(text));
  await new Promise((resolve) => {
    taken.close(resolve);
  });
  expect(second.statusPage).toBeGreaterThan(first.statusPage);
  expect(said).toContainEqual(
    expect.stringMatching(new RegExp(`^Port \\d+ is taken: the status page listens on ${second.statusPage}\\.$`)),
  );
  expect(await findDemoPorts(() => {})).toEqual(first);
});

// Turns by the clock, with the scheduler's own words kept out of the log's stream.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { startTurns } from '../../src/sync/turns.ts';

test('a turn that is still under way when the next is due is a line of our log and of nobody else', async () => {
  const said = (['log', 'info', 'warn', 'error', 'debug'] as const).map((name) => vi.spyOn(console, name));
  const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn() };
  let running = 0;
  let most = 0;
  const turns = startTurns(
    '* * * * * *',
    async () => {
      most = Math.max(most, ++running);
      await sleep(2_300);
      running--;
    },
    log,
  );
  await vi.waitFor(() => expect(log.debug).toHaveBeenCalled(), { timeout: 10_000, interval: 100 });
  await turns?.destroy();
  expect(most).toBe(1);
  expect(log.debug.mock.calls[0]?.[1]).toMatch(/^a turn did not run: /);
  for (const spy of said) expect(spy).not.toHaveBeenCalled();
}, 15_000);

// The nights on which Melbourne's clocks change, read by date filters whose zone nobody knows.
import { describe, expect } from 'vitest';
import { findDifferences } from '../support/equality.ts';
import { test } from '../support/processes/site.ts';

const minute = 60_000;
const nights = [
  ['ends and an hour comes twice', Date.UTC(2026, 3, 4, 16)],
  ['begins and an hour is skipped', Date.UTC(2026, 9, 3, 16)],
] as const;

describe.each(nights)('the night in which daylight saving %s', (_, changesAt) => {
  for (const [dateZone, ...tags] of [['standard', 'slow'], ['melbourne'], ['utc', 'slow']] as const)
    test(`is read whole by dates that the source reads as ${dateZone}`, { tags }, async ({ openSite }) => {
      const { board, database, intake } = await openSite({ applications: 0, choices: { dateZone } });
      // Every ten minutes from three hours before the change to three hours after it.
      board.add(
        Array.from({ length: 37 }, (__, nth) => ({
          submittedAt: changesAt + (nth - 18) * 10 * minute,
          attachments: [],
        })),
      );
      const [from, to] = [-180, 181].map((minutes) => new Date(changesAt + minutes * minute).toISOString());
      const { code } = await intake(`backfill --no-files --from ${from} --to ${to}`);
      // Everything on one page cannot be proven by dates; it is read all the same.
      expect(code).toBe(3);
      expect(await findDifferences(database, board)).toEqual([]);
    });
});

// Maintenance deletes or marks old rows while other clients write the same rows and a second maintenance runs.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { lapsePrefills } from '../../../src/store/prefill/lapse.ts';
import type { Actor } from '../schedule.ts';
import type { Scenarios } from '../stage.ts';
import { failOnWaiting } from './clients.ts';

export const pruningScenarios = {
  /** Two workers count the prefills that ended without a profile. */
  'prefill-days': (stage) => ({
    promise: 'each prefill is counted once, and neither worker waits',
    async open() {
      const { advertiserId } = await stage.openAdvertiser();
      for (const outcome of ['failed', 'denied']) {
        await stage.query(
          `INSERT INTO intake.prefills (advertiser_id, prefill_id, outcome, reason, form_url, return_url, created_at, ended_at)
           VALUES ($1, $2, $3, 'test', 'https://a.example/', 'https://a.example/', now() - interval '2 hours', now() - interval '2 hours')`,
          [advertiserId, randomUUID(), outcome],
        );
      }
      await stage.query(
        `INSERT INTO intake.prefill_days (advertiser_id, day, started)
         SELECT $1, ((now() - interval '2 hours') AT TIME ZONE interval '10 hours')::date, 5`,
        [advertiserId],
      );
      const lapse = (actor: Actor) => lapsePrefills(stage.database(actor.name));
      return {
        programs: { a: lapse, b: lapse },
        mortal: ['a'],
        commitsApart: true,
        async check(outcome) {
          failOnWaiting(outcome, /^WITH gone AS/, 'what another one counts');
          // If the first worker died before it counted, the next run counts.
          await lapsePrefills(stage.direct);
          const rows = await stage.query(
            `SELECT started::int, failed::int, denied::int FROM intake.prefill_days WHERE advertiser_id = $1`,
            [advertiserId],
          );
          assert.deepEqual(rows, [{ started: 7, failed: 1, denied: 1 }], 'each is counted once');
        },
      };
    },
  }),
} satisfies Scenarios;

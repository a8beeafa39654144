// Maintenance deletes or marks old rows while other clients write the same rows and a second maintenance runs.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { pruneQuarantine } from '../../../src/store/applications/quarantine.ts';
import { pruneEvents } from '../../../src/store/events.ts';
import { lapsePrefills } from '../../../src/store/prefill/lapse.ts';
import { pruneSweeps } from '../../../src/store/sweeps/sweeps.ts';
import { anApplication, aPage, commitPage } from '../../support/applications.ts';
import type { Actor } from '../schedule.ts';
import type { Scenarios } from '../stage.ts';
import { commit, failOnWaiting } from './clients.ts';
import { openLane, privacyKey, proven } from './lanes.ts';

export const pruningScenarios = {
  /** Two clients prune old sweeps, events and quarantined elements while a page shows the element again and ends a sweep. */
  pruning: (stage) => ({
    promise:
      'the newest event and sweep, covered sweeps, and elements that are shown again after a pruning are there (P26)',
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      const reject = { reason: 'no id', raw: '{}', rawText: null, identity: 'element', applicant: null, members: {} };
      const sweep = (sweepId: bigint, high: bigint) => {
        const page = aPage(lease, [anApplication(sweepId, { attachments: [] })], {
          ...{ advertiserId, sweepId, rejects: [reject], progress: { ended: proven } },
        });
        return { ...page, sweep: { ...page.sweep, purpose: 'recheck', low: 1n, high } as const };
      };
      // The second sweep covers only a part of the first one's range, so coverage still names both.
      await commitPage(stage.direct, privacyKey, sweep(1n, 20n));
      await commitPage(stage.direct, privacyKey, sweep(2n, 10n));
      for (const [table, column] of [
        ['sweeps', 'started_at'],
        ['events', 'at'],
      ])
        await stage.query(
          `UPDATE intake.${table} SET ${column} = now() - interval '100 days' WHERE advertiser_id = $1`,
          [advertiserId],
        );
      await stage.query(
        `UPDATE intake.quarantine SET resolved_at = now() - interval '100 days' WHERE advertiser_id = $1`,
        [advertiserId],
      );
      const page = sweep(3n, 10n);
      const prune = async (actor: Actor) => {
        const db = stage.database(actor.name);
        await pruneSweeps(db);
        await pruneEvents(db);
        await pruneQuarantine(db);
      };
      return {
        programs: { a: prune, b: prune, page: commit(stage, page) },
        mortal: ['a'],
        commitsApart: true,
        async check({ lines }) {
          const [row] = await stage.query<{ sweeps: string; events: number; lost: number; elements: number }>(
            `SELECT (SELECT string_agg(sweep_id::text, ' ' ORDER BY sweep_id) FROM intake.sweeps WHERE advertiser_id = $1) AS sweeps,
               (SELECT count(*)::int FROM intake.events WHERE advertiser_id = $1 AND application_id = 3) AS events,
               (SELECT count(*)::int FROM intake.coverage c WHERE advertiser_id = $1 AND NOT EXISTS (
                 SELECT 1 FROM intake.sweeps s WHERE s.advertiser_id = $1 AND s.sweep_id = c.sweep_id)) AS lost,
               (SELECT count(*)::int FROM intake.quarantine WHERE advertiser_id = $1) AS elements`,
            [advertiserId],
          );
          assert.equal(row?.lost, 0, 'P10: coverage names a sweep that was pruned');
          assert.match(row.sweeps, /3$/, 'the newest sweep was pruned');
          assert.equal(row.events, 2, 'P26: an event was pruned that is not old');
          const last = (text: RegExp, of: (client: string) => boolean) =>
            lines.findLastIndex((line) => of(line.client) && text.test(line.text));
          const shownAt = last(/^INSERT INTO intake\.quarantine/, (client) => client === 'page');
          const prunedAt = last(/^DELETE FROM intake\.quarantine/, (client) => client !== 'page');
          if (shownAt > prunedAt)
            assert.equal(row.elements, 1, 'P3: an element that was shown after the pruning is not there');
        },
      };
    },
  }),

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

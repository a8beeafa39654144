// The counts by day that analysts' views read are those of the applications, whatever was changed and counted before.
import pg from 'pg';
import { describe, expect } from 'vitest';
import { countStaleDays, markAllDays } from '../../../src/store/reports/counts.ts';
import { type TestDatabase, test } from '../../support/database/test-database.ts';
import { wrongDaysSql } from '../../support/database/wrong-days.ts';
import { createRandom } from '../../support/suite/random.ts';

describe('the counts by day', () => {
  test('are right after any change, counted again or not', async ({ emptied }) => {
    await addAccount(emptied);
    const { pick, between } = createRandom(20);
    const id = () => between(1, 40);
    const time = () => pick(['NULL', `timestamptz '2026-02-26' + ${between(0, 200)} * interval '1 hour'`]);
    const changes: readonly (() => string)[] = [
      () =>
        `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, source_offset, job_reference, person_key, content_hash, observed_seq)
         SELECT ${pick([7, 8])}, g, ${time()}, '${pick(['+10:00', '-03:30'])}', ${pick(["'A'", "'B'", 'NULL'])}, '${pick(['x', 'y'])}', '', 1
         FROM generate_series(${id()}, ${id()}) AS g ON CONFLICT DO NOTHING`,
      () =>
        `UPDATE intake.applications SET job_reference = ${pick(["'A'", "'C'", 'NULL'])} WHERE application_id = ${id()}`,
      () => `UPDATE intake.applications SET submitted_at = ${time()} WHERE application_id = ${id()}`,
      () => `UPDATE intake.applications SET person_key = '${pick(['x', 'z'])}' WHERE application_id < ${id()}`,
      () => `UPDATE intake.applications SET erased_at = now() WHERE application_id = ${id()}`,
      () => `UPDATE intake.applications SET ready_at = now() WHERE application_id = ${id()}`,
      () =>
        `INSERT INTO intake.screens (advertiser_id, application_id, screen_no, outcome, sha256, parser_version)
         SELECT advertiser_id, application_id, 1, '${pick(['pass', 'fail', 'unknown'])}', '', 1 FROM intake.applications
         WHERE application_id = ${id()} ON CONFLICT DO NOTHING`,
      () => `UPDATE intake.screens SET outcome = 'pass' WHERE application_id < ${id()}`,
      () => `DELETE FROM intake.screens WHERE application_id = ${id()}`,
      () => `SELECT intake.count_stale_days(${pick([1, 3, 1000])})`,
    ];
    for (let step = 0; step < 150; step++) {
      const change = pick(changes)();
      await emptied.query(change);
      expect(await emptied.query(wrongDaysSql), `after step ${step}: ${change}`).toEqual([]);
    }
    while (await countStaleDays(emptied));
    expect(await emptied.query(wrongDaysSql)).toEqual([]);
  });

  test('are nothing where all applications of a month are erased', async ({ emptied }) => {
    await addAccount(emptied);
    await addApplications(emptied, 1, 10);
    while (await countStaleDays(emptied));
    await emptied.query(`UPDATE intake.applications SET erased_at = now()`);
    while (await countStaleDays(emptied));
    expect(await emptied.query(`SELECT * FROM intake_analytics.jobs`)).toEqual([]);
    expect(await emptied.query(wrongDaysSql)).toEqual([]);
  });

  test('stay stale while a change is not committed', async ({ emptied }) => {
    await addAccount(emptied);
    await addApplications(emptied, 1, 10);
    const client = new pg.Client({ connectionString: emptied.url });
    await client.connect();
    try {
      await client.query('BEGIN');
      await client.query(`UPDATE intake.applications SET job_reference = 'B' WHERE application_id = 3`);
      while (await countStaleDays(emptied));
      await client.query('COMMIT');
    } finally {
      await client.end();
    }
    expect(await emptied.query(wrongDaysSql)).toEqual([]);
  });

  test('that are not stale are read from their rows alone', async ({ emptied }) => {
    await addAccount(emptied);
    await addApplications(emptied, 1, 10);
    while (await countStaleDays(emptied));
    await emptied.query(`UPDATE intake.job_days SET applications = 77`);
    await emptied.query(`UPDATE intake.job_months SET applications = 78`);
    const load = () =>
      emptied.query(
        `SELECT d.applications::int AS of_day, j.applications::int AS of_job FROM intake_analytics.applications_daily d, intake_analytics.jobs j`,
      );
    expect(await load()).toEqual([{ of_day: 77, of_job: 78 }]);
    // What somebody has changed by hand is right again after a full verify.
    await markAllDays(emptied);
    expect(await load()).toEqual([{ of_day: 10, of_job: 10 }]);
    while (await countStaleDays(emptied));
    expect(await load()).toEqual([{ of_day: 10, of_job: 10 }]);
  });

  test('are not marked by a change that no view shows', async ({ emptied }) => {
    await addAccount(emptied);
    await addApplications(emptied, 1, 10);
    while (await countStaleDays(emptied));
    await emptied.query(`UPDATE intake.applications SET observed_seq = 2`);
    expect(await emptied.query(`SELECT day FROM intake.stale_days`)).toEqual([]);
  });
});

async function addAccount(database: TestDatabase): Promise<void> {
  await database.query(
    `INSERT INTO intake.advertisers (name, advertiser_id, created_at) VALUES ('seven', 7, '2026-03-03'), ('eight', 8, '2026-01-01')`,
  );
}

async function addApplications(database: TestDatabase, from: number, to: number): Promise<void> {
  await database.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, source_offset, job_reference, content_hash, observed_seq)
     SELECT 7, g, '2026-03-04', '+10:00', 'A', '', 1 FROM generate_series($1::int, $2::int) AS g`,
    [from, to],
  );
}

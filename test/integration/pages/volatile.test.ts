// Members that differ in every answer: what counts as a change, and what is one element of the quarantine.
import { describe, expect, test } from 'vitest';
import { mostQuarantined } from '../../../src/domain/application.ts';
import { parsePage } from '../../../src/source/parse/list.ts';
import { checkSource } from '../../../src/sync/worker/health-checks.ts';
import { aPage, commitPageOf } from '../../support/applications.ts';
import { shareDatabase } from '../../support/database/test-database.ts';
import { openAccount } from '../../support/leases.ts';
import { loadProblems, openSmallIntake, type SmallIntake } from '../../support/small-intake.ts';

const database = shareDatabase();
const open = () => openSmallIntake({ database });

const changes = async ({ database: { query } }: SmallIntake) =>
  (await query(`SELECT 1 FROM intake.events WHERE type = 'application.changed'`)).length;
const volatile = async (intake: SmallIntake) => (await intake.store.reports.loadStatus())[0]?.volatile;

describe('a member that the spec does not name', () => {
  test('and that differs in every answer is volatile once three applications have shown it: kept, but no change', async () => {
    await using intake = await open();
    const { board } = intake;
    let answer = 0;
    const sign = () => ({
      raw: { ViewUrl: `"https://board.example/view?sig=${++answer}"`, Stage: '"new"' },
      attachments: [{ kind: 'resume', content: 'x', raw: { Thumb: `"t${answer}"` } }],
    });
    const ids = board.add(Array.from({ length: 12 }, sign));
    await intake.syncWithFiles();
    for (let sweep = 0; sweep < 3; sweep++) {
      for (const id of ids) board.change(id, sign());
      await intake.sweep(true);
    }
    expect(await changes(intake)).toBeLessThan(3);
    expect(await volatile(intake)).toEqual(['Attachments.resume.Thumb', 'ViewUrl']);
    const [row] = await database.query(`SELECT raw ->> 'ViewUrl' AS url FROM intake.applications LIMIT 1`);
    expect(row?.url).toContain('sig=');
    const findings = await checkSource(intake.store, intake.openSource('json'), {
      name: 'default',
      advertiserId: board.advertiserId,
      signal: AbortSignal.timeout(60_000),
    });
    expect(findings).toContainEqual(expect.objectContaining({ detail: expect.stringContaining('ViewUrl') }));

    // Reading them again writes nothing, and what the spec names, or is not volatile, is still a change.
    for (const id of ids) board.change(id, sign());
    const version = `SELECT sum(xmin::text::bigint) AS n FROM intake.applications`;
    const [before] = await database.query(version);
    await intake.sweep(true);
    expect((await database.query(version))[0]).toEqual(before);
    const known = await changes(intake);
    const { raw } = sign();
    board.change(ids[0] ?? 0n, { ...sign(), raw: { ...raw, Stage: '"hired"' } });
    await intake.change(ids[1] ?? 0n, { ...sign(), firstName: 'Another' });
    expect(await changes(intake)).toBe(known + 2);
  });

  test('and that differs for two applications only is a change each time', async () => {
    await using intake = await open();
    const ids = intake.board.add([
      { attachments: [], raw: { Note: '1' } },
      { attachments: [], raw: { Note: '1' } },
    ]);
    await intake.sweep();
    for (const Note of ['2', '3']) {
      for (const id of ids) intake.board.change(id, { attachments: [], raw: { Note } });
      await intake.sweep(true);
    }
    expect(await changes(intake)).toBe(4);
    expect(await volatile(intake)).toEqual([]);
  });

  test('and that appears in every application one day is a change, not volatile', async () => {
    await using intake = await open();
    const ids = intake.board.add(Array.from({ length: 5 }, () => ({ attachments: [] })));
    await intake.sweep();
    for (const id of ids) intake.board.change(id, { attachments: [], raw: { Since: '"today"' } });
    await intake.sweep(true);
    expect(await changes(intake)).toBe(5);
    expect(await volatile(intake)).toEqual([]);
  });
});

describe('an element without an id', () => {
  /** Commits one answer with these elements, as a sweep of its own. */
  async function openQuarantine() {
    const intake = await open();
    const { store } = intake;
    const advertiserId = 7n;
    const lease = await openAccount(store, 'acme', advertiserId);
    let sweepId = 0n;
    const answer = async (...elements: object[]) => {
      const { rejects } = parsePage(JSON.stringify(elements));
      await commitPageOf(store, aPage(lease, [], { advertiserId, rejects, sweepId: ++sweepId }));
    };
    const rows = () =>
      database.query<{ seen: number; job: string | null }>(
        `SELECT seen, raw ->> 'JobReference' AS job FROM intake.quarantine ORDER BY first_seen_at, raw ->> 'JobReference'`,
      );
    return Object.assign(intake, { answer, rows });
  }
  const ada = { JobSeekerID: 'js-1', FirstName: 'Ada', DateSubmitted: '/Date(1700000000000+0000)/' };

  test('is another one for another job, although the jobseeker is the same, on one page and on two', async () => {
    await using intake = await openQuarantine();
    await intake.answer({ ...ada, JobReference: 'A' });
    await intake.answer({ ...ada, JobReference: 'B' });
    await intake.answer({ ...ada, JobReference: 'A' }, { ...ada, JobReference: 'B' });
    expect(await intake.rows()).toEqual([
      { seen: 2, job: 'A' },
      { seen: 2, job: 'B' },
    ]);
  });

  test('whose date is the time of the answer is one row in the end', async () => {
    await using intake = await openQuarantine();
    const bob = { JobSeekerID: 'js-2', JobReference: 'A', DateSubmitted: '/Date(1600000000000+0000)/' };
    for (let at = 0; at < 12; at++) {
      await intake.answer(
        { ...ada, JobReference: 'A', DateSubmitted: `/Date(${1_700_000_000_000 + at * 3_600_000}+0000)/` },
        bob,
      );
    }
    expect(await intake.rows()).toHaveLength(2);
    // The same person applies for another job meanwhile, and twice for the same one on one page.
    await intake.answer({ ...ada, JobReference: 'B' }, { ...ada, JobReference: 'A', DateSubmitted: null }, bob);
    expect((await intake.rows()).map(({ job }) => job)).toEqual(['A', 'A', 'B']);
  });

  test('that names a person is one row, whatever differs in members that the spec does not name', async () => {
    await using intake = await openQuarantine();
    for (const Token of ['a', 'b', 'c']) await intake.answer({ ...ada, Token });
    expect(await intake.rows()).toEqual([{ seen: 3, job: null }]);
    // Where the spec's members name nobody, the others may.
    await intake.answer({ FullName: 'Ada' }, { FullName: 'Bob' });
    await intake.answer({ FullName: 'Bob' });
    expect((await intake.rows()).map(({ seen }) => seen).toSorted((a, b) => a - b)).toEqual([1, 2, 3]);
  });

  test('is one each where the spec’s members name nobody, however many come and go', async () => {
    await using intake = await openQuarantine();
    const names = ['Ada', 'Bob', 'Cyd', 'Dan', 'Eve', 'Fay'];
    for (const FullName of names) await intake.answer({ FullName, JobSeekerID: 0 });
    const kept = await database.query<{ name: string }>(
      `SELECT raw ->> 'FullName' AS name FROM intake.quarantine ORDER BY 1`,
    );
    expect(kept.map(({ name }) => name)).toEqual(names);
  });

  test('does not hold its page back, however many of three people differ in the date alone', async () => {
    await using intake = await openQuarantine();
    const elements = 1_200;
    for (let answer = 0; answer < 4; answer++) {
      const toElement = (_: unknown, nth: number) => ({
        JobSeekerID: `js-${nth % 3}`,
        DateSubmitted: `/Date(${1_700_000_000_000 + answer * elements + nth}+0000)/`,
      });
      await intake.answer(...Array.from({ length: elements }, toElement));
    }
    expect((await intake.rows()).length).toBeLessThan(2 * elements);
  });

  test('is kept up to ten thousand of them; the status says how many more there were', { tags: ['slow'] }, async () => {
    await using intake = await openQuarantine();
    const people = Array.from({ length: mostQuarantined + 3 }, (_, at) => ({ Email: `p${at}@example.com` }));
    await intake.answer(...people.slice(0, -5));
    // Two of five new ones still fit, behind many known ones.
    for (let answer = 0; answer < 3; answer++) await intake.answer(...people.slice(-45));
    expect(await intake.rows()).toHaveLength(mostQuarantined);
    const problems = await loadProblems(intake);
    expect(problems).toContainEqual(
      expect.objectContaining({
        what: expect.stringContaining('The quarantine is full; at least 3 elements'),
        urgent: true,
      }),
    );
    await intake.answer(...people.slice(0, 5));
    expect((await intake.rows()).filter(({ seen }) => seen === 2)).toHaveLength(5);
  });
});

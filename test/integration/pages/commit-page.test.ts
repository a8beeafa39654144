// What one list answer does to the database.
import { createSecretKey } from 'node:crypto';
import { describe, expect } from 'vitest';
import { type Attachment, attachmentKinds } from '../../../src/domain/application.ts';
import { type Lease, releaseLeases } from '../../../src/store/accounts/leases.ts';
import { commitPage as commitDiff } from '../../../src/store/applications/commit-page.ts';
import { diffPage } from '../../../src/store/applications/diff-page.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { anApplication, anAttachment, aPage, commitPage } from '../../support/applications.ts';
import { test as base, emptyDatabase } from '../../support/database/test-database.ts';
import { claimLease, takeLease } from '../../support/leases.ts';
import { until } from '../../support/suite/until.ts';

const key = createSecretKey(Buffer.from('a key for tests'));
const claim = (lane: 'live' | 'backfill', owner = 'test') => ({ name: 'acme', lane, owner, leaseMs: 60_000 });

const test = base
  .extend('db', { scope: 'file' }, async ({ database }, { onCleanup }) => {
    const db = openDatabase({ url: database.url, role: 'test' });
    onCleanup(() => db[Symbol.asyncDispose]());
    return db;
  })
  .extend('live', { scope: 'test' }, async ({ database, db }): Promise<Lease> => {
    await emptyDatabase(database);
    return await takeLease(db, claim('live'));
  });

describe('a page', () => {
  test('brings every fact into the column of its name, when new and when changed', async ({ db, live }) => {
    // Dates, offsets, lists and objects have tests of their own.
    const elsewhere = [
      ...['id', 'submittedAt', 'sourceOffset', 'jobSeekingInfo', 'attachments'],
      ...['notes', 'raw', 'contentHash', 'factsHash'],
    ];
    const names = Object.keys(anApplication(1)).filter((name) => !elsewhere.includes(name));
    const toFacts = (text: string): Record<string, string> => ({
      ...Object.fromEntries(names.map((name) => [name, `${text} ${name}`])),
      email: `${text}@example.com`,
    });
    // A person keeps the account or the address.
    const { jobSeekerId = '' } = toFacts('new');
    const toColumn = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const update = 'src/store/applications/update.ts';
    for (const [facts, text, files] of [
      [toFacts('new'), 'new', 'src/store/applications/insert.ts'],
      [{ ...toFacts('changed'), jobSeekerId }, 'changed', update],
      [toFacts('changed'), 'changed', update],
    ] as const) {
      await commitPage(db, key, aPage(live, [anApplication(1, facts)]));
      const [row = {}] = await db.query(`SELECT * FROM intake.applications`);
      const held = Object.fromEntries(names.map((name) => [name, row[toColumn(name)]]));
      expect(held, `${files} write the columns of ${text} applications`).toEqual(facts);
    }
  });

  test('keeps every letter of a text, those that mean something to COPY as well', async ({ db, live }) => {
    const text = '\\N\t\\.\n\\\\t"\r\nend\\';
    const texts = { firstName: text, rawText: text, raw: JSON.stringify({ FirstName: text }) };
    const jobSeekingInfo = { jobTitle: text, companyName: '', timeInRoleMonths: null, isNewToWorkforce: false };
    const attachments = [anAttachment(text, { href: text })];
    const notes = [{ field: text, reason: 'a test' }];
    await commitPage(db, key, aPage(live, [anApplication(1, { ...texts, jobSeekingInfo, attachments, notes })]));
    const [row] = await db.query(
      `SELECT a.first_name, a.raw_text, a.raw->>'FirstName' AS raw, a.notes->0->>'field' AS note, i.job_title, i.company_name,
         i.time_in_role_months, i.is_new_to_workforce, f.kind, f.href
       FROM intake.applications a JOIN intake.primary_job_seeking_info i USING (application_id) JOIN intake.attachments f USING (application_id)`,
    );
    expect(row).toEqual({
      first_name: text,
      raw_text: text,
      raw: text,
      note: text,
      job_title: text,
      company_name: '',
      time_in_role_months: null,
      is_new_to_workforce: false,
      kind: text,
      href: text,
    });
  });

  test('leaves nothing when one of its rows is refused, and the next page is written', async ({ db, live }) => {
    const refused = anApplication(3, { attachments: [anAttachment('resume', { sizeBytes: 1e30 })] });
    await expect(commitPage(db, key, aPage(live, [anApplication(1), refused]))).rejects.toThrow(/1e\+30/);
    expect(await db.query(`SELECT application_id FROM intake.applications`)).toEqual([]);
    expect(await commitPage(db, key, aPage(live, [anApplication(1)]))).toMatchObject({ added: 1 });
  });

  test('brings applications, details, files, events, gaps and the cursor together', async ({ db, live }) => {
    const page = aPage(live, [anApplication(1), anApplication(2, { jobSeekingInfo: null, attachments: [] })], {
      progress: { added: [{ low: 3n, high: null, state: 'open', evidence: '{}' }], cursor: 2n },
    });
    expect(await commitPage(db, key, page)).toEqual({ added: 2, changed: 0, quarantined: 0, stale: [], hidden: [] });
    const applications = `SELECT application_id AS id, submitted_at AS at, ready_at IS NOT NULL AS ready FROM intake.applications ORDER BY 1`;
    expect(await db.query(applications)).toEqual([
      { id: 1n, at: new Date('2026-01-01T00:01:00Z'), ready: false },
      { id: 2n, at: new Date('2026-01-01T00:02:00Z'), ready: true },
    ]);
    expect(
      await db.query(`SELECT application_id, job_title, time_in_role_months FROM intake.primary_job_seeking_info`),
    ).toEqual([{ application_id: 1n, job_title: 'Cook', time_in_role_months: 12 }]);
    expect(await db.query(`SELECT application_id, kind, priority, attempts FROM intake.downloads`)).toEqual([
      { application_id: 1n, kind: 'resume', priority: 0, attempts: 0 },
    ]);
    expect(await db.query(`SELECT application_id, type FROM intake.events ORDER BY event_id`)).toEqual([
      { application_id: 1n, type: 'application.received' },
      { application_id: 2n, type: 'application.received' },
      { application_id: 2n, type: 'application.ready' },
    ]);
    expect(await db.query(`SELECT low, high FROM intake.gaps`)).toEqual([{ low: 3n, high: null }]);
    expect(await db.query(`SELECT after_id, after_date FROM intake.cursors`)).toEqual([
      { after_id: 2n, after_date: new Date('2026-01-01T00:02:00Z') },
    ]);
  });

  test('is written with its cursor or not at all', async ({ db, live }) => {
    const failing = aPage(live, [anApplication(1)], {
      progress: { cursor: 1n, added: [{ low: 5n, high: null, state: 'no such state' as never, evidence: '{}' }] },
    });
    await expect(commitPage(db, key, failing)).rejects.toThrow();
    for (const table of ['applications', 'attachments', 'downloads', 'events', 'sweeps', 'gaps', 'cursors']) {
      expect(await db.query(`SELECT * FROM intake.${table}`), table).toEqual([]);
    }
  });

  test('of unchanged applications writes no byte, takes no id and raises no event', async ({ db, live }) => {
    // Few, so that a quiet moment of the server is long enough for them.
    const applications = Array.from({ length: 20 }, (_, at) => anApplication(at + 1));
    await commitPage(db, key, aPage(live, applications));
    const position = `SELECT pg_current_wal_insert_lsn() AS lsn, pg_snapshot_xmax(pg_current_snapshot()) AS xid`;
    // Other files write on the same server meanwhile: a page that writes would never leave the position as it was, one that does not will.
    await until(async () => {
      const [before] = await db.query(position);
      const summary = await commitPage(db, key, aPage(live, applications, { isQuiet: true }));
      expect(summary).toEqual({ added: 0, changed: 0, quarantined: 0, stale: [], hidden: [] });
      const [after] = await db.query(position);
      return before?.lsn === after?.lsn && before?.xid === after?.xid;
    });
    expect(await db.query(`SELECT count(*)::int AS n FROM intake.events`)).toEqual([{ n: 20 }]);
  });

  test('of a worker whose lane was taken over writes nothing', async ({ db, live }) => {
    await db.query(`UPDATE intake.leases SET expires_at = now() - interval '1 second'`);
    const successor = await claimLease(db, claim('live', 'another'));
    expect(successor?.epoch).toBe(live.epoch + 1n);
    await expect(commitPage(db, key, aPage(live, [anApplication(1)]))).rejects.toMatchObject({ name: 'LeaseLost' });
    expect(await db.query(`SELECT * FROM intake.applications`)).toEqual([]);
  });

  test('never moves the cursor past what is stored, nor backwards', async ({ db, live }) => {
    await commitPage(db, key, aPage(live, [anApplication(1), anApplication(5)], { progress: { cursor: 1_000n } }));
    expect(await db.query(`SELECT after_id FROM intake.cursors`)).toEqual([{ after_id: 5n }]);
    await commitPage(db, key, aPage(live, [anApplication(6)], { progress: { cursor: 1n } }));
    expect(await db.query(`SELECT after_id FROM intake.cursors`)).toEqual([{ after_id: 5n }]);
  });

  test('that moves nothing leaves the cursor row as it is', async ({ db, live }) => {
    await commitPage(db, key, aPage(live, [anApplication(1)], { progress: { cursor: 1n } }));
    const [before] = await db.query(`SELECT xmin::text, as_of FROM intake.cursors`);
    await commitPage(db, key, aPage(live, [anApplication(1)], { progress: { cursor: 1n } }));
    expect(await db.query(`SELECT xmin::text, as_of FROM intake.cursors`)).toEqual([before]);
  });

  test('does not let a date in the future become the cursor date', async ({ db, live }) => {
    const future = anApplication(2, { submittedAt: Date.now() + 86_400_000 });
    await commitPage(db, key, aPage(live, [anApplication(1), future], { progress: { cursor: 2n } }));
    expect(await db.query(`SELECT after_date FROM intake.cursors`)).toEqual([
      { after_date: new Date('2026-01-01T00:01:00Z') },
    ]);
  });

  test('with the same new application in two lanes at once leaves one row', async ({ db, live }) => {
    const backfill = (await claimLease(db, claim('backfill'))) as Lease;
    const applications = Array.from({ length: 50 }, (_, at) => anApplication(at + 1));
    const summaries = await Promise.all([
      commitPage(db, key, aPage(live, applications)),
      commitPage(db, key, aPage(backfill, applications, { sweepId: 2n })),
      commitPage(db, key, aPage(backfill, applications, { sweepId: 3n })),
    ]);
    expect(summaries.reduce((sum, { added }) => sum + added, 0)).toBe(50);
    expect(await db.query(`SELECT count(*)::int AS n FROM intake.applications`)).toEqual([{ n: 50 }]);
    expect(await db.query(`SELECT count(*)::int AS n FROM intake.events`)).toEqual([{ n: 50 }]);
  });
});

test('of a stale page, whose applications another lane has changed, nothing is written', async ({ db, live }) => {
  const backfill = (await claimLease(db, claim('backfill'))) as Lease;
  const page = aPage(live, [anApplication(1), anApplication(2)]);
  const diff = await diffPage(db, key, page);
  expect(diff).toMatchObject({ otherLane: true, writes: 2 });
  await commitPage(db, key, aPage(backfill, [anApplication(1)], { sweepId: 2n }));
  expect(await commitDiff(db, key, page, diff, page.progress)).toBe('outdated');
  expect(await db.query(`SELECT application_id FROM intake.applications`)).toEqual([{ application_id: 1n }]);
  expect(await commitDiff(db, key, page, await diffPage(db, key, page), page.progress)).toMatchObject({ added: 1 });
});

describe('a known application that changed', () => {
  test('is updated once and raises one event', async ({ db, live }) => {
    await commitPage(db, key, aPage(live, [anApplication(1), anApplication(2)]));
    const moved = [anApplication(1, { email: 'moved@example.com' }), anApplication(2)];
    expect(await commitPage(db, key, aPage(live, moved))).toMatchObject({ added: 0, changed: 1 });
    expect(
      await db.query(
        `SELECT email, changed_at > first_seen_at AS later FROM intake.applications ORDER BY application_id`,
      ),
    ).toEqual([
      { email: 'moved@example.com', later: true },
      { email: 'person2@example.com', later: false },
    ]);
    expect(await db.query(`SELECT application_id FROM intake.events WHERE type = 'application.changed'`)).toEqual([
      { application_id: 1n },
    ]);
  });

  test('is not overwritten by the answer to an older request', async ({ db, live }) => {
    await commitPage(db, key, aPage(live, [anApplication(1)], { seq: 100n }));
    await commitPage(db, key, aPage(live, [anApplication(1, { email: 'newest@example.com' })], { seq: 300n }));
    const late = aPage(live, [anApplication(1, { email: 'older@example.com' })], { seq: 200n });
    expect(await commitPage(db, key, late)).toMatchObject({ changed: 0, stale: [1n] });
    expect(await db.query(`SELECT email FROM intake.applications`)).toEqual([{ email: 'newest@example.com' }]);
  });

  test('is not overwritten by an older request after a newer one saw it unchanged', async ({ db, live }) => {
    const backfill = (await claimLease(db, claim('backfill'))) as Lease;
    await commitPage(db, key, aPage(live, [anApplication(1)], { seq: 100n }));
    // The source changed the application and changed it back; the slow request 200 saw the moment between, the fast 300 did not.
    await commitPage(db, key, aPage(live, [anApplication(1)], { seq: 300n, isQuiet: true }));
    const slow = aPage(backfill, [anApplication(1, { email: 'between@example.com' })], { seq: 200n });
    expect(await commitPage(db, key, slow)).toMatchObject({ changed: 0, stale: [1n] });
    expect(await db.query(`SELECT email FROM intake.applications`)).toEqual([{ email: 'person1@example.com' }]);
    await releaseLeases(db, [{ ...backfill, done: false }]);
  });

  test('keeps what vanished, marked as gone, and takes the mark back on return', async ({ db, live }) => {
    await commitPage(db, key, aPage(live, [anApplication(1)]));
    await commitPage(db, key, aPage(live, [anApplication(1, { attachments: [], jobSeekingInfo: null })]));
    const state = `SELECT i.gone_at IS NOT NULL AS details_gone, a.gone_at IS NOT NULL AS file_gone, job_title, state
      FROM intake.primary_job_seeking_info i JOIN intake.attachments a USING (advertiser_id, application_id)`;
    expect(await db.query(state)).toEqual([
      // A value that holds no longer would be read as valid.
      { details_gone: true, file_gone: true, job_title: null, state: 'pending' },
    ]);
    await commitPage(db, key, aPage(live, [anApplication(1)]));
    expect(await db.query(state)).toEqual([
      { details_gone: false, file_gone: false, job_title: 'Cook', state: 'pending' },
    ]);
  });

  test('that was absent and is there again is unmarked, and no other', async ({ db, live }) => {
    await commitPage(db, key, aPage(live, [anApplication(1), anApplication(2)]));
    await db.query(`UPDATE intake.applications SET absent_since = now()`);
    await commitPage(db, key, aPage(live, [anApplication(1)]));
    expect(await db.query(`SELECT application_id FROM intake.applications WHERE absent_since IS NOT NULL`)).toEqual([
      { application_id: 2n },
    ]);
  });

  test('whose flag is left out later keeps it: only false lifts it, or another file', async ({ db, live }) => {
    const show = async (file: Partial<Attachment>) => {
      await commitPage(db, key, aPage(live, [anApplication(1, { attachments: [anAttachment('resume', file)] })]));
      const rows = await db.query(`SELECT state, reason, has_virus FROM intake.attachments`);
      return [...rows, ...(await db.query(`SELECT kind FROM intake.downloads`))];
    };
    const infected = [{ state: 'infected', reason: null, has_virus: true }];
    const pending = (has_virus: boolean | null) => [{ state: 'pending', reason: null, has_virus }, { kind: 'resume' }];
    expect(await show({ hasVirus: true, sizeBytes: 0 })).toEqual(infected);
    expect(await show({ hasVirus: null, sizeBytes: 0 })).toEqual(infected);
    expect(await show({ hasVirus: 'unreadable', sizeBytes: 0 })).toEqual(infected);
    expect(await show({ hasVirus: null, sizeBytes: 10 })).toEqual(infected);
    expect(await show({ hasVirus: null, sizeBytes: 11 })).toEqual(pending(null));
    expect(await show({ hasVirus: true, sizeBytes: 11 })).toEqual(infected);
    expect(await show({ hasVirus: false, sizeBytes: 11 })).toEqual(pending(false));
    expect(await show({ hasVirus: true, sizeBytes: 11 })).toEqual(infected);
    expect(await show({ hasVirus: null, sizeBytes: 11, uploadedAt: 1_800_000_000_000 })).toEqual(pending(null));
  });
});

test('attachments wait for their download by kind; flagged and unknown ones do not', async ({ db, live }) => {
  const attachments = [
    ...attachmentKinds.map((kind) => anAttachment(kind)),
    anAttachment('portfolio'),
    anAttachment('unknown'),
  ];
  await commitPage(db, key, aPage(live, [anApplication(1, { attachments })]));
  const infected = anApplication(2, { attachments: [anAttachment('resume', { hasVirus: true })] });
  await commitPage(db, key, aPage(live, [infected]));
  expect(await db.query(`SELECT application_id, kind FROM intake.downloads ORDER BY 1, kind COLLATE "C"`)).toEqual(
    ['coverLetter', 'resume', 'screen', 'selectionCriteria'].map((kind) => ({ application_id: 1n, kind })),
  );
  expect(
    await db.query(
      `SELECT kind, state, reason IS NOT NULL AS told FROM intake.attachments WHERE state <> 'pending' ORDER BY application_id, kind`,
    ),
  ).toEqual([
    { kind: 'portfolio', state: 'rejected', told: true },
    { kind: 'unknown', state: 'rejected', told: true },
    { kind: 'resume', state: 'infected', told: false },
  ]);
});

describe('an element that is no application', () => {
  const reject = {
    identity: 'e1',
    applicant: null,
    members: {},
    reason: 'no usable id',
    raw: '{"Email": "x@example.com"}',
    rawText: null,
  };

  test('is kept whole and counted once per sweep', async ({ db, live }) => {
    const inSweep = (sweepId: bigint) => aPage(live, [], { rejects: [reject], sweepId });
    await commitPage(db, key, inSweep(1n));
    await commitPage(db, key, inSweep(1n));
    expect(await db.query(`SELECT reason, raw, seen FROM intake.quarantine`)).toEqual([
      { reason: reject.reason, raw: { Email: 'x@example.com' }, seen: 1 },
    ]);
    await commitPage(db, key, inSweep(2n));
    expect(await db.query(`SELECT seen FROM intake.quarantine`)).toEqual([{ seen: 2 }]);
  });
});

test('a person key is the same for one person, another for each advertiser, and tells nobody', async ({ db, live }) => {
  const twice = [
    anApplication(1, { jobSeekerId: 'seeker-9' }),
    anApplication(2, { jobSeekerId: 'seeker-9' }),
    anApplication(3),
    // An account without an id tells nobody from anybody: the address does.
    anApplication(4, { jobSeekerId: ' ', email: 'jo@example.com' }),
    anApplication(5, { jobSeekerId: '', email: 'Jo@example.com ' }),
    anApplication(6, { jobSeekerId: ' ', email: null }),
  ];
  await commitPage(db, key, aPage(live, twice));
  await commitPage(db, key, aPage(live, [anApplication(1, { jobSeekerId: 'seeker-9' })], { advertiserId: 8n }));
  const keys = (
    await db.query<{ person_key: string }>(
      `SELECT person_key FROM intake.applications ORDER BY advertiser_id, application_id`,
    )
  ).map((row) => row.person_key);
  expect(keys[0]).toBe(keys[1]);
  expect(keys[3]).toBe(keys[4]);
  expect(keys[5]).toBeNull();
  expect(new Set(keys).size).toBe(5);
  expect(keys.join()).not.toContain('seeker');
});

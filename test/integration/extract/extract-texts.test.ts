// Long texts and strange values in an extract: applicants and boards choose them, so they bound neither memory nor what can be read.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { openDiskBlobs } from '../../../src/blobs/disk.ts';
import type { Spool } from '../../../src/domain/blob.ts';
import { withSnapshot } from '../../../src/store/extract.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { writeRows } from '../../../src/sync/extract/write.ts';
import { openSpool } from '../../../src/sync/files/spool.ts';
import type { TestDatabase } from '../../support/database/test-database.ts';
import { compareRows, extract, extractTest, readWhole } from '../../support/extract/extracting.ts';

const kb = 1024;
const mb = 1024 * kb;

const test = extractTest.extend('account', async ({ emptied }) => {
  await emptied.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('default', 7)`);
  await emptied.query(
    `INSERT INTO intake.coverage (advertiser_id, axis, low, high, certificate, risk, reason, as_of, complete_through, sweep_id)
     VALUES (7, 'id', 1, NULL, 'proven', 'none', '', now(), now(), 1)`,
  );
  return emptied;
});

interface Submitted {
  readonly id: bigint;
  readonly at?: string | null;
  readonly offset?: string | null;
  readonly name?: string | null;
  readonly fileName?: string;
}

/** An application with a screen that has one question for each answer. */
async function apply(
  database: TestDatabase,
  { id, ...more }: Submitted,
  answers: readonly string[] = [],
): Promise<void> {
  const { at = '2026-11-05T00:00:00Z', offset = '+11:00', name = 'Robin', fileName = 'Resume.pdf' } = more;
  await database.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, submitted_at, source_offset, first_name, job_reference, raw,
       content_hash, observed_seq, changed_at)
     VALUES (7, $1, $2, $3, $4, $4, '{}', '', 1, now())`,
    [id, at, offset, name],
  );
  await database.query(
    `INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, href, file_name, content_type)
     VALUES (7, $1, 'resume', 'pending', 'resume', $2, $2)`,
    [id, fileName],
  );
  await database.query(
    `INSERT INTO intake.screens (advertiser_id, application_id, screen_no, name, outcome, sha256, parser_version)
     VALUES (7, $1, 1, $2, 'pass', '', 1)`,
    [id, name],
  );
  await database.query(
    `INSERT INTO intake.screen_questions (advertiser_id, application_id, screen_no, question_no, type, text)
     SELECT 7, $1, 1, no, 'Text', 'Why us?' FROM generate_series(1, $2::int) AS no`,
    [id, answers.length],
  );
  await database.query(
    `INSERT INTO intake.screen_answers (advertiser_id, application_id, screen_no, question_no, answer_no, text, selected)
     SELECT 7, $1, 1, no, 1, text, true FROM unnest($2::text[]) WITH ORDINALITY AS a (text, no)`,
    [id, answers],
  );
}

/** A Unix socket before a database, which counts what the database sends: its buffers are small, those of TCP may hold 64 MB. */
async function openRelay(target: string, onBytes: (bytes: number) => void) {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'intake-relay-')));
  const behind = new URL(target);
  const relay = createServer((client) => {
    const upstream = connect(Number(behind.port), behind.hostname);
    upstream.on('data', (said) => onBytes(said.length));
    pipeline(client, upstream, client, () => {});
  });
  await once(relay.listen(join(folder.path, '.s.PGSQL.5432')), 'listening');
  stack.defer(() => relay[Symbol.asyncDispose]());
  const url = `postgres://${behind.username}:${behind.password}@${encodeURIComponent(folder.path)}:5432${behind.pathname}`;
  const moved = stack.move();
  return { url, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

describe('an extract of long texts', () => {
  const longest = 6 * mb;

  test('has a few megabytes of them in memory, whatever rows and target', async ({ account }) => {
    const answers = ['short', ...Array<string>(5).fill('x'.repeat(mb)), 'y'.repeat(3_000)];
    for (let id = 1n; id <= 12n; id++) await apply(account, { id }, answers);
    await apply(account, { id: 13n }, ['z'.repeat(longest)]);
    let came = 0;
    await using relay = await openRelay(account.url, (bytes) => {
      came += bytes;
    });
    await using db = openDatabase({ url: relay.url, role: 'test' });
    const seen: number[][] = [];
    let [done, most] = [0, 0];
    await withSnapshot(db, async (snapshot) => {
      for await (const rows of snapshot.loadRows('screening_free_text', 7n, { by: 'bucket', buckets: null })) {
        const lengths = rows.map((row) => String(row.answer_text).length);
        seen.push(lengths);
        // Takes the next batch when nothing more comes.
        for (let before = -1; before < came; await setTimeout(50)) before = came;
        most = Math.max(most, came - done);
        done += lengths.reduce((sum, length) => sum + length, 0);
      }
    });
    const all = seen.flat().sort((a, b) => a - b);
    expect(all).toEqual([...Array(12).fill(5), ...Array(12).fill(3_000), ...Array(60).fill(mb), longest]);
    const sums = seen.map((batch) => batch.reduce((sum, length) => sum + length, 0));
    expect(Math.max(...sums)).toBeLessThan(longest + 5 * mb);
    expect(most).toBeLessThan(done / 2);
  });

  test('is read by both readers as Postgres has it', { tags: ['slow'] }, async ({ account, target }) => {
    for (let id = 1n; id <= 40n; id++) {
      const answers = [
        `short ${id}`,
        `${id} ${'x'.repeat(5_000)}`,
        id % 20n === 0n ? `${id} ${'🦜'.repeat(200 * kb)}` : '',
      ];
      await apply(account, { id, name: id % 9n === 0n ? `${id} ${'n'.repeat(1_000)}` : 'Robin' }, answers);
    }
    await extract(account, target, '--with-people');
    await compareRows(account, target, readWhole(target));
  });

  test('ends a file before an erasure could not read it whole', async ({ target }) => {
    await using blobs = await openDiskBlobs(target);
    const real = openSpool(target);
    // Says a thousand times as many bytes as there are.
    const spool: Spool = {
      ...real,
      open() {
        const spooled = real.open();
        return {
          write: (chunk) => spooled.write(chunk),
          finish: () => spooled.finish(),
          get sizeBytes() {
            return spooled.sizeBytes * 1_000;
          },
          [Symbol.asyncDispose]: () => spooled[Symbol.asyncDispose](),
        };
      },
    };
    const chunks = Array.from({ length: 10 }, () => {
      return { partition: '00', rows: [{ text: randomBytes(7 * kb).toString('hex') }] };
    });
    const columns = [{ name: 'text', type: 'text', field_id: 1 }] as const;
    const signal = AbortSignal.timeout(60_000);
    const files = await writeRows(
      { target: blobs, spool },
      {
        view: 'v',
        columns,
        division: 'bucket',
        advertiserId: 7n,
        snapshotId: '20261119T000000000Z',
        earlier: [],
        signal,
      },
      chunks,
    );
    expect(files.map(({ rows }) => rows)).toEqual([3, 3, 3, 1]);
  });
});

test('strange values are read by both readers as they are', { tags: ['slow'] }, async ({ account, target }) => {
  const strange: Submitted[] = [
    { id: 9_223_372_036_854_775_807n, at: null, offset: null, name: null },
    { id: 9_007_199_254_740_993n, name: '' },
    { id: 1n, at: '0002-01-01T00:00:00Z', offset: '-11:00', name: '\u{FFFD}\u202E\u0001\t\r\n"\\,' },
    { id: 2n, at: '9999-12-31T09:00:00Z', name: `é${'e\u0301'.repeat(10_000)}` },
    { id: 3n, at: '1969-12-31T23:59:59.999Z', fileName: `${'n'.repeat(10_000)}.pdf` },
    { id: 4n, at: '2026-10-31T23:59:59.999Z', name: 'null' },
  ];
  for (const one of strange) await apply(account, one, ['', ' ', '\u{10FFFF}', 'a\uFEFF\u200B']);
  // Without views of delays: a double does not hold the delay of an application of the year 9999 to the microsecond.
  const views =
    'applications_anonymous,applications_daily,attachments,jobs,job_seekers,screening_outcomes,screening_answers';
  const manifest = await extract(account, target, '--views', views, '--with-people');
  await compareRows(account, target, manifest);
  const months = manifest.files.filter(({ view }) => view === 'applications_anonymous').map((file) => file.partition);
  expect(months).toEqual(['0002-01', '1969-12', '2026-10', '2026-11', '9999-12', 'none']);
});

// Evidence in a real database: one line for every question of a proof, whole after a stop and after erasures, pruned, and accepted by the
// checker that shares no code with it.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { checkProof } from '../../../examples/check-proof.ts';
import { openSandbox, type Sandbox } from '../../../src/dev/sandbox/http/server.ts';
import { openStore } from '../../../src/store/store.ts';
import { rowsAtATime } from '../../../src/store/sweeps/evidence.ts';
import { holdLane } from '../../../src/sync/accounts/held-lane.ts';
import { audit, mostAudits, witnessByDate } from '../../../src/sync/read/audit.ts';
import { emptyDatabase, shareDatabase } from '../../support/database/test-database.ts';
import { callIntake } from '../../support/processes/intake.ts';
import { syncBoard, testPrivacyKey, toEnvironment } from '../../support/processes/syncing.ts';
import { openOwnSource } from '../../support/servers/own-source.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';
import { createRandom } from '../../support/suite/random.ts';

const database = shareDatabase();
beforeEach(() => emptyDatabase(database));

async function loadLines(): Promise<string[]> {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
  const [id] = await store.advertisers.loadAdvertiserIds();
  if (id === undefined) throw new Error('Nothing was read yet.');
  return await store.evidence.withProofs(id, ({ lines }) => Array.fromAsync(lines));
}

/** What an explanation counts, counted in the lines themselves. */
async function countLines() {
  const lines = (await loadLines()).map((text): Record<string, unknown> => JSON.parse(text));
  const of = (member: string, value: string) => lines.filter((line) => line[member] === value);
  const answers = of('type', 'answer');
  return {
    questions: answers.length,
    witnesses: of('purpose', 'witness').length,
    audits: of('type', 'audit').length,
  };
}

const check = async () => checkProof(await loadLines());
const proven = { verdict: 'proven', supported: true };
const unproven = { verdict: 'unproven', supported: true };

const loadEvidence = () =>
  database.query<{ sweep: number; lines: number; bytes: number }>(
    `SELECT sweep_id::int AS sweep, count(*)::int AS lines, sum(pg_column_size(e.*))::int AS bytes
     FROM intake.evidence e GROUP BY 1 ORDER BY 1`,
  );

/** A board of which everything was read. */
async function openSynced(applications = 60, pageCap = 40): Promise<Sandbox> {
  const board = await openSandbox({ applications, choices: { pageCap } });
  await syncBoard(database, board);
  return board;
}

/** Deletes an application from the database, as if nobody had been shown it. */
async function forget(id: bigint | undefined): Promise<void> {
  for (const table of ['downloads', 'attachments', 'primary_job_seeking_info', 'applications'])
    await database.query(`DELETE FROM intake.${table} WHERE application_id = $1`, [id]);
}

const idsOf = (board: Sandbox) => [...board.truth()].map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1));

describe('the evidence of a sweep', { tags: ['slow'] }, () => {
  test('stands with its last hash in coverage, in the view and in the JSON of the command', async () => {
    await using board = await openSandbox({ applications: 60, choices: { pageCap: 40 } });
    const synced = await callIntake(['sync', '--no-files', '--json'], toEnvironment(database, board));
    const [last] = await database.query<{ note: string }>(
      `SELECT sweep_id || ':' || encode(sha256(convert_to(line, 'UTF8')), 'hex') AS note FROM intake.evidence ORDER BY sweep_id, n DESC LIMIT 1`,
    );
    expect(JSON.parse(synced.stdout.trim().split('\n').at(-1) ?? '').advertisers[0].evidence).toEqual([last?.note]);
    expect(await database.query(`SELECT evidence FROM intake_analytics.completeness`)).toEqual([
      { evidence: [last?.note] },
    ]);
  });

  test('is one whole chain after the sweep was stopped and went on', async () => {
    await using board = await openSandbox({ applications: 160, choices: { pageCap: 20 } });
    for (const stopAfter of [3, 4, 9]) {
      const stop = new AbortController();
      let steps = 0;
      const onStep = () => {
        if (++steps === stopAfter) stop.abort(new Error('stopped by the test'));
      };
      await expect(syncBoard(database, board, { onStep, signal: stop.signal })).rejects.toThrow('stopped by the test');
    }
    // With another lag than it began with.
    await syncBoard(database, board, { env: { SYNC_LAG: '1h' } });
    expect(await loadEvidence()).toHaveLength(1);
    expect(await check()).toMatchObject(proven);
  });

  test('is accepted where another sweep found an application missing meanwhile, and it returned since', async () => {
    await using board = await openSynced(160, 20);
    const gone = idsOf(board)[150] ?? 0n;
    board.remove(gone);
    const stop = new AbortController();
    const onStep = () => stop.abort(new Error('stopped by the test'));
    const stopped = syncBoard(database, board, { recheck: true, onStep, signal: stop.signal });
    await expect(stopped).rejects.toThrow('stopped by the test');
    const mark = (since: string) =>
      database.query(`UPDATE intake.applications SET missing_since = ${since} WHERE application_id = $1`, [gone]);
    await mark('now()');
    expect((await syncBoard(database, board, { recheck: true })).at(-1)).toMatchObject({ certificate: 'proven' });
    expect(await check()).toMatchObject({ ...proven, findings: [] });
    await mark('NULL');
    expect(await check()).toMatchObject({ ...proven, findings: [] });
  });

  test('is accepted where the range begins at an application, below which no id is left to ask for', async () => {
    await using board = await openSynced(120);
    const afterId = String((idsOf(board)[60] ?? 0n) - 1n);
    const env = toEnvironment(database, board);
    expect(await callIntake(['backfill', '--after-id', afterId, '--no-files'], env)).toMatchObject({ code: 0 });
    expect(await check()).toMatchObject({ ...proven, findings: [] });
  });

  test('is accepted where the database holds ids below 1, of which no proof speaks', async () => {
    await using board = await openSandbox({ applications: 120, firstId: -2n, choices: { pageCap: 40 } });
    await syncBoard(database, board);
    expect(idsOf(board)[0]).toBeLessThan(1n);
    expect(await check()).toMatchObject(proven);
  });

  test('is refused when an application is deleted from the database', async () => {
    await using board = await openSynced();
    const [id] = idsOf(board);
    await forget(id);
    const { verdict, findings } = await check();
    expect(verdict).toBe('forged');
    expect(JSON.stringify(findings)).toContain(String(id));
  });
});

const toShares = () => {
  const random = createRandom(7);
  return () => random.between(0, 1_000) / 1_001;
};

/** Asks as a worker does between two sweeps. */
async function auditBoard(board: Sandbox, times: number, random = toShares()): Promise<number> {
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
  await using source = openOwnSource({ url: board.url, credential: board.credential });
  const { signal } = new AbortController();
  const name = 'default';
  const advertiser = await store.advertisers.ensure(name, null);
  await using lane = await holdLane(store, { name, lane: 'live', owner: 'test', leaseMs: 120_000, signal });
  const task = { lane, advertiser, lagMs: 900_000, startAt: null };
  let contradictions = 0;
  for (let nth = 0; nth < times; nth++) {
    contradictions += await audit({ store, source }, task, random);
  }
  await witnessByDate({ store, source }, task);
  return contradictions;
}

describe('audits and the witness by date', { tags: ['slow'] }, () => {
  test('are appended to the proof that they were asked of, and its last hash follows', async () => {
    await using board = await openSynced();
    const before = await loadEvidence();
    const asked = board.requests().length;
    expect(await auditBoard(board, 3)).toBe(0);
    const [after] = await loadEvidence();
    expect(after?.lines).toBe((before[0]?.lines ?? 0) + board.requests().length - asked);
    const report = await check();
    expect(report).toMatchObject({ ...proven, sweeps: [expect.stringContaining('7 audits')] });
    expect(await countLines()).toMatchObject({ audits: 7, witnesses: expect.toSatisfy((count) => count > 5) });
    const explained = await callIntake(['prove', '--json'], toEnvironment(database, board));
    expect(JSON.parse(explained.stdout)).toMatchObject({ advertisers: [{ certificates: [await countLines()] }] });
    // The next sweep seals what it found: the audits of the first cannot be cut off any more.
    await syncBoard(database, board, { recheck: true });
    const lines = await loadLines();
    expect(checkProof(lines)).toMatchObject(proven);
    const lastAudit = lines.findLastIndex((line) => line.includes('"type":"audit"'));
    expect(checkProof(lines.toSpliced(lastAudit, 1))).toMatchObject({ verdict: 'forged' });
  });

  test('end a certificate that they contradict, and the checker says the same', async () => {
    await using board = await openSynced();
    // As if the sweep had been shown everybody but one.
    const hidden = idsOf(board)[30];
    await forget(hidden);
    expect(await auditBoard(board, 12)).toBeGreaterThan(0);
    expect(await database.query(`SELECT certificate FROM intake.coverage`)).toEqual([{ certificate: 'unproven' }]);
    expect(await check()).toMatchObject(unproven);
  });

  test('end it also where the check by date is the one that shows somebody', async () => {
    await using board = await openSynced();
    const hidden = idsOf(board).at(-2);
    // The check by date asks for what was submitted since the day before its cursor.
    await database.query(
      `UPDATE intake.cursors SET after_date = (SELECT submitted_at FROM intake.applications WHERE application_id = $1)`,
      [hidden],
    );
    await forget(hidden);
    await auditBoard(board, 0);
    const [covered] = await database.query<{ certificate: string; reason: string }>(
      `SELECT certificate, reason FROM intake.coverage`,
    );
    expect(covered).toMatchObject({ certificate: 'unproven', reason: expect.stringContaining('the check by date') });
    // Erasure does not reach what a reason says.
    expect(covered?.reason).not.toMatch(/\d/);
    expect(await check()).toMatchObject(unproven);
  });

  test('are kept up to a number of each sweep, and beyond it where they contradict', async () => {
    await using board = await openSynced();
    await auditBoard(board, 1);
    const before = await loadEvidence();
    // As if the sweep had asked so many questions fewer: its lines count as audits.
    await database.query(`UPDATE intake.sweeps SET requests = requests - $1`, [mostAudits]);
    await auditBoard(board, 2);
    expect(await loadEvidence()).toEqual(before);
    const [newest] = await database.query<{ at: Date }>(`SELECT max(submitted_at) AS at FROM intake.applications`);
    board.add([{ submittedAt: newest?.at.getTime() ?? 0 }]);
    expect(await auditBoard(board, 2)).toBe(1);
    expect(await loadEvidence()).toMatchObject([{ lines: (before[0]?.lines ?? 0) + 1 }]);
    expect(await check()).toMatchObject(unproven);
  });
});

test('people who were erased leave their ids, and every proof checks', { tags: ['slow'] }, async () => {
  await using scratch = await openScratch();
  await using board = await openSandbox({ applications: 120, choices: { pageCap: 40 } });
  const env = toEnvironment(database, board, join(scratch.path, 'blobs'));
  await syncBoard(database, board);
  await syncBoard(database, board, { recheck: true });
  const linesOf = (lines: readonly string[]) => lines.filter((line) => line.startsWith('{"n":'));
  const before = await loadLines();
  // The first and the last of the list among them: questions end at their ids.
  const ids = idsOf(board);
  for (const id of [ids[0], ids[40], ids.at(-1)]) {
    expect(await callIntake(['erase', '--application', String(id), '--yes'], env)).toMatchObject({ code: 0 });
  }
  const after = await loadLines();
  expect(linesOf(after)).toEqual(linesOf(before));
  expect(after.at(-1)).toContain(`["${ids[40]}"]`);
  expect(checkProof(after)).toMatchObject(proven);
  // The source still shows them.
  await syncBoard(database, board, { recheck: true });
  expect(await auditBoard(board, 1, () => 0)).toBe(0);
  expect(await check()).toMatchObject(proven);
});

describe('what is kept', { tags: ['slow'] }, () => {
  test('the first proof, the newest and the one before it', async () => {
    await using board = await openSynced();
    for (let night = 0; night < 4; night++) await syncBoard(database, board, { recheck: true });
    const kept = (await loadEvidence()).map(({ sweep }) => sweep);
    const all = await database.query<{ id: number }>(
      `SELECT sweep_id::int AS id FROM intake.sweeps WHERE purpose = 'recheck' ORDER BY 1`,
    );
    expect(all).toHaveLength(5);
    expect(kept).toEqual([all[0], all[3], all[4]].map((row) => row?.id));
    expect(await check()).toMatchObject(proven);
  });

  test('nothing of a poll', async () => {
    await using board = await openSynced();
    const before = await loadEvidence();
    board.add(Array.from({ length: 3 }, () => ({})));
    await syncBoard(database, board);
    expect(await loadEvidence()).toEqual(before);
  });
});

test('the rows of an export are loaded some at a time, and none is left out', { tags: ['slow'] }, async () => {
  await using board = await openSandbox({ applications: 20 });
  await syncBoard(database, board);
  const count = 2 * rowsAtATime + 5;
  await database.query(
    `INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq, erased_at)
     SELECT advertiser_id, -id, '', 1, now() FROM intake.advertisers, generate_series(1, $1::int) AS id`,
    [count - 20],
  );
  await using store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
  const [id = 0n] = await store.advertisers.loadAdvertiserIds();
  const lines = await store.evidence.withProofs(id, (proofs) => Array.fromAsync(proofs.lines));
  const batches = lines.map((line) => JSON.parse(line)).flatMap(({ type, rows }) => (type === 'rows' ? [rows] : []));
  expect(batches.map((rows) => rows.length)).toEqual([rowsAtATime, rowsAtATime, 5]);
  expect(new Set(batches.flat().map(([applicationId]) => applicationId)).size).toBe(count);
});

describe('intake prove', () => {
  test('exports a file with one line for every question, which the checker accepts, and refuses it after a change', async () => {
    await using scratch = await openScratch();
    await using board = await openSandbox({ applications: 60, choices: { pageCap: 40 } });
    const env = toEnvironment(database, board);
    expect(await callIntake(['prove'], env)).toMatchObject({ code: 3 });
    expect(await callIntake(['prove', '--check'], env)).toMatchObject({ code: 3 });
    const [sweep] = await syncBoard(database, board);
    expect(sweep).toMatchObject({ certificate: 'proven', requests: board.requests().length });
    // An opening and an end beside the questions.
    expect(await loadEvidence()).toMatchObject([{ lines: board.requests().length + 2 }]);
    const file = join(scratch.path, 'proof.ndjson');
    const exported = await callIntake(['prove', '--export', file, '--json'], env);
    expect(exported.code).toBe(0);
    const [note] = JSON.parse(exported.stdout).evidence as string[];
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(checkProof(lines, [note ?? ''])).toMatchObject({ verdict: 'proven' });
    const other = `${note?.slice(0, -1)}${note?.endsWith('0') ? '1' : '0'}`;
    expect(checkProof(lines, [other])).toMatchObject({ verdict: 'forged', supported: false });
    // One character of a hash of the file.
    const forged = join(scratch.path, 'forged.ndjson');
    writeFileSync(forged, lines.join('\n').replaceAll(note?.split(':')[1] ?? '', other.split(':')[1] ?? ''));
    expect(await callIntake(['prove', '--check', forged], env)).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^forged: .*\n(.*\n)*verdict: forged, refused/m),
    });
    expect(await callIntake(['prove', '--check'], env)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^ids 1 to infinity, .*says proven, its lines support proven\n(.*\n)*verdict: proven/m,
      ),
    });
    for (const [risk, code, word] of [
      ['harmless', 0, 'assumed'],
      ['doubt', 3, 'assumed, in doubt'],
    ] as const) {
      await database.query(`UPDATE intake.coverage SET certificate = 'assumed', risk = $1, reason = 'test'`, [risk]);
      const stdout = expect.stringMatching(`\nverdict: ${word}\n$`);
      expect(await callIntake(['prove', '--check'], env)).toMatchObject({ code, stdout });
    }
  });

  test('puts a whole file into place that only its user may read', { tags: ['slow'] }, async () => {
    await using scratch = await openScratch();
    await using board = await openSandbox({ applications: 20 });
    const env = toEnvironment(database, board);
    await syncBoard(database, board);
    const file = join(scratch.path, 'proof.ndjson');
    writeFileSync(file, 'earlier', { mode: 0o644 });
    expect(await callIntake(['prove', '--export', file], env)).toMatchObject({ code: 0 });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).toMatch(/^\{"type":"proof"/);
    expect(readdirSync(scratch.path)).toEqual(['proof.ndjson']);
    const nowhere = join(scratch.path, 'no such folder', 'proof.ndjson');
    for (const args of [
      ['--export', nowhere],
      ['--export', scratch.path],
      ['--check', nowhere],
      ['--check', scratch.path],
    ]) {
      const ended = await callIntake(['prove', ...args], env);
      expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(`${args[1]}: `) });
    }
    expect(readdirSync(scratch.path)).toEqual(['proof.ndjson']);
    const now = await callIntake(['prove', '--json'], env);
    expect(JSON.parse(now.stdout).advertisers).toMatchObject([{ at: null, certificates: [{ reaches: true }] }]);
  });

  test('says what a day rests on', { tags: ['slow'] }, async () => {
    await using board = await openSynced();
    const env = toEnvironment(database, board);
    const past = await callIntake(['prove', '--at', '2020-01-31'], env);
    expect(past).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('complete through 2020-01-31T13:59:59.000Z, proven'),
    });
    expect(past.stdout).toContain('It rests on:');
    const future = await callIntake(['prove', '--at', '2199-01-31', '--json'], env);
    expect(future.code).toBe(3);
    expect(JSON.parse(future.stdout).advertisers[0]).toMatchObject({ complete: false, certificate: 'proven' });
  });

  test.for([
    [['--export', 'a', '--check'], 'Choose one'],
    [['--at', 'July'], '--at must be a day'],
  ] as const)('refuses %j', async ([args, says]) => {
    const env = { DATABASE_URL: database.url, SOURCE_URL: 'http://127.0.0.1:9', SOURCE_CREDENTIAL: 'x' };
    const ended = await callIntake(['prove', ...args], env);
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(says) });
  });
});

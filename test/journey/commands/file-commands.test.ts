// The commands about files as an operator meets them: exit codes, what they say, and a process that dies in the middle.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, vi } from 'vitest';
import { toBlobKey } from '../../../src/domain/blob.ts';
import { test, toResult } from '../../support/processes/site.ts';
import { toSettings } from '../../support/stores/blob-stores.ts';
import { openStrictS3 } from '../../support/stores/strict-s3.ts';

describe('files at the command line', () => {
  test('are fetched, verified, shown, lost, found to be lost and fetched again', async ({ openSite }) => {
    const { board, database, folder, intake } = await openSite({ applications: 0 });
    board.add([
      { attachments: [{ kind: 'resume', content: 'the first' }] },
      {
        attachments: [{ kind: 'resume', content: 'the second' }, { kind: 'screen' }],
        rawScreen: { json: '{"screen":{"@id":"1"}}', xml: '<screen id="1"/>' },
      },
    ]);

    // Left in the queue on purpose.
    expect(await intake('sync --no-files')).toMatchObject({ code: 0 });
    expect(existsSync(join(folder, 'blobs'))).toBe(false);
    const synced = await intake('sync --json');
    expect(synced.code).toBe(0);
    expect(toResult(synced)).toMatchObject({ files: { stored: 3, waiting: 0 } });

    const [first] = [...board.truth()];
    const shown = await intake(`url ${first?.id} RESUME`);
    expect(shown.code).toBe(0);
    const path = fileURLToPath(shown.stdout.trim());
    expect(readFileSync(path, 'utf8')).toBe('the first');
    expect(await intake(`url ${first?.id} coverletter`)).toMatchObject({ code: 2 });
    expect(await intake(`url ${first?.id}`)).toMatchObject({ code: 2, stderr: expect.stringContaining('kind') });

    // Somebody has changed a count of the status by hand.
    await database.query(`UPDATE intake.tallies SET n = n + 5 WHERE what = 'applications'`);
    const full = await intake('verify --full');
    expect(full).toMatchObject({ code: 0, stdout: expect.stringContaining('None is missing') });
    expect(full.stdout).toContain('1 count of the status was corrected.');
    expect((await intake('verify --full')).stdout).not.toContain('count');
    rmSync(path);
    const verified = await intake('verify --json');
    expect(verified.code).toBe(3);
    expect(toResult(verified)).toMatchObject({ missing: 1, requeued: 1 });
    expect(await intake('verify --full')).toMatchObject({
      code: 3,
      stdout: expect.stringContaining(
        '1 file found missing or damaged earlier: not downloaded again yet. Next: intake sync',
      ),
    });
    expect((await intake('sync')).code).toBe(0);
    expect(readFileSync(path, 'utf8')).toBe('the first');

    // An object in no row is a finding once; after that it is an orphan that waits for its end.
    const extra = join(folder, 'blobs', toBlobKey(board.advertiserId, 'f'.repeat(64)));
    mkdirSync(dirname(extra), { recursive: true });
    writeFileSync(extra, 'left by somebody');
    const strange = await intake('verify');
    expect(strange).toMatchObject({ code: 3, stdout: expect.stringContaining('1 object has no row') });
    expect(await intake('verify')).toMatchObject({ code: 0 });
    expect(await intake('reparse --all')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('1 screen parsed again'),
    });

    const checked = await intake('doctor');
    expect(checked).toMatchObject({ code: 0, stdout: expect.stringMatching(/ok +storage: .*put, get and delete/) });
    expect(readdirSync(join(folder, 'blobs')).sort()).toEqual(['.aside', '.intake-store', String(board.advertiserId)]);

    const elsewhere = join(folder, 'elsewhere');
    mkdirSync(elsewhere);
    for (const line of ['verify', 'sync', `url ${first?.id} resume`, 'doctor']) {
      const refused = await intake(line, { BLOBS_URL: `file:${elsewhere}` });
      expect(refused.code, line).toBe(2);
      expect(refused.stdout + refused.stderr).toMatch(/another store|does not hold the files of this database/);
    }
    expect(readdirSync(elsewhere)).not.toContain('.intake-store');
  });

  test('that two accounts have under one id are not guessed at', { tags: ['slow'] }, async ({ openSite }) => {
    const { board, database, folder, intake } = await openSite({ applications: 0 });
    const [id = 0n] = board.add([{ attachments: [{ kind: 'resume', content: 'the resume' }] }]);
    expect((await intake('sync')).code).toBe(0);
    await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('other', 7)`);
    for (const [table, key] of [
      ['applications', 'application_id'],
      ['blobs', 'sha256'],
      ['attachments', 'application_id'],
    ]) {
      await database.query(
        `INSERT INTO intake.${table} SELECT (jsonb_populate_record(t, '{"advertiser_id": 7}')).* FROM intake.${table} t ORDER BY ${key}`,
      );
    }
    const file = join(folder, 'accounts.json');
    const other = { name: 'other', credential: 'another', advertiserId: '7' };
    const own = { name: 'default', credential: board.credential, advertiserId: String(board.advertiserId) };
    writeFileSync(file, JSON.stringify([own, other]));
    const several = { SOURCE_CREDENTIAL: '', ADVERTISERS_FILE: file };
    expect(await intake(`url ${id} resume`, several)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Name one with --advertiser.'),
    });
    expect(await intake(`url ${id} resume --advertiser other`, several)).toMatchObject({ code: 0 });
  });

  test('lie in a bucket, and are shown by an address', { tags: ['slow'] }, async ({ openSite }) => {
    await using s3 = await openStrictS3();
    // The SDK finds its credentials in the environment of the process.
    toSettings(s3);
    const site = await openSite({ applications: 0 });
    const [id] = site.board.add(
      Array.from({ length: 20 }, (_, nth) => ({ attachments: [{ kind: 'resume', content: `resume ${nth}` }] })),
    );
    const settings = { ...s3.settings, SOURCE_CONCURRENCY: '5' };
    s3.fail('PutObject', { kind: 'slow', delayMs: 50 }, 1_000);
    expect(await site.intake('sync', { ...settings, S3_SSE: 'AES256' })).toMatchObject({ code: 0 });
    const asked = (operation: string) => s3.requests.filter((one) => one.operation === operation);
    const puts = asked('PutObject').filter(({ headers }) => headers['content-length'] === '8');
    expect(puts).toHaveLength(10);
    for (const { headers } of puts) {
      expect(headers).toMatchObject({
        'x-amz-server-side-encryption': 'AES256',
        'x-amz-sdk-checksum-algorithm': 'SHA256',
      });
    }
    expect(new Set(asked('PutObject').map(({ port }) => port)).size).toBe(5);
    // Sums where S3 requires them: none is asked for with what is read.
    expect(asked('GetObject').length).toBeGreaterThan(0);
    expect(asked('GetObject').filter(({ headers }) => headers['x-amz-checksum-mode'])).toEqual([]);

    const shown = await site.intake(`url ${id} resume`, settings);
    expect(shown.code).toBe(0);
    const { searchParams } = new URL(shown.stdout.trim());
    expect(searchParams.get('X-Amz-Expires')).toBe('300');
    const answered = await fetch(shown.stdout.trim());
    expect(answered.headers.get('content-disposition')).toMatch(/^attachment; filename=/);
    expect(await answered.text()).toBe('resume 0');
    vi.unstubAllEnvs();
  });

  test('that the source does not have leave 0, failed ones 3', { tags: ['slow'] }, async ({ openSite }) => {
    const { board, database, env, intake } = await openSite({ applications: 0 });
    const [, second] = board.add([
      { attachments: [{ kind: 'resume', content: 'not there yet' }] },
      { attachments: [{ kind: 'resume', content: 'too large'.repeat(1_000) }] },
    ]);
    env.ATTACHMENT_MAX_BYTES = '1kB';
    board.fault({ kind: 'fail', status: 404, on: 'resume', times: null });
    const absent = await intake('sync');
    expect(absent).toMatchObject({ code: 0, stdout: expect.stringContaining('2 not at the source yet') });
    board.clearFaults();
    expect(await intake('retry')).toMatchObject({ code: 0, stdout: expect.stringContaining('2 downloads are due') });
    const failed = await intake('sync');
    expect(failed).toMatchObject({ code: 3, stdout: expect.stringContaining('1 rejected') });
    const status = await intake('status');
    expect(status.stdout).toContain('intake retry --state rejected');
    const again = await intake(`retry --state rejected --application ${second} --kind resume`);
    expect(again.stdout).toContain('1 download is due');
    expect((await intake('sync', { ATTACHMENT_MAX_BYTES: '1MB' })).code).toBe(0);
    expect(await intake('retry --state stored')).toMatchObject({ code: 2 });
    const entries = await database.query(
      `SELECT action, application_id, facts FROM intake.audit_log ORDER BY audit_id`,
    );
    expect(entries.at(-1)).toEqual({
      action: 'retry',
      application_id: String(second),
      facts: { kind: 'resume', state: 'rejected', downloads: 1 },
    });
  });
});

// A download run among troubles: what counts against a file, what rests, what is halted, what is given back.
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { type BlobStore, toBlobKey } from '../../../src/domain/blob.ts';
import { Trouble, toDelay } from '../../../src/domain/trouble.ts';
import { openQueueListener } from '../../../src/store/postgres/listen.ts';
import { createDownloadMemory } from '../../../src/sync/files/download-run.ts';
import { openSpool } from '../../../src/sync/files/spool.ts';
import { shareDatabase } from '../../support/database/test-database.ts';
import { openSmallIntake, type SmallIntake, type SmallIntakeOptions } from '../../support/small-intake.ts';

const database = shareDatabase();

/** So many applications with one resume each, read but not fetched. */
async function openWith(count: number, options: SmallIntakeOptions = {}): Promise<SmallIntake> {
  const intake = await openSmallIntake({ database, ...options });
  intake.board.add(
    Array.from({ length: count }, (_, at) => ({ attachments: [{ kind: 'resume', content: `resume ${at}` }] })),
  );
  await intake.sweep();
  return intake;
}

const resumesAsked = ({ board }: SmallIntake) =>
  board.requests().filter(({ path }) => path.includes('/resume/')).length;

const queue = () =>
  database.query<{ attempts: number; priority: number; lapses: number; claimed: boolean; trouble_kind: string | null }>(
    `SELECT attempts, priority, lapses, lease_token IS NOT NULL AS claimed, trouble_kind FROM intake.downloads ORDER BY application_id`,
  );

describe('a file that fails', () => {
  test('is tried again within the retries of the run', async () => {
    await using intake = await openWith(1);
    intake.board.fault({ kind: 'fail', status: 500, on: 'resume', times: 5 });
    expect(await intake.runDownloads({ retryForMs: 600_000 })).toMatchObject({ stored: 1, waiting: 0 });
  });

  test('gets all its tries again when a person asks for it, and what has no path is left as it is', async () => {
    await using intake = await openWith(1);
    intake.board.add([{ attachments: [{ kind: 'portfolio', content: 'there is no path for it' }] }]);
    await intake.sweep();
    await database.query(
      `UPDATE intake.downloads SET attempts = 7, lapses = 2, priority = 2, trouble_kind = 'missing'`,
    );
    const heard: string[] = [];
    await using _listener = await openQueueListener(database.url, { onQueued: (id) => heard.push(id) });
    const choice = { applicationId: null, kind: null, state: null };
    expect(await intake.store.downloads.retryDownloads(intake.board.advertiserId, choice)).toBe(1);
    await expect.poll(() => heard).toEqual([String(intake.board.advertiserId)]);
    expect(await queue()).toEqual([{ attempts: 0, lapses: 0, priority: 0, claimed: false, trouble_kind: null }]);
    expect((await intake.files()).map((file) => file.state)).toEqual(['pending', 'rejected']);
  });

  test('with a mistake of ours costs its own tries and no other file', async () => {
    await using intake = await openWith(3);
    // Not so soon that this very run would try again.
    using _jitter = vi.spyOn(Math, 'random').mockReturnValue(0.9);
    let mistakes = 1;
    const describeFile = async () => {
      if (mistakes-- > 0) throw new TypeError('a mistake');
      return { contentType: null, detectedType: null, fileName: null, encoding: null, looksLikePage: false };
    };
    expect(await intake.runDownloads({ concurrency: 1, deps: { describeFile } })).toMatchObject({
      stored: 2,
      failures: 1,
    });
    expect(await queue()).toMatchObject([{ attempts: 1, claimed: false }]);
    await intake.hasten();
    expect(await intake.runDownloads()).toMatchObject({ stored: 1 });
  });
});

describe('a source', () => {
  test('that asks for fewer requests gets its time, and no attempt is spent', async () => {
    await using intake = await openWith(3);
    intake.board.fault({ kind: 'throttle', retryAfter: 'day', on: 'resume', times: 1 });
    const summary = await intake.runDownloads({ concurrency: 1, retryForMs: 500 });
    expect(summary).toMatchObject({ stored: 0, waiting: 3 });
    const rows = await queue();
    expect(rows.map((row) => row.attempts)).toEqual([0, 0, 0]);
    expect(intake.board.requests().filter((entry) => entry.path.includes('/resume/'))).toHaveLength(1);
  });

  test('that is down spends nobody’s tries, however long, and is left alone after a few', async () => {
    await using intake = await openWith(30);
    intake.board.fault({ kind: 'reset', at: 'start', on: 'resume', times: null });
    // Eight in a row, and the one that was beside the eighth.
    expect((await intake.runDownloads({ concurrency: 2 })).failures).toBeLessThan(12);
    await intake.hasten();
    await intake.runDownloads();
    expect((await queue()).map((row) => row.attempts)).toEqual(Array(30).fill(0));
    intake.board.clearFaults();
    await intake.hasten();
    expect(await intake.runDownloads()).toMatchObject({ stored: 30, waiting: 0 });
  });

  test('that refuses the credential spends nothing, and the account is halted where the list is read', async () => {
    // A whole sync ends the halt, a sweep alone does not.
    await using intake = await openWith(5, { rigor: 'proof' });
    intake.board.fault({ kind: 'refuse', times: null });
    for (let runs = 0; runs < 10; runs++) {
      await intake.runDownloads({ concurrency: 2 });
      await intake.hasten();
    }
    expect((await queue()).every((row) => row.attempts === 0 && !row.claimed)).toBe(true);
    await expect(intake.sweep()).rejects.toMatchObject({ kind: 'refused' });
    expect(await database.query(`SELECT state, halt_kind FROM intake.advertisers`)).toEqual([
      { state: 'halted', halt_kind: 'refused' },
    ]);
    const before = intake.board.requests().length;
    await intake.runDownloads();
    expect(intake.board.requests()).toHaveLength(before);
    intake.board.clearFaults();
    // The next download run that the source accepts ends the halt.
    await intake.sweep();
    expect(await intake.runDownloads()).toMatchObject({ stored: 5 });
  });
});

test('an account that rests shortly is waited for, although another rests for longer than the run waits', async () => {
  await using intake = await openWith(1);
  await using source = intake.openSource('json');
  const memory = createDownloadMemory();
  memory.pauses.set('default', performance.now() + 300).set('other', performance.now() + 3_600_000);
  const accounts = [
    { name: 'default', advertiserId: intake.board.advertiserId, source },
    { name: 'other', advertiserId: 999n, source },
  ];
  expect(await intake.runDownloads({ retryForMs: 60_000, deps: { memory, accounts } })).toMatchObject({ stored: 1 });
});

describe('a file that is refused for ever', () => {
  const fault = { kind: 'refuse', status: 403 } as const;
  /** Reads the list and runs so often, each time with everything due. */
  async function runOften(intake: SmallIntake, times: number) {
    for (let tries = 0; tries < times; tries++) {
      await intake.sweep().catch(() => {});
      await intake.hasten();
      await intake.runDownloads();
    }
  }
  const states = async (intake: SmallIntake) => (await intake.files()).map((file) => file.state);

  test('spends its attempts while the list is read, and is given up with the reason; its account goes on', async () => {
    await using intake = await openWith(3);
    const [id] = [...intake.board.truth()].map((one) => one.id);
    intake.board.fault({ ...fault, on: 'resume', times: null, applicationId: id });
    await runOften(intake, 8);
    expect(await states(intake)).toEqual(['pending', 'stored', 'stored']);
    await runOften(intake, 1);
    expect(await states(intake)).toEqual(['given_up', 'stored', 'stored']);
    expect((await intake.files())[0]?.reason).toMatch(/refuses this file \(403\).*8 times/);
    expect(await database.query(`SELECT state FROM intake.advertisers`)).toEqual([{ state: 'active' }]);
  });

  test('spends one attempt for each time that the list was read', { tags: ['slow'] }, async () => {
    await using intake = await openWith(1);
    intake.board.fault({ ...fault, on: 'resume', times: null });
    for (let polls = 0; polls < 3; polls++) {
      await intake.sweep();
      for (let runs = 0; runs < 4; runs++) {
        await intake.hasten();
        await intake.runDownloads();
      }
      expect(await queue()).toMatchObject([{ attempts: polls, claimed: false }]);
    }
  });

  test('is no outage, also where there are many of them', { tags: ['slow'] }, async () => {
    await using intake = await openWith(14);
    const ids = [...intake.board.truth()].map((one) => one.id);
    for (const applicationId of ids.slice(4)) {
      intake.board.fault({ ...fault, on: 'resume', times: null, applicationId });
    }
    // Eight failures in a row end a run before the others are asked for.
    await runOften(intake, 22);
    expect(await states(intake)).toEqual([...Array(4).fill('stored'), ...Array(10).fill('given_up')]);
  });

  test('spends nothing while the list does not answer either', { tags: ['slow'] }, async () => {
    await using intake = await openWith(1);
    intake.board.fault({ ...fault, on: 'resume', times: null });
    intake.board.fault({ kind: 'fail', status: 502, on: 'list', times: null });
    await runOften(intake, 10);
    expect(await queue()).toMatchObject([{ attempts: 0, claimed: false }]);
  });
});

describe('storage that cannot take bytes', () => {
  test('stops the claiming, spends nothing, and is waited for', async () => {
    await using intake = await openWith(4);
    let broken = true;
    const blobs = new Proxy(intake.blobs, {
      get: (target, name: keyof typeof intake.blobs) =>
        name !== 'put'
          ? target[name]
          : async (...args: Parameters<typeof target.put>) => {
              if (broken) throw new Trouble('local', 'The disk is full.', { retryAfterMs: toDelay(1_000) });
              return await target.put(...args);
            },
    });
    const waits: number[] = [];
    const onWait = (_: Trouble, ms: number) => {
      waits.push(ms);
      broken = false;
    };
    const deps = { blobs, onWait };
    expect(await intake.runDownloads({ retryForMs: 600_000, deps })).toMatchObject({ stored: 4, waiting: 0 });
    expect(waits.length).toBeGreaterThan(0);
  });

  test('of one file, and takes others meanwhile, has that file given up', { tags: ['slow'] }, async () => {
    await using intake = await openWith(1);
    const [first] = [...intake.board.truth()];
    const key = toBlobKey(intake.board.advertiserId, first?.attachments[0]?.sha256 ?? '');
    const put: BlobStore['put'] = async (to, ...rest) => {
      if (to === key) throw new Trouble('local', 'The storage cannot be reached.', { at: 'storage' });
      return await intake.blobs.put(to, ...rest);
    };
    const deps = { blobs: { ...intake.blobs, put }, memory: createDownloadMemory() };
    for (let nth = 0; nth < 20; nth++) {
      intake.board.add([{ attachments: [{ kind: 'resume', content: `taken ${nth}` }] }]);
      await intake.sweep();
      await intake.hasten();
      await intake.runDownloads({ deps }).catch(() => {});
    }
    const [refused, ...others] = await intake.files();
    expect(refused).toMatchObject({ state: 'given_up', reason: expect.stringContaining('cannot be reached') });
    expect(others.every((file) => file.state === 'stored')).toBe(true);
  });

  test('that is away spends no try of a file that failed at the source before', { tags: ['slow'] }, async () => {
    await using intake = await openWith(2);
    const [, later] = [...intake.board.truth()];
    let putsLeft = 1;
    const put: BlobStore['put'] = async (...args) => {
      if (putsLeft-- <= 0) throw new Trouble('local', 'The storage cannot be reached.', { at: 'storage' });
      return await intake.blobs.put(...args);
    };
    const deps = { blobs: { ...intake.blobs, put }, memory: createDownloadMemory() };
    const failed = `UPDATE intake.downloads SET attempts = 7, trouble = 'it failed', trouble_kind = 'unreachable',
      failed_at = now() - interval '1 hour', due_at = now() + interval '1 hour' WHERE application_id = $1`;
    await database.query(failed, [later?.id]);
    expect(await intake.runDownloads({ deps })).toMatchObject({ stored: 1 });
    await intake.hasten();
    await intake.runDownloads({ deps }).catch(() => {});
    expect((await intake.files()).map((file) => file.state)).toEqual(['stored', 'pending']);
    expect(await queue()).toMatchObject([{ attempts: 7 }]);
  });

  test.for(['blobs', 'spool'])(
    'because the disk of the %s is nearly full is waited for, and nothing was spent',
    async (disk) => {
      await using intake = await openWith(4);
      const full = async () => 1_000;
      const deps =
        disk === 'spool' ? { spool: openSpool(intake.folder, full) } : { blobs: { ...intake.blobs, freeBytes: full } };
      const running = intake.runDownloads({ deps });
      await expect(running).rejects.toMatchObject({ kind: 'local', message: /nearly full/ });
      await expect(running).rejects.toThrow(
        disk === 'spool' ? `the spool ${intake.folder} ` : join(intake.folder, disk),
      );
      expect((await queue()).map((row) => row.attempts)).toEqual([0, 0, 0, 0]);
      expect(intake.board.requests().filter((entry) => entry.path.includes('/resume/'))).toEqual([]);
    },
  );
});

describe('shutdown', () => {
  test('stops claiming, gives back what cannot finish, and spends no attempt', async () => {
    await using intake = await openWith(20);
    intake.board.fault({ kind: 'hang', on: 'resume', times: null });
    const stop = new AbortController();
    const running = intake.runDownloads({ signal: stop.signal, graceMs: 100 });
    await expect.poll(() => resumesAsked(intake)).toBe(8);
    stop.abort(new Error('stop'));
    await expect(running).rejects.toThrow('stop');
    expect(resumesAsked(intake)).toBe(8);
    expect((await queue()).every((row) => row.attempts === 0 && !row.claimed && row.priority === 0)).toBe(true);
  });

  test('lets what is nearly done finish within the grace', async () => {
    await using intake = await openWith(4);
    intake.board.fault({ kind: 'slow', delayMs: 500, on: 'resume', times: null });
    const stop = new AbortController();
    const running = intake.runDownloads({ signal: stop.signal, graceMs: 600_000 });
    await expect.poll(() => resumesAsked(intake)).toBe(4);
    stop.abort(new Error('stop'));
    await expect(running).rejects.toThrow('stop');
    expect((await intake.files()).every((file) => file.state === 'stored')).toBe(true);
  });
});

describe('a file during whose download the process ended', () => {
  test('is fetched alone, after the others, and is no suspect once it came', async () => {
    await using intake = await openWith(6);
    const { claims } = await intake.store.downloads.claimDownloads({
      advertisers: [intake.board.advertiserId],
      tier: 'usual',
      limit: 2,
      token: '00000000-0000-4000-8000-000000000001',
      leaseMs: 1,
    });
    expect(claims).toHaveLength(2);
    const lapsed = `SELECT 1 FROM intake.downloads WHERE lease_token IS NOT NULL AND leased_until < now()`;
    await expect.poll(() => database.query(lapsed)).toHaveLength(2);
    let flying = 0;
    const most: number[] = [];
    const deps = {
      crashPoint: (name: string) => {
        if (name === 'claimed') most.push(++flying);
        if (name === 'completed') flying -= 1;
      },
    };
    expect(await intake.runDownloads({ deps })).toMatchObject({ stored: 6, waiting: 0 });
    expect(most.slice(-2)).toEqual([1, 1]);
    expect(Math.max(...most)).toBeGreaterThan(1);
  });

  test('that ended its process a second time, while it was alone, is given up with the reason, and costs no other', async () => {
    await using intake = await openWith(3);
    const [id] = [...intake.board.truth()].map((one) => one.id);
    await database.query(
      `UPDATE intake.downloads SET priority = 2, lapses = CASE WHEN application_id = $1 THEN 1 ELSE 0 END
       WHERE application_id < (SELECT max(application_id) FROM intake.downloads)`,
      [id],
    );
    expect(await intake.runDownloads()).toMatchObject({ stored: 2, givenUp: 1 });
    expect((await intake.files())[0]).toMatchObject({
      state: 'given_up',
      reason: expect.stringContaining('The process ended twice'),
    });
  });

  test('that takes longer than the lease keeps its claim by the heartbeat', async () => {
    await using intake = await openWith(1);
    const held = Promise.withResolvers<void>();
    const describeFile = async () => {
      await held.promise;
      return { contentType: null, detectedType: null, fileName: null, encoding: null, looksLikePage: false };
    };
    const first = intake.runDownloads({ concurrency: 1, leaseMs: 3_000, deps: { describeFile } });
    const claimed = (since: string) =>
      database.query<{ until: string }>(
        `SELECT leased_until::text AS until FROM intake.downloads WHERE leased_until > $1::timestamptz`,
        [since],
      );
    await expect.poll(() => claimed('-infinity')).toHaveLength(1);
    const [{ until = '' } = {}] = await claimed('-infinity');
    // Prolonged twice: the first of them alone would not reach beyond the lease.
    await expect.poll(() => claimed(until)).toHaveLength(1);
    expect(await intake.runDownloads({ leaseMs: 3_000 })).toMatchObject({ stored: 0, waiting: 1 });
    held.resolve();
    expect(await first).toMatchObject({ stored: 1 });
    expect(await intake.file()).toMatchObject({ state: 'stored' });
  });
});

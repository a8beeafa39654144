// Stored bytes are read again within VERIFY_WITHIN, on a turned clock: damage is found in time wherever it is, a night reads its share and
// no more, and a night that is cut short is gone on with.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createMaintenance } from '../../../src/app/maintenance.ts';
import { loadConfig } from '../../../src/config.ts';
import { type BlobStore, toBlobKey } from '../../../src/domain/blob.ts';
import { toStatus } from '../../../src/domain/status/status.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import { adoptStore } from '../../../src/sync/files/store-owner.ts';
import { verify } from '../../../src/sync/files/verify.ts';
import { runMaintenance } from '../../../src/sync/worker/run-task.ts';
import { setClockBack } from '../../support/database/moved-clock.ts';
import { shareDatabase } from '../../support/database/test-database.ts';
import { toEnvironment } from '../../support/processes/syncing.ts';
import { openSmallIntake, type SmallIntake } from '../../support/small-intake.ts';
import { findFileDifferences } from '../../support/stores/file-equality.ts';
import { quietLog } from '../../support/suite/quiet-log.ts';

const database = shareDatabase();
afterEach(() => {
  vi.unstubAllEnvs();
});

const dayMs = 86_400_000;
const signal = () => AbortSignal.timeout(600_000);
const days = 6;

/** Files of 100 to 2,000 bytes, stored. */
async function openStored(count: number, options: { readonly blobs?: BlobStore } = {}): Promise<SmallIntake> {
  const intake = await openSmallIntake({ database, ...options });
  await intake.receiveWithFiles(
    Array.from({ length: count }, (_, at) => ({
      attachments: [{ kind: 'resume' as const, content: `file ${at} ${'.'.repeat(100 + ((at * 613) % 1_900))}` }],
    })),
  );
  expect(await intake.keys()).toHaveLength(count);
  return intake;
}

const nightOf = (intake: SmallIntake, blobs = intake.blobs, until = signal()) =>
  verify(
    { ...intake, blobs },
    {
      advertisers: [intake.board.advertiserId],
      amount: { withinMs: days * dayMs },
      parallel: 3,
      signal: until,
    },
  );

const dayPasses = () => setClockBack(database.query, -dayMs);

/** Changes one byte and neither length nor time of anything else. */
function flip(bytes: Buffer): Buffer {
  const flipped = Buffer.from(bytes);
  flipped[50] = (bytes[50] ?? 0) ^ 1;
  return flipped;
}

const loadDamaged = async () =>
  (await database.query<{ key: string }>(`SELECT key FROM intake.blobs WHERE state = 'damaged'`)).map(({ key }) => key);

test('damage of a stored file is found by the nightly task within the time that is set, whenever and wherever it happens', async () => {
  await using intake = await openStored(18);
  const env = {
    ...toEnvironment(database, intake.board, join(intake.folder, 'blobs')),
    VERIFY_WITHIN: `${days}d`,
  };
  const config = loadConfig(env, { needs: ['source', 'sync', 'blobs', 'privacy'] });
  const task = createMaintenance(config, intake.store, quietLog).find(({ name }) => name === 'verify');
  await adoptStore(intake, signal());
  const keys = await intake.keys();
  const planted = new Map<string, number>();
  const found = new Map<string, number>();
  for (let night = 0; night < 3 * days; night++) {
    // One file a night, after the first six: of some the bytes were just read, of others long ago.
    const key = keys[night - days];
    if (key !== undefined && night < 2 * days) {
      const path = join(intake.folder, 'blobs', key);
      writeFileSync(path, flip(readFileSync(path)));
      planted.set(key, night);
    }
    await dayPasses();
    await task?.run(signal(), () => {});
    const damaged = await loadDamaged();
    for (const one of damaged) found.set(one, night);
    if (damaged.length > 0) await intake.runDownloads();
  }
  expect(planted.size).toBe(days);
  expect([...found.keys()].toSorted()).toEqual([...planted.keys()].toSorted());
  for (const [key, night] of found) expect(night - (planted.get(key) ?? 0)).toBeLessThan(days);
  expect(await findFileDifferences(intake, 'json')).toEqual([]);
});

describe('a night', () => {
  test('reads its share of an account that was just stored, those files first that were read longest ago', async () => {
    await using intake = await openStored(40);
    const [{ total, largest }] = (await database.query(
      `SELECT sum(size_bytes)::int AS total, max(size_bytes)::int AS largest FROM intake.blobs`,
    )) as [{ total: number; largest: number }];
    const read: string[] = [];
    const blobs: BlobStore = {
      ...intake.blobs,
      async verify(key, facts, proof, until) {
        if (proof === 'bytes') read.push(key);
        return await intake.blobs.verify(key, facts, proof, until);
      },
    };
    // The first night is a day after all was stored, and one night is spare.
    for (let night = 0; night < days - 2; night++) {
      await dayPasses();
      const { readBytes, ...found } = await nightOf(intake, blobs);
      expect(found).toMatchObject({ blobs: 40, missing: 0, damaged: 0 });
      expect(readBytes).toBeLessThan(total / (days - 2) + largest);
    }
    // None is read twice before all were read once.
    expect(new Set(read.slice(0, 40)).size).toBe(40);
  });

  test('reads an empty file as well', async () => {
    await using intake = await openSmallIntake({ database });
    await intake.receive([{ attachments: [] }]);
    const empty = { sizeBytes: 0, sha256: createHash('sha256').digest('hex') };
    const key = toBlobKey(intake.board.advertiserId, empty.sha256);
    await intake.blobs.put(key, Buffer.alloc(0), empty, signal());
    await database.query(
      `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, verified_at)
       VALUES ($1, $2, 0, $3, 'stored', now())`,
      [intake.board.advertiserId, empty.sha256, key],
    );
    expect(await nightOf(intake)).toMatchObject({ blobs: 1, read: 1, readBytes: 0 });
  });

  test('that is stopped keeps what it has read, and the next run goes on behind it', async () => {
    await using intake = await openStored(30);
    await setClockBack(database.query, -days * dayMs);
    const stop = new AbortController();
    const asked: string[] = [];
    const blobs: BlobStore = {
      ...intake.blobs,
      async verify(key, facts, proof, until) {
        const condition = await intake.blobs.verify(key, facts, proof, until);
        asked.push(key);
        if (asked.length === 4) stop.abort(new Error('SIGTERM'));
        return condition;
      },
    };
    await expect(nightOf(intake, blobs, stop.signal)).rejects.toThrow('SIGTERM');
    const first = asked.splice(0);
    const [{ recorded }] = (await database.query(
      `SELECT count(*)::int AS recorded FROM intake.blobs WHERE verified_at > now() - interval '1 day'`,
    )) as [{ recorded: number }];
    // At most three are asked for at once: those that had an answer are recorded.
    expect(recorded).toBe(first.length);
    expect(recorded).toBeLessThan(8);
    await nightOf(intake, blobs);
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.filter((key) => first.includes(key))).toEqual([]);
  });

  test('reads the others in time where many that come first cannot be read', { tags: ['slow'] }, async () => {
    await using intake = await openStored(30);
    await dayPasses();
    const refused = new Set((await intake.keys()).slice(0, 12));
    await database.query(
      `UPDATE intake.blobs SET verified_at = verified_at - interval '20 days' WHERE key = ANY ($1)`,
      [[...refused]],
    );
    const blobs: BlobStore = {
      ...intake.blobs,
      async verify(key, ...args) {
        if (refused.has(key)) throw new Trouble('local', 'AccessDenied', { at: 'storage' });
        return await intake.blobs.verify(key, ...args);
      },
    };
    for (let night = 1; night < days; night++) {
      await expect(nightOf(intake, blobs)).rejects.toThrow('AccessDenied');
      await dayPasses();
    }
    const old = await database.query<{ key: string }>(
      `SELECT key FROM intake.blobs WHERE verified_at < now() - ${days} * interval '1 day'`,
    );
    expect(new Set(old.map(({ key }) => key))).toEqual(new Set(refused));
  });

  test('ends early where the store is away, and asks for few objects', async () => {
    await using intake = await openStored(30);
    await setClockBack(database.query, -days * dayMs);
    let asked = 0;
    const blobs: BlobStore = {
      ...intake.blobs,
      async verify() {
        asked++;
        throw new Trouble('unreachable', 'away', { at: 'storage' });
      },
      loadIdentity: async () => {
        throw new Trouble('unreachable', 'away', { at: 'storage' });
      },
    };
    await expect(nightOf(intake, blobs)).rejects.toThrow('away');
    expect(asked).toBeLessThan(16);
  });

  test('that was missed is made up for, and one that came to its end is not repeated', async () => {
    await using intake = await openSmallIntake({ database });
    let runs = 0;
    const task = { name: 'verify', schedule: '37 4 * * *', run: async () => void runs++ } as const;
    const run = (restMs = 60_000) =>
      runMaintenance(
        intake.store,
        { ...task, restMs },
        {
          owner: 'a worker',
          leaseMs: 30_000,
          signal: signal(),
          onStep: () => {},
        },
      );
    const config = loadConfig(toEnvironment(database, intake.board, intake.folder), {
      needs: ['source', 'sync', 'blobs', 'privacy'],
    });
    const { restMs = 0 } =
      createMaintenance(config, intake.store, quietLog).find((one) => one.restMs !== undefined) ?? {};
    expect(await run(restMs)).toBe(true);
    await dayPasses();
    expect(await run(restMs)).toBe(false);
    expect(await run()).toBe(true);
    await setClockBack(database.query, -restMs);
    expect(await run(restMs)).toBe(true);
    expect(runs).toBe(3);
  });
});

test('the status tells the age of the oldest unread byte, and it is a problem beyond the limit', async () => {
  await using intake = await openStored(3);
  const [old = ''] = await intake.keys();
  await database.query(`UPDATE intake.blobs SET verified_at = now() - interval '31 days' WHERE key = $1`, [old]);
  const load = async () =>
    toStatus(new Date(), await intake.store.reports.loadStatus(), { verifyWithinMs: 30 * dayMs });
  const { problems } = await load();
  expect(problems.map(({ what }) => what)).toContainEqual(
    expect.stringContaining('not been read again for 31d, the limit is 30d (VERIFY_WITHIN).'),
  );
  await nightOf(intake);
  const { advertisers, problems: left } = await load();
  expect(left.map(({ what }) => what)).not.toContainEqual(expect.stringContaining('VERIFY_WITHIN'));
  expect(advertisers[0]?.verifiedSince?.getTime()).toBeGreaterThan(Date.now() - dayMs);
});

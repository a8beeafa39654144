// After all faults, compares the database and the store with the source, application by application and file by file.

import { setTimeout as sleep } from 'node:timers/promises';
import type { BoardAdvertiser } from '../../../src/dev/sandbox/account/account.ts';
import { toBlobKey } from '../../../src/domain/blob.ts';
import { findDifferences } from '../../support/equality.ts';
import type { FileRow } from '../../support/small-intake.ts';
import { findFileDifferences } from '../../support/stores/file-equality.ts';
import type { Stage } from '../stage.ts';

export interface Recovery {
  readonly tookMs: number;
  /** Differences at the deadline; empty if everything is equal. */
  readonly differences: readonly string[];
}

/** Waits until everything is equal, or the deadline has passed. */
export async function untilEqual(stage: Stage, retryForMs: number): Promise<Recovery> {
  const startedAt = performance.now();
  for (;;) {
    const differences = await findAll(stage).catch((error: Error) => [`the comparison failed: ${error.message}`]);
    const tookMs = performance.now() - startedAt;
    if (differences.length === 0 || tookMs > retryForMs) return { tookMs, differences };
    await sleep(400);
  }
}

async function findAll(stage: Stage): Promise<string[]> {
  const differences: string[] = [];
  const erased = await loadErased(stage);
  for (const one of stage.accounts) {
    // The source still lists erased people. erasing.ts checks that they are gone.
    const account = {
      advertiserId: one.advertiserId,
      truth: () => [...one.truth()].filter(({ id }) => !erased.has(`${one.advertiserId}/${id}`)),
    };
    // A Hash that differs in every answer cannot be compared.
    const isVolatile = stage.plan.choices.hash === 'volatile';
    differences.push(...(await findDifferences(stage.cluster, account, { withoutHash: isVolatile })));
    if (differences.length === 0) differences.push(...(await findFilesOf(stage, account)));
    if (differences.length > 0) break;
  }
  return differences.length > 0 ? differences : await findLeft(stage);
}

/** Keyed by account and id, because two accounts may use the same id for different people. */
async function loadErased({ cluster }: Stage): Promise<Set<string>> {
  const rows = await cluster.query<{ name: string }>(
    `SELECT advertiser_id || '/' || application_id AS name FROM intake.applications WHERE erased_at IS NOT NULL`,
  );
  return new Set(rows.map(({ name }) => name));
}

async function findFilesOf(stage: Stage, account: Pick<BoardAdvertiser, 'advertiserId'>): Promise<string[]> {
  const { cluster, s3, plan } = stage;
  const { advertiserId } = account;
  const objects = new Map([...s3.objects].map(([name, { bytes }]) => [name.replace(/^intake\//, ''), bytes]));
  const files = () =>
    cluster.query<FileRow>(`SELECT * FROM intake.attachments WHERE advertiser_id = $1 AND gone_at IS NULL`, [
      advertiserId,
    ]);
  // Ignores objects of earlier versions and of abandoned puts; collectAll in orphans.ts checks those.
  const current = async () =>
    (await files())
      .filter(({ state }) => state === 'stored')
      .map(({ sha256 }) => toBlobKey(advertiserId, sha256 ?? ''));
  const flagged = await cluster.query<{ sha256: string }>(
    `SELECT sha256 FROM intake.blobs WHERE advertiser_id = $1 AND state = 'infected'`,
    [advertiserId],
  );
  return await findFileDifferences(
    {
      board: account,
      database: cluster,
      files,
      keys: async () => [...new Set(await current())].filter((key) => objects.has(key)),
      blobs: {
        async *get(key: string) {
          yield objects.get(key) ?? Buffer.alloc(0);
        },
      },
    } as never,
    plan.format,
    new Set(flagged.map(({ sha256 }) => sha256)),
  );
}

/** Finds queued downloads and infected objects, which must not remain. Orphaned objects are deleted after this check. */
async function findLeft({ cluster, s3 }: Stage): Promise<string[]> {
  const left: string[] = [];
  const [queue] = await cluster.query<{ n: number }>(`SELECT count(*)::int AS n FROM intake.downloads`);
  if (queue && queue.n > 0) left.push(`${queue.n} downloads still wait`);
  const infected = await cluster.query<{ key: string }>(`SELECT key FROM intake.blobs WHERE state = 'infected'`);
  for (const { key } of infected) {
    if ([...s3.objects.keys()].some((name) => name.endsWith(key)))
      left.push(`P8: infected ${key} is still in the store`);
  }
  return left.slice(0, 5);
}

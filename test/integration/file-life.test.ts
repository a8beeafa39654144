// The tables of a file's life are complete: whatever happens to a blob or a download here is one of their lines.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { BlobStore } from '../../src/domain/blob.ts';
import { blobLife, downloadLife } from '../../src/domain/file-life.ts';
import { deleteInfected } from '../../src/sync/files/delete-objects.ts';
import { verify } from '../../src/sync/files/verify.ts';
import { erase } from '../../src/sync/privacy/erase.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { shareDatabase } from '../support/test-database.ts';

const database = shareDatabase();

const signal = () => AbortSignal.timeout(600_000);

/** Notes every change of state of these tables in a table of the test. */
async function watch(): Promise<void> {
  const state = (row: string) =>
    `CASE WHEN TG_TABLE_NAME = 'blobs' THEN to_jsonb(${row})->>'state'
       WHEN to_jsonb(${row})->>'lease_token' IS NULL THEN CASE to_jsonb(${row})->>'priority' WHEN '2' THEN 'suspect' ELSE 'queued' END
       WHEN to_jsonb(${row})->>'sha256' IS NULL THEN 'claimed' ELSE 'announced' END`;
  await database.query(`CREATE TABLE public.moves (what text, was text, is_now text)`);
  await database.query(
    `CREATE FUNCTION public.note_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       INSERT INTO public.moves VALUES (TG_TABLE_NAME,
         CASE WHEN TG_OP <> 'INSERT' THEN ${state('OLD')} END, CASE WHEN TG_OP <> 'DELETE' THEN ${state('NEW')} END);
       RETURN NULL;
     END $$`,
  );
  for (const table of ['blobs', 'downloads']) {
    await database.query(
      `CREATE TRIGGER note_move AFTER INSERT OR UPDATE OR DELETE ON intake.${table} FOR EACH ROW EXECUTE FUNCTION public.note_move()`,
    );
  }
}

test('every change of state is a line of its table', async () => {
  await using intake = await openSmallIntake({ database });
  await watch();
  const { board } = intake;
  const resume = { kind: 'resume', content: 'one', uploadedAt: 1_700_000_000_000 } as const;
  const ids = board.add([
    { attachments: [resume] },
    { attachments: [{ kind: 'resume', content: 'two' }] },
    { attachments: [{ kind: 'resume', content: 'never served' }] },
  ]);
  const [flagged = 0n, erased = 0n, unserved = 0n] = ids;
  board.fault({ kind: 'fail', status: 500, on: 'resume', times: null, applicationId: unserved });
  const fetchAll = async () => {
    await intake.hasten();
    await intake.runDownloads();
  };
  const check = () => verify(intake, { advertisers: [board.advertiserId], amount: { share: 1 }, signal: signal() });
  await intake.sweep();
  await fetchAll();
  // Lost, and fetched again.
  for (const key of await intake.keys()) rmSync(join(intake.folder, 'blobs', key));
  await check();
  await fetchAll();
  // Flagged, deleted, and freed.
  for (const hasVirus of [true, false]) {
    board.change(flagged, { attachments: [{ ...resume, hasVirus }] });
    await intake.sweep(true);
    await deleteInfected(intake, signal());
    await fetchAll();
  }
  // A process that ends with files in hand.
  board.add([{ attachments: [{ kind: 'resume', content: 'three' }] }]);
  await intake.sweep();
  const dying: BlobStore = { ...intake.blobs, put: () => Promise.reject(new Error('killed')) };
  await intake
    .runDownloads({
      deps: {
        blobs: dying,
        store: {
          ...intake.store,
          downloads: { ...intake.store.downloads, postpone: () => Promise.reject(new Error('killed')) },
        },
      },
    })
    .catch(() => {});
  await database.query(
    `UPDATE intake.downloads SET leased_until = now() - interval '1 second' WHERE lease_token IS NOT NULL`,
  );
  await fetchAll();
  await fetchAll();
  // Erased.
  await erase(intake, {
    advertiserId: board.advertiserId,
    sought: { by: 'application', applicationId: erased },
    by: 'test',
    signal: signal(),
  });
  const moves = await database.query<{ what: string; was: string | null; is_now: string | null }>(
    `SELECT DISTINCT * FROM public.moves WHERE was IS DISTINCT FROM is_now`,
  );
  const lines = { blobs: blobLife, downloads: downloadLife } as const;
  const unknown = moves.filter(({ what, was, is_now }) => {
    const life: readonly { from: readonly (string | null)[]; to: string | null }[] =
      lines[what as 'blobs' | 'downloads'];
    return !life.some(({ from, to }) => to === is_now && from.includes(was));
  });
  expect(unknown).toEqual([]);
  expect(moves.length).toBeGreaterThan(14);
});

test('every transition names functions that exist', () => {
  for (const { by } of [...blobLife, ...downloadLife]) {
    for (const place of by) {
      const [file = '', name = ''] = place.split(' ');
      expect(readFileSync(join('src/store', file), 'utf8'), place).toContain(`export async function ${name}(`);
    }
  }
});

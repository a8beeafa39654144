// The tables of a file's life are complete: whatever happens to a blob or a download here is one of their lines.
import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { BlobStore } from '../../../src/domain/blob.ts';
import { blobLife, downloadLife } from '../../../src/domain/file-life.ts';
import { deleteDue } from '../../../src/sync/files/delete-objects.ts';
import { shareDatabase } from '../../support/database/test-database.ts';
import { eraseAt, openSmallIntake, verifyAt } from '../../support/small-intake.ts';

const database = shareDatabase();

const signal = () => AbortSignal.timeout(600_000);

/** Notes every change of state of these tables, and the statement that made it, in a table of the test. */
async function watch(): Promise<void> {
  const state = (row: string) =>
    `CASE WHEN TG_TABLE_NAME = 'blobs' THEN to_jsonb(${row})->>'state'
       WHEN to_jsonb(${row})->>'lease_token' IS NULL THEN CASE to_jsonb(${row})->>'priority' WHEN '2' THEN 'suspect' ELSE 'queued' END
       WHEN to_jsonb(${row})->>'sha256' IS NULL THEN 'claimed' ELSE 'announced' END`;
  await database.query(`CREATE TABLE public.moves (what text, was text, is_now text, statement text)`);
  await database.query(
    `CREATE FUNCTION public.note_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       INSERT INTO public.moves VALUES (TG_TABLE_NAME,
         CASE WHEN TG_OP <> 'INSERT' THEN ${state('OLD')} END, CASE WHEN TG_OP <> 'DELETE' THEN ${state('NEW')} END,
         current_query());
       RETURN NULL;
     END $$`,
  );
  for (const table of ['blobs', 'downloads']) {
    await database.query(
      `CREATE TRIGGER note_move AFTER INSERT OR UPDATE OR DELETE ON intake.${table} FOR EACH ROW EXECUTE FUNCTION public.note_move()`,
    );
  }
}

/** The lines of a table: the states before and after, and the places that make the change, as `file.ts function`. */
function parseLife(table: string) {
  return table.split(/\n(?! )/).flatMap((text) => {
    const [, from = '', to = ''] = /^([\w, ]+) > (\w+):/.exec(text) ?? [];
    if (to === '') return [];
    const toState = (name: string) => (name === 'none' ? null : name);
    const by = [...text.matchAll(/[\w-]+\/[\w-]+\.ts \w+/g)].map(([place]) => place);
    return [{ from: from.split(', ').map(toState), to: toState(to), by }];
  });
}

const lives = { blobs: parseLife(blobLife), downloads: parseLife(downloadLife) } as const;

const toLine = (text: string) => text.replace(/\s+/g, ' ').trim();

/** True if a statement in this file of src/store begins like the given one. */
function isMadeIn(file: string, statement: string): boolean {
  // New rows are written by COPY, in the transaction of their page.
  if (statement.startsWith('COPY ')) return file === 'applications/commit-page.ts';
  const source = readFileSync(join('src/store', file), 'utf8');
  return [...source.matchAll(/`([^`$]{15,})/g)].some(([, head = '']) => toLine(statement).startsWith(toLine(head)));
}

test('every change of state is a line of its table, with the file that makes it', async () => {
  await using intake = await openSmallIntake({ database });
  await watch();
  const { board } = intake;
  const advertisers = [board.advertiserId];
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
  await intake.sweep();
  await fetchAll();
  // Lost, and fetched again.
  for (const key of await intake.keys()) rmSync(join(intake.folder, 'blobs', key));
  await verifyAt(intake);
  await fetchAll();
  // Flagged, deleted, and freed.
  for (const hasVirus of [true, false]) {
    await intake.change(flagged, { attachments: [{ ...resume, hasVirus }] });
    await deleteDue(intake, signal());
    await fetchAll();
  }
  // A process that ends with files in hand.
  const [third = 0n] = await intake.receive([{ attachments: [{ kind: 'resume', content: 'three' }] }]);
  const dying: BlobStore = { ...intake.blobs, put: () => Promise.reject(new Error('killed')) };
  await intake
    .runDownloads({
      deps: {
        blobs: dying,
        store: {
          ...intake.store,
          downloads: { ...intake.store.downloads, postponeDownload: () => Promise.reject(new Error('killed')) },
        },
      },
    })
    .catch(() => {});
  const claim = (tier: 'usual' | 'suspects') =>
    intake.store.downloads.claimDownloads({ advertisers, tier, limit: 10, token: randomUUID(), leaseMs: 30_000 });
  const expire = () =>
    database.query(
      `UPDATE intake.downloads SET leased_until = now() - interval '1 second' WHERE lease_token IS NOT NULL`,
    );
  // What a person asks for: a suspect, and one whose process has ended.
  const retry = () =>
    intake.store.downloads.retryDownloads(board.advertiserId, { applicationId: null, kind: null, state: null });
  await expire();
  await claim('usual');
  await retry();
  await claim('usual');
  await expire();
  await retry();
  // Replaced while it is in hand, also as a suspect; and released as one.
  const replace = async (content: string) => {
    await intake.change(third, {
      attachments: [{ kind: 'resume', content, uploadedAt: 1_700_000_000_000 + content.length }],
    });
  };
  await claim('usual');
  await replace('three, again');
  await claim('usual');
  await expire();
  await claim('usual');
  const { claims } = await claim('suspects');
  expect(claims).not.toEqual([]);
  await intake.store.downloads.releaseDownloads(claims);
  await claim('suspects');
  await replace('three, once more');
  await expire();
  await fetchAll();
  await fetchAll();
  // Erased.
  await eraseAt(intake, { by: 'application', applicationId: erased });
  const moves = await database.query<Record<'what' | 'statement', string> & Record<'was' | 'is_now', string | null>>(
    `SELECT DISTINCT * FROM public.moves WHERE was IS DISTINCT FROM is_now`,
  );
  const unknown = moves.filter(({ what, was, is_now, statement }) => {
    const isHere = (place: string) => isMadeIn(place.split(' ')[0] ?? '', statement);
    return !lives[what as 'blobs' | 'downloads'].some(
      ({ from, to, by }) => to === is_now && from.includes(was) && by.some(isHere),
    );
  });
  expect(unknown.map((move) => ({ ...move, statement: toLine(move.statement).slice(0, 80) }))).toEqual([]);
  expect(new Set(moves.map(({ what, was, is_now }) => `${what} ${was} ${is_now}`)).size).toBeGreaterThan(17);
});

test('every transition names functions that exist', () => {
  expect([lives.blobs.length, lives.downloads.length]).toEqual([10, 9]);
  for (const { by } of [...lives.blobs, ...lives.downloads]) {
    expect(by).not.toEqual([]);
    for (const place of by) {
      const [file = '', name = ''] = place.split(' ');
      expect(readFileSync(join('src/store', file), 'utf8'), place).toContain(`export async function ${name}(`);
    }
  }
});

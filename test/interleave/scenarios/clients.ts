// What scenarios of files share: the rows that they begin with, what their clients do, and what holds afterwards.
import type { Application, AttachmentState } from '../../../src/domain/application.ts';
import { toBlobKey } from '../../../src/domain/blob.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import type { Lease } from '../../../src/store/accounts/leases.ts';
import {
  type CompletedState,
  type Completion,
  completeDownloads,
  type StoredFile,
} from '../../../src/store/files/complete-download.ts';
import { type Claim, claimDownloads } from '../../../src/store/files/download-queue.ts';
import { isConflict } from '../../../src/store/postgres/database.ts';
import type { Store } from '../../../src/store/store.ts';
import { type DeletingDeps, deleteDue, deleteUnneeded } from '../../../src/sync/files/delete-objects.ts';
import { anApplication, anAttachment, aPage, commitPage, type TestPage } from '../../support/applications.ts';
import type { Actor, Outcome, Program } from '../schedule.ts';
import type { Stage } from '../stage.ts';
import { leaseMs, openLane, privacyKey } from './lanes.ts';
import {
  type Account,
  alone,
  Busy,
  claim,
  content,
  type FilesOf,
  fetchClaimed,
  never,
  sha256,
  stopWhenBusy,
  toBlobs,
  toFiles,
} from './objects.ts';

/** A clock step that lets every claim and token lapse. */
export const lapses = [leaseMs + 1_000];

async function openFiles(stage: Stage): Promise<FilesOf> {
  return toFiles({ stage, ...(await stage.openAdvertiser()) });
}

/** Opens an account with pending, queued files of these applications. */
export async function openQueued(stage: Stage, ids: readonly number[], kinds?: readonly string[]): Promise<FilesOf> {
  const files = await openFiles(stage);
  await addFiles(files, ids, kinds);
  return files;
}

export interface Upload {
  readonly hasVirus?: boolean;
  readonly sourceHash?: string;
  /** The day of the upload. */
  readonly day?: number;
  readonly uploadedAt?: null;
  readonly sizeBytes?: number;
}

/** An application with a resume, as a page shows it. */
export function shown(id: number, { day = 1, ...facts }: Upload = {}) {
  const upload = { hasVirus: false, sizeBytes: content.length, uploadedAt: Date.UTC(2026, 0, day), ...facts };
  return anApplication(id, { attachments: [anAttachment('resume', upload)] });
}

/** Opens an account of which a page has shown these applications, with its live lane leased. */
export async function openShown(stage: Stage, ...applications: readonly Application[]) {
  const { advertiserId, name, lease } = await openLane(stage);
  return { ...(await show({ stage, advertiserId }, lease, applications)), name };
}

/** Commits a page with these applications. `read` is a client that reads one of them again. */
export async function show({ stage, advertiserId }: Account, live: Lease, applications: readonly Application[]) {
  await commitPage(stage.direct, privacyKey, aPage(live, applications, { advertiserId }));
  const read = (application: Application, sweepId = 1n, lease = live): Program =>
    commit(stage, aPage(lease, [application], { advertiserId, sweepId }));
  return { files: toFiles({ stage, advertiserId }), advertiserId, read };
}

/** Adds applications with pending, queued files. */
export async function addFiles(
  { stage, advertiserId }: Account,
  ids: readonly number[],
  kinds: readonly string[] = ['resume'],
): Promise<void> {
  await stage.query(
    `WITH a AS (INSERT INTO intake.applications (advertiser_id, application_id, content_hash, observed_seq)
       SELECT $1, id, '', 1 FROM unnest($2::bigint[]) AS id RETURNING application_id),
     f AS (INSERT INTO intake.attachments (advertiser_id, application_id, kind, state, size_bytes, uploaded_at)
       SELECT $1, application_id, kind, 'pending', $4, '2026-01-01Z' FROM a, unnest($3::text[]) AS kind RETURNING application_id, kind)
     INSERT INTO intake.downloads (advertiser_id, application_id, kind, priority) SELECT $1, application_id, kind, 0 FROM f`,
    [advertiserId, ids, kinds, content.length],
  );
}

/** Adds a stored blob with its object, and then sets these columns of its row. */
export async function addBlob(
  { stage, advertiserId, objects }: FilesOf,
  set = `verified_at = now()`,
  bytes = sha256,
): Promise<void> {
  const key = toBlobKey(advertiserId, bytes);
  objects.add(key);
  await stage.query(
    `INSERT INTO intake.blobs (advertiser_id, sha256, size_bytes, key, state, verified_at) VALUES ($1, $2, $3, $4, 'stored', now())`,
    [advertiserId, bytes, content.length, key],
  );
  await stage.query(`UPDATE intake.blobs SET ${set} WHERE advertiser_id = $1 AND sha256 = $2`, [advertiserId, bytes]);
}

/** Makes the file of this application, or of each one, a stored file with these bytes. */
export async function setStored({ stage, advertiserId }: Account, id: number | null = null, bytes = sha256) {
  await stage.query(
    `UPDATE intake.attachments SET state = 'stored', stored_at = now(), sha256 = $2
     WHERE advertiser_id = $1 AND ($3::bigint IS NULL OR application_id = $3)`,
    [advertiserId, bytes, id],
  );
}

/** Takes the files of an application out of the queue. */
export async function unqueue({ stage, advertiserId }: Account, id: number): Promise<void> {
  await stage.query(`DELETE FROM intake.downloads WHERE advertiser_id = $1 AND application_id = $2`, [
    advertiserId,
    id,
  ]);
}

/** Marks applications without pending files as ready and adds their events, as the completing transaction would have done. */
export async function makeReady({ stage, advertiserId }: Account): Promise<void> {
  await stage.query(
    `WITH ready AS (
       UPDATE intake.applications a SET ready_at = now() WHERE advertiser_id = $1 AND ready_at IS NULL AND NOT EXISTS (
         SELECT 1 FROM intake.attachments f WHERE f.advertiser_id = $1 AND f.application_id = a.application_id AND f.state = 'pending')
       RETURNING application_id)
     INSERT INTO intake.events (advertiser_id, event_id, application_id, type, at)
     SELECT $1, nextval('intake.event_seq'), application_id, 'application.ready', now() FROM ready`,
    [advertiserId],
  );
}

/** Claims all due downloads during setup, outside the schedule. */
export async function claimAll({ stage, advertiserId }: Account) {
  const { claims } = await claimDownloads(stage.direct, {
    ...{ advertisers: [advertiserId], tier: 'usual', limit: 10, token: crypto.randomUUID(), leaseMs },
  });
  const claimed = (id: number, kind?: string): Claim => {
    const found = claims.find((one) => one.applicationId === BigInt(id) && one.kind === (kind ?? one.kind));
    if (!found) throw new Error('Nothing was claimed.');
    return found;
  };
  return Object.assign(claimed, { all: claims });
}

/** A completion with these bytes. `more` overrides the other fields. */
export function toStored(bytes: string, more: Partial<StoredFile> = {}): StoredFile {
  return {
    ...{ kind: 'stored', blob: { sha256: bytes, sizeBytes: content.length } },
    ...{ contentType: null, detectedType: null, fileName: null },
    ...{ notes: [], linkedBy: null, compared: null, screens: null },
    ...more,
  };
}

export const missing: Completion = { kind: 'final', state: 'missing', reason: 'the source does not have it' };

/** Completes one download and returns its state. */
export async function completeOne(
  stage: Stage,
  actor: Actor,
  claimed: Claim,
  completion: Completion,
): Promise<CompletedState> {
  const [state = 'lost'] = await completeDownloads(stage.database(actor.name), [{ claim: claimed, completion }]);
  return state;
}

/** A client that completes claims with these bytes, or with another completion. */
export const complete =
  (stage: Stage, claimed: Claim, completion: Completion = toStored(sha256)): Program =>
  (actor) =>
    completeOne(stage, actor, claimed, completion);

export const commit =
  (stage: Stage, page: TestPage): Program =>
  (actor) =>
    commitPage(stage.database(actor.name), privacyKey, page);

/** Claims what is due and downloads it. */
export const fetch =
  (files: FilesOf): Program =>
  async (actor) =>
    fetchClaimed(files, actor, await claim(files, actor));

/** An operator asks for the waiting files again. */
export const retryWaiting =
  ({ stage, advertiserId }: Account): Program =>
  (actor) =>
    stage
      .store(actor.name)
      .downloads.retryDownloads(advertiserId, { applicationId: null, kind: null, state: 'waiting' });

/** Looks for the object as `intake verify` does, and records its loss. */
export const verify =
  ({ stage, advertiserId, objects }: FilesOf): Program =>
  async (actor) => {
    const facts = { sha256, sizeBytes: content.length };
    const condition = await toBlobs(actor, objects).verify(toBlobKey(advertiserId, sha256), facts, 'metadata', never);
    if (condition !== 'intact') await stage.store(actor.name).blobs.markDamaged(advertiserId, sha256);
  };

/** Deletes the objects that are due. */
export const deleteAll =
  (files: FilesOf): Program =>
  (actor) =>
    giveUp(deleteDue(toDeleting(files, actor, false), never));

/** Drops bytes that no file refers to, as an erasure does. */
export const drop =
  (files: FilesOf, hashes: readonly string[] = [sha256]): Program =>
  (actor) => {
    const deps = toDeleting(files, actor, false);
    return giveUp(deleteUnneeded({ ...deps, store: stopWhenBusy(deps.store) }, files.advertiserId, hashes, never));
  };

/** Drops the orphans, as verify does. */
export async function dropOrphans(store: Store, advertiserId: bigint): Promise<void> {
  await store.deletions.drop(advertiserId, await store.blobs.loadOrphans(advertiserId));
}

/** The dependencies of a client that deletes objects. */
export function toDeleting(files: FilesOf, actor: Actor, isLate: boolean): DeletingDeps & { readonly store: Store } {
  const { stage, objects } = files;
  const now = () => performance.now() + (isLate ? 0 : stage.gate.clockMs);
  return {
    store: toPausing(stage.store(actor.name), actor),
    blobs: toBlobs(actor, objects, isLate ? undefined : now),
    now,
  };
}

/** Adds a step after each `begin...` call, so that the process can also stall between getting its token and using it. */
function toPausing(store: Store, actor: Actor): Store {
  const pause = async <T>(answer: Promise<T>): Promise<T> => {
    const value = await answer;
    await actor.act('has its token', () => {});
    return value;
  };
  return {
    ...store,
    deletions: {
      ...store.deletions,
      beginDueDeletes: (...of) => pause(store.deletions.beginDueDeletes(...of)),
    },
  };
}

/** Ignores that a run was too slow, or found another one at work: the next run deletes. Conflicts without a retry are still errors. */
export async function giveUp(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof Busy || error instanceof Trouble) || isConflict(error)) throw error;
  });
}

/** Deletes as the next run would, after the tokens of dead runs have lapsed. */
export async function deleteLater({ stage, advertiserId, objects }: FilesOf): Promise<void> {
  await stage.query(`UPDATE intake.blobs SET delete_until = NULL WHERE advertiser_id = $1`, [advertiserId]);
  await deleteDue({ store: stage.directStore, blobs: toBlobs(alone, objects) }, never);
}

/** A check of several things. */
export const checks =
  <T extends Account>(of: T, ...all: readonly ((of: T) => Promise<void>)[]) =>
  async (): Promise<void> => {
    for (const check of all) await check(of);
  };

export async function loadFiles({ stage, advertiserId }: Account) {
  return await stage.query<{ application_id: string; kind: string; state: AttachmentState; sha256: string | null }>(
    `SELECT application_id, kind, state, sha256 FROM intake.attachments WHERE advertiser_id = $1 ORDER BY application_id, kind`,
    [advertiserId],
  );
}

/** Checks that no file is called stored, where every file has flagged bytes (P8). */
export async function checkNoneStored(account: Account): Promise<void> {
  const files = await loadFiles(account);
  if (files.some(({ state }) => state === 'stored')) throw new Error('P8: flagged bytes are called stored.');
}

/** Checks that every stored file has a stored blob and an object (P6). */
export async function checkObjects({ stage, advertiserId, objects }: FilesOf): Promise<void> {
  const rows = await stage.query<{ kind: string; application_id: string; state: string; key: string; blob: string }>(
    `SELECT a.application_id, a.kind, a.state, b.key, b.state AS blob
     FROM intake.attachments a LEFT JOIN intake.blobs b USING (advertiser_id, sha256) WHERE a.advertiser_id = $1`,
    [advertiserId],
  );
  for (const { application_id: id, kind, state, key, blob } of rows) {
    if (state !== 'stored') continue;
    if (blob !== 'stored')
      throw new Error(`P6: ${kind} of ${id} is called stored, and its blob is ${blob ?? 'not there'}.`);
    if (!objects.has(key)) throw new Error(`P6: ${kind} of ${id} is called stored, and its object is not there.`);
  }
}

/** Checks that every stored file and every stored earlier version has a stored blob. */
export async function checkStored({ stage, advertiserId }: Account): Promise<void> {
  const rows = await stage.query<{ what: string; blob: string }>(
    `SELECT f.what, b.state AS blob FROM (
       SELECT 'a file' AS what, sha256 FROM intake.attachments WHERE advertiser_id = $1 AND state = 'stored'
       UNION ALL SELECT 'an earlier version', sha256 FROM intake.attachment_versions WHERE advertiser_id = $1 AND state = 'stored'
     ) AS f LEFT JOIN intake.blobs b ON b.advertiser_id = $1 AND b.sha256 = f.sha256 WHERE b.state IS DISTINCT FROM 'stored'`,
    [advertiserId],
  );
  const [wrong] = rows;
  if (wrong)
    throw new Error(
      `${wrong.blob === 'infected' ? 'P8' : 'P6'}: ${wrong.what} is called stored, and its blob is ${wrong.blob}.`,
    );
}

/** Checks that the last event of each application agrees with its state (P26). */
export async function checkEvents({ stage, advertiserId }: Account): Promise<void> {
  const rows = await stage.query<{
    application_id: string;
    last: string | null;
    ready: boolean;
    missing: boolean;
    erased: boolean;
  }>(
    `SELECT a.application_id, a.ready_at IS NOT NULL AS ready, a.missing_since IS NOT NULL AS missing, a.erased_at IS NOT NULL AS erased,
       e.type AS last
     FROM intake.applications a LEFT JOIN LATERAL (
       SELECT type FROM intake.events e WHERE e.advertiser_id = $1 AND e.application_id = a.application_id
       ORDER BY event_id DESC LIMIT 1) AS e ON true WHERE a.advertiser_id = $1`,
    [advertiserId],
  );
  for (const { application_id: id, last, ready, missing, erased } of rows) {
    const state = erased ? 'erased' : missing ? 'missing' : ready ? 'ready' : 'pending';
    const isTold = {
      erased: last === 'application.erased',
      missing: last === 'application.missing',
      ready: last === 'application.ready' || last === 'application.changed',
      pending: true,
    }[state];
    if (!isTold) throw new Error(`P26: the last event of ${id} is ${last}, and it is ${state}.`);
  }
}

/** Checks that an application is ready exactly when no attachment is pending, and that exactly the pending files are queued (P4). */
export async function checkQueue({ stage, advertiserId }: Account): Promise<void> {
  const rows = await stage.query<{ wrong: string }>(
    `SELECT format('application %s is %s', a.application_id, CASE WHEN ready_at IS NULL THEN 'not ready' ELSE 'ready' END) AS wrong
     FROM intake.applications a WHERE a.advertiser_id = $1 AND a.erased_at IS NULL AND (a.ready_at IS NULL) <> EXISTS (
       SELECT 1 FROM intake.attachments f WHERE f.advertiser_id = $1 AND f.application_id = a.application_id AND f.state = 'pending')
     UNION ALL
     SELECT format('%s of %s is %s and %s', f.kind, f.application_id, f.state, CASE WHEN d.kind IS NULL THEN 'not queued' ELSE 'queued' END)
     FROM intake.attachments f LEFT JOIN intake.downloads d USING (advertiser_id, application_id, kind)
     WHERE f.advertiser_id = $1 AND (f.state = 'pending') <> (d.kind IS NOT NULL)`,
    [advertiserId],
  );
  if (rows[0]) throw new Error(`P4: ${rows[0].wrong}.`);
}

export function failOnWaiting({ lines }: Outcome, text: RegExp, what: string): void {
  const waiting = lines.find((line) => line.waited && text.test(line.text));
  if (waiting) throw new Error(`${waiting.client} waits with ${what}.`);
}

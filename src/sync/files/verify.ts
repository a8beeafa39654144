// Verify compares rows with stored objects in both directions, and reads bytes again. Lost files are queued for download; orphaned objects
// are deleted after a day. A finding counts only when a second look confirms it, because rows and objects change while they are compared.
import { type BlobStore, type ListedBlob, toBlobKey, toSha256 } from '../../domain/blob.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { nightMs, toNightBudget } from '../../domain/reread.ts';
import { Trouble, WrongStore } from '../../domain/trouble.ts';
import type { BlobRow } from '../../store/files/verify-blobs.ts';
import type { Store } from '../../store/store.ts';
import { deleteDue } from './delete-objects.ts';

export interface VerifyDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions'>;
  readonly blobs: BlobStore;
  readonly onStep?: ((summary: VerifySummary) => void) | undefined;
  readonly crashPoint?: PassCrashPoint | undefined;
}

export interface VerifyRequest {
  readonly advertisers: readonly bigint[];
  /** How much is read again: a share (0 to 1) of the bytes, or one night's part so that all are read within `withinMs`. */
  readonly amount: { readonly share: number } | { readonly withinMs: number };
  /** An operator has confirmed that orphans are deleted however many there are. */
  readonly mayDeleteManyOrphans?: boolean | undefined;
  readonly parallel?: number;
  readonly signal: AbortSignal;
}

const nothingFound = {
  blobs: 0,
  read: 0,
  readBytes: 0,
  missing: 0,
  damaged: 0,
  /** Blobs that an earlier run found missing or damaged, and whose files have not been fetched again since. */
  unrepaired: 0,
  /** Attachments that are queued for download again. */
  requeued: 0,
  /** Earlier versions of files and resumes of prefills, which cannot be downloaded again. */
  lost: 0,
  /** Objects without a row. */
  extra: 0,
  /** Objects whose key Intake did not create; they are left alone. */
  foreign: 0,
  orphans: 0,
  collected: 0,
  /** There were implausibly many orphans, so none was deleted. */
  braked: false,
};

type VerifyCounts = typeof nothingFound;
export type VerifySummary = Readonly<VerifyCounts>;

interface Step extends VerifyDeps, VerifyRequest {
  readonly advertiserId: bigint;
  readonly counts: VerifyCounts;
  /** Notes the trouble of a single object, or of a step that failed. The others are done all the same. Any other error is thrown. */
  readonly note: (error: unknown) => void;
}

/** The first trouble is thrown at the end. */
export async function verify(deps: VerifyDeps, request: VerifyRequest): Promise<VerifySummary> {
  const counts = { ...nothingFound };
  const troubles: Trouble[] = [];
  const note = (error: unknown) => {
    request.signal.throwIfAborted();
    if (!(error instanceof Trouble) || error instanceof WrongStore || error.at === 'database') throw error;
    troubles.push(error);
  };
  for (const advertiserId of request.advertisers) {
    counts.unrepaired += await deps.store.blobs.loadUnrepaired(advertiserId);
    const step = { ...deps, ...request, advertiserId, counts, note };
    await checkEach(step, pairUp(step), ({ row, found }) => compareOne(step, row, found)).catch(note);
    await readAgain(step).catch(note);
    await collect(step).catch(note);
    await dropEarlierResumes(step).catch(note);
  }
  const onDeleted = () => deps.crashPoint?.('orphansDeleted');
  if (await deleteDue({ ...deps, onDeleted }, request.signal).catch(note)) deps.crashPoint?.('orphansCollected');
  if (troubles[0]) throw troubles[0];
  return counts;
}

/** Each row with its object: both are ordered by key. Objects without a row are counted on the way. */
async function* pairUp(step: Step): AsyncGenerator<{ readonly row: BlobRow; readonly found: ListedBlob | null }> {
  const { store, blobs, advertiserId, signal } = step;
  const objects = blobs.list(`${advertiserId}/`, signal)[Symbol.asyncIterator]();
  let object = await objects.next();
  for await (const row of store.blobs.loadBlobs(advertiserId)) {
    // Not its own, which may be that of an earlier resume.
    const key = toBlobKey(advertiserId, row.sha256);
    for (; !object.done && object.value.key < key; object = await objects.next()) await countExtra(step, object.value);
    const found = !object.done && object.value.key === key ? object.value : null;
    if (found) object = await objects.next();
    yield { row, found };
  }
  for (; !object.done; object = await objects.next()) await countExtra(step, object.value);
}

async function compareOne(step: Step, row: BlobRow, found: ListedBlob | null): Promise<void> {
  const { store, blobs, advertiserId, signal, counts } = step;
  counts.blobs += 1;
  if (row.keptVersions > 0 || (found && row.state !== 'stored'))
    await store.blobs.markUndeleted(advertiserId, row.sha256);
  if (row.state !== 'stored' || found?.sizeBytes === row.sizeBytes) return;
  const condition = await blobs.verify(row.key, row, 'metadata', signal);
  if (condition !== 'intact') await recordDamage(step, row, condition);
}

/** Reads stored bytes again, longest unread first, up to the budget. Objects that cannot be read come first every night, and spend none. */
async function readAgain(step: Step): Promise<void> {
  const { store, blobs, advertiserId, signal, counts } = step;
  await store.blobs.resetFutureTimes(advertiserId);
  let left = await loadBudget(step);
  const toCost = ({ sizeBytes }: BlobRow) => Math.max(1, sizeBytes);
  const rows = store.blobs.loadLongestUnread(advertiserId);
  let isEnd = false;
  async function* untilSpent(): AsyncGenerator<BlobRow> {
    while (left > 0) {
      const { value: row, done } = await rows.next();
      isEnd = done === true;
      if (done) return;
      left -= toCost(row);
      yield row;
    }
  }
  const look = (row: BlobRow) => blobs.verify(row.key, row, 'bytes', signal);
  const check = async (row: BlobRow) => {
    // The second look decides: a store may answer wrongly once, and an earlier version that is called lost stays so.
    const condition = await look(row)
      .then((first) => (first === 'intact' ? first : look(row)))
      .catch((error: unknown) => {
        left += toCost(row);
        throw error;
      });
    if (condition !== 'missing') {
      counts.read += 1;
      counts.readBytes += row.sizeBytes;
    }
    if (condition === 'intact') await store.blobs.markVerified(advertiserId, row.sha256);
    else await recordDamage(step, row, condition);
  };
  // What could not be read may have been the last of the budget: then others are read instead.
  while (left > 0 && !isEnd) await checkEach(step, untilSpent(), check);
}

async function loadBudget({ store, amount, advertiserId }: Step): Promise<number> {
  if ('withinMs' in amount)
    return toNightBudget(await store.blobs.loadBytesByNights(advertiserId, amount.withinMs), amount.withinMs);
  const all = await store.blobs.loadBytesByNights(advertiserId, nightMs);
  return amount.share * all.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function recordDamage({ store, advertiserId, counts }: Step, { sha256 }: BlobRow, condition: Damage) {
  const damage = await store.blobs.markDamaged(advertiserId, sha256);
  if (damage === null) return;
  counts[condition] += 1;
  counts.requeued += damage.requeued;
  counts.lost += damage.lost;
}

/** Checks several at once; one that cannot be checked costs no other. Ends if the blob store does not show its identity either. */
async function checkEach<T>(
  { blobs, parallel = 8, signal, note, counts, onStep }: Step,
  items: AsyncGenerator<T>,
  check: (item: T) => Promise<void>,
): Promise<void> {
  // An error that leaves the loop ends the items, and with them the other loops.
  const work = async () => {
    for await (const item of items) {
      signal.throwIfAborted();
      await check(item).catch(async (error: unknown) => {
        note(error);
        await blobs.loadIdentity(signal);
      });
      onStep?.(counts);
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: parallel }, work));
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
}

type Damage = 'missing' | 'damaged';

/** An object without a row is adopted as an orphan, or left alone if Intake did not create its key. */
async function countExtra({ store, advertiserId, counts, onStep }: Step, { key, sizeBytes }: ListedBlob) {
  const sha256 = toSha256(key);
  if (sha256 === null) counts.foreign += 1;
  else if (await store.blobs.adoptBlob(advertiserId, { sha256, sizeBytes })) counts.extra += 1;
  onStep?.(counts);
}

/** More orphans than both limits suggest a mistake, such as an older database restored beside a newer bucket. */
const fewOrphans = 20;
const orphanShare = 0.02;

async function collect(step: Step): Promise<void> {
  const { store, crashPoint, mayDeleteManyOrphans = false, advertiserId, counts } = step;
  const { orphans, blobs } = await store.blobs.countOrphans(advertiserId);
  counts.orphans += orphans;
  if (!mayDeleteManyOrphans && orphans > Math.max(fewOrphans, orphanShare * blobs)) {
    counts.braked = true;
    return;
  }
  for (;;) {
    const found = await store.blobs.loadOrphans(advertiserId);
    if (found.length === 0) break;
    counts.collected += found.length - (await store.deletions.drop(advertiserId, found));
  }
  crashPoint?.('orphansMarked');
}

/** Where earlier releases kept the resumes of prefills, to which no row refers (docs/upgrade.md). Each gets one, as bytes to be deleted. */
const earlierResume = /^prefills\/\d+\/[\da-f-]{36}$/;

async function dropEarlierResumes({ store, blobs, advertiserId, signal, counts }: Step): Promise<void> {
  for await (const { key } of blobs.list(`prefills/${advertiserId}/`, signal)) {
    if (!earlierResume.test(key)) counts.foreign += 1;
    else counts.collected += await store.deletions.dropEarlierResume(advertiserId, key);
  }
}

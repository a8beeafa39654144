// Verify: the rows against the objects, in both directions, and as many bytes as asked for against their sha256, those first that were
// read longest ago. What is lost is queued again; what nobody refers to is marked, and deleted after a grace. A finding counts only when
// a second look confirms it, since both sides move while they are compared.
import { type BlobStore, type ListedBlob, toBlobFolder, toSha256 } from '../../domain/blob.ts';
import type { PassCrashPoint } from '../../domain/crash-point.ts';
import { parseResumeKey, resumeFolder, toResumeKey } from '../../domain/prefill.ts';
import { nightMs, toNightBudget } from '../../domain/reread.ts';
import { Trouble } from '../../domain/trouble.ts';
import type { BlobRow } from '../../store/files/verify-blobs.ts';
import type { Store } from '../../store/store.ts';
import { deleteInfected, deleteOrphans } from './delete-objects.ts';

export interface VerifyDeps {
  readonly store: Pick<Store, 'blobs' | 'deletions' | 'prefills'>;
  readonly blobs: BlobStore;
  readonly onStep?: ((summary: VerifySummary) => void) | undefined;
  /** For tests that end the process at named moments. */
  readonly crashPoint?: PassCrashPoint | undefined;
}

/**
 * How many bytes are read and hashed, those first that were read longest ago: a share of them, 0 to 1; or as many as one night has to
 * read so that none stays unread for longer than that.
 */
export type ReadAmount = { readonly share: number } | { readonly withinMs: number };

export interface VerifyRequest {
  readonly advertisers: readonly bigint[];
  readonly amount: ReadAmount;
  /** How long bytes that nothing refers to are kept. */
  readonly graceMs: number;
  /** A person said so: however many orphans there are, they are deleted. */
  readonly released?: boolean | undefined;
  /** Objects asked for at once; 8 where nobody says. */
  readonly parallel?: number;
  readonly signal: AbortSignal;
}

export interface VerifySummary {
  readonly blobs: number;
  /** Of these the bytes were read. */
  readonly read: number;
  readonly readBytes: number;
  readonly missing: number;
  readonly damaged: number;
  /** Blobs that were found missing or damaged earlier, and whose files were not fetched again since. */
  readonly unrepaired: number;
  /** Attachments that are fetched again, and earlier versions that cannot be. */
  readonly requeued: number;
  readonly lost: number;
  /** Objects without a row. */
  readonly extra: number;
  /** Objects with a name that is not ours; left alone. */
  readonly foreign: number;
  readonly orphans: number;
  readonly collected: number;
  /** Too many orphans at once to be believed: none was deleted. */
  readonly braked: boolean;
}

type VerifyCounts = { -readonly [Name in keyof VerifySummary]: VerifySummary[Name] };

/** Announced so recently that the bytes may be under way. */
const quietMs = 3_600_000;

/** After so many failures in a row the store may be away. */
const mostFailures = 8;

/** Compares everything, repairs what can be, and says what was found. */
export async function verify(deps: VerifyDeps, request: VerifyRequest): Promise<VerifySummary> {
  const counts: VerifyCounts = {
    blobs: 0,
    read: 0,
    readBytes: 0,
    missing: 0,
    damaged: 0,
    unrepaired: 0,
    requeued: 0,
    lost: 0,
    extra: 0,
    foreign: 0,
    orphans: 0,
    collected: 0,
    braked: false,
  };
  const troubles: Trouble[] = [];
  const onward = async (work: Promise<void>) => {
    await work.catch((error: unknown) => {
      request.signal.throwIfAborted();
      if (!(error instanceof Trouble) || error.at === 'database') throw error;
      troubles.push(error);
    });
  };
  for (const advertiserId of request.advertisers) {
    counts.unrepaired += await deps.store.blobs.loadUnrepaired(advertiserId);
    await onward(compare(deps, request, advertiserId, counts));
    await onward(readAgain(deps, request, advertiserId, counts));
    await onward(collect(deps, request, advertiserId, counts));
  }
  await onward(collectResumes(deps, request, counts));
  await onward(deleteInfected(deps, request.signal).then(() => {}));
  if (troubles[0]) throw troubles[0];
  return counts;
}

/** Walks rows and objects side by side; both come in the order of their keys. An object that cannot be looked at is thrown last. */
async function compare(
  deps: VerifyDeps,
  request: VerifyRequest,
  advertiserId: bigint,
  counts: VerifyCounts,
): Promise<void> {
  const { store, blobs } = deps;
  const onStep = () => deps.onStep?.(counts);
  const objects = blobs.list(toBlobFolder(advertiserId), request.signal)[Symbol.asyncIterator]();
  const questions = createQuestions(request, onStep, async () => true);
  let object = await objects.next();
  try {
    for await (const row of store.blobs.load(advertiserId)) {
      request.signal.throwIfAborted();
      while (!object.done && object.value.key < row.key) {
        await countExtra(store, advertiserId, object.value, counts);
        onStep();
        object = await objects.next();
      }
      const found = !object.done && object.value.key === row.key ? object.value : null;
      if (found) object = await objects.next();
      await questions.ask(() => compareOne(deps, request.signal, advertiserId, row, found, counts));
    }
  } finally {
    await questions.untilAnswered();
  }
  for (; !object.done; object = await objects.next()) {
    await countExtra(store, advertiserId, object.value, counts);
    onStep();
  }
  questions.throwTrouble();
}

async function compareOne(
  { store, blobs }: VerifyDeps,
  signal: AbortSignal,
  advertiserId: bigint,
  row: BlobRow,
  found: ListedBlob | null,
  counts: VerifyCounts,
): Promise<void> {
  counts.blobs += 1;
  if (row.state === 'infected' && found) await store.blobs.markUndeleted(advertiserId, row.sha256);
  if (row.state !== 'stored' || found?.sizeBytes === row.sizeBytes) return;
  const condition = await blobs.verify(row.key, row, 'record', signal);
  if (condition !== 'intact') await recordDamage(store, advertiserId, row, condition, counts);
}

/**
 * Reads stored bytes again, those first that were read longest ago, and stops when the budget is spent. What was read stays recorded, however
 * it ends. Objects that cannot be read come first every night: they spend no budget, and do not end the night while others can be read.
 */
async function readAgain(
  deps: VerifyDeps,
  request: VerifyRequest,
  advertiserId: bigint,
  counts: VerifyCounts,
): Promise<void> {
  const { store, blobs } = deps;
  const { amount, signal } = request;
  let left = await loadBudget(store, amount, advertiserId);
  let verified: BlobRow[] = [];
  const record = async () => {
    const some = verified;
    verified = [];
    if (some.length === 0) return;
    await store.blobs.markVerified(
      advertiserId,
      some.map((row) => row.sha256),
    );
  };
  const isAway = async () => {
    const row = await store.blobs.loadLastRead(advertiserId);
    if (row === null) return true;
    return await blobs.verify(row.key, row, 'bytes', signal).then(
      () => false,
      () => true,
    );
  };
  const questions = createQuestions(request, () => deps.onStep?.(counts), isAway);
  try {
    for await (const row of left > 0 ? store.blobs.loadLongestUnread(advertiserId) : []) {
      signal.throwIfAborted();
      const bytes = Math.max(1, row.sizeBytes);
      left -= bytes;
      await questions.ask(async () => {
        const condition = await blobs.verify(row.key, row, 'bytes', signal).catch((error: unknown) => {
          left += bytes;
          throw error;
        });
        if (condition !== 'missing') {
          counts.read += 1;
          counts.readBytes += row.sizeBytes;
        }
        if (condition === 'intact') verified.push(row);
        else await recordDamage(store, advertiserId, row, condition, counts);
      });
      if (left <= 0) await questions.untilAnswered();
      if (left <= 0) break;
      if (verified.length >= recordedRows || sumBytes(verified) >= recordedBytes) await record();
    }
  } finally {
    await questions.untilAnswered();
    await record();
  }
  questions.throwTrouble();
}

/** What was read is recorded after so many files or bytes: a process that is killed reads as much again at most. */
const recordedRows = 100;
const recordedBytes = 64_000_000;

function sumBytes(rows: readonly BlobRow[]): number {
  return rows.reduce((sum, row) => sum + row.sizeBytes, 0);
}

async function loadBudget(store: Pick<Store, 'blobs'>, amount: ReadAmount, advertiserId: bigint): Promise<number> {
  if ('withinMs' in amount) {
    return toNightBudget(await store.blobs.loadUnread(advertiserId, amount.withinMs), amount.withinMs);
  }
  const unread = await store.blobs.loadUnread(advertiserId, nightMs);
  return amount.share * unread.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function recordDamage(
  store: Pick<Store, 'blobs'>,
  advertiserId: bigint,
  { sha256 }: BlobRow,
  condition: 'missing' | 'damaged',
  counts: VerifyCounts,
): Promise<void> {
  const damage = await store.blobs.markDamaged(advertiserId, sha256);
  if (damage === null) return;
  counts[condition] += 1;
  counts.requeued += damage.requeued;
  counts.lost += damage.lost;
}

/** Asks for several objects at once. One that cannot be looked at costs only itself; after many in a row `isAway` tells whether the store is away. */
function createQuestions({ parallel = 8 }: VerifyRequest, onStep: () => void, isAway: () => Promise<boolean>) {
  const asking = new Set<Promise<void>>();
  let trouble: Trouble | undefined;
  let failures = 0;
  /** What ends the walk. Several are asked at once, so it is met by the next one. */
  let fatal: { readonly error: unknown } | undefined;
  const run = async (question: () => Promise<void>) => {
    try {
      await question();
      failures = 0;
    } catch (error) {
      const isOwn = error instanceof Trouble && error.at !== 'database';
      if (isOwn && (++failures < mostFailures || !(await isAway()))) {
        trouble ??= error;
        if (failures >= mostFailures) failures = 0;
      } else fatal ??= { error };
    }
    onStep();
  };
  return {
    /** Waits for a free place. Throws what ends the walk. */
    async ask(question: () => Promise<void>): Promise<void> {
      const asked = run(question).finally(() => asking.delete(asked));
      asking.add(asked);
      if (asking.size >= parallel) await Promise.race(asking);
      if (fatal) throw fatal.error;
    },
    /** Waits for all of them: they use what the caller closes. */
    untilAnswered: () => Promise.all(asking),
    /** Throws the first trouble, if there was any. */
    throwTrouble(): void {
      if (fatal) throw fatal.error;
      if (trouble) throw trouble;
    },
  };
}

/** An object without a row: adopted as an orphan, or left alone where its name is not ours. */
async function countExtra(
  store: Pick<Store, 'blobs'>,
  advertiserId: bigint,
  { key, sizeBytes }: ListedBlob,
  counts: VerifyCounts,
) {
  const sha256 = toSha256(key);
  if (sha256 === null) {
    counts.foreign += 1;
    return;
  }
  if (await store.blobs.adopt(advertiserId, { sha256, sizeBytes })) counts.extra += 1;
}

/** More orphans than a few, or than a fiftieth, do not come about by themselves: an older database beside a newer bucket, say. */
const fewOrphans = 20;
const orphanShare = 0.02;

async function collect(
  { store, blobs, crashPoint }: VerifyDeps,
  { graceMs, released = false, signal }: VerifyRequest,
  advertiserId: bigint,
  counts: VerifyCounts,
): Promise<void> {
  const marked = await store.blobs.markOrphans(advertiserId, Math.min(quietMs, graceMs));
  crashPoint?.('orphansMarked');
  counts.orphans += marked.orphans;
  if (!released && marked.orphans > Math.max(fewOrphans, orphanShare * marked.blobs)) {
    counts.braked = true;
    return;
  }
  const onDeleted = () => crashPoint?.('orphansDeleted');
  const collected = await deleteOrphans({ store, blobs, onDeleted }, { advertiserId, graceMs, signal });
  if (collected > 0) crashPoint?.('orphansCollected');
  counts.collected += collected;
}

/**
 * Deletes resumes of prefills that no row claims: a put that ended after its person was erased, say. Their row is written before their bytes,
 * so what has lain there for the grace without one is nobody's. Looks at all accounts: one that was given up has no other visitor.
 */
async function collectResumes(
  { store, blobs, onStep }: VerifyDeps,
  request: VerifyRequest,
  counts: VerifyCounts,
): Promise<void> {
  const { graceMs, released = false, signal } = request;
  const oldest = Date.now() - graceMs;
  const unclaimed: string[] = [];
  let listed = 0;
  let some: NonNullable<ReturnType<typeof parseResumeKey>>[] = [];
  const look = async () => {
    const found = await store.prefills.findUnclaimedResumes(some);
    unclaimed.push(...found.map((key) => toResumeKey(key.advertiserId, key.prefillId)));
    some = [];
    onStep?.(counts);
  };
  for await (const { key, modifiedAt } of blobs.list(resumeFolder, signal)) {
    listed += 1;
    const parsed = parseResumeKey(key);
    if (parsed === null) counts.foreign += 1;
    else if (modifiedAt.getTime() <= oldest) some.push(parsed);
    if (some.length >= 500) await look();
  }
  if (some.length > 0) await look();
  counts.orphans += unclaimed.length;
  if (!released && unclaimed.length > Math.max(fewOrphans, orphanShare * listed)) {
    counts.braked = true;
    return;
  }
  if (unclaimed.length === 0) return;
  const { refused } = await blobs.delete(unclaimed, signal);
  counts.collected += unclaimed.length - refused.length;
  if (refused[0]) throw refused[0].trouble;
}

// The checks of `intake doctor` and of a worker's readiness: whether the database, the storage and the source can be used, and what earlier
// sweeps learned about the source. A check returns findings. It sends one harmless request to a source and leaves nothing in the storage.
import { hash, randomBytes, randomUUID } from 'node:crypto';
import { type BlobStore, type Deleted, hasRoom } from '../../domain/blob.ts';
import { assumptions } from '../../domain/coverage/certificate.ts';
import type { KnownPages } from '../../domain/coverage/state.ts';
import { describeSchema, isUsable, toEncodingTrouble, toSchemaTrouble } from '../../domain/schema.ts';
import { parseIdentity } from '../../domain/store-owner.ts';
import { SettingTrouble, Trouble, WrongStore } from '../../domain/trouble.ts';
import type { Source } from '../../source/client.ts';
import type { KnownAdvertiser } from '../../store/accounts/advertisers.ts';
import type { Store } from '../../store/store.ts';
import { loadOwner } from '../files/store-owner.ts';
import { requireKey } from '../privacy/erase.ts';
import type { WorkerFacts } from './worker.ts';

/** The result of one check. `trouble` is the cause of a failure; the exit code depends on it. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly trouble?: unknown;
}

const good = (check: string, detail: string): Finding => ({ check, ok: true, detail });
const bad = (check: string, detail: string, trouble?: unknown): Finding => ({ check, ok: false, detail, trouble });
const failed = (check: string, trouble: unknown): Finding => bad(check, toWords(trouble), trouble);

/** Checks that the database is reachable, has this version's schema, and that its clock agrees with this machine's. */
export async function checkDatabase(store: Pick<Store, 'schema'>, now: () => number): Promise<Finding[]> {
  const askedAt = now();
  try {
    const server = await store.schema.loadServer();
    const encoding = toEncodingTrouble(server.encoding);
    const skewMs = Math.abs(server.now.getTime() - (askedAt + now()) / 2);
    const skew = `${Math.round(skewMs)} ms from the database's`;
    return [
      good('database', `Postgres ${server.version}, answers in ${Math.round(now() - askedAt)} ms`),
      ...(server.readOnly ? [readOnly] : []),
      ...(encoding === null ? [] : [failed('encoding', encoding)]),
      toSchemaFinding(server),
      skewMs < 60_000 ? good('clock', skew) : bad('clock', `${skew}; times in logs are wrong: set the clock`),
    ];
  } catch (trouble) {
    return [failed('database', trouble)];
  }
}

const readOnly = bad(
  'writing',
  'the database is read-only (a standby, or default_transaction_read_only): nothing can be stored',
  new Trouble('local', 'The database is read-only.', { at: 'database' }),
);

function toSchemaFinding({ schema, mayCreate }: Awaited<ReturnType<Store['schema']['loadServer']>>): Finding {
  const isAbsent = schema.state === 'absent';
  if (isUsable(schema) || (isAbsent && mayCreate)) return good('schema', describeSchema(schema));
  const forbidden = 'absent, and this role may not create it: run intake migrate as the role that will own it';
  return bad('schema', isAbsent ? forbidden : describeSchema(schema), toSchemaTrouble(schema));
}

// The store is null where the database is empty or unavailable.

/** Checks that the storage belongs to this database or to none, and that put, get and delete work. Leaves nothing in it. */
export async function checkBlobs(
  store: Pick<Store, 'blobStore'> | null,
  open: () => Promise<BlobStore>,
  signal: AbortSignal,
): Promise<Finding[]> {
  const check = 'storage';
  try {
    await using blobs = await open();
    const { owner, refusal } = store
      ? await loadOwner({ store, blobs }, signal)
      : { owner: parseIdentity(await blobs.loadIdentity(signal)), refusal: null };
    if (refusal !== null) return [failed(check, refusal)];
    if (store === null && owner !== null) {
      const belongs = `${blobs.location} belongs to the database ${owner.databaseId} (epoch ${owner.epoch}).`;
      const what = `${belongs} Whether that is this one cannot be read: nothing was tried.`;
      return [failed(check, new WrongStore('local', what, { at: 'storage' }))];
    }
    const startedAt = performance.now();
    const keptVersions = await probe(blobs, signal);
    const whose = owner === null ? '' : `; owned by the database ${owner.databaseId}, epoch ${owner.epoch}`;
    const took = `${blobs.location}: put, get and delete in ${Math.round(performance.now() - startedAt)} ms${whose}`;
    const full = `${took}; the disk is nearly full, so no file is fetched: make room on it`;
    const room = hasRoom(await blobs.freeBytes(), 0) ? good(check, took) : bad(check, full);
    return [room, ...toPolicyFindings(await blobs.loadDeletePolicy(signal), keptVersions)];
  } catch (trouble) {
    signal.throwIfAborted();
    // The storage answers, but the bucket does not exist or access is denied. A worker waits for a fix; a check reports a wrong setting.
    const isRefusal = trouble instanceof Trouble && [301, 401, 403, 404].includes(trouble.status ?? 0);
    return [failed(check, isRefusal ? new SettingTrouble(trouble.message, trouble, 'storage') : trouble)];
  }
}

/** Whether the storage keeps deleted objects, which would prevent erasure. No finding if it keeps none. */
function toPolicyFindings({ versions, locks }: { versions: boolean; locks: boolean }, keptVersions: number): Finding[] {
  const check = 'erasure';
  if (locks || keptVersions > 0) {
    const detail = locks
      ? 'the bucket has object lock: locked objects cannot be erased until the lock expires. Use a bucket without it'
      : 'the bucket keeps versions and does not let Intake delete them, so erased files stay in it: allow s3:ListBucketVersions and s3:DeleteObjectVersion';
    return [bad(check, detail, new SettingTrouble(`BLOBS_URL: ${detail}.`, undefined, 'storage'))];
  }
  return versions ? [good(check, 'the bucket keeps versions; Intake deletes them with their files')] : [];
}

/** Puts an object and deletes it. Returns how many versions the storage keeps. */
async function probe(blobs: BlobStore, signal: AbortSignal): Promise<number> {
  const bytes = randomBytes(64);
  const facts = { sizeBytes: bytes.length, sha256: hash('sha256', bytes) };
  // The key has no slash: on disk, its folder would stay behind.
  const key = `doctor-${randomUUID()}`;
  let deleted: Deleted;
  try {
    await blobs.put(key, bytes, facts, signal);
    const got = Buffer.concat(await Array.fromAsync(blobs.get(key, signal)));
    if (!got.equals(bytes)) throw new Trouble('local', 'The storage returned other bytes than were stored.');
  } finally {
    deleted = await blobs.delete(key, signal);
  }
  if (deleted.refusal) throw deleted.refusal;
  if ((await blobs.verify(key, facts, 'metadata', signal)) === 'missing') return deleted.keptVersions;
  throw new Trouble('local', 'The storage still holds an object that was deleted: nothing could be erased.');
}

/** Whether the worker can read its accounts and store files; null before its work has begun. */
export function checkWork(work: WorkerFacts | null): Finding[] {
  if (work === null) return [bad('progress', 'work has not begun: waiting for the database')];
  const { accounts, troubled, trouble, filesTrouble } = work;
  const read = `${accounts - troubled} of ${accounts} advertisers can be read${trouble ? `; ${trouble.message}` : ''}`;
  return [
    troubled < accounts ? good('progress', read) : bad('progress', read, trouble),
    filesTrouble === null ? good('files', 'can be stored') : bad('files', filesTrouble.message, filesTrouble),
  ];
}

/** Checks that PRIVACY_KEY is the key with which this database was filled. */
export async function checkKey(store: Pick<Store, 'privacy'> | null): Promise<Finding> {
  const check = 'PRIVACY_KEY';
  try {
    const isUsed = store !== null && (await requireKey(store));
    return good(check, isUsed ? 'matches this database' : 'not used in this database yet');
  } catch (trouble) {
    // The message begins with the name, as the finding does.
    const finding = failed(check, trouble);
    return { ...finding, detail: finding.detail.replace(`${check} `, '') };
  }
}

/** Checks one account: its halt, its credential, whose data the source returns, and what earlier sweeps learned about the source. */
export async function checkSource(
  store: Pick<Store, 'advertisers' | 'sweeps'> | null,
  source: Pick<Source, 'list'>,
  request: { readonly name: string; readonly advertiserId: bigint | null; readonly signal: AbortSignal },
): Promise<Finding[]> {
  const { name, signal } = request;
  const findings: Finding[] = [];
  try {
    const known = await store?.advertisers.lookUp(name, request.advertiserId);
    if (known?.halt) findings.push(toHaltFinding(name, known.halt));
    const advertiserId = known?.advertiserId ?? request.advertiserId;
    const state = await store?.sweeps.loadSyncState({ advertiserId, lagMs: 0 });
    const answer = await source.list({ afterId: state?.pollFrom ?? 0n }, signal);
    const told = answer.kind === 'page' ? answer.page.advertiserId : null;
    const isOurs = told === null || advertiserId === null || told === advertiserId;
    const add = (what: string, detail: string) => findings.push(good(`${name}: ${what}`, detail));
    add('credential', 'accepted');
    if (isOurs) add('advertiser', `${told ?? advertiserId ?? 'not told'}`);
    else {
      const detail = `the source answers for ${told}, expected ${advertiserId}`;
      findings.push(failed(`${name}: advertiser`, new Trouble('mismatch', detail)));
    }
    add('learned', state?.pages ? toLearnedWords(state.pages) : 'nothing yet: run intake sync');
    const volatile = (await store?.advertisers.loadVolatile(advertiserId)) ?? [];
    if (volatile.length > 0)
      add('volatile members', `differ in every answer and are no change: ${volatile.join(', ')}`);
    const sunsetAt = answer.kind === 'page' ? answer.page.sunsetAt : null;
    // The spec does not say how the end of a version is announced. RFC 8594 defines the Sunset header.
    if (sunsetAt !== null) {
      const day = new Date(sunsetAt).toISOString().slice(0, 10);
      add('sunset', `the source announces that this version of its API ends on ${day}`);
    }
  } catch (trouble) {
    signal.throwIfAborted();
    findings.push(failed(`${name}: source`, trouble));
  }
  return findings;
}

/** A halt for a refused credential ends by itself; the credential check shows whether it is accepted now. Other halts need an operator. */
function toHaltFinding(name: string, { kind, reason }: NonNullable<KnownAdvertiser['halt']>): Finding {
  const check = `${name}: halt`;
  if (kind === 'refused') return good(check, `halted: ${reason} The worker tries again every few minutes.`);
  const detail = `halted: ${reason} Run intake unhalt --advertiser ${name} once the cause is gone.`;
  return bad(check, detail, new Trouble('mismatch', `${name} is halted: ${reason}`));
}

/** Describes only what answers have shown. An account without applications has shown nothing. */
function toLearnedWords({ longest, order, together }: KnownPages): string {
  if (longest === 0) return 'nothing yet: no application was listed so far';
  const proof = `no answer contradicted afterid and beforeid together; proven rests on: ${assumptions.join(' ')}`;
  const noProof = 'does not honour afterid and beforeid together: nothing can be proven by them';
  return [
    // Two rows may be in order by chance.
    ...(longest > 2 ? [`lists in ${order === 'mixed' ? 'no' : order} order`] : []),
    `returned ${longest} applications or more in one page`,
    together ? proof : noProof,
  ].join('; ');
}

/** The message of an error other than Trouble may quote a value, so only its name and code are shown. */
function toWords(trouble: unknown): string {
  if (trouble instanceof Trouble) return trouble.message;
  const { name = 'no error', code } = (trouble ?? {}) as { readonly name?: string; readonly code?: unknown };
  return `failed unexpectedly (${name}${typeof code === 'string' ? ` ${code}` : ''})`;
}

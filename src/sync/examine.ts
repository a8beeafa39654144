// What `intake doctor` and a worker's readiness look at, one finding per check: can the database, the storage and the source be used, and
// what is the source like? Asks one harmless question of each source, and leaves nothing in the storage.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { type BlobStore, hasRoom } from '../domain/blob.ts';
import { assumptions } from '../domain/certificate.ts';
import { SettingTrouble, Trouble, WrongStore } from '../domain/trouble.ts';
import type { Source } from '../source/client.ts';
import type { Learned } from '../store/resume.ts';
import type { Store } from '../store/store.ts';
import type { WorkerFacts } from './worker.ts';

/** One thing that was looked at. `trouble` carries what went wrong, for the exit code. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly trouble?: unknown;
}

/** The database: reachable, of this version's schema, its clock near ours. */
export async function examineDatabase(store: Store, now: () => number): Promise<Finding[]> {
  const askedAt = now();
  try {
    const server = await store.loadServer();
    const skewMs = Math.abs(server.now.getTime() - (askedAt + now()) / 2);
    return [
      {
        check: 'database',
        ok: true,
        detail: `Postgres ${server.version}, answers in ${Math.round(now() - askedAt)} ms`,
      },
      {
        check: 'schema',
        ok: server.schema === 'current',
        detail: server.schema === 'current' ? 'current' : `${server.schema}: run intake migrate`,
      },
      {
        check: 'clock',
        ok: skewMs < 60_000,
        detail: `${Math.round(skewMs)} ms from the database's${skewMs < 60_000 ? '' : '; times in logs will mislead, set this machine right'}`,
      },
    ];
  } catch (trouble) {
    return [{ check: 'database', ok: false, detail: toWords(trouble), trouble }];
  }
}

/** The storage: the one that this database's files lie in, and one that takes, gives back and deletes. Nothing stays in it. */
export async function examineBlobs(
  store: Store,
  open: () => Promise<BlobStore>,
  signal: AbortSignal,
): Promise<Finding> {
  const check = 'storage';
  try {
    await using blobs = await open();
    const pinned = await store.loadBlobStore();
    if (pinned !== null && pinned.identity !== (await blobs.loadIdentity(signal))) {
      const detail = `${blobs.location} is not where the files of this database lie: that is ${pinned.location}`;
      return { check, ok: false, detail, trouble: new WrongStore(`${detail}.`) };
    }
    const startedAt = performance.now();
    await probe(blobs, signal);
    const freeBytes = await blobs.freeBytes();
    const isRoomy = hasRoom(freeBytes, 0);
    const took = `${blobs.location}: put, get and delete in ${Math.round(performance.now() - startedAt)} ms`;
    return { check, ok: isRoomy, detail: isRoomy ? took : `${took}; the disk is nearly full, so no file is fetched` };
  } catch (trouble) {
    signal.throwIfAborted();
    return { check, ok: false, detail: toWords(trouble), trouble };
  }
}

async function probe(blobs: BlobStore, signal: AbortSignal): Promise<void> {
  const bytes = randomBytes(64);
  const facts = { sizeBytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
  // Without a slash: on a disk the folder would stay.
  const key = `doctor-${randomUUID()}`;
  try {
    await blobs.put(key, bytes, facts, signal);
    const got = Buffer.concat(await Array.fromAsync(blobs.get(key, signal)));
    if (!got.equals(bytes)) throw new Trouble('ours', 'The storage gives back other bytes than it took.');
  } finally {
    await blobs.delete([key], signal);
  }
  if ((await blobs.verify(key, facts, 'record', signal)) === 'missing') return;
  throw new Trouble('ours', 'The storage still holds what was deleted: nothing could be erased.');
}

/** What the work of a worker has met last; null before it could begin. */
export function examineWork(work: WorkerFacts | null): Finding[] {
  if (work === null)
    return [{ check: 'progress', ok: false, detail: 'work has not begun: the database is waited for' }];
  const { accounts, troubled, trouble, filesTrouble } = work;
  const isReading = troubled < accounts;
  return [
    {
      check: 'progress',
      ok: isReading,
      detail: `${accounts - troubled} of ${accounts} advertisers can be read${trouble ? `; ${trouble.message}` : ''}`,
      ...(!isReading && { trouble }),
    },
    {
      check: 'files',
      ok: filesTrouble === null,
      detail: filesTrouble === null ? 'nothing keeps them from being stored' : filesTrouble.message,
      ...(filesTrouble && { trouble: filesTrouble }),
    },
  ];
}

const keyWords = {
  matches: 'made the person keys and tombstones of this database',
  untried: 'nothing in this database was made with a key yet',
  differs:
    'is not the one that this database was filled with: erased people could return. Set the earlier key, or restore it from your secrets',
};

/** Whether PRIVACY_KEY is the one that this database was filled with. */
export async function examineKey(store: Store): Promise<Finding> {
  const state = await store.loadKeyState();
  return {
    check: 'PRIVACY_KEY',
    ok: state !== 'differs',
    detail: keyWords[state],
    ...(state === 'differs' && { trouble: new SettingTrouble('PRIVACY_KEY is not the key of this database.') }),
  };
}

export interface SourceExamination {
  readonly name: string;
  readonly advertiserId: bigint | null;
  readonly signal: AbortSignal;
}

/** One account: the credential opens the door, the answer is ours, and what earlier sweeps have learned. */
export async function examineSource(store: Store, source: Source, request: SourceExamination): Promise<Finding[]> {
  const { name, signal } = request;
  const findings: Finding[] = [];
  try {
    const { advertiserId } = await store.ensureAdvertiser(name, request.advertiserId);
    const { learned, pollFrom } = await store.loadReading({ advertiserId, lagMs: 0 });
    const answer = await source.list({ afterId: pollFrom === null ? 0n : pollFrom - 1n }, signal);
    const told = answer.kind === 'page' ? answer.page.advertiserId : null;
    const isOurs = told === null || advertiserId === null || told === advertiserId;
    findings.push({ check: `${name}: credential`, ok: true, detail: 'accepted' });
    findings.push({
      check: `${name}: advertiser`,
      ok: isOurs,
      detail: isOurs
        ? `${told ?? advertiserId ?? 'not told'}`
        : `the source answers for ${told}, expected ${advertiserId}`,
      ...(!isOurs && { trouble: new Trouble('mismatch', `${name} answers for another advertiser.`) }),
    });
    findings.push({
      check: `${name}: learned`,
      ok: true,
      detail: learned ? toLearnedWords(learned) : 'nothing yet: run intake sync',
    });
    const sunsetAt = answer.kind === 'page' ? answer.page.sunsetAt : null;
    // Spec silent: how the end of a version is announced. RFC 8594 names a header.
    if (sunsetAt !== null) {
      const detail = `the source announces that this version of its API ends on ${new Date(sunsetAt).toISOString().slice(0, 10)}`;
      findings.push({ check: `${name}: sunset`, ok: true, detail });
    }
  } catch (trouble) {
    signal.throwIfAborted();
    findings.push({ check: `${name}: source`, ok: false, detail: toWords(trouble), trouble });
  }
  return findings;
}

function toLearnedWords({ order, capacity, together, inclusiveAfter, inclusiveBefore }: Learned): string {
  return [
    order === 'mixed' ? 'lists in no order' : `lists in ${order} order`,
    `largest page seen ${capacity.count} applications`,
    together
      ? 'honours afterid and beforeid together'
      : 'does not honour afterid and beforeid together: nothing can be proven by them',
    `afterid ${inclusiveAfter ? 'includes' : 'excludes'} the id itself, beforeid ${inclusiveBefore ? 'includes' : 'excludes'} it`,
    together ? `proven rests on: ${assumptions.join(' ')}` : '',
  ]
    .filter(Boolean)
    .join('; ');
}

function toWords(trouble: unknown): string {
  return trouble instanceof Trouble ? trouble.message : 'failed in a way that was not foreseen';
}

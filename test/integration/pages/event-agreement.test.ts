// P26: whatever happens to an application, in whatever order, its events tell it. Drawn sequences of all transitions on the real store,
// followed by a consumer that knows nothing but the events.
import { hash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openStore, type Store } from '../../../src/store/store.ts';
import { anApplication, anAttachment, aPage, commitPageOf, loadEventTypes } from '../../support/applications.ts';
import { emptyDatabase, openTestDatabase, type TestDatabase } from '../../support/database/test-database.ts';
import { openAccount } from '../../support/leases.ts';
import { testPrivacyKey } from '../../support/processes/syncing.ts';

const advertiserId = 7n;
const kinds = ['resume', 'coverLetter'] as const;
const contents = ['one', 'other'] as const;

let database: TestDatabase;
let store: Store;
beforeAll(async () => {
  database = await openTestDatabase();
  store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from(testPrivacyKey) });
});
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

/** A file as the source has it. */
interface File {
  readonly content: (typeof contents)[number];
  readonly uploads: number;
  readonly hashes: number;
  readonly hasVirus: boolean | null;
}

/** An application as the source has it. */
interface Applied {
  readonly changes: number;
  readonly files: Readonly<Record<(typeof kinds)[number], File>>;
}

/** The source and the store, and what can happen between them. */
async function openWorld() {
  await emptyDatabase(database);
  const lease = await openAccount(store, 'acme', advertiserId);
  const source = new Map<bigint, Applied>();
  let seq = 1_000n;

  const toApplication = (id: bigint, { changes, files }: Applied) =>
    anApplication(id, {
      jobReference: `JOB-${changes}`,
      attachments: kinds.map((kind) => {
        const { content, uploads, hashes, hasVirus } = files[kind];
        return anAttachment(kind, {
          sourceHash: `${content} ${hashes}`,
          sizeBytes: hasVirus ? 0 : 1_000,
          hasVirus,
          uploadedAt: Date.UTC(2026, 0, 1) + uploads * 1_000,
        });
      }),
    });
  const commit = (applications: Parameters<typeof aPage>[1], progress: object = {}, sweepId = seq + 1n) => {
    seq += 1n;
    return commitPageOf(store, aPage(lease, applications, { advertiserId, seq, sweepId, progress }));
  };
  const show = (id: bigint) => commit([toApplication(id, source.get(id) as Applied)]);
  /** A sweep of which two answers have lacked these ids. */
  const end = async (absent: readonly bigint[]) => {
    const sweepId = seq + 1n;
    const lacked = absent.map((id) => ({ id, old: true, again: false }));
    await commit([], { lacked }, sweepId);
    const ended = { ...{ certificate: 'proven', risk: 'none', reason: '', openRanges: 0 }, absent: 1, tryDates: false };
    await commit([], { lacked, ended: { ...ended, pages: null, completeThrough: new Date() } }, sweepId);
  };
  const alter = async (id: bigint, change: (before: Applied) => Applied) => {
    const first = { content: 'one', uploads: 0, hashes: 0, hasVirus: false } as const;
    const before = source.get(id) ?? {
      changes: 0,
      files: { resume: first, coverLetter: { ...first, content: 'other' } },
    };
    source.set(id, source.has(id) ? change(before) : before);
    await show(id);
  };
  const alterFile = (id: bigint, kind: (typeof kinds)[number], change: (before: File) => Partial<File>) =>
    alter(id, (before) => ({
      ...before,
      files: { ...before.files, [kind]: { ...before.files[kind], ...change(before.files[kind]) } },
    }));

  return {
    change: (id: bigint) => alter(id, (before) => ({ ...before, changes: before.changes + 1 })),
    again: (id: bigint) => alter(id, (before) => before),
    rehash: (id: bigint, kind: (typeof kinds)[number]) => alterFile(id, kind, ({ hashes }) => ({ hashes: hashes + 1 })),
    replace: (id: bigint, kind: (typeof kinds)[number], content: (typeof contents)[number]) =>
      alterFile(id, kind, ({ uploads }) => ({ content, uploads: uploads + 1, hasVirus: false })),
    swap: (id: bigint, kind: (typeof kinds)[number], content: (typeof contents)[number]) =>
      alterFile(id, kind, ({ hashes }) => ({ content, hashes: hashes + 1 })),
    flag: (id: bigint, kind: (typeof kinds)[number], hasVirus: boolean | null) =>
      alterFile(id, kind, () => ({ hasVirus })),
    /** Fetches so many of what is due; the rest of it is not there. */
    async fetch(most: number) {
      await database.query(`UPDATE intake.downloads SET due_at = now()`);
      const request = { advertisers: [advertiserId], tier: 'usual', limit: 100, leaseMs: 60_000 } as const;
      const { claims } = await store.downloads.claimDownloads({ ...request, token: randomUUID() });
      for (const [nth, claim] of claims.entries()) {
        const file = source.get(claim.applicationId)?.files[claim.kind as (typeof kinds)[number]];
        if (nth >= most || !file) {
          await store.downloads.complete(claim, { kind: 'final', state: 'missing', reason: 'not there' });
          continue;
        }
        const sha256 = hash('sha256', file.content);
        const blob = { sha256, sizeBytes: file.content.length };
        await store.blobs.announce(claim, blob);
        const said = { contentType: null, detectedType: null, fileName: null, notes: [], screens: null };
        await store.downloads.complete(claim, { kind: 'stored', blob, linkedBy: null, compared: null, ...said });
      }
    },
    /** Missing is what a proven sweep does not show a day after another one did not. */
    async vanish(id: bigint) {
      await end([id]);
      await database.query(`UPDATE intake.applications SET absent_since = absent_since - interval '25 hours'`);
      await end([id]);
    },
    erase: (applicationId: bigint) =>
      store.erasures.begin({ advertiserId, sought: { by: 'application', applicationId }, by: 'test' }),
    damage: (content: string) => store.blobs.markDamaged(advertiserId, hash('sha256', content)),
    retry: () => store.downloads.retryDownloads(advertiserId, { applicationId: null, kind: null, state: null }),
  };
}

type World = Awaited<ReturnType<typeof openWorld>>;

const id = fc.constantFrom(1n, 2n, 3n);
const kind = fc.constantFrom(...kinds);
const content = fc.constantFrom(...contents);
const step = <Args extends unknown[]>(
  name: string,
  args: { [At in keyof Args]: fc.Arbitrary<Args[At]> },
  run: (world: World, ...args: Args) => Promise<unknown>,
) =>
  fc
    .tuple(...args)
    .map((drawn) => ({ name: `${name} ${drawn.join(' ')}`, run: (world: World) => run(world, ...(drawn as Args)) }));
const steps = fc.oneof(
  { weight: 3, arbitrary: step('change', [id], (world, one) => world.change(one)) },
  { weight: 2, arbitrary: step('again', [id], (world, one) => world.again(one)) },
  { weight: 2, arbitrary: step('rehash', [id, kind], (world, ...args) => world.rehash(...args)) },
  { weight: 2, arbitrary: step('replace', [id, kind, content], (world, ...args) => world.replace(...args)) },
  { weight: 2, arbitrary: step('swap', [id, kind, content], (world, ...args) => world.swap(...args)) },
  {
    weight: 3,
    arbitrary: step('flag', [id, kind, fc.constantFrom(true, false, null)], (world, ...args) => world.flag(...args)),
  },
  { weight: 6, arbitrary: step('fetch', [fc.constantFrom(0, 1, 100, 100)], (world, most) => world.fetch(most)) },
  { weight: 2, arbitrary: step('vanish', [id], (world, one) => world.vanish(one)) },
  { weight: 1, arbitrary: step('erase', [id], (world, one) => world.erase(one)) },
  { weight: 1, arbitrary: step('damage', [content], (world, one) => world.damage(one)) },
  { weight: 1, arbitrary: step('retry', [], (world) => world.retry()) },
);

interface Look {
  readonly isMissing: boolean;
  readonly isErased: boolean;
  readonly isReady: boolean;
  /** What a consumer can see; of the files only where the application is ready. */
  readonly seen: string;
  /** The same with its files in any case. */
  readonly whole: string;
}

async function look(): Promise<Map<string, Look>> {
  const rows = await database.query<{
    id: string;
    missing: boolean;
    erased: boolean;
    ready: boolean;
    files: unknown;
    job: string;
  }>(
    `SELECT a.application_id AS id, a.missing_since IS NOT NULL AS missing, a.erased_at IS NOT NULL AS erased,
       a.ready_at IS NOT NULL AS ready, a.job_reference AS job,
       (SELECT jsonb_agg(jsonb_build_array(f.kind, f.state, f.version, f.sha256, f.reason, f.has_virus, f.uploaded_at,
            (SELECT jsonb_agg(v.state ORDER BY v.version) FROM intake.attachment_versions v
             WHERE (v.advertiser_id, v.application_id, v.kind) = (f.advertiser_id, f.application_id, f.kind))) ORDER BY f.kind)
        FROM intake.attachments f WHERE f.advertiser_id = a.advertiser_id AND f.application_id = a.application_id) AS files
     FROM intake.applications a`,
  );
  return new Map(
    rows.map(({ id: one, missing, erased, ready, job, files }) => [
      one,
      {
        isMissing: missing,
        isErased: erased,
        isReady: ready,
        seen: JSON.stringify([missing, erased, ready, job, ready ? files : null]),
        whole: JSON.stringify([missing, erased, ready, job, files]),
      },
    ]),
  );
}

const loadEvents = (after: string) =>
  database.query<{ event_id: string; application_id: string; type: string }>(
    `SELECT event_id, application_id, type FROM intake.events WHERE event_id > $1 ORDER BY event_id`,
    [after],
  );

/** What the last event of an application may be. */
function toFitting({ isMissing, isErased, isReady }: Look): readonly string[] {
  if (isErased) return ['application.erased'];
  if (isMissing) return ['application.missing'];
  return isReady ? ['application.ready', 'application.changed'] : ['application.received', 'application.changed'];
}

async function follow(drawn: readonly { readonly name: string; readonly run: (world: World) => Promise<unknown> }[]) {
  const world = await openWorld();
  const isReady = (one: bigint) => [
    { name: `again ${one}`, run: () => world.again(one) },
    { name: 'fetch', run: () => world.fetch(100) },
  ];
  const copies = new Map<string, string>();
  const last = new Map<string, string>();
  let position = '0';
  let before = await look();
  for (const [nth, { name, run }] of [...isReady(1n), ...isReady(2n), ...drawn].entries()) {
    await run(world);
    const after = await look();
    const events = await loadEvents(position);
    for (const { event_id, application_id, type } of events) {
      position = event_id;
      last.set(application_id, type);
      const now = after.get(application_id);
      if (type === 'application.erased' || type === 'application.missing') copies.delete(application_id);
      else if (now) copies.set(application_id, now.seen);
    }
    const context = `step ${nth + 1}, ${name}`;
    for (const [one, now] of after) {
      expect(toFitting(now), `${context}: the last event of ${one}`).toContain(last.get(one));
      const copy = now.isMissing || now.isErased ? undefined : now.seen;
      expect(copies.get(one), `${context}: what a consumer holds of ${one}`).toBe(copy);
      const isTold = events.some(({ application_id }) => application_id === one);
      if (before.get(one)?.whole === now.whole)
        expect(isTold, `${context}: an event of ${one}, which did not change`).toBe(false);
    }
    before = after;
  }
}

const loadTypes = (one: bigint) => loadEventTypes(database, one);

describe('an event is told', () => {
  test('of an application that was missing and is shown again as it was', async () => {
    const world = await openWorld();
    await world.again(1n);
    await world.fetch(100);
    await world.vanish(1n);
    await world.again(1n);
    await world.again(1n);
    expect(await loadTypes(1n)).toEqual(['received', 'ready', 'missing', 'changed']);
  });

  test('of an application whose bytes were flagged elsewhere, and when the flag is lifted', async () => {
    const world = await openWorld();
    await world.again(1n);
    await world.again(2n);
    await world.fetch(100);
    await world.flag(1n, 'resume', true);
    expect(await loadTypes(2n)).toEqual(['received', 'ready', 'changed']);
    await world.flag(1n, 'resume', false);
    await world.fetch(100);
    expect(await loadTypes(2n)).toEqual(['received', 'ready', 'changed', 'changed', 'ready']);
  });

  test('of an application whose stored bytes were lost, and again when they are back', async () => {
    const world = await openWorld();
    await world.again(1n);
    await world.fetch(100);
    await world.damage('one');
    await world.fetch(100);
    expect(await loadTypes(1n)).toEqual(['received', 'ready', 'changed', 'ready']);
  });

  test('of a missing application whose file comes after all, and that it is missing stays the last word', async () => {
    const world = await openWorld();
    await world.again(1n);
    await world.vanish(1n);
    await world.fetch(100);
    expect(await loadTypes(1n)).toEqual(['received', 'missing', 'ready', 'missing']);
  });
});

describe('examples/events.schema.json', () => {
  const schema = z.fromJSONSchema(
    JSON.parse(readFileSync('examples/events.schema.json', 'utf8')) as Parameters<typeof z.fromJSONSchema>[0],
  );
  const types = ['received', 'changed', 'ready', 'missing', 'erased'].map((type) => `application.${type}`);

  test('describes every event that the store writes', async () => {
    const world = await openWorld();
    await world.again(1n);
    await world.fetch(100);
    await world.change(1n);
    await world.vanish(1n);
    await world.erase(1n);
    const rows = await database.query<{ event: { type: string } }>(`SELECT to_jsonb(e) AS event FROM intake.events e`);
    for (const { event } of rows)
      expect(schema.safeParse(event), JSON.stringify(event)).toMatchObject({ success: true });
    expect(new Set(rows.map(({ event }) => event.type))).toEqual(new Set(types));
  });

  test('describes the rows that docs/integrate.md shows, one of each type', () => {
    const [, block = ''] = /```json\n([\s\S]+?)```/.exec(readFileSync('docs/integrate.md', 'utf8')) ?? [];
    const shown = block
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string });
    for (const event of shown) expect(schema.safeParse(event)).toMatchObject({ success: true });
    expect(shown.map(({ type }) => type)).toEqual(types);
  });

  test('takes ids as text too, and no other type, id or time', () => {
    const event = {
      advertiser_id: 7,
      event_id: 1,
      application_id: 2,
      type: types[0],
      at: '2026-11-16T04:23:41.519181+00:00',
    };
    expect(schema.safeParse({ ...event, event_id: '9223372036854775807' }).success).toBe(true);
    for (const wrong of [{ type: 'application.gone' }, { event_id: 0 }, { application_id: 'x' }, { at: 'today' }]) {
      expect(schema.safeParse({ ...event, ...wrong }).success, JSON.stringify(wrong)).toBe(false);
    }
    expect(schema.safeParse({ ...event, at: undefined }).success).toBe(false);
  });
});

test('a consumer that looks up each event hears of changes only', { tags: ['slow'], timeout: 600_000 }, async () => {
  await fc.assert(fc.asyncProperty(fc.array(steps, { minLength: 4, maxLength: 14 }), follow), {
    numRuns: Number(process.env.EVENT_RUNS ?? 60),
  });
});

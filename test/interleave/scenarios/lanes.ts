// Writers of pages: which worker may write under a lease, and which answer counts as the newer one.
import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import type { SweepEnd } from '../../../src/domain/coverage/certificate.ts';
import type { LineBody } from '../../../src/domain/evidence/record.ts';
import { LeaseLost } from '../../../src/domain/trouble.ts';
import {
  ensureAdvertiser,
  findAdvertisers,
  haltAdvertiser,
  pinAdvertiser,
  unhaltAdvertiser,
} from '../../../src/store/accounts/advertisers.ts';
import { claimLeases, type Lane, type Lease, releaseLeases, renewLease } from '../../../src/store/accounts/leases.ts';
import type { Database } from '../../../src/store/postgres/database.ts';
import { loadUnfinished } from '../../../src/store/sweeps/continue-sweep.ts';
import { confirmCursors, endCertificates, takeTickets } from '../../../src/store/sweeps/sweeps.ts';
import { anApplication, aPage, commitPage } from '../../support/applications.ts';
import { claimLease, takeLease } from '../../support/leases.ts';
import { testPrivacyKey } from '../../support/processes/syncing.ts';
import type { Actor, Line, Program } from '../schedule.ts';
import type { Scenarios, Situation, Stage } from '../stage.ts';

export const privacyKey = createSecretKey(Buffer.from(testPrivacyKey));
export const leaseMs = 30_000;
/** A heartbeat renews for longer than a claim, so that a check can see that the heartbeat renewed. */
export const longMs = 4 * leaseMs;

/** True when, before line `at`, a client has taken this step in a transaction that is still open. */
export function holdsAt(lines: readonly Line[], at: number, step: RegExp): boolean {
  const before = lines.slice(0, at);
  return before.some(
    ({ client, text }, taken) =>
      step.test(text) &&
      !before.slice(taken).some((line) => line.client === client && /^(COMMIT|ROLLBACK|dies)/.test(line.text)),
  );
}

/** Creates an advertiser whose live lane stays leased for the whole schedule. */
export async function openLane(
  stage: Stage,
): Promise<{ readonly advertiserId: bigint; readonly name: string; readonly lease: Lease }> {
  const { advertiserId, name } = await stage.openAdvertiser();
  const lease = await takeLease(stage.direct, { name, lane: 'live', owner: 'page', leaseMs: 600_000 });
  return { advertiserId, name, lease };
}

/** Continues the unfinished sweep with its next page. */
async function writeNext(db: Database, lease: Lease, advertiserId: bigint): Promise<void> {
  const range = { purpose: 'live', axis: 'id', low: 1n, high: null } as const;
  const unfinished = await loadUnfinished(db, { ...range, advertiserId, lane: lease.lane });
  const { pages: before } = JSON.parse(unfinished?.facts ?? '{"pages":0}') as { pages: number };
  const pages = before + 1;
  const progress = { facts: JSON.stringify({ pages }), cursor: BigInt(pages) };
  const application = anApplication(pages, { attachments: [] });
  await commitPage(db, privacyKey, aPage(lease, [application], { advertiserId, progress, seq: BigInt(pages) }));
}

async function ignoreLost(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof LeaseLost)) throw error;
  });
}

/** Two writers of the next page, each under its own name or all under one. */
async function openWriters(stage: Stage, owner?: string) {
  const { advertiserId, name } = await stage.openAdvertiser();
  const write = async (actor: Actor) => {
    const db = stage.database(actor.name);
    const lease = await claimLease(db, { name, lane: 'live', owner: owner ?? actor.name, leaseMs });
    if (lease) await ignoreLost(writeNext(db, lease, advertiserId));
  };
  return { programs: { a: write, b: write }, check: () => checkPages(stage, advertiserId) };
}

/** Two readers of one application while its value changes at the source. */
function createReaders(stage: Stage, lanes: readonly [Lane, Lane], values: readonly string[]): Situation {
  return {
    promise: 'an older answer never overwrites a newer one, or says that it was too old (P5)',
    async open() {
      const { advertiserId, name: account } = await stage.openAdvertiser();
      const leases = await openLanes(stage, account);
      const shown = (value: string) => anApplication(1, { lastName: value, attachments: [] });
      let current = 'first';
      const first = aPage(leases.live, [shown(current)], { advertiserId, seq: 0n });
      await commitPage(stage.direct, privacyKey, first);
      const answers: { seq: bigint; value: string; isStale: boolean; readAt: number }[] = [];
      let reads = 0;
      const read = (lane: Lane) => async (actor: Actor) => {
        const db = stage.database(actor.name);
        const [ticket] = await takeTickets(db, 1);
        const seq = ticket?.seq ?? 0n;
        const { value, readAt } = await actor.act('reads the list', () => ({ value: current, readAt: ++reads }));
        const page = aPage(leases[lane], [shown(value)], { advertiserId, seq, isQuiet: true });
        const { stale } = await commitPage(db, privacyKey, page);
        answers.push({ seq, value, isStale: stale.length > 0, readAt });
      };
      return {
        programs: {
          a: read(lanes[0]),
          b: read(lanes[1]),
          source: async (actor) => {
            for (const next of values) {
              await actor.act(`the source shows the ${next} value`, () => {
                current = next;
              });
            }
          },
        },
        async check() {
          const [row] = await stage.query<{ last_name: string }>(
            `SELECT last_name FROM intake.applications WHERE advertiser_id = $1`,
            [advertiserId],
          );
          const asked = answers.toSorted((one, other) => Number(other.seq - one.seq))[0];
          const read = answers.toSorted((one, other) => other.readAt - one.readAt)[0];
          if (asked?.isStale) throw new Error('P5: the answer to the last request was called too old.');
          // When two requests overlap, either answer may count as the newer one.
          if (row?.last_name !== asked?.value && row?.last_name !== read?.value)
            throw new Error(`P5: stored is the ${row?.last_name} value, and the last request said ${asked?.value}.`);
        },
      };
    },
  };
}

/** Two readers find the same new application. */
function createNew(stage: Stage, lanes: readonly [Lane, Lane]): Situation {
  return {
    promise: 'one row, one event, and both pages are committed (P2, P4)',
    async open() {
      const { advertiserId, name: account } = await stage.openAdvertiser();
      const leases = await openLanes(stage, account);
      const toReader =
        (lane: Lane, nth: bigint): Program =>
        async (actor) => {
          const application = anApplication(1, { attachments: [] });
          const page = aPage(leases[lane], [application], { advertiserId, seq: nth, sweepId: nth });
          await commitPage(stage.database(actor.name), privacyKey, page);
        };
      return {
        programs: { a: toReader(lanes[0], 1n), b: toReader(lanes[1], 2n) },
        mortal: ['a'],
        async check({ lines }) {
          const [row] = await stage.query<{ stored: number; received: number; sweeps: number }>(
            `SELECT (SELECT count(*)::int FROM intake.applications WHERE advertiser_id = $1) AS stored,
               (SELECT count(*)::int FROM intake.events WHERE advertiser_id = $1 AND type = 'application.received') AS received,
               (SELECT count(*)::int FROM intake.sweeps WHERE advertiser_id = $1) AS sweeps`,
            [advertiserId],
          );
          assert.deepEqual([row?.stored, row?.received], [1, 1], 'P2: one application, received once');
          if (!lines.some(({ text }) => text === 'dies')) assert.equal(row?.sweeps, 2, 'P4: both pages are committed');
        },
      };
    },
  };
}

/** Leases both lanes of an account for the whole schedule. */
export async function openLanes(stage: Stage, name: string): Promise<Readonly<Record<Lane, Lease>>> {
  const [live, backfill] = await claimLeases(
    stage.direct,
    (['live', 'backfill'] as const).map((lane) => ({ name, lane, owner: lane, leaseMs: 600_000 })),
  );
  if (!live || !backfill) throw new Error('A lane is already leased.');
  return { live, backfill };
}

/** The range and evidence of a sweep of one page. */
export interface EndedSweep {
  readonly advertiserId: bigint;
  readonly sweepId: bigint;
  readonly low: bigint;
  readonly high: bigint;
  readonly startedAt?: Date;
  readonly evidence?: readonly LineBody[];
}

export const proven: SweepEnd = {
  ...{ certificate: 'proven', risk: 'none', reason: 'test', openRanges: 0, absent: 0, tryDates: false, pages: null },
  completeThrough: new Date(),
};

/** Commits a sweep that ends with its first page and certifies its range as proven. */
export async function endSweep(db: Database, lease: Lease, ended: EndedSweep): Promise<void> {
  const { advertiserId, sweepId, low, high, startedAt, evidence = [] } = ended;
  const page = aPage(lease, [], { advertiserId, seq: sweepId, sweepId, progress: { ended: proven, evidence } });
  const sweep = { ...page.sweep, purpose: 'recheck', low, high, ...(startedAt && { startedAt }) } as const;
  await commitPage(db, privacyKey, { ...page, sweep });
}

/** Checks that every committed page has its application and its event once, and that the cursor names the last one. */
async function checkPages(stage: Stage, advertiserId: bigint): Promise<void> {
  const [row] = await stage.query<{
    pages: number;
    requests: number;
    stored: number;
    cursor: number;
    received: number;
  }>(
    `SELECT coalesce((SELECT (facts->>'pages')::int FROM intake.sweeps WHERE advertiser_id = $1), 0) AS pages,
       coalesce((SELECT requests::int FROM intake.sweeps WHERE advertiser_id = $1), 0) AS requests,
       (SELECT count(*)::int FROM intake.applications WHERE advertiser_id = $1) AS stored,
       coalesce((SELECT after_id::int FROM intake.cursors WHERE advertiser_id = $1), 0) AS cursor,
       (SELECT count(*)::int FROM intake.events WHERE advertiser_id = $1 AND type = 'application.received') AS received`,
    [advertiserId],
  );
  assert.ok(row);
  const { pages, requests, stored, cursor, received } = row;
  assert.deepEqual(
    { pages, stored, received },
    { pages: requests, stored: requests, received: requests },
    `${requests} pages were committed`,
  );
  assert.equal(cursor, stored, 'P4: the cursor names the last application that is stored');
}

/** Looks up one account; the product coalesces the lookups of many. */
const ensureNamed = (db: Database, name: string) =>
  ensureAdvertiser(db, name, null, async (wanted) => (await findAdvertisers(db, [wanted]))[0] ?? null);

/**
 * A lane gets a new holder, and the previous holder still renews and releases it. `isTwice`: a failover lost the last commits, so two
 * owners hold the same epoch. Otherwise two tasks of one owner hold the lane one after the other, with different epochs.
 */
function createHandOverOf(stage: Stage, isTwice: boolean): Situation {
  return {
    promise: 'who does not hold a lane neither prolongs it nor gives it back (P11)',
    async open() {
      const { name } = await stage.openAdvertiser();
      const claimAs = (db: Database, owner: string) => claimLease(db, { name, lane: 'live', owner, leaseMs });
      const first = await claimAs(stage.direct, 'b');
      if (!first) throw new Error('The lane is already leased.');
      const old: Lease = isTwice ? { ...first, owner: 'a' } : first;
      const faults: string[] = [];
      let holder = first;
      /** The clock when the working holder took the lane; null when no holder is working. */
      let worksSince: number | null = isTwice ? 0 : null;
      const isHeldBy = ({ owner, epoch }: Lease) => holder.owner === owner && holder.epoch === epoch;
      return {
        programs: {
          a: async (actor) => {
            const db = stage.database(actor.name);
            const isRenewed = await renewLease(db, old, longMs);
            if (isRenewed && !isHeldBy(old)) faults.push('a lane that another one holds is called renewed');
            await releaseLeases(db, [{ ...old, done: false }]);
          },
          b: async (actor) => {
            const db = stage.database(actor.name);
            const lease = isTwice ? first : await claimAs(db, 'b');
            if (!lease) return;
            if (!isTwice) [holder, worksSince] = [lease, stage.gate.clockMs];
            await actor.act('works under the lane', () => {});
            if (isHeldBy(lease)) worksSince = null;
            await releaseLeases(db, [{ ...lease, done: false }]);
          },
          c: async (actor) => {
            const lease = await claimAs(stage.database(actor.name), 'c');
            if (!lease) return;
            if (worksSince === stage.gate.clockMs) faults.push('a lane was taken from a worker whose lease holds');
            [holder, worksSince] = [lease, null];
          },
        },
        lapses: [leaseMs + 1_000],
        async check() {
          const [row] = await stage.query<{ left: number }>(
            `SELECT extract(epoch FROM expires_at - now())::float8 * 1000 AS left FROM intake.leases
             WHERE name = $1 AND expires_at > '-infinity'`,
            [name],
          );
          if (row && row.left > longMs * 0.6 && !isHeldBy(old))
            faults.push('a lane that another one holds was prolonged');
          if (faults[0]) throw new Error(`P11: ${faults[0]}.`);
        },
      };
    },
  };
}

export const laneScenarios = {
  /** Two writers of one lane: the first may stall while its lease lapses. */
  'two-writers': (stage) => ({
    promise:
      'each page continues the sweep from the page committed before it, and the cursor names a stored application (P4, P5)',
    open: async () => ({ ...(await openWriters(stage)), mortal: ['a'], lapses: [leaseMs + 1_000] }),
  }),

  /** Two tasks of one process: the first stalls, the second claims the lane again. Owners are equal, epochs differ. */
  'same-owner': (stage) => ({
    promise: 'an older claim of the same owner writes nothing more (P4, P5)',
    open: () => openWriters(stage, 'worker'),
  }),

  /** After a failover that lost the last commits, both a and b hold epoch 1. Owners differ, epochs are equal. */
  'epoch-twice': (stage) => ({
    promise: 'of two owners of one epoch only the one in the row writes (P5)',
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const lease = await takeLease(stage.direct, { name, lane: 'live', owner: 'b', leaseMs });
      const write = (owner: string) => async (actor: Actor) =>
        await ignoreLost(writeNext(stage.database(actor.name), { ...lease, owner }, advertiserId));
      const programs = { a: write('a'), b: write('b') };
      return { programs, check: () => checkPages(stage, advertiserId) };
    },
  }),

  /** A writer, its heartbeat on another connection, and another worker that wants the lane. */
  heartbeat: (stage) => ({
    promise:
      'neither the heartbeat nor another worker waits for a transaction that writes; the lane does not change hands under it',
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const lease = await takeLease(stage.direct, { name, lane: 'live', owner: 'a', leaseMs });
      const write = async ({ name: own }: Actor) => {
        const db = stage.database(own);
        const held = own === 'a' ? lease : await claimLease(db, { name, lane: 'live', owner: own, leaseMs });
        if (held) await ignoreLost(writeNext(db, held, advertiserId));
      };
      let isHeld = false;
      const renew = async (actor: Actor) => {
        isHeld = await renewLease(stage.database(actor.name), lease, longMs);
      };
      return {
        programs: { a: write, beat: renew, b: write },
        mortal: ['a'],
        lapses: [leaseMs + 1_000],
        async check({ lines }) {
          const waiting = lines.find(
            ({ text, waited }) => waited && /FROM intake.leases|^WITH (wanted|free) AS/.test(text),
          );
          if (waiting && waiting.client !== 'a') throw new Error(`${waiting.client} waits: ${waiting.text}`);
          await checkPages(stage, advertiserId);
          // The heartbeat skips a lane that a transaction locks. Any other lane that it reports as held must be renewed.
          const isFenced = holdsAt(
            lines,
            lines.findIndex(({ client }) => client === 'beat'),
            /FROM intake\.leases .* FOR SHARE/,
          );
          if (!isHeld || isFenced) return;
          const [row] = await stage.query<{ owner: string; left: number }>(
            `SELECT owner, extract(epoch FROM expires_at - now())::float8 * 1000 AS left FROM intake.leases WHERE name = $1`,
            [name],
          );
          assert.equal(row?.owner, 'a', 'P11: a lane changed hands that was prolonged');
          assert.ok(row.left > longMs / 2, 'P11: a lease that is called held was not prolonged');
        },
      };
    },
  }),

  /** Three workers compete for a maintenance task: one runs it, and no worker runs it again within a minute. */
  maintenance: (stage) => ({
    promise: 'while its lease holds, one worker runs the task, and no other runs it again within a minute',
    async open() {
      const { name: account } = await stage.openAdvertiser();
      const name = `maintenance ${account}`;
      let runs = 0;
      const work = async (actor: Actor) => {
        const db = stage.database(actor.name);
        const lease = await claimLease(db, {
          name,
          lane: 'live',
          owner: actor.name,
          leaseMs,
          skipIfDoneWithinMs: 60_000,
        });
        if (!lease) return;
        await actor.act('runs the task', () => void runs++);
        await releaseLeases(db, [{ ...lease, done: true }]);
      };
      return {
        programs: { a: work, b: work, c: work },
        lapses: [leaseMs + 1_000],
        commitsApart: true,
        async check({ lines }) {
          const at = (text: RegExp) => lines.findIndex((line) => text.test(line.text));
          // When a worker stalls for longer than its lease, one other worker takes over and runs the task a second time.
          const isLapsed = at(/ s pass/) >= 0;
          if (runs > (isLapsed ? 2 : 1)) throw new Error(`The task ran ${runs} times.`);
          if (runs === 0) throw new Error('Nobody ran the task.');
        },
      };
    },
  }),

  /** The value changes and changes back: one reader may see no change at all while the other has an older answer. */
  'two-lanes': (stage) => createReaders(stage, ['backfill', 'live'], ['second', 'first']),

  /** Parallel readers of one backfill, one of them slow. */
  'one-lane': (stage) => createReaders(stage, ['backfill', 'backfill'], ['second']),
  'new-twice': (stage) => createNew(stage, ['live', 'backfill']),
  'new-parallel': (stage) => createNew(stage, ['backfill', 'backfill']),

  /** Live and backfill end sweeps over overlapping ranges. */
  coverage: (stage) => ({
    promise: 'every id is covered once, by the newest sweep that read it (P10)',
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const { live: recheck, backfill: load } = await openLanes(stage, name);
      const end = (lease: Lease, sweepId: bigint, low: bigint, high: bigint) => async (actor: Actor) =>
        await endSweep(stage.database(actor.name), lease, { advertiserId, sweepId, low, high });
      return {
        programs: { live: end(recheck, 1n, 1n, 20n), backfill: end(load, 2n, 11n, 30n) },
        mortal: ['live'],
        async check({ lines }) {
          if (lines.some(({ text }) => text === 'dies')) return;
          const rows = await stage.query<{ low: string; high: string; sweep_id: string }>(
            `SELECT low, high, sweep_id FROM intake.coverage WHERE advertiser_id = $1 ORDER BY low`,
            [advertiserId],
          );
          const last = lines.findLast(({ text }) => text === 'COMMIT')?.client;
          const [live, backfill] = last === 'live' ? [20, 21] : [10, 11];
          assert.deepEqual(
            rows.map((row) => [Number(row.low), Number(row.high), Number(row.sweep_id)]),
            [
              [1, live, 1],
              [backfill, 30, 2],
            ],
            'P10: ranges overlap, are lost, or are not of the sweep that ended last',
          );
        },
      };
    },
  }),

  /** Two workers register a newly configured account at once. */
  'new-account': (stage) => ({
    promise: 'the account has one row, and nobody fails',
    async open() {
      const { name: before } = await stage.openAdvertiser();
      const name = `${before} anew`;
      const meet = async (actor: Actor) => void (await ensureNamed(stage.database(actor.name), name));
      return {
        programs: { a: meet, b: meet },
        mortal: ['a'],
        commitsApart: true,
        async check() {
          const rows = await stage.query(`SELECT 1 FROM intake.advertisers WHERE name = $1`, [name]);
          assert.equal(rows.length, 1, 'one row');
        },
      };
    },
  }),

  /** Two workers get different advertiser ids for one account, as when its credential is replaced by another advertiser's. */
  pinned: (stage) => ({
    promise: 'the first id stays, and both workers are told of it',
    async open() {
      const { name: before, advertiserId } = await stage.openAdvertiser();
      const name = `${before} anew`;
      await ensureNamed(stage.direct, name);
      const told: (bigint | null)[] = [];
      const pin = (id: bigint) => async (actor: Actor) =>
        void told.push(
          (await pinAdvertiser(stage.database(actor.name), name, advertiserId * 1_000_000n + id)).advertiserId,
        );
      return {
        programs: { a: pin(1n), b: pin(2n) },
        mortal: ['a'],
        commitsApart: true,
        async check() {
          assert.equal(new Set(told).size, 1, 'an id that was pinned has changed');
        },
      };
    },
  }),

  /** A list shows another advertiser's data while a download is refused and a poll is accepted. An accepted poll ends a halt for refusal. */
  halts: (stage) => ({
    promise: "a halt for another advertiser's data stays until a person ends it",
    async open() {
      const { name } = await stage.openAdvertiser();
      return {
        programs: {
          list: (actor) => haltAdvertiser(stage.database(actor.name), name, 'mismatch', 'another advertiser'),
          file: (actor) => haltAdvertiser(stage.database(actor.name), name, 'refused', 'the credential'),
          poll: (actor) => unhaltAdvertiser(stage.database(actor.name), name, 'refused'),
        },
        commitsApart: true,
        async check() {
          const rows = await stage.query(`SELECT state, halt_kind FROM intake.advertisers WHERE name = $1`, [name]);
          const halted = { state: 'halted', halt_kind: 'mismatch' };
          assert.deepEqual(rows, [halted], "a halt for another advertiser's data ended, and nobody looked");
        },
      };
    },
  }),

  /** Two workers confirm that a new account is empty, one of them late, while a third worker commits its first application. */
  cursors: (stage) => ({
    promise: 'nobody fails, and the cursor is at what is stored',
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      const page = aPage(lease, [anApplication(1, { attachments: [] })], { advertiserId, progress: { cursor: 1n } });
      const confirm = (actor: Actor) => confirmCursors(stage.database(actor.name), [{ advertiserId, at: new Date() }]);
      return {
        programs: { a: confirm, b: confirm, page: (actor) => commitPage(stage.database(actor.name), privacyKey, page) },
        mortal: ['a'],
        commitsApart: true,
        async check() {
          const rows = await stage.query(`SELECT after_id::int FROM intake.cursors WHERE advertiser_id = $1`, [
            advertiserId,
          ]);
          assert.deepEqual(rows, [{ after_id: 1 }], 'the cursor is at what is stored');
        },
      };
    },
  }),

  /** An audit finds a hidden application while a sweep over other ids ends. */
  certificates: (stage) => ({
    promise: 'an id that an audit found hidden is not called proven by a sweep that did not read it (P10)',
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const { live, backfill } = await openLanes(stage, name);
      await endSweep(stage.direct, live, { advertiserId, sweepId: 1n, low: 1n, high: 20n });
      const later = { advertiserId, sweepId: 2n, low: 11n, high: 30n };
      return {
        programs: {
          sweep: (actor) => endSweep(stage.database(actor.name), backfill, later),
          audit: (actor) => endCertificates(stage.database(actor.name), advertiserId, [5n], 'hidden'),
        },
        mortal: ['sweep'],
        async check() {
          const rows = await stage.query<{ certificate: string }>(
            `SELECT certificate FROM intake.coverage WHERE advertiser_id = $1 AND 5 BETWEEN low AND high`,
            [advertiserId],
          );
          assert.deepEqual(rows, [{ certificate: 'unproven' }], 'P10: a hidden application is called proven');
        },
      };
    },
  }),

  'hand-over': (stage) => createHandOverOf(stage, false),
  'hand-over-twice': (stage) => createHandOverOf(stage, true),
} satisfies Scenarios;

// Hidden servers read by the product itself: HTTP, Postgres and the product's own sweeps, held against the truth and against the
// simulated reader. COVERAGE_E2E_SEEDS sets how many seeds, COVERAGE_E2E_FROM where they begin; of two seeds one stands still.
import { describe, expect } from 'vitest';
import { checkProof } from '../../examples/check-proof.ts';
import { wholeAxis } from '../../src/domain/coverage/position.ts';
import { Trouble } from '../../src/domain/trouble.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { type HeldLane, holdLane } from '../../src/sync/accounts/held-lane.ts';
import { readAgain, readNew, readToProof } from '../../src/sync/read/read-tasks.ts';
import type { ReadContext, SweepDeps, SweepSummary } from '../../src/sync/read/sweep.ts';
import type { HiddenServer, Kind, ListReply, ListRequest, ServerOptions } from '../simulation/hidden-server.ts';
import { serveHidden } from '../simulation/http-face.ts';
import { kinds } from '../simulation/kinds.ts';
import { createMemory, runSweep } from '../simulation/simulated-reader.ts';
import { test as base, type TestDatabase } from '../support/database/test-database.ts';
import { openOwnSource } from '../support/servers/own-source.ts';
import { createRandom } from '../support/suite/random.ts';

const seeds = Number(process.env.COVERAGE_E2E_SEEDS ?? 40);
const firstSeed = Number(process.env.COVERAGE_E2E_FROM ?? 0);
const lagMs = 15 * 60_000;
const requestMs = 100;

const keepsAll = kinds.filter(({ keeps }) => keeps.filtersBeforeCap && keeps.capAboveHalf && keeps.oneCurrentList);
/** With something happening several times a second, a sweep of these follows the arrivals for thousands of requests. */
const isBusy = ({ name }: Kind) => /churn|mix-order-modified/.test(name);
/** A source that refuses single questions by how fast they come is waited for. */
const isSlow = ({ name }: Kind) => name === 'forbidden-when-fast';
const kindsInUse = keepsAll.filter((kind) => !isBusy(kind) && !isSlow(kind));
/** Where single questions fail, the product asks again, asks another question in between, and keeps what failed for the next sweep. */
const comparable = kindsInUse.filter(({ name }) => !name.startsWith('poison'));

const test = base.extend('store', { scope: 'file' }, async ({ database }, { onCleanup }) => {
  const store = openStore({ url: database.url, role: 'test', privacyKey: Buffer.from('a key for tests') });
  onCleanup(() => store[Symbol.asyncDispose]());
  return store;
});

interface Case {
  readonly kind: Kind;
  readonly seed: number;
  readonly options: ServerOptions;
}

/** Every kind in turn; small accounts and pages of every size, so that a sweep stays within some dozens of requests. */
function toCase(seed: number, list: readonly Kind[], still: boolean): Case {
  const random = createRandom(seed);
  const kind = list[(seed * 37) % list.length] as Kind;
  const page = random.pick([3, 16, 20, 30, 60]);
  const rows = random.between(0, page === 3 ? 8 : 80);
  return { kind, seed, options: { rows, page, still, startMs: Math.floor(Date.now() / 1_000) * 1_000 } };
}

/**
 * A world in which hundreds apply within minutes is drawn again: a sweep of it follows the arrivals for thousands of requests. Of 32 seeds
 * five were such, and asked three quarters of all requests.
 */
function toSmallCase(seed: number): Case {
  for (let draw = 0; ; draw++) {
    const one = { ...toCase(seed, kindsInUse, false), seed: seed + 1_000 * draw };
    const world = one.kind.create(one.seed, one.options);
    const startMs = one.options.startMs ?? 0;
    world.list(anything, startMs + 60_000);
    world.passMinutes(startMs + 360_000);
    if (world.presentAt(startMs + 360_000).length <= mostSoon) return one;
  }
}

const mostSoon = 150;
const anything: ListRequest = { afterId: null, beforeId: null, afterDate: null, beforeDate: null };

/** A hidden server with a virtual clock that moves with every request, and a log of what it was asked. */
class Watched implements HiddenServer {
  readonly kind: string;
  readonly seed: number;
  readonly isHeavy = false;
  readonly asked: string[] = [];
  readonly #server: HiddenServer;
  now: number;

  constructor({ kind, seed, options }: Case) {
    this.#server = kind.create(seed, options);
    [this.kind, this.seed, this.now] = [kind.name, seed, options.startMs ?? 0];
  }

  list(request: ListRequest, atMs: number): ListReply {
    const reply = this.#server.list(request, atMs);
    const bounds = [request.afterId, request.beforeId, request.afterDate, request.beforeDate];
    this.asked.push(`${bounds.join(' ')}: ${reply.status} ${reply.rows.map(({ id }) => id).join(' ')}`);
    return reply;
  }

  presentThroughout = (fromMs: number, toMs: number) => this.#server.presentThroughout(fromMs, toMs);
  presentAt = (atMs: number) => this.#server.presentAt(atMs);
  passNight = (atMs: number) => this.#server.passNight(atMs);
  passMinutes = (atMs: number) => this.#server.passMinutes(atMs);
}

interface OpenAccount extends AsyncDisposable {
  readonly deps: SweepDeps;
  readonly task: ReadContext & { readonly lane: HeldLane };
  readonly advertiserId: bigint;
}

/** Opens a source and the live lane of an account of its own. */
async function openAccount(store: Store, server: Watched, account: number): Promise<OpenAccount> {
  const stack = new AsyncDisposableStack();
  const clock = () => {
    server.now += requestMs;
    return server.now;
  };
  const face = stack.use(await serveHidden(server, { clock, advertiserId: account }));
  const source = stack.use(openOwnSource({ url: face.url, credential: 'any' }));
  const name = `account ${account}`;
  const advertiser = await store.advertisers.ensure(name, BigInt(account));
  const { signal } = new AbortController();
  const lane = stack.use(await holdLane(store, { name, lane: 'live', owner: 'test', leaseMs: 120_000, signal }));
  const task = { lane, advertiser, lagMs, startAt: null };
  return {
    deps: { store, source },
    task,
    advertiserId: BigInt(account),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function loadIds(database: TestDatabase, advertiserId: bigint): Promise<Set<bigint>> {
  const rows = await database.query<{ id: string }>(
    `SELECT application_id::text AS id FROM intake.applications WHERE advertiser_id = $1`,
    [advertiserId],
  );
  return new Set(rows.map(({ id }) => BigInt(id)));
}

const isTrusted = ({ certificate, risk }: Pick<SweepSummary, 'certificate' | 'risk'>) =>
  certificate !== 'unproven' && risk !== 'doubt';

/** Reads an account for two days as the worker does; gives the sweeps that lost someone without saying so. */
async function findSilentLosses(database: TestDatabase, store: Store, one: Case, account: number): Promise<string[]> {
  const server = new Watched(one);
  await using opened = await openAccount(store, server, account);
  const { deps, task, advertiserId } = opened;
  const losses: string[] = [];
  let isAccountTrusted = true;
  const judge = async (name: string, from: bigint, run: () => Promise<SweepSummary>) => {
    const startedAt = server.now;
    const summary = await run().catch((error: unknown) => {
      if (name !== 'poll' || !(error instanceof Trouble)) throw error;
      return null;
    });
    // The poll says that the source is in trouble.
    if (summary === null) return;
    const held = await loadIds(database, advertiserId);
    const lost = server.presentThroughout(startedAt, server.now).filter((id) => id >= from && !held.has(id));
    if (name !== 'poll') isAccountTrusted = isTrusted(summary);
    if (lost.length === 0 || !isTrusted(summary) || !isAccountTrusted) return;
    // An id that cannot be read stands against the whole account, also where a later poll does not repeat it.
    if (!isTrusted(await store.reports.loadVerdict(task.advertiser.advertiserId))) return;
    losses.push(`${one.kind.name} seed ${one.seed}: ${name} ${summary.certificate} (${summary.reason}) lost ${lost}`);
  };
  const poll = async () => {
    server.now += 300_000;
    server.passMinutes(server.now);
    const { pollFrom } = await store.sweeps.loadSyncState({ advertiserId, lagMs });
    await judge('poll', pollFrom ?? 1n, () => readNew(deps, task));
  };
  await judge('first sweep', 1n, () => readAgain(deps, task, wholeAxis));
  for (let polls = 0; polls < 2; polls++) await poll();
  await database.query(
    `UPDATE intake.applications SET first_seen_at = first_seen_at - interval '20 hours' WHERE advertiser_id = $1`,
    [advertiserId],
  );
  server.now += 20 * 3_600_000;
  server.passNight(server.now);
  await judge('recheck', 1n, () => readAgain(deps, task, wholeAxis));
  await poll();
  // The proof has the times of the first sweep.
  await database.query(
    `UPDATE intake.applications SET first_seen_at = first_seen_at + interval '20 hours'
     WHERE advertiser_id = $1 AND first_seen_at < now() - interval '10 hours'`,
    [advertiserId],
  );
  return [...losses, ...(await findUnsupported(store, one, advertiserId))];
}

/** What the checker of proofs, which shares no code with the product, finds in the evidence of both sweeps. */
async function findUnsupported(store: Store, { kind, seed }: Case, advertiserId: bigint): Promise<string[]> {
  const report = checkProof(await store.evidence.withProofs(advertiserId, ({ lines }) => Array.fromAsync(lines)));
  if (report.supported) return [];
  const findings = [...report.findings, ...report.certificates.flatMap((one) => one.findings)];
  return [`${kind.name} seed ${seed}: the proof is refused: ${JSON.stringify(findings[0])}`];
}

interface Compared {
  readonly certificate: string;
  readonly risk: string;
  readonly reason: string;
  readonly asked: readonly string[];
}

/** The first sweep and the recheck of a list that stands still: by the product, and by the simulated reader. */
async function readTwice(database: TestDatabase, store: Store, one: Case, account: number) {
  const server = new Watched(one);
  const model = new Watched(one);
  const memory = createMemory(model.now);
  await using opened = await openAccount(store, server, account);
  const pairs: { readonly product: Compared; readonly model: Compared }[] = [];
  for (let nth = 0; nth < 2; nth++) {
    const summary = await readToProof(opened.deps, { ...opened.task, purpose: 'recheck', parallel: 1 }, wholeAxis);
    const seed = await loadSeed(database, opened.advertiserId);
    const known = memory.held.size > 0;
    const { done } = runSweep(model, memory, { seed, known, pauseMs: requestMs, plan: { seed } });
    const product = toCompared(summary, server);
    pairs.push({ product: { ...product, asked: withoutChecks(product.asked) }, model: toCompared(done, model) });
    memory.now += 1_000;
    server.now = memory.now;
  }
  return { pairs, held: await loadIds(database, opened.advertiserId), memory };
}

/** Where a sweep splits at random follows from its number. */
async function loadSeed(database: TestDatabase, advertiserId: bigint): Promise<number> {
  const [row] = await database.query<{ id: string }>(
    `SELECT max(sweep_id)::text AS id FROM intake.sweeps WHERE advertiser_id = $1`,
    [advertiserId],
  );
  return Number(BigInt(row?.id ?? 1) % 4_294_967_296n);
}

function toCompared({ certificate, risk, reason }: Omit<Compared, 'asked'>, server: Watched): Compared {
  return { certificate, risk, reason, asked: server.asked.splice(0) };
}

/** After a refusal the product asks one id filter alone: was it the mixture that was refused, or everything? */
function withoutChecks(asked: readonly string[]): string[] {
  const isRefused = (line: string | undefined) => /: 40[03] /.test(line ?? '');
  return asked.filter((_, nth) => !isRefused(asked[nth - 1]));
}

/** What the two did differently, from the first question on; null when they did the same. */
function findDifference(product: Compared, model: Compared): string | null {
  const at = product.asked.findIndex((line, nth) => line !== model.asked[nth]);
  const nth = at === -1 && model.asked.length > product.asked.length ? product.asked.length : at;
  const worth = ({ certificate, risk, reason }: Compared) => `${certificate}, ${risk}: ${reason}`;
  if (nth === -1 && worth(product) === worth(model)) return null;
  const told = [product, model].map(
    (one) => `${one.asked.length} requests, ${worth(one)}; ${one.asked[nth] ?? 'none'}`,
  );
  return `question ${nth + 1}\n  product: ${told[0]}\n  model:   ${told[1]}`;
}

const seedsOf = (parity: 0 | 1) =>
  Array.from({ length: seeds }, (_, nth) => firstSeed + nth).filter((seed) => seed % 2 === parity);

/** `npm test` runs the cheapest seed. */
const toTags = (seed: number) => (seed === 12 ? [] : ['slow']);

// Some at a time, since most of a sweep is waiting; each a test of its own, so that no number of them is too many for a slow machine.
describe.concurrent('on servers that keep the assumptions', () => {
  for (const seed of seedsOf(0)) {
    const name = `the product loses nobody whom it calls read, and its proof checks: seed ${seed}`;
    test(name, { tags: toTags(seed) }, async ({ database, store }) => {
      expect(await findSilentLosses(database, store, toSmallCase(seed), 1_000_000 + seed)).toEqual([]);
    });
  }
});

describe.concurrent('on a list that stands still', () => {
  for (const seed of seedsOf(1)) {
    const title = `the product asks what the simulated reader asks, and comes to the same certificate: seed ${seed}`;
    test(title, { tags: toTags(seed) }, async ({ database, store }) => {
      // Some kinds change by the number of requests or by chance; the two send the same requests in the same order.
      const differences: string[] = [];
      const one = toCase(seed, comparable, true);
      const { pairs, held, memory } = await readTwice(database, store, one, 2_000_000 + seed);
      for (const [nth, { product, model }] of pairs.entries()) {
        const difference = findDifference(product, model);
        const name = `${one.kind.name} seed ${seed}, ${one.options.rows} rows by ${one.options.page}, sweep ${nth + 1}`;
        if (difference !== null) differences.push(`${name}, ${difference}`);
      }
      const unlike = [...new Set(memory.held.keys()).symmetricDifference(held)];
      if (unlike.length > 0) differences.push(`${one.kind.name} seed ${seed}: only one of the two holds ${unlike}`);
      expect(differences).toEqual([]);
    });
  }
});

// The simulated list servers themselves: a kind is what it says it is.
import { describe, expect, it } from 'vitest';
import { Draws } from '../simulation/draws.ts';
import {
  defaultStartMs,
  type HiddenServer,
  isFailure,
  type Kind,
  type ListReply,
  type ListRequest,
} from '../simulation/hidden-server.ts';
import { serveHidden } from '../simulation/http-face.ts';
import { kindNamed, kinds } from '../simulation/kinds.ts';

const everything: ListRequest = { afterId: null, beforeId: null, afterDate: null, beforeDate: null };

/** Questions of every shape, narrow and wide, some of them twice. */
function toQuestions(ids: readonly bigint[], draws: Draws, count: number): ListRequest[] {
  const lowest = ids[0] ?? 1n;
  const bound = () => (ids[draws.int(0, Math.max(0, ids.length - 1))] ?? lowest) + BigInt(draws.int(-1, 1));
  const questions: ListRequest[] = [];
  for (let left = count; left > 0; left--) {
    const [one, other] = [bound(), bound()];
    const [low, high] = one < other ? [one, other] : [other, one];
    const shape = draws.int(0, 6);
    if (shape === 0) questions.push(everything);
    else if (shape === 1) questions.push({ ...everything, afterId: one });
    else if (shape === 2) questions.push({ ...everything, beforeId: one });
    else if (shape === 3 && left < count) questions.push(questions[draws.int(0, questions.length - 1)] ?? everything);
    else questions.push({ ...everything, afterId: low, beforeId: high });
  }
  return questions;
}

/** What contradicts the three assumptions in the answers of one sweep, seen from outside. */
function runChecks(kind: Kind, seed: number, nights = 0): string[] {
  const server = kind.create(seed);
  const draws = new Draws(`draws ${seed}`);
  let at = defaultStartMs + 1000 + nights * 86_400_000;
  if (nights > 0) server.passNight(at);
  const sweep: Sweep = {
    server,
    found: [],
    mostRows: 0,
    mostBytes: 0,
    cuts: [],
    bytes: new Map(),
    dated: new Set(),
    isSorted: true,
  };
  const tick = () => {
    at += draws.chance(0.5) ? draws.int(1, 60) : draws.int(60, 3000);
    return at;
  };
  const questions = toQuestions(server.presentAt(at), draws, 50);
  for (const question of questions) ask(sweep, question, tick());
  probe(sweep, kind, draws, tick);
  for (const cut of sweep.cuts) {
    const largest = cut.missing.reduce(
      (most, id) => Math.max(most, sweep.bytes.get(id) ?? Number.POSITIVE_INFINITY),
      0,
    );
    // A page that holds nothing while rows match has no capacity at all.
    if (cut.rows === 0 && sweep.mostRows > 0) sweep.found.push('capAboveHalf');
    if (2 * cut.rows < sweep.mostRows && 2 * (cut.bytes + largest) < sweep.mostBytes) sweep.found.push('capAboveHalf');
  }
  // Without order, what fills a quarter of a page hides, and hides what follows it.
  const isLarge = [...sweep.bytes.values()].some((size) => size * 4 >= sweep.mostBytes);
  if (isLarge && sweep.cuts.length > 0 && sweep.mostRows >= 16 && !sweep.isSorted) sweep.found.push('capAboveHalf');
  return sweep.found;
}

interface Sweep {
  readonly server: HiddenServer;
  readonly found: string[];
  mostRows: number;
  mostBytes: number;
  readonly cuts: { readonly rows: number; readonly bytes: number; readonly missing: readonly bigint[] }[];
  readonly bytes: Map<bigint, number>;
  readonly dated: Set<bigint>;
  /** Pages came and were chosen in the order of ids, as far as cut ones show. */
  isSorted: boolean;
}

/** Asks one question and notes what the answer contradicts. */
function ask(sweep: Sweep, question: ListRequest, at: number): ListReply {
  const reply = sweep.server.list(question, at);
  if (reply.status === 400 || reply.status === 403 || isFailure(reply)) return reply;
  const present = new Set(sweep.server.presentAt(at));
  const { afterId, beforeId } = question;
  const shown = new Map(reply.rows.map((row) => [row.id, row.bytes]));
  for (const row of reply.rows) {
    sweep.bytes.set(row.id, row.bytes);
    if (row.submittedAt !== null) sweep.dated.add(row.id);
    if (!present.has(row.id)) sweep.found.push('oneCurrentList');
    if ((afterId !== null && row.id < afterId) || (beforeId !== null && row.id > beforeId))
      sweep.found.push('filtersBeforeCap');
  }
  if (question.afterDate !== null) return reply;
  const missing = [...present].filter(
    (id) => !shown.has(id) && (afterId === null || id > afterId) && (beforeId === null || id < beforeId),
  );
  const bytes = [...shown.values()].reduce((sum, size) => sum + size, 0);
  sweep.mostRows = Math.max(sweep.mostRows, shown.size);
  sweep.mostBytes = Math.max(sweep.mostBytes, bytes);
  if (missing.length > 0) sweep.cuts.push({ rows: shown.size, bytes, missing });
  const ids = [...shown.keys()];
  const isAhead = (one: bigint) => missing.every((id) => id > one);
  const isBehind = (one: bigint) => missing.every((id) => id < one);
  if (!ids.every(isAhead) && !ids.every(isBehind)) sweep.isSorted = false;
  return reply;
}

/** Asks for single rows, in all ways that some choice of bounds leaves one row. */
function probe(sweep: Sweep, kind: Kind, draws: Draws, tick: () => number): void {
  const began = tick();
  const ids = draws.shuffle(sweep.server.presentAt(began)).slice(0, 25);
  for (const id of ids) {
    const from = tick();
    const narrow = [
      [id - 1n, id + 1n],
      [id, id + 1n],
      [id - 1n, id],
      [id, id],
    ] as const;
    const seesWith = (afterDate: number | null) => {
      for (let nth = kind.repeats ? 1 : 15; nth > 0; nth--) {
        for (const [afterId, beforeId] of narrow) {
          const reply = ask(sweep, { afterId, beforeId, afterDate, beforeDate: null }, tick());
          // A failure is no answer, so it hides nothing.
          if (reply.status === 400 || isFailure(reply) || reply.rows.some((row) => row.id === id)) return true;
        }
        if (!sweep.server.presentThroughout(from, tick()).includes(id)) return true;
      }
      return false;
    };
    const sees = seesWith(null) && (!sweep.dated.has(id) || seesWith(1));
    if (!sees && sweep.server.presentThroughout(from, tick()).includes(id)) sweep.found.push('oneCurrentList');
  }
}

const seeds = Array.from({ length: 8 }, (_, at) => at + 1);
const isKeptWhole = ({ keeps }: Kind) => keeps.filtersBeforeCap && keeps.capAboveHalf && keeps.oneCurrentList;

/** Answers over a sweep, a night and some minutes, as text. */
function record(kind: Kind, seed: number): string {
  const server = kind.create(seed);
  const draws = new Draws(`record ${seed}`);
  const lines: string[] = [];
  let at = defaultStartMs + 1000;
  const note = (question: ListRequest) => {
    at += draws.int(1, 900);
    const { status, rows, bytes, echo, age } = server.list(question, at);
    lines.push(
      [
        status,
        rows.map((row) => `${row.unreadable ?? ''}${row.id}@${row.submittedAt}`).join(' '),
        bytes,
        echo,
        age,
      ].join('|'),
    );
  };
  for (const pass of [() => undefined, () => server.passNight(at), () => server.passMinutes(at)]) {
    at += 40_000_000;
    pass();
    for (const question of toQuestions(server.presentAt(at), draws, 25)) note(question);
    const day = Math.floor(at / 1000) - draws.int(0, 200 * 86_400);
    note({ ...everything, afterDate: day });
    note({ ...everything, beforeDate: day });
    note({ afterId: server.presentAt(at)[0] ?? 0n, beforeId: null, afterDate: day, beforeDate: day + 7 * 86_400 });
    lines.push(server.presentAt(at).join(' '));
  }
  return lines.join('\n');
}

describe('the hidden servers', { tags: ['slow'] }, () => {
  it('are many, and each has a name of its own', () => {
    expect(kinds.length).toBeGreaterThanOrEqual(80);
    expect(new Set(kinds.map((kind) => kind.name)).size).toBe(kinds.length);
    for (const kind of kinds) expect(kind.about).toMatch(/^[A-Z].*\.$/);
    expect(() => kindNamed('no such kind')).toThrow('no such kind');
  });

  it('give the same answers to the same questions for the same seed', () => {
    for (const kind of kinds) expect(record(kind, 7), kind.name).toBe(record(kind, 7));
  });

  it('differ from the friendly server in some seed', () => {
    const friendly = seeds.map((seed) => record(kindNamed('friendly'), seed));
    for (const kind of kinds.filter(({ name }) => name !== 'friendly'))
      expect(
        seeds.some((seed, at) => record(kind, seed) !== friendly[at]),
        kind.name,
      ).toBe(true);
  });

  it.each(kinds.filter(isKeptWhole))('of kind $name keep what they claim', (kind) => {
    for (const seed of seeds) expect(runChecks(kind, seed), `seed ${seed}`).toEqual([]);
  });

  it.each(kinds.filter((kind) => !isKeptWhole(kind)))('of kind $name show in some seed what they break', (kind) => {
    const found = new Set<string>();
    for (let seed = 1; seed <= 60 && found.size === 0; seed++)
      for (const breach of [...runChecks(kind, seed), ...runChecks(kind, seed, 1)]) found.add(breach);
    expect(found.size).toBeGreaterThan(0);
  });

  it('answer equal questions equally in a still world, but for those that leave it to chance', () => {
    for (const kind of kinds.filter(({ repeats }) => repeats))
      for (const seed of seeds) {
        const server = kind.create(seed, { still: true });
        const draws = new Draws(`repeats ${seed}`);
        let at = defaultStartMs;
        for (const question of toQuestions(server.presentAt(at), draws, 20)) {
          at += 500;
          const [one, two, three] = [0, 0, 0].map(() =>
            server
              .list(question, at)
              .rows.map(({ id }) => id)
              .join(),
          );
          // A deploy may come between two of the three.
          expect(one === two || two === three, kind.name).toBe(true);
        }
      }
  });

  it('know which rows were there all the time', () => {
    for (const seed of seeds) {
      const server = kindNamed('churn').create(seed);
      const from = defaultStartMs + 1000;
      const first = server.presentAt(from);
      const last = new Set(server.presentAt(from + 30_000));
      const throughout = server.presentThroughout(from, from + 30_000);
      expect(throughout).toEqual(first.filter((id) => last.has(id)));
      server.passNight(from + 40_000_000);
      expect(server.presentThroughout(from, from + 30_000)).toEqual(throughout);
    }
  });

  it('have as many rows as asked for', () => {
    const server = kindNamed('order-date').create(3, { rows: 20_000, page: 100, still: true });
    expect(server.presentAt(defaultStartMs)).toHaveLength(20_000);
    expect(server.list(everything, defaultStartMs).rows).toHaveLength(100);
  });
});

describe('what one night, one row or one run of rows does', () => {
  const at = defaultStartMs + 1000;
  const create = (name: string, seed: number) => kindNamed(name).create(seed, { rows: 300, page: 10, still: true });
  const alone = (id: bigint): ListRequest => ({ ...everything, afterId: id - 1n, beforeId: id + 1n });

  it.each(['poison-500-by-id', 'poison-500-by-hash', 'poison-broken-body'])('%s fails for some rows only', (name) => {
    let poisoned = 0;
    for (const seed of seeds) {
      const server = create(name, seed);
      const replies = server.presentAt(at).map((id) => ({ id, reply: server.list(alone(id), at) }));
      poisoned += replies.filter(({ reply }) => isFailure(reply)).length;
      for (const { id, reply } of replies)
        expect(isFailure(reply) ? [] : reply.rows.map((row) => row.id)).toEqual(isFailure(reply) ? [] : [id]);
    }
    expect(poisoned).toBeGreaterThan(0);
    expect(poisoned).toBeLessThan(seeds.length * 30);
  });

  it('mass-deletion leaves nine in ten at most', () => {
    for (const seed of seeds) {
      const server = create('mass-deletion', seed);
      const before = server.presentAt(at);
      server.passNight(at + 40_000_000);
      const after = new Set(server.presentAt(at + 40_000_000));
      expect(before.filter((id) => after.has(id)).length).toBeLessThanOrEqual(before.length * 0.9);
    }
  });

  it('thinned-runs answers nothing although rows follow', () => {
    const longest = seeds.map((seed) => {
      const server = create('thinned-runs', seed);
      const present = server.presentAt(at);
      const isHidden = (id: bigint) => server.list({ ...everything, afterId: id }, at).rows.length === 0;
      return present.slice(0, -1).filter(isHidden).length;
    });
    expect(Math.max(...longest)).toBeGreaterThan(0);
  });

  it.each(['404', '204', 'no-body'])('nothing-%s says nothing', (name) => {
    for (const seed of seeds) {
      expect(create(`nothing-${name}-from-the-start`, seed).list(everything, at).rows).toEqual([]);
      const server = create(`nothing-${name}-after-a-night`, seed);
      expect(server.list(everything, at).rows.length).toBeGreaterThan(0);
      server.passNight(at + 40_000_000);
      const { status, rows, body } = server.list(everything, at + 40_000_000);
      expect(rows).toEqual([]);
      expect(body ?? String(status)).toBe(name === 'no-body' ? 'none' : name);
    }
  });
});

describe('the HTTP face', () => {
  it('serves each answer in the size that the reply tells', async () => {
    const clock = () => defaultStartMs + 5000;
    const options = { rows: 30, page: 10, still: true };
    const expected = kindNamed('ids-above-double').create(5, options).list(everything, clock());
    await using face = await serveHidden(kindNamed('ids-above-double').create(5, options), { clock, advertiserId: 77 });
    const response = await fetch(`${face.url}/v1/advertiser/applications`);
    const text = await response.text();
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(text).toHaveLength(expected.bytes);
    for (const row of expected.rows) expect(text).toContain(`{"ID":${row.id},`);
    const list = JSON.parse(text).JobApplications;
    expect(list).toMatchObject({ AdvertiserID: 77, AfterID: null, BeforeDate: null });
    expect(JSON.stringify(list.JobApplicationsList[0])).toHaveLength(expected.rows[0]?.bytes ?? 0);
    expect(list.JobApplicationsList[0].DateSubmitted).toBe(
      `/Date(${(expected.rows[0]?.submittedAt ?? 0) * 1000}+1000)/`,
    );
  });

  it('reads filters, echoes them, and tells age and emptiness', async () => {
    let now = defaultStartMs;
    const clock = () => now;
    await using face = await serveHidden(kindNamed('cache-day-with-age').create(2, { rows: 5 }), { clock });
    const url = `${face.url}/v1/advertiser/applications?afterid=1&beforedate=2030-01-01T10:00:00`;
    await (await fetch(url)).text();
    now += 90_000;
    const again = await fetch(url);
    expect(again.headers.get('age')).toBe('90');
    expect((await again.json()) as object).toMatchObject({
      JobApplications: { AfterID: '1', BeforeDate: '/Date(1893456000000+1000)/' },
    });
    await using empty = await serveHidden(kindNamed('empty-204').create(2, { rows: 0 }), { clock });
    expect((await fetch(`${empty.url}/v1/advertiser/applications`)).status).toBe(204);
    expect((await fetch(`${empty.url}/v1/advertiser/applications?afterid=x`)).status).toBe(400);
    expect((await fetch(`${empty.url}/v1/other`)).status).toBe(404);
  });

  it('fails as the reply tells', async () => {
    const clock = () => defaultStartMs;
    const ask = async (name: string) => {
      await using face = await serveHidden(kindNamed(name).create(2, { rows: 600, page: 600 }), { clock });
      const response = await fetch(`${face.url}/v1/advertiser/applications`);
      return { status: response.status, text: await response.text() };
    };
    expect((await ask('poison-500-by-id')).status).toBe(500);
    const broken = await ask('poison-broken-body');
    expect(broken.status).toBe(200);
    expect(() => JSON.parse(broken.text)).toThrow('JSON');
    expect(await ask('nothing-no-body-from-the-start')).toEqual({ status: 200, text: '' });
  });
});

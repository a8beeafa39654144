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
  probe(sweep, draws, tick);
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
function probe(sweep: Sweep, draws: Draws, tick: () => number): void {
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
      for (let nth = 15; nth > 0; nth--) {
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
  it('give the same answers for the same seed, and each kind others than the friendly one in some seed', () => {
    const [friendly] = kinds;
    const answers = seeds.map((seed) => record(kindNamed('friendly'), seed));
    for (const kind of kinds) {
      expect(record(kind, 7), kind.name).toBe(record(kind, 7));
      const isOther = seeds.some((seed, at) => record(kind, seed) !== answers[at]);
      expect(isOther, kind.name).toBe(kind !== friendly);
    }
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
});

// The rules of the coverage logic, each on a small server that does one thing.
import { describe, expect, test } from 'vitest';
import { begin } from '../../../src/domain/coverage/coverage.ts';
import { learn } from '../../../src/domain/coverage/learn.ts';
import { lastPosition, type Position } from '../../../src/domain/coverage/position.ts';
import type { PageAnswer, Question } from '../../../src/domain/coverage/question.ts';
import type { HiddenServer, ListReply, ListRequest } from '../../simulation/hidden-server.ts';
import { startMs } from '../../simulation/judge.ts';
import { createMemory, runSweep, type SweepOptions } from '../../simulation/simulated-reader.ts';

const ids = (count: number, from = 1_000n) => Array.from({ length: count }, (_, nth) => from + BigInt(nth * 3));

/** What a list does. Tests change it between two sweeps. */
interface Source {
  list: readonly bigint[];
  /** Every page with this id fails. */
  poison: bigint | null;
  /** Dropped from a page after it was cut off. */
  withdrawn: ReadonlySet<bigint>;
  /** Every answer is an empty list. */
  isSilent: boolean;
  /** An application arrives before every third answer. */
  isBusy: boolean;
  /** The answer to this question leaves this id out. */
  hides: (id: bigint, request: ListRequest) => boolean;
  /** This question is not answered. */
  fails: (request: ListRequest) => boolean;
  /** The ids up to this one are no numbers on the wire. */
  unreadableTo: bigint;
  /** So many elements without a readable id come with every answer. */
  litter: number;
  /** The bounds of a question belong to its answer. */
  isInclusive: boolean;
  page: number;
  asked: ListRequest[];
}

/** A list by id with pages of 50 rows. */
function serve(list: readonly bigint[]) {
  const source: Source = {
    list,
    poison: null,
    withdrawn: new Set(),
    isSilent: false,
    isBusy: false,
    hides: () => false,
    fails: () => false,
    unreadableTo: 0n,
    litter: 0,
    isInclusive: false,
    page: 50,
    asked: [],
  };
  const old = new Set(list);
  const answer = (request: ListRequest, atMs: number): ListReply => {
    source.asked.push(request);
    if (source.isBusy && source.asked.length % 3 === 0) source.list = [...source.list, (source.list.at(-1) ?? 0n) + 3n];
    const wider = source.isInclusive ? 1n : 0n;
    const [after, before] = [(request.afterId ?? 0n) - wider, (request.beforeId ?? lastPosition + 1n) + wider];
    const shown = source.list
      .filter((id) => id > after && id < before && !source.hides(id, request))
      .slice(0, source.page)
      .filter((id) => !source.withdrawn.has(id))
      .map((id) => ({
        id,
        submittedAt: old.has(id) ? 1_700_000_000 : atMs / 1_000,
        bytes: 500,
        ...(id <= source.unreadableTo && { unreadable: true as const }),
      }));
    if (source.fails(request) || shown.some(({ id }) => id === source.poison))
      return { status: 500, rows: [], bytes: 0, echo: 'absent', age: null };
    const litter = Array.from({ length: source.litter }, () => {
      return { id: 0n, submittedAt: null, bytes: 500, unreadable: true as const };
    });
    const rows = source.isSilent ? [] : [...shown, ...litter];
    return { status: 200, rows, bytes: 400 + rows.length * 501, echo: 'matches', age: null };
  };
  const server: HiddenServer = {
    kind: 'plain',
    isHeavy: false,
    seed: 1,
    list: answer,
    presentThroughout: () => source.list.filter((id) => !source.withdrawn.has(id)),
    presentAt: () => [...source.list],
    passNight: () => undefined,
    passMinutes: () => undefined,
  };
  const memory = createMemory(startMs);
  const sweep = (options: SweepOptions = {}) => {
    memory.now += 48 * 3_600_000;
    source.asked = [];
    return runSweep(server, memory, options);
  };
  return { source, memory, sweep };
}

describe('an application that makes every page with it fail', () => {
  const list = ids(400);
  const poison = list[123] as Position;

  test('is not asked for again, and no question crosses it, if it is known', () => {
    const { source, sweep } = serve(list);
    source.poison = poison;
    const { done, lost } = sweep({ plan: { unreadable: [poison] } });
    expect(lost).toEqual([]);
    expect(done).toMatchObject({ certificate: 'assumed', reason: `all but id ${poison}: known as unreadable` });
    const byId = source.asked.filter(({ afterDate, beforeDate }) => afterDate === null && beforeDate === null);
    const crossing = byId.filter(
      ({ afterId, beforeId }) => (afterId ?? 0n) < poison && (beforeId ?? lastPosition) > poison,
    );
    expect(crossing).toEqual([]);
  });

  test('does not lower the certificate once an operator has accepted it', () => {
    const { source, sweep } = serve(list);
    source.poison = poison;
    const plan = { unreadable: [poison], accepted: [poison] };
    expect(sweep({ plan }).done).toMatchObject({ certificate: 'proven', open: [{ from: poison }] });
    expect(sweep({ plan: { accepted: [poison] } }).done).toMatchObject({ certificate: 'proven' });
    const another = list[300] as Position;
    const { done } = sweep({ plan: { unreadable: [poison, another], accepted: [poison] } });
    expect(done.reason).toBe(`all but id ${another}: known as unreadable`);
  });
});

describe('an answer that another one contradicts is a doubt', () => {
  const doubt = { certificate: 'assumed', risk: 'doubt' };

  test.for([50, 10])('if a cross-check left out what the next question shows, in pages of %i', (page) => {
    const { source, sweep } = serve(ids(page * 4));
    source.page = page;
    source.hides = (id, { afterId, beforeId }) => id === source.list[0] && afterId === null && beforeId === id + 1n;
    const { done, lost } = sweep();
    expect(lost).toEqual([]);
    expect(done).toMatchObject({ ...doubt, reason: 'an answer left out applications although it had room for them' });
  });

  test('if an application that its own question left out comes as the bound of another', () => {
    const list = Array.from({ length: 500 }, (_, nth) => 1_000n + BigInt(nth));
    const met = new Map<bigint, string>();
    for (const hidden of list.slice(0, 100)) {
      const { source, memory, sweep } = serve(list);
      source.isInclusive = true;
      source.hides = (id, { afterId, beforeId }) =>
        id === hidden && (afterId ?? 0n) < hidden && (beforeId ?? lastPosition) > hidden;
      const { done } = sweep();
      if (memory.held.has(hidden)) met.set(hidden, done.risk);
    }
    expect(met.size).toBeGreaterThan(5);
    // Where its own question left it out once more, it counts as deleted meanwhile.
    expect(new Set(met.values())).toEqual(new Set(['doubt', 'harmless']));
  });
});

test('a cross-check that is not answered is not said to agree', () => {
  const { source, sweep } = serve(ids(400));
  source.fails = ({ afterId }) => afterId === null;
  expect(sweep().done).toMatchObject({
    certificate: 'assumed',
    risk: 'harmless',
    reason: 'a cross-check was not answered',
  });
});

test('a page of nothing but unreadable ids keeps nobody else from being read', () => {
  const { source, memory, sweep } = serve(ids(400));
  source.unreadableTo = source.list[79] as bigint;
  const { done } = sweep();
  expect(memory.held.size).toBe(320);
  expect(done.certificate).not.toBe('unproven');
});

test.for([1, 40])('%i elements without a readable id in every answer do not keep a sweep asking for ever', (many) => {
  const { source, sweep } = serve(ids(many));
  source.litter = many;
  expect(sweep().requests).toBeLessThan(700);
});

describe('a poll that is shown nothing', () => {
  const list = ids(200);
  const plan = { rigor: 'poll', from: list[190] as Position, lifelines: [list[189], list[90], list[0]] as Position[] };

  test('asks older applications alone, and ends in a fault if none of them comes', () => {
    const { source, sweep } = serve(list);
    sweep();
    source.isSilent = true;
    const { done, requests } = sweep({ plan: { ...plan, rigor: 'poll' } });
    expect(done).toMatchObject({
      certificate: 'unproven',
      reason: 'the source shows none of the applications that it has shown before',
    });
    for (const id of plan.lifelines) expect(source.asked).toContainEqual(expect.objectContaining({ afterId: id - 1n }));
    expect(requests).toBeLessThan(10);
  });

  test('ends as any other if an older one comes: the newest are deleted', () => {
    const { source, sweep } = serve(list);
    sweep();
    source.list = list.slice(0, 180);
    expect(sweep({ plan: { ...plan, rigor: 'poll' } }).done).toMatchObject({
      certificate: 'assumed',
      risk: 'harmless',
    });
  });
});

test.for([1, 50])('a sweep does not follow applications that arrive for ever: pages of %d', (page) => {
  const { source, sweep } = serve(ids(30));
  source.isBusy = true;
  source.page = page;
  expect(sweep().requests).toBeLessThan(1_000);
  expect(sweep({ known: true }).requests).toBeLessThan(5_000);
});

test('a list of which nothing is left is counted as well, although no answer names all that it lacks', () => {
  const list = ids(1_200);
  const { source, sweep } = serve(list);
  expect(sweep().done.certificate).toBe('proven');
  source.isSilent = true;
  expect(sweep({ known: true }).done).toMatchObject({
    certificate: 'unproven',
    reason: 'too many stored applications are gone at once',
    absent: list.length,
  });
});

test.for([
  [700, 'ascending'],
  [1_200, 'ascending'],
  [2_000, 'descending'],
] as const)('a run of %d rows that are withdrawn after the cut is noticed: %s', ([run, order]) => {
  const list = ids(700 + run + 1_600);
  const { source, sweep } = serve(order === 'ascending' ? list : list.toReversed());
  source.page = 100;
  source.withdrawn = new Set(list.slice(700, 700 + run));
  const doubt = { certificate: 'assumed', risk: 'doubt' };
  expect(sweep().done).toMatchObject(doubt);
  expect(sweep({ known: true }).done).toMatchObject(doubt);
});

describe('long pages', () => {
  const rows = ids(20_000).map((id) => ({ id, at: 1_700_000_000n, bytes: 500 }));
  const page: PageAnswer = {
    ...{ kind: 'page', rows, unreadable: 0, bytes: 10_000_400, echo: 'matches', weakEmpty: false, cached: false },
    ...{ news: new Set(rows.map(({ id }) => id)), lacking: [] },
  };
  const question: Question = {
    ...{ purpose: 'range', covers: { from: 1n as Position, to: lastPosition }, afterId: 0n, beforeId: null },
    ...{ afterDate: null, beforeDate: null },
  };

  test('leave few open ranges', () => {
    expect(learn(begin({}), question, page).state.open.length).toBeLessThanOrEqual(17);
    const read = { ...begin({}), open: [] };
    expect(learn(read, { ...question, purpose: 'witness' }, page).state.open).toHaveLength(1);
  });
});

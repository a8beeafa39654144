// @module-tag slow
// Runs a small, fixed part of the exploration: two schedules of every scenario except the migrations, and the guards whose absence shows
// within the first schedules. `npm run interleave` runs all of it, with two or three preemptions.
import { describe, expect } from 'vitest';
import { test as base } from '../support/database/test-database.ts';
import { describe as describeFound, explore, fromText, play, playAgain, type Scenario, toText } from './explorer.ts';
import { areDependent, onEverything, openTransaction, toFootprint } from './footprint.ts';
import { exploreWithout, guards, isMet } from './guards.ts';
import { type ScenarioName, scenarioNames, toScenario } from './scenarios/all.ts';
import { type Actor, type Cast, type Choice, runSchedule } from './schedule.ts';
import { openStage, type Stage } from './stage.ts';

const test = base.extend('stage', { scope: 'file' }, async ({ database }, { onCleanup }) => {
  const stage = await openStage(database.url);
  onCleanup(() => stage[Symbol.asyncDispose]());
  return stage;
});

// One schedule of the migrations takes as long as all other scenarios together.
const quickNames = scenarioNames.filter((name) => !name.startsWith('migration'));
/** What each scenario sent: the statements with those before them on their connections. */
const sent = new Map<ScenarioName, (readonly [sql: string, before: string])[]>();

/** Plays a schedule, and notes its statements. */
async function playNoted(stage: Stage, name: ScenarioName, prefix: readonly Choice[]) {
  const statements = sent.get(name) ?? [];
  sent.set(name, statements);
  stage.gate.rewrite = (sql, before) => {
    statements.push([sql, before]);
    return sql;
  };
  try {
    return await playAgain(stage, toScenario(name, stage), prefix);
  } finally {
    stage.gate.rewrite = (sql) => sql;
  }
}

test.for(quickNames)(
  '%s: one client after the other, and one of them preempted, keep the promise',
  async (name, { stage }) => {
    const scenario = toScenario(name, stage);
    const playOut = async (prefix: readonly Choice[]) => {
      const played = await playNoted(stage, name, prefix);
      if (played === null) return [];
      const { outcome, error } = played;
      const choices = outcome.decisions.map(({ chosen }) => chosen);
      expect(error && describeFound(scenario, { number: 1, choices, outcome, error })).toBe(null);
      return outcome.decisions;
    };
    const decisions = await playOut([]);
    const preemptions = decisions.flatMap(({ others }, at) =>
      others
        .filter(({ cost }) => cost > 0)
        .map(({ choice }) => [...decisions.slice(0, at).map(({ chosen }) => chosen), choice]),
    );
    const middle = preemptions[Math.floor(preemptions.length / 2)];
    expect(middle).toBeDefined();
    await playOut(middle ?? []);
  },
);

describe('a guard that is taken out', () => {
  test.for(guards.filter(({ isQuick }) => isQuick))('is missed: $name', async (guard, { stage }) => {
    const { found, taken } = await exploreWithout(stage, guard, { preemptions: 2, most: 200 });
    expect(taken).toBeGreaterThan(0);
    expect(found?.error.message).toMatch(/./);
  });
});

test('every guard stands in a statement of its scenario', async ({ stage }) => {
  for (const name of quickNames) if (!sent.has(name)) await playNoted(stage, name, []);
  const lost: string[] = [];
  for (const guard of guards.filter(({ scenario, isQuick }) => sent.has(scenario) && !isQuick)) {
    if (isMet(guard, sent.get(guard.scenario) ?? [])) continue;
    // Its statement is sent in other schedules only.
    const { taken } = await exploreWithout(stage, guard, { preemptions: 1, most: 40 });
    if (taken === 0) lost.push(guard.name);
  }
  expect(lost).toEqual([]);
});

describe('a transaction begins at a time', () => {
  test('so BEGIN may not change places with the clock', () => {
    const begin = toFootprint('BEGIN ISOLATION LEVEL READ COMMITTED', false, openTransaction(), new Map());
    expect(areDependent(begin, onEverything)).toBe(true);
    const other = toFootprint(
      'SELECT 1 FROM intake.leases FOR SHARE',
      true,
      openTransaction(),
      new Map([['leases', []]]),
    );
    expect(areDependent(begin, other)).toBe(false);
  });

  test('so time may pass before a BEGIN', async ({ stage }) => {
    const work = (actor: Actor) =>
      stage.database(actor.name).transaction((tx) => tx.query('SELECT 1 FROM intake.leases FOR SHARE'));
    const twice = async (actor: Actor) => {
      await work(actor);
      await work(actor);
    };
    const cast = { programs: { a: twice }, lapses: [1_000] };
    const { decisions, lines } = await runSchedule(stage, cast, []);
    const begins = [...lines.entries()].filter(([, { text }]) => text.startsWith('BEGIN'));
    expect(begins.map(([at]) => decisions[at]?.others.map(({ choice }) => choice))).toEqual([['time'], ['time']]);
  });
});

describe('a transaction that reads from one snapshot takes it with its first query', () => {
  const neighbours = new Map(['advertisers', 'coverage', 'evidence'].map((name) => [name, []]));
  const write = `INSERT INTO intake.evidence VALUES (1)`;
  const commit = toFootprint(write, true, openTransaction(), neighbours);
  /** Returns the statements of one transaction that may not swap places with a committed write to evidence. */
  const dependent = (...statements: readonly string[]) => {
    const open = openTransaction();
    return statements.filter((sql) => areDependent(toFootprint(sql, false, open, neighbours), commit));
  };
  const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED;SET LOCAL jit = off';
  const isolation = 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY';
  const [first, second, third] = ['advertisers', 'coverage', 'evidence'].map(
    (name) => `SELECT 1 FROM intake.${name}`,
  ) as [string, string, string];

  test('so the first query depends on what the later ones read', () => {
    expect(dependent(begin, isolation, first, second, third)).toEqual([first, third]);
    expect(dependent(begin, first, second, third)).toEqual([third]);
  });

  test('which may be the lock that comes with BEGIN, and only until its end', () => {
    const locked = `${begin.replace('READ COMMITTED', 'REPEATABLE READ')};SELECT pg_advisory_xact_lock(1, 1)`;
    expect(dependent(locked, first, third)).toEqual([locked, third]);
    expect(dependent(begin, isolation, 'ROLLBACK', begin, first)).toEqual([]);
  });
});

test('a delete that cascades over several tables writes all of them', async ({ stage }) => {
  const erased = toFootprint(
    'DELETE FROM intake.screens WHERE advertiser_id = $1',
    true,
    openTransaction(),
    stage.neighbours,
  );
  const read = toFootprint('SELECT 1 FROM intake.screen_answers', true, openTransaction(), stage.neighbours);
  expect(areDependent(erased, read)).toBe(true);
});

describe('a schedule that does not end is told', () => {
  const limits = { steps: 40, stillMs: 1_000 };
  const lockIt = 'SELECT pg_advisory_xact_lock(9, 9)';

  test('where a client neither ends nor waits for a lock', async ({ stage }) => {
    const never = new Promise(() => {});
    const programs: Cast['programs'] = {
      a: (actor) =>
        stage.database(actor.name).transaction(async (tx) => {
          await tx.query(lockIt);
          await tx.query('SELECT 1');
          await never;
        }),
      b: (actor) => stage.database(actor.name).transaction((tx) => tx.query(lockIt)),
      c: (actor) => stage.database(actor.name).query('SELECT 2'),
    };
    const scenario: Scenario = {
      ...{ name: 'planted', promise: 'it ends' },
      open: async () => ({ programs, limits, check: async () => {} }),
    };
    const { error, outcome } = await play(stage, scenario, fromText('a2.b2.a1'));
    expect(error?.message.split('\n  ')).toEqual([
      'Nobody could go on for 1 s.',
      'a neither ends nor sends a statement.',
      `b waits for a lock of a: ${lockIt}`,
      'c can go on with: SELECT 2',
    ]);
    expect(outcome.lines.map(({ client }) => client).join('')).toBe('aabba');
  });

  test('where a client tries again and again', async ({ stage }) => {
    let isOver = false;
    const scenario: Scenario = {
      ...{ name: 'planted', promise: 'it ends' },
      async open() {
        const retry = async (actor: Actor) => {
          const db = stage.database(actor.name);
          while (!isOver) await db.query('SELECT 1 / 0').catch(() => {});
        };
        return { programs: { a: retry }, limits, check: async () => {} };
      },
    };
    try {
      const { found } = await explore(stage, scenario, { preemptions: 1 });
      const [first, second, ...rest] = found ? describeFound(scenario, found).split('\n') : [];
      expect(first).toBe('planted, schedule 1 (a40): The schedule has not ended after 40 steps.');
      expect(second).toBe('  a can go on with: SELECT 1 / 0');
      expect(rest.at(-1)).toBe('  a      SELECT 1 / 0');
    } finally {
      isOver = true;
    }
  });
});

test('a schedule is told and read again', () => {
  const choices = ['a', 'a', 'b', 'time', 'b2', 'a!', 'b'];
  expect(toText(choices.filter((one) => one !== 'b2'))).toBe('a2.b1.time1.a!.b1');
  expect(fromText('a2.b1.time1.a!.b1')).toEqual(['a', 'a', 'b', 'time', 'a!', 'b']);
});

// A small, fixed part of the exploration: the first schedules of every scenario, and the guards whose absence they show. All of it, to
// two or three preemptions, is `npm run interleave`.
import { describe, expect } from 'vitest';
import { test as base } from '../support/test-database.ts';
import { describe as describeFound, explore, fromText, toText } from './explorer.ts';
import { areDependent, onEverything, toFootprint } from './footprint.ts';
import { exploreWithout, guards } from './guards.ts';
import { scenarioNames, scenarios } from './scenarios/all.ts';
import { type Actor, runSchedule } from './schedule.ts';
import { openStage } from './stage.ts';

const test = base.extend('stage', { scope: 'file' }, async ({ database }, { onCleanup }) => {
  const stage = await openStage(database.url);
  onCleanup(() => stage[Symbol.asyncDispose]());
  return stage;
});

const most = 3;

// A schedule of migrations takes as long as all the others together.
test.for(scenarioNames.filter((name) => !name.startsWith('migration')))(
  '%s: the first schedules keep their promise',
  async (name, { stage }) => {
    const scenario = scenarios[name](stage);
    const { found, schedules } = await explore(stage, scenario, { preemptions: 1, most });
    expect(found && describeFound(scenario, found)).toBe(null);
    expect(schedules[0]).toBeGreaterThan(0);
  },
);

describe('a guard that is taken out', () => {
  test.for(guards.filter(({ isQuick }) => isQuick))('is missed: $name', async (guard, { stage }) => {
    const { found, taken } = await exploreWithout(stage, guard, { preemptions: 2, most: 200 });
    expect(taken).toBeGreaterThan(0);
    expect(found?.error.message).toMatch(/./);
  });
});

describe('a transaction begins at a time', () => {
  test('so BEGIN may not change places with the clock', () => {
    const begin = toFootprint('BEGIN ISOLATION LEVEL READ COMMITTED', false, new Set(), new Map());
    expect(areDependent(begin, onEverything)).toBe(true);
    const other = toFootprint('SELECT 1 FROM intake.leases FOR SHARE', true, new Set(), new Map([['leases', []]]));
    expect(areDependent(begin, other)).toBe(false);
  });

  test('so time may pass before a BEGIN', async ({ stage }) => {
    const work = (actor: Actor) =>
      stage.database(actor.name).transaction((tx) => tx.query('SELECT 1 FROM intake.leases FOR SHARE'));
    const twice = async (actor: Actor) => {
      await work(actor);
      await work(actor);
    };
    const cast = { programs: new Map([['a', twice]]), mortal: [], lapses: [1_000] };
    const { decisions, lines } = await runSchedule(stage, cast, []);
    const begins = [...lines.entries()].filter(([, { text }]) => text.startsWith('BEGIN'));
    expect(begins.map(([at]) => decisions[at]?.others.map(({ choice }) => choice))).toEqual([['time'], ['time']]);
  });
});

test('a schedule is told and read again', () => {
  const choices = ['a', 'a', 'b', 'time', 'b2', 'a!', 'b'];
  expect(toText(choices.filter((one) => one !== 'b2'))).toBe('a2.b1.time1.a!.b1');
  expect(fromText('a2.b1.time1.a!.b1')).toEqual(['a', 'a', 'b', 'time', 'a!', 'b']);
});

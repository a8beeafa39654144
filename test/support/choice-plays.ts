// Tests of the sandbox's choices: tables of what each option shows to a client.
import { expect, test } from 'vitest';
import { type Choices, describeOptions } from '../../src/dev/sandbox/behaviour/choices.ts';

/** Every choice by name, with what shows that it is played: a table, a test of its own, or several of these on one sandbox. */
export type Plays<Stage, Names extends keyof Choices> = {
  readonly [Name in Names]: Part<Stage, Choices[Name] & string> | readonly Part<Stage, Choices[Name] & string>[];
};

type Part<Stage, Option extends string> = ((stage: Stage) => unknown) | Table<Stage, Option>;

interface Table<Stage, Option extends string> {
  /** What is seen with each option. */
  readonly shows: Readonly<Record<Option, unknown>> | ((stage: Stage) => Readonly<Record<Option, unknown>>);
  readonly seen: (stage: Stage) => Promise<unknown>;
}

interface Chooser {
  readonly sandbox: { choose(some: Partial<Choices>): void };
}

/** One test per choice. A table must have a row for each option of its choice. */
export function testPlays<Stage extends Chooser & AsyncDisposable, Names extends keyof Choices>(
  plays: Plays<Stage, Names>,
  open: () => Promise<Stage>,
): void {
  test.each(Object.keys(plays) as Names[])('%s is played as chosen', async (name) => {
    await using stage = await open();
    for (const part of [plays[name]].flat() as Part<Stage, string>[]) {
      if (typeof part === 'function') await part(stage);
      else await playTable(stage, name, part);
    }
  });
}

async function playTable<Stage extends Chooser>(stage: Stage, name: keyof Choices, table: Table<Stage, string>) {
  const shows = typeof table.shows === 'function' ? table.shows(stage) : table.shows;
  expect(new Set(Object.keys(shows))).toEqual(new Set(describeOptions(name)));
  for (const [option, value] of Object.entries(shows)) {
    stage.sandbox.choose({ [name]: option });
    expect(await table.seen(stage), `${name} ${option}`).toEqual(value);
  }
}

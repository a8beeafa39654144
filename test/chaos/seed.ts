// A seed determines the plan: the number of workers and accounts, the behaviour of the source and the storage, and the schedule of faults.
// Pure: the same seed and length give the same plan, so a failure can be repeated.

import type { Choices } from '../../src/dev/sandbox/behaviour/choices.ts';
import { createRandom, type Random } from '../support/suite/random.ts';
import { faults } from './faults/faults.ts';
import type { Plan, PlannedFault } from './stage.ts';

/** Draws the plan of a seed, from all faults or from the given ones. */
export function toPlan(seed: number, seconds: number, only = Object.keys(faults)): Plan {
  const random = createRandom(seed);
  const accounts = random.pick([1, 1, 2]);
  const place = { onSmallDisk: random.chance(0.25), pooled: random.chance(0.3), onSmallSpool: random.chance(0.3) };
  return {
    seed,
    seconds,
    workers: random.between(2, 4),
    accounts,
    applications: random.between(20, 90),
    format: random.pick(['json', 'json', 'xml']),
    choices: toChoices(random),
    rate: createRandom(seed + 5_000_011).pick(['off', '400/s']),
    // From 2^53 on, a double cannot hold every id: it would silently become another number.
    firstId: createRandom(seed + 4_000_037).pick([100_001n, 2n ** 53n, 1_800_000_000_000_000_000n]),
    store: toStore(createRandom(seed + 6_000_047)),
    ...place,
    diesMigratingAt: random.chance(0.4) ? random.between(1, 60) : null,
    schedule: toSchedule(
      random,
      seconds * 1_000,
      only.filter((name) => {
        const { needs } = faults[name] ?? {};
        return needs === undefined || place[needs];
      }),
    ),
  };
}

/** Variants of S3: whether deleted objects stay as versions. */
function toStore(random: Random): Plan['store'] {
  return { versions: random.pick(['none', 'deletable'] as const) };
}

/** Draws only sources whose filters can enumerate everything. With other sources no reader could promise equality. */
function toChoices(random: Random): Partial<Choices> {
  const framing = random.pick(['chunked', 'contentLength', 'closeDelimited'] as const);
  return {
    order: random.pick(['ascending', 'descending', 'byDate', 'random', 'perRequest']),
    pageCap: random.pick([null, 9, 25, 60]),
    afterIdBound: random.pick(['exclusive', 'inclusive']),
    beforeIdBound: random.pick(['exclusive', 'inclusive']),
    empty: random.pick(['list', 'null', 'missingKey', 'emptyObject', 'nullResult', 'noContent', 'notFound']),
    topLevel: random.pick(['wrapped', 'unwrapped']),
    single: random.pick(['array', 'object']),
    keyCase: random.pick(['pascal', 'camel', 'lower']),
    extraMembers: random.chance(0.5),
    idSpacing: random.pick(['sparse', 'consecutive', 'wide']),
    idShape: random.pick(['number', 'text']),
    dateShape: random.pick(['milliseconds', 'escapedSlashes', 'iso']),
    xmlNamespace: random.pick(['none', 'default', 'prefixed']),
    xmlNull: random.pick(['iNil', 'xsiNil', 'absent']),
    xmlOrder: random.pick(['drawn', 'reversed', 'sorted']),
    charset: random.pick(['utf8', 'unlabelled']),
    hash: random.pick(['md5', 'sha256', 'upperCase', 'null', 'absent', 'constant', 'constant', 'volatile', 'long']),
    // If a body ends with its connection and its size is unknown, a truncated body looks the same as a whole one.
    size: framing === 'closeDelimited' ? 'true' : random.pick(['true', 'true', 'null']),
    href: random.pick(['relative', 'absolute', 'foreign', 'protocolRelative', 'parent', 'otherId', 'missing']),
    disposition: random.pick(['plain', 'extended', 'rawUtf8', 'traversal', 'missing']),
    framing,
    screenShape: random.pick(['object', 'array', 'unwrapped']),
    answerShape: random.pick(['drawn', 'arrays', 'objectsWhenOne']),
  };
}

/** Faults of every plan, and when they start, as a share of its length. Erasures and collections come later, when there is data. */
const always: Readonly<Record<string, number>> = {
  crashPoint: 0.05,
  cutFile: 0.15,
  deadFile: 0.2,
  endpoint: 0.22,
  collect: 0.25,
  retryAfter: 0.3,
  changingElement: 0.3,
  candidate: 0.35,
  erase: 0.4,
  databaseClock: 0.5,
  pausePage: 0.55,
};

/** Schedules the faults of every plan and, every 0.4 to 2.2 seconds, a random one. Each ends by the end of the plan or lasts 500 ms. */
function toSchedule(random: Random, lengthMs: number, only: readonly string[]): PlannedFault[] {
  const weighted = only.flatMap((name) => Array.from({ length: faults[name]?.weight ?? 0 }, () => name));
  const schedule: PlannedFault[] = [];
  const plan = (name: string, atMs: number) => {
    const [shortest, longest] = faults[name]?.lastsMs ?? [0, 0];
    const forMs = Math.min(random.between(shortest, longest), Math.max(500, lengthMs - atMs));
    schedule.push({ number: schedule.length, name, atMs, forMs });
  };
  for (const [name, share] of Object.entries(always)) if (only.includes(name)) plan(name, Math.round(share * lengthMs));
  for (let atMs = random.between(500, 2_500); atMs < lengthMs - 1_000; atMs += random.between(400, 2_200)) {
    plan(random.pick(weighted), atMs);
  }
  if (only.includes('pauseFile')) plan('pauseFile', Math.round(0.65 * lengthMs));
  return schedule.sort((a, b) => a.atMs - b.atMs);
}

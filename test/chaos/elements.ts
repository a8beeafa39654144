// List elements that cannot be stored and that have a member with a new value in every answer. Each element is one row in quarantine. An
// element whose person was erased does not come back.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/suite/random.ts';
import { untilDone } from './erasing.ts';
import type { Stage } from './stage.ts';

type ElementStage = Pick<Stage, 'cluster' | 'accounts' | 'runCommand' | 'count'>;

const mark = 'changing-';
/** Per stage, keyed by its list of accounts: the ids of erased elements. */
const erased = new WeakMap<object, Set<string>>();
let number = 0;

/** Lists one such element until the fault ends. Half of the elements are erased while they are listed. */
export async function showChangingElement(stage: ElementStage, random: Random): Promise<() => void> {
  const account = random.pick(stage.accounts);
  const id = `${mark}${++number}`;
  const fault = account.fault({
    kind: 'poison',
    on: 'list',
    times: null,
    json: `{"ID":"${id}","JobSeekerID":"${id}","Token":"{{volatile}}"}`,
    xml: `<JobApplication><ID>${id}</ID><JobSeekerID>${id}</JobSeekerID><Token>{{volatile}}</Token></JobApplication>`,
  });
  if (random.chance(0.5)) {
    await sleep(2_500);
    const erase = ['erase', '--job-seeker', id, '--yes', '--json'];
    const { code, output } = await untilDone(() => stage.runCommand(erase));
    if (code === 0 && output.includes('"quarantined":1')) {
      const known = erased.get(stage.accounts) ?? new Set();
      erased.set(stage.accounts, known.add(id));
      stage.count('elements erased');
    }
  }
  return () => account.clearFaults(fault);
}

/** Finds elements with several rows, and erased elements that have a row. */
export async function findChangingElements({ cluster, accounts }: ElementStage): Promise<string[]> {
  const rows = await cluster.query<{ id: string; n: number }>(
    `SELECT raw->>'ID' AS id, count(*)::int AS n FROM intake.quarantine WHERE raw->>'ID' LIKE '${mark}%' GROUP BY advertiser_id, 1`,
  );
  return [
    ...rows.filter(({ n }) => n > 1).map(({ id, n }) => `P15: the element ${id} has ${n} rows in quarantine`),
    ...rows
      .filter(({ id }) => erased.get(accounts)?.has(id))
      .map(({ id }) => `P17: the element ${id} was erased and is in quarantine`),
  ].slice(0, 3);
}

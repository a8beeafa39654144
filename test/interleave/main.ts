// `npm run interleave`: explores every scenario, and for each guard its scenario without the guard.
//   --scenario NAME   only this scenario (repeatable)      --preemptions N   at most N preemptions per schedule (default 2)
//   --most N          at most N schedules of each          --guards          only the guards
//   --scenarios       only the scenarios                   --guard TEXT      only the guards whose names contain TEXT
//   --replay SCHEDULE plays one schedule of one scenario and prints it statement by statement
import { parseArgs } from 'node:util';
import { migrate } from '../../src/store/postgres/migrations.ts';
import { openTestRun, toDatabaseUrl } from '../support/database/test-run.ts';
import { openTestServer } from '../support/database/test-server.ts';
import { describe, type Explored, explore, fromText, play, SetUpFailed, toText } from './explorer.ts';
import { exploreWithout, type Guard, guards } from './guards.ts';
import { type ScenarioName, scenarioNames, toScenario } from './scenarios/all.ts';
import { openStage } from './stage.ts';

const { values } = parseArgs({
  options: {
    scenario: { type: 'string', multiple: true },
    preemptions: { type: 'string', default: '2' },
    most: { type: 'string' },
    guards: { type: 'boolean', default: false },
    scenarios: { type: 'boolean', default: false },
    guard: { type: 'string' },
    replay: { type: 'string' },
  },
});

const chosen = scenarioNames.filter((name) => values.scenario?.includes(name) ?? true);
const unknown = values.scenario?.filter((name) => !scenarioNames.includes(name as ScenarioName)) ?? [];
if (unknown.length > 0) throw new Error(`There is no scenario ${unknown.join()}; there are ${scenarioNames.join()}.`);
const bounds = {
  preemptions: Number(values.preemptions),
  ...(values.most !== undefined && { most: Number(values.most) }),
};

await using owned = new AsyncDisposableStack();
const server = owned.use(
  await openTestServer({
    ...{ testDatabaseUrl: process.env.TEST_DATABASE_URL, dockerHost: process.env.DOCKER_HOST },
    ...{ root: new URL('../..', import.meta.url).pathname, say: (line) => console.error(line) },
  }),
);
const run = owned.use(await openTestRun(server.url, migrate));
const stage = owned.use(await openStage(toDatabaseUrl(server.url, run.template.name)));
let isRed = false;

function toCounts({ schedules, isComplete, deadlocks, diverged, ms }: Explored): string {
  const counts = `${schedules.join(' + ')} schedules${isComplete ? '' : ' (not all)'}, ${Math.round(ms / 100) / 10} s`;
  const more = [
    ...(deadlocks > 0 ? [`${deadlocks} deadlocks, each tried again`] : []),
    ...(diverged > 0 ? [`${diverged} left out`] : []),
  ];
  return [counts, ...more].join(', ');
}

/** Runs one scenario or guard. When its setup fails, prints the failure and lets the next one run. */
async function attempt(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof SetUpFailed)) throw error;
    console.log(`FAILED ${what}: ${error.message}`);
    isRed = true;
  }
}

async function replay(name: ScenarioName, schedule: string): Promise<void> {
  const scenario = toScenario(name, stage);
  const [without] = values.guard === undefined ? [] : guards.filter((one) => one.name.includes(values.guard ?? ''));
  without?.takeOut(stage);
  const { outcome, error } = await play(stage, scenario, fromText(schedule));
  const made = outcome.decisions.map((decision) => decision.chosen);
  isRed = error !== null;
  console.log(describe(scenario, { number: 1, choices: made, outcome, error: error ?? new Error('kept') }));
}

async function exploreScenario(name: ScenarioName): Promise<void> {
  const scenario = toScenario(name, stage);
  const explored = await explore(stage, scenario, bounds);
  console.log(`${explored.found ? 'BROKEN' : 'kept  '} ${name}: ${toCounts(explored)}`);
  if (explored.found) console.log(describe(scenario, explored.found));
  isRed ||= explored.found !== null;
}

async function exploreGuard(one: Guard): Promise<void> {
  const explored = await exploreWithout(stage, one, bounds);
  const { found } = explored;
  const verdict = found ? `found: ${found.error.message.split('\n')[0]} [${toText(found.choices)}]` : 'NOT FOUND';
  console.log(`${one.scenario} without ${one.name}: ${verdict}, ${toCounts(explored)}`);
  if (explored.taken === 0) console.log('  No statement had this guard.');
  if (found && values.guard !== undefined) console.log(describe(toScenario(one.scenario, stage), found));
  isRed ||= found === null;
}

const { replay: schedule } = values;
if (schedule !== undefined) {
  const [name] = chosen;
  if (chosen.length !== 1 || !name) throw new Error('--replay needs one --scenario.');
  await attempt(name, () => replay(name, schedule));
} else {
  if (!values.guards && values.guard === undefined)
    for (const name of chosen) await attempt(name, () => exploreScenario(name));
  for (const one of values.scenarios ? [] : guards) {
    if (!chosen.includes(one.scenario) || !one.name.includes(values.guard ?? '')) continue;
    await attempt(`${one.scenario} without ${one.name}`, () => exploreGuard(one));
  }
}

// A client that never ends would keep the process alive.
await owned.disposeAsync();
process.exit(isRed ? 1 : 0);

// The scenarios by name, as `--scenario` and the guards use them.
import type { Scenario } from '../explorer.ts';
import type { Scenarios, Stage } from '../stage.ts';
import { claimScenarios } from './claims.ts';
import { deletionScenarios } from './deletions.ts';
import { evidenceScenarios } from './evidence.ts';
import { fileScenarios } from './files.ts';
import { flagScenarios } from './flags.ts';
import { laneScenarios } from './lanes.ts';
import { orderScenarios } from './order.ts';
import { prefillScenarios } from './prefills.ts';
import { privacyScenarios } from './privacy.ts';
import { sharedScenarios } from './shared.ts';

const scenarios = {
  ...laneScenarios,
  ...fileScenarios,
  ...claimScenarios,
  ...deletionScenarios,
  ...flagScenarios,
  ...privacyScenarios,
  ...prefillScenarios,
  ...evidenceScenarios,
  ...orderScenarios,
  ...sharedScenarios,
} satisfies Scenarios;

export type ScenarioName = keyof typeof scenarios;
export const scenarioNames = Object.keys(scenarios) as ScenarioName[];

export const toScenario = (name: ScenarioName, stage: Stage): Scenario => ({ name, ...scenarios[name](stage) });

// The scenarios by the names under which they are asked for.
import type { Scenario } from '../explorer.ts';
import type { Stage } from '../stage.ts';
import { createFlagged, createInfected, createLateOrphan, createLifted, createOrphan } from './deletions.ts';
import { createBatch, createFlag, createReady, createReadyEqual, createReplaced } from './files.ts';
import {
  createEpochTwice,
  createHeartbeat,
  createMaintenance,
  createNewTwice,
  createOneLane,
  createSameOwner,
  createTwoLanes,
  createTwoWriters,
} from './lanes.ts';
import { createEraseFile, createErasePage, createErasePrefill, createEraseQuarantine } from './privacy.ts';
import { createEvents, createMigrations, createSlots } from './shared.ts';

export const scenarios = {
  'two-writers': createTwoWriters,
  'same-owner': createSameOwner,
  'epoch-twice': createEpochTwice,
  heartbeat: createHeartbeat,
  'two-lanes': createTwoLanes,
  'one-lane': createOneLane,
  'new-twice': createNewTwice,
  maintenance: createMaintenance,
  ready: createReady,
  'ready-equal': createReadyEqual,
  flag: createFlag,
  replaced: createReplaced,
  batch: createBatch,
  orphan: createOrphan,
  'orphan-late': createLateOrphan,
  infected: createInfected,
  flagged: createFlagged,
  lifted: createLifted,
  'erase-page': createErasePage,
  'erase-quarantine': createEraseQuarantine,
  'erase-file': createEraseFile,
  'erase-prefill': createErasePrefill,
  events: createEvents,
  slots: createSlots,
  migrations: createMigrations,
} satisfies Record<string, (stage: Stage) => Scenario>;

export type ScenarioName = keyof typeof scenarios;
export const scenarioNames = Object.keys(scenarios) as ScenarioName[];

// The scenarios by the names under which they are asked for.
import type { Scenario } from '../explorer.ts';
import type { Stage } from '../stage.ts';
import {
  createAdopted,
  createDeleters,
  createDrop,
  createFlagged,
  createInfected,
  createLateOrphan,
  createLifted,
  createLost,
  createOrphan,
  createPin,
} from './deletions.ts';
import {
  createBatch,
  createConfirmed,
  createFlag,
  createForward,
  createReady,
  createReadyEqual,
  createReparse,
  createReparseMissing,
  createReplaced,
  createTrust,
} from './files.ts';
import {
  createCoverage,
  createEpochTwice,
  createHeartbeat,
  createMaintenance,
  createNewAccount,
  createNewTwice,
  createOneLane,
  createSameOwner,
  createTwoLanes,
  createTwoWriters,
} from './lanes.ts';
import { createOrderBack, createOrderErase, createOrderLost, createOrderPage, createOrderRetry } from './order.ts';
import {
  createEraseAgain,
  createEraseFile,
  createErasePage,
  createErasePrefill,
  createEraseQuarantine,
} from './privacy.ts';
import { createEvents, createMigrations, createMigrationWorker, createSlots } from './shared.ts';

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
  'erase-again': createEraseAgain,
  'erase-prefill': createErasePrefill,
  trust: createTrust,
  forward: createForward,
  reparse: createReparse,
  'reparse-missing': createReparseMissing,
  confirmed: createConfirmed,
  drop: createDrop,
  lost: createLost,
  adopted: createAdopted,
  pin: createPin,
  deleters: createDeleters,
  coverage: createCoverage,
  'new-account': createNewAccount,
  'order-page': createOrderPage,
  'order-back': createOrderBack,
  'order-erase': createOrderErase,
  'order-retry': createOrderRetry,
  'order-lost': createOrderLost,
  events: createEvents,
  slots: createSlots,
  migrations: createMigrations,
  'migration-worker': createMigrationWorker,
} satisfies Record<string, (stage: Stage) => Scenario>;

export type ScenarioName = keyof typeof scenarios;
export const scenarioNames = Object.keys(scenarios) as ScenarioName[];

// The scenarios by name, as `--scenario` and the guards use them.
import type { Scenarios } from '../stage.ts';
import {
  createClaims,
  createCompared,
  createConfirmedDelete,
  createConfirmedOther,
  createDroppedConfirmations,
  createDropTwo,
  createLinked,
  createReleased,
  createRetried,
} from './claims.ts';
import {
  createAdopted,
  createDeleters,
  createDrop,
  createFlagged,
  createFoundInfected,
  createInfected,
  createLateOrphan,
  createLifted,
  createLiftedOrphan,
  createLost,
  createOrphan,
} from './deletions.ts';
import { evidenceScenarios } from './evidence.ts';
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
  createFlaggedTwice,
  createLiftedElsewhere,
  createLostAnnounced,
  createLostAnnouncedFlag,
  createLostFlag,
  createLostTwice,
  createLostVersion,
  createRecalledTwice,
  createReplacedFlagged,
  createVersion,
} from './flags.ts';
import { laneScenarios } from './lanes.ts';
import { orderScenarios } from './order.ts';
import { ownerScenarios } from './owner.ts';
import { prefillScenarios } from './prefills.ts';
import { privacyScenarios } from './privacy.ts';
import { pruningScenarios } from './pruning.ts';
import { sharedScenarios } from './shared.ts';

export const scenarios = {
  ...laneScenarios,
  ready: createReady,
  'ready-equal': createReadyEqual,
  flag: createFlag,
  replaced: createReplaced,
  batch: createBatch,
  claims: createClaims,
  released: createReleased,
  retried: createRetried,
  linked: createLinked,
  compared: createCompared,
  orphan: createOrphan,
  'orphan-late': createLateOrphan,
  'orphan-lifted': createLiftedOrphan,
  infected: createInfected,
  flagged: createFlagged,
  lifted: createLifted,
  'found-infected': createFoundInfected,
  ...privacyScenarios,
  ...prefillScenarios,
  trust: createTrust,
  forward: createForward,
  reparse: createReparse,
  'reparse-missing': createReparseMissing,
  confirmed: createConfirmed,
  'confirmed-other': createConfirmedOther,
  'confirmed-delete': createConfirmedDelete,
  'confirmations-dropped': createDroppedConfirmations,
  version: createVersion,
  'flagged-twice': createFlaggedTwice,
  'recalled-twice': createRecalledTwice,
  'replaced-flagged': createReplacedFlagged,
  'lifted-elsewhere': createLiftedElsewhere,
  drop: createDrop,
  'drop-two': createDropTwo,
  lost: createLost,
  'lost-flag': createLostFlag,
  'lost-announced': createLostAnnounced,
  'lost-announced-flag': createLostAnnouncedFlag,
  'lost-version': createLostVersion,
  'lost-twice': createLostTwice,
  adopted: createAdopted,
  ...ownerScenarios,
  deleters: createDeleters,
  ...evidenceScenarios,
  ...pruningScenarios,
  ...orderScenarios,
  ...sharedScenarios,
} satisfies Scenarios;

export type ScenarioName = keyof typeof scenarios;
export const scenarioNames = Object.keys(scenarios) as ScenarioName[];

// Processes that take a blob store at the same time.
import assert from 'node:assert/strict';
import type { BlobStore } from '../../../src/domain/blob.ts';
import {
  confirmIdentity,
  ensureRecordedStore,
  loadRecordedStore,
  planIdentity,
} from '../../../src/store/files/store-owner.ts';
import type { Database } from '../../../src/store/postgres/database.ts';
import { adoptStore, ensureOwned, type OwnerDeps } from '../../../src/sync/files/store-owner.ts';
import type { Actor } from '../schedule.ts';
import type { Scenarios, Situation, Stage } from '../stage.ts';
import { never } from './objects.ts';

function toDeps(db: Database, actor: Actor, identities: string[]): OwnerDeps {
  const blobs = {
    location: 'memory',
    list: async function* () {},
    loadIdentity: () => actor.act('load the identity', () => identities.at(-1) ?? null),
    replaceIdentity: (before: string | null, identity: string) =>
      actor.act('replace the identity', () => {
        const isUnchanged = (identities.at(-1) ?? null) === before;
        if (isUnchanged) identities.push(identity);
        return isUnchanged;
      }),
  } as Partial<BlobStore> as BlobStore;
  const blobStore = {
    load: () => loadRecordedStore(db),
    ensure: () => ensureRecordedStore(db),
    plan: (before: string | null, identity: string) => planIdentity(db, before, identity),
    confirm: (identity: string, location: string) => confirmIdentity(db, identity, location),
  };
  return { store: { blobStore }, blobs };
}

/** Two processes use a blob store for the first time, or adopt it; the first may die at any step. */
function createTaken(stage: Stage, first: typeof ensureOwned, other: typeof ensureOwned): Situation {
  return {
    promise: 'their database owns it afterwards, and nobody fails',
    async open() {
      await stage.query(`DELETE FROM intake.blob_store`);
      const identities: string[] = [];
      const run = (take: typeof ensureOwned) => (actor: Actor) =>
        take(toDeps(stage.database(actor.name), actor, identities), never);
      return {
        programs: { a: run(first), b: run(other) },
        mortal: ['a'],
        commitsApart: true,
        async check() {
          const [row] = await stage.query(`SELECT identity, next_identity FROM intake.blob_store`);
          const [identity] = [row?.identity, row?.next_identity].filter((text) => text === identities.at(-1));
          assert.ok(identity, 'the database does not know the identity of its store');
        },
      };
    },
  };
}

export const ownerScenarios = {
  'first-use': (stage) => createTaken(stage, ensureOwned, ensureOwned),
  'adopt-store': (stage) => createTaken(stage, ensureOwned, adoptStore),
  'adopt-twice': (stage) => createTaken(stage, adoptStore, adoptStore),
} satisfies Scenarios;

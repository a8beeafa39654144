// One lease, where the product claims those of many advertisers in one statement.

import { claimLeases, type Lease, type LeaseClaim } from '../../src/store/accounts/leases.ts';
import type { Queryable } from '../../src/store/postgres/database.ts';
import type { Store } from '../../src/store/store.ts';

export async function claimLease(db: Queryable, claim: LeaseClaim): Promise<Lease | null> {
  const [lease] = await claimLeases(db, [claim]);
  return lease ?? null;
}

/** A lease of a lane that nobody else has. */
export async function takeLease(db: Queryable, claim: LeaseClaim): Promise<Lease> {
  const lease = await claimLease(db, claim);
  if (!lease) throw new Error('The lane is already leased.');
  return lease;
}

/** Creates an account and leases its live lane for as long as a test may last. */
export async function openAccount(store: Store, name: string, advertiserId: bigint): Promise<Lease> {
  await store.advertisers.ensure(name, advertiserId);
  const lease = await store.leases.claim({ name, lane: 'live', owner: 'test', leaseMs: 600_000 });
  if (!lease) throw new Error('The lane is already leased.');
  return lease;
}

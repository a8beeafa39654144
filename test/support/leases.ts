// One lease, where the product claims those of many advertisers in one statement.

import { claimLeases, type Lease, type LeaseClaim } from '../../src/store/accounts/leases.ts';
import type { Queryable } from '../../src/store/postgres/database.ts';

export async function claimLease(db: Queryable, claim: LeaseClaim): Promise<Lease | null> {
  const [lease] = await claimLeases(db, [claim]);
  return lease ?? null;
}

// @module-tag slow
// What a worker waits for while another process holds the lane of the account.
import { expect } from 'vitest';
import { Trouble } from '../../src/domain/trouble.ts';
import type { Lease } from '../../src/store/accounts/leases.ts';
import { openSmallIntake } from '../support/small-intake.ts';
import { test } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startBareWorker } from '../support/worker.ts';

test('a source that is away stays named while a command that tries it holds the lane', async ({ database }) => {
  await using intake = await openSmallIntake({ rigor: 'proof', database, applications: 12 });
  await intake.sweep();
  // A worker skips its poll if the account was read a moment ago.
  await database.query(`UPDATE intake.leases SET done_at = now() - interval '1 hour'`);
  const { store } = intake;
  await using inner = intake.openSource('json');
  const stop = new AbortController();
  let isAway = true;
  let claims = 0;
  const list: typeof inner.list = async (...asked) => {
    if (isAway) throw new Trouble('unreachable', 'The source is away.', { at: 'source' });
    return await inner.list(...asked);
  };
  const account = { name: 'default', advertiserId: null, source: { ...inner, list }, watch: () => {} };
  const claim: typeof store.leases.claim = async (request) => {
    if (request.owner === 'a worker') claims++;
    return await store.leases.claim(request);
  };
  const countingStore = { ...store, leases: { ...store.leases, claim } };
  const worker = startBareWorker({ store: countingStore, accounts: [account], maintenance: [] }, stop.signal);
  try {
    const command = { name: 'default', lane: 'live', owner: 'a command', leaseMs: 600_000 } as const;
    await until(() => worker.facts().troubled === 1);
    let lease: Lease | null = null;
    await until(async () => {
      lease = await store.leases.claim(command);
      return lease !== null;
    });
    const before = claims;
    // It has found the lane held twice: what follows the first of these has happened.
    await until(() => claims >= before + 2);
    expect(worker.facts().troubled).toBe(1);
    isAway = false;
    if (lease) await store.leases.release(lease, false);
    await until(() => worker.facts().troubled === 0);
  } finally {
    stop.abort();
    await worker.ended;
  }
});

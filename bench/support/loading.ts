// Loads pages with the product's own code, without a network: parses a page and commits it with its progress. It reads each page once;
// whole-path.ts and sweep-requests.ts measure the requests of a proof.

import type { Source } from '../../src/source/client.ts';
import type { ReadPage } from '../../src/store/applications/diff-page.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import type { SweepProgress } from '../../src/store/sweeps/sweeps.ts';
import { holdLane } from '../../src/sync/accounts/held-lane.ts';
import { commitAnswer } from '../../src/sync/read/answers.ts';
import { pageCap } from './board.ts';

export function openBenchStore(url: string): Store {
  return openStore({ url, role: 'bench', privacyKey: Buffer.from('a privacy key for the benches') });
}

/** Loads ids 1 to `applications`; parses the next page while it writes one. */
export async function loadPages(url: string, source: Source, applications: number): Promise<void> {
  const signal = new AbortController().signal;
  await using store = openBenchStore(url);
  const first = await list(0);
  const { advertiserId } = first.page;
  if (advertiserId === null) throw new Error('The board does not say whose it is.');
  const { name } = await store.advertisers.ensure('default', advertiserId);
  await using lane = await holdLane(store, { name, lane: 'backfill', owner: 'bench', leaseMs: 60_000, signal });
  const { seq: sweepId, at: startedAt } = await store.sweeps.begin();
  const sweep = { sweepId, purpose: 'backfill', axis: 'id', low: 1n, high: null, startedAt } as const;
  const toProgress = (after: number, bytes: number): SweepProgress => {
    const through = BigInt(after + pageCap);
    return {
      facts: JSON.stringify({ through: String(through) }),
      dropped: after === 0 ? [] : [BigInt(after + 1)],
      added: [{ low: through + 1n, high: null, state: 'open', evidence: '{}' }],
      bytes,
      lacked: [],
      unreadable: [],
      cursor: through,
      ended: null,
      evidence: [],
    };
  };
  let next = Promise.resolve(first);
  for (let after = 0; after < applications; after += pageCap) {
    const { page, seq, askedAt } = await next;
    if (after + pageCap < applications) next = list(after + pageCap);
    const { applications: read, rejects, shared, bytes } = page;
    const asked = { low: BigInt(after + 1), high: null };
    const toCommit: ReadPage = {
      ...{ lease: lane.lease, advertiserId, seq, sweep, askedAt, asked, applications: read, rejects, shared },
    };
    await commitAnswer({ store, source }, toCommit, null, async () => toProgress(after, bytes));
  }

  /** Requests a page, after taking its ticket. */
  async function list(after: number) {
    const { seq, at: askedAt } = await store.sweeps.takeTicket();
    const answer = await source.list({ afterId: BigInt(after) }, signal);
    if (answer.kind !== 'page') throw new Error('The board answered with too much.');
    return { page: answer.page, seq, askedAt };
  }
}

// A process with four writers that append events as the store does, in transactions of different lengths, until it is killed or done:
// node test/support/event-writer.ts URL FIRST_APPLICATION_ID TRANSACTIONS
// In one of ten transactions a writer delays its commit until another writer waits for the lock, or (if the lock does not work) until
// another writer of the same advertiser has committed higher numbers and a reader had time to see them. This forces the interleaving that
// the lock must prevent instead of leaving it to chance.
import { setTimeout as sleep } from 'node:timers/promises';
import { appendEvents } from '../../src/store/events.ts';
import { openDatabase } from '../../src/store/postgres/database.ts';

const [url = '', first = '1', transactions = '1'] = process.argv.slice(2);
await using db = openDatabase({ url, role: 'writer', connections: 6 });
let next = BigInt(first);
const committed = new Map<bigint, number>();

/** Waits until another writer waits for an advertiser's lock or has committed without it; about a second when no other is active. */
async function untilCrowded(advertiserId: bigint): Promise<void> {
  const before = committed.get(advertiserId) ?? 0;
  for (let looks = 0; looks < 50; looks++) {
    const waiting = await db.query(
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 2 AND NOT granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1`,
    );
    if (waiting.length > 0) return;
    if ((committed.get(advertiserId) ?? 0) > before) return await sleep(150);
    await sleep(20);
  }
}

await Promise.all(
  Array.from({ length: 4 }, async () => {
    for (let nth = 0; nth < Number(transactions); nth++) {
      const ids = [next++, next++];
      const advertiserId = 7n + (((ids[0] as bigint) / 2n) % 2n);
      await db
        .transaction(async (tx) => {
          await tx.query(`SELECT pg_current_xact_id()`);
          await sleep(Math.random() * 8);
          await appendEvents(
            tx,
            advertiserId,
            ids.map((applicationId) => ({ applicationId, type: 'application.received' })),
          );
          // Some transactions wait before COMMIT; one in ten rolls back.
          if (nth % 10 === 3) await untilCrowded(advertiserId);
          else await sleep(Math.random() * 3);
          if (Math.random() < 0.1) throw new Error('undone');
        })
        .then(() => committed.set(advertiserId, (committed.get(advertiserId) ?? 0) + 1))
        .catch((error: Error) => {
          if (error.message !== 'undone') throw error;
        });
    }
  }),
);

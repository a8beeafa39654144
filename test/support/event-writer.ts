// A process of four writers that append events as the store does, in transactions of different lengths, until it is killed or done:
// node test/support/event-writer.ts URL FIRST_APPLICATION_ID TRANSACTIONS
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/store/database.ts';
import { appendEvents } from '../../src/store/events.ts';

const [url = '', first = '1', transactions = '1'] = process.argv.slice(2);
await using db = openDatabase({ url, role: 'writer', connections: 4 });
let next = BigInt(first);

await Promise.all(
  Array.from({ length: 4 }, async () => {
    for (let turn = 0; turn < Number(transactions); turn++) {
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
          // Some transactions linger before COMMIT, some never get there.
          await sleep(Math.random() * 3);
          if (Math.random() < 0.1) throw new Error('undone');
        })
        .catch((error: Error) => {
          if (error.message !== 'undone') throw error;
        });
    }
  }),
);

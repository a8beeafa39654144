// The environment in which scenarios run: a separate database, the proxy in front of it, and the product's store opened once per client.
// Every schedule uses its own advertiser, so nothing has to be reset between schedules.
import pg from 'pg';
import { type Database, openDatabase } from '../../src/store/postgres/database.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { testPrivacyKey } from '../support/processes/syncing.ts';
import type { Scenario } from './explorer.ts';
import { openGate } from './gate.ts';
import type { Query, Stage as ScheduleStage } from './schedule.ts';

export interface Stage extends ScheduleStage, AsyncDisposable {
  readonly url: string;
  /** The product's database handle of a client. It has one connection, so the client's statements have one order. */
  database(client: string): Database;
  store(client: string): Store;
  /** Bypasses the proxy, to set up scenarios. */
  readonly direct: Database;
  readonly directStore: Store;
  /** When a transaction repeats a statement that matches, it gets the rows that the client read before the transaction. */
  answersAsBefore: { readonly statement: RegExp; readonly onAnswer: () => void } | null;
  /** Creates an advertiser that no other schedule uses, and leaves no blobs of others for it to delete. */
  openAdvertiser(): Promise<{ readonly advertiserId: bigint; readonly name: string }>;
}

/** A scenario without its name, which is its key. */
export type Situation = Omit<Scenario, 'name'>;
/** Scenarios by name. Each is opened on a stage. */
export type Scenarios = Readonly<Record<string, (stage: Stage) => Situation>>;

const privacyKey = Buffer.from(testPrivacyKey);

/** Opens the stage on a database that has the product's schema. */
export async function openStage(url: string): Promise<Stage> {
  await using stack = new AsyncDisposableStack();
  const own = new pg.Client({ connectionString: url, application_name: 'explorer' });
  own.on('error', () => {});
  await own.connect();
  stack.defer(() => own.end());
  const query: Query = async (sql, values = []) => (await own.query(sql, [...values])).rows;
  const gate = stack.use(
    await openGate(url, async (pid) => void (await query('SELECT pg_terminate_backend($1)', [pid]))),
  );
  const direct = stack.use(openDatabase({ url, role: 'direct', connections: 2 }));
  const directStore = stack.use(openStore({ url, role: 'direct', connections: 1, privacyKey }));
  const opened = new Map<string, { readonly database: Database; readonly store: Store; readonly life: number }>();
  stack.defer(async () => {
    // A dead client has no connection left to close. A client that never ends would never return its connection to the pool.
    const living = [...opened].filter(([client]) => !gate.traffic(client).isDead);
    const all = living.flatMap(([, { database, store }]) => [database, store]);
    await Promise.all(all.map((one) => one[Symbol.asyncDispose]()));
  });
  const open = (client: string) => {
    const traffic = gate.traffic(client);
    const known = opened.get(client);
    if (known?.life === traffic.life) return known;
    const options = { url: gate.toUrl(client), role: client, connections: 1 };
    const made = { database: openDatabase(options), store: openStore({ ...options, privacyKey }), life: traffic.life };
    opened.set(client, made);
    return made;
  };
  const neighbours = await loadNeighbours(query);
  let count = 0;
  const owned = stack.move();
  const stage: Stage = {
    url,
    gate,
    query,
    neighbours,
    direct,
    directStore,
    answersAsBefore: null,
    database(client) {
      const { database } = open(client);
      return stage.answersAsBefore ? answerAsBefore(database, stage.answersAsBefore) : database;
    },
    store: (client) => open(client).store,
    async openAdvertiser() {
      await query(`DELETE FROM intake.blobs`);
      const advertiserId = BigInt(1_000 + ++count);
      const name = `account-${count}`;
      await query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ($1, $2)`, [name, advertiserId]);
      return { advertiserId, name };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
  return stage;
}

function answerAsBefore(db: Database, { statement, onAnswer }: NonNullable<Stage['answersAsBefore']>): Database {
  const answers = new Map<string, unknown>();
  const toKey = (of: unknown) => JSON.stringify(of, (_, value) => (typeof value === 'bigint' ? String(value) : value));
  return {
    ...db,
    async query<T extends object>(sql: string, values?: readonly unknown[]) {
      const rows = await db.query<T>(sql, values);
      if (statement.test(sql)) answers.set(toKey([sql, values]), rows);
      return rows;
    },
    transaction: (work, ...locks) =>
      db.transaction(
        (tx) =>
          work({
            ...tx,
            async query<T extends object>(sql: string, values?: readonly unknown[]) {
              const before = answers.get(toKey([sql, values]));
              if (before === undefined) return await tx.query<T>(sql, values);
              onAnswer();
              return before as T[];
            },
          }),
        ...locks,
      ),
  };
}

/** Loads the neighbours of each table: by foreign keys in both directions, and by deletes that cascade over several tables. */
async function loadNeighbours(query: Query): Promise<Map<string, string[]>> {
  const tables = await query<{ name: string; joined: string[] }>(
    `WITH RECURSIVE key AS (SELECT conrelid AS child, confrelid AS parent, confdeltype FROM pg_constraint WHERE contype = 'f'),
     cascade (parent, child) AS (
       SELECT parent, child FROM key WHERE confdeltype = 'c'
       UNION SELECT c.parent, k.child FROM cascade c JOIN key k ON k.parent = c.child AND k.confdeltype = 'c'
     ), neighbour (of, oid) AS (SELECT child, parent FROM key UNION SELECT parent, child FROM key UNION SELECT parent, child FROM cascade)
     SELECT t.relname AS name, ARRAY(SELECT p.relname::text FROM neighbour n JOIN pg_class p USING (oid) WHERE n.of = t.oid) AS joined
     FROM pg_class t WHERE t.relnamespace = 'intake'::regnamespace AND t.relkind IN ('r', 'S')`,
  );
  return new Map(tables.map(({ name, joined }) => [name, joined]));
}

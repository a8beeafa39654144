// All access to Postgres: a pool, plain SQL and transactions that set their own timeouts. It knows no table.
// It keeps no session state outside a transaction, so it works through a pooler in transaction mode.
import pg from 'pg';
import { SettingTrouble, Trouble, toCertificateProblem, toConnectionReason } from '../../domain/trouble.ts';
import { type BatchSize, readBatches } from './batches.ts';
import { clientOf, type DatabaseUrl, describeUrl } from './connection.ts';
import { type Copy, copyInto } from './copy.ts';

export interface DatabaseOptions {
  readonly url: DatabaseUrl;
  /** Shown in pg_stat_activity as `intake <role>`. */
  readonly role: string;
  readonly connections?: number;
  readonly statementTimeoutMs?: number;
  /** The server ends a transaction that was idle for this long. Must be below the lease, or a paused worker blocks its successor. */
  readonly idleInTransactionMs?: number;
}

/** A row under its SQL column names. Columns of type bigint and bigint[] are returned as bigint, json as parsed values. */
export type Row = Record<string, unknown>;

export interface Queryable {
  /** A statement outside of a transaction is repeated after a conflict. */
  query<T extends object = Row>(sql: string, values?: readonly unknown[]): Promise<T[]>;
}

/** An open transaction. Statements are pipelined: sent without waiting for earlier answers, they run in the order of the calls. */
export interface Transaction extends Queryable {
  copy(copies: readonly Copy[]): Promise<void>;
  /** The rows of a long answer, while they arrive. No other statement is answered until the last batch is taken. */
  read<T extends object = Row>(sql: string, values: readonly unknown[], size: BatchSize): AsyncIterable<readonly T[]>;
}

/** Waits for statements of a transaction that do not need each other's answers. They run in this order and cost one round trip. */
export function pipeline<T extends readonly unknown[] | []>(statements: T) {
  return Promise.all(statements);
}

export interface Database extends Queryable, AsyncDisposable {
  /** Runs the work in one transaction. Its `locks`, statements in the message of BEGIN, cost no round trip. Rolls back if the work throws. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, ...locks: string[]): Promise<T>;
  /** Like `transaction`, and again after a conflict. */
  readonly repeatTransaction: Database['transaction'];
}

const { types } = pg;
const [int8, int8Array] = [20, 1016];
const readers: Readonly<Record<number, (text: string) => unknown>> = {
  [int8]: BigInt,
  [int8Array]: (text) => (types.getTypeParser(int8Array) as (text: string) => string[])(text).map(BigInt),
};
const exactIntegers: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => ((format !== 'binary' && readers[oid]) || types.getTypeParser(oid, format)) as never,
};

/** Longest wait for another transaction's lock. */
const lockTimeoutMs = 15_000;

/** Opens a pool. Nothing connects until the first query. */
export function openDatabase(options: DatabaseOptions): Database {
  const statementTimeoutMs = options.statementTimeoutMs ?? 60_000;
  /** This login worked once. A wrong password after that means a rotation in progress: it is retried, not reported as a wrong setting. */
  let wasAccepted = false;
  const rethrow = (error: unknown): never => {
    const trouble = toTrouble(error, options.url);
    if (!(wasAccepted && wrongPassword.test(`${sqlState(error)} ${(error as Error).message}`))) throw trouble;
    throw new Trouble('local', (trouble as Error).message, { at: 'database', cause: error });
  };
  // statement_timeout normally fires first. This limit ends a connection that no longer answers.
  const limitMs = statementTimeoutMs + 15_000;
  const pool = new pg.Pool({
    Client: clientOf(options.url),
    application_name: `intake ${options.role}`,
    max: options.connections ?? 8,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    query_timeout: limitMs,
    types: exactIntegers,
    // Statements of a transaction need not wait for each other's answers.
    pipeline: true,
  });
  // A connection that breaks while idle fails no query: the pool drops it, and the next query opens another.
  pool.on('error', () => {});
  pool.on('connect', () => {
    wasAccepted = true;
  });

  const begin = [
    // The holder of a lock must see what the previous holder wrote. Under snapshot isolation, rows that were only locked raise no conflict,
    // so with another default level two completions of one application would miss each other's writes.
    'BEGIN ISOLATION LEVEL READ COMMITTED',
    `SET LOCAL statement_timeout = ${statementTimeoutMs}`,
    `SET LOCAL lock_timeout = ${lockTimeoutMs}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${options.idleInTransactionMs ?? 20_000}`,
    // The statements are short and many, and Postgres spends 100 ms or more to compile a plan with a high cost estimate. A first load of
    // 2,000 applications took 50 s of server CPU with `jit` and 7 s without.
    'SET LOCAL jit = off',
  ].join(';');

  async function transaction<T>(work: (tx: Transaction) => Promise<T>, ...locks: string[]): Promise<T> {
    const client = await pool.connect().catch(rethrow);
    let broken: Error | undefined;
    let isOver = false;
    const own = () => {
      // After one of several parallel statements failed, the others may still call; by then another caller may have the connection.
      if (isOver) throw new Error('The transaction is over.');
      return client;
    };
    /** The error of the first failed statement. After it, the server rejects every further statement of the transaction. */
    let reason: unknown;
    const fail = (error: unknown): never => {
      if (sqlState(error) !== refused) reason ??= error;
      return rethrow(error);
    };
    try {
      // Awaited, not pipelined: if BEGIN fails, each pipelined statement would run as a transaction of its own.
      await client.query([begin, ...locks].join(';'));
      const result = await work({
        async query(sql, values = []) {
          const answer = own().query(sql, [...values]);
          return (await answer.catch(fail)).rows;
        },
        copy: async (copies) => await copyInto(own(), copies).catch(fail),
        async *read<T extends object>(sql: string, values: readonly unknown[], size: BatchSize) {
          try {
            yield* readBatches<T>(own(), { sql, values, size, limitMs });
          } catch (error) {
            fail(error);
          }
        },
      });
      isOver = true;
      await client.query('COMMIT');
      return result;
    } catch (error) {
      isOver = true;
      // If ROLLBACK fails, the state of the connection is unknown: the pool destroys it.
      await client.query('ROLLBACK').catch((failed: Error) => {
        broken = failed;
      });
      // `work` may throw the error of a later statement first. That error hides a conflict, which would then not be retried.
      return rethrow(sqlState(error) === refused ? (reason ?? error) : error);
    } finally {
      client.release(broken);
    }
  }

  return {
    query: (sql, values = []) => retryOnConflict(async () => (await pool.query(sql, [...values]).catch(rethrow)).rows),
    transaction,
    repeatTransaction: (...given) => retryOnConflict(() => transaction(...given)),
    async [Symbol.asyncDispose]() {
      await pool.end();
    },
  };
}

/** The values of rows by column, as unnest takes them. */
export function columnsOf<T>(rows: readonly T[], ...names: (keyof T)[]): unknown[][] {
  return names.map((name) => rows.map((row) => row[name]));
}

// What a stored time says after the database's clock was set back: one that lies too far ahead was written before that, and its age is
// unknown. A minute ahead is not too far: a statement may read the clock before another one that commits first, and then sees its time.

/** True of a time in the future, which was written before the clock was set back. */
export const isAhead = (time: string) => `${time} > now() + interval '1 minute'`;

/** True until this time has come, which was written as now and `ms` milliseconds. */
export const isBefore = (until: string, ms: number | string) =>
  `(${until} > now() AND NOT ${isAhead(`${until} - ${ms} * interval '1 millisecond'`)})`;

/** The longest lease or claim, and that minute: an expiry further ahead counts as expired, or its lane would be blocked until then. */
export const longestLease = `interval '11 minutes'`;

/** Retries the work after a conflict with another transaction: serialization failure, deadlock or duplicate key. At most 5 attempts. */
export async function retryOnConflict<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === 5 || !isConflict(error)) throw error;
    }
  }
}

/** Errors that a retry resolves. 23505 (duplicate key) is one: two lanes inserted the same new application, and the retry sees its row. */
const conflictCodes = new Set(['40001', '40P01', '23505']);

/** The error of every statement that follows a failed one in the same transaction. */
const refused = '25P02';

/** Connection lost, a conflict that outlasted its retries, shutting down, too many clients, out of disk, read-only, timeouts. */
const temporaryCodes = /^(08...|40001|40P01|57P0[1-5]|57014|55P03|53...|25006|25P03|58030)$/;
const networkCodes = /^(ECONN|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_|EHOST|ENET|EADDRNOTAVAIL|EACCES|EPERM|ENOENT)/;
const stateWords: Readonly<Record<string, string>> = {
  '25006': 'is read-only',
  '53100': 'has no disk space left',
  '53300': 'has no free connection slot',
  '57P01': 'is shutting down',
  '57P03': 'is starting or shutting down',
};

/** The code of a Postgres or network error, also where it is the cause of another error. */
export function sqlState(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return typeof code === 'string' ? code : cause === undefined ? undefined : sqlState(cause);
}

export function isConflict(error: unknown): boolean {
  return conflictCodes.has(sqlState(error) ?? '');
}

/** Maps an error to a Trouble where a retry or another setting helps; returns any other error unchanged. */
export function toTrouble(error: unknown, url: DatabaseUrl): unknown {
  if (error instanceof Trouble || !(error instanceof Error)) return error;
  const code = sqlState(error) ?? '';
  const { address, database } = describeUrl(url);
  const wrong = findWrongSetting(error, code, address, database);
  if (wrong) return new SettingTrouble(`DATABASE_URL: ${wrong}${code && ` (${code})`}.`, error, 'database');
  const lost = /Connection terminated|timeout exceeded|Query read timeout|not queryable/i.test(error.message);
  const isAway = lost || networkCodes.test(code) || (error as NodeJS.ErrnoException).syscall === 'connect';
  if (!isAway && !temporaryCodes.test(code)) return error;
  const which = `The database at ${address}`;
  const what = isAway ? 'cannot be reached' : (stateWords[code] ?? 'cannot take work now');
  const reason = code ? toConnectionReason(code) : 'connection lost';
  return new Trouble('local', `${which} ${what} (${reason}).`, { at: 'database', cause: error });
}

/** Describes an error that only another DATABASE_URL or another server resolves; null for any other error. */
function findWrongSetting(error: Error, code: string, server: string, database: string): string | null {
  const { syscall, path = 'of a certificate' } = error as NodeJS.ErrnoException;
  // Certificate files are read while connecting. A missing Unix socket has the same code, but its syscall is `connect`.
  if (syscall === 'open' || code === 'EISDIR') return `the file ${path} cannot be read`;
  const certificate = toCertificateProblem(code, server, 'with sslrootcert=FILE');
  if (certificate !== null) return certificate;
  return wrongSettings.find(([said]) => said.test(`${code} ${error.message}`))?.[1](server, database) ?? null;
}

const wrongPassword = /^28P01 |^08P01 .*(?:authentication failed|no such user)/i;
const useTls = 'add sslmode=verify-full, or sslmode=require to check no certificate';

/** By code and message. 08P01 is the code of every error that pgbouncer itself returns. */
const wrongSettings: readonly (readonly [RegExp, (server: string, database: string) => string])[] = [
  [wrongPassword, (server) => `${server} does not accept the user or the password`],
  [/^3D000 |^08P01 .*no such database/i, (server, database) => `there is no database "${database}" at ${server}`],
  [
    /^08P01 .*no pg_hba\.conf entry.*no encryption/i,
    (server) =>
      `the pooler at ${server} connects to its server without TLS, and the server rejects that: set server_tls_sslmode there`,
  ],
  [
    /no pg_hba\.conf entry.*no encryption/i,
    (server) =>
      `${server} does not allow this user to connect from here without TLS; ${useTls}. A server that has no TLS needs an entry in its pg_hba.conf`,
  ],
  [
    /login without channel binding/,
    (server) =>
      `${server} offers no login with channel binding, which channel_binding=require asks for; it needs TLS and SCRAM, and a pooler may not have it`,
  ],
  [
    /channel binding check failed/,
    (server) => `the TLS connection does not end at ${server} but at something between, which may read along`,
  ],
  [
    /SASL channel binding/,
    (server) => `channel binding is not possible with the certificate of ${server}; use channel_binding=disable`,
  ],
  [/valid client certificate/, (server) => `${server} requires a client certificate; name it with sslcert and sslkey`],
  // Messages of Postgres, pgbouncer and managed servers.
  [
    /SSL off|(?:SSL|TLS)[^.]* (?:is )?required|requires? (?:SSL|TLS)/i,
    (server) => `${server} requires TLS and the connection has none; ${useTls}`,
  ],
  [/does not support SSL/, (server) => `${server} does not speak TLS; use sslmode=disable, or turn TLS on there`],
  [/^28000 /, (server) => `${server} does not allow this user to connect from here`],
  [
    /^(?:ERR_TLS_|ERR_SSL_|ERR_OSSL_|EPROTO)/,
    (server) => `the TLS handshake with ${server} failed; check sslmode and the certificate files`,
  ],
];

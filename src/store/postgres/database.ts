// The one way to Postgres: a pool, plain SQL and transactions that carry their own limits. It knows no table.
// No session state is kept outside a transaction, so a pooler in transaction mode may stand between.
import { dirname } from 'node:path';
import pg from 'pg';
import { toCertificateProblem, toConnectionReason } from '../../domain/connection-error.ts';
import { SettingTrouble, Trouble } from '../../domain/trouble.ts';
import { clientOf, type DatabaseUrl, toAddress, toDatabaseName } from './connection.ts';
import { type Copy, copyInto } from './copy.ts';

export interface DatabaseOptions {
  readonly url: DatabaseUrl;
  /** Shown in pg_stat_activity as `intake <role>`. */
  readonly role: string;
  readonly connections?: number;
  /** Longest statement inside a transaction. */
  readonly statementTimeoutMs?: number;
  /** A transaction whose owner stopped working is ended by the server after this long; below the lease, or a paused worker blocks its successor. */
  readonly idleInTransactionMs?: number;
}

/** Rows as Postgres names them; bigint columns arrive as bigint, json as values. */
export type Row = Record<string, unknown>;

export interface Queryable {
  query<T extends Row = Row>(sql: string, values?: readonly unknown[]): Promise<T[]>;
}

/**
 * A transaction that is under way. What is asked of it before an answer is there follows at once, in the order asked, and the server
 * goes from one to the next without waiting for us: `Promise.all` of statements that do not need each other's answers is one round trip.
 */
export interface Transaction extends Queryable {
  /** Brings rows into tables by COPY, in the order given. */
  copy(copies: readonly Copy[]): Promise<void>;
}

export interface Database extends Queryable, AsyncDisposable {
  /** Runs the work in one transaction: all of it is kept, or nothing. `locks` are taken with it, see `Lock`. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, ...locks: Lock[]): Promise<T>;
}

/** A transaction-scoped advisory lock; taken in the same message as BEGIN, so it costs no round trip. */
export interface Lock {
  readonly class: number;
  readonly key: bigint;
  readonly shared: boolean;
}

const { types } = pg;
const int8 = 20;
const exactIntegers: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    (oid === int8 && format !== 'binary' ? BigInt : types.getTypeParser(oid, format)) as never,
};

/** Longest wait for another transaction's lock. */
const lockTimeoutMs = 15_000;

/** Opens a pool. Nothing connects until the first query. */
export function openDatabase(options: DatabaseOptions): Database {
  const statementTimeoutMs = options.statementTimeoutMs ?? 60_000;
  /** This login was accepted: what is refused from now on is a password that was changed, and whose new text is on its way. */
  let wasAccepted = false;
  const rethrow = (error: unknown): never => {
    const trouble = toTrouble(error, options.url);
    if (!(wasAccepted && trouble instanceof SettingTrouble && toLoginState(error) === wrongPassword)) throw trouble;
    throw new Trouble('local', trouble.message, { at: 'database', cause: error });
  };
  const pool = new pg.Pool({
    Client: clientOf(options.url),
    application_name: `intake ${options.role}`,
    max: options.connections ?? 8,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    // The server's own limit speaks first, unless much is asked at once; this one ends a connection that went silent.
    query_timeout: statementTimeoutMs + 15_000,
    types: exactIntegers,
    // Statements of a transaction need not wait for each other's answers.
    pipeline: true,
  });
  // A connection that breaks while idle is not an error of anyone's: the pool drops it and the next query opens another.
  pool.on('error', ignore);
  pool.on('connect', () => {
    wasAccepted = true;
  });

  const begin = [
    // The holder of a lock must see what the holder before it wrote: rows that were only locked raise no conflict in a snapshot, so with
    // another default two completions of one application would each miss the other.
    'BEGIN ISOLATION LEVEL READ COMMITTED',
    `SET LOCAL statement_timeout = ${statementTimeoutMs}`,
    `SET LOCAL lock_timeout = ${lockTimeoutMs}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${options.idleInTransactionMs ?? 20_000}`,
    // Statements here are short and many. Postgres compiles a plan whose estimate is high, for 100 ms and more each: a first load of
    // 2,000 applications took 50 s of its CPU with `jit`, and 7 s without.
    'SET LOCAL jit = off',
  ].join(';');

  async function transaction<T>(work: (tx: Transaction) => Promise<T>, ...locks: Lock[]): Promise<T> {
    const client = await pool.connect().catch(rethrow);
    let broken: Error | undefined;
    let isOver = false;
    const own = () => {
      // One of several statements failed, and the callers of the others go on: by now the connection may be another caller's.
      if (isOver) throw new Error('The transaction is over.');
      return client;
    };
    /** Why the server refuses every further statement, where one has failed. */
    let reason: unknown;
    const fail = (error: unknown): never => {
      if (sqlState(error) !== refused) reason ??= error;
      return rethrow(error);
    };
    try {
      // Waited for: behind a BEGIN that was refused, each statement would be a transaction of its own.
      await client.query([begin, ...locks.map(toLockSql)].join(';'));
      const result = await work({
        query: async (sql, values) => await run(own(), sql, values, fail),
        copy: async (copies) => await copyInto(own(), copies).catch(fail),
      });
      isOver = true;
      await client.query('COMMIT');
      return result;
    } catch (error) {
      isOver = true;
      // Without an answer to ROLLBACK the connection's state is unknown: it is destroyed, not returned.
      await client.query('ROLLBACK').catch((failed: Error) => {
        broken = failed;
      });
      // Statements behind the one that failed may be heard of first; they say nothing of a conflict, and it would not be tried again.
      return rethrow(sqlState(error) === refused ? (reason ?? error) : error);
    } finally {
      client.release(broken);
    }
  }

  return {
    query: (sql, values) => run(pool, sql, values, rethrow),
    transaction,
    async [Symbol.asyncDispose]() {
      await pool.end();
    },
  };
}

/** Does the work again when Postgres says that it met another transaction's (serialization failure, deadlock, the same new key twice). */
export async function retryOnConflict<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === 5 || !isConflict(error)) throw error;
    }
  }
}

function toLockSql(lock: Lock): string {
  return `SELECT pg_advisory_xact_lock${lock.shared ? '_shared' : ''}(${lock.class}, hashint8(${lock.key}))`;
}

async function run<T extends Row>(
  target: pg.Pool | pg.PoolClient,
  sql: string,
  values: readonly unknown[] | undefined,
  rethrow: (error: unknown) => never,
): Promise<T[]> {
  try {
    const result = await target.query<T>(sql, (values ?? []) as unknown[]);
    return result.rows;
  } catch (error) {
    return rethrow(error);
  }
}

/** What Postgres asks a client to simply do again. 23505 is one of them: two lanes met the same new application, and the second look sees it. */
const conflictCodes = new Set(['40001', '40P01', '23505']);

/** What the server says to each statement of a transaction after one that failed. */
const refused = '25P02';

/** States of the server in which waiting helps: connection lost, a conflict that outlasted its repeats, shutting down, too many clients, out of disk, read-only, timeouts. */
const temporaryCodes = /^(08...|40001|40P01|57P0[1-5]|57014|55P03|53...|25006|25P03|58030)$/;
const networkCodes = /^(ECONN|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_|EHOST|ENET|EADDRNOTAVAIL|EACCES|EPERM|ENOENT)/;
/** A folder that holds no socket yet (ENOENT) may be one of a server that is starting. */
const wrongSocket = /^(EACCES|EPERM|EINVAL|ENOTDIR|ELOOP|ENAMETOOLONG|ENOTSOCK|EPROTOTYPE)$/;

/** What the server says to a URL that is wrong: waiting helps nobody. */
const wrongPassword = '28P01';
const settingProblems: Readonly<Record<string, (server: string, name: string) => string>> = {
  [wrongPassword]: (server) => `${server} does not accept the user or the password`,
  '28000': (server) => `${server} does not let this user in from here`,
  '3D000': (server, name) => `there is no database "${name}" at ${server}`,
};

/** The code with which pgbouncer refuses, whatever the reason. */
const poolerRefusal = '08P01';
const poolerReasons: readonly (readonly [RegExp, string])[] = [
  [/authentication failed|no such user/i, wrongPassword],
  [/no such database/i, '3D000'],
];

/** The code that Postgres has for this refusal, also where a pooler says it. */
function toLoginState(error: unknown): string | undefined {
  const code = sqlState(error);
  if (code !== poolerRefusal || !(error instanceof Error)) return code;
  return poolerReasons.find(([reason]) => reason.test(error.message))?.[1] ?? code;
}

/** What the server's state is called where waiting helps. */
const stateWords: Readonly<Record<string, string>> = {
  '25006': 'is read-only',
  '53100': 'has no disk space left',
  '53300': 'has no connection left for us',
  '57P01': 'is shutting down',
  '57P03': 'is starting or shutting down',
};

/** The code of the Postgres (or network) error inside, however often it was wrapped. */
export function sqlState(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return typeof code === 'string' ? code : cause === undefined ? undefined : sqlState(cause);
}

export function isConflict(error: unknown): boolean {
  return conflictCodes.has(sqlState(error) ?? '');
}

/** Trouble where waiting or another setting helps; anything else as it is. */
export function toTrouble(error: unknown, url: DatabaseUrl): unknown {
  if (error instanceof Trouble || !(error instanceof Error)) return error;
  const code = sqlState(error) ?? '';
  const address = toAddress(url);
  const wrong =
    toSocketProblem(error, code) ??
    toTlsProblem(error, code, address) ??
    settingProblems[toLoginState(error) ?? '']?.(address, toDatabaseName(url));
  if (wrong) return new SettingTrouble(`DATABASE_URL: ${wrong}${code && ` (${code})`}.`, error, 'database');
  const lost = /Connection terminated|timeout exceeded|Query read timeout|not queryable/i.test(error.message);
  const isAway = lost || networkCodes.test(code);
  if (!isAway && !temporaryCodes.test(code)) return error;
  const which = `The database at ${address}`;
  const what = isAway ? 'cannot be reached' : (stateWords[code] ?? 'cannot take work now');
  const reason = code ? toConnectionReason(code) : 'connection lost';
  return new Trouble('local', `${which} ${what} (${reason}).`, { at: 'database', cause: error });
}

function toSocketProblem(error: Error, code: string): string | null {
  const { syscall, address } = error as NodeJS.ErrnoException & { readonly address?: string };
  if (syscall !== 'connect' || !address?.startsWith('/') || !wrongSocket.test(code)) return null;
  return `no Unix socket can be opened in ${dirname(address)}`;
}

/** Codes of Node for a handshake that failed. */
const handshakeCodes = /^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|EPROTO)/;

/** What Postgres, pgbouncer and managed servers say to a connection without TLS that they want with it. */
const wantsTls = /SSL off|(?:SSL|TLS)[^.]* (?:is )?required|requires? (?:SSL|TLS)/i;

/** What is wrong with the certificates that DATABASE_URL names, or with the server's; null where it is something else. */
function toTlsProblem(error: Error, code: string, server: string): string | null {
  const { syscall, path } = error as NodeJS.ErrnoException;
  // Read while a connection is made. A socket that is missing has the same code, and comes from `connect`.
  if (path && (syscall === 'open' || syscall === 'read')) return `the file ${path} cannot be read`;
  if (syscall === 'read' && code === 'EISDIR') return 'a certificate file that it names is a folder';
  const problem = toCertificateProblem(code, server, 'with sslrootcert=FILE');
  if (problem !== null) return problem;
  if (handshakeCodes.test(code))
    return `no TLS connection to ${server} could be made; check sslmode and the certificate files`;
  if (/no pg_hba\.conf entry.*no encryption/i.test(error.message)) {
    return code === poolerRefusal
      ? `the pooler at ${server} has no TLS to its server, which does not let it in without: set server_tls_sslmode there`
      : `${server} does not let this user in from here without TLS; add sslmode=verify-full, or sslmode=require to check no certificate. A server that has no TLS needs an entry in its pg_hba.conf`;
  }
  if (/valid client certificate/.test(error.message))
    return `${server} wants a certificate of the client; name it with sslcert and sslkey`;
  if (wantsTls.test(error.message))
    return `${server} wants TLS and the connection has none; add sslmode=verify-full, or sslmode=require to check no certificate`;
  if (/does not support SSL/.test(error.message))
    return `${server} does not speak TLS; use sslmode=disable, or turn TLS on there`;
  return null;
}

function ignore(): void {}

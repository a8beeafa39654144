// Connects to Postgres as psql does. Every new connection evaluates the URL again: a rotated password or certificate needs no restart.
import pg from 'pg';
import { parsePostgresUrl } from '../../domain/postgres-url.ts';
import { SettingTrouble } from '../../domain/trouble.ts';

export type DatabaseUrl = string | (() => string);

export const currentUrl = (url: DatabaseUrl): string => (typeof url === 'string' ? url : url());

/** Returns a client class whose instances read the URL when they are constructed; for pools and for single connections. */
export function clientOf(url: DatabaseUrl) {
  return class IntakeClient extends pg.Client {
    /** A configuration error, which `connect` throws. Thrown by the constructor, it would end the process when a pool creates a client. */
    readonly #problem: unknown;

    constructor(config: pg.ClientConfig = {}) {
      let target = nowhere;
      let problem: unknown;
      try {
        const found = toTarget(url);
        // The driver's constructor reads the certificate files.
        new pg.Client(found);
        target = found;
      } catch (error) {
        problem = error;
      }
      const { requireBinding, ...connection } = target;
      super({ ...config, ...connection });
      this.#problem = problem;
      if (requireBinding) requireChannelBinding(this.connection);
      // A server that shuts down may close a connection before the pool listens for errors. The next query reports it.
      this.on('error', () => {});
    }

    override connect(): Promise<pg.Client>;
    override connect(callback: (error: Error | null, client?: pg.Client) => void): void;
    override connect(callback?: (error: Error | null, client?: pg.Client) => void) {
      const connected = this.#problem ? Promise.reject(this.#problem) : super.connect();
      if (callback === undefined) return connected;
      connected.then(() => callback(null, this), callback);
      return undefined;
    }
  };
}

const nowhere = { connectionString: 'postgres://', enableChannelBinding: false, requireBinding: false };

/** The URL for the driver, which then reads it as psql does. A Unix socket needs no TLS. */
function toTarget(url: DatabaseUrl): typeof nowhere {
  const text = currentUrl(url);
  const { parameters, host, mode, root } = parse(text);
  const given = new URLSearchParams(parameters);
  given.delete('ssl');
  // Without a root certificate, the driver trusts the authorities that Node knows.
  if (root === 'system') given.delete('sslrootcert');
  const sslmode = host.startsWith('/') ? 'disable' : (mode ?? (root === null ? 'disable' : 'verify-full'));
  given.set('sslmode', sslmode);
  // The driver reads the files that these name, also where it uses none.
  if (sslmode === 'disable') for (const name of ['sslrootcert', 'sslcert', 'sslkey']) given.delete(name);
  given.set('uselibpqcompat', 'true');
  const binding = parameters.get('channel_binding') ?? 'disable';
  return {
    connectionString: `${text.replace(/\?.*/s, '')}?${given}`,
    enableChannelBinding: binding !== 'disable',
    requireBinding: binding === 'require',
  };
}

/** Ends the connection before a password is sent, unless the server requests SCRAM with channel binding: the driver would go on without. */
function requireChannelBinding(connection: pg.Connection): void {
  let [isOffered, isBound] = [false, false];
  const refuse = () => {
    connection.emit('error', new Error('login without channel binding'));
    connection.stream.destroy();
  };
  connection.on('authenticationSASL', ({ mechanisms }: { readonly mechanisms: readonly string[] }) => {
    isOffered = mechanisms.includes('SCRAM-SHA-256-PLUS');
    if (!isOffered) refuse();
  });
  connection.on('authenticationSASLFinal', () => {
    isBound = isOffered;
  });
  connection.on('authenticationCleartextPassword', refuse);
  connection.on('authenticationMD5Password', refuse);
  connection.on('authenticationOk', () => {
    if (!isBound) refuse();
  });
}

/** Address and name of a database, for messages: never its user or password. */
export function describeUrl(url: DatabaseUrl) {
  const { host, port, database } = parse(currentUrl(url));
  return { address: `${host || 'localhost'}:${port}`, database };
}

function parse(text: string) {
  const parsed = parsePostgresUrl(text);
  if (parsed !== null) return parsed;
  throw new SettingTrouble('DATABASE_URL: it is not a postgres:// address.', undefined, 'database');
}

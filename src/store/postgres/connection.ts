// Connects to Postgres: TLS parameters with psql's meaning, Unix sockets in psql's notation, and rotated secrets.
// Every new connection evaluates the URL again, so a rotated password or certificate needs no restart.
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { type ConnectionOptions, getCACertificates } from 'node:tls';
import pg from 'pg';
import { parsePostgresUrl } from '../../domain/postgres-url.ts';
import { SettingTrouble } from '../../domain/trouble.ts';

export type DatabaseUrl = string | ChangingUrl;

export interface ChangingUrl {
  url(): string;
  /** The root certificate, where the URL names none. */
  readonly root?: string | null;
  /** Creates the password for one connection. Without it, the password is in the URL. */
  readonly password?: ((login: Login) => Promise<string>) | undefined;
}

export interface Login {
  readonly host: string;
  readonly port: number;
  readonly user: string;
}

export function currentUrl(url: DatabaseUrl): string {
  return typeof url === 'string' ? url : url.url();
}

/** Returns a client class whose instances read the URL when they are constructed; for pools and for single connections. */
export function clientOf(url: DatabaseUrl) {
  return class IntakeClient extends pg.Client {
    /** A configuration error, which `connect` throws. Thrown by the constructor, it would end the process when a pool creates a client. */
    readonly #problem: unknown;
    readonly #preferTls: boolean;
    readonly #requireBinding: boolean;

    constructor(config: pg.ClientConfig = {}) {
      let target = nowhere;
      let problem: unknown;
      try {
        target = toTarget(url);
      } catch (error) {
        problem = error;
      }
      const { preferTls, requireBinding, ...connection } = target;
      super({ ...config, ...connection });
      this.#problem = problem;
      this.#preferTls = preferTls;
      this.#requireBinding = requireBinding;
      // A server that shuts down may close a connection before the pool listens for errors. The next query reports it.
      this.on('error', () => {});
    }

    override connect(): Promise<pg.Client>;
    override connect(callback: (error: Error | null, client?: pg.Client) => void): void;
    override connect(callback?: (error: Error | null, client?: pg.Client) => void) {
      const connected = this.#prepare().then(() => super.connect());
      if (callback === undefined) return connected;
      connected.then(() => callback(null, this), callback);
      return undefined;
    }

    async #prepare(): Promise<void> {
      if (this.#problem) throw this.#problem;
      const { host, port, user = '' } = this;
      if (this.#preferTls && !(await offersTls(host, port))) {
        this.ssl = false;
        (this.connection as unknown as { ssl: boolean }).ssl = false;
      }
      if (this.#requireBinding) requireChannelBinding(this.connection);
      if (typeof url !== 'string' && url.password) this.password = await url.password({ host, port, user });
    }
  };
}

type ConnectionTarget = Pick<
  pg.ClientConfig,
  'connectionString' | 'ssl' | 'sslnegotiation' | 'enableChannelBinding'
> & {
  /** Connect without TLS if the server offers none. */
  readonly preferTls: boolean;
  /** Refuse a login that is not bound to the TLS connection. */
  readonly requireBinding: boolean;
};

const nowhere: ConnectionTarget = {
  connectionString: 'postgres://',
  ssl: false,
  preferTls: false,
  requireBinding: false,
};

/** Splits the URL's TLS parameters off, because the driver interprets them differently from psql, and resolves them. */
function toTarget(url: DatabaseUrl): ConnectionTarget {
  const text = currentUrl(url);
  const parsed = parse(text);
  const { parameters } = parsed;
  const others = new URLSearchParams([...parameters].filter(([name]) => !tlsParameter.test(name)));
  const sslnegotiation = parameters.get('sslnegotiation');
  const binding = parameters.get('channel_binding') ?? 'disable';
  return {
    connectionString: `${text.replace(/\?.*/s, '')}?${others}`,
    enableChannelBinding: binding !== 'disable',
    requireBinding: binding === 'require',
    ...(sslnegotiation && { sslnegotiation: sslnegotiation as 'direct' }),
    ...toTls({ ...parsed, root: parsed.root ?? (typeof url === 'string' ? null : (url.root ?? null)) }),
  };
}

/** The configuration rejects unknown names that begin with `ssl`. */
const tlsParameter = /^(ssl.*|uselibpqcompat|channel_binding)$/;

function toTls({
  parameters,
  host,
  root,
  ...parsed
}: ReturnType<typeof parse>): Pick<ConnectionTarget, 'ssl' | 'preferTls'> {
  const mode = parsed.mode ?? (root === null ? 'disable' : 'verify-full');
  // A Unix socket needs no TLS.
  if (mode === 'disable' || host.startsWith('/')) return { ssl: false, preferTls: false };
  const file = (name: string) => {
    const path = parameters.get(name);
    return path === null ? undefined : readFileSync(path, 'utf8');
  };
  const own = { cert: file('sslcert'), key: file('sslkey'), passphrase: parameters.get('sslpassword') ?? undefined };
  const isChecked = mode.startsWith('verify-') || (mode === 'require' && root !== null);
  if (!isChecked) return { ssl: { ...own, rejectUnauthorized: false }, preferTls: mode === 'prefer' };
  const ca = root === null ? {} : { ca: loadAuthorities(root) };
  const anyName: ConnectionOptions = mode === 'verify-full' ? {} : { checkServerIdentity: () => undefined };
  return { ssl: { ...own, ...ca, ...anyName, rejectUnauthorized: true }, preferTls: false };
}

/**
 * Ends the connection unless the server requests SCRAM with channel binding. The driver alone binds where the server offers it and logs in
 * without it elsewhere. These listeners run before the driver's, so no password is sent.
 */
function requireChannelBinding(connection: pg.Connection): void {
  let [isOffered, isBound] = [false, false];
  const refuse = () => {
    connection.emit('error', new Error(unboundLogin));
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

/** The message of a login that `channel_binding=require` ended. */
export const unboundLogin = 'login without channel binding';

/** Loads CA certificates from the system store, from PEM text in the URL, or from a file. */
function loadAuthorities(root: string): string[] {
  if (root === 'system') return getCACertificates('system');
  const isText = root.includes('-----BEGIN');
  const certificates = (isText ? root : readFileSync(root, 'utf8')).match(onePem) ?? [];
  try {
    if (certificates.map((pem) => new X509Certificate(pem)).length > 0) return certificates;
  } catch {
    // Reported below.
  }
  const what = isText ? 'the text of the root certificate' : `the file ${root}`;
  throw new SettingTrouble(`DATABASE_URL: ${what} contains no readable certificate.`, undefined, 'database');
}

const onePem = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----.+?-----END (?:TRUSTED |X509 )?CERTIFICATE-----/gs;

/** The SSLRequest message, to which the server answers with one byte. */
const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
const yes = 'S'.charCodeAt(0);
const answerWithinMs = 5_000;

async function offersTls(host: string, port: number): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port });
  socket.setTimeout(answerWithinMs, () => socket.destroy(new Error('timeout exceeded')));
  socket.once('error', reject);
  socket.once('close', () => reject(new Error('Connection terminated')));
  socket.once('data', (answer) => resolve(answer[0] === yes));
  socket.write(tlsRequest);
  return await promise.finally(() => socket.destroy());
}

/** Host and port of a database URL, for messages: never its user or password. */
export function toAddress(url: DatabaseUrl): string {
  const { host, port } = parse(currentUrl(url));
  return `${host || 'localhost'}:${port}`;
}

export function toDatabaseName(url: DatabaseUrl): string {
  return parse(currentUrl(url)).database;
}

function parse(text: string) {
  const parsed = parsePostgresUrl(text);
  if (parsed !== null) return parsed;
  throw new SettingTrouble('DATABASE_URL: it is not a postgres:// address.', undefined, 'database');
}

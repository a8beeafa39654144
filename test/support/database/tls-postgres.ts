// A Postgres that speaks TLS with a certificate of a private authority, as managed databases and companies use it.

import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls, TLSSocket } from 'node:tls';
import pg from 'pg';
import { resolveBinaries } from '../../../src/dev/embedded/embedded.ts';
import { openPlace } from '../../../src/dev/embedded/place.ts';
import { openServer } from '../../../src/dev/embedded/server.ts';
import { makeAuthority, makeCertificate } from '../servers/authority.ts';
import { listenLocally } from '../servers/local-server.ts';

export interface TlsPostgres extends AsyncDisposable {
  /** Uses the host name in the certificate, has no parameters; the server requires TLS. */
  readonly url: string;
  /** The authority's certificate. */
  readonly rootFile: string;
  /** The certificate of another authority, which has signed nothing here. */
  readonly strangerFile: string;
}

/** Starts a scratch server whose certificate is for `localhost`. */
export async function openTlsPostgres(): Promise<TlsPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'intake-tls-'));
  chmodSync(folder, 0o755);
  const place = await openPlace({ folder, scratch: true, binaries: resolveBinaries() });
  const server = await openServer(place, { scratch: true, port: null, log: join(folder, 'postgres.log') });
  const data = join(place.home, 'data');
  const path = (name: string) => join(folder, name);
  makeAuthority(path('root'));
  makeAuthority(path('stranger'));
  makeCertificate(path('root'), path('server'));
  const { uid, gid } = statSync(data);
  for (const name of ['server.crt', 'server.key']) {
    copyFileSync(path(name), join(data, name));
    chmodSync(join(data, name), 0o600);
    chownSync(join(data, name), uid, gid);
  }
  appendFileSync(
    join(data, 'postgresql.conf'),
    `\nssl = on\nssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\n`,
  );
  writeFileSync(join(data, 'pg_hba.conf'), 'hostssl all all 127.0.0.1/32 scram-sha-256\n');
  await reload(server.url);
  return {
    url: server.url.replace('127.0.0.1', 'localhost'),
    rootFile: path('root.crt'),
    strangerFile: path('stranger.crt'),
    async [Symbol.asyncDispose]() {
      await server.stop();
      for (const each of [place.home, folder]) rmSync(each, { recursive: true, force: true });
    },
  };
}

/** The SSLRequest message, which starts TLS. */
const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** Starts a man in the middle: it terminates TLS with its own certificate and could read all traffic. */
export async function openTlsRelay(server: TlsPostgres, folder: string): Promise<{ url: string } & AsyncDisposable> {
  const own = join(folder, 'relay');
  makeAuthority(own);
  const [cert, key] = [readFileSync(`${own}.crt`), readFileSync(`${own}.key`)];
  const { port: behind } = new URL(server.url);
  const relay = createServer(async (client) => {
    const upstream = connect(Number(behind), '127.0.0.1');
    for (const each of [client, upstream]) {
      each.on('error', () => {});
      each.on('close', () => [client, upstream].map((one) => one.destroy()));
    }
    await once(client, 'data');
    upstream.write(tlsRequest);
    await once(upstream, 'data');
    client.write('S');
    const near = new TLSSocket(client, { isServer: true, cert, key });
    const far = connectTls({ socket: upstream, rejectUnauthorized: false });
    for (const each of [near, far]) each.on('error', () => {});
    near.pipe(far).pipe(near);
  });
  const { port, ...local } = await listenLocally(relay);
  return { ...local, url: server.url.replace(`:${behind}/`, `:${port}/`) };
}

/** Reloads the settings and waits until the server speaks TLS. */
async function reload(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('SELECT pg_reload_conf()');
    for (;;) {
      const { rows } = await client.query<{ ssl: string }>('SHOW ssl');
      if (rows[0]?.ssl === 'on') return;
      await sleep(10);
    }
  } finally {
    await client.end();
  }
}

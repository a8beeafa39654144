// Servers and poolers that refuse a login each say so in their own way. Where only a setting helps, the command ends with 2 and says which.
import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { callIntake } from '../../support/processes/intake.ts';
import { listenLocally } from '../../support/servers/local-server.ts';

/** Answers every login with this error. */
async function openRefusal(code: string, message: string) {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeUInt32BE(fields.length + 4, 1);
  const refusal = Buffer.concat([head, fields]);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(refusal));
  });
  const { port, ...local } = await listenLocally(server);
  return { ...local, url: `postgres://intake:pw@127.0.0.1:${port}/staff` };
}

const refusals: [whose: string, code: string, message: string, told: RegExp][] = [
  ['a wrong password, by pgbouncer 1.18', '08P01', 'SASL authentication failed', /user or the password/],
  ['a wrong password, by pgbouncer with md5', '08P01', 'password authentication failed', /user or the password/],
  ['a user that pgbouncer does not know', '08P01', 'no such user: intake', /user or the password/],
  ['a database that pgbouncer does not know', '08P01', 'no such database: staff', /no database "staff"/],
  [
    'a pooler without TLS to a server that wants it',
    '08P01',
    'no pg_hba.conf entry for host "10.0.0.1", user "intake", database "staff", no encryption',
    /the pooler at 127\.0\.0\.1:\d+ connects to its server without TLS, and the server rejects that: set server_tls_sslmode there/,
  ],
  [
    'no entry for a connection without TLS',
    '28000',
    'no pg_hba.conf entry for host "10.0.0.1", user "intake", database "staff", no encryption',
    /does not allow this user to connect from here without TLS; add sslmode=verify-full.* pg_hba\.conf/,
  ],
  [
    'a server that wants a certificate',
    '28000',
    'connection requires a valid client certificate',
    /sslcert and sslkey/,
  ],
];

describe('a login that is refused', () => {
  test.for(refusals)('for %s is a setting to correct', async ([, code, message, told]) => {
    await using server = await openRefusal(code, message);
    const { code: exitCode, stderr } = await callIntake(['migrate'], { DATABASE_URL: server.url });
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(told) });
  });

  test('by a pooler whose server is away is waited for', async () => {
    await using server = await openRefusal(
      '08P01',
      'server login has been failing, try again later (server_login_retry)',
    );
    expect(await callIntake(['migrate'], { DATABASE_URL: server.url })).toMatchObject({ code: 5 });
  });
});

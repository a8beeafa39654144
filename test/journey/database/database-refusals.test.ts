// Servers and poolers that refuse a login each say so in their own way. Where only a setting helps, the command ends with 2 and says which.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { callIntake, runIntake } from '../../support/processes/intake.ts';
import { listenLocally } from '../../support/servers/local-server.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';

/** Answers every login with this error. With `passwords` it first asks for one in clear text, as RDS does for tokens, and keeps it there. */
async function openRefusal(code: string, message: string, passwords?: string[]) {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeUInt32BE(fields.length + 4, 1);
  const refusal = Buffer.concat([head, fields]);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      if (!passwords) return socket.end(refusal);
      socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]));
      return socket.once('data', (answer) => {
        passwords.push(answer.subarray(5, -1).toString());
        socket.end(refusal);
      });
    });
  });
  const { port, ...local } = await listenLocally(server);
  return { ...local, port, url: `postgres://intake:pw@127.0.0.1:${port}/staff` };
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

test('a Unix socket that cannot be one is a setting to correct', async () => {
  await using scratch = await openScratch();
  const file = join(scratch.path, 'file');
  writeFileSync(file, '');
  for (const folder of [file, `/${'x'.repeat(120)}`]) {
    expect(await callIntake(['migrate'], { DATABASE_URL: `postgres://intake@/staff?host=${folder}` })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`DATABASE_URL: no Unix socket can be opened in ${folder} (E`),
    });
  }
});

describe('a database of RDS with IAM', { tags: ['slow'] }, () => {
  const keys = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'a-secret-key' };
  const migrate = async (aws: Record<string, string>) => {
    const passwords: string[] = [];
    await using server = await openRefusal('28P01', 'no', passwords);
    const DATABASE_URL = `postgres://intake@127.0.0.1:${server.port}/intake`;
    const ended = await runIntake(['migrate'], { ...aws, DATABASE_URL, DATABASE_AUTH: 'rds-iam' });
    return { ...ended, port: server.port, passwords };
  };

  test('is given a token for its host, port and user, made anew for every connection, since it holds for 15 minutes', async () => {
    const { code, port, passwords } = await migrate({ ...keys, AWS_REGION: 'ap-southeast-2' });
    const token = `127\\.0\\.0\\.1:${port}/\\?Action=connect&DBUser=intake&.*X-Amz-Expires=900&.*X-Amz-Signature=`;
    expect({ code, password: passwords[0] }).toEqual({
      code: 2,
      password: expect.stringMatching(new RegExp(`^${token}`)),
    });
  });

  test('says what is missing where there are no credentials to make a token with, or no region', async () => {
    const nowhere = { AWS_EC2_METADATA_DISABLED: 'true', HOME: '/nonexistent' };
    expect(await migrate({ ...nowhere, AWS_REGION: 'ap-southeast-2' })).toMatchObject({
      ...{ code: 5, stderr: expect.stringMatching(/token.*CredentialsProviderError/), passwords: [] },
    });
    expect(await migrate({ ...keys, HOME: '/nonexistent' })).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining('AWS_REGION') },
    });
  });
});

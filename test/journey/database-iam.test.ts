// @module-tag slow
// Amazon RDS lets a role in by a token instead of a password. The token is made anew for every connection, since it holds for 15 minutes.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { runIntake } from '../support/intake.ts';

/** Speaks enough of the protocol to ask for a password in clear text, as RDS does for tokens, and refuses it. */
async function openPasswordTaker() {
  const passwords: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]));
      socket.once('data', (message) => {
        passwords.push(message.subarray(5, -1).toString());
        const fields = Buffer.from('SFATAL\0C28P01\0Mno\0\0');
        const head = Buffer.alloc(5);
        head.write('E');
        head.writeUInt32BE(fields.length + 4, 1);
        socket.end(Buffer.concat([head, fields]));
      });
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    passwords,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

const aws = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'a-secret-key', AWS_REGION: 'ap-southeast-2' };

describe('a database of RDS with IAM', () => {
  test('is given a token for its host, port and user', async () => {
    await using server = await openPasswordTaker();
    const DATABASE_URL = `postgres://intake@127.0.0.1:${server.port}/intake`;
    const { code } = await runIntake(['migrate'], { ...aws, DATABASE_URL, DATABASE_AUTH: 'rds-iam' });
    expect(code).toBe(2);
    expect(server.passwords[0]).toMatch(
      new RegExp(
        `^127\\.0\\.0\\.1:${server.port}/\\?Action=connect&DBUser=intake&.*X-Amz-Expires=900&.*X-Amz-Signature=`,
      ),
    );
  });

  test('says what is missing where there are no credentials to make a token with', async () => {
    await using server = await openPasswordTaker();
    const DATABASE_URL = `postgres://intake@127.0.0.1:${server.port}/intake`;
    const { code, stderr } = await runIntake(['migrate'], {
      AWS_REGION: 'ap-southeast-2',
      AWS_EC2_METADATA_DISABLED: 'true',
      HOME: '/nonexistent',
      DATABASE_URL,
      DATABASE_AUTH: 'rds-iam',
    });
    expect({ code, stderr }).toEqual({ code: 5, stderr: expect.stringMatching(/token.*CredentialsProviderError/) });
    expect(server.passwords).toEqual([]);
  });

  test('names the region where it is not set', async () => {
    await using server = await openPasswordTaker();
    const { AWS_REGION: _, ...keys } = aws;
    const DATABASE_URL = `postgres://intake@127.0.0.1:${server.port}/intake`;
    const env = { ...keys, HOME: '/nonexistent', DATABASE_URL, DATABASE_AUTH: 'rds-iam' };
    expect(await runIntake(['migrate'], env)).toMatchObject({ code: 2, stderr: expect.stringContaining('AWS_REGION') });
  });
});

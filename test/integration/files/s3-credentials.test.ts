// @module-tag slow
// Credentials of S3 that a platform gives: a token in a file is exchanged for keys that hold for a while, and nothing is set by hand.

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import { openTestDatabase } from '../../support/database/test-database.ts';
import { runIntake } from '../../support/processes/intake.ts';
import { toEnvironment } from '../../support/processes/syncing.ts';
import { listenLocally } from '../../support/servers/local-server.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';
import { openStrictS3, type StrictS3 } from '../../support/stores/strict-s3.ts';

/** Gives the keys of this S3 to a client that brings the token. */
async function openTokenService({ credentials: { accessKeyId, secretAccessKey } }: StrictS3) {
  const asked: URLSearchParams[] = [];
  const server = createServer(async (request, response) => {
    asked.push(new URLSearchParams(await text(request)));
    const keys = `<AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey>`;
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const given = `<Credentials>${keys}<SessionToken>a-session</SessionToken><Expiration>${until}</Expiration></Credentials>`;
    const role = '<AssumedRoleUser><Arn>arn</Arn><AssumedRoleId>id</AssumedRoleId></AssumedRoleUser>';
    response.setHeader('content-type', 'text/xml');
    response.end(
      `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>${given}${role}</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
    );
  });
  return { ...(await listenLocally(server)), asked };
}

test('the storage is opened by the service account of a platform, without a key in any setting', async () => {
  await using database = await openTestDatabase();
  await using board = await openSandbox({ applications: 3 });
  await using scratch = await openScratch();
  await using s3 = await openStrictS3();
  await using service = await openTokenService(s3);
  const token = join(scratch.path, 'token');
  writeFileSync(token, 'the-token-of-the-service-account');
  const { code, stderr } = await runIntake(['sync'], {
    ...toEnvironment(database, board),
    BLOBS_URL: `s3://${s3.bucket}/intake`,
    S3_ENDPOINT: s3.endpoint,
    S3_FORCE_PATH_STYLE: 'true',
    AWS_REGION: s3.region,
    AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/intake',
    AWS_WEB_IDENTITY_TOKEN_FILE: token,
    AWS_ENDPOINT_URL_STS: service.url,
    AWS_EC2_METADATA_DISABLED: 'true',
  });
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  expect(Object.fromEntries(service.asked[0] ?? [])).toMatchObject({
    RoleArn: 'arn:aws:iam::123456789012:role/intake',
    WebIdentityToken: 'the-token-of-the-service-account',
  });
  const puts = s3.requests.filter(({ operation }) => operation === 'PutObject');
  expect(puts.every(({ status, headers }) => status === 200 && headers['x-amz-security-token'] === 'a-session')).toBe(
    true,
  );
  expect(s3.objects.size).toBeGreaterThan(1);
});

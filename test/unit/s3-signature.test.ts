// The signature of a direct put: what AWS publishes as an example, and what an independent reading of the rules accepts.

import { describe, expect, test } from 'vitest';
import { createSigner, type Unsigned } from '../../src/blobs/s3-signature.ts';
import { verifySignature } from '../support/sigv4.ts';

const credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
};
const request: Unsigned = {
  method: 'PUT',
  path: '/test%24file.text',
  query: '',
  headers: {
    'x-amz-storage-class': 'REDUCED_REDUNDANCY',
    'user-agent': 'anyone',
    host: 'examplebucket.s3.amazonaws.com',
    date: 'Fri, 24 May 2013 00:00:00 GMT',
    'x-amz-content-sha256': '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
  },
  uncovered: new Set(['user-agent']),
};
const at = new Date('2013-05-24T00:00:00Z');

describe('a signature', () => {
  test('is the one that AWS publishes for its example of a put', () => {
    const { authorization, ...sent } = createSigner('us-east-1')(request, credentials, at);
    expect(sent).toEqual({ ...request.headers, 'x-amz-date': '20130524T000000Z' });
    expect(authorization).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, ' +
        'SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class, ' +
        'Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    );
  });

  test('is right on another day, for another secret, with and without a token, and again for the first', () => {
    const region = 'ap-southeast-2';
    const sign = createSigner(region);
    const other = { accessKeyId: 'OTHER', secretAccessKey: 'other/secret', sessionToken: 'a/token==' };
    const next = new Date(at.getTime() + 86_400_000);
    for (const [who, when] of [
      [credentials, at],
      [credentials, next],
      [other, next],
      [other, at],
      [credentials, at],
    ] as const) {
      const asked = { ...request, query: 'x-id=PutObject' };
      const headers = sign(asked, who, when);
      const { method, path, query } = asked;
      const keeper = { ...who, region, now: () => when.getTime() };
      expect(verifySignature({ method, target: `${path}?${query}`, headers }, keeper)).toBe(
        headers['x-amz-content-sha256'],
      );
      expect(headers['x-amz-security-token']).toBe('sessionToken' in who ? who.sessionToken : undefined);
    }
  });
});

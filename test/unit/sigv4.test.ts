// The tests' own S3 is only as strict as its check of the signature: it must agree with the examples that AWS publishes.

import { describe, expect, test } from 'vitest';
import { type SignedRequest, verifySignature } from '../support/sigv4.ts';

const keeper = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
  now: () => Date.UTC(2013, 4, 24),
};
const host = 'examplebucket.s3.amazonaws.com';
const at = '20130524T000000Z';
const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const credential = 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request';

const get: SignedRequest = {
  method: 'GET',
  target: '/test.txt',
  headers: {
    host,
    range: 'bytes=0-9',
    'x-amz-content-sha256': emptyHash,
    'x-amz-date': at,
    authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41`,
  },
};
const presigned: SignedRequest = {
  method: 'GET',
  target: `/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${encodeURIComponent(credential)}&X-Amz-Date=${at}&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404`,
  headers: { host },
};

describe('the strict S3', () => {
  test('accepts what AWS signed', () => {
    expect(verifySignature(get, keeper)).toBe(emptyHash);
    expect(verifySignature(presigned, keeper)).toBe('UNSIGNED-PAYLOAD');
  });

  test.for<[string, SignedRequest]>([
    ['method', { ...get, method: 'PUT' }],
    ['path', { ...get, target: '/test2.txt' }],
    ['query', { ...get, target: '/test.txt?acl' }],
    ['signed header', { ...get, headers: { ...get.headers, range: 'bytes=0-10' } }],
    ['payload hash', { ...get, headers: { ...get.headers, 'x-amz-content-sha256': '0'.repeat(64) } }],
    ['presigned path', { ...presigned, target: presigned.target.replace('test', 'best') }],
    ['presigned lifetime', { ...presigned, target: presigned.target.replace('86400', '86401') }],
  ])('refuses another %s under the same signature', ([, request]) => {
    expect(() => verifySignature(request, keeper)).toThrow('SignatureDoesNotMatch');
  });

  test('refuses what is not signed, what should have been, and what has run out', () => {
    expect(() => verifySignature({ ...get, headers: { host } }, keeper)).toThrow('AccessDenied');
    const unsigned = { ...get, headers: { ...get.headers, 'x-amz-acl': 'public-read' } };
    expect(() => verifySignature(unsigned, keeper)).toThrow('AccessDenied');
    const late = { ...keeper, now: () => keeper.now() + 86_401_000 };
    expect(() => verifySignature(presigned, late)).toThrow('AccessDenied');
    expect(() => verifySignature(get, late)).toThrow('RequestTimeTooSkewed');
  });
});

import { describe, expect, test } from 'vitest';
import { hasRoom, parseBlobFolder, parseBlobKey, toBlobKey } from '../../src/domain/blob.ts';
import { explainRefusal, renderIdentity } from '../../src/domain/store-owner.ts';

const sha256 = 'ab'.repeat(32);

describe('the key of a blob', () => {
  test('is made of the advertiser and the bytes, and lies in the advertiser’s folder', () => {
    expect(toBlobKey(31_337n, sha256)).toBe(`31337/ab/${sha256}`);
    expect(parseBlobKey(toBlobKey(-(2n ** 63n), sha256))).toBe(`-9223372036854775808/ab/${sha256}`);
  });

  test.for([sha256.toUpperCase(), sha256.slice(1), `${sha256}0`, `../${sha256}`, ''])('is not made of %j', (text) => {
    expect(() => toBlobKey(1n, text)).toThrow('sha256');
  });

  test.for([
    ['nothing', ''],
    ['a way up', '..'],
    ['a way up from below', 'a/../../x'],
    ['the folder itself', '.'],
    ['an absolute path', '/etc/x'],
    ['an empty part', 'a//b'],
    ['a folder', 'a/'],
    ['the store’s own mark', '.intake-store'],
    ['a hidden name', 'a/.b'],
    ['a backslash', 'a\\b'],
    ['a NUL', 'a\0b'],
    ['a line end', 'a\n'],
    ['a space', 'a b'],
    ['another alphabet', 'é'],
    ['a percent sign', 'a%2e'],
    ['more than any file system takes', 'a'.repeat(256)],
  ])('is never %s', ([, text]) => {
    expect(() => parseBlobKey(text as string)).toThrow('not a blob key');
    if (text !== '') expect(() => parseBlobFolder(`${text}/`)).toThrow('not a folder');
  });

  test('has a folder that ends in a slash, or none', () => {
    expect(parseBlobFolder('')).toBe('');
    expect(parseBlobFolder('1/ab/')).toBe('1/ab/');
    expect(() => parseBlobFolder('1')).toThrow('not a folder');
  });
});

test('a store without an identity is refused in words, also where nobody recorded where the files are', () => {
  const recorded = { databaseId: 'mine', identity: 'earlier', nextIdentity: null, location: null };
  const words = 'file:///b does not hold the files of this database: they are in another store.';
  expect(explainRefusal('file:///b', recorded, null)).toBe(words);
});

test('a store that was restored from before the last adoption is told as older, one with a later epoch as adopted', () => {
  const toIdentity = (epoch: number) => renderIdentity({ databaseId: 'mine', epoch }, 'nonce');
  const recorded = { databaseId: 'mine', identity: toIdentity(2), nextIdentity: null, location: 'file:///b' };
  const older = 'file:///b is an older state of the store: it has epoch 1, and this database 2.';
  expect(explainRefusal('file:///b', recorded, toIdentity(1))).toBe(older);
  expect(explainRefusal('file:///b', recorded, toIdentity(3))).toContain('adopted by another copy');
});

describe('a disk', () => {
  const mb = 1024 * 1024;
  test('has room while a reserve stays free after all that is claimed', () => {
    expect(hasRoom(656 * mb, 400 * mb)).toBe(true);
    expect(hasRoom(656 * mb - 1, 400 * mb)).toBe(false);
    expect(hasRoom(0, 0)).toBe(false);
  });

  test('without a known limit always has room', () => {
    expect(hasRoom(null, Number.MAX_SAFE_INTEGER)).toBe(true);
  });
});

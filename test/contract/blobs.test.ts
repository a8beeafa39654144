// The contract of every blob store, tested on each available kind.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BlobStore, toBlobKey } from '../../src/domain/blob.ts';
import {
  type BlobPlace,
  createBytes,
  loadBlobPlaces,
  openScratch,
  toFacts,
  toFileBody,
} from '../support/stores/blob-stores.ts';

const signal = AbortSignal.timeout(600_000);
const places = await loadBlobPlaces();

/** Stores that differ from another one in one habit. */
const isVariant = (name: string) => name.startsWith('a strict S3');

for (const { name, absent, open } of places) {
  const options = { tags: isVariant(name) ? ['slow'] : [] };
  describe.skipIf(absent !== undefined)(`blobs in ${name}${absent ? ` (${absent})` : ''}`, options, () => {
    let place: BlobPlace;
    let store: BlobStore;
    let advertiserId = 1000n;
    beforeAll(async () => {
      place = await open();
      store = await place.open();
    });
    afterAll(async () => {
      await store?.[Symbol.asyncDispose]();
      await place?.[Symbol.asyncDispose]();
    });

    /** New bytes under a new advertiser, so that tests do not share keys. */
    function create(sizeBytes = 40_000) {
      const { bytes, facts } = createBytes(sizeBytes);
      advertiserId += 1n;
      return { bytes, facts, key: toBlobKey(advertiserId, facts.sha256), folder: `${advertiserId}/` };
    }
    const read = async (key: string) => Buffer.concat(await Array.fromAsync(store.get(key, signal)));
    const listKeys = (folder: string) => Array.fromAsync(store.list(folder, signal), (blob) => blob.key);

    // This test must run first, while the store has no identity.
    test('a store has one identity, and of several that replace it at once one succeeds', async () => {
      expect(await store.loadIdentity(signal)).toBeNull();
      await using elsewhere = await place.open();
      for (const before of [null, 'the first']) {
        const texts = Array.from({ length: 6 }, (_, i) => (before === null ? 'the first' : `the second, by ${i}`));
        const replaced = await Promise.all(
          texts.map((text, i) => (i % 2 ? store : elsewhere).replaceIdentity(before, text, signal)),
        );
        const found = await store.loadIdentity(signal);
        expect(found).toBe(texts[replaced.lastIndexOf(true)] ?? 'none succeeded');
        if (!name.includes('without If-None-Match')) expect(replaced.filter(Boolean)).toHaveLength(1);
        expect(await elsewhere.replaceIdentity('another', 'too late', signal)).toBe(false);
      }
    });

    test('a text is replaced whole, by those who know the one before, and is no blob', async () => {
      const name = 'pointer.json';
      expect(await store.loadText(name, signal)).toBeNull();
      expect(await store.replaceText(name, 'another', 'too early', signal)).toBe(false);
      expect(await store.replaceText(name, null, 'the first', signal)).toBe(true);
      await using elsewhere = await place.open();
      expect(await elsewhere.replaceText(name, null, 'too late', signal)).toBe(false);
      expect(await elsewhere.replaceText(name, 'the first', 'the second', signal)).toBe(true);
      expect(await store.replaceText(name, 'the first', 'too late', signal)).toBe(false);
      expect(await store.loadText(name, signal)).toBe('the second');
      await expect(store.replaceText('../pointer.json', null, 'outside', signal)).rejects.toThrow();
      await store.delete(name, signal);
      expect(await store.loadText(name, signal)).toBeNull();
    });

    test.for([0, 1, 40_000, 3_000_001])('%i bytes come back as they went in', async (sizeBytes) => {
      const { bytes, facts, key } = create(sizeBytes);
      expect(await store.put(key, bytes, facts, signal)).toBe('stored');
      expect((await read(key)).equals(bytes)).toBe(true);
      expect(await store.verify(key, facts, 'bytes', signal)).toBe('intact');
    });

    test('a file comes back as it went in, and stays where it was', async () => {
      await using scratch = await openScratch();
      for (const sizeBytes of [0, 9_000_001]) {
        const { bytes, facts, key } = create(sizeBytes);
        const path = join(scratch.path, `${sizeBytes}`);
        await writeFile(path, bytes);
        expect(await store.put(key, toFileBody(path), facts, signal)).toBe('stored');
        expect((await read(key)).equals(bytes)).toBe(true);
        expect((await readFile(path)).equals(bytes)).toBe(true);
      }
    });

    test('the same bytes again change nothing', async () => {
      const { bytes, facts, key, folder } = create();
      await store.put(key, bytes, facts, signal);
      expect(await store.put(key, bytes, facts, signal)).toSatisfy((outcome) =>
        name.includes('without If-None-Match') ? outcome === 'stored' : outcome === 'present',
      );
      expect((await read(key)).equals(bytes)).toBe(true);
      expect(await listKeys(folder)).toEqual([key]);
    });

    test('of many who put the same bytes at once each succeeds, and they lie there once', async () => {
      const { bytes, facts, key, folder } = create();
      const outcomes = await Promise.all(Array.from({ length: 12 }, () => store.put(key, bytes, facts, signal)));
      expect(outcomes).toContain('stored');
      expect(await listKeys(folder)).toEqual([key]);
      expect(await store.verify(key, facts, 'bytes', signal)).toBe('intact');
    });

    test('one flipped byte and a wrong length are found, and a put heals them', async () => {
      const { bytes, facts, key } = create();
      const flipped = Buffer.from(bytes);
      flipped[20_000] = (bytes[20_000] ?? 0) ^ 1;
      for (const damaged of [flipped, bytes.subarray(1)]) {
        await store.put(key, damaged, toFacts(damaged), signal);
        expect(await store.verify(key, facts, 'bytes', signal)).toBe('damaged');
        expect(await store.put(key, bytes, facts, signal)).toBe('stored');
        expect(await store.verify(key, facts, 'bytes', signal)).toBe('intact');
      }
      await store.put(key, bytes.subarray(1), toFacts(bytes.subarray(1)), signal);
      expect(await store.verify(key, facts, 'metadata', signal)).toBe('damaged');
    });

    test('bytes that are not what was hashed are refused, and nothing of them stays', async () => {
      await using scratch = await openScratch();
      const { bytes, facts, key, folder } = create();
      const path = join(scratch.path, 'spooled');
      for (const wrong of [bytes.subarray(0, 39_999), Buffer.concat([bytes, bytes]), createBytes(40_000).bytes]) {
        await expect(store.put(key, wrong, facts, signal)).rejects.toMatchObject({ kind: 'mismatch' });
        await writeFile(path, wrong);
        await expect(store.put(key, toFileBody(path), facts, signal)).rejects.toMatchObject({ kind: 'mismatch' });
      }
      await expect(store.put(key, toFileBody(`${path}-gone`), facts, signal)).rejects.toMatchObject({ kind: 'local' });
      expect(await store.verify(key, facts, 'metadata', signal)).toBe('missing');
      expect(await listKeys(folder)).toEqual([]);
    });

    test('what is not there is missing, by every way of asking', async () => {
      const { facts, key } = create();
      expect(await store.verify(key, facts, 'metadata', signal)).toBe('missing');
      expect(await store.verify(key, facts, 'bytes', signal)).toBe('missing');
      await expect(read(key)).rejects.toMatchObject({ kind: 'missing' });
    });

    test('deleted is gone; what was not there does not matter', async () => {
      const one = create(10);
      const other = create(10);
      await store.put(one.key, one.bytes, one.facts, signal);
      await store.put(other.key, other.bytes, other.facts, signal);
      await store.delete(create(1).key, signal);
      await store.delete(one.key, signal);
      expect(await store.verify(one.key, one.facts, 'metadata', signal)).toBe('missing');
      expect(await store.verify(other.key, other.facts, 'metadata', signal)).toBe('intact');
      await store.delete(one.key, signal);
    });

    test('a list has every blob of its folder once, in the order of the keys, with its size, and nothing of the store itself', async () => {
      expect(await store.loadIdentity(signal)).not.toBeNull();
      const { folder } = create();
      // In byte order: the slash of a folder sorts between the dash and the digits.
      const names = ['0a', 'a-b', 'a/0', 'a/z', 'a0', 'ab/1/2', 'b'];
      const keys = [...names, ...Array.from({ length: 20 }, (_, i) => `c/${String(i).padStart(2, '0')}`)];
      const { bytes, facts } = createBytes(33);
      for (const key of keys.toReversed()) await store.put(`${folder}${key}`, bytes, facts, signal);
      const listed = await Array.fromAsync(store.list(folder, signal));
      expect(listed.map(({ key }) => key)).toEqual(keys.map((key) => `${folder}${key}`));
      expect(new Set(listed.map(({ sizeBytes }) => sizeBytes))).toEqual(new Set([33]));
      const all = await listKeys('');
      expect(all).toEqual(expect.arrayContaining(keys.map((key) => `${folder}${key}`)));
      expect(all.filter((key) => key.includes('.'))).toEqual([]);
      expect(await listKeys(create().folder)).toEqual([]);
    });

    test('what is no key reaches nothing: it is not read, written, deleted, listed or signed', async () => {
      const { bytes, facts } = create(1);
      for (const key of ['..', '../x', 'a/../../x', '/etc/hostname', '.intake-store', 'a/.hidden']) {
        const url = store.url(key, { fileName: 'x', contentType: 'text/plain', expiresInMs: 1000 });
        await expect(url).rejects.toMatchObject({ kind: 'local' });
        await expect(store.put(key, bytes, facts, signal)).rejects.toMatchObject({ kind: 'local' });
        await expect(read(key)).rejects.toMatchObject({ kind: 'local' });
        await expect(store.verify(key, facts, 'metadata', signal)).rejects.toMatchObject({ kind: 'local' });
        await expect(store.delete(key, signal)).rejects.toMatchObject({ kind: 'local' });
        await expect(listKeys(`${key}/`)).rejects.toMatchObject({ kind: 'local' });
      }
    });

    test('an address opens the bytes, as a file to save under the name a person knows', async () => {
      const { bytes, facts, key } = create();
      await store.put(key, bytes, facts, signal);
      const options = { fileName: 'Zoë “CV”.pdf', contentType: 'application/pdf', expiresInMs: 300_000 };
      const url = await store.url(key, options);
      if (url.startsWith('file:')) {
        expect((await readFile(fileURLToPath(url))).equals(bytes)).toBe(true);
        return;
      }
      const response = await fetch(url);
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('application/pdf');
      expect(response.headers.get('content-disposition')).toMatch(
        /^attachment; filename=".*"; filename\*=UTF-8''Zo%C3%AB/,
      );
      expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
    });

    test('an abort ends a put and a get with its own reason, and nothing half-written stays', async () => {
      const { bytes, facts, key, folder } = create(3_000_000);
      const reason = new Error('shutting down');
      await expect(store.put(key, bytes, facts, AbortSignal.abort(reason))).rejects.toBe(reason);
      expect(await listKeys(folder)).toEqual([]);
      await store.put(key, bytes, facts, signal);
      const abort = new AbortController();
      const got = (async () => {
        for await (const _ of store.get(key, abort.signal)) abort.abort(reason);
      })();
      await expect(got).rejects.toBe(reason);
    });

    test('a reader who leaves early leaves nothing open', async () => {
      const { bytes, facts, key } = create(3_000_000);
      await store.put(key, bytes, facts, signal);
      for await (const chunk of store.get(key, signal)) {
        expect(chunk.length).toBeGreaterThan(0);
        break;
      }
      expect((await read(key)).equals(bytes)).toBe(true);
    });
  });
}

// What a bucket may do to us, and what becomes of it: storage 503, 403, no such bucket, 200 but wrong bytes, answer lost after the object
// was stored, object deleted behind our back.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { openS3Blobs, type S3Settings } from '../../../src/blobs/s3.ts';
import { type BlobStore, toBlobKey } from '../../../src/domain/blob.ts';
import { Trouble } from '../../../src/domain/trouble.ts';
import { createBytes, guardByIdentity, openScratch, toFileBody, toSettings } from '../../support/stores/blob-stores.ts';
import { type Fault, openStrictS3, type StrictS3, type StrictS3Options } from '../../support/stores/strict-s3.ts';

const signal = AbortSignal.timeout(600_000);
const { bytes, facts } = createBytes(40_000);
const key = toBlobKey(7n, facts.sha256);

interface Bench extends AsyncDisposable {
  readonly s3: StrictS3;
  readonly store: BlobStore;
}

async function openBench(options: StrictS3Options = {}, settings: Partial<S3Settings> = {}): Promise<Bench> {
  const s3 = await openStrictS3(options);
  const store = openS3Blobs(toSettings(s3, settings));
  return {
    s3,
    store,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      await s3[Symbol.asyncDispose]();
    },
  };
}

const put = (store: BlobStore) => store.put(key, bytes, facts, signal);
const readAll = (store: BlobStore) => Array.fromAsync(store.get(key, signal)).then((chunks) => Buffer.concat(chunks));
const operations = (s3: StrictS3) => s3.requests.map(({ operation, status }) => `${operation} ${status}`);
const failure = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'no trouble',
    (error: unknown) => error,
  );

afterEach(() => {
  vi.unstubAllEnvs();
});

describe('a put', () => {
  test.for(['memory', 'a file'])(
    'from %s carries what the strictest store asks for, and nothing it may refuse',
    async (from) => {
      await using bench = await openBench({}, { sse: 'AES256' });
      await using scratch = await openScratch();
      const path = join(scratch.path, 'spooled');
      await writeFile(path, bytes);
      await bench.store.put(key, from === 'memory' ? bytes : toFileBody(path), facts, signal);
      const headers = bench.s3.requests[0]?.headers ?? {};
      expect(headers).toMatchObject({
        'x-amz-content-sha256': facts.sha256,
        'x-amz-checksum-sha256': Buffer.from(facts.sha256, 'hex').toString('base64'),
        'x-amz-sdk-checksum-algorithm': 'SHA256',
        'content-length': '40000',
        'content-type': 'application/octet-stream',
        'if-none-match': '*',
        'x-amz-server-side-encryption': 'AES256',
      });
      const unwanted = ['x-amz-acl', 'content-encoding', 'transfer-encoding', 'expect', 'x-amz-trailer'];
      expect(Object.keys(headers).filter((name) => unwanted.includes(name))).toEqual([]);
      expect(operations(bench.s3)).toEqual(['PutObject 200', 'HeadObject 200']);
      expect([...bench.s3.objects.keys()]).toEqual([`intake/${key}`]);
    },
  );

  test('leaves encryption to the bucket unless told', async () => {
    await using bench = await openBench();
    await put(bench.store);
    expect(bench.s3.requests[0]?.headers).not.toHaveProperty('x-amz-server-side-encryption');
  });

  test('names the bucket in the path where it is told to, in the host where it is not', async () => {
    await using bench = await openBench();
    // By name: at a bare address no bucket could be a part of the host.
    const endpoint = bench.s3.endpoint.replace('127.0.0.1', 'localhost');
    await using inPath = openS3Blobs(toSettings(bench.s3, { endpoint }));
    expect(await put(inPath)).toBe('stored');
    await using inHost = openS3Blobs(toSettings(bench.s3, { endpoint, forcePathStyle: false }));
    const options = { fileName: 'cv.pdf', contentType: 'application/pdf', expiresInMs: 300_000 };
    expect(new URL(await inPath.url(key, options))).toMatchObject({
      hostname: 'localhost',
      pathname: `/test-bucket/intake/${key}`,
    });
    expect(new URL(await inHost.url(key, options))).toMatchObject({
      hostname: 'test-bucket.localhost',
      pathname: `/intake/${key}`,
    });
  });

  test.for(['', "a b/ü+ñ=&?#/(1)!*'/50%/%2F/~"])('lies under any prefix (%j)', async (prefix) => {
    await using bench = await openBench({}, { prefix });
    expect(await put(bench.store)).toBe('stored');
    expect([...bench.s3.objects.keys()]).toEqual([prefix ? `${prefix}/${key}` : key]);
    expect((await readAll(bench.store)).equals(bytes)).toBe(true);
  });

  test('is signed with the credentials of its time, not with those of the first', async () => {
    await using bench = await openBench();
    const rotated = [
      { accessKeyId: 'AKIDFIRST', secretAccessKey: 'first/secret', token: 'a/token==' },
      { accessKeyId: 'AKIDSECOND', secretAccessKey: 'second/secret', token: undefined },
      { accessKeyId: 'AKIDTHIRD', secretAccessKey: 'third/secret', token: 'another/token==' },
    ];
    for (const { accessKeyId, secretAccessKey, token } of rotated) {
      vi.stubEnv('AWS_ACCESS_KEY_ID', accessKeyId);
      vi.stubEnv('AWS_SECRET_ACCESS_KEY', secretAccessKey);
      vi.stubEnv('AWS_SESSION_TOKEN', token);
      vi.stubEnv('AWS_CREDENTIAL_EXPIRATION', new Date(Date.now() + 60_000).toISOString());
      // Credentials that expire soon may serve once more while the SDK loads the next.
      await bench.store.loadIdentity(signal).catch(() => undefined);
      Object.assign(bench.s3.credentials, { accessKeyId, secretAccessKey });
      const each = createBytes(100);
      await bench.store.put(toBlobKey(7n, each.facts.sha256), each.bytes, each.facts, signal);
    }
    const puts = bench.s3.requests.filter(({ operation }) => operation === 'PutObject');
    expect(puts.map(({ headers, status }) => [headers['x-amz-security-token'], status])).toEqual([
      ['a/token==', 200],
      [undefined, 200],
      ['another/token==', 200],
    ]);
  });

  test('by a clock that is wrong is refused once, and not again', async () => {
    await using bench = await openBench();
    bench.s3.skewMs = 3_600_000;
    expect(await put(bench.store)).toBe('stored');
    bench.s3.requests.length = 0;
    const next = createBytes(100);
    expect(await bench.store.put(toBlobKey(7n, next.facts.sha256), next.bytes, next.facts, signal)).toBe('stored');
    expect(operations(bench.s3)).toEqual(['PutObject 200', 'HeadObject 200']);
  });

  test.for<[string, Fault]>([
    ['500', { kind: 'answer', status: 500, code: 'InternalError' }],
    ['503', { kind: 'answer', status: 503, code: 'ServiceUnavailable' }],
    ['dropped connection', { kind: 'reset' }],
    ['silence', { kind: 'silent' }],
  ])('gets over one %s: a file is sent again from its beginning', async ([, fault]) => {
    await using bench = await openBench({}, fault.kind === 'silent' ? { timeoutMs: 1_000 } : {});
    await using scratch = await openScratch();
    const large = createBytes(3_000_000);
    const path = join(scratch.path, 'spooled');
    await writeFile(path, large.bytes);
    const largeKey = toBlobKey(1n, large.facts.sha256);
    bench.s3.fail('PutObject', fault);
    await bench.store.put(largeKey, toFileBody(path), large.facts, signal);
    expect(await bench.store.verify(largeKey, large.facts, 'bytes', signal)).toBe('intact');
    // A busy machine may be silent for so long as well.
    const puts = bench.s3.requests.filter(({ operation }) => operation === 'PutObject').length;
    expect(puts).toBeGreaterThanOrEqual(2);
  });

  test('whose answer was lost after storing finds its own bytes there', async () => {
    await using bench = await openBench();
    bench.s3.fail('PutObject', { kind: 'answerLost' });
    expect(await put(bench.store)).toBe('present');
    expect(operations(bench.s3)).toEqual(['PutObject 0', 'PutObject 412', 'GetObject 200']);
    expect((await readAll(bench.store)).equals(bytes)).toBe(true);
  });

  test('that met another under way goes on without the condition', async () => {
    await using bench = await openBench();
    bench.s3.fail('PutObject', { kind: 'answer', status: 409, code: 'ConditionalRequestConflict' });
    expect(await put(bench.store)).toBe('stored');
    expect(bench.s3.requests.at(-2)?.headers['if-none-match']).toBeUndefined();
  });

  test('learns once that a store knows no If-None-Match', async () => {
    await using bench = await openBench({ conditionalPut: 'unsupported' });
    expect(await put(bench.store)).toBe('stored');
    expect(await put(bench.store)).toBe('stored');
    const puts = bench.s3.requests.filter(({ operation }) => operation === 'PutObject');
    expect(puts.map(({ headers, status }) => [headers['if-none-match'], status])).toEqual([
      ['*', 501],
      [undefined, 200],
      [undefined, 200],
    ]);
  });
});

describe('200 but wrong bytes', () => {
  test.for([
    ['wrongBytes', 'kept'],
    ['wrongBytes', 'forgotten'],
    ['shortBytes', 'kept'],
    ['shortBytes', 'forgotten'],
  ] as const)('(%s, sums %s) is never called stored, and the next put heals it', async ([kind, checksums]) => {
    await using bench = await openBench({ checksums });
    bench.s3.fail('PutObject', { kind });
    await expect(put(bench.store)).rejects.toMatchObject({
      kind: 'local',
      message: expect.stringContaining('damaged'),
    });
    expect(await put(bench.store)).toBe('stored');
    expect((await readAll(bench.store)).equals(bytes)).toBe(true);
  });

  test('behind a sum that the store merely repeats are found by reading', async () => {
    await using bench = await openBench({ checksums: 'trusted' });
    bench.s3.fail('PutObject', { kind: 'wrongBytes' });
    await put(bench.store);
    expect(await bench.store.verify(key, facts, 'metadata', signal)).toBe('intact');
    expect(await bench.store.verify(key, facts, 'bytes', signal)).toBe('damaged');
  });

  test('are found by the record of each put, also where the store repeats the sum it was sent', async () => {
    await using bench = await openBench({ checksums: 'trusted' });
    const puts = async (count: number) => {
      for (const each of Array.from({ length: count }, () => createBytes(100))) {
        await bench.store.put(toBlobKey(1n, each.facts.sha256), each.bytes, each.facts, signal);
      }
    };
    await puts(30);
    expect(bench.s3.requests.filter(({ operation }) => operation === 'HeadObject')).toHaveLength(30);
    bench.s3.fail('PutObject', { kind: 'shortBytes' });
    await expect(puts(1)).rejects.toMatchObject({ message: expect.stringContaining('damaged') });
  });
});

test('S3_CHECKSUMS OFF serves a store that refuses the header, and still proves the bytes', async () => {
  await using refused = await openBench({ checksums: 'refused' });
  await expect(put(refused.store)).rejects.toMatchObject({ kind: 'local', status: 400 });
  await using bench = await openBench({ checksums: 'refused' }, { checksums: 'OFF' });
  expect(await put(bench.store)).toBe('stored');
  expect(operations(bench.s3)).toEqual(['PutObject 200', 'GetObject 200']);
  expect(bench.s3.requests[0]?.headers['x-amz-content-sha256']).toBe(facts.sha256);
  await bench.store.delete(key, signal);
  expect(bench.s3.objects.size).toBe(0);
});

describe('a delete', () => {
  test('takes the versions of a bucket that keeps them', async () => {
    await using bench = await openBench({ versions: 'deletable' });
    expect(await bench.store.loadDeletePolicy(signal)).toEqual({ versions: true, locks: false });
    await put(bench.store);
    await bench.store.put(toBlobKey(9n, facts.sha256), bytes, facts, signal);
    expect(await bench.store.delete(key, signal)).toEqual({ keptVersions: 0, refusal: null });
    expect([...bench.s3.versions.values()]).toEqual([{ key: `intake/${toBlobKey(9n, facts.sha256)}`, isMark: false }]);
  });

  test('says how many versions the store keeps', async () => {
    await using bench = await openBench({ versions: 'kept' });
    expect(await bench.store.loadDeletePolicy(signal)).toMatchObject({ versions: true, locks: true });
    await put(bench.store);
    // The bytes, and the mark that they are deleted.
    expect(await bench.store.delete(key, signal)).toEqual({ keptVersions: 2, refusal: null });
    await put(bench.store);
    bench.s3.fail('ListObjectVersions', { kind: 'answer', status: 403, code: 'AccessDenied' });
    expect(await bench.store.delete(key, signal)).toEqual({ keptVersions: 1, refusal: null });
  });

  test('again and again adds no mark to those that the store keeps', async () => {
    await using bench = await openBench({ versions: 'kept' });
    await put(bench.store);
    for (let time = 0; time < 3; time++)
      expect(await bench.store.delete(key, signal)).toEqual({ keptVersions: 2, refusal: null });
    expect(bench.s3.versions.size).toBe(2);
    // A later object with these bytes gets its own.
    await put(bench.store);
    expect(await bench.store.delete(key, signal)).toEqual({ keptVersions: 4, refusal: null });
    expect(bench.s3.objects.size).toBe(0);
  });

  test('takes the versions also where the store does not tell us that it keeps them', async () => {
    await using bench = await openBench({ versions: 'deletable' });
    await put(bench.store);
    bench.s3.fail('GetBucketVersioning', { kind: 'answer', status: 403, code: 'AccessDenied' });
    expect(await bench.store.delete(key, signal)).toEqual({ keptVersions: 0, refusal: null });
    expect(bench.s3.versions.size).toBe(0);
  });

  test('of a store that does not say whether it keeps versions deletes the objects', async () => {
    await using bench = await openBench();
    await put(bench.store);
    bench.s3.fail('GetBucketVersioning', { kind: 'answer', status: 403, code: 'AccessDenied' }, 2);
    expect(await bench.store.loadDeletePolicy(signal)).toEqual({ versions: false, locks: false });
    expect(await bench.store.delete(key, signal)).toEqual({ keptVersions: 0, refusal: null });
    expect(bench.s3.objects.size).toBe(0);
  });
});

describe('a store that will not', () => {
  const always = 100;

  test('take so many requests is throttling, and its time is told', async () => {
    await using bench = await openBench();
    bench.s3.fail('PutObject', { kind: 'answer', status: 503, code: 'SlowDown', retryAfter: '1' }, always);
    await expect(put(bench.store)).rejects.toMatchObject({ kind: 'throttled', status: 503, retryAfterMs: 1000 });
    expect(bench.s3.requests.length).toBe(3);
  });

  test('say for how long gets our own time: zero would be claims without a pause', async () => {
    await using bench = await openBench();
    bench.s3.fail('PutObject', { kind: 'answer', status: 503, code: 'SlowDown', retryAfter: '0' }, always);
    await expect(put(bench.store)).rejects.toMatchObject({ kind: 'throttled', retryAfterMs: undefined });
  });

  test.for<[string, Fault, string]>([
    ['work', { kind: 'answer', status: 500, code: 'InternalError' }, 'failed'],
    ['answer', { kind: 'silent' }, 'cannot be reached'],
    ['listen', { kind: 'reset' }, 'cannot be reached'],
    ['let us in', { kind: 'answer', status: 403, code: 'AccessDenied' }, 'denies access'],
    ['serve this region', { kind: 'answer', status: 301, code: 'PermanentRedirect' }, 'S3_REGION'],
  ])('%s is our trouble, not the file’s', async ([, fault, message]) => {
    await using bench = await openBench({}, fault.kind === 'silent' ? { timeoutMs: 200 } : {});
    bench.s3.fail('PutObject', fault, always);
    await expect(put(bench.store)).rejects.toMatchObject({ kind: 'local', message: expect.stringContaining(message) });
  });

  test('answer a delete is asked once: that delete may still be carried out', async () => {
    await using bench = await openBench();
    bench.s3.fail('DeleteObject', { kind: 'answerLost' });
    const trouble = await failure(bench.store.delete(key, signal));
    expect(trouble).toMatchObject({ kind: 'local', status: undefined });
    expect(bench.s3.requests.filter(({ operation }) => operation === 'DeleteObject')).toHaveLength(1);
  });

  test('delete says so: nothing counts as erased that is still there', async () => {
    await using bench = await openBench();
    await put(bench.store);
    bench.s3.fail('DeleteObject', { kind: 'answer', status: 403, code: 'AccessDenied' });
    const { refusal } = await bench.store.delete(key, signal);
    const { host } = new URL(bench.s3.endpoint);
    const message = expect.stringContaining(`The store at ${host} denies access to bucket`);
    expect(refusal).toMatchObject({ kind: 'local', message });
  });

  test('send a blob to its end never gives a short one', async () => {
    await using bench = await openBench();
    await put(bench.store);
    bench.s3.fail('GetObject', { kind: 'cut' });
    await expect(readAll(bench.store)).rejects.toMatchObject({ kind: 'local' });
    bench.s3.fail('GetObject', { kind: 'cut' });
    await expect(bench.store.verify(key, facts, 'bytes', signal)).rejects.toMatchObject({ kind: 'local' });
  });
});

test('an identity whose answer breaks off is a trouble of the store, and of no file', async () => {
  await using bench = await openBench();
  await bench.store.replaceIdentity(null, 'whose', signal);
  bench.s3.fail('GetObject', { kind: 'cut' });
  const trouble = { kind: 'local', at: 'storage' };
  expect(await failure(bench.store.loadIdentity(signal))).toMatchObject(trouble);
});

test('an identity that is empty is told, and not written again and again', async () => {
  await using bench = await openBench();
  await bench.store.replaceIdentity(null, 'whose', signal);
  const [name = '', object] = [...bench.s3.objects].find(([key]) => key.endsWith('.intake-store')) ?? [];
  if (object) bench.s3.objects.set(name, { ...object, bytes: Buffer.alloc(0) });
  const trouble = { kind: 'local', at: 'storage', message: expect.stringContaining('.intake-store is empty') };
  expect(await failure(bench.store.loadIdentity(signal))).toMatchObject(trouble);
  expect(await failure(bench.store.replaceIdentity(null, 'next', signal))).toMatchObject(trouble);
});

test('a bucket that is gone is never read as missing blobs', async () => {
  await using bench = await openBench({}, { bucket: 'another' });
  const { store } = bench;
  const expected = { kind: 'local', message: expect.stringContaining('no bucket another') };
  await expect(put(store)).rejects.toMatchObject(expected);
  await expect(readAll(store)).rejects.toMatchObject(expected);
  await expect(guardByIdentity(store).verify(key, facts, 'metadata', signal)).rejects.toMatchObject(expected);
  await expect(store.delete(key, signal)).rejects.toMatchObject(expected);
  await expect(Array.fromAsync(store.list('', signal))).rejects.toMatchObject(expected);
  await expect(store.loadIdentity(signal)).rejects.toMatchObject(expected);
  await expect(store.replaceIdentity(null, 'whose', signal)).rejects.toMatchObject(expected);
});

test('another prefix of the same bucket is another store', async () => {
  await using bench = await openBench();
  await using other = openS3Blobs(toSettings(bench.s3, { prefix: '/int/ake/' }));
  expect(await bench.store.replaceIdentity(null, 'mine', signal)).toBe(true);
  expect(await other.loadIdentity(signal)).toBeNull();
  expect(await other.replaceIdentity(null, 'theirs', signal)).toBe(true);
  await put(bench.store);
  expect(await Array.fromAsync(other.list('', signal))).toEqual([]);
  expect([bench.store.location, other.location]).toEqual(['s3://test-bucket/intake', 's3://test-bucket/int/ake']);
});

test('a signed address works for its time and for nothing else', async () => {
  await using bench = await openBench();
  await put(bench.store);
  const url = await bench.store.url(key, { fileName: 'cv.pdf', contentType: 'application/pdf', expiresInMs: 300_000 });
  const status = async (address: string) => (await fetch(address)).status;
  expect(await status(url)).toBe(200);
  expect(await status(url.replace('cv.pdf', 'cv.exe'))).toBe(403);
  expect(await status(url.replace(key, `${key}0`))).toBe(403);
  expect(await status(url.replace('X-Amz-Expires=300', 'X-Amz-Expires=30000'))).toBe(403);
  bench.s3.skewMs = 301_000;
  expect(await status(url)).toBe(403);
});

test('no credential, signature, key or word of the store reaches an error', async () => {
  await using bench = await openBench();
  const { s3, store } = bench;
  const troubles: unknown[] = [];
  const faults: Fault[] = [
    { kind: 'answer', status: 403, code: 'AccessDenied' },
    { kind: 'answer', status: 400, code: `x ${key} ${s3.credentials.secretAccessKey}` },
    { kind: 'reset' },
  ];
  for (const fault of faults) {
    s3.fail('PutObject', fault, fault.kind === 'reset' ? 3 : 1);
    troubles.push(await failure(put(store)));
  }
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'wrong/secret');
  await using stranger = openS3Blobs({ ...toSettings(s3) });
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'wrong/secret');
  troubles.push(await failure(put(stranger)));
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, undefined);
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
  await using nobody = openS3Blobs({ ...toSettings(s3) });
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, undefined);
  troubles.push(await failure(put(nobody)));

  expect(troubles.map((trouble) => trouble instanceof Trouble && trouble.kind)).toEqual(Array(5).fill('local'));
  expect(troubles.slice(0, 3).map((trouble) => (trouble as Trouble).status)).toEqual([403, 400, undefined]);
  expect(inspect(troubles[3])).toContain('SignatureDoesNotMatch');
  expect(inspect(troubles[4])).toContain('AWS_ACCESS_KEY_ID');
  const told = inspect(troubles, { depth: 20, showHidden: true });
  const secrets = [
    'AKIDSTRICTTEST',
    s3.credentials.secretAccessKey,
    'wrong/secret',
    'Signature=',
    'secret of the store',
    facts.sha256,
  ];
  expect(secrets.filter((secret) => told.includes(secret))).toEqual([]);
});

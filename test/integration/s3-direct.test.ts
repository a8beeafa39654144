// The direct way of a put: it sends what the SDK sends, and where the store says anything but yes, nobody can tell that it was ever taken.

import { Readable } from 'node:stream';
import { S3Client } from '@aws-sdk/client-s3';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { openS3Blobs, type S3Settings } from '../../src/blobs/s3.ts';
import { createPut } from '../../src/blobs/s3-put.ts';
import { type BlobStore, toBlobKey } from '../../src/domain/blob.ts';
import { createBytes, toSettings } from '../support/blob-stores.ts';
import { type Fault, openStrictS3, type StrictS3, type StrictS3Options } from '../support/strict-s3.ts';

const signal = AbortSignal.timeout(600_000);

interface Bench extends AsyncDisposable {
  readonly s3: StrictS3;
  /** Its next put goes the direct way. */
  readonly store: BlobStore;
  /** Another of the same settings, whose next put is the SDK's. */
  openOther(): BlobStore;
}

async function openBench(options: StrictS3Options = {}, given: Partial<S3Settings> = {}): Promise<Bench> {
  const stack = new AsyncDisposableStack();
  const s3 = stack.use(await openStrictS3(options));
  const settings = toSettings(s3, given);
  const openOther = () => stack.use(openS3Blobs(settings));
  const store = openOther();
  await put(store);
  s3.requests.length = 0;
  return { s3, store, openOther, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

function put(store: BlobStore, { bytes, facts } = createBytes(40_000), until = signal) {
  return store.put(toBlobKey(7n, facts.sha256), bytes, facts, until);
}

const puts = (s3: StrictS3) => s3.requests.filter(({ operation }) => operation === 'PutObject');
/** The SDK numbers its tries. */
const ways = (s3: StrictS3) => puts(s3).map(({ headers }) => ('amz-sdk-request' in headers ? 'SDK' : 'direct'));
const operations = (s3: StrictS3) => s3.requests.map(({ operation, status }) => `${operation} ${status}`);

afterEach(() => {
  vi.unstubAllEnvs();
});

describe('a put after the first', () => {
  test.for<[string, Partial<S3Settings>]>([
    ['the usual settings', {}],
    ['no sums', { checksums: 'OFF' }],
    ['sums wherever S3 knows them', { checksums: 'WHEN_SUPPORTED' }],
    ['encryption', { sse: 'aws:kms' }],
    ['no prefix', { prefix: '' }],
    ['a prefix that cannot stand in a path as it is', { prefix: "a b/ü+ñ=&?#/(1)!*'/50%/%2F/~" }],
  ])('is sent with %s as the SDK sends it', async ([, settings]) => {
    await using bench = await openBench({}, settings);
    const { s3 } = bench;
    const made = createBytes(1_234);
    expect(await put(bench.store, made)).toBe('stored');
    const names = [...s3.objects.keys()];
    s3.objects.clear();
    expect(await put(bench.openOther(), made)).toBe('stored');
    expect(ways(s3)).toEqual(['direct', 'SDK']);
    expect([...s3.objects.keys()], 'under the same name').toEqual(names.slice(-1));

    const [direct, sdk] = puts(s3).map(({ target, headers }) => {
      const {
        authorization = '',
        'x-amz-date': _,
        'amz-sdk-request': __,
        'amz-sdk-invocation-id': ___,
        ...rest
      } = headers;
      const [, credential, signed = ''] = /Credential=(.+), SignedHeaders=(.+), Signature/.exec(authorization) ?? [];
      return { target, credential, signed: signed.split(';').filter((name) => !name.startsWith('amz-sdk-')), ...rest };
    });
    expect(direct).toEqual(sdk);
  });

  test('with an empty body, or one of other size than the last, is whole', async () => {
    await using bench = await openBench();
    for (const sizeBytes of [0, 1, 3_000_000]) {
      const made = createBytes(sizeBytes);
      expect(await put(bench.store, made)).toBe('stored');
      const read = await Array.fromAsync(bench.store.get(toBlobKey(7n, made.facts.sha256), signal));
      expect(Buffer.concat(read).equals(made.bytes)).toBe(true);
    }
    expect(ways(bench.s3)).toEqual(['direct', 'direct', 'direct']);
  });

  test('of bytes that are there is sent once, and the next goes the same way', async () => {
    await using bench = await openBench();
    const made = createBytes(40_000);
    expect(await put(bench.store, made)).toBe('stored');
    bench.s3.requests.length = 0;
    expect(await put(bench.store, made)).toBe('present');
    expect(await put(bench.store)).toBe('stored');
    expect(operations(bench.s3)).toEqual(['PutObject 412', 'HeadObject 200', 'PutObject 200', 'HeadObject 200']);
    expect(ways(bench.s3)).toEqual(['direct', 'direct']);
  });

  test('asks for no condition where the store knows none', async () => {
    await using bench = await openBench({ conditionalPut: 'unsupported' });
    await put(bench.store);
    expect(puts(bench.s3).map(({ headers, status }) => [headers['if-none-match'], status])).toEqual([[undefined, 200]]);
    expect(ways(bench.s3)).toEqual(['direct']);
  });

  test('is signed with the credentials of its time, not with those of the first', async () => {
    await using bench = await openBench();
    const turns = [
      { accessKeyId: 'AKIDFIRST', secretAccessKey: 'first/secret', token: 'a/token==' },
      { accessKeyId: 'AKIDSECOND', secretAccessKey: 'second/secret', token: undefined },
      { accessKeyId: 'AKIDTHIRD', secretAccessKey: 'third/secret', token: 'another/token==' },
    ];
    const store = bench.openOther();
    for (const { accessKeyId, secretAccessKey, token } of turns) {
      vi.stubEnv('AWS_ACCESS_KEY_ID', accessKeyId);
      vi.stubEnv('AWS_SECRET_ACCESS_KEY', secretAccessKey);
      vi.stubEnv('AWS_SESSION_TOKEN', token);
      vi.stubEnv('AWS_CREDENTIAL_EXPIRATION', new Date(Date.now() + 60_000).toISOString());
      // Those that end soon may serve once more while the SDK fetches the next.
      await store.loadIdentity(signal).catch(() => undefined);
      Object.assign(bench.s3.credentials, { accessKeyId, secretAccessKey });
      await put(store);
    }
    expect(puts(bench.s3).map(({ headers, status }) => [headers['x-amz-security-token'], status])).toEqual([
      ['a/token==', 200],
      [undefined, 200],
      ['another/token==', 200],
    ]);
    expect(ways(bench.s3)).toEqual(['SDK', 'direct', 'direct']);
  });

  test('by a clock that is wrong is refused once, and not again', async () => {
    await using bench = await openBench();
    bench.s3.skewMs = 3_600_000;
    expect(await put(bench.store)).toBe('stored');
    expect(puts(bench.s3).at(-1)?.status).toBe(200);
    bench.s3.requests.length = 0;
    expect(await put(bench.store)).toBe('stored');
    expect(operations(bench.s3)).toEqual(['PutObject 200', 'HeadObject 200']);
    expect(ways(bench.s3)).toEqual(['direct']);
  });

  test.for(['WHEN_REQUIRED', 'OFF'] as const)('of other bytes than were hashed is refused (%s)', async (checksums) => {
    await using bench = await openBench({}, { checksums });
    const { bytes, facts } = createBytes(100);
    const { size } = bench.s3.objects;
    await expect(put(bench.store, { bytes: bytes.subarray(1), facts })).rejects.toMatchObject({ kind: 'mismatch' });
    expect(bench.s3.requests, 'before anything is sent').toEqual([]);
    const others = createBytes(100).bytes;
    await expect(put(bench.store, { bytes: others, facts })).rejects.toMatchObject({ kind: 'mismatch' });
    expect(ways(bench.s3)[0]).toBe('direct');
    expect(bench.s3.objects.size, 'nothing of them stays').toBe(size);
  });
});

describe('anything but a plain yes', () => {
  const always = 100;

  test.for<[string, Fault]>([
    ['503 with a time', { kind: 'answer', status: 503, code: 'SlowDown', retryAfter: '1' }],
    ['500', { kind: 'answer', status: 500, code: 'InternalError' }],
    ['403', { kind: 'answer', status: 403, code: 'AccessDenied' }],
    ['301', { kind: 'answer', status: 301, code: 'PermanentRedirect' }],
    ['400', { kind: 'answer', status: 400, code: 'BadDigest' }],
    ['dropped connection', { kind: 'reset' }],
    ['silence', { kind: 'silent' }],
  ])('(%s) is put again by the SDK, which says what it always said', async ([, fault]) => {
    await using bench = await openBench({}, fault.kind === 'silent' ? { timeoutMs: 200 } : {});
    const said = (attempt: Promise<unknown>) =>
      attempt.then(
        () => 'no trouble',
        ({ kind, message, status, retryAfterMs }) => ({ kind, message, status, retryAfterMs }),
      );
    bench.s3.fail('PutObject', fault, always);
    const ours = await said(put(bench.store));
    expect(ways(bench.s3)[0]).toBe('direct');
    expect(ways(bench.s3).slice(1)).not.toContain('direct');
    const count = puts(bench.s3).length - 1;
    bench.s3.requests.length = 0;
    expect(ours).toEqual(await said(put(bench.openOther())));
    expect(puts(bench.s3).length, 'as many tries as without').toBe(count);
  });

  test('(an outage) is met by the SDK alone until it is over', async () => {
    await using bench = await openBench();
    bench.s3.fail('PutObject', { kind: 'answer', status: 403, code: 'AccessDenied' }, always);
    for (let count = 0; count < 3; count++) await expect(put(bench.store)).rejects.toThrow('refuses us');
    expect(ways(bench.s3), 'nothing is sent twice').toEqual(['direct', 'SDK', 'SDK', 'SDK']);
    bench.s3.clearFaults();
    bench.s3.requests.length = 0;
    for (let count = 0; count < 3; count++) expect(await put(bench.store)).toBe('stored');
    expect(ways(bench.s3)).toEqual(['SDK', 'direct', 'direct']);
  });

  test.for<[string, Fault]>([
    ['was lost', { kind: 'answerLost' }],
    ['ended in the middle', { kind: 'cut' }],
  ])('(an answer that %s after storing) finds its own bytes there', async ([, fault]) => {
    await using bench = await openBench();
    const made = createBytes(40_000);
    bench.s3.fail('PutObject', fault);
    expect(await put(bench.store, made)).toBe('present');
    expect(ways(bench.s3)).toEqual(['direct', 'SDK']);
    expect(operations(bench.s3).slice(1)).toEqual(['PutObject 412', 'HeadObject 200']);
    expect(await bench.store.verify(toBlobKey(7n, made.facts.sha256), made.facts, 'bytes', signal)).toBe('intact');
  });

  test.for(['wrongBytes', 'shortBytes'] as const)('(200 but %s) is never called stored', async (kind) => {
    await using bench = await openBench();
    bench.s3.fail('PutObject', { kind });
    const made = createBytes(40_000);
    await expect(put(bench.store, made)).rejects.toMatchObject({
      kind: 'local',
      message: expect.stringContaining('damaged'),
    });
    expect(ways(bench.s3)).toEqual(['direct']);
    expect(await put(bench.store, made)).toBe('stored');
  });

  test('(an abort) is an abort: the reason comes out, and nothing more is sent', async () => {
    await using bench = await openBench();
    bench.s3.fail('PutObject', { kind: 'silent' });
    const reason = new Error('enough');
    const controller = new AbortController();
    const attempt = put(bench.store, createBytes(100), controller.signal);
    await expect.poll(() => bench.s3.requests.length).toBeGreaterThan(0);
    controller.abort(reason);
    await expect(attempt).rejects.toBe(reason);
    await expect(put(bench.store, createBytes(100), controller.signal)).rejects.toBe(reason);
    expect(ways(bench.s3)).toEqual(['direct']);
    await put(bench.store);
    expect(ways(bench.s3)).toEqual(['direct', 'direct']);
  });
});

describe('the way of a put', () => {
  interface Sent {
    readonly hostname: string;
    readonly path: string;
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
  }

  /** Nothing leaves this process: what would, is noted, and answered as AWS would. */
  async function putTwice(bucket: string): Promise<Sent[]> {
    const sent: Sent[] = [];
    const keys = '<SessionToken>t</SessionToken><SecretAccessKey>s</SecretAccessKey><AccessKeyId>a</AccessKeyId>';
    const session = `<CreateSessionResult><Credentials>${keys}<Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></CreateSessionResult>`;
    const handle = async (request: Sent) => {
      sent.push(request);
      const body = new Blob([request.method === 'GET' ? session : '']).stream();
      return { response: { statusCode: 200, headers: {}, body: Readable.fromWeb(body) } };
    };
    const client = new S3Client({
      region: 'us-east-1',
      credentials: { accessKeyId: 'a', secretAccessKey: 's' },
      requestHandler: { handle } as unknown as NonNullable<S3Client['config']['requestHandler']>,
    });
    const put = createPut(client, true);
    for (const { bytes, facts } of [createBytes(10), createBytes(10)]) {
      const name = toBlobKey(7n, facts.sha256);
      await put({ Bucket: bucket, Key: `intake/${name}`, name }, bytes, facts, { abortSignal: signal });
    }
    client.destroy();
    return sent.filter(({ method }) => method === 'PUT');
  }

  test('at AWS lies where the SDK found it', async () => {
    const [first, second] = await putTwice('a-bucket');
    expect(second).not.toHaveProperty(['headers', 'amz-sdk-request']);
    expect(second).toMatchObject({
      hostname: 'a-bucket.s3.us-east-1.amazonaws.com',
      headers: { host: first?.headers.host },
    });
    expect(second?.path).toMatch(/^\/intake\/7\/..\/[0-9a-f]{64}$/);
  });

  test('is the SDK’s wherever it signs otherwise, as for a directory bucket', async () => {
    for (const request of await putTwice('a-bucket--use1-az4--x-s3')) {
      expect(request.headers).toHaveProperty('amz-sdk-request');
      expect(request.headers.authorization).toContain('/s3express/');
    }
  });
});

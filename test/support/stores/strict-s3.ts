// A small, strict S3. It checks signatures, payload hashes, checksums, lengths and conditions as AWS and Ceph do, so that a request that
// passes here passes there. It keeps objects in memory, fails on demand in the ways real stores do, and records each request.
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { listenLocally } from '../servers/local-server.ts';
import { Refusal, verifySignature } from './sigv4.ts';

/** A running store with one bucket. */
export interface StrictS3 extends AsyncDisposable {
  /** The settings of a worker that stores here. */
  readonly settings: Record<string, string>;
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly objects: Map<string, StoredObject>;
  /** Versions by id, including delete markers; only in a bucket with versioning. */
  readonly versions: Map<string, { readonly key: string; readonly isMark: boolean }>;
  /** Oldest first. */
  readonly requests: NotedRequest[];
  /** Makes the next requests of that operation fail in this way, one request by default. */
  fail(operation: Operation, fault: Fault, times?: number): void;
  /** Removes all faults that `fail` added. */
  clearFaults(): void;
  /** How far the store's clock is ahead of this process's. */
  skewMs: number;
}

export interface StrictS3Options {
  /** How the store treats If-None-Match and If-Match: `unsupported` answers 501; `ignored` overwrites, as older stores do. */
  readonly conditionalPut?: 'honoured' | 'unsupported' | 'ignored';
  /** `forgotten`: checked but not kept. `refused`: the header is an error. `trusted`: keeps the client's value, whatever is stored. */
  readonly checksums?: 'kept' | 'forgotten' | 'refused' | 'trusted';
  /** Whether deleted and overwritten objects remain as versions; `kept` refuses to delete versions, as object lock does. */
  readonly versions?: 'none' | 'deletable' | 'kept';
  readonly pageSize?: number;
  /** Called for every request; returns a fault to make it fail at random. */
  readonly mishap?: (operation: Operation) => Fault | undefined;
}

export type Operation =
  | 'PutObject'
  | 'GetObject'
  | 'HeadObject'
  | 'ListObjectsV2'
  | 'DeleteObject'
  | 'GetBucketVersioning'
  | 'ListObjectVersions'
  | 'GetObjectLockConfiguration';

export type Fault =
  | { readonly kind: 'answer'; readonly status: number; readonly code: string; readonly retryAfter?: string }
  /** The store performs the request, then drops the connection before the answer. */
  | { readonly kind: 'answerLost' }
  /** The connection drops before the store does anything. */
  | { readonly kind: 'reset' }
  /** Answers 200, but stores other bytes of the same length. */
  | { readonly kind: 'wrongBytes' }
  /** Answers 200, but stores only half of the bytes. */
  | { readonly kind: 'shortBytes' }
  /** The connection drops in the middle of the answer's body. */
  | { readonly kind: 'cut' }
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** The store never answers. */
  | { readonly kind: 'silent' };

interface StoredObject {
  readonly bytes: Buffer;
  readonly sha256: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly modifiedAt: Date;
}

interface NotedRequest {
  readonly operation: Operation | 'unknown';
  /** As sent on the request line. */
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
  /** 0 when no answer was sent. */
  status: number;
  /** The client's port, which tells connections apart. */
  readonly port: number | undefined;
}

interface Call {
  readonly operation: Operation;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly fault: Fault | undefined;
}

interface Answer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

/** Starts a store on a free port of this machine. */
export async function openStrictS3(options: StrictS3Options = {}): Promise<StrictS3> {
  const faults: { operation: Operation; fault: Fault; times: number }[] = [];
  const s3 = {
    endpoint: '',
    region: 'ap-southeast-2',
    bucket: 'test-bucket',
    credentials: { accessKeyId: 'AKIDSTRICTTEST', secretAccessKey: 'strict/secret+key' },
    objects: new Map<string, StoredObject>(),
    versions: new Map<string, { readonly key: string; readonly isMark: boolean }>(),
    requests: [] as NotedRequest[],
    skewMs: 0,
    fail: (operation: Operation, fault: Fault, times = 1) => void faults.push({ operation, fault, times }),
    clearFaults: () => void faults.splice(0),
  };
  const takeFault = (operation: Operation) => {
    const found = faults.find((each) => each.operation === operation && each.times-- > 0);
    return found?.fault ?? options.mishap?.(operation);
  };

  const server = createServer((request, response) => {
    const noted: NotedRequest = {
      operation: 'unknown',
      target: request.url ?? '/',
      headers: request.headers,
      status: 0,
      port: request.socket.remotePort,
    };
    s3.requests.push(noted);
    answer(request, response, noted).catch(() => request.socket.destroy());
  });

  async function answer(request: IncomingMessage, response: ServerResponse, noted: NotedRequest): Promise<void> {
    const target = request.url ?? '/';
    const url = new URL(target, 'http://x');
    const [, bucket = '', ...rest] = decodeURIComponent(url.pathname).split('/');
    const key = rest.join('/');
    const operation = toOperation(request.method ?? '', key, url.searchParams);
    const fault = operation && takeFault(operation);
    if (operation) Object.assign(noted, { operation });
    if (fault?.kind === 'reset') throw new Error('reset');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (fault?.kind === 'slow') await sleep(fault.delayMs);
    if (fault?.kind === 'silent') return;

    let result: Answer;
    const now = () => Date.now() + s3.skewMs;
    try {
      const payloadHash = verifySignature(
        { method: request.method ?? '', target, headers: request.headers },
        { ...s3.credentials, region: s3.region, now },
      );
      checkBody(request.headers, body, payloadHash, request.method ?? '', options.checksums === 'refused');
      if (fault?.kind === 'answer') throw new Refusal(fault.code, fault.status);
      if (!operation) throw new Refusal('MethodNotAllowed', 405);
      if (bucket !== s3.bucket) throw new Refusal('NoSuchBucket', 404);
      result = perform({ operation, key, query: url.searchParams, headers: request.headers, body, fault });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      result = toErrorAnswer(error, request.method === 'HEAD');
    }
    if (fault?.kind === 'answerLost') throw new Error('answer lost');
    noted.status = result.status;
    const cut = fault?.kind === 'cut';
    if (cut && operation === 'PutObject') result = { ...result, body: 'to be cut' };
    const length = result.headers?.['content-length'] ?? String(Buffer.byteLength(result.body ?? ''));
    const date = new Date(now()).toUTCString();
    const retryAfter = fault?.kind === 'answer' && fault.retryAfter ? { 'retry-after': fault.retryAfter } : {};
    response.writeHead(result.status, { date, ...result.headers, ...retryAfter, 'content-length': length });
    if (cut && result.body) {
      response.write(result.body.slice(0, result.body.length / 2), () => request.socket.destroy());
    } else response.end(result.body);
  }

  function perform(call: Call): Answer {
    const { operation, key } = call;
    if (operation === 'GetBucketVersioning') return toXml(keepsVersions ? '<Status>Enabled</Status>' : '');
    if (operation === 'GetObjectLockConfiguration') {
      if (options.versions !== 'kept') throw new Refusal('ObjectLockConfigurationNotFoundError', 404);
      return toXml('<ObjectLockEnabled>Enabled</ObjectLockEnabled>');
    }
    if (operation === 'ListObjectVersions') return listVersions(call);
    if (operation === 'ListObjectsV2') return list(call);
    if (operation === 'PutObject') return put(call);
    if (operation === 'DeleteObject') {
      if (!removeOne(key, call.query.get('versionId'))) throw new Refusal('AccessDenied', 403);
      return { status: 204, headers: keepsVersions ? { 'x-amz-delete-marker': 'true' } : {} };
    }
    const found = s3.objects.get(key);
    if (!found) throw new Refusal('NoSuchKey', 404);
    const sum = call.headers['x-amz-checksum-mode'] === 'ENABLED' && found.sha256 ? found.sha256 : undefined;
    const headers = {
      ...found.headers,
      'content-type': call.query.get('response-content-type') ?? 'application/octet-stream',
      ...pick('content-disposition', call.query.get('response-content-disposition')),
      'content-length': String(found.bytes.length),
      'last-modified': found.modifiedAt.toUTCString(),
      etag: toTag(found.bytes),
      ...pick('x-amz-checksum-sha256', sum),
    };
    return operation === 'HeadObject' ? { status: 200, headers } : { status: 200, headers, body: found.bytes };
  }

  function put({ key, headers, body, fault }: Call): Answer {
    const match = headers['if-match'];
    if (headers['if-none-match'] !== undefined || match !== undefined) {
      if (options.conditionalPut === 'unsupported') throw new Refusal('NotImplemented', 501);
      const found = s3.objects.get(key);
      if (match !== undefined && !found) throw new Refusal('NoSuchKey', 404);
      const isMet = match === undefined ? !found : found !== undefined && match === toTag(found.bytes);
      if (options.conditionalPut !== 'ignored' && !isMet) throw new Refusal('PreconditionFailed', 412);
    }
    let bytes = body;
    if (fault?.kind === 'wrongBytes')
      bytes = Buffer.from(body.map((byte, i) => (i === body.length >> 1 ? byte ^ 1 : byte)));
    if (fault?.kind === 'shortBytes') bytes = body.subarray(0, body.length >> 1);
    const claimed = headers['x-amz-checksum-sha256'];
    const keeps = claimed !== undefined && options.checksums !== 'forgotten';
    const sum = options.checksums === 'trusted' ? String(claimed) : toSha256(bytes, 'base64');
    const encryption = pick('x-amz-server-side-encryption', headers['x-amz-server-side-encryption']);
    if (keepsVersions) s3.versions.set(randomUUID(), { key, isMark: false });
    s3.objects.set(key, { bytes, sha256: keeps ? sum : undefined, headers: encryption, modifiedAt: new Date() });
    const told = pick('x-amz-checksum-sha256', keeps ? sum : undefined);
    return { status: 200, headers: { etag: toTag(bytes), ...encryption, ...told } };
  }

  const keepsVersions = options.versions === 'deletable' || options.versions === 'kept';

  /** Returns false when the object or version may not be deleted. */
  function removeOne(key: string, version: string | null | undefined): boolean {
    if (version) return options.versions !== 'kept' && s3.versions.delete(version);
    // As S3 does, also where there is no object, or its deletion is marked already.
    if (keepsVersions) s3.versions.set(randomUUID(), { key, isMark: true });
    s3.objects.delete(key);
    return true;
  }

  function listVersions({ query }: Call): Answer {
    const found = [...s3.versions].filter(([, { key }]) => key.startsWith(query.get('prefix') ?? ''));
    const rows = found.map(([id, { key, isMark }]) => {
      const name = isMark ? 'DeleteMarker' : 'Version';
      return `<${name}><Key>${key}</Key><VersionId>${id}</VersionId></${name}>`;
    });
    return toXml(`<IsTruncated>false</IsTruncated>${rows.join('')}`);
  }

  function list({ query }: Call): Answer {
    const prefix = query.get('prefix') ?? '';
    const after = query.get('continuation-token') ?? '';
    const keys = [...s3.objects.keys()]
      .filter((key) => key.startsWith(prefix) && key > after)
      .sort((a, b) => (a < b ? -1 : 1));
    const page = keys.slice(0, options.pageSize ?? 1000);
    const more = keys.length > page.length;
    const contents = page.map((key) => {
      const { bytes, modifiedAt } = s3.objects.get(key) as StoredObject;
      return `<Contents><Key>${key}</Key><Size>${bytes.length}</Size><LastModified>${modifiedAt.toISOString()}</LastModified></Contents>`;
    });
    const next = more ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '';
    const body = `<ListBucketResult><IsTruncated>${more}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`;
    return { status: 200, headers: { 'content-type': 'application/xml' }, body: `<?xml version="1.0"?>${body}` };
  }

  const local = await listenLocally(server);
  s3.endpoint = local.url;
  return Object.assign(s3, {
    settings: {
      BLOBS_URL: `s3://${s3.bucket}/intake`,
      S3_ENDPOINT: s3.endpoint,
      S3_REGION: s3.region,
      S3_FORCE_PATH_STYLE: 'true',
      AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
    },
    [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
  });
}

function toTag(bytes: Buffer): string {
  return `"${toSha256(bytes, 'hex')}"`;
}

function toOperation(method: string, key: string, query: URLSearchParams): Operation | undefined {
  if (key === '') {
    if (method === 'GET' && query.get('list-type') === '2') return 'ListObjectsV2';
    if (method === 'GET' && query.has('versioning')) return 'GetBucketVersioning';
    if (method === 'GET' && query.has('versions')) return 'ListObjectVersions';
    if (method === 'GET' && query.has('object-lock')) return 'GetObjectLockConfiguration';
    return undefined;
  }
  return ({ PUT: 'PutObject', GET: 'GetObject', HEAD: 'HeadObject', DELETE: 'DeleteObject' } as const)[method];
}

function toXml(inner: string): Answer {
  const headers = { 'content-type': 'application/xml' };
  return { status: 200, headers, body: `<?xml version="1.0"?><Result>${inner}</Result>` };
}

function toErrorAnswer({ code, status }: Refusal, isHead: boolean): Answer {
  if (isHead) return { status };
  // Real stores repeat the key and the account here; neither may reach Intake's messages.
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>secret of the store</Message></Error>`;
  return { status, headers: { 'content-type': 'application/xml' }, body };
}

function pick(name: string, value: string | string[] | null | undefined): Record<string, string> {
  return typeof value === 'string' ? { [name]: value } : {};
}

/** The checks of S3 before it accepts a body: length, payload hash, checksums, no aws-chunked framing. Throws a Refusal. */
function checkBody(
  headers: IncomingMessage['headers'],
  body: Buffer,
  payloadHash: string,
  method: string,
  refusesSums: boolean,
): void {
  const carries = method === 'PUT' || method === 'POST';
  if (/aws-chunked/.test(headers['content-encoding'] ?? '') || payloadHash.startsWith('STREAMING-')) {
    throw new Refusal('NotImplemented', 501);
  }
  if (carries && headers['content-length'] === undefined) throw new Refusal('MissingContentLength', 411);
  if (headers['x-amz-acl'] !== undefined) throw new Refusal('AccessControlListNotSupported', 400);
  if (carries && payloadHash !== toSha256(body, 'hex')) throw new Refusal('XAmzContentSHA256Mismatch', 400);
  const sums = {
    'x-amz-checksum-sha256': () => toSha256(body, 'base64'),
    'x-amz-checksum-crc32': () => toCrc32(body),
    'content-md5': () => createHash('md5').update(body).digest('base64'),
  };
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith('x-amz-checksum-') && name !== 'content-md5') continue;
    if (name === 'x-amz-checksum-mode') continue;
    if (refusesSums) throw new Refusal('InvalidArgument', 400);
    const expected = sums[name as keyof typeof sums]?.();
    if (expected === undefined) throw new Refusal('InvalidRequest', 400);
    if (value !== expected) throw new Refusal('BadDigest', 400);
    const algorithm = headers['x-amz-sdk-checksum-algorithm'];
    if (name !== 'content-md5' && `x-amz-checksum-${String(algorithm).toLowerCase()}` !== name) {
      throw new Refusal('InvalidRequest', 400);
    }
  }
}

/** The checksum in the encoding of a header. */
function toSha256(bytes: Buffer, encoding: 'hex' | 'base64'): string {
  return createHash('sha256').update(bytes).digest(encoding);
}

function toCrc32(bytes: Buffer): string {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return sum.toString('base64');
}

// The usual put without the SDK's machinery, which for every request finds out anew what never changes. Its last put that the store said
// yes to is the pattern: same place, same headers, other name and bytes, with the SDK's credentials, clock and connections.
// There is one try. Whatever is neither a plain yes nor "it is there" the SDK is to put again and to explain; this file knows no errors.

import { finished } from 'node:stream/promises';
import type { PutObjectCommand, PutObjectCommandOutput, S3Client } from '@aws-sdk/client-s3';
import type { BlobFacts } from '../domain/blob.ts';
import { createSigner, type Sign } from './s3-signature.ts';

export interface DirectPut {
  /**
   * `occupied`: something is under this name already, as when people send the same file for several jobs. Null: there is no pattern, or
   * nobody knows what became of the bytes; they may be stored. `name` is what follows the prefix.
   */
  put(
    name: string,
    body: Uint8Array,
    facts: BlobFacts,
    options: DirectPutOptions,
  ): Promise<PutAnswer | 'occupied' | null>;
  /** Makes the request of this command the pattern, once the store has said yes to it. */
  learn(command: PutObjectCommand, name: string): void;
}

export interface DirectPutOptions {
  readonly ifAbsent: boolean;
  readonly abortSignal: AbortSignal;
}

type PutAnswer = Pick<PutObjectCommandOutput, 'ChecksumSHA256'>;

/** What the SDK was about to send. */
interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface Pattern {
  /** Without a body; its path ends where the name begins. */
  readonly request: HttpRequest;
  readonly query: string;
  readonly withSum: boolean;
  readonly uncovered: ReadonlySet<string>;
  readonly sign: Sign;
}

/** Knows no pattern yet. */
export function createDirectPut(client: S3Client): DirectPut {
  let pattern: Pattern | null = null;

  return {
    async put(name, body, facts, { ifAbsent, abortSignal }) {
      if (pattern === null || body.length !== facts.sizeBytes) return null;
      const { request, withSum, sign, ...signing } = pattern;
      const { method } = request;
      const path = request.path + name;
      const headers = {
        ...request.headers,
        'content-length': String(facts.sizeBytes),
        'x-amz-content-sha256': facts.sha256,
        ...(withSum && { 'x-amz-checksum-sha256': Buffer.from(facts.sha256, 'hex').toString('base64') }),
        ...(ifAbsent && { 'if-none-match': '*' }),
      };
      try {
        const credentials = await client.config.credentials();
        // The SDK has learnt from the store's answers how far our clock is off.
        const at = new Date(Date.now() + client.config.systemClockOffset);
        const signed = {
          ...request,
          path,
          body,
          headers: sign({ method, path, headers, ...signing }, credentials, at),
        };
        const { response } = await client.config.requestHandler.handle(signed, { abortSignal });
        // To its end: an answer that was cut is none, and only a connection that is read empty serves again.
        await finished(response.body.resume());
        if (response.statusCode === 200) return { ChecksumSHA256: response.headers['x-amz-checksum-sha256'] };
        if (response.statusCode === 412 && ifAbsent) return 'occupied';
      } catch {
        abortSignal.throwIfAborted();
      }
      // Where the SDK fails too, as in an outage, nothing is sent twice from now on.
      pattern = null;
      return null;
    },

    learn(command, name) {
      command.middlewareStack.add(
        (next) => async (args) => {
          const result = await next(args);
          if ((result.response as { statusCode?: unknown }).statusCode === 200) {
            pattern = toPattern(args.request as HttpRequest, name);
          }
          return result;
        },
        { step: 'deserialize', priority: 'low', name: 'learnPattern' },
      );
    },
  };
}

/** Null where the SDK signs otherwise than with the plain version 4 for S3: for several regions, for directory buckets, not at all. */
function toPattern(request: HttpRequest, name: string): Pattern | null {
  const [, region, covered = ''] = plainSignature.exec(String(request.headers.authorization)) ?? [];
  // A name is made of characters that stand for themselves in a path. A prefix may not be: that part stays as the SDK wrote it.
  if (region === undefined || !request.path.endsWith(name)) return null;
  const kept = Object.entries(request.headers).filter(([header]) => !renewed.has(header));
  return {
    request: {
      ...request,
      path: request.path.slice(0, -name.length),
      headers: Object.fromEntries(kept),
      body: undefined,
    },
    query: new URLSearchParams(request.query as Record<string, string>).toString(),
    withSum: 'x-amz-checksum-sha256' in request.headers,
    uncovered: new Set(Object.keys(request.headers)).difference(new Set(covered.split(';'))),
    sign: createSigner(region),
  };
}

const plainSignature =
  /^AWS4-HMAC-SHA256 Credential=[^,]+\/\d{8}\/([^/,]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=/;

/** What another put has otherwise, or not at all: the SDK's own two count its tries of one call. */
const renewed = new Set([
  'authorization',
  'x-amz-date',
  'x-amz-security-token',
  'x-amz-content-sha256',
  'x-amz-checksum-sha256',
  'content-length',
  'if-none-match',
  'amz-sdk-invocation-id',
  'amz-sdk-request',
]);

// A plain HTTP client for tests of the sandbox: node:http, without decoding, retries or tolerance for errors.

import { type IncomingHttpHeaders, request } from 'node:http';

export interface PlainAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
  /** Whether the body is complete according to HTTP. */
  readonly complete: boolean;
}

/** One GET; header values of undefined are not sent. */
export function get(url: string, headers: Record<string, string | undefined>): Promise<PlainAnswer> {
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers: given, agent: false }, (response) => {
      const pieces: Buffer[] = [];
      const finish = () => {
        const body = Buffer.concat(pieces);
        const { statusCode: status = 0, headers: received, complete } = response;
        resolve({ status, headers: received, body, text: body.toString(), complete });
      };
      response
        .on('data', (piece: Buffer) => pieces.push(piece))
        .on('close', finish)
        .on('error', finish);
    });
    sent.on('error', reject).end();
  });
}

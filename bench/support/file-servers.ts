// The servers of the file figures, in a separate process: a board that serves only files, and a store that implements as much S3 as a copy
// needs. Every answer has the given latency, except the source's answers to HEAD and folder requests, which only rclone sends.
// The store counts bytes and discards them.
//
// As a child process: node bench/support/file-servers.ts LATENCY_MS FILES SIZE_BYTES; it sends its addresses and ends with its parent.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface FileServers extends AsyncDisposable {
  readonly sourceUrl: string;
  readonly storeUrl: string;
}

export interface FileServersOptions {
  readonly latencyMs: number;
  readonly files: number;
  readonly sizeBytes: number;
}

/** Starts both servers in one child process. */
export async function openFileServers({ latencyMs, files, sizeBytes }: FileServersOptions): Promise<FileServers> {
  const args = [import.meta.filename, String(latencyMs), String(files), String(sizeBytes)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [addresses] = (await once(child, 'message')) as [{ sourceUrl: string; storeUrl: string }];
  return {
    ...addresses,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

/** A PDF by type and header, with different bytes for every id, so that no two files are stored once. */
function toFile(id: number, sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes, `%PDF-1.4 file ${id} `);
  bytes.writeUInt32BE(id, sizeBytes - 4);
  return bytes;
}

async function serve(latencyMs: number, files: number, sizeBytes: number): Promise<void> {
  const held = new Map<string, { readonly sizeBytes: number; readonly sum: string | undefined }>();

  async function answerSource({ method, url = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
    // rclone reads a folder as a page of links.
    if (url.endsWith('/')) {
      const links = Array.from({ length: files }, (_, at) => `<a href="${at + 1}">${at + 1}</a>`);
      response.setHeader('content-type', 'text/html');
      response.end(`<html><body>${links.join('\n')}</body></html>`);
      return;
    }
    response.setHeader('content-type', 'application/pdf');
    response.setHeader('content-length', sizeBytes);
    if (method === 'HEAD') {
      response.end();
      return;
    }
    if (latencyMs > 0) await sleep(latencyMs);
    response.end(toFile(Number(url.split('/').at(-1)), sizeBytes));
  }

  async function answerStore(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const key = request.url?.split('?')[0] ?? '';
    let sizeBytes = 0;
    for await (const chunk of request) sizeBytes += (chunk as Buffer).length;
    if (latencyMs > 0) await sleep(latencyMs);
    const found = held.get(key);
    if (request.method === 'PUT') {
      const sum = request.headers['x-amz-checksum-sha256']?.toString();
      held.set(key, { sizeBytes, sum });
      if (sum) response.setHeader('x-amz-checksum-sha256', sum);
      response.setHeader('etag', '"held"');
      response.end();
    } else if (request.method === 'HEAD' && found) {
      response.setHeader('content-length', found.sizeBytes);
      if (found.sum) response.setHeader('x-amz-checksum-sha256', found.sum);
      response.end();
    } else if (request.method === 'GET' && request.url?.includes('list-type=2')) {
      response.setHeader('content-type', 'application/xml');
      response.end('<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>');
    } else {
      response.statusCode = 404;
      response.end(request.method === 'HEAD' ? undefined : '<Error><Code>NoSuchKey</Code></Error>');
    }
  }

  const listen = async (answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>) => {
    const server = createServer((request, response) => void answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  process.send?.({ sourceUrl: await listen(answerSource), storeUrl: await listen(answerStore) });
  await once(process, 'disconnect');
  process.exit(0);
}

if (import.meta.main) {
  const [latencyMs = 0, files = 0, sizeBytes = 0] = process.argv.slice(2).map(Number);
  await serve(latencyMs, files, sizeBytes);
}

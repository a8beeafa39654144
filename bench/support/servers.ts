// Runs a board in a separate process, so that its memory and CPU are not counted: the sandbox, or the cheap board over HTTP.
// As a child process: node bench/support/servers.ts sandbox|board APPLICATIONS. It sends its address and credential, and ends with its
// parent.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { createBoard, pageCap } from './board.ts';

export interface BoardServer extends AsyncDisposable {
  readonly url: string;
  readonly credential: string;
}

/** Starts a board with the given number of applications, in pages of 500. */
export async function openBoardServer(kind: 'sandbox' | 'board', applications: number): Promise<BoardServer> {
  const args = [import.meta.filename, kind, String(applications)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [address] = (await once(child, 'message')) as [{ url: string; credential: string }];
  return {
    ...address,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

async function serveSandbox(applications: number): Promise<void> {
  await using sandbox = await openSandbox({ applications, choices: { pageCap } });
  process.send?.({ url: sandbox.url, credential: sandbox.credential });
  await once(process, 'disconnect');
}

async function serveBoard(applications: number): Promise<void> {
  const board = createBoard(applications);
  const server = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://board');
    const file = board.file(pathname);
    if (file !== null) {
      response.setHeader('content-type', 'text/plain');
      response.end(file);
      return;
    }
    const id = (name: string) => (query.has(name) ? Number(query.get(name)) : null);
    // Date filters are in +10:00 but carry no offset.
    const date = (name: string) => (query.has(name) ? Date.parse(`${query.get(name)}+10:00`) : null);
    const question = {
      after: id('afterid'),
      before: id('beforeid'),
      afterDate: date('afterdate'),
      beforeDate: date('beforedate'),
    };
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.end(board.list(question, 'json'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credential: 'bench' });
  await once(process, 'disconnect');
  process.exit(0);
}

if (import.meta.main) {
  const [kind, applications] = process.argv.slice(2);
  await (kind === 'sandbox' ? serveSandbox : serveBoard)(Number(applications));
}

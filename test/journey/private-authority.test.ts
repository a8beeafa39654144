// @module-tag slow
// A source and a storage whose certificates are of a private authority: what is wrong is named, no wait is advised where only a setting
// helps, and with the authority's certificate everything works.

import { readFileSync } from 'node:fs';
import { request as ask } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { test as base, openTestDatabase } from '../support/database/test-database.ts';
import { callIntake, runIntake } from '../support/processes/intake.ts';
import { toEnvironment } from '../support/processes/syncing.ts';
import { makeAuthority, makeCertificate } from '../support/servers/authority.ts';
import { type LocalServer, listenLocally } from '../support/servers/local-server.ts';
import { openScratch } from '../support/stores/blob-stores.ts';
import { openStrictS3 } from '../support/stores/strict-s3.ts';

interface Authority {
  readonly folder: string;
  readonly rootFile: string;
}

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern what a fixture needs; this one needs nothing.
const test = base.extend('authority', { scope: 'file' }, async ({}, { onCleanup }): Promise<Authority> => {
  const scratch = await openScratch();
  onCleanup(() => scratch[Symbol.asyncDispose]());
  makeAuthority(join(scratch.path, 'root'));
  makeCertificate(join(scratch.path, 'root'), join(scratch.path, 'server'));
  return { folder: scratch.path, rootFile: join(scratch.path, 'root.crt') };
});

/** The same server by TLS, under the name that the certificate bears. */
async function openTlsDoor(authority: Authority, url: string): Promise<LocalServer> {
  const read = (name: string) => readFileSync(join(authority.folder, name));
  const server = createTlsServer({ key: read('server.key'), cert: read('server.crt') }, (incoming, outgoing) => {
    const { method, headers } = incoming;
    const inner = ask(new URL(incoming.url ?? '/', url), { method: method ?? 'GET', headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(inner);
  });
  const local = await listenLocally(server);
  return { ...local, url: `https://localhost:${local.port}` };
}

describe('a source whose authority is not known', () => {
  test('is a setting to correct, and works with NODE_EXTRA_CA_CERTS', async ({ database, authority }) => {
    await using board = await openSandbox({ applications: 2 });
    await using scratch = await openScratch();
    await using door = await openTlsDoor(authority, board.url);
    const env = { ...toEnvironment(database, board, scratch.path), SOURCE_URL: door.url };
    for (const args of [['sync'], ['backfill']]) {
      const { code, stderr } = await callIntake(args, env);
      expect({ args, code }).toEqual({ args, code: 2 });
      expect(stderr).toMatch(/SOURCE_URL: the certificate of localhost:\d+ .+ NODE_EXTRA_CA_CERTS/);
    }
    const { code, stdout } = await callIntake(['doctor'], env);
    expect({ code, stdout }).toEqual({ code: 2, stdout: expect.stringContaining('NODE_EXTRA_CA_CERTS') });
    const known = { ...env, NODE_EXTRA_CA_CERTS: authority.rootFile };
    expect(await runIntake(['sync'], known)).toMatchObject({ code: 0 });
  });

  test('whose certificate is for another name is a setting to correct', async ({ database, authority }) => {
    await using board = await openSandbox();
    await using scratch = await openScratch();
    await using door = await openTlsDoor(authority, board.url);
    const env = { ...toEnvironment(database, board, scratch.path), NODE_EXTRA_CA_CERTS: authority.rootFile };
    const url = door.url.replace('localhost', '127.0.0.1');
    const { code, stderr } = await runIntake(['sync'], { ...env, SOURCE_URL: url });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/127\.0\.0\.1:\d+ .+ another name/) });
  });
});

describe('a storage whose authority is not known', () => {
  test('is a setting to correct, and works with NODE_EXTRA_CA_CERTS', async ({ authority }) => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 2 });
    await using s3 = await openStrictS3();
    await using door = await openTlsDoor(authority, s3.endpoint);
    const env = { ...toEnvironment(database, board), ...s3.settings, S3_ENDPOINT: door.url };
    for (const args of [['sync'], ['verify']]) {
      const { code, stderr } = await runIntake(args, env);
      expect({ args, code }).toEqual({ args, code: 2 });
      expect(stderr).toMatch(/S3_ENDPOINT: the certificate of localhost:\d+ .+ NODE_EXTRA_CA_CERTS/);
    }
    const { code, stdout } = await runIntake(['doctor'], env);
    expect({ code, stdout }).toEqual({ code: 2, stdout: expect.stringContaining('NODE_EXTRA_CA_CERTS') });
    expect(await runIntake(['sync'], { ...env, NODE_EXTRA_CA_CERTS: authority.rootFile })).toMatchObject({ code: 0 });
  });
});

// Postgres over TLS, against a server with a certificate of a private authority: what is wrong is named, no wait is advised where only
// a setting helps, and nothing is called a mistake of Intake.

import { writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import { test as base } from '../../support/database/test-database.ts';
import { openTlsPostgres, openTlsRelay } from '../../support/database/tls-postgres.ts';
import { callIntake, runIntake } from '../../support/processes/intake.ts';
import { toEnvironment } from '../../support/processes/syncing.ts';
import { openScratch } from '../../support/stores/blob-stores.ts';

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern what a fixture needs; this one needs nothing.
const test = base.extend('server', { scope: 'file' }, async ({}, { onCleanup }) => {
  const server = await openTlsPostgres();
  onCleanup(() => server[Symbol.asyncDispose]());
  return server;
});

async function migrate(url: string) {
  const { code, stderr } = await callIntake(['migrate'], { DATABASE_URL: url });
  return { code, stderr };
}

const done = { code: 0, stderr: '' };

// Starting a server and its certificates takes longer than one test usually may on a busy machine.
describe('a database over TLS', () => {
  test('whose authority is not known is a setting to correct', { tags: ['slow'] }, async ({ server }) => {
    await using board = await openSandbox();
    await using scratch = await openScratch();
    for (const parameters of ['sslmode=verify-full', `sslmode=verify-full&sslrootcert=${server.strangerFile}`]) {
      const env = toEnvironment({ url: `${server.url}?${parameters}` }, board, scratch.path);
      for (const command of ['migrate', 'status', 'sync', 'worker']) {
        const { code, stderr } = await callIntake([command], { ...env, LOG_FORMAT: 'json' });
        expect({ command, code }).toEqual({ command, code: 2 });
        expect(stderr).toMatch(/DATABASE_URL: the certificate of localhost:\d+ .+ sslrootcert/);
        expect(stderr).not.toMatch(/bug in Intake|\n {4}at /);
      }
      const { code, stdout } = await callIntake(['doctor'], env);
      expect({ code, stdout }).toEqual({ code: 2, stdout: expect.stringContaining('sslrootcert') });
    }
  });

  test('whose certificate or root does not fit is a setting to correct', { tags: ['slow'] }, async ({ server }) => {
    await using scratch = await openScratch();
    const [missing, rubbish] = [join(scratch.path, 'no-such.crt'), join(scratch.path, 'rubbish.crt')];
    writeFileSync(rubbish, 'This is no certificate.\n');
    const verified = `${server.url}?sslmode=verify-full&sslrootcert=`;
    for (const [url, told] of [
      [`${verified.replace('localhost', '127.0.0.1')}${server.rootFile}`, /127\.0\.0\.1:\d+ .+ another name/],
      [`${verified}${missing}`, /no-such\.crt cannot be read \(ENOENT\)/],
      [`${verified}${rubbish}`, /an authority that is not known here/],
      [verified, /DATABASE_URL/],
      [server.url, /DATABASE_URL: localhost:\d+ .* without TLS; add sslmode=verify-full/],
      [`${server.url}?sslmode=disable`, /DATABASE_URL: localhost:\d+ .* without TLS; add sslmode=verify-full/],
      [`${server.url}?sslmode=requier`, /DATABASE_URL .*sslmode.*verify-full/s],
    ] as const) {
      expect({ url, ...(await migrate(url)) }).toEqual({ url, code: 2, stderr: expect.stringMatching(told) });
    }
  });

  test('is used as psql uses it, and the driver prints nothing', { tags: ['slow'] }, async ({ server }) => {
    const other = server.url.replace('localhost', '127.0.0.1');
    const [root, stranger] = [`sslrootcert=${server.rootFile}`, `sslrootcert=${server.strangerFile}`];
    for (const url of [
      `${other}?sslmode=require`,
      `${other}?ssl=true`,
      `${other}?sslmode=require&${root}`,
      `${other}?sslmode=verify-ca&${root}`,
      `${server.url}?${root}`,
      `${server.url}?sslmode=verify-full&${root}`,
    ]) {
      expect({ url, ...(await migrate(url)) }).toEqual({ url, ...done });
    }
    for (const url of [
      `${other}?sslmode=require&${stranger}`,
      `${server.url}?sslmode=verify-ca&${stranger}`,
      `${other}?${root}`,
    ]) {
      expect({ url, ...(await migrate(url)) }).toMatchObject({ url, code: 2 });
    }
    // Warnings of the driver go past the command, to the process.
    expect(await runIntake(['migrate'], { DATABASE_URL: `${other}?sslmode=require` })).toMatchObject(done);
  });

  test('is not used by the authorities that the system knows', { tags: ['slow'] }, async ({ server }) => {
    expect(await migrate(`${server.url}?sslmode=verify-full&sslrootcert=system`)).toEqual({
      code: 2,
      stderr: expect.stringContaining('an authority that is not known here'),
    });
  });

  test('is bound to the login by channel_binding as psql does it', { tags: ['slow'] }, async ({ server }) => {
    await using scratch = await openScratch();
    await using between = await openTlsRelay(server, scratch.path);
    for (const url of [server.url, between.url]) {
      const unbound = `${url}?sslmode=require`;
      expect({ url, ...(await migrate(unbound)) }).toEqual({ url, ...done });
      expect({ url, ...(await migrate(`${unbound}&channel_binding=disable`)) }).toEqual({ url, ...done });
    }
    for (const word of ['prefer', 'require']) {
      const bound = `sslmode=require&channel_binding=${word}`;
      expect({ word, ...(await migrate(`${server.url}?${bound}`)) }).toEqual({ word, ...done });
      expect({ word, ...(await migrate(`${between.url}?${bound}`)) }).toEqual({
        word,
        code: 2,
        stderr: expect.stringMatching(/DATABASE_URL: the TLS connection does not end at localhost:\d+/),
      });
    }
  });

  test('that speaks no TLS is a setting to correct', async ({ database }) => {
    const { code, stderr } = await migrate(`${database.url}?sslmode=verify-full`);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('does not speak TLS') });
  });
});

describe('a database without TLS', () => {
  test('is not used where channel binding is required', async ({ database }) => {
    expect(await migrate(`${database.url}?channel_binding=prefer`)).toEqual(done);
    expect(await migrate(`${database.url}?channel_binding=require`)).toEqual({
      code: 2,
      stderr: expect.stringMatching(/DATABASE_URL: .+ offers no login with channel binding/),
    });
  });

  test('is reached by a Unix socket as psql writes it, where sslmode means nothing', async ({ database }) => {
    await using scratch = await openScratch();
    const { hostname, port, username, password, pathname } = new URL(database.url);
    const relay = createServer((socket) => {
      const server = connect(Number(port), hostname);
      socket.pipe(server).pipe(socket);
      socket.on('error', () => server.destroy());
      server.on('error', () => socket.destroy());
    });
    await new Promise<void>((resolve) => relay.listen(join(scratch.path, '.s.PGSQL.5433'), resolve));
    await using _ = { [Symbol.asyncDispose]: async () => void relay.close() };
    const folder = encodeURIComponent(scratch.path);
    for (const url of [
      `postgres://${username}:${password}@/${pathname.slice(1)}?host=${scratch.path}&port=5433`,
      `postgresql://${username}:${password}@${folder}:5433${pathname}?sslmode=verify-full`,
      `postgresql://${pathname}?host=${folder}&port=5433&user=${username}&password=${password}&sslmode=require`,
    ]) {
      expect({ url, ...(await migrate(url)) }).toEqual({ url, ...done });
    }
    const away = await migrate(`postgres://${username}@/intake?host=${scratch.path}/none`);
    expect(away).toEqual({ code: 5, stderr: expect.stringContaining(`${scratch.path}/none:5432 cannot be reached`) });
  });
});

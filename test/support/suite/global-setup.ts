// Runs once before the first file: chooses the server, prints its name and creates the template. After the last file it drops the run's
// databases and stops the server, if it started one.

import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../../src/store/postgres/migrations.ts';
import { openTestRun } from '../database/test-run.ts';
import { openTestServer } from '../database/test-server.ts';

/** Called by vitest, which calls the returned function after the last file. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const stack = new AsyncDisposableStack();
  const say = (line: string) => process.stderr.write(`${line}\n`);
  try {
    const server = stack.use(
      await openTestServer({
        testDatabaseUrl: process.env.TEST_DATABASE_URL,
        dockerHost: process.env.DOCKER_HOST,
        autovacuum: process.env.TEST_AUTOVACUUM,
        root: fileURLToPath(new URL('../../..', import.meta.url)),
        say,
      }),
    );
    say(`Tests use ${server.name}.`);
    const run = stack.use(await openTestRun(server.url, migrate));
    project.provide('template', run.template);
    return () => stack.disposeAsync();
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

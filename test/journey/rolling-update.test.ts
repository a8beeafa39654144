// @module-tag slow
// A rolling update as a cluster does it: three workers and two public processes are replaced one by one, while people apply and candidates
// share their profiles. The processes that are replaced run the checkout named by BEFORE, or this one.
import { createServer, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { openSandbox, type Sandbox } from '../../src/dev/sandbox/http/server.ts';
import { test } from '../support/database/test-database.ts';
import { findDifferences } from '../support/equality.ts';
import { createBrowser } from '../support/prefill/candidate-browser.ts';
import { redeem, takeBlobStore, toPrefillSettings, toStartUrl } from '../support/prefill/prefill-stage.ts';
import { toEnvironment } from '../support/processes/syncing.ts';
import { isDone, isRead, probe, spawnPrefill, spawnWorker } from '../support/processes/worker.ts';
import { findFreePort } from '../support/servers/free-port.ts';
import { listenLocally } from '../support/servers/local-server.ts';
import { openReceiver, webhookSecret } from '../support/servers/receiver.ts';
import { openScratch } from '../support/stores/blob-stores.ts';
import { until } from '../support/suite/until.ts';

const before = process.env.BEFORE;

test('a rolling update drops no event and no request of a candidate', async ({ emptied: database }) => {
  await using stack = new AsyncDisposableStack();
  const balancer = stack.use(await openBalancer());
  // Slower than events come, so that several wait behind the one that is on its way when a worker ends.
  const receiver = stack.use(await openReceiver(() => sleep(100, 204)));
  const blobs = stack.use(await openScratch());
  const redirectUri = `${balancer.url}/prefill/callback`;
  const board = stack.use(
    await openSandbox({ applications: 5, choices: { consent: 'allow' }, client: { redirectUris: [redirectUri] } }),
  );
  board.fault({ kind: 'slow', on: 'prefilled', delayMs: 1_000, times: null });
  const env = {
    ...toEnvironment(database, board, blobs.path),
    ...{
      SYNC_SCHEDULE: '* * * * * *',
      RECHECK_SCHEDULE: 'off',
      AUDIT_SCHEDULE: 'off',
      LEASE: '2s',
      LOG_FORMAT: 'json',
    },
    ...{ WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret, WEBHOOK_ALLOW_PRIVATE: 'true' },
    ...{ ...toPrefillSettings(board, redirectUri), TRUSTED_PROXIES: '127.0.0.1' },
  };
  await takeBlobStore(env);

  const startWorker = async (checkout?: string) => {
    const worker = stack.use(await spawnWorker(env, checkout));
    await until(async () => (await probe(worker, '/readyz')).status === 200);
    return worker;
  };
  const startPublic = async (checkout?: string) => {
    const process = stack.use(await spawnPrefill({ ...env, PORT: String(await findFreePort()) }, checkout));
    balancer.targets.push(process.url);
    return process;
  };
  const workers = await Promise.all([1, 2, 3].map(() => startWorker(before)));
  await until(() => isRead(database, board));
  const publics = [await startPublic(before), await startPublic(before)];

  const over = new AbortController();
  const visits: string[] = [];
  const visiting = [1, 2].map(async () => {
    while (!over.signal.aborted) visits.push(await visit(balancer.url, board));
  });
  const applying = (async () => {
    for (; !over.signal.aborted; await sleep(150)) board.add(1);
  })();
  const untilVisited = async () => {
    const seen = visits.length;
    await until(() => visits.length > seen + 1);
  };

  await untilVisited();
  for (const old of workers) {
    await startWorker();
    old.kill('SIGTERM');
    expect((await old.ended).code).toBe(0);
    await untilVisited();
  }
  for (const old of publics) {
    await startPublic();
    // A candidate's profile is on its way to the process that ends.
    await until(() => balancer.isFetching(old.url));
    balancer.targets.splice(balancer.targets.indexOf(old.url), 1);
    old.kill('SIGTERM');
    expect((await old.ended).code).toBe(0);
    await untilVisited();
  }
  over.abort();
  await Promise.all([...visiting, applying]);

  expect(visits.filter((end) => end !== 'resume')).toEqual([]);
  await until(() => isDone(database, board));
  expect(await findDifferences(database, board)).toEqual([]);
  const events = await database.query<{ id: number; type: string }>(
    `SELECT event_id::int AS id, type FROM intake.events ORDER BY event_id`,
  );
  for (const type of ['application.received', 'application.ready']) {
    expect(events.filter((event) => event.type === type)).toHaveLength(board.size);
  }
  // A consumer that keeps the last id passes over repetitions.
  const consumed = () => receiver.taken().filter((id, at, all) => all.slice(0, at).every((earlier) => earlier < id));
  await expect.poll(consumed).toEqual(events.map(({ id }) => id));
});

/** Goes from the button on the careers site to the candidate's resume; answers where that ended. */
async function visit(url: string, board: Sandbox): Promise<string> {
  try {
    const back = await createBrowser().toReturn(toStartUrl(url, board));
    const handle = back.searchParams.get('prefill');
    if (handle === null) return `returned to ${back.search}`;
    const redeemed = await redeem(url, handle);
    if (!redeemed.ok) return `redeem answered ${redeemed.status}`;
    const { resume } = (await redeemed.json()) as { resume: { url: string } };
    const { status } = await fetch(resume.url);
    return status === 200 ? 'resume' : `the resume's link answered ${status}`;
  } catch (error) {
    return String(error);
  }
}

/**
 * Hands each request to the next of its targets, as a cluster's service does, in the name of a candidate of its own. One that cannot be
 * handed on is answered with 502.
 */
async function openBalancer() {
  const targets: string[] = [];
  const callbacks: string[] = [];
  let handed = 0;
  const server = createServer((asked, response) => {
    const { method, url = '/' } = asked;
    const target = new URL(url, targets[handed++ % targets.length]);
    if (target.pathname.endsWith('/callback')) {
      callbacks.push(target.origin);
      response.once('close', () => callbacks.splice(callbacks.indexOf(target.origin), 1));
    }
    const headers = { ...asked.headers, 'x-forwarded-for': `10.0.${handed >> 8}.${handed & 255}` };
    const given = request(target, { method, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.once('error', () => response.destroy());
    });
    given.once('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
    asked.pipe(given);
  });
  return {
    ...(await listenLocally(server)),
    targets,
    /** Whether one of its targets is busy with a callback. */
    isFetching: (one: string) => callbacks.includes(one),
  };
}

// Webhooks as an operator and an integrator see them: a worker that is killed, the example receiver, and the commands.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { toMessage } from '../../src/domain/webhook.ts';
import { openWebhookClient } from '../../src/webhooks/send.ts';
import { openScratch } from '../support/blob-stores.ts';
import { findFreePort } from '../support/free-port.ts';
import { callIntake } from '../support/intake.ts';
import { newWebhookSecret, openReceiver, webhookSecret } from '../support/receiver.ts';
import { toEnvironment } from '../support/syncing.ts';
import { type TestDatabase, test } from '../support/test-database.ts';
import { spawnWorker } from '../support/worker.ts';

/** The example receiver as a process; `lines` is what it printed. */
async function openExample(inbox: string) {
  const port = await findFreePort();
  const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, PORT: String(port), WEBHOOK_SECRET: webhookSecret, INBOX: inbox };
  const child = spawn(process.execPath, ['examples/receive-webhooks.ts'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    printed += piece;
  });
  await expect.poll(() => printed).toContain('Webhooks are received at');
  return {
    url: `http://127.0.0.1:${port}`,
    printed: () => printed,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.kill();
      await ended;
    },
  };
}

const schedules = {
  ...{ SYNC_SCHEDULE: '* * * * * *', RECHECK_SCHEDULE: 'off', AUDIT_SCHEDULE: 'off' },
  ...{ LEASE: '2s', LOG_FORMAT: 'json', WEBHOOK_ALLOW_PRIVATE: 'true' },
};

const loadEvents = async (database: TestDatabase) =>
  (await database.query<{ id: number }>(`SELECT event_id::int AS id FROM intake.events ORDER BY event_id`)).map(
    ({ id }) => id,
  );

const killed =
  'a worker killed between an answer and its record repeats the event; the example receiver takes each once, in order';
test(killed, { tags: ['slow'] }, async ({ emptied: database }) => {
  await using board = await openSandbox({ applications: 4 });
  await using scratch = await openScratch();
  const inbox = join(scratch.path, 'inbox.ndjson');
  await using example = await openExample(inbox);
  const env = {
    ...{ ...toEnvironment(database, board, join(scratch.path, 'blobs')), ...schedules },
    ...{ WEBHOOK_URL: `${example.url}/hook`, WEBHOOK_SECRET: webhookSecret },
  };
  await using first = await spawnWorker({ ...env, INTAKE_CRASH_AT: 'webhookAnswered:3' });
  expect((await first.ended).code).toBeNull();
  await using _second = await spawnWorker(env);
  const ready = () => database.query(`SELECT 1 FROM intake.applications WHERE ready_at IS NOT NULL`);
  await expect.poll(ready).toHaveLength(4);
  const taken = () =>
    (existsSync(inbox) ? readFileSync(inbox, 'utf8') : '')
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [JSON.parse(line).data.event_id]));
  await expect.poll(taken).toEqual(await loadEvents(database));
  expect(example.printed()).toMatch(/event \d+ of advertiser \d+: application\.\w+ of \d+, again\n/);
  expect(await (await fetch(example.url)).text()).toContain('application.ready');
  // A message of somebody else is refused.
  const forged = {
    method: 'POST',
    body: '{}',
    headers: { 'webhook-id': 'x', 'webhook-timestamp': `${Date.now() / 1_000}` },
  };
  expect((await fetch(`${example.url}/hook`, forged)).status).toBe(401);
});

test('the example receiver takes the events of a restored database, whose numbers are used again', async () => {
  await using scratch = await openScratch();
  const inbox = join(scratch.path, 'inbox.ndjson');
  await using example = await openExample(inbox);
  await using client = openWebhookClient({
    ...{ url: example.url, secrets: () => [webhookSecret], allowPrivate: true, userAgent: 'test' },
  });
  const send = async (event: bigint, minute: number) => {
    const at = new Date(Date.UTC(2026, 10, 18, 12, minute));
    const of = { advertiserId: 7n, applicationId: 1n, type: 'application.changed', state: 'ready' } as const;
    const message = toMessage({ eventId: event, at, ...of, readAt: new Date(), application: null }, false);
    expect(await client.send(message)).toMatchObject({ status: 204 });
  };
  await send(100n, 1);
  await send(101n, 2);
  await send(102n, 3);
  // The backup was made after 100: what it holds comes again, and then what happens after the restore.
  await send(100n, 1);
  await send(101n, 5);
  await send(102n, 6);
  await send(102n, 6);
  const taken = readFileSync(inbox, 'utf8').matchAll(/"timestamp":"[^"]+:(\d\d):00\.000Z","data":\{"event_id":(\d+)/g);
  expect([...taken].map(([, minute, event]) => `${event} at ${Number(minute)}`)).toEqual([
    ...['100 at 1', '101 at 2', '102 at 3', '101 at 5', '102 at 6'],
  ]);
  expect(example.printed().match(/was restored/g)).toHaveLength(1);
});

test('the example receiver outlives a sender that hangs up, and refuses a body without a bound', async () => {
  await using scratch = await openScratch();
  await using example = await openExample(join(scratch.path, 'inbox.ndjson'));
  const socket = connect(Number(new URL(example.url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf of it');
  // The answer to another request shows that the first one has begun.
  expect((await fetch(example.url)).status).toBe(200);
  socket.resetAndDestroy();
  const endless = { method: 'POST', body: new Blob(['{}']).stream(), duplex: 'half' as const };
  expect((await fetch(example.url, endless)).status).toBe(413);
});

test('an operator lists endpoints, sends a ping, and continues one that was disabled', async ({
  emptied: database,
}) => {
  await using board = await openSandbox({ applications: 0 });
  await using scratch = await openScratch();
  await using receiver = await openReceiver();
  const secretFile = join(scratch.path, 'ats.secret');
  writeFileSync(secretFile, `${webhookSecret}\n`);
  const file = join(scratch.path, 'advertisers.json');
  const webhooks = [
    { name: 'ats', url: receiver.url, secretFile: 'ats.secret' },
    { name: 'crm', url: receiver.url, secret: newWebhookSecret, events: ['application.ready'], full: true },
  ];
  writeFileSync(file, JSON.stringify([{ name: 'acme', credential: board.credential, webhooks }]));
  const { SOURCE_CREDENTIAL: _, ...base } = toEnvironment(database, board);
  const env = { ...base, ADVERTISERS_FILE: file, WEBHOOK_ALLOW_PRIVATE: 'true' };
  const call = async (...args: string[]) => {
    const { code, stdout } = await callIntake([...args, '--json'], env);
    return { code, said: JSON.parse(stdout) };
  };

  expect(await call('webhook', 'test', 'ats')).toEqual({
    code: 0,
    said: { webhook: 'ats', delivered: true, status: 204, answer: 'it answered 204' },
  });
  // The receiver knows another secret.
  expect(await call('webhook', 'test', 'crm')).toMatchObject({ code: 3, said: { delivered: false, status: 401 } });
  // The file is read for each message.
  writeFileSync(secretFile, `${newWebhookSecret} ${webhookSecret}\n`);
  receiver.secret = newWebhookSecret;
  expect((await call('webhook', 'test', 'ats')).code).toBe(0);
  const refused = await callIntake(['webhook', 'test', 'ats', '--json'], { ...env, WEBHOOK_ALLOW_PRIVATE: 'false' });
  expect(refused).toMatchObject({ code: 3, stdout: expect.stringContaining('not an address of the internet') });

  const id = board.advertiserId;
  await database.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('acme', $1)`, [id]);
  await database.query(
    `INSERT INTO intake.events VALUES ($1, 41, 1, 'application.received', now()), ($1, 42, 1, 'application.ready', now())`,
    [id],
  );
  await database.query(
    `INSERT INTO intake.webhooks (advertiser_id, name, position, stop) VALUES ($1, 'ats', 41, 'gone')`,
    [id],
  );
  const { said } = await call('webhook', 'list');
  expect(said.webhooks).toMatchObject([
    { advertiser: 'acme', name: 'ats', position: '41', behind: 1, stop: 'gone' },
    { advertiser: 'acme', name: 'crm', position: null, behind: 0, stop: null },
  ]);
  const status = await call('status');
  expect(status.said.problems).toContainEqual({
    advertiser: 'acme',
    what: 'Webhook ats is disabled: it answered 410 (gone); 1 event waits.',
    command: 'intake retry --webhook ats',
    urgent: true,
  });
  const { stdout } = await callIntake(['webhook', 'list'], env);
  expect(stdout).toMatch(/ats .* acme .* disabled .* 41 /);
  expect(stdout).toMatch(/crm .* acme .* new /);
  expect(stdout).not.toContain(new URL(receiver.url).port);

  // The doctor looks at addresses and rows, and sends nothing.
  const sent = receiver.received.length;
  const address = new URL(receiver.url).host;
  const look = async (settings = {}) => {
    const { code, stdout: text } = await callIntake(['doctor', '--json'], { ...env, ...settings });
    const { findings } = JSON.parse(text) as { findings: { check: string; ok: boolean; detail: string }[] };
    return { code, found: findings.filter(({ check }) => check.startsWith('acme: webhook ')) };
  };
  expect(await look()).toEqual({
    code: 3,
    found: [
      {
        check: 'acme: webhook ats',
        ok: false,
        detail: `${address}; Webhook ats is disabled: it answered 410 (gone); 1 event waits. Run intake retry --webhook ats`,
      },
      { check: 'acme: webhook crm', ok: true, detail: `${address}; no worker has begun to deliver` },
    ],
  });
  const strict = await look({ WEBHOOK_ALLOW_PRIVATE: 'false' });
  expect(strict.found).toMatchObject([
    { ok: false, detail: `${address} is not an address of the internet; WEBHOOK_ALLOW_PRIVATE=true allows it` },
    { ok: false },
  ]);
  writeFileSync(secretFile, 'whsec_');
  expect(await callIntake(['doctor'], env)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/webhooks\[0\]\.secretFile .*ats\.secret must be whsec_/),
  });
  writeFileSync(secretFile, webhookSecret);
  expect(receiver.received).toHaveLength(sent);

  expect(await call('retry', '--webhook', 'ats')).toEqual({ code: 0, said: { webhooks: 1 } });
  expect(await database.query(`SELECT stop, position::int FROM intake.webhooks`)).toEqual([
    { stop: null, position: 41 },
  ]);
  expect(await call('retry', '--webhook', 'crm')).toEqual({ code: 0, said: { webhooks: 0 } });
  for (const args of [
    ['retry', '--webhook', 'xyz'],
    ['retry', '--webhook', 'ats', '--state', 'missing'],
    ['webhook', 'test'],
    ['webhook', 'test', 'xyz'],
    ['webhook', 'list', 'ats'],
  ]) {
    expect((await call(...args)).code, args.join(' ')).toBe(2);
  }
});

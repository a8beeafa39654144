// Webhooks as an operator and an integrator see them: a worker that is killed, the example receiver, and the commands.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { openScratch } from '../support/blob-stores.ts';
import { findFreePort } from '../support/free-port.ts';
import { callIntake } from '../support/intake.ts';
import { newWebhookSecret, openReceiver, webhookSecret } from '../support/receiver.ts';
import { toEnvironment } from '../support/syncing.ts';
import { test } from '../support/test-database.ts';

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

  // The doctor looks at addresses, and sends nothing.
  const sent = receiver.received.length;
  const address = new URL(receiver.url).host;
  const look = async (settings = {}) => {
    const { code, stdout: text } = await callIntake(['doctor', '--json'], { ...env, ...settings });
    const { findings } = JSON.parse(text) as { findings: { check: string; ok: boolean; detail: string }[] };
    return { code, found: findings.filter(({ check }) => check.startsWith('acme: webhook ')) };
  };
  expect(await look()).toEqual({
    code: 0,
    found: [
      { check: 'acme: webhook ats', ok: true, detail: address },
      { check: 'acme: webhook crm', ok: true, detail: address },
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

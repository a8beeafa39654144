// Webhooks as an operator and an integrator see them: the example receiver, and the commands.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { toMessage, toPing } from '../../src/domain/webhook.ts';
import { openWebhookClient } from '../../src/webhooks/send.ts';
import { test } from '../support/database/test-database.ts';
import { callIntake } from '../support/processes/intake.ts';
import { toEnvironment } from '../support/processes/syncing.ts';
import { findFreePort } from '../support/servers/free-port.ts';
import { newWebhookSecret, openReceiver, webhookSecret } from '../support/servers/receiver.ts';
import { openScratch } from '../support/stores/blob-stores.ts';

/** The example receiver as a process; `lines` is what it printed. */
async function openExample(inbox: string, secrets = webhookSecret) {
  const port = await findFreePort();
  const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, PORT: String(port), WEBHOOK_SECRET: secrets, INBOX: inbox };
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

test('the example receiver takes each signed event once and in order, also after a restart, and after a restore of the database', async () => {
  await using scratch = await openScratch();
  const inbox = join(scratch.path, 'inbox.ndjson');
  let url = '';
  const send = async (eventId: bigint, minute: number, signed: { secret?: string; secondsAgo?: number } = {}) => {
    const { secret = webhookSecret, secondsAgo = 0 } = signed;
    await using client = openWebhookClient({ url, secrets: () => [secret], allowPrivate: true });
    if (eventId === 0n) return (await client.send(toPing('ats', new Date()))).status;
    const of = { type: 'application.changed', state: 'ready', application: null } as const;
    const at = new Date(Date.UTC(2026, 10, 18, 12, minute));
    const readAt = new Date(Date.now() - secondsAgo * 1_000);
    const ids = { eventId, advertiserId: 9_007_199_254_740_993n, applicationId: 9_007_199_254_740_995n };
    return (await client.send(toMessage({ ...ids, at, readAt, ...of }, false))).status;
  };
  {
    // As an editor leaves it, while the secret is rotated.
    await using first = await openExample(inbox, `${newWebhookSecret} ${webhookSecret}\n`);
    url = first.url;
    expect(await send(0n, 0)).toBe(204);
    for (const minute of [1, 2, 3]) expect(await send(BigInt(99 + minute), minute)).toBe(204);
    // The backup was made after 100: what it holds comes again, and then what happens after the restore.
    expect([await send(100n, 1), await send(101n, 5)]).toEqual([204, 204]);
    // A message without the secret is refused, and so is an old one that somebody kept.
    for (const secret of ['whsec_', `whsec_${'A'.repeat(32)}`]) expect(await send(103n, 6, { secret })).toBe(401);
    for (const secondsAgo of [600, -600]) expect(await send(103n, 6, { secondsAgo })).toBe(401);
    await expect.poll(() => first.printed().match(/was restored/g)).toHaveLength(1);
  }

  await using second = await openExample(inbox, newWebhookSecret);
  url = second.url;
  expect(await send(102n, 6)).toBe(401);
  for (let n = 0; n < 2; n++) expect(await send(102n, 6, { secret: newWebhookSecret })).toBe(204);
  const taken = readFileSync(inbox, 'utf8').matchAll(/:(\d\d):00\.000Z","data":\{"event_id":(\d+),(.*),"state"/g);
  const ids = '"advertiser_id":9007199254740993,"application_id":9007199254740995';
  expect([...taken].map(([, minute, event, rest]) => `${event} at ${Number(minute)}, ${rest}`)).toEqual(
    ['100 at 1', '101 at 2', '102 at 3', '101 at 5', '102 at 6'].map((one) => `${one}, ${ids}`),
  );
  await expect
    .poll(second.printed)
    .toMatch(/event 102 of advertiser 9007199254740993: .* of 9007199254740995, again\n/);
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

test('an operator lists endpoints, sends a ping, and continues a disabled one', async ({ emptied: database }) => {
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

  // The doctor reads the settings of endpoints, and sends nothing.
  const sent = receiver.received.length;
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

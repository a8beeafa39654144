// Measures how many events a second one endpoint of webhooks takes: npx node bench/webhooks.ts [events] [milliseconds that it needs].
// The anchor is the same number of bare requests, one after the other, over one connection: order allows no more than that.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { openEmbedded } from '../src/dev/embedded/embedded.ts';
import { appendEvents } from '../src/store/events.ts';
import { openDatabase } from '../src/store/postgres/database.ts';
import { migrate } from '../src/store/postgres/migrations.ts';
import { openStore } from '../src/store/store.ts';
import { deliver } from '../src/sync/accounts/webhooks.ts';
import { openWebhookClient } from '../src/webhooks/send.ts';

const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;

const [, , what = '2000', latency = '5'] = process.argv;
if (what === 'receiver') await receive(Number(latency));
else await measure(Number(what), latency);

async function receive(latencyMs: number): Promise<void> {
  const server = createServer((request, response) => {
    request.resume().once('end', async () => {
      if (latencyMs > 0) await sleep(latencyMs);
      response.writeHead(204).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.send?.((server.address() as AddressInfo).port);
  await once(process, 'disconnect');
  process.exit();
}

async function measure(count: number, latencyMs: string): Promise<void> {
  const receiver = spawn(process.execPath, [import.meta.filename, 'receiver', latencyMs], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [port] = await once(receiver, 'message');
  const url = `http://127.0.0.1:${port}/`;
  const folder = mkdtempSync(join(tmpdir(), 'intake-webhooks-'));
  try {
    const bare = await timed(() => sendBare(url, count));
    await using server = await openEmbedded({ root: folder, scratch: true });
    await migrate(server.url);
    await using db = openDatabase({ url: server.url, role: 'bench' });
    await db.query(`INSERT INTO intake.advertisers (name, advertiser_id) VALUES ('bench', 7)`);
    const events = Array.from({ length: count }, (_, n) => ({
      applicationId: BigInt(n + 1),
      type: 'application.received' as const,
    }));
    await db.transaction((tx) => appendEvents(tx, 7n, events));
    await using store = openStore({ url: server.url, role: 'bench', privacyKey: Buffer.alloc(32) });
    await using client = openWebhookClient({ url, secrets: () => [secret], allowPrivate: true });
    const webhook = { account: 'bench', name: 'bench', types: null, detail: null, send: client.send };
    const request = { advertiserId: 7n, owner: 'bench', leaseMs: 30_000, signal: new AbortController().signal };
    const ours = await timed(() => deliver({ store }, webhook, request));
    const rate = (ms: number) => Math.round((count / ms) * 1_000);
    console.log(`${count} events, a receiver that needs ${latencyMs} ms, one after the other:`);
    console.log(
      `  bare requests ${rate(bare)}/s, deliveries ${rate(ours)}/s (${(rate(ours) / rate(bare)).toFixed(2)} of it)`,
    );
  } finally {
    receiver.disconnect();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function sendBare(origin: string, count: number): Promise<void> {
  const agent = new Agent({ connections: 1, pipelining: 1 });
  for (let n = 0; n < count; n++) {
    const { body } = await agent.request({ origin, path: '/', method: 'POST', body: 'x'.repeat(180) });
    await body.dump();
  }
  await agent.close();
}

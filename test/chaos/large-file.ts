// The largest resident memory of `intake sync` while it fetches four files of 200 MB at once: `node test/chaos/large-file.ts FOLDER`, where
// the folder takes an embedded Postgres and the blobs. Reads the kernel's high-water mark, so Linux only.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { openSandbox } from '../../src/sandbox/server.ts';
import { openEmbedded } from '../../src/store/embedded.ts';
import { migrate } from '../../src/store/migrations.ts';

const root = process.argv[2] ?? '';
if (!root) throw new Error('Name a folder.');
const files = Number(process.argv[3] ?? 1);
const sizeBytes = Number(process.argv[4] ?? 200_000_000);

await using server = await openEmbedded({ root });
await migrate(server.url);
await using board = await openSandbox({ applications: 0, advertiserId: BigInt(Date.now()) });
board.add(Array.from({ length: files }, (_, at) => ({ attachments: [{ kind: 'resume', sizeBytes: sizeBytes + at }] })));
const child = spawn(process.execPath, [resolve('src/cli/main.ts'), 'sync'], {
  env: {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DATABASE_URL: server.url,
    SOURCE_URL: board.url,
    SOURCE_CREDENTIAL: board.credential,
    SOURCE_RATE: 'off',
    PRIVACY_KEY: 'a privacy key for tests, long enough',
    BLOBS_URL: `file:${join(root, 'large-blobs')}`,
    ATTACHMENT_MAX_BYTES: '300MB',
  },
  stdio: 'inherit',
});
let peakKb = 0;
const watch = setInterval(() => {
  try {
    const [, kb] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
    peakKb = Math.max(peakKb, Number(kb ?? 0));
  } catch {
    // It has just ended.
  }
}, 20);
const startedAt = performance.now();
const [code] = await once(child, 'exit');
clearInterval(watch);
console.log(
  `${files} files of ${sizeBytes / 1e6} MB: exit ${code}, peak ${Math.round(peakKb / 1024)} MiB, ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`,
);

// Measures the peak resident memory of `intake sync` while it fetches several files of 200 MB at once, to disk and to S3:
// `node test/chaos/large-file.ts FOLDER [FILES] [RUNS]`. The folder holds an embedded Postgres and the blobs. Reads the kernel's
// high-water mark, so it needs Linux.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { openEmbedded } from '../../src/dev/embedded/embedded.ts';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { openDatabase } from '../../src/store/postgres/database.ts';
import { openStrictS3 } from '../support/strict-s3.ts';

const root = process.argv[2] ?? '';
if (!root) throw new Error('Name a folder.');
const files = Number(process.argv[3] ?? 4);
const runs = Number(process.argv[4] ?? 5);
const sizeBytes = 200_000_000;

await using server = await openEmbedded({ root });
await using board = await openSandbox({ applications: 0 });
board.add(Array.from({ length: files }, (_, at) => ({ attachments: [{ kind: 'resume', sizeBytes: sizeBytes + at }] })));

for (const place of ['disk', 's3'] as const) {
  for (let run = 1; run <= runs; run++) {
    const { peakBytes, seconds, code } = await (place === 'disk' ? syncToDisk() : syncToS3());
    console.log(
      `${files} files of 200 MB to ${place}: exit ${code}, peak ${(peakBytes / 1e6).toFixed(0)} MB, ${seconds.toFixed(1)} s`,
    );
  }
}

async function syncToDisk() {
  const folder = join(root, 'large-blobs');
  rmSync(folder, { recursive: true, force: true });
  return await sync({ BLOBS_URL: `file:${folder}` });
}

async function syncToS3() {
  await using s3 = await openStrictS3();
  return await sync({
    BLOBS_URL: `s3://${s3.bucket}/intake`,
    S3_ENDPOINT: s3.endpoint,
    S3_REGION: s3.region,
    S3_FORCE_PATH_STYLE: 'true',
    AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
  });
}

/** Runs one process on a fresh database and watches it until it exits. */
async function sync(place: Record<string, string>): Promise<{ peakBytes: number; seconds: number; code: unknown }> {
  {
    await using db = openDatabase({ url: server.url, role: 'bench' });
    await db.query('DROP DATABASE IF EXISTS large_file');
    await db.query('CREATE DATABASE large_file');
  }
  const startedAt = performance.now();
  const child = spawn(process.execPath, [resolve('src/cli/main.ts'), 'sync'], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      DATABASE_URL: Object.assign(new URL(server.url), { pathname: '/large_file' }).href,
      SOURCE_URL: board.url,
      SOURCE_CREDENTIAL: board.credential,
      SOURCE_RATE: 'off',
      PRIVACY_KEY: 'a privacy key for tests, long enough',
      ATTACHMENT_MAX_BYTES: '300MB',
      ...place,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  let peakBytes = 0;
  const watch = setInterval(() => {
    try {
      const [, kb] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
      peakBytes = Math.max(peakBytes, Number(kb ?? 0) * 1024);
    } catch {
      // The process has just ended.
    }
  }, 20);
  const [code] = await once(child, 'exit');
  clearInterval(watch);
  return { peakBytes, seconds: (performance.now() - startedAt) / 1_000, code };
}

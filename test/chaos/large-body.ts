// Measures the peak resident memory of `intake sync` while the source sends lists and files of 10 GB:
// `node test/chaos/large-body.ts FOLDER [BYTES]`. The folder holds an embedded Postgres and the blobs. Exits with 1 from 512 MB on.
// Reads the kernel's high-water mark, so it needs Linux.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openEmbedded } from '../../src/dev/embedded/embedded.ts';
import { openSandbox } from '../../src/dev/sandbox/http/server.ts';
import { migrate } from '../../src/store/postgres/migrations.ts';
import { startIntake } from '../support/processes/intake.ts';

const [root = '', size = '10000000000'] = process.argv.slice(2);
if (!root) throw new Error('Name a folder.');
const sizeBytes = Number(size);
const mostMb = 512;

await using server = await openEmbedded({ root });
await migrate(server.url);
await using board = await openSandbox({ applications: 12, advertiserId: BigInt(Date.now()) });
board.fault({ kind: 'flood', on: 'list', sizeBytes, times: 2 });
board.fault({ kind: 'gzipBomb', on: 'list', sizeBytes: 1_000_000_000, skip: 2, times: 1 });
board.fault({ kind: 'flood', on: 'files', sizeBytes, times: null });
const { child, ended } = startIntake(['sync'], {
  DATABASE_URL: server.url,
  SOURCE_URL: board.url,
  SOURCE_CREDENTIAL: board.credential,
  SOURCE_RATE: 'off',
  PRIVACY_KEY: 'a privacy key for tests, long enough',
  BLOBS_URL: `file:${join(root, 'large-blobs')}`,
});
let peakKb = 0;
const watch = setInterval(() => {
  try {
    const [, kb] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
    peakKb = Math.max(peakKb, Number(kb ?? 0));
  } catch {
    // The process has just ended.
  }
}, 20);
const { code, stdout, stderr } = await ended;
clearInterval(watch);
const peakMb = Math.round(peakKb / 1_000);
console.log(`${stdout}${stderr}bodies of ${sizeBytes / 1e9} GB: exit ${code}, peak ${peakMb} MB`);
process.exitCode = peakMb < mostMb ? 0 : 1;

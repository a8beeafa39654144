// Measures the peak memory of fetching four files of 200 MB at once, against a script that reads each file into memory before it writes it.
// Intake runs as a separate `intake sync` process, from the sandbox into a folder. The peak is the kernel's high-water mark.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSandbox } from '../src/dev/sandbox/http/server.ts';
import { type Figure, report, type Size } from './support/figure.ts';
import { type Cost, openPlace } from './support/place.ts';
import { watchRun } from './support/watching.ts';

const main = join(import.meta.dirname, '../src/cli/main.ts');

export async function* measure(size: Size): AsyncGenerator<Figure> {
  const files = size.quick ? 2 : 4;
  const sizeBytes = 200_000_000;
  const folder = mkdtempSync(join(tmpdir(), 'intake-bench-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const place = stack.use(await openPlace());
  const sandbox = stack.use(await openSandbox({ applications: 0 }));
  sandbox.add(
    Array.from({ length: files }, (_, at) => ({ attachments: [{ kind: 'resume', sizeBytes: sizeBytes + at }] })),
  );
  const ids = Array.from(sandbox.truth(), ({ id }) => id);
  const best = { ours: Number.POSITIVE_INFINITY, theirs: Number.POSITIVE_INFINITY };
  const costs: { ours?: Cost; theirs?: Cost } = {};
  for (let repeat = 0; repeat < (size.quick ? 1 : size.repeats); repeat++) {
    const database = await place.openDatabase();
    costs.ours = await place.meter(async () => {
      const env = {
        DATABASE_URL: database.url,
        SOURCE_URL: sandbox.url,
        SOURCE_CREDENTIAL: sandbox.credential,
        SOURCE_RATE: 'off',
        PRIVACY_KEY: 'a privacy key for the benches',
        ATTACHMENT_MAX_BYTES: '300MB',
        BLOBS_URL: `file:${join(folder, `blobs-${repeat}`)}`,
      };
      best.ours = Math.min(best.ours, (await watchRun([main, 'sync'], env)).peakBytes);
    });
    await database[Symbol.asyncDispose]();
    rmSync(join(folder, `blobs-${repeat}`), { recursive: true, force: true });
    costs.theirs = await place.meter(async () => {
      const urls = ids.map((id) => `${sandbox.url}/v1/advertiser/applications/resume/${id}`);
      const env = { CREDENTIAL: sandbox.credential, FOLDER: folder };
      best.theirs = Math.min(
        best.theirs,
        (await watchRun(['--input-type=module', '-e', readWhole, ...urls], env)).peakBytes,
      );
    });
  }
  yield {
    figure: `${files} files of 200 MB at once, peak RSS`,
    anchor: `reading them whole: ${Math.round(best.theirs / 1e6)} MB`,
    ratio: best.ours / 1e6,
    unit: 'MB',
    goal: { atMost: 200 },
    ours: costs.ours ?? null,
    theirs: costs.theirs ?? null,
  };
}

/** A naive script: it reads the body into memory, hashes it, and writes it to a file. */
const readWhole = `
  import { hash } from 'node:crypto';
  import { writeFile } from 'node:fs/promises';
  const headers = { authorization: 'SWS ' + process.env.CREDENTIAL };
  await Promise.all(process.argv.slice(1).map(async (url) => {
    const body = new Uint8Array(await (await fetch(url, { headers })).arrayBuffer());
    await writeFile(process.env.FOLDER + '/' + hash('sha256', body), body);
  }));`;

if (import.meta.main) await report(measure);

// Bugs that were found earlier, planted again one at a time. With each of them the harness must fail and name the broken promise.
//   npx node test/chaos/planted.ts          all of them
//   npx node test/chaos/planted.ts twin     one of them
// They are planted in a copy of the checkout.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

interface Edit {
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

interface Planted {
  readonly mistake: string;
  readonly edits: readonly Edit[];
  readonly seed: number;
  readonly seconds: number;
  readonly faults: string;
  /** Matches the finding that the harness must print. */
  readonly finds: RegExp;
}

export const planted: Readonly<Record<string, Planted>> = {
  constantHash: {
    mistake: 'an equal Hash overrules another Size and time of upload',
    edits: [
      {
        file: 'src/store/applications/update.ts',
        before: 'const isOtherFile = (f: string) => `(old.uploaded_at IS',
        after: 'const isOtherFile = (f: string) => `(old.source_hash IS NULL AND old.uploaded_at IS',
      },
      {
        file: 'src/store/applications/update.ts',
        before: 'AND (old.size_bytes IS DISTINCT FROM',
        after: 'AND (old.source_hash IS NULL AND old.size_bytes IS DISTINCT FROM',
      },
    ],
    seed: 1201,
    seconds: 40,
    faults: 'storageFault',
    finds: /P6: /,
  },
  recall: {
    mistake: 'infected bytes are deleted every ten minutes',
    edits: [
      {
        file: 'src/sync/files/recall.ts',
        before: 'const usuallyEveryMs = 5_000;',
        after: 'const usuallyEveryMs = 600_000;',
      },
    ],
    seed: 1204,
    seconds: 6,
    faults: 'longRun',
    finds: /P8: .* beside a long run/,
  },
  twin: {
    mistake: 'no event for others who have the same bytes as a flagged file',
    edits: [
      {
        file: 'src/store/files/mark-infected.ts',
        before: `return toEvents('application.changed', rows);`,
        after: `return toEvents('application.changed', rows.slice(0, 0));`,
      },
    ],
    seed: 1204,
    seconds: 6,
    faults: 'flagBriefly',
    finds: /P26: /,
  },
  slowDelete: {
    mistake: 'a delete that is under way neither keeps equal bytes out nor is looked at afterwards',
    edits: [
      {
        file: 'src/store/files/delete-blobs.ts',
        before: `export const isBeingDeleted = isBefore('b.delete_until', tokenMs)`,
        after: "export const isBeingDeleted = 'false'",
      },
      {
        file: 'src/sync/files/delete-objects.ts',
        before: 'of await store.deletions.confirm({ ...deletion, blobs: gone }, kept)) {',
        after: 'of (await store.deletions.confirm({ ...deletion, blobs: gone }, kept)).slice(0, 0)) {',
      },
    ],
    seed: 1204,
    seconds: 6,
    faults: 'flagBriefly',
    finds: /P6: /,
  },
  killedPut: {
    mistake: 'a flag does not reach the bytes that were announced for its file',
    edits: [
      {
        file: 'src/store/applications/update.ts',
        before: 'await replaceBytes(tx, advertiserId, inTransfer);',
        after: '',
      },
    ],
    seed: 1204,
    seconds: 6,
    faults: 'flagBriefly',
    finds: /P8: .* the process that put them died/,
  },
  passedEvent: {
    mistake: 'an event that an endpoint did not take is passed',
    edits: [
      {
        file: 'src/sync/accounts/webhooks.ts',
        before: '{ position, answer, failure: { failures, waitMs,',
        after: '{ position: event.eventId, answer, failure: { failures, waitMs,',
      },
    ],
    seed: 1204,
    seconds: 10,
    faults: 'endpoint',
    finds: /P31: /,
  },
};

/** Plants the bug alone in the copy at `root`; returns whether the harness finds it. */
function tryOne(root: string, name: string): boolean {
  const one = planted[name];
  if (!one) throw new Error(`There is no ${name} among ${Object.keys(planted).join(', ')}.`);
  const wholes = one.edits.map(({ file }) => readFileSync(join(root, file), 'utf8'));
  for (const { file, before, after } of one.edits) {
    const text = readFileSync(join(root, file), 'utf8');
    if (text.split(before).length !== 2)
      throw new Error(`${name}: ${file} does not contain this line exactly once: ${before}`);
    writeFileSync(
      join(root, file),
      text.replace(before, () => after),
    );
  }
  const { seed, seconds, faults, finds, mistake } = one;
  const args = ['test/chaos/main.ts', '--seed', String(seed), '--seconds', String(seconds), '--faults', faults];
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', timeout: 1_800_000 });
  for (const [at, { file }] of one.edits.entries()) writeFileSync(join(root, file), wholes[at] ?? '');
  const isFound = status === 1 && finds.test(stdout);
  const [said = 'no verdict'] = stdout.split('\n');
  console.log(
    `${isFound ? 'found   ' : 'MISSED  '} ${name}: ${mistake}\n  seed ${seed}, ${seconds} s, ${faults}: ${said}`,
  );
  return isFound;
}

if (import.meta.main) {
  const root = mkdtempSync(join(tmpdir(), 'intake-planted-'));
  for (const path of ['src', 'test', 'migrations', 'package.json', 'tsconfig.json', 'examples', 'docs'])
    cpSync(path, join(root, path), { recursive: true });
  symlinkSync(resolve('node_modules'), join(root, 'node_modules'));
  const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(planted);
  const areFound = names.map((name) => tryOne(root, name)).every(Boolean);
  rmSync(root, { recursive: true, force: true });
  process.exit(areFound ? 0 : 1);
}

// `intake prove`, wired: exports the evidence of an account, has it checked by a program that shares no code with Intake, explains it.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, open, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { Explanation } from '../domain/evidence/explain.ts';
import type { ExportedRow } from '../domain/evidence/export.ts';
import { toHex } from '../domain/evidence/record.ts';
import { Trouble } from '../domain/trouble.ts';
import { explainProof, toProofLines } from '../sync/read/export-evidence.ts';
import { openStoreOf } from './database.ts';
import { type Chosen, toChosen } from './resources.ts';

type ProveConfig = Config<'database' | 'source' | 'privacy'>;

/** What was written. */
export interface ProofFile {
  readonly name: string;
  readonly advertiserId: bigint;
  readonly file: string;
  readonly lines: number;
  readonly sweeps: number;
  readonly applications: number;
  /** The last hash of each sweep, as SWEEP:HASH. */
  readonly evidence: readonly string[];
}

/** Writes the evidence of an account into a file that only this user may read; null where the account is not known yet. */
export async function exportProof(
  config: ProveConfig,
  request: Chosen & { readonly file: string },
): Promise<ProofFile | null> {
  await using app = await openStoreOf(config, 'prove', request.signal);
  for (const account of toChosen(config, request.advertiser)) {
    const { advertiserId } = await app.store.advertisers.lookUp(account.name, account.advertiserId);
    if (advertiserId === null) continue;
    return await app.store.evidence.withProofs(advertiserId, async (proofs) => {
      let applications = 0;
      const rows = countRows(proofs.rows, (count) => {
        applications += count;
      });
      const lines = await writeLines(request.file, toProofLines(advertiserId, { ...proofs, rows }), request.signal);
      return {
        name: account.name,
        advertiserId,
        file: request.file,
        lines,
        sweeps: proofs.sweeps.length,
        applications,
        evidence: proofs.sweeps.flatMap(({ sweepId, records }) => {
          const last = records.at(-1);
          return last === undefined ? [] : [`${sweepId}:${toHex(last.hash)}`];
        }),
      };
    });
  }
  return null;
}

async function* countRows(
  batches: AsyncIterable<readonly ExportedRow[]>,
  onCount: (count: number) => void,
): AsyncGenerator<readonly ExportedRow[]> {
  for await (const rows of batches) {
    onCount(rows.filter(({ firstSeen }) => firstSeen !== null).length);
    yield rows;
  }
}

/** A file that cannot be read or written as it was named. */
export class FileTrouble extends Trouble {
  constructor(file: string, why: string, cause?: unknown) {
    super('local', `${file}: ${why}.`, { cause });
  }
}

/** Writes beside the file and puts it into place when it is whole: what stood there stays until then, whatever its mode was. */
async function writeLines(file: string, lines: AsyncIterable<string>, signal: AbortSignal): Promise<number> {
  const unfinished = `${file}.${process.pid}.tmp`;
  try {
    const before = await stat(file).catch(ignoreAbsent);
    // A device or a folder is not replaced by a file.
    if (before !== null && !before.isFile()) throw new FileTrouble(file, 'this is no file');
    const count = await fill(unfinished, lines, signal);
    await rename(unfinished, file);
    return count;
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw isSystemError(error) ? new FileTrouble(file, `it cannot be written (${error.code})`, error) : error;
  }
}

async function fill(file: string, lines: AsyncIterable<string>, signal: AbortSignal): Promise<number> {
  const out = createWriteStream(file, { flags: 'wx', mode: 0o600, signal });
  await once(out, 'open');
  let count = 0;
  for await (const line of lines) {
    count++;
    if (!out.write(`${line}\n`)) await once(out, 'drain', { signal });
  }
  out.end();
  await once(out, 'finish');
  return count;
}

function ignoreAbsent(error: unknown): null {
  if (isSystemError(error) && error.code === 'ENOENT') return null;
  throw error;
}

/** An error of the operating system, about a file here. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

/** Throws where there is no file to be read. */
async function requireReadable(file: string): Promise<void> {
  try {
    await using handle = await open(file, 'r');
    if (!(await handle.stat()).isFile()) throw new FileTrouble(file, 'this is no file');
  } catch (error) {
    throw isSystemError(error) ? new FileTrouble(file, `it cannot be read (${error.code})`, error) : error;
  }
}

/** What the checker says of a file. */
export interface CheckReport {
  readonly verdict: 'forged' | 'unproven' | 'assumed' | 'proven';
  /** No certificate says more than its records support. */
  readonly supported: boolean;
}

const checker = join(import.meta.dirname, '../../examples/check-proof.ts');

/**
 * Runs the checker on a file, in a process of its own: it gets the file and nothing else. `text` is its report for a person.
 */
export async function checkProofFile(
  file: string,
  noted: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly report: CheckReport; readonly text: string }> {
  await requireReadable(file);
  const args = [checker, file, ...noted.flatMap((hash) => ['--noted', hash])];
  const report = JSON.parse(await runChecker([...args, '--json'], signal)) as CheckReport;
  return { report, text: await runChecker(args, signal) };
}

async function runChecker(args: readonly string[], signal: AbortSignal): Promise<string> {
  return await new Promise((resolve, reject) => {
    const options = { signal, env: {}, maxBuffer: 256 * 1024 * 1024 };
    execFile(process.execPath, [...args], options, (error, stdout, stderr) => {
      // It ends with 1 where it refuses a proof: that is an answer.
      if (error === null || error.code === 1) resolve(stdout);
      else reject(signal.aborted ? (signal.reason as Error) : new Error(stderr.trim() || error.message));
    });
  });
}

/** A place for a file that is needed for a moment. */
export async function openProofFolder(): Promise<AsyncDisposable & { readonly file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'intake-proof-'));
  return {
    file: join(folder, 'proof.ndjson'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** What is known of each account at a moment, or now where it is null. */
export async function explainProofs(
  config: ProveConfig,
  request: Chosen & { readonly at: Date | null },
): Promise<(Explanation & { readonly name: string; readonly advertiserId: bigint | null })[]> {
  await using app = await openStoreOf(config, 'prove', request.signal);
  const explained = [];
  for (const account of toChosen(config, request.advertiser)) {
    const { advertiserId } = await app.store.advertisers.lookUp(account.name, account.advertiserId);
    // An id that no account has stands for one that is not known yet: nothing is covered.
    const explanation = await explainProof(app.store, advertiserId ?? -1n, request.at);
    explained.push({ name: account.name, advertiserId, ...explanation });
  }
  return explained;
}

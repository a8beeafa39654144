// Composes `intake prove`: exports the evidence of an account, checks it with a program that shares no code with Intake, and explains it.
import { execFile } from 'node:child_process';
import { createWriteStream, type Stats, statSync } from 'node:fs';
import { mkdtemp, open, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Config } from '../config.ts';
import { explain } from '../domain/evidence/explain.ts';
import { FileTrouble } from '../domain/trouble.ts';
import { openStoreOf } from './database.ts';
import { type Chosen, toChosen } from './resources.ts';

type ProveConfig = Config<'database' | 'source' | 'privacy'>;

/** Writes the evidence of an account into a file that only this user may read; null if the account is not known yet. */
export async function exportProof(config: ProveConfig, request: Chosen & { readonly file: string }) {
  await using app = await openStoreOf(config, 'prove', request.signal);
  for (const account of toChosen(config, request.advertiser)) {
    const { advertiserId } = await app.store.advertisers.lookUp(account.name, account.advertiserId);
    if (advertiserId === null) continue;
    return await app.store.evidence.withProofs(advertiserId, async (proofs) => ({
      name: account.name,
      advertiserId,
      file: request.file,
      lines: await writeLines(request.file, proofs.lines, request.signal),
      sweeps: proofs.ends.length,
      applications: proofs.applications,
      // The last hash of each sweep.
      evidence: proofs.ends.map(({ sweepId, hash }) => `${sweepId}:${hash}`),
    }));
  }
  return null;
}

/** Writes a temporary file and renames it when it is complete. Until then an existing file stays; its mode is not kept. */
async function writeLines(file: string, lines: AsyncIterable<string>, signal: AbortSignal): Promise<number> {
  const unfinished = `${file}.${process.pid}.tmp`;
  try {
    // A device or a folder must not be replaced.
    requireFile(file, statSync(file, { throwIfNoEntry: false }));
    let count = 0;
    const text = async function* () {
      for await (const line of lines) {
        count++;
        yield `${line}\n`;
      }
    };
    await pipeline(text, createWriteStream(unfinished, { flags: 'wx', mode: 0o600 }), { signal });
    await rename(unfinished, file);
    return count;
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw toFileTrouble(error, file, 'written');
  }
}

function requireFile(file: string, stats: Stats | undefined): void {
  if (stats?.isFile() === false) throw new FileTrouble(file, 'not a regular file');
}

function toFileTrouble(error: unknown, file: string, what: string): unknown {
  if (!(error instanceof Error && 'syscall' in error && 'code' in error)) return error;
  return new FileTrouble(file, `it cannot be ${what} (${error.code})`, error);
}

/** Why a proof is worth less than it says. */
interface Finding {
  readonly worth: string;
  readonly reason: string;
}

/** The checker's report on a file, as far as people are shown it. */
export interface CheckReport {
  readonly verdict: 'forged' | 'unproven' | 'assumed' | 'proven';
  /** True if no certificate claims more than its lines support. */
  readonly supported: boolean;
  readonly sweeps: readonly string[];
  readonly certificates: readonly {
    readonly ids: string;
    readonly completeThrough: string;
    readonly says: string;
    readonly supports: string;
    readonly findings: readonly Finding[];
  }[];
  readonly findings: readonly Finding[];
}

const checker = join(import.meta.dirname, '../../examples/check-proof.ts');

/** Runs the checker on a file in a separate process, which gets the file and no environment. */
export async function checkProofFile(
  file: string,
  noted: readonly string[],
  signal: AbortSignal,
): Promise<CheckReport> {
  try {
    await using handle = await open(file, 'r');
    requireFile(file, await handle.stat());
  } catch (error) {
    throw toFileTrouble(error, file, 'read');
  }
  const args = [checker, file, ...noted.flatMap((hash) => ['--noted', hash])];
  return await new Promise((resolve, reject) => {
    execFile(process.execPath, args, { signal, env: {}, maxBuffer: 256 * 1024 * 1024 }, (error, stdout, stderr) => {
      // Exit code 1 means that the checker rejects the proof, which is a valid result.
      if (error === null || error.code === 1) resolve(JSON.parse(stdout) as CheckReport);
      else reject(signal.aborted ? (signal.reason as Error) : new Error(stderr.trim() || error.message));
    });
  });
}

/** A temporary folder for one proof file. Disposing it deletes the folder. */
export async function openProofFolder(): Promise<AsyncDisposable & { readonly file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'intake-proof-'));
  return {
    file: join(folder, 'proof.ndjson'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** What the certificates of each account state about a moment, or about now if `at` is null. */
export async function explainProofs(config: ProveConfig, request: Chosen & { readonly at: Date | null }) {
  await using app = await openStoreOf(config, 'prove', request.signal);
  const explained = [];
  for (const account of toChosen(config, request.advertiser)) {
    const { advertiserId } = await app.store.advertisers.lookUp(account.name, account.advertiserId);
    // -1, which no account has, stands for an id that is not known yet: nothing is covered.
    const proof = await app.store.evidence.loadCurrent(advertiserId ?? -1n);
    explained.push({ name: account.name, advertiserId, ...explain(request.at, proof) });
  }
  return explained;
}

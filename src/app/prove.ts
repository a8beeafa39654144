// `intake prove`, wired: exports the evidence of an account, has it checked by a program that shares no code with Intake, explains it.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { Explanation } from '../domain/evidence/explain.ts';
import { toHex } from '../domain/evidence/record.ts';
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
    const proofs = await app.store.evidence.loadProofs(advertiserId);
    const lines = await writeLines(request.file, toProofLines(advertiserId, proofs), request.signal);
    return {
      name: account.name,
      advertiserId,
      file: request.file,
      lines,
      sweeps: proofs.sweeps.length,
      applications: proofs.rows.length,
      evidence: proofs.sweeps.flatMap(({ sweepId, records }) => {
        const last = records.at(-1);
        return last === undefined ? [] : [`${sweepId}:${toHex(last.hash)}`];
      }),
    };
  }
  return null;
}

async function writeLines(file: string, lines: Iterable<string>, signal: AbortSignal): Promise<number> {
  const out = createWriteStream(file, { mode: 0o600, signal });
  await once(out, 'open');
  let count = 0;
  for (const line of lines) {
    count++;
    if (!out.write(`${line}\n`)) await once(out, 'drain', { signal });
  }
  out.end();
  await once(out, 'finish');
  return count;
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

/** What is known of each account at a moment. */
export async function explainProofs(
  config: ProveConfig,
  request: Chosen & { readonly at: Date },
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

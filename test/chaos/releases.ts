// The releases whose processes a plan starts: this one alone, or with the one before it (--before). The earlier one creates the schema. After
// that each process is of one release or the other, by the seed, so that the plan goes forward and back several times.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { exitCodes } from '../../src/cli/failure.ts';
import type { Random } from '../support/suite/random.ts';
import type { Cluster } from './cluster.ts';
import type { Ended } from './fleet.ts';

export interface Releases {
  /** The checkout that creates the schema. */
  readonly first: string;
  /** The checkout whose code the next process runs. */
  toCheckout(args: readonly string[]): string;
  /** From now on, processes of both releases are started. */
  mix(): void;
  /** From now on, only this release is started. Its `intake migrate` must succeed. Returns the broken promises. */
  complete(run: Run): Promise<string[]>;
  /** The earlier checker accepts the evidence that both releases have written, as this one exports it. */
  checkProofs(stage: ProofStage, folder: string): Promise<string[]>;
  /** After the last process has ended, the upgrade can be finished. */
  finish(run: Run): Promise<string[]>;
}

/** The parts of the stage that it uses. */
interface ProofStage {
  readonly cluster: Pick<Cluster, 'query'>;
  readonly accounts: readonly object[];
  readonly runCommand: Run;
}

type Run = (args: readonly string[]) => Promise<Pick<Ended, 'code'>>;

/** An earlier release refuses settings and options that it does not know. An operator gives them to the later one only. */
export function knowsWebhooks(checkout: string): boolean {
  return existsSync(join(checkout, 'src/webhooks'));
}

/**
 * Faults have moved these times by whole hours. No checker accepts rows that are younger than the answers that showed them, or a certificate
 * of another time than its evidence. A plan is shorter than an hour, so each time belongs into the last one.
 */
const originalTimesSql = ['applications.first_seen_at', 'coverage.as_of'].map((name) => {
  const [table, time] = name.split('.');
  return `UPDATE intake.${table} SET ${time} = ${time} - ceil(extract(epoch FROM ${time} - now()) / 3600) * interval '1 hour'`;
});

export function createReleases(before: string | null, random: Random, count: (what: string) => void): Releases {
  const own = resolve('.');
  const first = before ?? own;
  let stage: 'first' | 'mixed' | 'own' = 'first';

  const draw = (args: readonly string[]) => {
    if (args.includes('--webhook') && !knowsWebhooks(first)) return own;
    // A checkout before 1.0.0 does not know the owner's name as 1.0.0 writes it into the store.
    if (args.includes('adopt-store') && stage === 'mixed') return first;
    if (stage === 'mixed') return random.chance(0.5) ? own : first;
    return stage === 'own' ? own : first;
  };

  return {
    first,
    toCheckout(args) {
      const checkout = draw(args);
      if (before !== null) count(checkout === own ? 'starts of this release' : 'starts of the release before');
      return checkout;
    },
    mix() {
      stage = 'mixed';
    },
    async complete(run) {
      stage = 'own';
      return before === null ? [] : await requireDone(run, ['migrate']);
    },
    async checkProofs({ cluster, accounts, runCommand: run }, folder) {
      if (before === null) return [];
      const broken: string[] = [];
      for (const sql of originalTimesSql) await cluster.query(sql);
      for (let nth = 1; nth <= accounts.length; nth++) {
        const file = join(folder, `proof-${nth}.ndjson`);
        broken.push(...(await requireDone(run, ['prove', '--export', file, '--advertiser', `account-${nth}`])));
        if (broken.length === 0 && !(await isAccepted(before, file)))
          broken.push(`P23: the earlier checker refuses ${file}`);
      }
      return broken;
    },
    finish: async (run) => (before === null ? [] : await requireDone(run, ['migrate', '--finish'])),
  };
}

async function requireDone(run: Run, args: readonly string[]): Promise<string[]> {
  const { code } = await run(args);
  return code === exitCodes.done ? [] : [`P25: intake ${args.join(' ')} ended with code ${code}`];
}

/** Whether the checker of a checkout accepts an exported proof. */
function isAccepted(checkout: string, file: string): Promise<boolean> {
  return new Promise((done) => {
    execFile(process.execPath, [join(checkout, 'examples/check-proof.ts'), file], (error) => done(error === null));
  });
}

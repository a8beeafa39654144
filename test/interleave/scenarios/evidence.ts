// The evidence of proofs: audits append to the chain of an ended sweep while other sweeps end, maintenance prunes old evidence, people are
// erased, and proofs are loaded.
import assert from 'node:assert/strict';
import type { CurrentProof, ExportedCertificate, LineBody } from '../../../src/domain/evidence/record.ts';
import type { Lease } from '../../../src/store/accounts/leases.ts';
import { commitPage } from '../../../src/store/applications/commit-page.ts';
import { diffPage } from '../../../src/store/applications/diff-page.ts';
import type { Database } from '../../../src/store/postgres/database.ts';
import { loadAuditedProof, loadCurrentProof, withProofs } from '../../../src/store/sweeps/evidence.ts';
import { pruneSweeps } from '../../../src/store/sweeps/sweeps.ts';
import { aPage } from '../../support/applications.ts';
import { chain, type Line, sha256 } from '../../support/chain.ts';
import type { Scenarios, Stage } from '../stage.ts';
import { endSweep, openLane, openLanes, privacyKey } from './lanes.ts';
import { checkErased, eraseFirst, openPerson } from './privacy.ts';

/** The proof of a sweep of one question, and an audit of it. */
const proof: readonly LineBody[] = [{ type: 'sweep', format: 2 }, { type: 'answer' }, { type: 'end' }];
const audit: LineBody = { type: 'audit', from: '5', to: '5', bytes: 2 };

interface Account {
  readonly advertiserId: bigint;
  readonly lease: Lease;
}

/** Appends an audit to the proof that covers this id, and retries while the store reports it as outdated. */
async function appendAudit(db: Database, { advertiserId, lease }: Account, id: bigint): Promise<void> {
  for (let summary: unknown = 'outdated'; summary === 'outdated'; ) {
    const page = aPage(lease, [], { advertiserId });
    const found = await loadAuditedProof(db, advertiserId, id);
    if (found === null) return;
    const audited = { sweepId: found.sweepId, body: audit };
    summary = await commitPage(db, privacyKey, page, await diffPage(db, privacyKey, page), { audited });
  }
}

/** Checks that the lines of each proof form a chain without gaps, and that coverage names the last line. */
async function checkChains(stage: Stage, advertiserId: bigint): Promise<void> {
  const rows = await stage.query<{ sweep_id: string; n: number; line: string }>(
    `SELECT sweep_id, n, line FROM intake.evidence WHERE advertiser_id = $1 ORDER BY sweep_id, n`,
    [advertiserId],
  );
  const last = new Map<string, Line>();
  for (const row of rows) {
    const before = last.get(row.sweep_id) ?? null;
    const [next] = chain(before, [proof[row.n] ?? audit]);
    if (next === undefined || row.n !== next.n)
      throw new Error(`P10: line ${next?.n} of sweep ${row.sweep_id} is not there.`);
    assert.equal(row.line, next.text, `P10: line ${row.n} of sweep ${row.sweep_id} follows on another one`);
    last.set(row.sweep_id, next);
  }
  const covered = await stage.query<{ sweep_id: string; evidence_hash: Buffer }>(
    `SELECT sweep_id, evidence_hash FROM intake.coverage WHERE advertiser_id = $1 AND evidence_hash IS NOT NULL`,
    [advertiserId],
  );
  for (const { sweep_id, evidence_hash } of covered) {
    const end = last.get(sweep_id);
    if (evidence_hash.toString('hex') !== end?.hash)
      throw new Error(`P10: coverage does not name the last line of sweep ${sweep_id}.`);
  }
}

/** Checks that the loaded data is one snapshot: each certificate names the last loaded line of its proof. */
function checkLoaded(
  certificates: readonly Pick<ExportedCertificate, 'sweepId' | 'last'>[],
  findLast: (sweepId: bigint) => string | undefined,
): void {
  for (const { sweepId, last } of certificates) {
    const found = findLast(sweepId);
    if (!last || found !== last)
      throw new Error(`P23: a certificate does not name the last line of sweep ${sweepId} that was loaded with it.`);
  }
}

export const evidenceScenarios = {
  /** An audit of a proof while a sweep over some of the same ids ends. */
  'audit-end': (stage) => ({
    promise: 'the chain of a proof is whole, and coverage names its last line (P10)',
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const { live, backfill } = await openLanes(stage, name);
      await endSweep(stage.direct, live, { advertiserId, sweepId: 1n, low: 1n, high: 20n, evidence: proof });
      const later = { advertiserId, sweepId: 2n, low: 11n, high: 30n, evidence: proof };
      return {
        programs: {
          audit: (actor) => appendAudit(stage.database(actor.name), { advertiserId, lease: live }, 5n),
          sweep: (actor) => endSweep(stage.database(actor.name), backfill, later),
        },
        mortal: ['sweep'],
        check: () => checkChains(stage, advertiserId),
      };
    },
  }),

  /** An audit of a proof that two later sweeps replace, while maintenance prunes old sweeps. */
  'audit-pruned': (stage) => ({
    promise: 'the chain of a proof is whole or gone, coverage names its last line, and nobody fails (P10)',
    async open() {
      const { advertiserId, name } = await stage.openAdvertiser();
      const { live, backfill } = await openLanes(stage, name);
      const startedAt = new Date(Date.now() - 100 * 86_400_000);
      const sweep = (sweepId: bigint) => ({ advertiserId, sweepId, low: 1n, high: 20n, startedAt, evidence: proof });
      await endSweep(stage.direct, live, sweep(1n));
      await endSweep(stage.direct, live, sweep(2n));
      return {
        programs: {
          audit: (actor) => appendAudit(stage.database(actor.name), { advertiserId, lease: live }, 5n),
          sweeps: async (actor) => {
            for (const id of [3n, 4n]) await endSweep(stage.database(actor.name), backfill, sweep(id));
          },
          prune: (actor) => pruneSweeps(stage.database(actor.name)),
        },
        mortal: ['sweeps'],
        commitsApart: true,
        check: () => checkChains(stage, advertiserId),
      };
    },
  }),

  /** A proof is exported while an audit appends to it and a person in it is erased. */
  'proof-export': (stage) => ({
    promise: 'an exported proof is of one moment, the person is erased, and the chains are whole (P10, P17, P23)',
    async open() {
      const { advertiserId, lease } = await openPerson(stage);
      await endSweep(stage.direct, lease, { advertiserId, sweepId: 2n, low: 1n, high: 20n, evidence: proof });
      const loaded: string[][] = [];
      return {
        programs: {
          export: (actor) =>
            withProofs(stage.database(actor.name), advertiserId, async ({ lines }) => {
              loaded.push(await Array.fromAsync(lines));
            }),
          audit: (actor) => appendAudit(stage.database(actor.name), { advertiserId, lease }, 5n),
          erase: eraseFirst(stage, advertiserId),
        },
        mortal: ['audit'],
        async check() {
          for (const [first = '', ...lines] of loaded) {
            const certificates: { sweep: string; last: string }[] = JSON.parse(first).certificates;
            const last = lines.findLast((text) => text.startsWith('{"n":')) ?? '';
            const named = certificates.map((one) => ({ sweepId: BigInt(one.sweep), last: one.last }));
            checkLoaded(named, () => sha256(last));
          }
          await checkErased(stage, advertiserId);
          await checkChains(stage, advertiserId);
        },
      };
    },
  }),

  /** The web page of a proof is loaded while an audit appends to the proof. */
  'proof-page': (stage) => ({
    promise: 'the page shows a proof of one moment: its lines and certificates agree (P10)',
    async open() {
      const { advertiserId, lease } = await openLane(stage);
      await endSweep(stage.direct, lease, { advertiserId, sweepId: 1n, low: 1n, high: 20n, evidence: proof });
      const loaded: CurrentProof[] = [];
      return {
        programs: {
          page: async (actor) => {
            loaded.push(await loadCurrentProof(stage.database(actor.name), advertiserId));
          },
          audit: (actor) => appendAudit(stage.database(actor.name), { advertiserId, lease }, 5n),
        },
        mortal: ['audit'],
        async check() {
          assert.equal(loaded.length, 1, 'the page was loaded');
          for (const { certificates, asked } of loaded) {
            checkLoaded(certificates, (sweepId) => {
              const audits = Array.from({ length: asked.get(sweepId)?.audits ?? 0 }, () => audit);
              return chain(null, [...proof, ...audits]).at(-1)?.hash;
            });
          }
        },
      };
    },
  }),
} satisfies Scenarios;

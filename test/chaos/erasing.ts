// People who are erased amid faults, by the command that a person would use, and what must be true of them afterwards: nothing of them
// is left in any table or in the store, and no sweep brings them back although the source shows them still.

import { setTimeout as sleep } from 'node:timers/promises';
import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import type { TruthRow } from '../../src/dev/sandbox/account/truth.ts';
import type { CrashPoint } from '../../src/domain/crash-point.ts';
import type { Random } from '../support/random.ts';
import type { Cluster } from './cluster.ts';
import type { Ended } from './fleet.ts';
import { withSlack } from './settings.ts';

/** What erasing needs of the stage. */
interface Around {
  readonly cluster: Pick<Cluster, 'query'>;
  readonly accounts: readonly BoardAdvertiser[];
  runCommand(args: readonly string[], point?: CrashPoint | null): Promise<Ended>;
  count(what: string): void;
}

/** One request to erase. */
interface Request {
  readonly args: readonly string[];
  /** Sought by this address; null by the application's id. */
  readonly email: string | null;
  /** Named before it was asked for: each of these must be gone. */
  readonly ids: ReadonlySet<bigint>;
}

export interface Erasing {
  /** Erases somebody whose files are stored, shown first by a dry run; the process dies at the moment given. False: nobody is there. */
  eraseSomebody(random: Random, point: CrashPoint | null): Promise<boolean>;
  /** Every erasure that was asked for comes to its receipt. */
  finish(): Promise<void>;
  /** Ids that were asked to be erased. */
  ids(): Set<bigint>;
  /** What is still there of the erased, or came back; who was erased and should not be. */
  findBroken(): Promise<string[]>;
}

/** Erases at this stage. */
export function createErasing(stage: Around): Erasing {
  const { cluster, accounts, runCommand, count } = stage;
  const requests: Request[] = [];
  const ids = () => new Set(requests.flatMap((request) => [...request.ids]));

  /** Erasures without a receipt. A worker looks every two minutes for those that failed and were not asked for again. */
  const untilReceipts = async () => {
    const deadlineAt = performance.now() + withSlack(150_000);
    for (;;) {
      const open = await cluster.query(`SELECT 1 FROM intake.erasure_jobs WHERE closed_at IS NULL`);
      if (open.length === 0 || performance.now() > deadlineAt) return open;
      await sleep(500);
    }
  };

  return {
    ids,
    async eraseSomebody(random, point) {
      const somebody = await findSomebody(stage, random);
      if (somebody === null) return false;
      const { id, email } = somebody;
      const byAddress = random.chance(0.4);
      const args = ['erase', ...(byAddress ? ['--email', email] : ['--application', id])];
      const { code, output } = await runCommand([...args, '--dry-run', '--json']);
      const shown = code === 0 ? toShownIds(output) : [];
      requests.push({ args, email: byAddress ? email : null, ids: new Set([BigInt(id), ...shown]) });
      count('erasures');
      await untilDone(() => runCommand([...args, '--yes'], point));
      return true;
    },
    async finish() {
      for (const { args } of requests) await untilDone(() => runCommand([...args, '--yes']));
    },
    async findBroken() {
      const rows = await cluster.query<{ id: string }>(
        `SELECT application_id AS id FROM intake.applications WHERE erased_at IS NOT NULL`,
      );
      const erased = new Set(rows.map((row) => BigInt(row.id)));
      const truth = accounts.flatMap((account) => [...account.truth()]);
      const addresses = new Set(requests.map(({ email }) => email?.toLowerCase()));
      const asked = ids();
      return [
        ...[...asked].filter((id) => !erased.has(id)).map((id) => `P17: application ${id} was erased and is there`),
        ...truth
          .filter((one) => erased.has(one.id) && !asked.has(one.id) && !addresses.has(one.email.toLowerCase()))
          .map(({ id }) => `P1: application ${id} is erased, and nobody asked for it`),
        ...(await cluster.query<{ broken: string }>(leftSql)).map(({ broken }) => broken),
        ...(await findWords(stage, truth, erased)),
        ...(await untilReceipts()).map(() => 'P17: an erasure has no receipt'),
      ].slice(0, 5);
    },
  };
}

/** Somebody with a stored file; waits a while for one, since the first files take theirs. */
async function findSomebody({ cluster }: Pick<Around, 'cluster'>, random: Random) {
  for (let tries = 1; tries < 30; tries++) {
    const held = await cluster
      .query<{ id: string; email: string }>(
        `SELECT application_id AS id, email FROM intake.applications a WHERE erased_at IS NULL AND email <> ''
           AND EXISTS (SELECT 1 FROM intake.attachments f WHERE f.advertiser_id = a.advertiser_id
             AND f.application_id = a.application_id AND f.state = 'stored') ORDER BY application_id`,
      )
      .catch(() => []);
    if (held.length > 0) return random.pick(held);
    await sleep(500);
  }
  return null;
}

/** Amid faults a command may have to be given again. One that died at its moment has done what it was for. */
export async function untilDone(run: () => Promise<Ended>): Promise<Ended> {
  for (let tries = 1; ; tries++) {
    const ended = await run();
    if (ended.fired || ended.code === 0 || ended.code === 3 || tries === 3) return ended;
  }
}

function toShownIds(output: string): bigint[] {
  const { advertisers } = JSON.parse(output) as { advertisers: { applicationIds: (string | number)[] }[] };
  return advertisers.flatMap((one) => one.applicationIds.map(BigInt));
}

const childTables = [
  'attachments',
  'attachment_versions',
  'downloads',
  'primary_job_seeking_info',
  'screens',
  'screen_questions',
  'screen_answers',
];

/** Of an erased application the id and the time of the erasure stay, and what a row must have. */
const leftSql = `
  SELECT format('P17: application %s is erased, and its column %s says something', a.application_id, c.key) AS broken
  FROM intake.applications a, jsonb_each(jsonb_strip_nulls(to_jsonb(a))) c
  WHERE a.erased_at IS NOT NULL AND (c.key <> 'content_hash' OR a.content_hash <> '')
    AND c.key NOT IN ('advertiser_id', 'application_id', 'erased_at', 'observed_seq', 'first_seen_at', 'changed_at')
  ${childTables
    .map(
      (table) => `UNION ALL SELECT format('P17: application %s is erased, and has a row in ${table}', c.application_id)
  FROM intake.${table} c JOIN intake.applications a USING (advertiser_id, application_id) WHERE a.erased_at IS NOT NULL`,
    )
    .join('\n  ')}
  LIMIT 5`;

/** Addresses and phones that only erased people have, in any column of any table. */
async function findWords(
  { cluster }: Pick<Around, 'cluster'>,
  truth: readonly TruthRow[],
  erased: ReadonlySet<bigint>,
): Promise<string[]> {
  const toWords = ({ email, phone }: TruthRow) => [email, phone].filter((word) => word.length > 5);
  const kept = new Set(truth.filter(({ id }) => !erased.has(id)).flatMap(toWords));
  const words = truth.filter(({ id }) => erased.has(id)).flatMap(toWords);
  const gone = words.filter((word) => !kept.has(word));
  if (gone.length === 0) return [];
  const tables = await cluster.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'intake'`,
  );
  const sql = tables.map(
    ({ name }) => `SELECT 'P17: what only erased people had is in ${name}' AS broken WHERE EXISTS (
      SELECT 1 FROM ${name} t, unnest($1::text[]) AS word WHERE strpos(lower(t::text), lower(word)) > 0)`,
  );
  return (await cluster.query<{ broken: string }>(sql.join(' UNION ALL '), [gone])).map(({ broken }) => broken);
}

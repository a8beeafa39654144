// Erases people during faults with the operator's own command, and checks the result: nothing of them is left in any table or in the
// store, and no sweep brings them back although the source still lists them.

import { setTimeout as sleep } from 'node:timers/promises';
import type { BoardAdvertiser } from '../../src/dev/sandbox/account/account.ts';
import type { TruthRow } from '../../src/dev/sandbox/account/truth.ts';
import type { CrashPoint } from '../../src/domain/crash-point.ts';
import type { Random } from '../support/suite/random.ts';
import type { Cluster } from './cluster.ts';
import type { Ended } from './fleet.ts';
import { withSlack } from './settings.ts';

/** The part of the stage that erasing needs. */
interface Around {
  readonly cluster: Pick<Cluster, 'query'>;
  readonly accounts: readonly BoardAdvertiser[];
  runCommand(args: readonly string[], point?: CrashPoint | null): Promise<Ended>;
  count(what: string): void;
}

/** One erasure request. */
interface Request {
  readonly args: readonly string[];
  /** The address to erase; null if the request names an application id. */
  readonly email: string | null;
  /** The applications that the dry run listed, and the chosen one. Each must be erased. */
  readonly ids: ReadonlySet<bigint>;
}

export interface Erasing {
  /** Erases a person who has a stored file, after a dry run; the process dies at `point`. False: there is no such person. */
  eraseSomebody(random: Random, point: CrashPoint | null): Promise<boolean>;
  /** Runs every requested erasure again, so that each completes. */
  finish(): Promise<void>;
  /** Ids whose erasure was requested. */
  ids(): Set<bigint>;
  /** Finds data of erased people that remained or came back, and people who were erased without a request. */
  findBroken(): Promise<string[]>;
}

export function createErasing(stage: Around): Erasing {
  const { cluster, accounts, runCommand, count } = stage;
  const requests: Request[] = [];
  const ids = () => new Set(requests.flatMap((request) => [...request.ids]));

  /** Waits until no erasure is open; returns the open ones at the deadline. A worker finishes interrupted erasures every two minutes. */
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
        ...[...asked].filter((id) => !erased.has(id)).map((id) => `P17: application ${id} was to be erased and is not`),
        ...truth
          .filter((one) => erased.has(one.id) && !asked.has(one.id) && !addresses.has(one.email.toLowerCase()))
          .map(({ id }) => `P1: application ${id} is erased without a request`),
        ...(await cluster.query<{ broken: string }>(leftSql)).map(({ broken }) => broken),
        ...(await findWords(stage, truth, erased)),
        ...(await untilReceipts()).map(() => 'P17: an erasure has no receipt'),
      ].slice(0, 5);
    },
  };
}

/** Finds a person with a stored file. Waits up to 15 s for one, because the first downloads take time. */
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

/** Runs a command up to three times, because faults may make it fail. A command that died at its crash point is not repeated. */
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

/** An erased application keeps its id, the time of the erasure, and the columns that are NOT NULL. */
const leftSql = `
  SELECT format('P17: application %s is erased, and its column %s is not empty', a.application_id, c.key) AS broken
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

/** Searches all columns of all tables for e-mail addresses and phone numbers that only erased people have. */
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
  return (await findTables(cluster, gone)).map((name) => `P17: an address or phone of an erased person is in ${name}`);
}

/** The tables in which one of the words stands, in whatever column. */
export async function findTables({ query }: Pick<Cluster, 'query'>, words: readonly string[]): Promise<string[]> {
  const tables = await query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'intake'`,
  );
  const sql = tables.map(
    ({ name }) => `SELECT '${name}' AS name WHERE EXISTS (
      SELECT 1 FROM ${name} t, unnest($1::text[]) AS word WHERE strpos(lower(t::text), lower(word)) > 0)`,
  );
  return (await query<{ name: string }>(sql.join(' UNION ALL '), [words])).map(({ name }) => name);
}

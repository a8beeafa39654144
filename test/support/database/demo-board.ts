// The demo's board at a fixed moment, read completely into a database: list, screens and the states of files. Tests check the analysts'
// queries against `truth`, the sandbox's own list, and the rules below. Nothing here reads a view.

import type { TruthRow } from '../../../src/dev/sandbox/account/truth.ts';
import { openSandbox } from '../../../src/dev/sandbox/http/server.ts';
import { screenParserVersion } from '../../../src/source/parse/screen.ts';
import { replaceScreens } from '../../../src/store/files/complete-download.ts';
import { openDatabase } from '../../../src/store/postgres/database.ts';
import { syncBoard } from '../processes/syncing.ts';
import type { TestDatabase } from './test-database.ts';

/** When the board was read: 2 November 2026, 10:00 Australian Eastern Standard Time. */
export const readAt = Date.UTC(2026, 10, 2);
/** When the account was connected: applications submitted earlier are history. */
export const connectedAt = Date.UTC(2026, 9, 19);

export interface DemoTruth {
  /** Every application as the sandbox knows it. */
  readonly truth: readonly TruthRow[];
  /** Number of requests to the sandbox. */
  readonly requests: number;
}

/** Reads the demo's applications into a database (over `asUrl` to use another login) and returns the sandbox's truth about them. */
export async function fillFromDemoBoard(
  database: TestDatabase,
  { applications = 2_000, asUrl = database.url } = {},
): Promise<DemoTruth> {
  await using board = await openSandbox({ seed: 1, applications, now: () => readAt });
  await syncBoard(database, board, { env: { DATABASE_URL: asUrl } });
  const truth = [...board.truth()];
  await writeScreens(database, board.advertiserId, truth);
  await writeFates(database, board.advertiserId, truth);
  await database.query(
    `UPDATE intake.applications a SET first_seen_at = t.seen, ready_at = t.ready
     FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS t (id, seen, ready) WHERE a.application_id = t.id`,
    [
      truth.map(({ id }) => id),
      truth.map((row) => new Date(toSeenAt(row))),
      truth.map((row) => (isWaiting(row) ? null : new Date(toReadyAt(row)))),
    ],
  );
  const was = [new Date(readAt)];
  await database.query(`UPDATE intake.cursors SET as_of = $1::timestamptz`, was);
  await database.query(
    `UPDATE intake.coverage SET as_of = $1::timestamptz, complete_through = $1::timestamptz - interval '15 minutes'`,
    was,
  );
  await database.query(`UPDATE intake.advertisers SET created_at = $1`, [new Date(connectedAt)]);
  await database.query(`ANALYZE`);
  return { truth, requests: board.requests().length };
}

/** The state of a file; every state occurs. Of 50 files (screens aside) one is missing, one given up, one pending after 3 attempts. */
export function toFate(row: TruthRow, attachment: TruthRow['attachments'][number]): string {
  if (attachment.hasVirus === true) return 'infected';
  if (attachment.kind === 'screen') return 'stored';
  return ['missing', 'given_up', 'pending'][Number(row.id % 50n)] ?? 'stored';
}

/** Every application is stored one to ten minutes after it was submitted. */
export function toSeenAt(row: TruthRow): number {
  return row.submittedAt + 60_000 + Number(row.id % 541n) * 1_000;
}

/** An application is ready half a minute after it was stored. */
function toReadyAt(row: TruthRow): number {
  return toSeenAt(row) + 30_000;
}

/** True while a file is pending. */
export function isWaiting(row: TruthRow): boolean {
  return row.attachments.some((attachment) => toFate(row, attachment) === 'pending');
}

async function writeScreens(database: TestDatabase, advertiserId: bigint, truth: readonly TruthRow[]): Promise<void> {
  await using db = openDatabase({ url: database.url, role: 'test', connections: 1 });
  const replacements = truth
    .filter(({ screens }) => screens.length > 0)
    .map(({ id, screens }) => {
      const parsed = {
        parserVersion: screenParserVersion,
        screens: screens.map((screen) => ({
          id: screen.screenId,
          name: screen.name,
          outcome: screen.outcome,
          notes: [],
          questions: screen.questions.map((question) => ({
            id: question.questionId,
            type: question.type,
            text: question.text,
            answers: question.answers.map((answer) => ({ ...answer, id: answer.answerId })),
          })),
        })),
      };
      return { applicationId: id, sha256: '00', parsed };
    });
  await db.transaction((tx) => replaceScreens(tx, advertiserId, replacements));
}

async function writeFates(database: TestDatabase, advertiserId: bigint, truth: readonly TruthRow[]): Promise<void> {
  const files = truth.flatMap((row) =>
    row.attachments.map((attachment) => ({ ...attachment, id: row.id, state: toFate(row, attachment) })),
  );
  const reasons: Record<string, string> = {
    missing: 'The source does not have it (404).',
    given_up: 'The source sent an error page instead of the file. Tried 8 times.',
  };
  await database.query(
    `WITH fate AS (
       SELECT * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
         AS f (id, kind, state, reason, sha256, content_type)
     ), completed AS (
       UPDATE intake.attachments a SET state = f.state, reason = f.reason, sha256 = f.sha256, content_type = f.content_type,
         stored_at = CASE WHEN f.state = 'stored' THEN now() END
       FROM fate f WHERE a.advertiser_id = $1 AND a.application_id = f.id AND a.kind = f.kind
     ), tried AS (
       UPDATE intake.downloads d SET attempts = 3, trouble = 'The source failed (503).'
       FROM fate f WHERE d.advertiser_id = $1 AND d.application_id = f.id AND d.kind = f.kind AND f.state = 'pending'
     )
     DELETE FROM intake.downloads d USING fate f
     WHERE d.advertiser_id = $1 AND d.application_id = f.id AND d.kind = f.kind AND f.state <> 'pending'`,
    [
      advertiserId,
      files.map(({ id }) => id),
      files.map(({ kind }) => kind),
      files.map(({ state }) => state),
      files.map(({ state }) => reasons[state] ?? null),
      files.map(({ state, sha256 }) => (state === 'stored' ? (sha256 ?? '00') : null)),
      files.map(({ contentType }) => contentType),
    ],
  );
}

// Compares attachments, blobs, bytes and screens with the sandbox's truth.
import { createHash } from 'node:crypto';
import { toBlobKey } from '../../../src/domain/blob.ts';
import type { SmallIntake } from '../small-intake.ts';

/** Describes the first few differences; empty when every clean file is stored once with its true bytes and every answer has a row. */
export async function findFileDifferences(
  { board, database, blobs, files, keys }: SmallIntake,
  format: 'json' | 'xml',
  /** The sha256 of bytes that are flagged as infected on another file, or were before that file was replaced. */
  flagged: ReadonlySet<string> = new Set(),
): Promise<string[]> {
  const differences: string[] = [];
  const stored = new Map((await files()).map((row) => [`${row.application_id}/${row.kind}`, row]));
  const screens = await loadScreens(database);
  const wanted = new Set<string>();
  for (const truth of board.truth()) {
    for (const file of truth.attachments) {
      const name = `${truth.id}/${file.kind}`;
      const row = stored.get(name);
      stored.delete(name);
      const bytes = file.sha256 ?? file.screenSha256?.[format] ?? null;
      const isInfected = file.hasVirus === true || (bytes !== null && flagged.has(bytes));
      const sha256 = isInfected ? null : bytes;
      const state = isInfected ? 'infected' : 'stored';
      // A file that was flagged after its download keeps its sha256, so that the same bytes are detected again. The check of the store's
      // keys below proves that the bytes are deleted.
      if (row?.state !== state || (state === 'stored' && row.sha256 !== sha256)) {
        differences.push(`${name}: ${row?.state} ${row?.reason ?? ''} ${row?.sha256}, truth ${state} ${sha256}`);
      }
      if (sha256 !== null) wanted.add(toBlobKey(board.advertiserId, sha256));
    }
    const [have, want] = [JSON.stringify(screens.get(String(truth.id)) ?? []), JSON.stringify(truth.screens)];
    const isShown = truth.attachments.some((one) => one.kind === 'screen' && one.hasVirus !== true);
    if (isShown && have !== want) differences.push(`${truth.id}: screens ${have}, truth ${want}`);
    if (differences.length > 5) return differences;
  }
  for (const name of [...stored.keys()].slice(0, 5))
    differences.push(`${name} has a row, but the source does not show it`);
  for (const key of await keys()) {
    if (!wanted.delete(key)) differences.push(`${key} is in the store, but no attachment needs it`);
    const hash = createHash('sha256');
    for await (const chunk of blobs.get(key, AbortSignal.timeout(600_000))) hash.update(chunk);
    if (!key.endsWith(hash.digest('hex'))) differences.push(`${key} holds other bytes`);
    if (differences.length > 5) return differences;
  }
  for (const key of wanted) differences.push(`${key} is not in the store`);
  const [late] = await database.query(
    `SELECT count(*)::int AS n FROM intake.applications WHERE ready_at IS NULL AND erased_at IS NULL HAVING count(*) > 0`,
  );
  if (late) differences.push(`${late.n} applications are not ready`);
  return differences.slice(0, 6);
}

/** The stored screens of every application, in the form of the truth. */
export async function loadScreens(database: SmallIntake['database']): Promise<Map<string, unknown>> {
  const rows = await database.query<{ application_id: string; screens: unknown }>(
    `SELECT s.application_id, json_agg(json_build_object('screenId', screen_id, 'name', name, 'outcome', outcome, 'questions', (
       SELECT coalesce(json_agg(json_build_object('questionId', question_id, 'type', type, 'text', text, 'answers', (
         SELECT coalesce(json_agg(json_build_object('answerId', answer_id, 'text', text, 'selected', selected) ORDER BY answer_no), '[]')
         FROM intake.screen_answers a WHERE (a.advertiser_id, a.application_id, a.screen_no, a.question_no)
           = (q.advertiser_id, q.application_id, q.screen_no, q.question_no))) ORDER BY question_no), '[]')
       FROM intake.screen_questions q WHERE (q.advertiser_id, q.application_id, q.screen_no)
         = (s.advertiser_id, s.application_id, s.screen_no))) ORDER BY screen_no) AS screens
     FROM intake.screens s GROUP BY s.application_id`,
  );
  return new Map(rows.map((row) => [row.application_id, row.screens]));
}

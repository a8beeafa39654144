// The last trouble of an account, on its row: why its reading, its downloads or the deletion of files waits.
import type { Wait } from '../../domain/trouble.ts';
import { isAhead } from '../postgres/clock.ts';
import type { Queryable } from '../postgres/database.ts';

/** Trouble that is not noted again holds until its next try, and this much longer: a request to the source may take ten minutes. */
const graceMs = 600_000;

/** True for a trouble `t` that still holds. One that began in the future was written before the clock was set back. */
const holds = (t: string) =>
  `(${t} ->> 'until')::timestamptz > now() AND NOT ${isAhead(`(${t} ->> 'since')::timestamptz`)}`;

/** Notes why the task of these accounts waits, and that it is tried again after this time. A wait keeps its start while it lasts. */
export async function noteTrouble(
  db: Queryable,
  names: readonly string[],
  { task, dependency, reason }: Pick<Wait, 'task' | 'dependency' | 'reason'>,
  waitMs: number,
): Promise<void> {
  await db.query(
    `WITH noted AS (SELECT name, troubles -> $2 AS t FROM intake.advertisers WHERE name = ANY ($1::text[]) ORDER BY name FOR NO KEY UPDATE)
     UPDATE intake.advertisers v SET troubles = v.troubles || jsonb_build_object($2::text, jsonb_build_object(
       'dependency', $3::text,
       'reason', $4::text,
       'since', CASE WHEN t ->> 'dependency' = $3 AND ${holds('t')} THEN t -> 'since' ELSE to_jsonb(now()) END,
       'until', now() + $5::float8 * interval '1 millisecond'))
     FROM noted WHERE v.name = noted.name`,
    [names, task, dependency, reason, waitMs + graceMs],
  );
}

export async function clearTrouble(db: Queryable, names: readonly string[], task: Wait['task']): Promise<void> {
  await db.query(
    `WITH noted AS (SELECT name FROM intake.advertisers WHERE name = ANY ($1::text[]) AND troubles ? $2 ORDER BY name FOR NO KEY UPDATE)
     UPDATE intake.advertisers v SET troubles = v.troubles - $2::text FROM noted WHERE v.name = noted.name`,
    [names, task],
  );
}

export async function loadWaits(db: Queryable): Promise<Wait[]> {
  return await db.query<Wait>(
    `SELECT v.name AS advertiser, task, t ->> 'dependency' AS dependency, t ->> 'reason' AS reason, (t ->> 'since')::timestamptz AS since
     FROM intake.advertisers v CROSS JOIN jsonb_each(v.troubles) AS each (task, t)
     WHERE ${holds('t')} ORDER BY since, advertiser, task`,
  );
}

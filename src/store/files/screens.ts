// The rows of an application's screens. They are parsed from stored bytes, so they are never merged: new rows replace all old ones in the
// caller's transaction. This file does not know the source's format.
import type { ParsedScreens } from '../../domain/screen.ts';
import { pipeline, type Queryable } from '../postgres/database.ts';

export interface ScreenReplacement {
  readonly applicationId: bigint;
  readonly sha256: string;
  /** Null where the bytes cannot be parsed: the application then has no screens. */
  readonly parsed: ParsedScreens | null;
}

export async function replaceScreens(tx: Queryable, advertiserId: bigint, replacements: readonly ScreenReplacement[]) {
  if (replacements.length === 0) return;
  const ids = replacements.map(({ applicationId }) => applicationId);
  const files = replacements.map(({ applicationId, sha256, parsed }) => ({
    application_id: String(applicationId),
    sha256,
    parser_version: parsed?.parserVersion,
    screens: parsed?.screens ?? [],
  }));
  await pipeline([
    // The foreign keys delete questions and answers with their screen.
    tx.query(`DELETE FROM intake.screens WHERE advertiser_id = $1 AND application_id = ANY ($2::bigint[])`, [
      advertiserId,
      ids,
    ]),
    tx.query(insertScreensSql, [advertiserId, JSON.stringify(files)]),
  ]);
}

/** All screens are one jsonb parameter; screens, questions and answers are numbered by their position in it. */
const insertScreensSql = `
  WITH screen AS MATERIALIZED (
    SELECT f.application_id, f.sha256, f.parser_version, s.no, s.value
    FROM jsonb_to_recordset($2::jsonb) AS f (application_id bigint, sha256 text, parser_version int, screens jsonb),
      jsonb_array_elements(f.screens) WITH ORDINALITY AS s (value, no)
  ), question AS MATERIALIZED (
    SELECT screen.application_id, screen.no AS screen_no, q.no, q.value
    FROM screen, jsonb_array_elements(screen.value->'questions') WITH ORDINALITY AS q (value, no)
  ), new_screens AS (
    INSERT INTO intake.screens
      (advertiser_id, application_id, screen_no, screen_id, name, outcome, notes, sha256, parser_version)
    SELECT $1, application_id, no, value->>'id', value->>'name', value->>'outcome', nullif(value->'notes', '[]'), sha256, parser_version
    FROM screen
  ), new_questions AS (
    INSERT INTO intake.screen_questions (advertiser_id, application_id, screen_no, question_no, question_id, type, text)
    SELECT $1, application_id, screen_no, no, value->>'id', value->>'type', value->>'text'
    FROM question
  )
  INSERT INTO intake.screen_answers
    (advertiser_id, application_id, screen_no, question_no, answer_no, answer_id, text, selected)
  SELECT $1, question.application_id, question.screen_no, question.no, a.no, a.value->>'id', a.value->>'text',
    (a.value->>'selected')::boolean
  FROM question, jsonb_array_elements(question.value->'answers') WITH ORDINALITY AS a (value, no)`;

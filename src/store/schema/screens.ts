// The tables of screening questionnaires and their answers; see applications.ts for how these files are used.
import { boolean, integer, jsonb, text } from 'drizzle-orm/pg-core';
import { applications } from './applications.ts';
import { id64, intake, key, oneOf, refersTo } from './columns.ts';

export const screens = intake.table(
  'screens',
  {
    advertiser_id: id64().notNull(),
    application_id: id64().notNull(),
    screen_no: integer().notNull(),
    screen_id: text(),
    name: text(),
    outcome: text({ enum: ['pass', 'fail', 'unknown'] }).notNull(),
    notes: jsonb(),
    sha256: text().notNull(),
    parser_version: integer().notNull(),
  },
  (t) => [
    key(t.advertiser_id, t.application_id, t.screen_no),
    refersTo('screens_application', t, applications, 'advertiser_id', 'application_id'),
    ...oneOf(t.outcome),
  ],
);

export const screenQuestions = intake.table(
  'screen_questions',
  {
    advertiser_id: id64().notNull(),
    application_id: id64().notNull(),
    screen_no: integer().notNull(),
    question_no: integer().notNull(),
    question_id: text(),
    type: text(),
    text: text(),
  },
  (t) => [
    key(t.advertiser_id, t.application_id, t.screen_no, t.question_no),
    // Questions and answers are deleted with their screen, which is only ever replaced or erased as a whole.
    refersTo('screen_questions_screen', t, screens, 'advertiser_id', 'application_id', 'screen_no').onDelete('cascade'),
  ],
);

export const screenAnswers = intake.table(
  'screen_answers',
  {
    advertiser_id: id64().notNull(),
    application_id: id64().notNull(),
    screen_no: integer().notNull(),
    question_no: integer().notNull(),
    answer_no: integer().notNull(),
    answer_id: text(),
    text: text().notNull(),
    selected: boolean().notNull(),
  },
  (t) => [
    key(t.advertiser_id, t.application_id, t.screen_no, t.question_no, t.answer_no),
    refersTo(
      'screen_answers_question',
      t,
      screenQuestions,
      'advertiser_id',
      'application_id',
      'screen_no',
      'question_no',
    ).onDelete('cascade'),
  ],
);

// The tables of screening questionnaires and their answers; see applications.ts for how these files are used.
import { boolean, check, integer, jsonb, primaryKey, text } from 'drizzle-orm/pg-core';
import { applications } from './applications.ts';
import { id64, intake, isOneOf, refersTo } from './columns.ts';

// The values that CHECKs allow, which are also the types of the columns.
const outcomes = ['pass', 'fail', 'unknown'] as const;

export const screens = intake.table(
  'screens',
  {
    advertiserId: id64('advertiser_id').notNull(),
    applicationId: id64('application_id').notNull(),
    screenNo: integer('screen_no').notNull(),
    screenId: text('screen_id'),
    name: text(),
    outcome: text({ enum: outcomes }).notNull(),
    notes: jsonb(),
    sha256: text().notNull(),
    parserVersion: integer('parser_version').notNull(),
  },
  (t) => [
    primaryKey({ name: 'screens_pkey', columns: [t.advertiserId, t.applicationId, t.screenNo] }),
    refersTo('screens_application', t, applications, 'advertiserId', 'applicationId'),
    check('screens_outcome', isOneOf(t.outcome, outcomes)),
  ],
);

export const screenQuestions = intake.table(
  'screen_questions',
  {
    advertiserId: id64('advertiser_id').notNull(),
    applicationId: id64('application_id').notNull(),
    screenNo: integer('screen_no').notNull(),
    questionNo: integer('question_no').notNull(),
    questionId: text('question_id'),
    type: text(),
    text: text(),
  },
  (t) => [
    primaryKey({
      name: 'screen_questions_pkey',
      columns: [t.advertiserId, t.applicationId, t.screenNo, t.questionNo],
    }),
    // Questions and answers are deleted with their screen, which is only ever replaced or erased as a whole.
    refersTo('screen_questions_screen', t, screens, 'advertiserId', 'applicationId', 'screenNo').onDelete('cascade'),
  ],
);

export const screenAnswers = intake.table(
  'screen_answers',
  {
    advertiserId: id64('advertiser_id').notNull(),
    applicationId: id64('application_id').notNull(),
    screenNo: integer('screen_no').notNull(),
    questionNo: integer('question_no').notNull(),
    answerNo: integer('answer_no').notNull(),
    answerId: text('answer_id'),
    text: text().notNull(),
    selected: boolean().notNull(),
  },
  (t) => [
    primaryKey({
      name: 'screen_answers_pkey',
      columns: [t.advertiserId, t.applicationId, t.screenNo, t.questionNo, t.answerNo],
    }),
    refersTo(
      'screen_answers_question',
      t,
      screenQuestions,
      'advertiserId',
      'applicationId',
      'screenNo',
      'questionNo',
    ).onDelete('cascade'),
  ],
);

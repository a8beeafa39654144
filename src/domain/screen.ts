// A screening questionnaire as one person answered it: screen, question, answer, in the source's order.

import type { Note } from './application.ts';

export interface Screen {
  readonly id: string | null;
  readonly name: string | null;
  readonly outcome: ScreenOutcome;
  readonly questions: readonly ScreenQuestion[];
  readonly notes: readonly Note[];
}

export type ScreenOutcome = 'pass' | 'fail' | 'unknown';

/** A question. Its type is the source's own word, known to Intake or not. Ids may be absent or repeated. */
export interface ScreenQuestion {
  readonly id: string | null;
  readonly type: string | null;
  readonly text: string | null;
  readonly answers: readonly ScreenAnswer[];
}

/** An answer that was offered, or the text that was entered. */
export interface ScreenAnswer {
  readonly id: string | null;
  /** Empty where there is none: XML cannot tell an empty text from an absent one, so Intake does not either. */
  readonly text: string;
  /** Only where the source says so, also for a Text question: a text without the mark is stored, but not as selected. */
  readonly selected: boolean;
}

export interface ParsedScreens {
  readonly screens: readonly Screen[];
  /** The version of the parser. Rows of an older version can be rebuilt from the stored bytes. */
  readonly parserVersion: number;
}

/** A larger file is stored like any other, but not parsed. */
export const largestScreenBytes = 8 * 1024 * 1024;

/** Spec: screen.successful, True is pass and False is fail. Without it the outcome is unknown, never fail. */
export function toOutcome(successful: boolean | null): ScreenOutcome {
  if (successful === null) return 'unknown';
  return successful ? 'pass' : 'fail';
}

export function toUnreadableNote(why: string): Note {
  return { field: 'screen', reason: `cannot be read: ${why}` };
}

// A screening questionnaire as one person answered it: screen, question, answer, in the source's order.
// Facts as the source states them and the one rule about them; how they are written on the wire is known only to source/.

import type { Note } from './application.ts';

/** One questionnaire of an application; an application may carry several. */
export interface Screen {
  readonly id: string | null;
  readonly name: string | null;
  readonly outcome: ScreenOutcome;
  readonly questions: readonly ScreenQuestion[];
  /** What could not be kept as it came, and why. */
  readonly notes: readonly Note[];
}

/** What the source made of the answers. */
export type ScreenOutcome = 'pass' | 'fail' | 'unknown';

/** A question; its type is the source's word, whether we know it or not. Ids may be absent, or come twice. */
export interface ScreenQuestion {
  readonly id: string | null;
  readonly type: string | null;
  readonly text: string | null;
  readonly answers: readonly ScreenAnswer[];
}

/** An answer that was offered, or the text that was entered. */
export interface ScreenAnswer {
  readonly id: string | null;
  /** Empty where there is none: XML cannot tell an empty text from an absent one, so neither do we. */
  readonly text: string;
  /**
   * True only where the source says so. Spec: answer.selected stands on what was selected or entered, for a Text question
   * too; a text without it is kept, and nobody is said to have chosen it.
   */
  readonly selected: boolean;
}

/** Everything read from one answer of the screen path. */
export interface ParsedScreens {
  readonly screens: readonly Screen[];
  /** Which parser read it: rows of an older one can be rebuilt from the stored bytes. */
  readonly parserVersion: number;
}

/** Spec: screen.successful, True is pass and False is fail. What the source does not say is unknown, never fail. */
export function toOutcome(successful: boolean | null): ScreenOutcome {
  if (successful === null) return 'unknown';
  return successful ? 'pass' : 'fail';
}

/** What is said of a screen whose bytes are kept and cannot be read. */
export function toUnreadableNote(why: string): Note {
  return { field: 'screen', reason: `cannot be read: ${why}` };
}

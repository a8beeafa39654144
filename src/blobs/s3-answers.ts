// How far the store's answer to a put is believed. It carries the sum that the store made of what it took, which would spare a second
// request for its record; a store that merely repeats the sum it was sent proves nothing. So the answer earns its belief, and loses it.
import type { BlobCondition } from '../domain/blob.ts';

/** What this client has seen of the store's answers. */
export interface AnswerTrust {
  /** Whether an answer with the right sum needs no further proof; `random` from 0 to 1. */
  isBelieved(random: number): boolean;
  /** What the record said where the answer had the right sum. */
  compare(condition: BlobCondition): void;
}

/** Answers that the record must confirm before one is believed. */
const answersToTrust = 20;
/** From then on one in so many is still compared. */
const comparedOneIn = 20;

/** No answer is believed yet. */
export function createAnswerTrust(): AnswerTrust {
  let confirmed: number | null = 0;
  return {
    isBelieved: (random) => confirmed !== null && confirmed >= answersToTrust && random >= 1 / comparedOneIn,
    compare(condition) {
      if (confirmed !== null) confirmed = condition === 'intact' ? confirmed + 1 : null;
    },
  };
}

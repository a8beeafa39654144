// Chooses the format of an answer. Spec: Accept chooses between application/json and application/xml.

import type { Context } from 'hono';
import type { Choices } from '../behaviour/choices.ts';
import type { Notation } from './listing.ts';

/** The format of the answer; null when the account rejects the request. */
export function chooseNotation(context: Context, choices: Choices): Notation | null {
  const accept = context.req.header('accept') ?? '';
  const [named, other] = (['json', 'xml'] as const).filter((notation) => accept.includes(`application/${notation}`));
  const unclear = choices.acceptUnclear === 'refuse406' ? null : choices.acceptUnclear;
  const notation = named === undefined || other !== undefined ? unclear : named;
  if (choices.formatHonoured === 'asked' || notation === null) return notation;
  return notation === 'json' ? 'xml' : 'json';
}

// Chooses the format of an answer. Spec: Accept chooses between application/json and application/xml.
// Spec silent: an absent header, wildcards, several types with weights, other types.

import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { Choices } from '../behaviour/choices.ts';
import type { Notation } from './listing.ts';

/** The format of the answer; null when the account rejects the request. */
export function chooseNotation(context: Context, choices: Choices): Notation | null {
  const notation = readAccept(context, choices);
  if (choices.formatHonoured === 'asked' || notation === null) return notation;
  return notation === 'json' ? 'xml' : 'json';
}

function readAccept(context: Context, choices: Choices): Notation | null {
  const header = context.req.header('accept');
  if (header === undefined) return toNotation(choices.acceptMissing);
  const named = readTypes(context);
  if (named.length > 1 && choices.acceptWeights === 'refuse406') return null;
  if (choices.acceptWeights === 'firstNamed') named.sort((a, b) => header.indexOf(a) - header.indexOf(b));
  for (const type of named) {
    const notation = readType(type, choices);
    if (notation !== undefined) return notation;
  }
  return toNotation(choices.acceptOther);
}

/** The acceptable types as hono parses them, highest weight first. */
function readTypes(context: Context): string[] {
  let types: string[] = [];
  accepts(context, {
    header: 'Accept',
    supports: [],
    default: '',
    match(named) {
      types = named.filter((one) => one.q > 0).map((one) => one.type);
      return '';
    },
  });
  return types;
}

/** Undefined for a type that matches neither format. */
function readType(type: string, choices: Choices): Notation | null | undefined {
  if (type === 'application/json') return 'json';
  if (type === 'application/xml') return 'xml';
  return type === '*/*' || type === 'application/*' ? toNotation(choices.acceptAny) : undefined;
}

function toNotation(choice: Notation | 'refuse406'): Notation | null {
  return choice === 'refuse406' ? null : choice;
}

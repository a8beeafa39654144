// Which format a request gets. Spec: Accept chooses between application/json and application/xml.
// Spec silent: an absent header, wildcards, several types with weights, other types.

import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { Choices } from './choices.ts';
import type { Notation } from './listing.ts';

/** The format of the answer; null when the account refuses the request. */
export function chooseNotation(context: Context, choices: Choices): Notation | null {
  const notation = readAccept(context, choices);
  if (choices.formatHonoured === 'asked' || notation === null) return notation;
  return notation === 'json' ? 'xml' : 'json';
}

function readAccept(context: Context, choices: Choices): Notation | null {
  if (context.req.header('accept') === undefined) return toNotation(choices.acceptMissing);
  let named: readonly { type: string; q: number }[] = [];
  accepts(context, {
    header: 'Accept',
    supports: [],
    default: '',
    match(list) {
      named = list;
      return '';
    },
  });
  if (named.length > 1) {
    if (choices.acceptWeights === 'refuse406') return null;
    const sorted =
      choices.acceptWeights === 'byWeight' ? named.filter((one) => one.q > 0).toSorted((a, b) => b.q - a.q) : named;
    for (const one of sorted) {
      const notation = readType(one.type, choices);
      if (notation !== undefined) return notation;
    }
    return toNotation(choices.acceptOther);
  }
  const only = readType(named[0]?.type ?? '', choices);
  return only === undefined ? toNotation(choices.acceptOther) : only;
}

/** Undefined for a type that says nothing about the two formats. */
function readType(type: string, choices: Choices): Notation | null | undefined {
  if (type === 'application/json') return 'json';
  if (type === 'application/xml') return 'xml';
  return type === '*/*' || type === 'application/*' ? toNotation(choices.acceptAny) : undefined;
}

function toNotation(choice: Notation | 'refuse406'): Notation | null {
  return choice === 'refuse406' ? null : choice;
}

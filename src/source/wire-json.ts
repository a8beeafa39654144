// JSON text to values, with every digit kept: numbers that a double would bend stay literals (JSON.rawJSON).
// Knows nothing of applications; what it cannot read it refuses whole.

import { Trouble } from '../domain/trouble.ts';

declare global {
  interface JSON {
    rawJSON(text: string): { readonly rawJSON: string };
    isRawJSON(value: unknown): value is { readonly rawJSON: string };
    parse(
      text: string,
      reviver: (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown;
  }
}

// Sixteen digits, or an exponent of two: the only numbers that a double may not hold as written. Looked for where a
// number can stand, since long digit runs inside texts (hashes, dates) are common and would make every page slow.
const risky = /[:,[]\s*-?\d(?:[\d.]{15}|[\d.]*e[+-]?\d{2})/i;
const riskyLiteral = /^-?\d(?:[\d.]{15}|[\d.]*e[+-]?\d{2})/i;

/** Reads JSON; a reviver costs six times as much, so it runs only where a number asks for it (`exact`). */
export function parseJson(text: string): { readonly value: unknown; readonly exact: boolean } {
  const exact = risky.test(text);
  try {
    return { value: exact ? JSON.parse(text, keepDigits) : JSON.parse(text), exact };
  } catch (error) {
    // V8's message quotes the text around the fault, which may be a person's: only the fact is passed on.
    const depth = error instanceof RangeError;
    throw new Trouble('malformed', depth ? 'The answer nests too deeply.' : 'The answer is not whole, valid JSON.');
  }
}

function keepDigits(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  const { source } = context;
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value;
  // Judged by itself, so that an element reads the same whatever its neighbours hold.
  return riskyLiteral.test(source) ? JSON.rawJSON(source) : value;
}

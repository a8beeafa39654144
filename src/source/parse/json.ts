// JSON text to values, with every digit kept: numbers that a double would bend stay literals (JSON.rawJSON).
// Knows nothing of applications; what it cannot read it refuses whole.

import { randomUUID } from 'node:crypto';
import { Trouble } from '../../domain/trouble.ts';

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

/**
 * Reads JSON; a reviver costs six times as much, so it runs only where a number asks for it (`exact`), or the caller:
 * with `everyDigit` all numbers keep the spelling they came with, for places where a number stands for a text.
 */
export function parseJson(text: string, everyDigit = false): { readonly value: unknown; readonly exact: boolean } {
  const exact = everyDigit || risky.test(text);
  const keep = everyDigit ? keepSpelling : keepDigits;
  try {
    return { value: exact ? JSON.parse(text, keep) : JSON.parse(text), exact };
  } catch (error) {
    if (error instanceof RangeError) return { value: parseDeep(text), exact };
    const escaped = escapeControls(text);
    if (escaped !== text) return parseJson(escaped, everyDigit);
    // V8's message quotes the text around the fault, which may be a person's: only the fact is passed on.
    throw new Trouble('malformed', 'The answer is not whole, valid JSON.');
  }
}

const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d[\d.e+-]*/gi;

// A reviver is called recursively and overflows at some thousands of levels, where JSON.parse itself does not. There the
// digits travel as marked texts and are put back by a walk that needs no stack. Valid text only: it has been parsed before.
function parseDeep(text: string): unknown {
  const mark = `${randomUUID()}:`;
  const marked = text.replace(stringOrNumber, (token) =>
    !token.startsWith('"') && riskyLiteral.test(token) ? `"${mark}${token}"` : token,
  );
  const root: unknown[] = [JSON.parse(marked)];
  const open: object[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const members = node as Record<string, unknown>;
    for (const [key, value] of Object.entries(members)) {
      if (typeof value === 'object' && value !== null) open.push(value);
      if (typeof value !== 'string' || !value.startsWith(mark)) continue;
      const literal = JSON.rawJSON(value.slice(mark.length));
      Object.defineProperty(members, key, { value: literal, enumerable: true, writable: true, configurable: true });
    }
  }
  return root[0];
}

// A tab or line end left bare inside a text is the one fault of careless writers whose meaning is plain; refusing it would
// cost every application of its page.
function escapeControls(text: string): string {
  const parts: string[] = [];
  let from = 0;
  let isInText = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) isInText = !isInText;
    else if (isInText && code === 0x5c) at++;
    else if (isInText && code < 0x20) {
      parts.push(text.slice(from, at), `\\u${code.toString(16).padStart(4, '0')}`);
      from = at + 1;
    }
  }
  return from === 0 ? text : parts.join('') + text.slice(from);
}

function keepSpelling(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  return typeof value !== 'number' || source === undefined || String(value) === source ? value : JSON.rawJSON(source);
}

function keepDigits(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  const { source } = context;
  if (typeof value !== 'number' || source === undefined) return value;
  // From 2^53 on a double may print the digits that came and still stand for another integer.
  const isExact = Number.isSafeInteger(value) || !Number.isInteger(value);
  if (isExact && String(value) === source) return value;
  // Judged by itself, so that an element reads the same whatever its neighbours hold.
  return riskyLiteral.test(source) ? JSON.rawJSON(source) : value;
}

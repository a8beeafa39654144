// Parses JSON without losing digits: numbers that a double cannot hold exactly stay literals (JSON.rawJSON).
// Invalid JSON is rejected as a whole. Does not know applications.

import { randomUUID } from 'node:crypto';
import { mostValues, refuse } from './values.ts';

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

// Sixteen or more digits, or an exponent of at least two digits: a double may not hold these numbers as written. The expression matches
// only where a number can occur: long runs of digits in strings (hashes, dates) are common and would make every page slow.
const risky = /[:,[]\s*-?\d(?:[\d.]{15}|[\d.]*e[+-]?\d{2})/i;
const riskyLiteral = /^-?\d(?:[\d.]{15}|[\d.]*e[+-]?\d{2})/i;

/** Counting values takes a tenth of the time of parsing, so a text up to this length is not counted. A list counts its elements instead. */
const uncounted = 3_000_000;

/**
 * Parses JSON. A reviver costs six times as much, so it runs only when the text contains such a number (`exact`), or with `everyDigit`:
 * then all numbers keep their original spelling, for members where a number is used as a text.
 */
export function parseJson(text: string, everyDigit = false): { readonly value: unknown; readonly exact: boolean } {
  if ((everyDigit || text.length > uncounted) && countValues(text) > mostValues)
    refuse(`has more than ${mostValues} values`);
  const exact = everyDigit || risky.test(text);
  const keep = everyDigit ? keepSpelling : keepDigits;
  try {
    return { value: exact ? JSON.parse(text, keep) : JSON.parse(text), exact };
  } catch (error) {
    if (error instanceof RangeError) return { value: parseDeep(text), exact };
    const escaped = escapeControls(text);
    if (escaped !== text) return parseJson(escaped, everyDigit);
    // V8's message quotes the text around the error, which may be personal data, so it is dropped.
    return refuse('is not whole, valid JSON');
  }
}

function countValues(text: string): number {
  let values = 0;
  let isInText = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) isInText = !isInText;
    else if (isInText) at += Number(code === 0x5c);
    // A comma, and the beginning of a list or an object.
    else if (code === 0x2c || code === 0x5b || code === 0x7b) values++;
  }
  return values;
}

// A reviver is called recursively and overflows the stack at some thousands of levels, where JSON.parse alone does not. This function
// replaces the risky numbers by marked strings, parses, and puts the literals back without recursion. The text must be valid JSON.
function parseDeep(text: string): unknown {
  const mark = `${randomUUID()}:`;
  const toMarked = (number: string) => (riskyLiteral.test(number) ? `"${mark}${number}"` : number);
  const marked = splitStrings(text).map((part) =>
    part.startsWith('"') ? part : part.replace(/-?\d[\d.e+-]*/gi, toMarked),
  );
  const root: unknown[] = [JSON.parse(marked.join(''))];
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

/** The strings of a JSON text, with their quotes, and the parts between them. */
function splitStrings(text: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', from)) {
    parts.push(text.slice(from, at));
    for (from = at++; text[at] !== '"'; at++) if (text[at] === '\\') at++;
    parts.push(text.slice(from, at + 1));
    from = at + 1;
  }
  return [...parts, text.slice(from)];
}

/** Each takes memory here, and up to six times its length from here on. */
const mostControls = 100_000;

// Some servers do not escape a tab or line end inside a string. The meaning is clear, and rejecting it would lose every application of
// the page.
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
      if (parts.length > 2 * mostControls) refuse(`has more than ${mostControls} bare control characters`);
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
  // From 2^53 on, a double may print the original digits although its value is another integer.
  const isExact = Number.isSafeInteger(value) || !Number.isInteger(value);
  if (isExact && String(value) === source) return value;
  // Decided per number, so that an element gives the same value whatever other elements contain.
  return riskyLiteral.test(source) ? JSON.rawJSON(source) : value;
}

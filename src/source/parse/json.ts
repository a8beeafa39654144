// Parses JSON without losing digits: numbers that a double cannot hold exactly stay literals (JSON.rawJSON).
// Invalid JSON is rejected as a whole. Does not know applications.

import { randomUUID } from 'node:crypto';
import { listObjects, mostValues, refuse } from './values.ts';

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

// Sixteen or more digits, an exponent of two or more, a fraction that ends in 0, or -0: a double does not hold these as written.
const risky = /-0(?![\d.])|-?\d(?:[\d.]{15}|[\d.]*e[+-]?\d{2}|\d*\.\d*0(?!\d))/iy;
const riskyLiteral = /^(?:-0$|-?\d(?:[\d.]{15}|[\d.]*e[+-]?\d{2}|\d*\.\d*0$))/i;

/** The values of a text up to this length do not count. A list counts its elements instead. */
const uncounted = 3_000_000;

/** Parses JSON. With `everyDigit`, all numbers keep their original spelling, for members where a number is used as a text. */
export function parseJson(text: string, everyDigit = false): unknown {
  const marks = countMarks(text);
  if ((everyDigit || text.length > uncounted) && marks.values > mostValues)
    refuse(`has more than ${mostValues} values`);
  let parsed: unknown;
  try {
    parsed = everyDigit || marks.isRisky ? parseExact(text, everyDigit) : JSON.parse(text);
  } catch {
    const escaped = escapeControls(text);
    if (escaped !== text) return parseJson(escaped, everyDigit);
    // V8's message quotes the text around the error, which may be personal data, so it is dropped.
    refuse('is not whole, valid JSON');
  }
  // Of two members with one name, JSON.parse keeps the last one without a word.
  if (marks.names > listObjects(parsed).reduce((sum, one) => sum + Object.keys(one).length, 0))
    refuse('names a member twice');
  return parsed;
}

/** Counts the marks outside of strings: what opens or separates values, and the colons after names. Strings often hold long numbers. */
function countMarks(text: string): { values: number; names: number; isRisky: boolean } {
  let [values, names, isRisky, isInNumber] = [0, 0, false, false];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const isDigit = (code >= 0x30 && code <= 0x39) || code === 0x2d;
    if (isDigit && !isInNumber) {
      risky.lastIndex = at;
      isRisky ||= risky.test(text);
    } else if (code === 0x22) at = findEnd(text, at);
    else if (code === 0x3a) names++;
    // A comma, and the beginning of a list or an object.
    else if (code === 0x2c || code === 0x5b || code === 0x7b) values++;
    isInNumber = isDigit;
  }
  return { values, names, isRisky };
}

/** Where the string that begins here ends: at a quote after an even number of backslashes, or with the text. */
function findEnd(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - slashes - 1) === 0x5c) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return text.length;
}

// Puts each number that stays a literal into a marked list, parses, and puts the literal in its place. A reviver, which gets the digits of
// each number, is called recursively: it overflows the stack at some thousands of levels, where JSON.parse alone does not.
function parseExact(text: string, everyDigit: boolean): unknown {
  const mark = `${randomUUID()}:`;
  const toMarked = (number: string) => (isLiteral(number, everyDigit) ? `["${mark}${number}"]` : number);
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    const quote = text.indexOf('"', from);
    const to = quote < 0 ? text.length : quote;
    const end = findEnd(text, to) + 1;
    parts.push(text.slice(from, to).replace(/-?\d[\d.e+-]*/gi, toMarked), text.slice(to, end));
    from = end;
  }
  const root: unknown[] = [JSON.parse(parts.join(''))];
  const open: object[] = [root];
  for (const node of open)
    for (const [key, value] of Object.entries(node)) {
      if (typeof value !== 'object' || value === null) continue;
      const [first] = Array.isArray(value) ? value : [];
      if (typeof first !== 'string' || !first.startsWith(mark)) open.push(value);
      else {
        const literal = JSON.rawJSON(first.slice(mark.length));
        Object.defineProperty(node, key, { value: literal, enumerable: true, writable: true, configurable: true });
      }
    }
  return root[0];
}

/** Decided per number, so that an element gives the same value whatever other elements contain. */
function isLiteral(number: string, everyDigit: boolean): boolean {
  if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(number)) return false;
  const value = Number(number);
  if (everyDigit) return String(value) !== number;
  // From 2^53 on, a double may print the original digits although its value is another integer.
  const isExact = Number.isSafeInteger(value) || !Number.isInteger(value);
  return riskyLiteral.test(number) && !(isExact && String(value) === number);
}

/** Each takes memory here, and up to six times its length from here on. */
const mostControls = 100_000;

/** Some servers do not escape a tab or line end in a string. The meaning is clear, and refusing it would lose every application of the page. */
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

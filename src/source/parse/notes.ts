// What parsing an element yields besides its facts: notes, and its unknown members as texts for the content hash.
// The texts are the same for JSON and XML: XML has only text, and the names of its list elements have no counterpart in JSON.

import type { Note } from '../../domain/application.ts';
import { parseDate } from './dates.ts';
import { isObject, toScalarText } from './values.ts';

/** One element's notes and unknown members, filled while it is parsed. */
export interface ParseFindings {
  readonly notes: Note[];
  readonly unknown: string[];
}

/** Records unknown members by name and the texts of their non-empty leaves, so that a change in them changes the content hash. */
export function noteUnknown(
  findings: ParseFindings,
  path: string,
  unknown: readonly (readonly [string, unknown])[],
): void {
  for (const [name, value] of unknown) {
    const leaves = toLeaves(value).flatMap(toLeafText);
    if (leaves.length > 0) findings.unknown.push(JSON.stringify([path + name, leaves]));
  }
}

/** Compares texts by code units: the order is the same on every machine. */
export function byText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

// Without recursion: a value may be 200,000 levels deep.
function toLeaves(value: unknown): unknown[] {
  const leaves: unknown[] = [];
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (Array.isArray(next)) for (let i = next.length - 1; i >= 0; i--) open.push(next[i]);
    else if (isObject(next)) for (const key of Object.keys(next).sort(byText).reverse()) open.push(next[key]);
    else leaves.push(next);
  }
  return leaves;
}

// Equal times and equal decimals give the same text, however JSON and XML write them.
function toLeafText(leaf: unknown): string[] {
  const text = toScalarText(leaf);
  if (text === undefined || text === '') return [];
  if (/^(?:\/Date\(|\d{4}-\d\d-\d\dT)/.test(text)) {
    const date = parseDate(text);
    if (date.at !== null) return [`${date.at} ${date.offset}`];
  }
  // The length limit keeps the pattern cheap: it is quadratic in a run of zeros.
  return [text.length < 40 && /^-?\d+\.\d*0$/.test(text) ? text.replace(/\.?0+$/, '') : text];
}

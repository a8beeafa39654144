// What parsing an element yields beside its facts: notes, and the members we do not know, as texts for the content hash.
// Those texts are the same for JSON and XML: XML knows only text, and the names of its list elements have no JSON form.

import type { Note } from '../../domain/application.ts';
import { parseDate } from './dates.ts';
import { isObject, toScalarText } from './values.ts';

/** One element's notes and unknown members, filled while it is read. */
export interface ParseFindings {
  readonly notes: Note[];
  readonly unknown: string[];
}

/** Records unknown members by name and the texts of their leaves, empties left out, so that a change in them is seen. */
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

/** Order of texts by their code units: the same on every machine. */
export function byText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

// Without recursion: a value 200,000 levels deep is walked like any other.
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

// The same moment and the same decimal are one text, however JSON and XML write them.
function toLeafText(leaf: unknown): string[] {
  const text = toScalarText(leaf);
  if (text === undefined || text === '') return [];
  if (/^(?:\/Date\(|\d{4}-\d\d-\d\dT)/.test(text)) {
    const date = parseDate(text);
    if (date.at !== null) return [`${date.at} ${date.offset}`];
  }
  // Only what can be a number: the pattern is quadratic in a run of zeros.
  return [text.length < 40 && /^-?\d+\.\d*0$/.test(text) ? text.replace(/\.?0+$/, '') : text];
}

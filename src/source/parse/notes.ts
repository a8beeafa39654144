// What parsing an element yields besides its facts: notes, and its unknown members as texts for the hashes.
// The texts are the same for JSON and XML: XML has only text, and the names of its list elements have no counterpart in JSON.

import { hash } from 'node:crypto';
import type { MemberHashes, Note } from '../../domain/application.ts';
import { parseDate } from './dates.ts';
import type { Members } from './members.ts';
import { isObject, toScalarText, toStorableText } from './values.ts';

/** One element's notes and unknown members, filled while it is parsed. */
export interface ParseFindings {
  readonly notes: Note[];
  readonly unknown: MemberText[];
}

/** A member, and a text of its name and the texts of its non-empty leaves. */
type MemberText = readonly [name: string, text: string];

/** Records unknown members, so that a change in them changes the hashes. */
export function recordUnknown({ unknown }: ParseFindings, path: string, members: Members['unknown']): void {
  for (const text of toMemberTexts(members.map(([name, value]) => [path + name, value]))) unknown.push(text);
}

export function toMemberTexts(members: Members['unknown']): MemberText[] {
  return members.flatMap(([name, value]) => {
    const leaves = toLeaves(value).flatMap(toLeafText);
    return leaves.length === 0 ? [] : [[name, JSON.stringify([name, leaves])] as const];
  });
}

const mostMembers = 100;
const longestName = 200;

export function toMemberHashes(members: readonly MemberText[]): MemberHashes {
  const texts = new Map<string, string>();
  for (const [name, text] of members) {
    const isOther = name.length > longestName || (texts.size >= mostMembers && !texts.has(name));
    const key = isOther ? 'others' : toStorableText(name);
    texts.set(key, (texts.get(key) ?? '') + text);
  }
  return Object.fromEntries(Array.from(texts, ([name, text]) => [name, hash('sha256', text).slice(0, 16)]));
}

/** The scalars of a value, sorted by the names of its members. Without recursion: a value may be 200,000 levels deep. */
export function toLeaves(value: unknown): unknown[] {
  const leaves: unknown[] = [];
  const open: unknown[] = [value];
  const byTextDown = (a: string, b: string) => (a < b ? 1 : -1);
  while (open.length > 0) {
    const next = open.pop();
    if (Array.isArray(next)) for (let i = next.length - 1; i >= 0; i--) open.push(next[i]);
    else if (isObject(next)) for (const key of Object.keys(next).sort(byTextDown)) open.push(next[key]);
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
  // A double holds fifteen digits exactly.
  return [text.length <= 16 && /^-?\d+\.\d+$/.test(text) ? String(Number(text)) : text];
}

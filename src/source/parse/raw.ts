// What is kept of an element besides its facts: its notes, its unknown members as texts for the hashes, and the whole of it as JSON text that
// a jsonb column accepts, with the original text beside it where the two must differ. jsonb rejects NUL, lone surrogates, numbers beyond
// numeric, and nesting deeper than the server's stack. Runs of combining marks are cut, since a search takes quadratic time on them.

import { hash } from 'node:crypto';
import type { MemberHashes, Note, Reject } from '../../domain/application.ts';
import { cutMarks } from '../../domain/person.ts';
import { parseDate } from './dates.ts';
import type { Members } from './members.ts';
import { isObject, replaced, toScalarText, toStorableText } from './values.ts';

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

const deepest = 1000;
const unholdable = /\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g;

/** Where an object of JSON may hold a number that is too large for jsonb. */
const large = /[:,[]-?\d(?:[\d.]{0,39}e|[\d.]{40})/i;

/** The `raw`, `rawText` and why they differ. */
export function toRaw(element: unknown): Pick<Reject, 'raw' | 'rawText'> & { reason: string | null } {
  const isDeep = depthOf(element) > deepest;
  // JSON.stringify is recursive and overflows the stack at some thousands of levels; JSON.parse is not.
  const all = isDeep ? renderDeep(element) : JSON.stringify(element);
  const text = cutMarks(all);
  const shown = isDeep ? toFlat(element) : element;
  const numbered =
    isDeep || !text.startsWith('{') || large.test(text) ? cutMarks(JSON.stringify(shown, toFitNumber)) : text;
  // JSON.stringify writes \u0000 and \ud... only for NUL and lone surrogates.
  const raw = numbered.includes('\\u')
    ? numbered.replace(unholdable, (found) => (found === '\\\\' ? found : '\ufffd'))
    : numbered;
  if (raw === text) return { raw, rawText: null, reason: text === all ? null : 'a long run of combining marks cut' };
  if (isDeep) return { raw, rawText: text, reason: 'nests too deeply for jsonb' };
  const reason = numbered === text ? replaced : `a number of more than ${mostDigits} digits kept as text`;
  return { raw, rawText: text, reason };
}

/** An element whose members that nest too deeply are lists of the values in them. A search for a person reads members of `raw`. */
function toFlat(element: unknown): unknown {
  if (!isObject(element)) return toLeaves(element);
  const toShallow = (value: unknown) => (depthOf(value) < deepest ? value : toLeaves(value));
  return Object.fromEntries(Object.entries(element).map(([name, value]) => [name, toShallow(value)]));
}

function depthOf(value: unknown): number {
  let depth = -1;
  for (let level: unknown[] = [[value]]; level.length > 0; depth++) {
    const below: unknown[] = [];
    for (const node of level)
      for (const child of Object.values(node as object))
        if (typeof child === 'object' && child !== null) below.push(child);
    level = below;
  }
  return depth;
}

function renderDeep(root: unknown): string {
  const parts: string[] = [];
  const open: (string | { readonly value: unknown })[] = [{ value: root }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next === 'string') parts.push(next);
    else if (!Array.isArray(next.value) && !isObject(next.value)) parts.push(JSON.stringify(next.value));
    else {
      const isList = Array.isArray(next.value);
      open.push(isList ? ']' : '}');
      for (const [index, [key, value]] of Object.entries(next.value).entries().toArray().reverse()) {
        open.push({ value }, `${index === 0 ? '' : ','}${isList ? '' : `${JSON.stringify(key)}:`}`);
      }
      open.push(isList ? '[' : '{');
    }
  }
  return parts.join('');
}

/** The most digits of a number. jsonb writes 1e-400 with all its zeros: a profile of 2 MB was sent as 115 MB. */
const mostDigits = 40;

/** Keeps numbers with more digits as texts. */
function toFitNumber(_key: string, value: unknown): unknown {
  const literal = typeof value === 'number' ? String(value) : JSON.isRawJSON(value) ? value.rawJSON : null;
  if (literal === null) return value;
  const parts = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(literal);
  const exponent = Number(parts?.[3] ?? 0);
  const before = (parts?.[1]?.length ?? 0) + exponent;
  const after = (parts?.[2]?.length ?? 0) - exponent;
  return Math.max(before, after) > mostDigits ? literal : value;
}

// Parses single values of the source: ids, texts, numbers and booleans, in any of their forms.
// A value that cannot be kept becomes null or is visibly altered, with a note that names the member and never its content.

import { inexactId, type Note, type VirusFlag } from '../../domain/application.ts';
import { firstPosition, lastPosition } from '../../domain/coverage/position.ts';
import { cutMarks, longestIdentifier } from '../../domain/person.ts';
import { Trouble } from '../../domain/trouble.ts';

const replacement = '\ufffd';
export const replaced = 'NUL, lone surrogates or invalid bytes replaced by U+FFFD';

/** The most values of an answer. Each takes memory and time, however short it is; a list of 3 MB has a third of this. */
export const mostValues = 400_000;

/** Refuses an answer as a whole: it is requested again. The text must not quote it. */
export function refuse(what: string): never {
  throw new Trouble('malformed', `The answer ${what}.`);
}

const mostNotes = 100;

/** Adds a note, unless it was added before. More than the first hundred would say nothing new. */
export function addNote(notes: Note[], field: string, reason: string): void {
  const isNew = !notes.some((note) => note.field === field && note.reason === reason);
  if (isNew && notes.length < mostNotes) notes.push({ field, reason });
}

/** Parses an exact 64-bit integer; otherwise returns the reason. */
export function parseId(value: unknown): bigint | { readonly reason: string } {
  if (value === undefined || value === null) return { reason: 'ID is missing' };
  const id = toBigInt(value);
  if (id === null) return { reason: inexactId };
  if (id > lastPosition) return { reason: 'ID does not fit 64 bits' };
  return id < firstPosition ? { reason: 'ID is below 1' } : id;
}

/** The integer value of a number, an exact number literal or a text of digits. */
export function toBigInt(value: unknown): bigint | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : null;
  const text = toWord(value);
  return text !== undefined && text.length <= 40 && /^-?\d+$/.test(text) ? BigInt(text) : null;
}

/** The text of a scalar, where neither white space nor a fraction of zeros counts. */
function toWord(value: unknown): string | undefined {
  return JSON.isRawJSON(value) ? value.rawJSON.replace(/\.0+$/, '') : toScalarText(value)?.trim();
}

/** The text of a scalar: strings unchanged, exact numbers with their original digits; undefined for anything else. */
export function toScalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return JSON.isRawJSON(value) ? value.rawJSON : undefined;
}

/** Parses a text member; characters that Postgres text cannot hold are replaced by U+FFFD. */
export function readText(value: unknown, field: string, notes: Note[]): string | null {
  if (value === null || value === undefined) return null;
  const text = toScalarText(value);
  if (text === undefined) {
    addNote(notes, field, 'is not a text');
    return null;
  }
  const storable = toStorableText(text);
  if (storable !== text) addNote(notes, field, replaced);
  return storable;
}

/** Parses a text that is indexed for lookups. A text too long for an index is cut; `raw` has all of it. */
export function readIdentifier(value: unknown, field: string, notes: Note[], longest = longestIdentifier) {
  const text = readText(value, field, notes);
  if (text === null || text.length <= longest) return text;
  addNote(notes, field, `cut to ${longest} characters`);
  return text.slice(0, longest).toWellFormed();
}

/** Parses an email address, its marks cut as a search cuts them. A text that is longer than any is only in `raw`, which is searched too. */
export function readEmail(value: unknown, notes: Note[]): string | null {
  const text = readText(value, 'Email', notes);
  if (text === null || text.length <= longestIdentifier) return text && cutMarks(text);
  addNote(notes, 'Email', 'is longer than an address, kept in raw only');
  return null;
}

// Postgres rejects NUL in text; lone surrogates are silently altered on the way to it.
export function toStorableText(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', replacement) : wellFormed;
}

/** Parses a whole number from 0 to `most`, written as a number or as digits. */
export function readCount(value: unknown, most: number, field: string, notes: Note[]): number | null {
  if (value === null || value === undefined) return null;
  const count = toBigInt(value);
  if (count !== null && count >= 0n && count <= BigInt(most)) return Number(count);
  addNote(notes, field, `is not a whole number from 0 to ${most}`);
  return null;
}

/** Parses a boolean: true, "True", 1 and their opposites. */
export function readBoolean(value: unknown, field: string, notes: Note[]): boolean | null {
  if (typeof value === 'boolean') return value;
  if (value === null || value === undefined) return null;
  const word = toWord(value)?.toLowerCase();
  if (word === 'true' || word === '1') return true;
  if (word === 'false' || word === '0') return false;
  addNote(notes, field, 'is not a boolean');
  return null;
}

/** Parses HasVirus. What is neither empty nor a boolean must not pass for "no virus". */
export function readVirusFlag(value: unknown, field: string, notes: Note[]): VirusFlag {
  const flag = readBoolean(value, field, notes);
  return flag === null && !isNothing(value) ? 'unreadable' : flag;
}

/** True for null, an absent member and a text of whitespace, as an empty XML element becomes. */
export function isNothing(value: unknown): boolean {
  return value === null || value === undefined || (typeof value === 'string' && value.trim() === '');
}

/** The values of a member that may be a list, one value or none. */
export function toList(value: unknown): readonly unknown[] {
  if (value === null || value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

/** True for a JSON object: not an array, null or an exact number. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

/** The objects within a value, itself included. Without recursion: a value may be 200,000 levels deep. */
export function listObjects(root: unknown): Record<string, unknown>[] {
  const open: unknown[] = [root];
  for (const value of open) {
    if (Array.isArray(value)) for (const one of value) open.push(one);
    else if (isObject(value)) for (const name in value) if (typeof value[name] === 'object') open.push(value[name]);
  }
  return open.filter(isObject);
}

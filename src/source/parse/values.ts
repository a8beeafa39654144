// Single values of the wire: ids, texts, numbers and booleans, in whatever form they come.
// A value that cannot be kept becomes null or visibly altered, with a note that names its member and never its content.

import type { Note } from '../../domain/application.ts';
import { largestId } from '../../domain/coverage/range.ts';

const replacement = '\ufffd';

/** An exact 64-bit integer, or the reason why there is none. */
export function parseId(value: unknown): bigint | { readonly reason: string } {
  if (value === undefined || value === null) return { reason: 'ID is missing' };
  const id = toBigInt(value);
  if (id === null) return { reason: 'ID is not an exact integer' };
  return id > largestId || id < -largestId - 1n ? { reason: 'ID does not fit 64 bits' } : id;
}

/** The integer that a number, an exact number literal or a text of digits stands for. */
export function toBigInt(value: unknown): bigint | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : null;
  const text = toScalarText(value)?.trim();
  return text !== undefined && text.length <= 40 && /^-?\d+$/.test(text) ? BigInt(text) : null;
}

/** The text of a scalar: strings as they are, numbers with the digits they came with; undefined for what is no scalar. */
export function toScalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return isExactNumber(value) ? value.rawJSON : undefined;
}

/** A text member; what Postgres text cannot hold is replaced by U+FFFD. */
export function readText(value: unknown, field: string, notes: Note[]): string | null {
  if (value === null || value === undefined) return null;
  const text = toScalarText(value);
  if (text === undefined) {
    notes.push({ field, reason: 'is not a text' });
    return null;
  }
  const storable = toStorableText(text);
  if (storable !== text) notes.push({ field, reason: 'NUL or lone surrogates replaced by U+FFFD' });
  return storable;
}

const longestIdentifier = 500;

/** A text that people look things up by: longer than any index takes, it is cut; the whole stands in raw. */
export function readIdentifier(value: unknown, field: string, notes: Note[]): string | null {
  const text = readText(value, field, notes);
  if (text === null || text.length <= longestIdentifier) return text;
  notes.push({ field, reason: `cut to ${longestIdentifier} characters` });
  return text.slice(0, longestIdentifier).toWellFormed();
}

// Postgres refuses NUL in text and silently alters lone surrogates.
function toStorableText(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', replacement) : wellFormed;
}

/** A count: a whole number from 0 to `most`, as number or as digits. */
export function readCount(value: unknown, most: number, field: string, notes: Note[]): number | null {
  if (value === null || value === undefined) return null;
  const count = toBigInt(value);
  if (count !== null && count >= 0n && count <= BigInt(most)) return Number(count);
  notes.push({ field, reason: `is not a whole number from 0 to ${most}` });
  return null;
}

/** A boolean: true, "True", 1 and their opposites. */
export function readBoolean(value: unknown, field: string, notes: Note[]): boolean | null {
  if (typeof value === 'boolean') return value;
  if (value === null || value === undefined) return null;
  const word = toScalarText(value)?.trim().toLowerCase();
  if (word === 'true' || word === '1') return true;
  if (word === 'false' || word === '0') return false;
  notes.push({ field, reason: 'is not a boolean' });
  return null;
}

/** True for a JSON object: no array, no null, no exact number. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

/** True for a number whose digits a double cannot carry; it holds its literal. */
export function isExactNumber(value: unknown): value is { readonly rawJSON: string } {
  return typeof value === 'object' && value !== null && JSON.isRawJSON(value);
}

// Builds the identity of an element without a usable id from its stable parts, so that it is found again in later answers. A member
// that differs in every answer must neither create another row nor bring an erased person back. The text is personal data: only its
// hash is stored.
import { toBareAddress } from '../../domain/person.ts';
import { parseDate } from './dates.ts';
import { isObject, toScalarText } from './values.ts';

/** The identity of an element: the text of its id, the person and the date; without a person, its outline instead. */
export function toIdentity(element: unknown, known: Readonly<Record<string, unknown>>): string {
  const id = readWord(known.ID);
  const person = toPerson(known);
  const date = parseDate(known.DateSubmitted).at ?? readWord(known.DateSubmitted);
  return JSON.stringify(person === null ? [id, date, toOutline(element)] : [id, person, date]);
}

/** The first of these that is present: account, email address, phone number, name. */
function toPerson(known: Readonly<Record<string, unknown>>): readonly string[] | null {
  const email = readWord(known.Email);
  const facts: readonly (readonly [string, string | null])[] = [
    ['account', readWord(known.JobSeekerID)],
    ['email', email && toBareAddress(email).toLowerCase()],
    ['phone', readWord(known.Phone)?.replace(/\D/g, '') ?? null],
    ['name', [known.FirstName, known.LastName].flatMap((name) => readWord(name) ?? []).join(' ')],
  ];
  return facts.find((fact): fact is [string, string] => !!fact[1]) ?? null;
}

function readWord(value: unknown): string | null {
  return toScalarText(value)?.trim() || null;
}

const deepest = 20;

/**
 * The names of the members, and those of their texts that contain a space or an @, without digits. A text of one word may be a token or a
 * time, and a number may be a counter, so only their type is included.
 */
export function toOutline(value: unknown, depth = 0): string {
  if (depth > deepest) return 'deep';
  const below = (one: unknown) => toOutline(one, depth + 1);
  if (Array.isArray(value)) return `[${value.slice(0, 100).map(below).join()}]`;
  if (isObject(value)) {
    const members = Object.entries(value).slice(0, 100);
    const lines = members.map(([name, member]) => `${JSON.stringify(name)}:${below(member)}`);
    return `{${lines.sort().join()}}`;
  }
  if (typeof value !== 'string') return value === null ? 'null' : typeof value;
  const text = value.trim();
  return /[\s@]/.test(text) ? JSON.stringify(text.slice(0, 1_000).toLowerCase().replace(/\d+/g, '#')) : 'word';
}

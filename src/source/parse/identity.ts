// What an element without a usable id is known by when it comes again: what is stable in it. A member that differs in every answer must
// neither make another row of it nor bring an erased person back. The text names people: it is only ever kept as a hash.
import { toBareAddress } from '../../domain/person.ts';
import { parseDate } from './dates.ts';
import { isObject, toScalarText } from './values.ts';

/** The identity of an element by its members: the text of its id, the person and the date; without a person also by its outline. */
export function toIdentity(element: unknown, known: Readonly<Record<string, unknown>>): string {
  const id = readWord(known.ID);
  const person = toPerson(known);
  const date = parseDate(known.DateSubmitted).at ?? readWord(known.DateSubmitted);
  return JSON.stringify(person === null ? [id, date, toOutline(element)] : [id, person, date]);
}

/** The account, or the first of the facts that stand for a person where there is none. */
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
 * The names of the members and the sentences in them. A text of one word may be a token or a time, and a number a counter: of these only
 * the type counts, and of a sentence no digit.
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

// Identifies an element that is not stored as an application, by its person and date. By this identity an erasure keeps it out even if
// another member changes, and two answers that contain it count as one element. The texts are personal data: only hashes are stored.
import type { MemberHashes } from '../../domain/application.ts';
import { toAccountId, toBareAddress } from '../../domain/person.ts';
import { parseDate } from './dates.ts';
import { toScalarText } from './values.ts';

/** The text of its id, the person and the date; without a person, its whole content. */
export function toIdentity(known: Readonly<Record<string, unknown>>, members: MemberHashes): string {
  const person = toPerson(known);
  const date = parseDate(known.DateSubmitted).at ?? readWord(known.DateSubmitted);
  return JSON.stringify(person === null ? members : [readWord(known.ID), person, date]);
}

/** The first of these that is present: account, email address, phone number, name. */
function toPerson(known: Readonly<Record<string, unknown>>): readonly string[] | null {
  const email = readWord(known.Email);
  const facts: readonly (readonly [string, string | null])[] = [
    ['account', toAccountId(readWord(known.JobSeekerID))],
    ['email', email && toBareAddress(email).toLowerCase()],
    ['phone', readWord(known.Phone)?.replace(/\D/g, '') ?? null],
    ['name', [known.FirstName, known.LastName].flatMap((name) => readWord(name) ?? []).join(' ')],
  ];
  return facts.find((fact): fact is [string, string] => !!fact[1]) ?? null;
}

/** Who applied for what; null where nobody is named. */
export function toApplicant(known: Readonly<Record<string, unknown>>): string | null {
  const names = ['ID', 'JobReference', 'JobSeekerID', 'Email', 'Phone', 'FirstName', 'LastName'];
  const texts = names.map((name) => readWord(known[name]));
  return toPerson(known) === null ? null : JSON.stringify(texts);
}

function readWord(value: unknown): string | null {
  return toScalarText(value)?.trim() || null;
}

// Builds what an erasure remembers of an element without a usable id, so that the element stays out when another member of it differs. The
// text is personal data: only its hash is stored.
import type { MemberHashes } from '../../domain/application.ts';
import { toBareAddress } from '../../domain/person.ts';
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

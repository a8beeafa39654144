// Identifies an element that is not stored as an application, by its person and date. By this identity an erasure keeps it out even if
// another member changes, and two answers that contain it count as one element. The texts are personal data: only their hashes leave here.
import { hash } from 'node:crypto';
import type { MemberHashes } from '../../domain/application.ts';
import { toAccountId, toBareAddress } from '../../domain/person.ts';
import { parseDate } from './dates.ts';
import { toScalarText } from './values.ts';

/** From its id, account or address, and date. Without account and address, its whole content: people share names and phones. */
export function toIdentity(known: Readonly<Record<string, unknown>>, members: MemberHashes): string {
  const person = toPerson(known);
  const date = parseDate(known.DateSubmitted).at ?? readWord(known.DateSubmitted);
  return hash('sha256', `0 ${JSON.stringify(person === null ? members : [readWord(known.ID), person, date])}`);
}

function toPerson(known: Readonly<Record<string, unknown>>): readonly string[] | null {
  const account = toAccountId(readWord(known.JobSeekerID));
  if (account !== null) return ['account', account];
  const email = readWord(known.Email);
  return email === null ? null : ['email', toBareAddress(email).toLowerCase()];
}

/** Who applied for what; null where nobody is named. */
export function toApplicant(known: Readonly<Record<string, unknown>>): string | null {
  const names = ['ID', 'JobReference', 'JobSeekerID', 'Email', 'Phone', 'FirstName', 'LastName'];
  const texts = names.map((name) => readWord(known[name]));
  const isNamed = toPerson(known) !== null || texts.slice(4).some((text) => text !== null);
  return isNamed ? hash('sha256', JSON.stringify(texts)) : null;
}

function readWord(value: unknown): string | null {
  return toScalarText(value)?.trim() || null;
}

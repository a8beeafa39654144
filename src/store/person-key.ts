// The person key stands for a person where names are not allowed: a keyed hash, different for every advertiser. Only this file computes
// it, so that a search derives the same key as the write.
import { createHmac, type KeyObject } from 'node:crypto';
import type { Application } from '../domain/application.ts';
import { parseAddress, toAccountId, toBareAddress } from '../domain/person.ts';
import type { Profile } from '../domain/prefill.ts';
import type { Queryable } from './postgres/database.ts';

/** An advertiser's rows, and the key of its person keys and tombstones. */
export interface Account {
  readonly db: Queryable;
  readonly privacyKey: KeyObject;
  readonly advertiserId: bigint;
}

export type Keyed = Omit<Account, 'db'>;

/** By the account, or else by the address; null without both. A Buffer as key takes ten times as long as a KeyObject. */
export function toPersonKey(of: Keyed, { jobSeekerId, email }: Pick<Application, 'jobSeekerId' | 'email'>) {
  // Placeholder ids name no account; otherwise all applications with one would be the same person.
  return toKey(of, toAccountId(jobSeekerId) ?? parseAddress(email ?? ''));
}

/** Earlier versions made keys of placeholders, too. A row of which an answer has taken account and address keeps its person's key. */
export function isOwnKey(
  of: Keyed,
  row: Pick<Application, 'jobSeekerId' | 'email'> & { readonly personKey: string | null },
): boolean {
  const before = row.jobSeekerId?.trim() ? row.jobSeekerId : row.email?.trim().toLowerCase();
  return [toPersonKey(of, row), toKey(of, before)].includes(row.personKey);
}

function toKey({ privacyKey, advertiserId }: Keyed, person: string | null | undefined): string | null {
  if (!person) return null;
  return createHmac('sha256', privacyKey).update(`${advertiserId}:${person}`).digest('hex').slice(0, 32);
}

/** One key for each address and each account id of a profile. */
export function toPersonKeys(of: Keyed, { emails, accountIds }: Pick<Profile, 'emails' | 'accountIds'>): string[] {
  const keys = [
    ...emails.map((email) => toAddressKey(of, email)),
    ...accountIds.map((jobSeekerId) => toPersonKey(of, { jobSeekerId, email: null })),
  ];
  return [...new Set(keys.filter((one) => one !== null))];
}

/** The key of a person who is known by an address alone, such as a prefill's candidate. */
export function toAddressKey(of: Keyed, email: string | null): string | null {
  return toKey(of, email && toBareAddress(email).toLowerCase());
}

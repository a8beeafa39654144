// What stands for a person in places that must not name one: keyed, and different at every advertiser. A search for a person must
// reckon it as those did who wrote it, so it is reckoned here alone.
import { createHmac, type KeyObject } from 'node:crypto';
import type { Application } from '../domain/application.ts';
import { toAccountId, toBareAddress } from '../domain/person.ts';
import type { Profile } from '../domain/prefill.ts';

/** By the jobseeker's account, or by the e-mail address where there is none. With a Buffer as key it takes ten times as long. */
export function toPersonKey(
  key: KeyObject,
  advertiserId: bigint,
  { jobSeekerId, email }: Pick<Application, 'jobSeekerId' | 'email'>,
): string | null {
  // An account without an id is nobody's: without this all of them would be one person.
  return toKey(key, advertiserId, toAccountId(jobSeekerId) ?? email?.trim().toLowerCase());
}

/** As versions made it that took whatever stood in place of an id for one: rows of theirs are there. */
export function toEarlierPersonKey(
  key: KeyObject,
  advertiserId: bigint,
  { jobSeekerId, email }: Pick<Application, 'jobSeekerId' | 'email'>,
): string | null {
  return toKey(key, advertiserId, jobSeekerId?.trim() ? jobSeekerId : email?.trim().toLowerCase());
}

function toKey(key: KeyObject, advertiserId: bigint, person: string | undefined): string | null {
  if (!person) return null;
  return createHmac('sha256', key).update(`${advertiserId}:${person}`).digest('hex').slice(0, 32);
}

/** By each address and each account id of a profile. */
export function toPersonKeys(
  key: KeyObject,
  advertiserId: bigint,
  { emails, accountIds }: Pick<Profile, 'emails' | 'accountIds'>,
): string[] {
  const keys = [
    ...emails.map((email) => toAddressKey(key, advertiserId, email)),
    ...accountIds.map((jobSeekerId) => toPersonKey(key, advertiserId, { jobSeekerId, email: null })),
  ];
  return [...new Set(keys.filter((one) => one !== null))];
}

/** Of somebody who is known by an address alone, as a candidate of a prefill is. */
export function toAddressKey(key: KeyObject, advertiserId: bigint, email: string | null): string | null {
  return toPersonKey(key, advertiserId, { jobSeekerId: null, email: email && toBareAddress(email) });
}

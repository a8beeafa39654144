// Whose an application id is: of copies with different content, which is the application and which are other people's; and whether an
// answer shows somebody else than the stored row names. Pure. The choice does not depend on the order of the copies, or a list in random
// order would change the row with every sweep.
import type { Application } from './application.ts';
import { listTexts, parseAddress, readMembers, toAccountId } from './person.ts';

const naming = ['account', 'address', 'name', 'word'] as const;
const columns = ['jobSeekerId', 'email', 'phone', 'firstName', 'lastName'] as const;

/** `raw` may be null where all columns have a text. */
export type Applicant = Pick<Application, (typeof columns)[number]> & { readonly raw: string | null };

/** Chooses the copy of the person whom the stored row names; without a row, or with another person's, one that names somebody. */
export function chooseCopy(copies: readonly Application[], row?: Applicant) {
  const own = row && toFacts(row);
  const ranked = copies.map((application) => {
    const facts = toFacts(application);
    const isAlike = own !== undefined && naming.some((fact) => own[fact] !== null && own[fact] === facts[fact]);
    const isSame = own !== undefined && !isApart(own, facts);
    // A copy that names nobody may be anybody's.
    const rank = [...[isAlike, isSame, facts.name !== null].map(Number), application.contentHash].join(' ');
    return { application, facts, rank };
  });
  const chosen = ranked.reduce((a, b) => (a.rank > b.rank ? a : b));
  const others = ranked.filter(({ facts }) => isApart(chosen.facts, facts));
  return { application: chosen.application, others: others.map(({ application }) => application) };
}

/** True where both have an account or an address that differ; without one in common, where they name somebody differently. */
export const isSomebodyElse = (a: Applicant, b: Applicant): boolean => isApart(toFacts(a), toFacts(b));

/**
 * Somebody else, and not a correction: a person keeps the account or the address; where one of these cannot be compared and the other
 * differs, first name, last name and phone; and where neither can be compared, whatever of these both have.
 */
export function isNewcomer(row: Applicant, shown: Applicant): boolean {
  const [a, b] = [toFacts(row), toFacts(shown)];
  if (!isApart(a, b)) return false;
  const isSame = (fact: keyof Facts) => a[fact] !== null && a[fact] === b[fact];
  const compared = listSaid(a, b, ['account', 'address']);
  if (compared.length === 2) return !compared.some(isSame);
  const words = ['firstName', 'lastName', 'phone'] as const;
  if (compared.length === 1) return !words.every(isSame);
  const said = listSaid(a, b, [...words, 'unkept']);
  return said.length === 0 || !said.every(isSame);
}

function isApart(a: Facts, b: Facts): boolean {
  const ids = listSaid(a, b, ['account', 'address']);
  const compared = ids.length > 0 ? ids : listSaid(a, b, ['name', 'word']);
  return compared.some((fact) => a[fact] !== b[fact]);
}

/** Those of these facts that both have. */
function listSaid(a: Facts, b: Facts, facts: readonly (keyof Facts)[]) {
  return facts.filter((fact) => a[fact] !== null && b[fact] !== null);
}

type Facts = ReturnType<typeof toFacts>;

/** What identifies a person; null where there is none. Takes time in proportion to the texts, so each copy's is made once. */
function toFacts(applicant: Applicant) {
  const { jobSeekerId, email } = applicant;
  const account = toAccountId(jobSeekerId);
  const address = parseAddress(email ?? '');
  const phone = applicant.phone?.replace(/\D/g, '') || null;
  const [firstName = null, lastName = null] = [applicant.firstName, applicant.lastName].map(toName);
  const texts = listUnkept(applicant);
  const unkept = texts.length > 0 ? JSON.stringify(texts) : null;
  // All that names somebody; where nothing does, what stands in the place of the address.
  const facts = [account, address, phone, firstName, lastName, ...texts];
  const name = facts.some((fact) => fact !== null) ? JSON.stringify(facts) : null;
  const word = name === null ? email?.trim() || null : null;
  return { account, address, phone, firstName, lastName, unkept, name, word };
}

/** Null where the source has put something else in its place. */
function toName(text: string | null): string | null {
  const name = text?.trim() ?? '';
  return !/[\p{L}\p{N}]/u.test(name) || /^\W*redacted\W*$/i.test(name) ? null : name;
}

/** The texts in place of the columns that are null: what the source sent as a list or an object is only in the JSON. */
function listUnkept(applicant: Applicant): string[] {
  const names = columns.filter((column) => applicant[column] === null).map((column) => column.toLowerCase());
  if (names.length === 0) return [];
  const texts = listTexts(readMembers(applicant.raw ?? '{}', names)).map((text) => text.trim());
  return texts.filter(Boolean).sort((a, b) => (a < b ? -1 : 1));
}

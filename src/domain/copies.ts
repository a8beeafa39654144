// Copies of one application id with different content: which of them is the application, and which are of other people.
// Pure. The choice does not depend on the order of the copies, or a list in random order would change the row with every sweep.
import type { Application, Copy } from './application.ts';
import { parseAddress, toAccountId } from './person.ts';

export type Applicant = Pick<Application, 'jobSeekerId' | 'email' | 'phone' | 'firstName' | 'lastName'>;

/** Chooses the copy of the person whom the stored row names; without a row, or with another person's, one that names somebody. */
export function chooseCopy(copies: readonly Copy[], row?: Applicant) {
  const toRank = ({ application }: Copy) =>
    [
      Number(row !== undefined && isSamePerson(row, application)),
      Number(row !== undefined && !isSomebodyElse(row, application)),
      // A copy that names nobody may be anybody's.
      Number(toFacts(application).at(-1) !== null),
      application.contentHash,
    ].join(' ');
  const { application } = copies.reduce((a, b) => (toRank(a) > toRank(b) ? a : b));
  const others = copies.filter((copy) => isSomebodyElse(application, copy.application));
  return { application, others: others.map(({ reject }) => reject) };
}

/** True where both have an account or an address that differ; without one in common, where they name somebody differently. */
export function isSomebodyElse(a: Applicant, b: Applicant): boolean {
  const [account, address, name] = toPairs(a, b);
  const said = [account, address].filter((pair) => pair?.every((fact) => fact !== null));
  const compared = said.length > 0 ? said : [name];
  return compared.some((pair) => pair?.every((fact) => fact !== null) && pair[0] !== pair[1]);
}

function isSamePerson(a: Applicant, b: Applicant): boolean {
  return toPairs(a, b).some(([one, other]) => one !== null && one === other);
}

function toPairs(a: Applicant, b: Applicant) {
  const [one, other] = [toFacts(a), toFacts(b)];
  return one.map((fact, at) => [fact, other[at] ?? null] as const);
}

/** The account, the address, and all that names somebody; null where there is none. */
function toFacts({ jobSeekerId, email, phone, firstName, lastName }: Applicant): (string | null)[] {
  const account = toAccountId(jobSeekerId);
  const address = parseAddress(email ?? '');
  const facts = [account, address, phone?.replace(/\D/g, ''), firstName?.trim(), lastName?.trim()];
  return [account, address, facts.some(Boolean) ? JSON.stringify(facts.map((fact) => fact || null)) : null];
}

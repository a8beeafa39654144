// Copies of one application id with different content: which of them is the application, and which are of other people.
// Pure. The choice does not depend on the order of the copies, or a list in random order would change the row with every sweep.
import type { Application, Copy } from './application.ts';
import { parseAddress, toAccountId } from './person.ts';

const columns = ['jobSeekerId', 'email', 'phone', 'firstName', 'lastName'] as const;

/** `raw` may be null where all columns have a text. */
export type Applicant = Pick<Application, (typeof columns)[number]> & { readonly raw: string | null };

/** Chooses the copy of the person whom the stored row names; without a row, or with another person's, one that names somebody. */
export function chooseCopy(copies: readonly Copy[], row?: Applicant) {
  const own = row && toFacts(row);
  const ranked = copies.map((copy) => {
    const facts = toFacts(copy.application);
    const rank = [
      Number(own !== undefined && toPairs(own, facts).some(([one, other]) => one !== null && one === other)),
      Number(own !== undefined && !isApart(own, facts)),
      // A copy that names nobody may be anybody's.
      Number(facts.name !== null),
      copy.application.contentHash,
    ].join(' ');
    return { copy, facts, rank };
  });
  const chosen = ranked.reduce((a, b) => (a.rank > b.rank ? a : b));
  const others = ranked.filter(({ facts }) => isApart(chosen.facts, facts));
  return { application: chosen.copy.application, others: others.map(({ copy }) => copy.reject) };
}

/** True where both have an account or an address that differ; without one in common, where they name somebody differently. */
export function isSomebodyElse(a: Applicant, b: Applicant): boolean {
  return isApart(toFacts(a), toFacts(b));
}

function isApart(a: Facts, b: Facts): boolean {
  const [account, address, ...words] = toPairs(a, b);
  const said = [account, address].filter((pair) => pair?.every((fact) => fact !== null));
  const compared = said.length > 0 ? said : words;
  return compared.some((pair) => pair?.every((fact) => fact !== null) && pair[0] !== pair[1]);
}

function toPairs(a: Facts, b: Facts) {
  return (['account', 'address', 'name', 'word'] as const).map((fact) => [a[fact], b[fact]] as const);
}

/** What identifies a person; null where there is none. Takes time in proportion to the texts, so each copy's is made once. */
interface Facts {
  readonly account: string | null;
  readonly address: string | null;
  /** All that names somebody. */
  readonly name: string | null;
  /** Where nothing does, what stands in the place of the address. */
  readonly word: string | null;
}

function toFacts(applicant: Applicant): Facts {
  const { jobSeekerId, email, phone, firstName, lastName } = applicant;
  const account = toAccountId(jobSeekerId);
  const address = parseAddress(email ?? '');
  const texts = [account, address, phone?.replace(/\D/g, ''), firstName?.trim(), lastName?.trim()];
  const facts = [...texts.map((text) => text || null), ...listUnkept(applicant)];
  const name = facts.some((fact) => fact !== null) ? JSON.stringify(facts) : null;
  return { account, address, name, word: name === null ? email?.trim() || null : null };
}

/** The texts in place of the columns that are null: what the source sent as a list or an object is only in the JSON. */
function listUnkept(applicant: Applicant): string[] {
  const names = columns.filter((column) => applicant[column] === null).map((column) => column.toLowerCase());
  if (names.length === 0) return [];
  const texts: string[] = [];
  for (const [name, value] of Object.entries(Object(JSON.parse(applicant.raw ?? '{}'))))
    if (names.includes(name.toLowerCase()))
      JSON.stringify(value, (_key, leaf) => {
        if (typeof leaf === 'string' || typeof leaf === 'number') texts.push(String(leaf).trim());
        return leaf;
      });
  return texts.filter(Boolean).sort((a, b) => (a < b ? -1 : 1));
}

// Parses a candidate's profile. The spec does not name its members, so the profile is kept whole, and the parts that nearly every profile
// has are found by their usual names. Pure. A link to a resume is used only if it points to the API itself.
import type { Note } from '../../domain/application.ts';
import { findAccounts, findAddresses, mostNamed, parseAddress, toAccountId } from '../../domain/person.ts';
import type { Profile } from '../../domain/prefill.ts';
import { Trouble } from '../../domain/trouble.ts';
import { toLeaves, toRaw } from './raw.ts';
import { addNote, isObject, readText, toScalarText } from './values.ts';

/** Parses a profile. `baseUrl`: the API that resume links must point to. `sessionIds`: the account ids that came with the token. */
export function parseProfile(value: unknown, baseUrl: string, sessionIds: readonly string[] = []): Profile {
  // Spec: a JSON object. Spec silent: no profile at all.
  if (!isObject(value)) throw new Trouble('missing', 'The source sent no profile.');
  const notes: Note[] = [];
  const { raw, rawText, reason } = toRaw(value);
  const json = `${rawText ?? ''} ${raw}`;
  const named = { emails: findAddresses(json), accountIds: findAccounts(json) };
  const emails = [...new Set(ownObjects(value).flatMap((object) => Object.values(object).flatMap(toAddresses)))];
  const accountIds = [...new Set([...sessionIds, ...findAccountIds(value)])];
  // An erasure could not be sure to keep such a text out.
  if ([named.emails, named.accountIds, emails, accountIds].some(({ length }) => length > mostNamed)) {
    throw new Trouble('malformed', `The profile names more than ${mostNamed} people.`);
  }
  if (reason !== null) addNote(notes, 'profile', reason);
  const find = createLookup(value);
  const read = (field: string, names: readonly string[]) => readText(find(names), field, notes) || null;
  return {
    raw,
    rawText,
    firstName: read('firstName', ['firstname', 'givenname']),
    lastName: read('lastName', ['lastname', 'familyname', 'surname']),
    email: read('email', ['emailaddress', 'email']),
    phone: read('phone', ['phonenumber', 'phone', 'mobile', 'mobilenumber']),
    emails,
    accountIds,
    named,
    resumeId: findResumeId(value, new URL(baseUrl), notes),
    notes,
  };
}

// The top level and the objects one level below, but no lists: an address further down may belong to a referee.
function ownObjects(profile: Record<string, unknown>): Record<string, unknown>[] {
  return [profile, ...Object.values(profile).filter(isObject)];
}

function toAddresses(value: unknown): string[] {
  const address = typeof value === 'string' ? parseAddress(value) : null;
  return address === null ? [] : [address];
}

const accountNames = /^(?:(?:job_?seeker|candidate|user|account|member|person|profile)_?id|sub)$/i;

/** The ids of the candidate's account. A plain `id` counts at the top level or beside an email address; elsewhere it may be any id. */
export function findAccountIds(profile: Record<string, unknown>): string[] {
  const ids = ownObjects(profile).flatMap((object) => {
    const isOwn = object === profile || Object.values(object).some((value) => toAddresses(value).length > 0);
    return Object.entries(object).flatMap(([name, value]) => {
      const isAccount = accountNames.test(name) || (isOwn && name.toLowerCase() === 'id');
      return (isAccount && toAccountId(toScalarText(value))) || [];
    });
  });
  return [...new Set(ids)];
}

/** Looks members of the candidate up: the first that is not null and has one of these names, in any letter case. */
function createLookup(profile: Record<string, unknown>): (names: readonly string[]) => unknown {
  const members = ownObjects(profile).flatMap((object) => Object.entries(object).filter(([, value]) => value !== null));
  const byName = new Map(members.reverse().map(([name, value]) => [name.toLowerCase(), value]));
  return (names) => byName.get(names.find((name) => byName.has(name)) ?? '');
}

// Spec silent: where the id of a resume is. In a link that ends in /v2/resumes/<id>; without one, in a plain resumeId or resume.id.
function findResumeId(profile: Record<string, unknown>, base: URL, notes: Note[]): string | null {
  const ids = new Set<string>();
  const reasons = new Set<string>();
  const links = toLeaves(profile).filter((leaf) => typeof leaf === 'string' && leaf.includes('v2/resumes/'));
  const named = createLookup(profile)(['resumeid', 'resume']);
  const plain = toScalarText(isObject(named) ? createLookup(named)(['id']) : named);
  if (links.length === 0 && plain) links.push(`v2/resumes/${plain}`);
  for (const text of links) {
    // To parse a long host takes quadratic time.
    const link = String(text).length > 2_000 ? null : URL.parse(String(text).trim(), base.href);
    if (link === null) continue;
    const [version, folder, id = ''] = link.pathname.replace(/\/$/, '').split('/').slice(-3);
    // The token is sent to the API only, whatever a profile contains.
    if (link.origin !== base.origin) reasons.add('lies at another host');
    else if (version !== 'v2' || folder !== 'resumes' || !/^[\w-]{1,100}$/.test(id)) reasons.add('has an invalid id');
    else ids.add(id);
  }
  if (ids.size > 1) reasons.add('more than one: the first is taken');
  for (const reason of reasons) addNote(notes, 'resume', reason);
  return [...ids][0] ?? null;
}

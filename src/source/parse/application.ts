// Parses one element of the list into one application. Each member is parsed separately, so that a bad member affects nothing else.
// Serves JSON and XML: xml.ts converts XML to the JSON shape first.

import { hash } from 'node:crypto';
import type { Application, Attachment, JobSeekingInfo, MemberHashes, Reject } from '../../domain/application.ts';
import { toAccountId, toBareAddress } from '../../domain/person.ts';
import { toAttachments } from './attachments.ts';
import { parseDate } from './dates.ts';
import { applicationShape, jobSeekingInfoShape, readMembers } from './members.ts';
import { type ParseFindings, recordUnknown, toMemberHashes, toMemberTexts, toRaw } from './raw.ts';
import {
  addNote,
  isObject,
  parseId,
  readBoolean,
  readCount,
  readEmail,
  readIdentifier,
  readText,
  refuse,
  toList,
  toScalarText,
} from './values.ts';

/** Parses an element of the list. An element without a usable id is a Reject; with one it is an application, whatever else is wrong. */
export function parseApplication(element: unknown): Application | Reject {
  if (!isObject(element)) return toReject(element, 'is not an object');
  const { known, unknown } = readMembers(element, applicationShape.names);
  for (const member of unknown) refuseList(member);
  const id = parseId(known.ID);
  if (typeof id !== 'bigint') return toReject(element, id.reason);
  const { raw, rawText, reason } = toRaw(element);
  const findings: ParseFindings = { notes: [], unknown: [] };
  const { notes } = findings;
  if (reason !== null) addNote(notes, 'raw', reason);
  const submitted = parseDate(known.DateSubmitted);
  if (submitted.problem !== null) addNote(notes, 'DateSubmitted', submitted.problem);
  recordUnknown(findings, '', unknown);
  const facts = {
    id,
    submittedAt: submitted.at,
    sourceOffset: submitted.offset,
    email: readEmail(known.Email, notes),
    firstName: readText(known.FirstName, 'FirstName', notes),
    lastName: readText(known.LastName, 'LastName', notes),
    phone: readText(known.Phone, 'Phone', notes),
    jobSeekerId: readIdentifier(known.JobSeekerID, 'JobSeekerID', notes),
    jobReference: readIdentifier(known.JobReference, 'JobReference', notes),
    jobSeekingInfo: toJobSeekingInfo(known.PrimaryJobSeekingInfo, findings),
    attachments: toAttachments(known.Attachments, element, id, findings),
  };
  // What a column does not hold as sent.
  const noted = [...new Set(notes.map(({ field }) => field))];
  const unkept = noted.filter(isText).map((name) => [name, known[name]] as const);
  return { ...facts, notes, raw, rawText, ...toHashes(facts, toMemberTexts(unkept), findings.unknown) };
}

/** Refuses an element with a list of its own: its applications are not among those of the list. */
function refuseList([name, member]: readonly [string, unknown]): void {
  const isList = /^jobapplications?(?:list)?$/i.test(name);
  if (isList && toList(member).some((one) => isObject(one) || Array.isArray(one)))
    refuse(`holds applications inside of one (member ${name})`);
}

const isText = (name: string) => applicationShape.types[name] === 'text';

/** An element that is not stored as an application, whole. */
export function toReject(element: unknown, reason: string): Reject {
  const { raw, rawText } = toRaw(element);
  const { known, unknown } = readMembers(isObject(element) ? element : { element }, applicationShape.names);
  const told = toMemberTexts(Object.entries(known));
  const all = toMemberHashes([...told, ...toMemberTexts(unknown)]);
  const applicant = toApplicant(known);
  const members = applicant === null ? all : toMemberHashes(told);
  // jsonb writes 1.5e+05 as 150000, which would be an id.
  const text = rawText ?? (JSON.isRawJSON(known.ID) ? raw : null);
  return { reason, identity: toIdentity(known, all), applicant, members, raw, rawText: text };
}

// By this identity an erasure keeps an element out even if another member changes, and two answers that contain it count as one element.
// From its id, account or address, and date; without account and address, its whole content: people share names and phones.
function toIdentity(known: Readonly<Record<string, unknown>>, members: MemberHashes): string {
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
function toApplicant(known: Readonly<Record<string, unknown>>): string | null {
  const names = ['ID', 'JobReference', 'JobSeekerID', 'Email', 'Phone', 'FirstName', 'LastName'];
  const texts = names.map((name) => readWord(known[name]));
  const isNamed = toPerson(known) !== null || texts.slice(4).some((text) => text !== null);
  return isNamed ? hash('sha256', JSON.stringify(texts)) : null;
}

function readWord(value: unknown): string | null {
  return toScalarText(value)?.trim() || null;
}

function toJobSeekingInfo(value: unknown, findings: ParseFindings): JobSeekingInfo | null {
  if (value === null || value === undefined) return null;
  const field = 'PrimaryJobSeekingInfo';
  if (!isObject(value)) {
    addNote(findings.notes, field, 'is not an object');
    return null;
  }
  const { known, unknown } = readMembers(value, jobSeekingInfoShape.names);
  recordUnknown(findings, `${field}.`, unknown);
  const info = {
    jobTitle: readText(known.JobTitle, `${field}.JobTitle`, findings.notes),
    companyName: readText(known.CompanyName, `${field}.CompanyName`, findings.notes),
    timeInRoleMonths: readCount(known.TimeInRole, 2 ** 31 - 1, `${field}.TimeInRole`, findings.notes),
    isNewToWorkforce: readBoolean(known.IsNewToWorkForce, `${field}.IsNewToWorkForce`, findings.notes),
  };
  // Spec: present only when the jobseeker supplied it. An object without values means the same as no object.
  return Object.values(info).every((fact) => fact === null) ? null : info;
}

type Hashes = Pick<Application, 'contentHash' | 'factsHash' | 'members'>;
type ParsedFacts = Omit<Application, 'notes' | 'raw' | 'rawText' | keyof Hashes>;

// Hashes the facts in the order in which parseApplication lists them, null where absent. Unknown members enter by name and by the texts of
// their non-empty leaves: XML has only texts, and the element names of its lists have no counterpart in JSON. Known members that no column
// holds are facts too.
function toHashes(parsed: ParsedFacts, unkept: ParseFindings['unknown'], unknown: ParseFindings['unknown']): Hashes {
  const { id, jobSeekingInfo: info, attachments: listed, ...facts } = parsed;
  const attachments = listed.toSorted((a, b) => (a.kind < b.kind ? -1 : 1));
  const toText = (parts: readonly unknown[], members: typeof unknown) => {
    const others = members.map(([, text]) => text).sort();
    return JSON.stringify([String(id), ...Object.values(facts), info && Object.values(info), parts, others]);
  };
  const toHash = (text: string) => hash('sha256', text).slice(0, 32);
  const factsHash = toHash(toText(attachments.map(toStableParts), unkept));
  const contentHash = hash('sha256', toText(attachments.map(toAllParts), [...unkept, ...unknown]));
  if (unknown.length === 0) return { contentHash, factsHash, members: {} };
  // Without unknown members, another contentHash with the same facts means another Hash or Href. Beside them only this hash tells it.
  const hints = attachments.map(({ sourceHash, href }) => [sourceHash, href]);
  return { contentHash, factsHash: factsHash + toHash(JSON.stringify(hints)), members: toMemberHashes(unknown) };
}

/** An application with other attachments than its text has. Where these differ, its hashes differ too. */
export function withAttachments(application: Application, attachments: readonly Attachment[]): Application {
  const [before, text] = [application.attachments, attachments].map((all) =>
    JSON.stringify(all.map(toAllParts).sort()),
  );
  if (text === before) return application;
  const [facts, hints] = [application.factsHash.slice(0, 32), application.factsHash.slice(32)];
  const factsHash = hash('sha256', facts + text).slice(0, 32) + hints;
  return { ...application, attachments, contentHash: hash('sha256', application.contentHash + text), factsHash };
}

/** Leaves out Hash and Href: the source may change both in every answer although the file is the same. Href is never followed. */
function toStableParts(attachment: Attachment): readonly unknown[] {
  return toAllParts({ ...attachment, sourceHash: null, href: null });
}

function toAllParts(attachment: Attachment): readonly unknown[] {
  const { kind, sourceHash, sizeBytes, hasVirus, uploadedAt, href } = attachment;
  return [kind, sourceHash, sizeBytes, hasVirus, uploadedAt, href];
}

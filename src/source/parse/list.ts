// Parses the text of a list answer into a Page: the envelope in any of its forms, then element by element.
// An invalid envelope rejects the whole page (Trouble malformed); an invalid element affects only itself. Does not know HTTP.

import { type Application, type Page, type Reject, sharedId } from '../../domain/application.ts';
import { chooseCopy } from '../../domain/copies.ts';
import { mostSearched } from '../../domain/person.ts';
import { Trouble } from '../../domain/trouble.ts';
import { parseApplication, toReject, withAttachments } from './application.ts';
import { toWorstFlag } from './attachments.ts';
import { noDate, parseDate } from './dates.ts';
import { isHtml } from './file-description.ts';
import { parseJson } from './json.ts';
import { envelopeShape, type Members, namesApplication, readMembers } from './members.ts';
import { toLeaves } from './raw.ts';
import {
  isNothing,
  isObject,
  listObjects,
  parseId,
  readIdentifier,
  refuse,
  toBigInt,
  toList,
  toScalarText,
} from './values.ts';
import { parseListXml } from './xml.ts';

export type PageFacts = Omit<Page, 'bytes' | 'cached' | 'sunsetAt'>;

/** Parses a list answer. The first character decides between JSON and XML: some servers ignore the requested format. */
export function parsePage(text: string): PageFacts {
  const start = text.trimStart().slice(0, 1_024);
  if (!start.startsWith('<')) return toPage(parseJson(text));
  if (isHtml(start)) refuse('is an HTML page instead of a list (a login page or a proxy?)');
  return toPage(parseListXml(text));
}

/** Parses one element of a list from its stored JSON text. Invalid text gives a Reject. */
export function parseElement(text: string): Application | Reject {
  try {
    return parseApplication(parseJson(text));
  } catch (error) {
    if (error instanceof Trouble) return toReject(text, 'is not valid JSON');
    throw error;
  }
}

/** The element that an application is where its id is another person's. */
export function toElement(application: Application): Reject {
  return { ...toReject(parseJson(application.rawText ?? application.raw), sharedId), application };
}

/** The page for an empty body or a 404. */
export function toEmptyPage(): PageFacts {
  return { ...toPage(null), weakEmpty: true };
}

/** Finds ids in the beginning of a list that is too large to parse. They serve as split points only and may be wrong. */
export function scanIds(prefix: string): bigint[] {
  const ids = prefix.matchAll(/(?:"ID"\s*:\s*"?|<(?:[\w.-]+:)?ID(?:\s[^<>]{0,200})?>\s*)(-?\d{1,19})(?=["\s,}<])/gi);
  return Array.from(ids, (match) => parseId(match[1])).filter((id) => typeof id === 'bigint');
}

function toPage(value: unknown): PageFacts {
  const { known, unknown } = toEnvelope(value);
  const advertiserId = (known.AdvertiserID ?? null) === null ? null : parseId(known.AdvertiserID);
  if (advertiserId !== null && typeof advertiserId !== 'bigint')
    return refuse('names an AdvertiserID that is not an integer');
  const list = known.JobApplicationsList ?? [];
  if (!Array.isArray(list) && !isObject(list)) refuse('has a JobApplicationsList that is neither a list nor an object');
  return {
    advertiserId,
    agentId: readIdentifier(known.AgentID, 'AgentID', []),
    ...toElements(toList(list).flat()),
    echo: {
      afterId: toIdEcho(known.AfterID),
      beforeId: toIdEcho(known.BeforeID),
      afterDate: toDateEcho(known.AfterDate),
      beforeDate: toDateEcho(known.BeforeDate),
    },
    // An answer with a message and no list does not prove that the list is empty.
    weakEmpty: (known.JobApplicationsList ?? null) === null && unknown.some(hasValue),
  };
}

/** The most elements of a list: in 3 MB, each would have 150 bytes. */
const mostElements = 20_000;
const mostCopies = 100;

const strange = 'is an object, but not a list of applications';

/** True for a member with a value; XML attributes and type hints do not count. */
function hasValue([name, member]: readonly [string, unknown]): boolean {
  return member !== null && member !== undefined && member !== '' && !/^(?:\w*@|__)/.test(name);
}

// Spec: a top-level object JobApplications. Spec silent: its absence. Sister APIs send bare lists, unwrapped envelopes, and an empty
// object for no result.
function toEnvelope(top: unknown): Members {
  const wrapper = isObject(top) && Object.keys(top).find((key) => key.toLowerCase() === 'jobapplications');
  const value = wrapper ? top[wrapper] : top;
  const beside = wrapper ? Object.entries(top).filter(([key]) => key !== wrapper) : [];
  const members = isObject(value) ? readMembers(value, envelopeShape.names) : { known: {}, unknown: [] };
  for (const member of [...beside, ...members.unknown]) refuseOthers(member);
  if (value === null && beside.some(hasValue)) refuse(strange);
  if (value === null) return members;
  if (Array.isArray(value)) return { known: { JobApplicationsList: value }, unknown: [] };
  if (!isObject(value)) refuse('is neither an object nor a list');
  // An object with only unknown members is another message, most likely an error. Parsing it as an empty list would hide that.
  if (Object.keys(members.known).length === 0 && members.unknown.length > 0) refuse(strange);
  return members;
}

/** Refuses a member that shows that the list does not have all: other applications, or an error. Its name may be any text. */
function refuseOthers([name, member]: readonly [string, unknown]): void {
  const isSaid = (leaf: unknown) => !/^(?:0|false)?$/i.test((toScalarText(leaf) ?? '').trim());
  const isError = /error|(?<!de)fault/i.test(name) && toLeaves(member).some(isSaid);
  if (!isError && !listObjects(member).some((one) => namesApplication(Object.keys(one)))) return;
  const what = isError ? 'reports errors' : 'holds applications outside of JobApplicationsList';
  refuse(`${what} (member ${name.slice(0, 60).replace(/\W/g, '_')})`);
}

function toElements(list: readonly unknown[]): Pick<PageFacts, 'applications' | 'ids' | 'rejects' | 'shared'> {
  if (list.length > mostElements) refuse(`has a list of more than ${mostElements} elements`);
  const read = list.map(parseApplication);
  const listed = read.filter((one) => 'id' in one);
  const rejects = read.filter((one): one is Reject => !('id' in one));
  const applications: Application[] = [];
  const shared: Application[] = [];
  for (const all of Map.groupBy(listed, ({ id }) => id).values()) {
    if (all.length > mostCopies) refuse(`has more than ${mostCopies} copies of one application`);
    const copies = all.length > 1 ? [...new Map(all.map((copy) => [copy.contentHash, copy])).values()] : all;
    const merged = copies.length > 1 ? mergeCopies(copies) : [];
    const { application, others } = merged.length > 0 ? chooseCopy(merged) : { application: copies[0], others: [] };
    if (application !== undefined) applications.push(application);
    if (others.length > 0) for (const copy of merged) shared.push(copy);
  }
  // Nobody could be found behind that, by an erasure or by the gate.
  const isLong = ({ raw, rawText }: Reject | Application) => raw.length + (rawText?.length ?? 0) > mostSearched;
  if (shared.some(isLong)) refuse(`has a copy of an application of more than ${mostSearched} characters`);
  const kept = rejects.map((one) => (isLong(one) ? toReject(null, tooLong) : one));
  return { applications, ids: listed.map(({ id }) => id), rejects: kept, shared };
}

const tooLong = `has no usable id, and more than ${mostSearched} characters, which are not kept`;

/** Spec silent: the same id twice. Each copy has the worst virus flag of any copy for each kind: one path serves them all. */
function mergeCopies(copies: readonly Application[]): Application[] {
  const listed = copies.flatMap(({ attachments }) => attachments);
  const alike = Map.groupBy(listed, ({ kind }) => kind);
  return copies.map((copy) => {
    const attachments = copy.attachments.map((one) => {
      const flags = [one, ...(alike.get(one.kind) ?? [])].map(({ hasVirus }) => hasVirus);
      return { ...one, hasVirus: toWorstFlag(flags) };
    });
    const notes = [...copy.notes, { field: 'ID', reason: 'came more than once in a page with different content' }];
    return withAttachments({ ...copy, notes }, attachments);
  });
}

function toIdEcho(value: unknown): bigint | null | undefined {
  if (value !== undefined && isNothing(value)) return null;
  return toBigInt(value) ?? undefined;
}

function toDateEcho(value: unknown): number | null | undefined {
  if (value !== undefined && isNothing(value)) return null;
  const { at, problem } = parseDate(value);
  return at ?? (problem === noDate ? null : undefined);
}

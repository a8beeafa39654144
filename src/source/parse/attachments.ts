// Parses the attachments that the source lists for an application, at most one per kind.
// Href is stored as sent and compared with the path built from kind and id; it is never followed.

import { type Attachment, type AttachmentKind, attachmentKinds, isAttachmentKind } from '../../domain/application.ts';
import { parseDate } from './dates.ts';
import { attachmentShape, readMembers } from './members.ts';
import { type ParseFindings, recordUnknown } from './raw.ts';
import {
  addNote,
  isNothing,
  isObject,
  listObjects,
  readCount,
  readIdentifier,
  readText,
  readVirusFlag,
  toList,
} from './values.ts';

const field = 'Attachments';
/** The flag as a member or, in XML, as an attribute. */
const ofFlag = /^@?hasvirus$/i;

// A kind is part of an index key, whose size is limited.
const longestKind = 100;
/** The most attachments of an application. All of its kinds that can be fetched are among them. */
const mostListed = 100;

/** Parses the attachments of application `id`, a member of `element`: an array, a single object, or none. */
export function toAttachments(value: unknown, element: object, id: bigint, findings: ParseFindings): Attachment[] {
  // In XML, several elements Attachments are several lists.
  const listed = toList(value).flat();
  const objects = listed.filter(isObject);
  if (objects.length < listed.length) {
    addNote(findings.notes, field, 'contains an element that is not an object');
  }
  const byKind = new Map<string, Attachment>();
  let isHidden = false;
  for (const element of objects) {
    const attachment = toAttachment(element, id, findings);
    const { kind, hasVirus } = attachment;
    // It may be a flag of any of the others.
    if (kind === 'unknown' && (hasVirus ?? false) !== false) isHidden = true;
    const other = byKind.get(kind);
    if (other !== undefined) byKind.set(kind, mergeOfKind(other, attachment, findings));
    else if (isAttachmentKind(kind) || byKind.size < mostListed) byKind.set(kind, attachment);
    else addNote(findings.notes, field, `more than ${mostListed} types, the others are kept in raw only`);
  }
  // Each member that is not as the spec says has a note or is unknown.
  const isUsual = findings.notes.length === 0 && findings.unknown.length === 0;
  if (!isHidden && (isUsual || !hasStrayFlag(element, new Set(objects)))) return [...byKind.values()];
  addNote(findings.notes, `${field}.HasVirus`, 'is not the only member of this name');
  return Array.from(byKind.values(), (one) => ({ ...one, hasVirus: toWorstFlag([one.hasVirus, 'unreadable']) }));
}

/** True where a name contains HasVirus, at any depth, in another place than the flag of an attachment. */
function hasStrayFlag(element: object, attachments: ReadonlySet<unknown>): boolean {
  return listObjects(element).some((object) =>
    Object.entries(object).some(([name, value]) => {
      const isFlag = attachments.has(object) && ofFlag.test(name);
      return !isFlag && /hasvirus/i.test(name) && !isNothing(value);
    }),
  );
}

/** The path of an attachment, relative to the base URL. Spec: the type is `coverLetter`, its path `coverletter`. */
export function toAttachmentPath(kind: AttachmentKind, id: bigint): string {
  return `advertiser/applications/${kind.toLowerCase()}/${id}`;
}

function toAttachment(element: Record<string, unknown>, id: bigint, findings: ParseFindings): Attachment {
  const { notes } = findings;
  const { known, unknown } = readMembers(element, attachmentShape.names);
  const kind = toKind(known.Type, findings);
  recordUnknown(findings, `${field}.${kind}.`, unknown);
  const uploaded = parseDate(known.DateUploaded);
  if (uploaded.problem !== null) addNote(notes, `${field}.DateUploaded`, uploaded.problem);
  const href = readText(known.Href, `${field}.Href`, notes);
  if (isAttachmentKind(kind) && !isExpectedHref(href, kind, id)) {
    addNote(notes, `${field}.Href`, 'differs from the path of its kind and id');
  }
  const flags = [readVirusFlag(known.HasVirus, `${field}.HasVirus`, notes)];
  for (const [name, value] of unknown)
    if (ofFlag.test(name)) flags.push(readVirusFlag(value, `${field}.HasVirus`, notes));
  return {
    kind,
    sourceHash: readText(known.Hash, `${field}.Hash`, notes),
    sizeBytes: readCount(known.Size, Number.MAX_SAFE_INTEGER, `${field}.Size`, notes),
    hasVirus: toWorstFlag(flags.filter((flag) => flag !== null)),
    uploadedAt: uploaded.at,
    uploadedOffset: uploaded.offset,
    href,
  };
}

function toKind(value: unknown, { notes }: ParseFindings): string {
  const text = readIdentifier(value, `${field}.Type`, notes, longestKind)?.trim() || 'unknown';
  return attachmentKinds.find((kind) => kind.toLowerCase() === text.toLowerCase()) ?? text;
}

function isExpectedHref(href: string | null, kind: AttachmentKind, id: bigint): boolean {
  return href === toAttachmentPath(kind, id) || href === `advertiser/applications/${kind}/${id}`;
}

// Spec silent: two attachments of one kind, although one path serves both. The newest is kept; a virus in either counts.
// The choice must not depend on their order, which the source may change with every answer.
function mergeOfKind(a: Attachment, b: Attachment, { notes }: ParseFindings): Attachment {
  addNote(notes, `${field}.Type`, 'ambiguous: more than one of a kind');
  const newest = rankOf(a) > rankOf(b) ? a : b;
  return { ...newest, hasVirus: toWorstFlag([newest.hasVirus, a.hasVirus, b.hasVirus]) };
}

/** Of several flags for one file the worst; the first one where none is bad. */
export function toWorstFlag(flags: readonly Attachment['hasVirus'][]): Attachment['hasVirus'] {
  return ([true, 'unreadable'] as const).find((flag) => flags.includes(flag)) ?? flags[0] ?? null;
}

function rankOf(attachment: Attachment): string {
  // Dates begin at -6.3e13, in year 2.
  const order = ((attachment.uploadedAt ?? -1e14) + 1e14).toString().padStart(17, '0');
  return `${order} ${attachment.sourceHash} ${attachment.sizeBytes} ${attachment.href}`;
}

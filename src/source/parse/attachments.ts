// Parses the attachments that the source lists for an application, at most one per kind.
// Href is stored as sent and compared with the path built from kind and id; it is never followed.

import {
  type Attachment,
  type AttachmentKind,
  attachmentKinds,
  isAttachmentKind,
  type Note,
} from '../../domain/application.ts';
import { parseDate } from './dates.ts';
import { attachmentShape, readMembers } from './members.ts';
import { noteUnknown, type ParseFindings } from './notes.ts';
import { isObject, readCount, readText, readVirusFlag } from './values.ts';

const field = 'Attachments';
const kindByLowerCase = new Map<string, AttachmentKind>(attachmentKinds.map((kind) => [kind.toLowerCase(), kind]));

// A kind is part of an index key, whose size is limited.
const longestKind = 100;

/** Parses the attachments of application `id`: an array, a single object, or none. */
export function toAttachments(value: unknown, id: bigint, findings: ParseFindings): Attachment[] {
  if (value === null || value === undefined) return [];
  const listed = Array.isArray(value) ? value : [value];
  const objects = listed.filter(isObject);
  if (objects.length < listed.length) {
    findings.notes.push({ field, reason: 'contains an element that is not an object' });
  }
  const byKind = new Map<string, Attachment>();
  for (const element of objects) {
    const attachment = toAttachment(element, id, findings);
    const other = byKind.get(attachment.kind);
    byKind.set(attachment.kind, other === undefined ? attachment : mergeOfKind(other, attachment, findings.notes));
  }
  return [...byKind.values()];
}

/** The path of an attachment, relative to the base URL. Spec: the type is `coverLetter`, its path `coverletter`. */
export function toAttachmentPath(kind: AttachmentKind, id: bigint): string {
  return `advertiser/applications/${kind.toLowerCase()}/${id}`;
}

function toAttachment(element: Record<string, unknown>, id: bigint, findings: ParseFindings): Attachment {
  const { notes } = findings;
  const { known, unknown } = readMembers(element, attachmentShape.names);
  const kind = toKind(known.Type, notes);
  noteUnknown(findings, `${field}.${kind}.`, unknown);
  const uploaded = parseDate(known.DateUploaded);
  if (uploaded.problem !== null) notes.push({ field: `${field}.DateUploaded`, reason: uploaded.problem });
  const href = readText(known.Href, `${field}.Href`, notes);
  if (isAttachmentKind(kind) && !isExpectedHref(href, kind, id)) {
    notes.push({ field: `${field}.Href`, reason: 'differs from the path of its kind and id' });
  }
  return {
    kind,
    sourceHash: readText(known.Hash, `${field}.Hash`, notes),
    sizeBytes: readCount(known.Size, Number.MAX_SAFE_INTEGER, `${field}.Size`, notes),
    hasVirus: readVirusFlag(known.HasVirus, `${field}.HasVirus`, notes),
    uploadedAt: uploaded.at,
    href,
  };
}

function toKind(value: unknown, notes: Note[]): string {
  const text = readText(value, `${field}.Type`, notes)?.trim();
  if (text === undefined || text === '') return 'unknown';
  const kind = kindByLowerCase.get(text.toLowerCase());
  if (kind !== undefined) return kind;
  if (text.length <= longestKind) return text;
  notes.push({ field: `${field}.Type`, reason: `longer than ${longestKind} characters, cut` });
  return text.slice(0, longestKind).toWellFormed();
}

function isExpectedHref(href: string | null, kind: AttachmentKind, id: bigint): boolean {
  return href === toAttachmentPath(kind, id) || href === `advertiser/applications/${kind}/${id}`;
}

// Spec silent: two attachments of one kind, although one path serves both. The newest is kept; a virus in either counts.
// The choice must not depend on their order, which the source may change with every answer.
function mergeOfKind(a: Attachment, b: Attachment, notes: Note[]): Attachment {
  notes.push({ field: `${field}.Type`, reason: 'ambiguous: more than one of a kind' });
  const newest = rankOf(a) > rankOf(b) ? a : b;
  const flags = [a.hasVirus, b.hasVirus];
  return {
    ...newest,
    hasVirus: ([true, 'unreadable'] as const).find((flag) => flags.includes(flag)) ?? newest.hasVirus,
  };
}

function rankOf(attachment: Attachment): string {
  const at = attachment.uploadedAt ?? Number.MIN_SAFE_INTEGER;
  const order = (at - Number.MIN_SAFE_INTEGER).toString().padStart(17, '0');
  return `${order} ${attachment.sourceHash} ${attachment.sizeBytes} ${attachment.href}`;
}

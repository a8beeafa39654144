// An application as the description draws it, member by member, before it is JSON or XML.
// Choices about values are made here; choices about notation are made by the two renderers.

import { createHash, randomUUID } from 'node:crypto';
import type { SandboxApplication, SandboxAttachment } from './applications.ts';
import type { Choices } from './choices.ts';
import { digestFile } from './files.ts';
import { renderScreenJson, renderScreenXml } from './screens.ts';
import type { Member, Wire } from './wire.ts';

/** Spec: Job application. */
export function toWire(application: SandboxApplication, choices: Choices, withInfo: boolean, host: string): Wire {
  const { plan } = application;
  if (plan?.element) return plan.element;
  const attachments = application.attachments.map((one) => toWireAttachment(one, application, choices, host));
  const members: Member[] = [
    ['ID', choices.idShape === 'text' ? { json: `"${application.id}"`, xml: `${application.id}` } : application.id],
    ['DateSubmitted', { moment: application.submittedAt }],
    ['Email', application.email],
    ['FirstName', application.firstName],
    ['LastName', application.lastName],
    ['Phone', application.phone],
    ['JobSeekerID', application.jobSeekerId],
  ];
  if (application.jobReference !== null) members.push(['JobReference', application.jobReference]);
  members.push(['Attachments', { list: attachments, of: 'Attachment' }]);
  const info = application.jobSeekingInfo;
  if (withInfo && info) {
    const facts: (readonly [string, string | number | boolean | null])[] = [
      ['JobTitle', info.jobTitle],
      ['CompanyName', info.companyName],
      ['TimeInRole', info.timeInRoleMonths],
      ['IsNewToWorkForce', info.isNewToWorkforce],
    ];
    members.push(['PrimaryJobSeekingInfo', { members: facts.flatMap((fact) => toSupplied(fact, choices)) }]);
  }
  if (choices.extraMembers) members.unshift(['__type', 'JobApplication:#Advertiser'], ['Channel', 'web']);
  return { members: plan ? overlay(members, plan.raw, plan.rawXml) : members };
}

/** Spec: Attachment. */
function toWireAttachment(
  attachment: SandboxAttachment,
  application: SandboxApplication,
  choices: Choices,
  host: string,
): Wire {
  const members: Member[] = [['DateUploaded', { moment: attachment.uploadedAt }]];
  const hasVirus = toVirusFlag(attachment.hasVirus, choices);
  if (hasVirus !== undefined) members.push(['HasVirus', hasVirus]);
  const hash = toListedHash(attachment, application, choices);
  if (hash !== undefined) members.push(['Hash', hash]);
  const href = toHref(attachment.kind, application.id, choices, host);
  if (href !== undefined) members.push(['Href', href]);
  const size = toListedSize(attachment, application, choices);
  if (size !== undefined) members.push(['Size', size]);
  members.push(['Type', typeCases[choices.typeCase](attachment.kind)]);
  return { members: attachment.plan ? overlay(members, attachment.plan.raw, attachment.plan.rawXml) : members };
}

const typeCases: Readonly<Record<Choices['typeCase'], (kind: string) => string>> = {
  drawn: (kind) => kind,
  lower: (kind) => kind.toLowerCase(),
  upper: (kind) => kind.toUpperCase(),
  pascal: (kind) => kind.charAt(0).toUpperCase() + kind.slice(1),
};

function toVirusFlag(hasVirus: boolean | null, choices: Choices): Wire | undefined {
  if (hasVirus === null) {
    if (choices.virusUnknown === 'absent') return undefined;
    return choices.virusUnknown === 'emptyText' ? '' : null;
  }
  if (choices.virusFlag === 'absent') return undefined;
  if (choices.virusFlag === 'text') return hasVirus ? 'True' : 'False';
  return choices.virusFlag === 'number' ? Number(hasVirus) : hasVirus;
}

/** The Hash that the list shows; undefined when the member is absent. */
export function toListedHash(
  attachment: SandboxAttachment,
  application: SandboxApplication,
  choices: Choices,
): string | null | undefined {
  switch (choices.hash) {
    case 'absent':
      return undefined;
    case 'null':
      return null;
    case 'empty':
      return '';
    case 'constant':
      return '00000000000000000000000000000000';
    case 'volatile':
      return randomUUID().replaceAll('-', '');
    case 'colliding':
      return digestAttachment(attachment, application, choices, 'md5').slice(0, 1);
    case 'upperCase':
      return digestAttachment(attachment, application, choices, 'md5').toUpperCase();
    default:
      return digestAttachment(attachment, application, choices, choices.hash);
  }
}

function digestAttachment(
  attachment: SandboxAttachment,
  application: SandboxApplication,
  choices: Choices,
  algorithm: 'md5' | 'sha1' | 'sha256',
): string {
  if (attachment.file) return digestFile(attachment.file, algorithm);
  return createHash(algorithm).update(screenText(application, choices)).digest('hex');
}

/** The Size that the list shows; undefined when the member is absent. */
export function toListedSize(
  attachment: SandboxAttachment,
  application: SandboxApplication,
  choices: Choices,
): number | string | null | undefined {
  const sizeBytes = toTrueSize(attachment, application, choices);
  switch (choices.size) {
    case 'absent':
      return undefined;
    case 'null':
      return null;
    case 'offByThree':
      return sizeBytes + 3;
    case 'zero':
      return 0;
    case 'negative':
      return -1;
    case 'text':
      return String(sizeBytes);
    default:
      return sizeBytes;
  }
}

/** The bytes that a download gives; an infected file has none (Spec: Attachment.HasVirus). */
export function toTrueSize(attachment: SandboxAttachment, application: SandboxApplication, choices: Choices): number {
  if (attachment.hasVirus === true && choices.virusBody !== 'bytes') return 0;
  return attachment.file?.sizeBytes ?? Buffer.byteLength(screenText(application, choices));
}

function screenText(application: SandboxApplication, choices: Choices): string {
  return choices.screenSize === 'json'
    ? renderScreenJson(application.screens, choices)
    : renderScreenXml(application.screens, choices);
}

/** Spec: Attachment.Href. Undefined when the member is absent. */
export function toHref(kind: string, id: bigint, choices: Choices, host: string): string | null | undefined {
  const folder = kind.toLowerCase();
  const path = `advertiser/applications/${folder}/${id}`;
  const forms: Readonly<Record<Choices['href'], string | null | undefined>> = {
    relative: path,
    typed: `advertiser/applications/${kind}/${id}`,
    absolute: `http://${host}/v1/${path}`,
    foreign: `https://files.example.net/${path}`,
    protocolRelative: `//files.example.net/${path}`,
    backslashes: `\\\\files.example.net\\${path}`,
    tab: `/\t/files.example.net/${path}`,
    parent: `../../${path}`,
    upperCase: path.toUpperCase(),
    versioned: `/v1/${path}`,
    rooted: `/${path}`,
    missing: undefined,
    null: null,
    otherId: `advertiser/applications/${folder}/${id + 1n}`,
  };
  return forms[choices.href];
}

function toSupplied([name, value]: readonly [string, string | number | boolean | null], choices: Choices): Member[] {
  if (value !== null) return [[name, value]];
  if (choices.unsupplied === 'absent') return [];
  return [[name, choices.unsupplied === 'null' ? null : '']];
}

/** Members as a plan wants them; one that is not there yet is added. Without XML of its own, scalars serve both notations. */
function overlay(members: Member[], raw: Record<string, string> = {}, rawXml: Record<string, string> = {}): Member[] {
  const names = new Set([...members.map(([name]) => name), ...Object.keys(raw), ...Object.keys(rawXml)]);
  const drawn = new Map(members);
  return [...names].map((name): Member => {
    const json = Object.hasOwn(raw, name) ? raw[name] : undefined;
    const xml = Object.hasOwn(rawXml, name) ? rawXml[name] : undefined;
    if (json === undefined && xml === undefined) return [name, drawn.get(name) ?? null];
    return [name, { json: json ?? 'null', xml: xml ?? toXmlText(json ?? '') }];
  });
}

function toXmlText(json: string): string {
  const text = json.startsWith('"') ? json.slice(1, -1) : json === 'null' ? '' : json;
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

// Converts an attachment to its members in the list: Hash, Size, HasVirus and Href, by the account's choices.

import { hash, randomUUID } from 'node:crypto';
import type { Choices } from '../behaviour/choices.ts';
import type { SandboxApplication, SandboxAttachment } from '../people/applications.ts';
import { digestFile } from '../people/files.ts';
import { overlay } from './overlay.ts';
import { renderScreenJson, renderScreenXml } from './screens.ts';
import type { Member, Wire } from './wire.ts';

/** An attachment's listed facts; undefined for an absent member. */
export interface Listed {
  readonly hash: string | null | undefined;
  readonly size: number | string | null | undefined;
  readonly href: string | null | undefined;
  /** The size of the download. */
  readonly trueSizeBytes: number;
}

/** Spec: Attachment. */
export function toWireAttachment(
  attachment: SandboxAttachment,
  application: SandboxApplication,
  choices: Choices,
  host: string,
): Wire {
  const listed = toListed(attachment, application, choices, host);
  const hasVirus = toVirusFlag(attachment.hasVirus, choices);
  const members: Member[] = [['DateUploaded', { moment: attachment.uploadedAt }]];
  if (hasVirus !== undefined) members.push(['HasVirus', hasVirus]);
  if (listed.hash !== undefined) members.push(['Hash', listed.hash]);
  if (listed.href !== undefined) members.push(['Href', listed.href]);
  if (listed.size !== undefined) members.push(['Size', listed.size]);
  members.push(['Type', typeCases[choices.typeCase](attachment.kind)]);
  return { members: attachment.plan ? overlay(members, attachment.plan.raw, attachment.plan.rawXml) : members };
}

/** The facts of an attachment as listed. */
export function toListed(
  attachment: SandboxAttachment,
  application: SandboxApplication,
  choices: Choices,
  host: string,
): Listed {
  const { file, hasVirus, kind } = attachment;
  const screen = file ? '' : renderScreen(application, choices.screenSize, choices);
  const digest = (algorithm: 'md5' | 'sha1' | 'sha256') =>
    file ? digestFile(file, algorithm) : hash(algorithm, screen, 'hex');
  const sizeBytes = file ? file.sizeBytes : Buffer.byteLength(screen);
  // Spec: Attachment.HasVirus. When true, the attachment content is empty.
  const trueSizeBytes = hasVirus === true && choices.virusBody !== 'bytes' ? 0 : sizeBytes;
  return {
    hash: toHash(digest, choices),
    size: toSize(trueSizeBytes, choices),
    href: hrefs[choices.href](kind, application.id, host),
    trueSizeBytes,
  };
}

/** The body of an application's screen. */
export function renderScreen(application: SandboxApplication, notation: 'json' | 'xml', choices: Choices): string {
  const render = notation === 'json' ? renderScreenJson : renderScreenXml;
  return application.plan?.rawScreen?.[notation] ?? render(application.screens, choices);
}

function toHash(digest: (algorithm: 'md5' | 'sha1' | 'sha256') => string, choices: Choices): Listed['hash'] {
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
      return digest('md5').slice(0, 1);
    case 'upperCase':
      return digest('md5').toUpperCase();
    case 'long':
      // 4,032 characters that do not compress.
      return Array.from({ length: 63 }, (_, nth) => hash('sha256', `${nth} ${digest('sha256')}`, 'hex')).join('');
    default:
      return digest(choices.hash);
  }
}

function toSize(sizeBytes: number, choices: Choices): Listed['size'] {
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

function toVirusFlag(hasVirus: boolean | null, choices: Choices): Wire | undefined {
  if (hasVirus === null) {
    if (choices.virusUnknown === 'absent') return undefined;
    return choices.virusUnknown === 'emptyText' ? '' : null;
  }
  if (choices.virusFlag === 'absent') return undefined;
  if (choices.virusFlag === 'text') return hasVirus ? 'True' : 'False';
  return choices.virusFlag === 'number' ? Number(hasVirus) : hasVirus;
}

const typeCases: Readonly<Record<Choices['typeCase'], (kind: string) => string>> = {
  drawn: (kind) => kind,
  lower: (kind) => kind.toLowerCase(),
  upper: (kind) => kind.toUpperCase(),
  pascal: (kind) => kind.charAt(0).toUpperCase() + kind.slice(1),
};

const toPath = (kind: string, id: bigint) => `advertiser/applications/${kind.toLowerCase()}/${id}`;

/** Spec: Attachment.Href is a path relative to the API host. */
const hrefs: Readonly<Record<Choices['href'], (kind: string, id: bigint, host: string) => Listed['href']>> = {
  relative: toPath,
  typed: (kind, id) => `advertiser/applications/${kind}/${id}`,
  absolute: (kind, id, host) => `http://${host}/v1/${toPath(kind, id)}`,
  foreign: (kind, id) => `https://files.example.net/${toPath(kind, id)}`,
  protocolRelative: (kind, id) => `//files.example.net/${toPath(kind, id)}`,
  backslashes: (kind, id) => `\\\\files.example.net\\${toPath(kind, id)}`,
  tab: (kind, id) => `/\t/files.example.net/${toPath(kind, id)}`,
  parent: (kind, id) => `../../${toPath(kind, id)}`,
  upperCase: (kind, id) => toPath(kind, id).toUpperCase(),
  versioned: (kind, id) => `/v1/${toPath(kind, id)}`,
  rooted: (kind, id) => `/${toPath(kind, id)}`,
  missing: () => undefined,
  null: () => null,
  otherId: (kind, id) => toPath(kind, id + 1n),
  signed: (kind, id) => `${toPath(kind, id)}?signature=${randomUUID()}`,
};

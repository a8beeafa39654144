// What a perfect reader would have stored of an application: every fact, the true digest of every file, every answer.
// The values follow the current choices. A member that a plan wrote as raw text is named in `altered`; its value is not predicted.

import { hash } from 'node:crypto';
import type { Choices } from '../behaviour/choices.ts';
import type { SandboxApplication, SandboxAttachment } from '../people/applications.ts';
import { digestFile } from '../people/files.ts';
import type { ParsedPlan } from '../people/plan.ts';
import { renderScreen, toListed } from '../wire/attachment-wire.ts';

export interface TruthRow extends Omit<SandboxApplication, 'attachments' | 'screens' | 'plan'> {
  readonly attachments: readonly TruthAttachment[];
  readonly screens: readonly TruthScreen[];
  /** Members that a plan wrote as raw text; `*` for a whole element, `screen` for the screen's body. */
  readonly altered: readonly string[];
}

interface TruthAttachment extends Pick<SandboxAttachment, 'kind' | 'hasVirus' | 'uploadedAt'> {
  readonly href: string | null;
  /** As listed; null when the list has none, or a different one each time. */
  readonly sourceHash: string | null;
  readonly sizeBytes: number | null;
  /** As downloaded. There is no sha256 for an infected file, nor for a screen, whose bytes depend on the format. */
  readonly trueSizeBytes: number;
  readonly sha256: string | null;
  /** A screen's digests by format. */
  readonly screenSha256: { readonly json: string; readonly xml: string } | null;
  readonly fileName: string | null;
  readonly contentType: string | null;
}

interface TruthScreen {
  readonly screenId: string;
  readonly name: string;
  readonly outcome: 'pass' | 'fail';
  readonly questions: readonly {
    readonly questionId: string;
    readonly type: string;
    readonly text: string;
    readonly answers: readonly { readonly answerId: string; readonly text: string; readonly selected: boolean }[];
  }[];
}

/** The truth about an application. */
export function toTruth(application: SandboxApplication, choices: Choices, host: string): TruthRow {
  const { attachments, screens, plan, ...facts } = application;
  return {
    ...facts,
    attachments: attachments.map((one) => toTruthAttachment(one, application, choices, host)),
    screens: screens.map((screen) => ({
      screenId: screen.id,
      name: screen.name,
      outcome: screen.successful ? 'pass' : 'fail',
      questions: screen.questions.map((question) => ({
        questionId: question.id,
        type: question.type,
        text: question.text,
        answers: question.answers.map((answer) => ({
          answerId: answer.id,
          text: answer.text,
          selected: answer.selected,
        })),
      })),
    })),
    altered: toAltered(plan),
  };
}

function toAltered(plan: ParsedPlan | null): string[] {
  if (!plan) return [];
  if (plan.element) return ['*'];
  const members = new Set([...Object.keys(plan.raw ?? {}), ...Object.keys(plan.rawXml ?? {})]);
  return plan.rawScreen ? [...members, 'screen'] : [...members];
}

function toTruthAttachment(
  attachment: SandboxAttachment,
  application: SandboxApplication,
  choices: Choices,
  host: string,
): TruthAttachment {
  const { kind, hasVirus, uploadedAt, file } = attachment;
  const listed = toListed(attachment, application, choices, host);
  const empty = hasVirus === true;
  return {
    kind,
    hasVirus,
    uploadedAt,
    href: listed.href ?? null,
    sourceHash: choices.hash === 'volatile' ? null : (listed.hash ?? null),
    sizeBytes: listed.size === null || listed.size === undefined ? null : Number(listed.size),
    trueSizeBytes: listed.trueSizeBytes,
    sha256: file && !empty ? digestFile(file, 'sha256') : null,
    screenSha256:
      file || empty
        ? null
        : {
            json: toSha256(renderScreen(application, 'json', choices)),
            xml: toSha256(renderScreen(application, 'xml', choices)),
          },
    fileName: file?.fileName ?? null,
    contentType: file?.contentType ?? null,
  };
}

function toSha256(text: string): string {
  return hash('sha256', text, 'hex');
}

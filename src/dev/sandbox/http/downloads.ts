// Answers requests for attachments and screens. Spec: rule 3 for files, rule 2 for the screen.

import type { Account } from '../account/account.ts';
import type { Choices } from '../behaviour/choices.ts';
import type { Route } from '../behaviour/faults.ts';
import type { SandboxApplication } from '../people/applications.ts';
import type { BoardFile } from '../people/files.ts';
import { renderScreen } from '../wire/attachment-wire.ts';
import { toError } from './errors.ts';
import type { WireAnswer } from './transport.ts';

/** Spec: success is 200 with the attachment as the body. */
export function answerDownload(
  account: Account,
  kind: Exclude<Route, 'list' | 'screen'>,
  id: bigint,
  otherBytes: boolean,
): WireAnswer {
  const { choices } = account;
  const application = findApplication(account, id);
  if (!application) return account.removed.has(id) ? toRemoved(choices) : toUnshown(choices);
  const attachment = application.attachments.find((one) => one.kind === kind);
  if (!attachment?.file) return toUnshown(choices);
  const headers = toFileHeaders(attachment.file, choices);
  // Spec: Attachment.HasVirus. When true, the attachment content is empty.
  if (attachment.hasVirus === true && choices.virusBody !== 'bytes') {
    return choices.virusBody === 'empty' ? { status: 200, headers, body: [] } : toUnshown(choices);
  }
  const body = attachment.file.open();
  return { status: 200, headers, body: otherBytes ? withTail(body, `\n% ${account.requestCount}`) : body };
}

/** The screen's text, or another answer. */
export function answerScreen(account: Account, id: bigint, notation: 'json' | 'xml'): string | WireAnswer {
  const { choices } = account;
  const application = findApplication(account, id);
  if (!application) return account.removed.has(id) ? toRemoved(choices) : toUnshown(choices);
  if (application.screens.length === 0 && !application.plan?.rawScreen) {
    if (choices.screenMissing === 'noContent') return { status: 204, headers: {}, body: null };
    if (choices.screenMissing === 'emptyBody') return { status: 200, headers: {}, body: [] };
    if (choices.screenMissing === 'notFound') return toError(choices, 404, 'There is no screen.');
  }
  return renderScreen(application, notation, choices);
}

function findApplication(account: Account, id: bigint): SandboxApplication | null {
  const kept = account.choices.removedFile === 'kept' ? account.removed.get(id) : undefined;
  return account.get(id) ?? (kept ? account.look(kept) : null);
}

function toUnshown(choices: Choices): WireAnswer {
  switch (choices.fileMissing) {
    case 'noContent':
      return { status: 204, headers: {}, body: null };
    case 'emptyBody':
      return { status: 200, headers: {}, body: [] };
    case 'gone':
      return toError(choices, 410, 'The attachment is gone.');
    case 'refuse400':
      return toError(choices, 400, 'There is no such attachment.');
    case 'fail500':
      return toError(choices, 500, 'Something went wrong.');
    default:
      return toError(choices, 404, 'There is no such attachment.');
  }
}

function toRemoved(choices: Choices): WireAnswer {
  return choices.removedFile === 'gone' ? toError(choices, 410, 'The application is gone.') : toUnshown(choices);
}

function toFileHeaders(file: BoardFile, choices: Choices): Record<string, string> {
  const headers: Record<string, string> = { 'Cache-Control': 'private' };
  if (choices.fileType !== 'missing') {
    headers['Content-Type'] = choices.fileType === 'uploaded' ? file.contentType : 'application/octet-stream';
  }
  const disposition = toDisposition(file.fileName, choices);
  if (disposition !== null) headers['Content-Disposition'] = disposition;
  return headers;
}

/** Spec: `attachment; filename=<file_name>`. */
export function toDisposition(fileName: string, choices: Choices): string | null {
  const spaced = fileName.replaceAll('_', ' ');
  const accented = `Lebenslauf Zoë – ${spaced}`;
  const percent = encodeURIComponent(accented);
  const forms: Readonly<Record<Choices['disposition'], string | null>> = {
    plain: `attachment; filename=${fileName}`,
    quoted: `attachment; filename="${spaced}"`,
    spaces: `attachment; filename=${spaced}`,
    extended: `attachment; filename*=UTF-8''${percent}`,
    both: `attachment; filename="${spaced}"; filename*=UTF-8''${percent}`,
    rawUtf8: `attachment; filename="${accented}"`,
    traversal: `attachment; filename="../../etc/${spaced}"`,
    // A header cannot contain NUL itself; the extended form can encode it.
    nul: `attachment; filename*=UTF-8''resume%00.pdf`,
    long: `attachment; filename="${'long '.repeat(60)}${fileName}"`,
    missing: null,
  };
  const header = forms[choices.disposition];
  // Node writes each header character as one byte, so the UTF-8 bytes are passed as Latin-1 characters.
  return header === null ? null : Buffer.from(header).toString('latin1');
}

function* withTail(body: Iterable<Buffer>, tail: string): Generator<Buffer> {
  yield* body;
  yield Buffer.from(tail);
}

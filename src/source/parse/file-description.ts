// Describes a downloaded file: its declared type, its name, the type detected from its bytes, and whether it looks like an HTML page
// instead of a file. None of it is trusted: a name is never used as a path, and the declared type only helps to detect such a page.

import { isUtf8 } from 'node:buffer';
import { parse as parseDisposition } from 'content-disposition';
import { fileTypeFromBuffer } from 'file-type';
import { withoutMark } from './charset.ts';

export async function describeFile(headers: Readonly<Record<string, string | undefined>>, head: Uint8Array) {
  const contentType = toText(headers['content-type'], 200);
  const fileName = parseFileName(headers['content-disposition']);
  const encoding = toText(headers['content-encoding']?.toLowerCase(), 50);
  return {
    contentType,
    detectedType: (await detectType(head)) ?? (head.length > 0 && !head.includes(0) ? 'text/plain' : null),
    fileName,
    /** Content-Encoding, where the source compressed the bytes without being asked. They are stored as received. */
    encoding: encoding === 'identity' ? null : encoding,
    /** An error or login page? Only a comparison with Size is conclusive. Spec: rule 3 shows Content-Disposition on every attachment. */
    looksLikePage: startsAsHtml(head) || (fileName === null && /\b(?:html|json|xml)\b/i.test(contentType ?? '')),
  };
}

/** The type that the first bytes show: detection reads at most 64 kB, however large the file. */
export async function detectType(bytes: Uint8Array): Promise<string | null> {
  const found = await fileTypeFromBuffer(bytes.subarray(0, 65_536)).catch(() => undefined);
  return found?.mime ?? null;
}

const longestName = 255;

/** The declared name, decoded, without its path and what cannot be seen; a long one keeps its extension. Invalid headers are accepted. */
export function parseFileName(header = ''): string | null {
  const declared = readName(toUtf8(header))?.split(/[/\\]/);
  const name = toText(declared?.at(-1), header.length);
  if (name === null || /^\.*$/.test(name)) return null;
  const [extension = ''] = /\.\w{1,10}$/.exec(name) ?? [];
  return name.length <= longestName ? name : name.slice(0, longestName - extension.length).toWellFormed() + extension;
}

function readName(header: string): string | undefined {
  try {
    const filename: string | undefined = parseDisposition(header).parameters.filename;
    const isCutAtSpace = header.includes(`filename=${filename} `) && !header.includes('filename*');
    if (filename !== undefined && !isCutAtSpace) return filename;
  } catch {
    // The expression below reads the name from an invalid header.
  }
  // An unquoted name with spaces is invalid, but common.
  return /filename\s*=\s*"?([^";]+)/i.exec(header)?.[1];
}

/** Node gives a header as Latin-1, one character per byte. Bytes that are valid UTF-8 are decoded as such. */
function toUtf8(header: string): string {
  const bytes = Buffer.from(header, 'latin1');
  return /[^\0-\xff]/.test(header) || !isUtf8(bytes) ? header : bytes.toString().replace(/^\ufeff/, '');
}

/** What a header says, cut to a number of characters; null when there is nothing to display. */
function toText(said = '', longest: number): string | null {
  const shown = said.replace(/[\p{Cc}\p{Cf}]/gu, '').trim();
  return shown.slice(0, longest).toWellFormed() || null;
}

export function startsAsHtml(head: Uint8Array): boolean {
  return isHtml(Buffer.from(withoutMark(head).subarray(0, 1_024)).toString('latin1'));
}

/** True for a text whose first tag, after any comments, is one of a page. */
export function isHtml(start: string): boolean {
  let rest = start.trimStart();
  while (rest.startsWith('<!--')) {
    const end = rest.indexOf('-->', 4);
    if (end < 0) return false;
    rest = rest.slice(end + 3).trimStart();
  }
  return /^<(?:!doctype\s+html|html|head|body)\b/i.test(rest);
}
